"""p-values, scores, sets and criteria of tensors on a GPU: same numbers, and nothing leaves the device."""

import numpy as np
import pytest

from calipers.conformal import conformal_p_values
from calipers.conformal.scores import RankedRule, score_rule
from calipers.metrics import efficiency

pytestmark = pytest.mark.gpu


@pytest.fixture
def torch():
    module = pytest.importorskip("torch")
    if not module.cuda.is_available():
        pytest.fail("the gpu lane needs a CUDA device", pytrace=False)
    return module


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    P = rng.multinomial(40, np.full(7, 1 / 7), size=3000) / 40
    return P, rng.integers(0, 7, 3000), rng.random(3000)


@pytest.mark.parametrize("name", ["lac", "aps", "raps", "saps", "margin", "top_k"])
def test_scores_and_sets_agree_with_the_host(torch, rows, name):
    P, y, u = rows
    rule = score_rule(name)
    device_P, device_y = torch.asarray(P, device="cuda"), torch.asarray(y, device="cuda")
    draws = (u, torch.asarray(u, device="cuda")) if rule.randomizable else (None, None)
    scores = rule.matrix(device_P, draws[1])
    assert scores.is_cuda
    np.testing.assert_array_equal(scores.cpu().numpy(), rule.matrix(P, draws[0]))
    at = rule.at_labels(device_P, device_y, draws[1])
    np.testing.assert_array_equal(at.cpu().numpy(), rule.at_labels(P, y, draws[0]))
    if isinstance(rule, RankedRule):
        limits = np.tile([0.4, 0.9], (3000, 1))
        sets = rule.sets(device_P, torch.asarray(limits, device="cuda"), draws[1])
        np.testing.assert_array_equal(sets.cpu().numpy(), rule.sets(P, limits, draws[0]))


@pytest.mark.parametrize("conditional", [False, True])
def test_p_values_and_criteria_agree_with_the_host(torch, rows, conditional):
    P, y, tau = rows
    cal, test = 1 - P[np.arange(3000), y], 1 - P
    options = {"calibration_labels": y} if conditional else {}
    expected = conformal_p_values(cal, test, tau=tau, **options)
    moved = {key: torch.asarray(value, device="cuda") for key, value in (options | {"tau": tau}).items()}
    p = conformal_p_values(torch.asarray(cal, device="cuda"), torch.asarray(test, device="cuda"), **moved)
    assert p.is_cuda
    np.testing.assert_array_equal(p.cpu().numpy(), expected)
    table, host = efficiency(torch.asarray(y, device="cuda"), p), efficiency(y, expected)
    for name in host:
        assert float(table[name]) == pytest.approx(float(host[name]), rel=1e-12)
