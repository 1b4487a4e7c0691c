"""Intervals and tests of the efficiency criteria hold their level; so does the test of uniformity."""

import numpy as np
import pytest
from scipy import stats

from calipers.metrics import average_p_value, efficiency, efficiency_difference, p_value_uniformity

LEVEL = 1e-4


def draw(rng, n, power=3.0):
    """p-values of four labels: uniform for the true one, small for the others."""
    y, p = rng.integers(0, 4, n), rng.random((n, 4)) ** power
    p[np.arange(n), y] = rng.random(n)
    return y, p


def test_intervals_hold_the_truth_in_95_percent_of_samples(seed):
    # For independent p-values as drawn: OF = 3/4, S = 5/4, OE = 3 (1 - 0.1^(1/3)), empty = 0.1 * 0.1.
    outside = 1 - 0.1 ** (1 / 3)
    truth = {
        "S": 1.25,
        "OF": 0.75,
        "OE": 3 * outside,
        "N": 3 * outside + 0.9,
        "OM": 1 - 0.1,
        "empty": 0.1 * 0.1,
    }
    runs, held = 400, dict.fromkeys(truth, 0)
    for run in range(runs):
        table = efficiency(*draw(np.random.default_rng([seed, run]), 150))
        for name, value in truth.items():
            held[name] += table[name].low <= value <= table[name].high
    for name, count in held.items():
        assert stats.binom.cdf(count, runs, 0.95) > LEVEL, name
        if name not in ("OM", "empty"):  # exact intervals of shares are allowed to hold more
            assert stats.binom.sf(count - 1, runs, 0.95) > LEVEL, name


def test_equal_predictors_are_told_apart_at_the_stated_rate_and_unequal_ones_often(seed):
    runs = 400
    rejected = dict.fromkeys(("S", "N", "U", "OF", "OE", "M", "OM"), 0)
    found = 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        y, p = draw(rng, 120)
        other = rng.random((120, 4)) ** 3
        other[np.arange(120), y] = rng.random(120)
        table = efficiency_difference(y, p, other)
        for name in rejected:
            rejected[name] += table[name].p_value <= 0.05
        found += efficiency_difference(y, p, p**1.3)["OF"].p_value <= 0.05
    for name, count in rejected.items():
        assert stats.binom.sf(count - 1, runs, 0.05) > LEVEL, name
    assert found > 0.9 * runs


@pytest.mark.parametrize("smoothed", [True, False])
def test_uniformity_accuses_healthy_predictors_at_the_stated_rate_only(seed, smoothed):
    # 30 calibration rows serve 60 test rows: the plain Kolmogorov test would accuse far more often.
    runs, accused, plain = 300, 0, 0
    for run in range(runs):
        rng = np.random.default_rng([seed, run])
        cal, test = np.sort(rng.normal(size=30)), rng.normal(size=60)
        p = (30 - np.searchsorted(cal, test) + (rng.random(60) if smoothed else 1.0)) / 31
        table = np.stack([p, p], axis=1)
        y = np.zeros(60, dtype=int)
        known = {"n_calibration": 30, "n_simulations": 99, "random_state": rng}
        accused += p_value_uniformity(y, table, smoothed=smoothed, **known).p_value <= 0.05
        plain += p_value_uniformity(y, table, smoothed=smoothed).p_value <= 0.05
    assert stats.binom.sf(accused - 1, runs, 0.05) > LEVEL
    if smoothed:
        assert stats.binom.cdf(accused, runs, 0.05) > LEVEL
    assert plain > 2 * accused


def test_uniformity_finds_p_values_that_are_too_small(seed):
    found = 0
    for run in range(60):
        rng = np.random.default_rng([seed, run])
        p = rng.random((200, 2)) ** 1.6
        found += (
            p_value_uniformity(
                np.zeros(200, dtype=int), p, n_calibration=500, n_simulations=99, random_state=rng
            ).p_value
            <= 0.05
        )
    assert found > 50


def test_the_uniformity_interval_holds_the_distance_of_the_law(seed):
    # p = u^1.5 has F(t) = t^(2/3), farthest from t at t = 8/27: 4/9 - 8/27.
    truth, held = 4 / 9 - 8 / 27, 0
    for run in range(200):
        p = np.random.default_rng([seed, run]).random((150, 1)) ** 1.5
        e = p_value_uniformity(np.zeros(150, dtype=int), p)
        held += e.low <= truth <= e.high
    assert stats.binom.cdf(held, 200, 0.95) > LEVEL


def test_the_average_p_value_interval_holds_the_mean(seed):
    held = sum(
        e.low <= 1 / 3 <= e.high
        for run in range(400)
        for e in [average_p_value(np.random.default_rng([seed, run]).random(80) ** 2)]
    )
    assert stats.binom.cdf(held, 400, 0.95) > LEVEL
    assert stats.binom.sf(held - 1, 400, 0.95) > LEVEL
