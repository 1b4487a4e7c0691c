"""T-CV and T-SS straight from sets, intervals, probabilities and outcomes."""

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.metrics import is_covered, t_cv, t_ss, true_rank

SEEDED = {"n_bins": 5, "random_state": 0}


@pytest.fixture
def rows():
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(4), 300)
    y = np.array([rng.choice(4, p=p) for p in P])
    return P, y, P > 0.15, P.max(axis=1)


def test_t_cv_takes_sets_with_outcomes(rows):
    _, y, sets, ease = rows
    expected = t_cv(is_covered(y, sets), ease, alpha=0.2, **SEEDED)
    assert t_cv(sets, ease, alpha=0.2, y_true=y, **SEEDED) == expected
    names = np.array(["d", "c", "b", "a"])
    assert t_cv(sets, ease, alpha=0.2, y_true=names[y], classes=names, **SEEDED) == expected


def test_t_cv_takes_intervals_with_outcomes():
    rng = np.random.default_rng(4)
    y, ease = rng.normal(size=200), rng.random(200)
    ends = np.column_stack([np.full(200, -1.0), np.full(200, 1.5)])
    expected = t_cv((y >= -1) & (y <= 1.5), ease, alpha=0.2, **SEEDED)
    assert t_cv(ends, ease, alpha=0.2, y_true=y, **SEEDED) == expected


def test_t_ss_takes_probabilities_and_sets_with_outcomes(rows):
    P, y, sets, ease = rows
    expected = t_ss(true_rank(y, P), sets.sum(axis=1), ease, **SEEDED)
    assert t_ss(P, sets, ease, y_true=y, **SEEDED) == expected
    assert t_ss(true_rank(y, P), sets, ease, **SEEDED) == expected  # sizes of sets need no outcomes
    names = np.array(["d", "c", "b", "a"])
    assert t_ss(P, sets, ease, y_true=names[y], classes=names, **SEEDED) == expected


def test_t_ss_takes_predictions_and_intervals_with_outcomes():
    rng = np.random.default_rng(5)
    ease = rng.random(200)
    centre, half = rng.normal(size=200), 1 + (1 - ease) + 0.1 * rng.random(200)
    y = centre + half * rng.normal(size=200)
    ends = np.column_stack([centre - half, centre + half])
    expected = t_ss(np.abs(y - centre), ends[:, 1] - ends[:, 0], ease, **SEEDED)
    assert t_ss(centre, ends, ease, y_true=y, **SEEDED) == expected


def test_classes_without_outcomes_are_refused(rows):
    P, y, sets, ease = rows
    for call in (
        lambda: t_cv(is_covered(y, sets), ease, alpha=0.2, classes=[0, 1, 2, 3]),
        lambda: t_ss(true_rank(y, P), sets, ease, classes=[0, 1, 2, 3]),
    ):
        with pytest.raises(InputError, match="give them with y_true"):
            call()
    with pytest.raises(InputError, match="same length"):
        t_ss(P[:, 0], sets, ease, y_true=y[:-1])
