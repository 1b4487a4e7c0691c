import itertools
from collections import Counter

import numpy as np
import pytest

from calipers.arrays import spawn
from calipers.exceptions import InputError
from calipers.inference import (
    bca_bootstrap,
    bca_interval,
    permutation,
    permutation_test,
    poisson_sums,
    run_sum_permutation_test,
)


def ratio(x, y, axis=-1):
    return np.sum(x, axis=axis) / np.sum(y, axis=axis)


def test_vectorized_and_row_by_row_statistics_give_the_same_interval():
    x, y = np.random.default_rng(0).random((2, 40)) + 1
    slow = bca_bootstrap(ratio, x, y, n_draws=300, random_state=3)
    fast = bca_bootstrap(ratio, x, y, n_draws=300, random_state=3, vectorized=True)
    assert (slow.low, slow.high, slow.std_error) == pytest.approx((fast.low, fast.high, fast.std_error))


def test_the_same_seed_gives_the_same_interval():
    x = np.random.default_rng(0).random(30)
    first, second, other = (bca_bootstrap(np.mean, x, n_draws=99, random_state=s) for s in (1, 1, 2))
    assert first == second
    assert first.low != other.low


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        ([], "fewer than two rows"),
        ([1.0], "fewer than two rows"),
        ([1.0, np.nan], "the statistic is NaN"),
        ([2.0, 2.0, 2.0], "every resample gives the same value"),
        ([1.0, np.inf, 2.0], "not finite"),
    ],
)
def test_degenerate_samples_have_no_interval_and_say_why(x, reason):
    r = bca_bootstrap(np.sum, np.array(x), n_draws=50, random_state=0)
    assert (r.low, r.high) == (None, None)
    assert reason in r.reason


def test_undefined_resamples_are_left_out_and_counted():
    draws = np.concatenate([np.linspace(0, 1, 90), np.full(10, np.nan)])
    r = bca_interval(0.5, draws, np.array([0.4, 0.5, 0.6]))
    assert r.n_undefined == 10
    assert r.reason == "10 of 100 resamples were undefined and left out"
    assert r.low == pytest.approx(0.025, abs=1e-9)
    mostly = bca_interval(0.5, np.where(np.arange(90) < 40, draws[:90], np.nan), np.array([0.4, 0.6]))
    assert (mostly.low, mostly.reason) == (None, "the statistic is NaN on 50 of 90 resamples")


def test_a_value_beyond_its_resamples_has_no_interval():
    r = bca_interval(2.0, np.linspace(0, 1, 50), np.array([0.4, 0.6]))
    assert (r.low, r.reason) == (
        None,
        "the value lies beyond all its resamples, so the bias correction is undefined",
    )


def test_grouped_and_full_jackknife_agree_on_the_acceleration():
    # For a mean the acceleration is skewness / (6 sqrt(n)); 401 rows switch to groups of one or two.
    x = np.random.default_rng(0).exponential(size=4000)
    r = bca_bootstrap(np.mean, x, n_draws=4000, vectorized=True, random_state=0)
    plain = 1.96 * np.std(x) / np.sqrt(4000)
    assert r.high - r.value == pytest.approx(plain, rel=0.1)
    assert r.high - r.value > r.value - r.low


def test_monte_carlo_errors_describe_repeated_runs():
    x = np.random.default_rng(0).exponential(size=50)
    runs = [bca_bootstrap(np.mean, x, n_draws=500, vectorized=True, random_state=s) for s in range(60)]
    for end in ("low", "high", "std_error"):
        spread = np.std([getattr(r, end) for r in runs])
        stated = np.mean([getattr(r, f"{end}_error") for r in runs])
        assert 0.6 < stated / spread < 1.5


def test_columns_must_match():
    with pytest.raises(InputError, match=r"columns must be given and have one length, got lengths \[2, 3\]"):
        bca_bootstrap(ratio, np.ones(2), np.ones(3))
    with pytest.raises(InputError, match="n_draws must be a whole number of at least 1, got 0"):
        bca_bootstrap(np.mean, np.ones(2), n_draws=0)


def test_the_poisson_standard_error_is_that_of_the_mean():
    x = np.random.default_rng(0).normal(5, 2, 800)
    r = poisson_sums(x, n_draws=2000, random_state=1).result()
    assert r.value == pytest.approx(np.mean(x))
    assert r.std_error == pytest.approx(np.std(x) / np.sqrt(800), abs=4 * r.std_error_error)


def test_weights_are_repetitions_in_the_poisson_bootstrap():
    x, w = np.random.default_rng(0).normal(size=60), np.arange(60) % 4
    weighted = poisson_sums(x, weights=w, n_draws=3000, random_state=1).result()
    repeated = poisson_sums(np.repeat(x, w), n_draws=3000, random_state=2).result()
    assert weighted.value == pytest.approx(repeated.value)
    assert weighted.std_error == pytest.approx(repeated.std_error, rel=0.08)


def test_merging_blocks_adds_their_sums_in_any_order():
    x, y = np.random.default_rng(0).random((2, 90))
    a, b, c = (poisson_sums(x[k::3], y[k::3], n_draws=50, random_state=g) for k, g in enumerate(spawn(0, 3)))
    one, other = a.merge(b).merge(c).result(), c.merge(a.merge(b)).result()
    assert one.value == pytest.approx(np.sum(x) / np.sum(y))
    assert (one.low, one.high) == pytest.approx((other.low, other.high))
    with pytest.raises(InputError, match="same number of draws, got 50 and 7"):
        a.merge(poisson_sums(x, n_draws=7))


@pytest.mark.parametrize(
    ("x", "y", "reason"),
    [
        ([1.0, 2.0], [0.0, 0.0], "the ratio is not finite"),
        ([1.0, np.inf], None, "the ratio is not finite"),
        ([3.0] * 20, None, "every resample gives the same value"),
        ([1.0], [1.0], "every resample gives the same value"),
    ],
)
def test_degenerate_ratios_have_no_interval_and_say_why(x, y, reason):
    y = None if y is None else np.array(y)
    r = poisson_sums(np.array(x), y, n_draws=50, random_state=0).result()
    assert (r.low, r.high) == (None, None)
    assert reason in r.reason


def test_permutation_p_value_by_enumeration():
    # Of 6 orders of (0, 1, 2) against itself only the identity reaches the product 5.
    x = np.arange(3)
    r = permutation_test(lambda p, f: p @ f, x, x, n_draws=6000, random_state=0)
    assert r.value == 5.0
    assert r.p_value == pytest.approx(1 / 6, abs=4 * r.test.std_error)
    assert r.law.n_draws == 6000


def test_permutation_is_the_same_row_by_row_and_vectorized():
    x, y = np.random.default_rng(0).random((2, 25))
    slow = permutation_test(lambda p, f: float(p @ f), x, y, n_draws=99, random_state=4)
    fast = permutation_test(lambda p, f: p @ f, x, y, n_draws=99, random_state=4, vectorized=True)
    assert slow.test == fast.test


def test_strata_are_shuffled_within_only():
    strata = np.array([1, 0, 1, 0, 2, 0, 1])
    column = np.array([10, 1, 11, 2, 99, 3, 12])
    seen = []

    def record(p, groups):
        seen.append(p)
        assert all(set(p[groups == s]) == set(column[groups == s]) for s in range(3))
        return 0

    permutation_test(record, column, strata, strata=strata, n_draws=200, random_state=0)
    assert len({tuple(p) for p in seen}) == 36  # 3! x 3! x 1!


def test_permutation_columns_must_match():
    with pytest.raises(InputError, match=r"must have the same length, got \[2, 3\]"):
        permutation_test(lambda p, f: 0.0, np.ones(2), np.ones(3))


RUNS, COLUMN = [2, 1, 3], np.array([0.0, 2.0, 2.0, 5.0, 0.0, 2.0])


def run_sums(column):
    return np.add.reduceat(np.atleast_2d(column), [0, 2, 3], axis=1)


@pytest.mark.parametrize("rows_per_cell", [0, 10**9], ids=["tables", "shuffles"])
def test_run_sums_follow_the_law_of_all_orders(monkeypatch, rows_per_cell):
    # All 720 orders of the six rows, each equally likely.
    monkeypatch.setattr(permutation, "_ROWS_PER_CELL", rows_per_cell)
    orders = np.array(list(itertools.permutations(COLUMN)))
    expected = Counter(map(tuple, run_sums(orders).tolist()))
    drawn = []
    run_sum_permutation_test(
        lambda s: drawn.append(s) or s[:, 0], COLUMN, RUNS, n_draws=20_000, random_state=5
    )
    found = Counter(map(tuple, np.concatenate(drawn[1:]).tolist()))
    assert set(found) == set(expected)
    observed = np.array([found[key] for key in expected])
    law = np.array([expected[key] for key in expected]) * (20_000 / 720)
    # chi-squared: mean = cells - 1, standard deviation sqrt(2 (cells - 1))
    statistic, freedom = float(((observed - law) ** 2 / law).sum()), len(expected) - 1
    assert statistic < freedom + 4 * np.sqrt(2 * freedom)


def test_run_sums_of_the_rows_as_they_lie_are_the_value():
    found = run_sum_permutation_test(lambda s: s[:, 2] - s[:, 0], COLUMN, RUNS, n_draws=9, random_state=0)
    assert found.value == (5.0 + 0.0 + 2.0) - (0.0 + 2.0)


def test_few_levels_are_drawn_as_tables_and_agree_with_shuffled_rows(monkeypatch):
    column, lengths = (
        np.repeat([1.0, 2.0, 4.0], 2000)[np.random.default_rng(0).permutation(6000)],
        np.full(5, 1200),
    )

    def drawn():
        seen = []
        run_sum_permutation_test(
            lambda s: seen.append(s) or s[:, 0], column, lengths, n_draws=4000, random_state=1
        )
        return np.concatenate(seen[1:])[:, 0] / 1200

    by_table = drawn()
    monkeypatch.setattr(permutation, "_ROWS_PER_CELL", 10**9)
    by_shuffle = drawn()
    # Mean 7/3; variance of a mean of 1200 of 6000 without replacement: s^2 / 1200 * (1 - 1200 / 6000).
    spread = np.sqrt(column.var(ddof=1) / 1200 * 0.8)
    for means in (by_table, by_shuffle):
        assert means.mean() == pytest.approx(7 / 3, abs=4 * spread / np.sqrt(4000))
        assert means.std() == pytest.approx(spread, rel=4 / np.sqrt(8000))


@pytest.mark.parametrize("n_levels", [3, 3000], ids=["tables", "shuffles"])
def test_a_seed_gives_the_same_draws_in_any_number_of_threads(monkeypatch, n_levels):
    column, lengths = np.arange(3000) % n_levels, np.full(5, 600)

    def drawn(cores):
        monkeypatch.setattr(permutation.os, "cpu_count", lambda: cores)
        return run_sum_permutation_test(
            lambda s: s[:, 0], column, lengths, n_draws=20_000 if n_levels == 3 else 200, random_state=1
        ).law

    laws = [drawn(cores) for cores in (1, 4, None)]
    for law in laws[1:]:
        np.testing.assert_array_equal(law._draws, laws[0]._draws)
    # Streams of their own: what one draws, no other repeats.
    assert np.unique(laws[0]._draws).size > 100


@pytest.mark.parametrize("lengths", [[2, 1], [2, 1, 3, 0], [7]])
def test_run_lengths_must_add_up_to_the_rows(lengths):
    with pytest.raises(InputError, match=r"lengths must be whole numbers from 1 that add up to the 6 rows"):
        run_sum_permutation_test(lambda s: s[:, 0], COLUMN, lengths)
