"""The coverage test accuses a healthy predictor as rarely as it says, and catches a broken one."""

import numpy as np
from scipy import stats

from calipers.conformal import conformal_quantile
from calipers.metrics import coverage

RUNS = 400


def _p_values(rng, n_calibration, known, alpha=0.1, m=500, shift=0.0):
    found = []
    for _ in range(RUNS):
        radius = conformal_quantile(np.abs(rng.normal(size=n_calibration)), alpha)
        y = rng.normal(size=m) * (1 + shift)
        intervals = np.tile([-radius, radius], (m, 1))
        found.append(
            coverage(y, intervals, alpha=alpha, n_calibration=n_calibration if known else None).p_value
        )
    return np.array(found)


def _upper(level, runs=RUNS):
    return stats.binom.ppf(0.9999, runs, level) / runs


def test_a_healthy_split_conformal_predictor_is_not_accused_when_its_calibration_size_is_known():
    p = _p_values(np.random.default_rng(1), n_calibration=100, known=True)
    for u in (0.01, 0.05, 0.1):
        assert (p <= u).mean() <= _upper(u)


def test_without_the_calibration_size_the_binomial_test_accuses_far_too_often():
    p = _p_values(np.random.default_rng(2), n_calibration=100, known=False)
    assert (p <= 0.05).mean() > 0.25


def test_a_broken_predictor_is_caught():
    p = _p_values(np.random.default_rng(3), n_calibration=1000, known=True, shift=0.4)
    assert (p <= 0.05).mean() > 0.95
