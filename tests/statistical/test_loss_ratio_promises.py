"""The interval of the loss ratio covers, and its test keeps its size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calipers.calibration import loss_ratio
from calipers.datasets import ScoreWorld

COSTS = {"false_positive_cost": 0.3, "false_negative_cost": 0.7}


def true_ratio(world: ScoreWorld) -> float:
    """Ratio of expected losses of eta(f) and f, by quadrature over uniform scores."""
    f = (np.arange(2_000_000) + 0.5) / 2_000_000
    eta = world.link_at(f)

    def expected(p: np.ndarray) -> float:
        return float(np.mean(np.where(p >= 0.3, 0.3 * (1 - eta), 0.7 * eta)))

    return expected(eta) / expected(f)


def holds(world: ScoreWorld, n: int, runs: int, truth: float) -> int:
    rng = np.random.default_rng(11)
    count = 0
    for _ in range(runs):
        p, y = world.sample(n, random_state=rng)
        e = loss_ratio(y, p, world.link_at(p), **COSTS, n_draws=1000, random_state=rng)
        count += e.low <= truth <= e.high
    return count


@pytest.mark.parametrize("n", [300, 2000])
def test_the_interval_covers_as_it_says(n: int) -> None:
    world, runs = ScoreWorld("uniform", "shift", 1.0), 400
    covered = holds(world, n, runs, true_ratio(world))
    # Within what a 93 to 96.5 % interval shows in 400 runs, 99.9 % of the time.
    low, high = stats.binom.ppf(0.0005, runs, 0.93), stats.binom.ppf(0.9995, runs, 0.965)
    assert low <= covered <= high


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "n"), [(1.0, 200), (1.0, 1000), (0.3, 1000), (-1.0, 1000), (1.0, 10_000)])
def test_the_interval_covers_as_it_says_long(shift: float, n: int) -> None:
    world, runs = ScoreWorld("uniform", "shift", shift), 3000
    covered = holds(world, n, runs, true_ratio(world))
    low, high = stats.binom.ppf(0.0005, runs, 0.935), stats.binom.ppf(0.9995, runs, 0.96)
    assert low <= covered <= high


def test_equal_costs_are_rejected_as_often_as_stated() -> None:
    """Scores that say nothing about y around the threshold: both decisions cost the same on average."""
    rng, runs, n = np.random.default_rng(5), 600, 500
    rejected = 0
    for _ in range(runs):
        y = rng.random(n) < 0.3  # P(Y = 1) is the threshold, so acting and not acting cost 0.21 each
        before, after = rng.random((2, n))
        rejected += loss_ratio(y, before, after, **COSTS, n_draws=50, random_state=rng).p_value < 0.05
    low, high = stats.binom.ppf([0.0005, 0.9995], runs, 0.05)
    assert low <= rejected <= high
