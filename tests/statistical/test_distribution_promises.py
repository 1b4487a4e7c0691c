"""Tests of predicted distributions keep their size and find what is wrong; intervals hold the truth."""

import numpy as np
import pytest
from scipy import stats

from calipers.metrics import crps, pit_uniformity, quantile_calibration

# Every rate is compared with its level at this tail of the binomial law.
TAIL = 1e-4


def most(level, runs):
    return stats.binom.isf(TAIL, runs, level)


@pytest.mark.parametrize("n", [3, 10, 200])
def test_right_predictions_are_accused_as_often_as_the_level_says(n):
    rng, runs = np.random.default_rng(0), 2000 if n < 200 else 1000
    p_values = np.array([pit_uniformity(rng.random(n)).p_value for _ in range(runs)])
    for level in (0.1, 0.05, 0.01):
        assert np.sum(p_values <= level) <= most(level, runs)


@pytest.mark.parametrize(
    ("draw", "power"),
    [(lambda rng: rng.normal(0.2, 1, 200), 0.77), (lambda rng: rng.normal(0, 1.2, 200), 0.60)],
    ids=["a fifth of a standard deviation too low", "a fifth too narrow"],
)
def test_wrong_predictions_are_found_as_often_as_the_guide_says(draw, power):
    rng, runs = np.random.default_rng(1), 300
    found = sum(pit_uniformity(stats.norm.cdf(draw(rng))).p_value <= 0.05 for _ in range(runs))
    assert found >= stats.binom.ppf(TAIL, runs, power)


def test_the_band_holds_the_distance_of_the_population():
    # F(u) = u^1.3 is farthest from u at 1.3^(-1 / 0.3).
    at = 1.3 ** (-1 / 0.3)
    truth, rng, runs = at - at**1.3, np.random.default_rng(2), 500
    inside = 0
    for _ in range(runs):
        found = pit_uniformity(rng.random(300) ** (1 / 1.3))
        inside += found.low <= truth <= found.high
    assert inside >= stats.binom.ppf(TAIL, runs, 0.95)


def conformal_quantiles(rng, levels, n):
    """Upper quantiles from above and lower ones from below, from one sample of n."""
    ordered = np.sort(rng.normal(size=n))
    ranks = [int(np.ceil((n + 1) * t)) if t >= 0.5 else int(np.floor((n + 1) * t)) for t in levels]
    return ordered[np.array(ranks) - 1]


@pytest.mark.parametrize("n_calibration", [None, 60])
def test_quantiles_that_keep_their_promise_are_accused_in_five_of_a_hundred_runs(n_calibration):
    rng, runs, levels = np.random.default_rng(3), 800, [0.1, 0.5, 0.9]
    rejected = np.zeros(3)
    for _ in range(runs):
        q = stats.norm.ppf(levels) if n_calibration is None else conformal_quantiles(rng, levels, 60)
        y = rng.normal(size=150)
        table = quantile_calibration(y, np.tile(q, (150, 1)), levels=levels, n_calibration=n_calibration)
        rejected += [e.p_value <= 0.05 for e in table.values()]
    assert np.all(rejected <= most(0.05, runs))


def test_quantiles_of_counts_on_their_atoms_are_not_accused():
    rng, runs, levels = np.random.default_rng(4), 500, [0.25, 0.5, 0.75]
    q = stats.poisson.ppf(levels, 1.5)
    rejected = np.zeros(3)
    for _ in range(runs):
        y = rng.poisson(1.5, 200).astype(float)
        table = quantile_calibration(y, np.tile(q, (200, 1)), levels=levels)
        rejected += [e.p_value <= 0.05 for e in table.values()]
    assert np.all(rejected <= most(0.05, runs))


def test_a_quantile_that_is_off_is_found():
    rng, runs, found = np.random.default_rng(5), 200, 0
    for _ in range(runs):
        y = rng.normal(size=400)
        # The stated 90 % quantile is the true 85 % one: power of the exact test is 0.85.
        table = quantile_calibration(y, np.full(400, stats.norm.ppf(0.85)), levels=[0.9])
        found += table["0.9"].p_value <= 0.05
    assert found >= stats.binom.ppf(TAIL, runs, 0.85)


def test_the_interval_of_the_score_holds_its_expectation():
    levels, rng, runs = np.arange(0.1, 1, 0.1), np.random.default_rng(6), 400
    q = np.tile(stats.norm.ppf(levels), (200, 1))
    truth = crps(rng.normal(size=400_000), np.tile(stats.norm.ppf(levels), (400_000, 1)), levels=levels).value
    inside = 0
    for _ in range(runs):
        found = crps(rng.normal(size=200), q, levels=levels)
        inside += found.low <= truth <= found.high
    assert inside >= stats.binom.ppf(TAIL, runs, 0.94)
