"""Intervals and tests of the efficiency criteria hold their level; so does the test of uniformity."""

import numpy as np
import pytest
from scipy import stats

from calipers.conformal import conformal_p_values
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
    for name in ("S", "OF", "OE", "N"):
        # What the safety costs at 150 rows and four labels: half of the width again.
        assert table[name].high - table[name].low < 1.6 * 2 * 1.96 * table[name].std_error, name


def separated(rng, n, separation, n_labels=3):
    """Labels and the true probabilities of unit Gaussians whose means lie apart."""
    y, x = rng.integers(0, n_labels, n), rng.normal(size=(n, n_labels))
    x[np.arange(n), y] += separation
    e = np.exp(separation * (x - x.max(axis=1, keepdims=True)))
    return y, e / e.sum(axis=1, keepdims=True)


def separated_p_values(rng, n, separation):
    """A pool of test rows under one split-conformal predictor with 1000 calibration rows."""
    y, P = separated(rng, 1000, separation)
    scores = 1 - P[np.arange(1000), y]
    test_y, test_P = separated(rng, n, separation)
    return test_y, conformal_p_values(scores, 1 - test_P)


@pytest.mark.parametrize(
    ("separation", "n"), [(0, 20), (1, 20), (3, 20), (3, 100), (4, 100), (4, 500), (4.5, 2000), (6, 1000)]
)
def test_intervals_hold_the_truth_of_good_and_of_hopeless_predictors(separation, n, seed):
    # The mean over a pool of rows is the truth; samples are drawn from it with replacement.
    rng, runs = np.random.default_rng(seed), 250
    y, p = separated_p_values(rng, 200_000, separation)
    truth = {name: float(e) for name, e in efficiency(y, p).items()}
    held = dict.fromkeys(truth, 0)
    for _ in range(runs):
        chosen = rng.integers(0, len(y), n)
        for name, e in efficiency(y[chosen], p[chosen], classes=range(3)).items():
            held[name] += e.low - 1e-12 <= truth[name] <= e.high + 1e-12
    for name, count in held.items():
        assert stats.binom.cdf(count, runs, 0.95) > LEVEL, name


@pytest.mark.parametrize(("n", "share"), [(30, 1.0), (1000, 0.005), (1000, 0.01), (5000, 0.002)])
def test_predictors_that_differ_in_few_rows_are_told_apart_at_the_stated_rate(n, share, seed):
    # Equal predictors that disagree in a handful of rows by about one size: Student's t rejects in 12 %.
    rng, runs = np.random.default_rng(seed), 400
    rejected, held = np.zeros(2), 0
    for _ in range(runs):
        first = np.tile([0.9, 0.02, 0.02], (n, 1))
        second = first.copy()
        changed = rng.random(n) < share
        swap = rng.random(n) < 0.5
        first[changed & swap, 1] = 0.6
        second[changed & ~swap, 1] = 0.6
        e = efficiency_difference(np.zeros(n, dtype=int), first, second, classes=range(3))["OF"]
        rejected += [e.p_value <= 0.05, e.p_value <= 0.01]
        held += e.low <= 0 <= e.high
    assert stats.binom.sf(rejected - 1, runs, [0.05, 0.01]).min() > LEVEL
    assert stats.binom.cdf(held, runs, 0.95) > LEVEL


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


@pytest.mark.parametrize(("n", "power"), [(20, 8), (50, 30), (500, 200)])
def test_the_average_p_value_of_clear_anomalies_has_an_interval_that_holds(n, power, seed):
    # p = u^a has mean 1 / (a + 1), most of it from rare large values.
    rng = np.random.default_rng(seed)
    estimates = [average_p_value(rng.random(n) ** power) for _ in range(400)]
    held = sum(e.low <= 1 / (power + 1) <= e.high for e in estimates)
    assert stats.binom.cdf(held, 400, 0.95) > LEVEL
