"""Widths that differ by rounding alone are one width, in every metric that sorts or compares them."""

import numpy as np
import pytest

from calipers.metrics import (
    difficulty_concordance,
    size_coverage_correlation,
    size_coverage_hsic,
    size_stratified_coverage,
    sscv,
    t_ss,
    width_against_error,
)
from calipers.metrics.equal_values import is_one_width, pool_equal


@pytest.fixture
def constant_width():
    """A predictor of one width: (f + q) - (f - q) differs in the last digits, by where f lies."""
    rng = np.random.default_rng(0)
    f = 10 * rng.normal(size=2000)
    y = f + rng.normal(size=2000) * (1 + np.abs(f) / 10)
    q = np.quantile(np.abs(y - f), 0.9)
    low, high = f - q, f + q
    assert len(np.unique(high - low)) > 1
    return np.abs(y - f), (low <= y) & (y <= high), high - low, f


def test_one_width_is_one_stratum(constant_width):
    _, covered, width, _ = constant_width
    assert len(size_stratified_coverage(covered, width, alpha=0.1).details["groups"]) == 1
    strata = [*np.quantile(width, [0.25, 0.5]), np.inf]
    assert sscv(covered, width, alpha=0.1, strata=strata).p_value > 0.05
    float32 = (width.astype(np.float32) * (1 + 1e-10)).astype(float)
    assert len(size_stratified_coverage(covered, float32, alpha=0.1).details["groups"]) == 1


def test_one_width_says_nothing_about_error_and_coverage(constant_width):
    error, covered, width, f = constant_width
    assert {e.p_value for e in width_against_error(error, width).values()} == {None}
    assert np.isnan(size_coverage_correlation(covered, width).value)
    assert "the same in every row" in size_coverage_hsic(covered, width, n_draws=9).reason
    assert np.isnan(float(t_ss(error, width, -np.abs(f))))
    e = difficulty_concordance(error, width, n_draws=200, n_permutations=19, random_state=0)
    assert e.p_value > 0.05


def test_pooled_values_are_those_of_the_smallest():
    assert pool_equal(np.array([3.0, 1.0, 1.0 + 5e-10, 2.0, 0.0])).tolist() == [3.0, 1.0, 1.0, 2.0, 0.0]
    # A run of close values is cut where they are no longer close to its first.
    run = 1 + 6e-10 * np.arange(5)
    assert pool_equal(run).tolist() == [run[0], run[0], run[2], run[2], run[4]]
    distinct = np.random.default_rng(0).normal(size=1000)
    np.testing.assert_array_equal(pool_equal(distinct), distinct)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shift", [0.0, 1e5])
def test_rounding_of_the_ends_makes_no_second_width(dtype: type, shift: float) -> None:
    middle = shift + np.random.default_rng(0).normal(size=500)
    lower, upper = (np.asarray(middle + half, dtype=dtype) for half in (-1.645, 1.645))
    assert is_one_width(lower, upper)
    assert not is_one_width(lower, upper + np.where(np.arange(500) == 7, 0.2, 0.0).astype(dtype))


@pytest.mark.parametrize("decimals", [1, 2, 3, 5])
def test_ends_written_with_few_decimals_have_one_width(decimals: int) -> None:
    middle = 50 * np.random.default_rng(1).normal(size=400)
    lower, upper = ((middle + half).round(decimals) for half in (-16.4523, 16.4523))
    assert np.ptp(upper - lower) > 0
    assert is_one_width(lower, upper)
    # Two units of the last decimal are more than rounding.
    upper[0] = lower[0] + (upper - lower).min() + 2.2 * 10.0**-decimals
    assert not is_one_width(lower, upper)


def test_small_whole_widths_are_not_rounded() -> None:
    lower = np.array([0.0, 5.0, 9.0])
    assert not is_one_width(lower, lower + np.array([2.0, 3.0, 2.0]))
    assert is_one_width(lower, lower + 2.0)


@pytest.mark.parametrize("end", [1e121, 1e308])
def test_ends_beyond_single_precision_are_no_warning(end):
    assert not is_one_width(np.array([0.0, 0.5]), np.array([1.0, end]))
