"""Scores, p-values, sets, criteria, bins, walks and coverage on every array library: numpy's numbers, in place.

What counts or ranks must agree bit for bit; what adds, to the last few digits.
"""

import numpy as np
import pytest

from calipers.arrays import as_numpy, running_sums, sort_with_order
from calipers.conformal import conformal_p_values
from calipers.conformal.p_values import CalibrationScores
from calipers.conformal.score_table import score_rule
from calipers.conformal.scores import RankedRule
from calipers.difficulty import ease_from_outputs
from calipers.inference import Moments
from calipers.inputs import sets_at
from calipers.metrics import calibration_error, coverage, efficiency, is_covered, t_cv, t_ss, true_rank
from calipers.metrics.contributions import criterion_rows
from tests.contract.libraries import LIBRARIES, assert_lies_with, move

SCORES = ("lac", "aps", "raps", "saps", "margin", "top_k")
N, K = 600, 7

each_library = pytest.mark.parametrize("library", LIBRARIES)


@pytest.fixture(params=[np.float64, np.float32], ids=["float64", "float32"])
def rows(request):
    """Probabilities with many ties, labels and one uniform number per row."""
    rng = np.random.default_rng(0)
    P = (rng.multinomial(32, np.full(K, 1 / K), size=N) / 32).astype(request.param)
    return P, rng.integers(0, K, N), rng.random(N)


@each_library
@pytest.mark.parametrize("drawn", [False, True], ids=["plain", "randomised"])
@pytest.mark.parametrize("name", SCORES)
def test_scores_of_all_labels_and_of_one_are_those_of_numpy(rows, library, name, drawn):
    P, y, u = rows
    rule = score_rule(name)
    u = u if drawn and rule.randomizable else None
    device_P, device_u = move(P, library), move(u, library)
    scores = rule.matrix(device_P, device_u)
    assert_lies_with(scores, device_P)
    np.testing.assert_array_equal(as_numpy(scores), rule.matrix(P, u))
    at = rule.at_labels(device_P, move(y, library), device_u)
    np.testing.assert_array_equal(as_numpy(at), rule.at_labels(P, y, u))


@each_library
@pytest.mark.parametrize("name", ["aps", "raps", "saps", "top_k"])
def test_ranked_sets_are_the_scores_below_the_limit(rows, library, name):
    P, _, u = rows
    rule = score_rule(name)
    assert isinstance(rule, RankedRule)
    limits = np.tile([0.4, 0.9], (N, 1))
    sets = rule.sets(move(P, library), move(limits, library), move(u, library))
    expected = rule.matrix(P, u)[:, :, None] <= limits[:, None, :]
    np.testing.assert_array_equal(as_numpy(sets), expected)


@each_library
@pytest.mark.parametrize("tau", [None, "drawn"], ids=["plain", "smoothed"])
@pytest.mark.parametrize("conditional", [False, True], ids=["marginal", "label-conditional"])
def test_p_values_are_those_of_numpy_bit_for_bit(rows, library, conditional, tau):
    P, y, draws = rows
    cal, test = 1 - P[np.arange(N), y], 1 - P
    options = ({"calibration_labels": y} if conditional else {}) | ({"tau": draws} if tau else {})
    expected = conformal_p_values(cal, test, **options)
    device_test = move(test, library)
    moved = {key: move(value, library) for key, value in options.items()}
    p = conformal_p_values(move(cal, library), device_test, **moved)
    assert p.device == device_test.device
    np.testing.assert_array_equal(as_numpy(p), expected)


@each_library
def test_thresholds_and_smoothed_sets_are_those_of_numpy(rows, library):
    P, y, tau = rows
    cal, test = 1 - P[np.arange(N), y], 1 - P
    host, there = CalibrationScores.build(cal), CalibrationScores.build(move(cal, library))
    np.testing.assert_array_equal(
        as_numpy(there.thresholds((0.1, 0.3))), as_numpy(host.thresholds((0.1, 0.3)))
    )
    sets = there.smoothed_sets(move(test, library), 0.1, groups=None, tau=move(tau, library))
    np.testing.assert_array_equal(as_numpy(sets), host.smoothed_sets(test, 0.1, groups=None, tau=tau))


@each_library
def test_criteria_count_alike_and_add_alike(rows, library):
    P, y, _ = rows
    p = np.floor(P * 20) / 20
    expected = criterion_rows(p, y, sets_at(p, 0.1))
    device_p = move(p, library)
    found = criterion_rows(device_p, move(y, library), sets_at(device_p, 0.1))
    for name, row in expected.items():
        assert_lies_with(found[name], device_p)
        if name in {"N", "M", "E", "OM", "OE", "empty", "U", "OU", "credibility"}:
            np.testing.assert_array_equal(as_numpy(found[name]), row)
        else:
            np.testing.assert_allclose(as_numpy(found[name]), row, rtol=1e-12, atol=1e-13)
    table = efficiency(move(y, library), device_p)
    host = efficiency(y, p)
    for name, estimate in host.items():
        for field in ("value", "low", "high", "std_error"):
            assert getattr(table[name], field) == pytest.approx(getattr(estimate, field), rel=1e-9)


@each_library
def test_coverage_and_ranks_of_labels_count_alike(rows, library):
    P, y, _ = rows
    sets = P > 0.125
    device_sets = move(sets, library)
    assert_lies_with(is_covered(move(y, library), device_sets), device_sets)
    assert coverage(move(y, library), device_sets, alpha=0.1) == coverage(y, sets, alpha=0.1)
    ranks = true_rank(move(y, library), move(P, library))
    np.testing.assert_array_equal(as_numpy(ranks), true_rank(y, P))


@each_library
@pytest.mark.parametrize("tied", [False, True], ids=["distinct", "tied"])
def test_difficulty_bins_hold_the_same_rows(library, tied):
    rng = np.random.default_rng(1)
    covered, size, ranks = rng.random(N) < 0.9, rng.integers(1, 5, N), rng.integers(1, 9, N)
    easiness = rng.integers(0, 30, N) / 30 if tied else rng.random(N)
    moved = [move(a, library) for a in (covered, size, ranks, easiness)]
    there = t_cv(moved[0], moved[3], alpha=0.1, n_bins=10, random_state=0)
    here = t_cv(covered, easiness, alpha=0.1, n_bins=10, random_state=0)
    assert float(there) == pytest.approx(float(here), rel=1e-12)
    assert there.details["worst_bin"] == here.details["worst_bin"]
    options = {"n_bins": 10, "n_draws": 19, "random_state": 0}
    there, here = t_ss(moved[2], moved[1], moved[3], **options), t_ss(ranks, size, easiness, **options)
    assert float(there) == pytest.approx(float(here), rel=1e-9)


@each_library
@pytest.mark.parametrize("weighted", [False, True], ids=["equal rows", "weights"])
@pytest.mark.parametrize("levels", [None, 12, 1], ids=["distinct", "tied", "one score"])
def test_the_worst_interval_of_scores_is_the_same(library, levels, weighted):
    rng = np.random.default_rng(2)
    f = rng.random(N) if levels is None else rng.integers(0, levels, N) / max(1, levels - 1)
    y, weights = rng.random(N) < f**2, rng.integers(0, 4, N).astype(float) if weighted else None
    here = calibration_error(y, f, sample_weight=weights, random_state=0)
    there = calibration_error(move(y, library), move(f, library), sample_weight=weights, random_state=0)
    for field in ("value", "std_error", "high", "p_value"):
        assert getattr(there, field) == pytest.approx(getattr(here, field), rel=1e-9)
    assert there.details["interval"] == here.details["interval"]
    assert there.details["impossible"] == here.details["impossible"]


@each_library
@pytest.mark.parametrize("similarity", ["cosine", "total_variation", "jensen_shannon", "agreement"])
def test_ease_is_the_same_number(library, similarity):
    clean, *changed = np.random.default_rng(3).dirichlet(np.ones(K), size=(4, 50))
    device_clean = move(clean, library)
    there = ease_from_outputs(device_clean, [move(a, library) for a in changed], similarity=similarity)
    assert_lies_with(there, device_clean)
    here = ease_from_outputs(clean, changed, similarity=similarity)
    np.testing.assert_allclose(as_numpy(there), here, rtol=1e-12)


@each_library
@pytest.mark.parametrize("descending", [False, True])
def test_sorting_keeps_ties_in_their_first_order(library, descending):
    values = np.array([[0.5, 0.1, 0.5, 0.1, 0.9]])
    ordered, order = sort_with_order(move(values, library), axis=1, descending=descending)
    expected = [[4, 0, 2, 1, 3]] if descending else [[1, 3, 0, 2, 4]]
    assert as_numpy(order).tolist() == expected
    np.testing.assert_array_equal(as_numpy(ordered), np.take_along_axis(values, np.array(expected), axis=1))


@each_library
def test_running_sums_are_read_at_the_same_ends(library):
    column, ends = (
        np.random.default_rng(5).integers(0, 9, 40).astype(float),
        np.array([[0, 3, 40], [7, 7, 12]]),
    )
    device = move(column, library)
    there = running_sums([device], move(ends, library))[0]
    assert_lies_with(there, device)
    np.testing.assert_array_equal(as_numpy(there), running_sums([column], ends)[0])


@each_library
def test_moments_of_a_table_are_those_of_its_rows(library):
    rng = np.random.default_rng(4)
    table = np.stack([rng.random(101), np.full(101, 0.1), 1e8 + rng.random(101)])
    for found, row in zip(Moments.of_each(move(table, library)), table, strict=True):
        expected = Moments.of(row)
        assert (found.n, found.mean) == (expected.n, pytest.approx(expected.mean, rel=1e-15))
        assert found.squares == pytest.approx(expected.squares, rel=1e-9)
