import numpy as np
import pytest
from scipy import stats

from calipers.inference.binomial_draws import draw_binomials, draw_coins

TRIALS = np.array([3, 100, 1000, 7, 5, 1])
CHANCES = np.array([0.2, 0.9, 0.55, 1.0, 0.0, 0.5])


@pytest.mark.parametrize("column", range(3))
def test_draws_follow_the_binomial_law(column):
    n, p, n_draws = int(TRIALS[column]), CHANCES[column], 200_000
    drawn = draw_binomials(TRIALS, CHANCES, n_draws, np.random.default_rng(column))[:, column]
    seen = np.bincount(drawn.astype(int), minlength=n + 1)
    expected = n_draws * stats.binom.pmf(np.arange(n + 1), n, p)
    often = expected > 5
    pooled_seen = np.append(seen[often], seen[~often].sum())
    pooled = np.append(expected[often], expected[~often].sum())
    kept = pooled > 0
    assert stats.chisquare(pooled_seen[kept], pooled[kept] * pooled_seen.sum() / pooled.sum()).pvalue > 1e-3


def test_certain_outcomes_are_certain():
    drawn = draw_binomials(TRIALS, CHANCES, 5000, np.random.default_rng(0))
    assert set(drawn[:, 3].tolist()) == {7.0}
    assert set(drawn[:, 4].tolist()) == {0.0}
    assert set(drawn[:, 5].tolist()) == {0.0, 1.0}


def test_columns_of_one_law_are_independent():
    drawn = draw_binomials(np.full(2, 50), np.full(2, 0.8), 100_000, np.random.default_rng(5))
    # Of independent columns the correlation has the standard error 1 / sqrt(draws).
    assert abs(np.corrcoef(drawn.T)[0, 1]) < 4 / np.sqrt(100_000)


@pytest.mark.parametrize(
    ("trials", "n_draws"), [(np.array([10, 20]), 50), (np.array([10**6, 5]), 5000), (np.arange(1, 301), 1000)]
)
def test_few_draws_and_laws_too_large_for_a_table_are_left_to_numpy(trials, n_draws):
    chances = np.full(len(trials), 0.3)
    ours = draw_binomials(trials, chances, n_draws, np.random.default_rng(1))
    theirs = np.random.default_rng(1).binomial(trials, chances, (n_draws, len(trials)))
    np.testing.assert_array_equal(ours, theirs)


def test_coins_hit_with_their_chances():
    # Chances between, on and next to the ends of cells of 1/256; the smallest differ from a cell's end by 1e-4.
    chances = np.array([1e-4, 0.5 / 256, 1 / 256, 0.3, 128 / 256, 0.5 + 1e-4, 255 / 256, 1 - 1e-4])
    hits = draw_coins(chances, 400_000, np.random.default_rng(3)).sum(axis=0)
    p_values = [stats.binomtest(int(k), 400_000, p).pvalue for k, p in zip(hits, chances, strict=True)]
    assert min(p_values) > 1e-3 / len(chances)


def test_coins_of_certain_chances_are_certain():
    hits = draw_coins(np.array([0.0, 1.0]), 50_000, np.random.default_rng(0))
    assert hits.any(axis=0).tolist() == hits.all(axis=0).tolist() == [False, True]


def test_coins_of_a_row_and_of_a_column_are_independent():
    hits = draw_coins(np.full(16, 0.37), 30_000, np.random.default_rng(1)).astype(float)
    for left, right in ((hits[:, :-1], hits[:, 1:]), (hits[:-1], hits[1:]), (hits[:, :8], hits[:, 8:])):
        r = np.corrcoef(left.ravel(), right.ravel())[0, 1]
        assert abs(r) < 4 / np.sqrt(left.size)


@pytest.mark.parametrize("shape", [(1, 1), (3, 5), (1, 0), (7, 3)])
def test_coins_have_their_shape(shape):
    assert draw_coins(np.full(shape[1], 0.5), shape[0], np.random.default_rng(0)).shape == shape
