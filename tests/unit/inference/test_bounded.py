"""Means of rows in a known range: the interval of two points, and the test of symmetric differences."""

import itertools

import numpy as np
import pytest
from scipy import special, stats

from calipers.exceptions import InputError
from calipers.inference import Moments, bounded_mean_interval, clopper_pearson, mean_estimate, symmetry_test


@pytest.mark.parametrize(("hits", "n"), [(0, 12), (3, 40), (17, 17), (250, 1000)])
@pytest.mark.parametrize(("low", "high"), [(0.0, 1.0), (-2.0, 3.0)])
def test_rows_at_the_two_ends_have_the_clopper_pearson_interval(hits, n, low, high):
    rows = np.r_[np.full(hits, high), np.full(n - hits, low)]
    found = bounded_mean_interval(Moments.of(rows), low=low, high=high, confidence=0.9)
    expected = clopper_pearson(hits, n, confidence=0.9)
    assert found.low == pytest.approx(low + (high - low) * expected.low, abs=1e-12)
    assert found.high == pytest.approx(low + (high - low) * expected.high, abs=1e-12)


def test_ends_by_hand():
    # Mean 0.2, variance 0.02 over 10 rows of [0, 1]. Upper: q = 0.02 / (0.02 + 0.64) of the rows at 1, the
    # others at 0.2 - 0.02 / 0.8 = 0.175. Lower: q = 0.02 / (0.02 + 0.04) at 0, the others at 0.2 + 0.02 / 0.2 = 0.3.
    rows = np.r_[np.full(5, 0.2 - np.sqrt(0.02)), np.full(5, 0.2 + np.sqrt(0.02))]
    found = bounded_mean_interval(Moments.of(rows), low=0, high=1, confidence=0.95)
    share = 10 * 0.02 / 0.66
    assert found.high == pytest.approx(0.175 + 0.825 * special.betaincinv(share + 1, 10 - share, 0.975))
    assert found.low == pytest.approx(0.3 * special.betaincinv(10 - 10 / 3, 10 / 3 + 1, 0.025))


def test_equal_rows_have_an_error_bar():
    # Rows above in at most a share x with (1 - x)^n = 0.025.
    found = bounded_mean_interval(Moments.of(np.full(50, 0.4)), low=0, high=2)
    assert found.high == pytest.approx(0.4 + 1.6 * (1 - 0.025 ** (1 / 50)))
    assert found.low == pytest.approx(0.4 * 0.025 ** (1 / 50))
    assert bounded_mean_interval(Moments.of(np.zeros(3)), low=0, high=0) == (0.0, 0.0)


def test_merged_blocks_have_the_interval_of_the_rows():
    rows = np.random.default_rng(0).beta(0.3, 4, 100)
    merged = Moments.of(rows[:13]).merge(Moments.of(rows[13:]))
    whole = bounded_mean_interval(Moments.of(rows), low=0, high=1)
    assert bounded_mean_interval(merged, low=0, high=1) == pytest.approx(whole)


def test_many_rows_have_the_normal_interval():
    rows = np.random.default_rng(1).beta(2, 5, 200_000)
    half = 1.96 * rows.std() / np.sqrt(rows.size)
    found = bounded_mean_interval(Moments.of(rows), low=0, high=1)
    np.testing.assert_allclose(found, [rows.mean() - half, rows.mean() + half], atol=0.01 * half)


def test_a_mean_outside_the_range_and_no_rows_are_refused():
    with pytest.raises(InputError, match="mean must lie between 0 and 1, got 1.5"):
        bounded_mean_interval(Moments.of(np.array([1.5])), low=0, high=1)
    with pytest.raises(InputError, match="at least one row"):
        bounded_mean_interval(Moments(), low=0, high=1)
    with pytest.raises(InputError, match="limits and null"):
        mean_estimate(np.array([0.5]), name="m", limits=(0, 1), null=0.5)


def test_an_estimate_with_limits_says_which_interval_it_has():
    e = mean_estimate(np.array([0.0, 0.0, 0.3]), name="m", limits=(0.0, 1.0))
    assert e.method == "mean, interval for rows of a known range"
    assert 0 <= e.low < e.value < e.high <= 1
    one = mean_estimate(np.array([0.3]), name="m", limits=(0.0, 1.0))
    assert (one.std_error, one.reason) == (None, "")
    assert one.low < 0.3 < one.high


def test_the_symmetry_test_is_above_the_exact_law_of_random_signs():
    rng = np.random.default_rng(2)
    for _ in range(40):
        sizes = rng.random(9) ** rng.choice([0.2, 1, 6])
        signs = np.array(list(itertools.product([-1, 1], repeat=9)))
        sums = signs @ sizes
        for row in signs[rng.integers(0, 512, 5)] * sizes:
            exact = np.mean(np.abs(sums) >= abs(row.sum()) - 1e-12)
            assert symmetry_test(Moments.of(row)).p_value >= exact - 1e-12


def test_the_symmetry_test_by_hand():
    # Four equal differences among zeros: r = 2, 2 c P(Z > 2) with c = 1 / (4 P(Z > sqrt 2)).
    rows = np.r_[np.full(4, 0.7), np.zeros(96)]
    expected = 2 * stats.norm.sf(2) / (4 * stats.norm.sf(np.sqrt(2)))
    test = symmetry_test(Moments.of(rows))
    assert test.p_value == pytest.approx(expected)
    at_the_band = Moments(100.0, test.null_high, 4 * 0.49 - 100 * test.null_high**2)
    assert symmetry_test(at_the_band).p_value == pytest.approx(0.05)


@pytest.mark.parametrize("n", [10, 500, 10_000])
def test_equal_differences_have_a_p_value_above_0(n):
    test = symmetry_test(Moments.of(np.full(n, 0.1)))
    assert 0 < test.p_value <= 2 * np.exp(-n / 2) + 1e-300
    assert symmetry_test(Moments.of(np.zeros(n))) == (1.0, 0.0)
