"""One criterion, three routes: the idealised expectation, its simulation, and the estimate from rows."""

import numpy as np
import pytest

from calipers.conformal import conformal_p_values
from calipers.conformal.idealised import conformity, criterion_value
from calipers.metrics import efficiency

Q = np.array([[0.12, 0.18, 0.30], [0.24, 0.06, 0.10]])
NAMES = ("S", "N", "U", "F", "M", "E", "OU", "OF", "OM", "OE", "credibility", "empty")


def draw(rng, n):
    cells = rng.choice(6, size=n, p=Q.ravel())
    return cells // 3, cells % 3


@pytest.mark.parametrize("kind", ["CP", "SP", "MCP", "MSP"])
@pytest.mark.parametrize("label_conditional", [False, True])
def test_long_samples_approach_the_idealised_values(kind, label_conditional, seed):
    rng = np.random.default_rng(seed)
    A = conformity(Q, kind)
    x, y = draw(rng, 40_000)
    new_x, new_y = draw(rng, 20_000)
    options = {"calibration_labels": y} if label_conditional else {}
    # Conformity is turned into nonconformity; smoothed, one tau per row, as in the paper.
    p = conformal_p_values(-A[x, y], -A[new_x], smoothed=True, random_state=rng, **options)
    table = efficiency(new_y, p, alpha=0.2)
    for name in NAMES:
        exact = criterion_value(Q, A, name, alpha=0.2, label_conditional=label_conditional)
        assert float(table[name]) == pytest.approx(exact, abs=0.03), name
