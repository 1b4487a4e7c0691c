"""A comparison names no false winner, and names the better predictor at the rows of docs/howto/choose.md."""

from __future__ import annotations

import pytest
from scipy import stats

from tests.statistical import comparison_worlds as worlds

# Equal predictors get a winner by any one measure in at most this share of the comparisons.
RATE = 0.05
EQUAL = {
    worlds.equal_intervals: None,
    worlds.equal_classifiers: None,
    worlds.equal_sets: None,
    worlds.mirrored_coverage: "coverage",
}
# World, measure, and the rows from which on the better one is named in 95 of 100 comparisons.
BETTER = (
    (worlds.nearer_coverage, "coverage", 500),
    (worlds.better_intervals, "mean size at matched coverage", 250),
    (worlds.better_intervals, "interval score", 150),
    (worlds.better_intervals, "mean error", 150),
    (worlds.better_classifier, "mean size at matched coverage", 700),
    (worlds.better_classifier, "mean error", 500),
    (worlds.better_classifier, "Brier score", 200),
    (worlds.better_classifier, "log loss", 200),
    (worlds.better_sets, "mean size", 1200),
)


def false_winners(world: worlds.World, only: str | None, repetitions: int, seed: int) -> dict[str, float]:
    found = worlds.shares(world, 300, repetitions, seed)
    return {
        measure: sum(share for winner, share in shares.items() if winner is not None)
        for measure, shares in found.items()
        if only in (None, measure)
    }


@pytest.mark.parametrize("world", EQUAL, ids=lambda world: world.__name__)
def test_equal_predictors_have_no_winner(world: worlds.World) -> None:
    repetitions = 60
    allowed = stats.binom.ppf(0.999, repetitions, RATE) / repetitions
    shares = false_winners(world, EQUAL[world], repetitions, seed=11)
    assert shares
    assert max(shares.values()) <= allowed, shares


@pytest.mark.slow
@pytest.mark.parametrize("world", EQUAL, ids=lambda world: world.__name__)
def test_equal_predictors_have_a_winner_in_at_most_25_of_500_comparisons(world: worlds.World) -> None:
    shares = false_winners(world, EQUAL[world], 500, seed=12)
    assert max(shares.values()) <= RATE, shares


@pytest.mark.parametrize(
    ("world", "measure", "rows"), BETTER, ids=lambda value: getattr(value, "__name__", value)
)
def test_the_better_one_is_named_at_the_tabulated_rows(world: worlds.World, measure: str, rows: int) -> None:
    repetitions = 25
    share = worlds.shares(world, rows, repetitions, 13)[measure].get("a", 0.0)
    assert share * repetitions >= stats.binom.ppf(0.001, repetitions, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("world", "measure", "rows"), BETTER, ids=lambda value: getattr(value, "__name__", value)
)
def test_the_better_one_is_named_in_190_of_200_comparisons(
    world: worlds.World, measure: str, rows: int
) -> None:
    assert worlds.shares(world, rows, 200, 14)[measure].get("a", 0.0) >= 0.95
