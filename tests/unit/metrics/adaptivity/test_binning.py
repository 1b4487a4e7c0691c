import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.difficulty import uniform_mass_bins, uniform_mass_limits
from calipers.exceptions import InputError
from calipers.inputs import Weights
from calipers.metrics.adaptivity.binning import bin_by_ease, bin_by_strata, check_strata, stratum_name
from tests.unit.metrics.adaptivity import brute_force


@given(n=st.integers(1, 60), n_bins=st.integers(1, 80))
def test_bins_are_those_of_the_printed_equation_for_any_n_and_b(n, n_bins):
    ease = np.random.default_rng(n).permutation(n) / n
    ours = uniform_mass_bins(ease, n_bins)
    for b, rows in enumerate(brute_force.printed_bins(ease.tolist(), n_bins)):
        assert sorted(np.flatnonzero(ours == b).tolist()) == sorted(rows)


def test_limits_are_exact_where_floats_are_not():
    # 3 * (2**53 + 1) / 3 is lost in doubles.
    assert uniform_mass_limits(2**53 + 1, 3)[-1] == 2**53 + 1
    assert uniform_mass_limits(10, 3).tolist() == [0, 3, 6, 10]


@settings(deadline=None)
@given(
    ease=st.lists(st.integers(0, 4), min_size=1, max_size=25),
    n_bins=st.integers(1, 30),
    seed=st.integers(0, 99),
)
def test_tied_rows_are_shared_as_the_average_over_their_orders(ease, n_bins, seed):
    column = np.random.default_rng(seed).integers(0, 5, len(ease)).astype(float)
    ours = bin_by_ease([column], np.array(ease, dtype=float), n_bins)
    expected = brute_force.shared_bins(ease, n_bins)
    assert ours.mass.tolist() == [float(sum(b.values())) for b in expected]
    sums = [float(sum(share * column[i] for i, share in b.items())) for b in expected]
    np.testing.assert_allclose(ours.sums[0], sums, atol=1e-12)
    # The runs and their shares rebuild the same masses.
    runs, shares = ours.shared_runs()
    np.testing.assert_allclose(runs @ shares, ours.mass, atol=1e-12)


def test_effective_mass_counts_shared_rows_as_less():
    # Two bins of 1.5 rows each over three tied rows: every row counts half in each.
    bins = bin_by_ease([np.ones(4)], np.zeros(4), 2)
    assert bins.ties_cross
    # (sum of shares)^2 / sum of squares = 2^2 / (4 / 4)
    assert bins.effective_mass.tolist() == [4.0, 4.0]


@settings(deadline=None)
@given(
    ease=st.lists(st.integers(0, 6), min_size=2, max_size=12),
    n_bins=st.integers(1, 9),
    seed=st.integers(0, 99),
)
def test_whole_weights_are_repeated_rows(ease, n_bins, seed):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 4, len(ease)).astype(float)
    column, values = rng.normal(size=len(ease)), np.array(ease, dtype=float)
    weighted = bin_by_ease([column], values, n_bins, Weights.of(weights))
    times = weights.astype(int)
    repeated = bin_by_ease([np.repeat(column, times)], np.repeat(values, times), n_bins)
    np.testing.assert_allclose(weighted.mass, repeated.mass, atol=1e-12)
    np.testing.assert_allclose(weighted.sums, repeated.sums, atol=1e-12)
    np.testing.assert_allclose(weighted.effective_mass, repeated.effective_mass, atol=1e-9)


def test_fractional_weights_are_cut_at_equal_mass():
    bins = bin_by_ease(
        [np.array([1.0, 0.0, 1.0])], np.array([0.1, 0.2, 0.3]), 2, Weights.of(np.array([0.5, 1.0, 0.5]))
    )
    assert bins.mass.tolist() == [1.0, 1.0]
    assert bins.sums[0].tolist() == [0.5, 0.5]


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
def test_other_array_libraries_give_the_same_bins(library):
    xp = pytest.importorskip(library)
    rng = np.random.default_rng(0)
    column, ease = rng.random(101) < 0.5, np.round(rng.random(101), 1)
    host = bin_by_ease([column], ease, 7)
    there = bin_by_ease([xp.asarray(column)], xp.asarray(ease), 7)
    np.testing.assert_array_equal(host.sums, there.sums)
    np.testing.assert_array_equal(host.shares, there.shares)


def test_strata_hold_their_upper_end():
    bins = bin_by_strata([np.array([1.0, 2.0, 4.0, 8.0])], np.array([0, 1, 2, 11]), (1, 3, 10, math.inf))
    assert bins.mass.tolist() == [2.0, 1.0, 0.0, 1.0]
    assert bins.sums[0].tolist() == [3.0, 4.0, 0.0, 8.0]
    assert [stratum_name((1, 3, 10, math.inf), k) for k in range(4)] == ["0-1", "2-3", "4-10", "11 or more"]


def test_strata_that_miss_a_value_or_do_not_grow_are_refused():
    with pytest.raises(InputError, match="size reaches 12 at row 1, above the last of the strata"):
        check_strata((1, 10), np.array([1.0, 12.0]), name="size")
    with pytest.raises(InputError, match="increasing upper ends"):
        check_strata((1, 1), np.array([1.0]), name="size")


def test_noise_is_shared_by_bins_of_one_tie():
    # Rows 0 and 1 are alone in the first bin; a tie of four is shared by the second and third.
    bins = bin_by_ease([np.arange(6.0)], np.array([1.0, 2.0, 3.0, 3.0, 3.0, 3.0]), 3)
    assert bins.noise_correlation() == pytest.approx(np.array([[1, 0, 0], [0, 1, 1], [0, 1, 1]]))
    assert bin_by_ease([np.arange(6.0)], np.arange(6.0), 3).noise_correlation() is None
