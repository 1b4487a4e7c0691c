"""The interval of the loss ratio covers, and its test keeps its size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from calipers.calibration import loss_ratio
from calipers.datasets import ScoreWorld

COSTS = {"false_positive_cost": 0.3, "false_negative_cost": 0.7}


def true_ratio(world: ScoreWorld, cost: float) -> float:
    """Ratio of expected losses of eta(f) and f, by quadrature over uniform scores."""
    f = (np.arange(2_000_000) + 0.5) / 2_000_000
    eta = world.link_at(f)

    def expected(p: np.ndarray) -> float:
        return float(np.mean(np.where(p >= cost, cost * (1 - eta), (1 - cost) * eta)))

    return expected(eta) / expected(f)


def holds(world: ScoreWorld, cost: float, n: int, runs: int) -> tuple[int, int]:
    """Intervals that hold the truth, and those that are given (something was lost before)."""
    rng, truth = np.random.default_rng(11), true_ratio(world, cost)
    costs = {"false_positive_cost": cost, "false_negative_cost": 1 - cost}
    ends = []
    for _ in range(runs):
        p, y = world.sample(n, random_state=rng)
        e = loss_ratio(y, p, world.link_at(p), **costs)
        ends += [] if e.low is None else [(e.low, e.high)]
    return sum(low <= truth <= high for low, high in ends), len(ends)


@pytest.mark.parametrize("shift", [1.0, 0.3])
@pytest.mark.parametrize(
    ("cost", "n"), [(0.3, 300), (0.3, 2000), (0.05, 300), (0.05, 2000), (0.1, 300), (0.95, 300), (0.05, 50)]
)
def test_the_interval_covers_as_it_says_however_few_rows_are_lost(cost: float, n: int, shift: float) -> None:
    covered, given = holds(ScoreWorld("uniform", "shift", shift), cost, n, 200)
    assert given > 150
    assert stats.binom.cdf(covered, given, 0.95) > 1e-4


def test_the_interval_is_not_much_wider_than_the_bootstrap_needs() -> None:
    """Costs 0.3 and 0.7: the standard error times 1.96 covers too; 2000 rows, a shifted model."""
    world = ScoreWorld("uniform", "shift", 1.0)
    p, y = world.sample(2000, random_state=1)
    e = loss_ratio(y, p, world.link_at(p), false_positive_cost=0.3, false_negative_cost=0.7)
    assert e.high - e.low < 1.15 * 2 * 1.96 * e.std_error


@pytest.mark.slow
@pytest.mark.parametrize(("shift", "n"), [(1.0, 200), (1.0, 1000), (0.3, 1000), (-1.0, 1000), (1.0, 10_000)])
def test_the_interval_covers_as_it_says_long(shift: float, n: int) -> None:
    covered, given = holds(ScoreWorld("uniform", "shift", shift), 0.3, n, 3000)
    assert stats.binom.cdf(covered, given, 0.95) > 1e-4


def test_equal_costs_are_rejected_as_often_as_stated() -> None:
    """Scores that say nothing about y around the threshold: both decisions cost the same on average."""
    rng, runs, n = np.random.default_rng(5), 600, 500
    rejected = 0
    for _ in range(runs):
        y = rng.random(n) < 0.3  # P(Y = 1) is the threshold, so acting and not acting cost 0.21 each
        before, after = rng.random((2, n))
        rejected += loss_ratio(y, before, after, **COSTS).p_value < 0.05
    assert stats.binom.sf(rejected - 1, runs, 0.05) > 0.0005


@pytest.mark.parametrize("n", [60, 300])
def test_few_changed_decisions_are_rejected_as_often_as_stated(n: int) -> None:
    """Costs 0.05 and 0.95, an event of 5 % around the threshold: single false negatives decide."""
    rng, runs = np.random.default_rng(6), 600
    costs, rejected = {"false_positive_cost": 0.05, "false_negative_cost": 0.95}, np.zeros(2)
    for _ in range(runs):
        y = rng.random(n) < 0.05
        before, after = np.where(rng.random((2, n)) < 0.1, 0.9, 0.01)
        e = loss_ratio(y, before, after, pos_label=True, **costs)
        if e.p_value is not None:  # something was lost before
            rejected += [e.p_value <= 0.05, e.p_value <= 0.01]
    assert (stats.binom.sf(rejected - 1, runs, [0.05, 0.01]) > 1e-4).all()


def test_a_clear_gain_is_found() -> None:
    rng, world = np.random.default_rng(7), ScoreWorld("uniform", "shift", 1.0)
    samples = [world.sample(1000, random_state=rng) for _ in range(60)]
    found = [loss_ratio(y, p, world.link_at(p), **COSTS).p_value <= 0.05 for p, y in samples]
    assert np.mean(found) > 0.8
