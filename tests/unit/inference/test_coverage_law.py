from fractions import Fraction
from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.exceptions import InputError
from calipers.inference import CalibrationLaw, CoverageLaw, repetitions

laws = st.integers(1, 40).flatmap(
    lambda n: st.builds(
        CoverageLaw,
        n=st.integers(1, 60),
        alpha=st.just(0.1),
        n_calibration=st.just(n),
        rank=st.integers(1, n + 1),
    )
)


def exact_masses(n, n_calibration, rank):
    """C(k+j-1, j) C(nc-k+n-j, n-j) / C(nc+n, n) in integers."""
    total = comb(n_calibration + n, n)
    return [
        Fraction(comb(rank + j - 1, j) * comb(n_calibration - rank + n - j, n - j), total)
        for j in range(n + 1)
    ]


@settings(max_examples=60)
@given(laws.filter(lambda law: law.rank <= law.n_calibration))
def test_masses_and_tails_equal_exact_integer_arithmetic(law):
    masses = exact_masses(law.n, law.n_calibration, law.rank)
    counts = np.arange(law.n + 1)
    below = np.cumsum(masses)
    np.testing.assert_allclose(law.pmf(counts), [float(m) for m in masses], rtol=1e-12)
    np.testing.assert_allclose(law.cdf(counts), [float(b) for b in below], rtol=1e-11)
    np.testing.assert_allclose(law.sf(counts), [float(1 - b) for b in below], rtol=1e-11)


def test_the_law_is_the_count_below_a_calibration_order_statistic():
    # All ways to interleave 4 calibration and 3 test scores are equally likely; the rank-3 threshold.
    counts = [sum(t < places[2] for t in range(7) if t not in places) for places in combinations(range(7), 4)]
    law = CoverageLaw(n=3, alpha=0.4, n_calibration=4, rank=3)
    observed = np.bincount(counts, minlength=4) / comb(7, 4)
    np.testing.assert_allclose(law.pmf(np.arange(4)), observed, rtol=1e-13)


def test_without_calibration_rows_the_law_is_binomial():
    law = CoverageLaw(n=3, alpha=0.25)
    np.testing.assert_allclose(law.pmf([0, 1, 2, 3]), np.array([1, 9, 27, 27]) / 64, rtol=1e-14)
    np.testing.assert_allclose(law.cdf([0, 1, 2, 3]), np.array([1, 10, 37, 64]) / 64, rtol=1e-14)
    np.testing.assert_allclose(law.sf([0, 1, 2, 3]), np.array([63, 54, 27, 0]) / 64, rtol=1e-14)
    assert law.mean == pytest.approx(2.25)
    assert law.std == pytest.approx(0.75)


def test_an_infinite_threshold_covers_every_row():
    law = CoverageLaw(n=8, alpha=0.01, n_calibration=5, rank=6)
    assert law.pmf([7, 8]).tolist() == [0.0, 1.0]
    assert law.cdf([7, 8]).tolist() == [0.0, 1.0]
    assert law.sf([7, 8]).tolist() == [1.0, 0.0]
    assert law.interval() == (8, 8)
    assert law.p_value(8) == 1.0
    assert law.p_value(7, "less") == 0.0
    assert (law.mean, law.std) == (8.0, 0.0)
    assert law.rvs(np.random.default_rng(0), 3).tolist() == [8, 8, 8]


def test_counts_outside_the_range_have_no_mass():
    for law in (CoverageLaw(5, 0.1), CoverageLaw(5, 0.1, 9, 9)):
        assert law.pmf([-1, 6, 2.5]).tolist() == [0.0, 0.0, 0.0]
        assert law.cdf([-1, 5, 6]).tolist() == [0.0, 1.0, 1.0]
        assert law.sf([-1, 5, 6]).tolist() == [1.0, 0.0, 0.0]
        assert np.isnan(law.p_value(np.nan))


@settings(max_examples=60)
@given(laws, st.sampled_from([0.5, 0.9, 0.95]), st.sampled_from(["two-sided", "greater", "less"]))
def test_the_band_holds_exactly_the_counts_that_are_not_rejected(law, level, alternative):
    low, high = law.interval(level, alternative)
    counts = np.arange(law.n + 1)
    p = law.p_value(counts, alternative)
    clear = np.abs(p - (1 - level)) > 1e-10
    np.testing.assert_array_equal(((counts >= low) & (counts <= high))[clear], (p > 1 - level)[clear])
    assert np.sum(law.pmf(np.arange(low, high + 1))) >= level - 1e-12


@pytest.mark.parametrize("n_calibration", [None, 30])
@pytest.mark.parametrize("n", [1, 40, 3000])
def test_the_band_is_found_where_the_normal_law_is_far_off(n, n_calibration):
    rank = None if n_calibration is None else 30
    law = CoverageLaw(n=n, alpha=0.001, n_calibration=n_calibration, rank=rank)
    for level in (0.1, 0.95, 1 - 1e-9):
        p = law.p_value(np.arange(n + 1))
        kept = np.flatnonzero(p > 1 - level)
        assert tuple(law.interval(level)) == (kept[0], kept[-1])


def test_a_level_that_an_atom_hits_exactly_is_not_decided_by_rounding():
    # BetaBinomial(19, 1, 1) is uniform on 0..19: each atom is 1/20.
    law = CoverageLaw(n=19, alpha=0.5, n_calibration=1, rank=1)
    assert law.interval(0.95, "greater") == (0, 18)
    assert law.interval(0.95, "less") == (1, 19)
    assert law.interval(0.9, "two-sided") == (1, 18)


@given(laws)
@settings(max_examples=40)
def test_mean_and_std_are_the_moments_of_the_masses(law):
    counts = np.arange(law.n + 1)
    p = law.pmf(counts)
    assert law.mean == pytest.approx(p @ counts, rel=1e-10)
    assert law.std == pytest.approx(np.sqrt(p @ (counts - law.mean) ** 2), rel=1e-8, abs=1e-7)
    assert law.share_std == pytest.approx(law.std / law.n)


def test_no_rows_leave_everything_open():
    law = CoverageLaw(0, 0.1)
    assert law.share_interval() == (0.0, 1.0)
    assert law.p_value(0) == 1.0
    assert np.isnan(law.share_std)


def test_draws_are_reproducible_and_follow_the_law():
    law = CoverageLaw(n=200, alpha=0.1, n_calibration=50, rank=46)
    draws = law.rvs(np.random.default_rng(5), 20_000)
    np.testing.assert_array_equal(draws, law.rvs(np.random.default_rng(5), 20_000))
    assert abs(np.mean(draws) - law.mean) < 5 * law.std / np.sqrt(20_000)
    assert np.std(draws) == pytest.approx(law.std, rel=0.03)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((10.5, 0.1), "n must be a whole number of at least 0, got 10.5"),
        ((10, 90), "alpha must lie strictly between 0 and 1, got 90"),
        ((10, 0.1, 9), "n_calibration and rank must be given together"),
        ((10, 0.1, 9, 11), "rank must be a whole number from 1 to n_calibration \\+ 1 = 10, got 11"),
        ((10, 0.1, 9, 0), "rank must be a whole number of at least 1, got 0"),
        ((10, 0.1, 0, 1), "n_calibration must be a whole number of at least 1, got 0"),
    ],
)
def test_impossible_laws_are_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        CoverageLaw(*arguments)


def test_the_calibration_law_of_one_row_is_uniform():
    law = CalibrationLaw(1, 1)
    assert law.cdf(0.3) == pytest.approx(0.3)
    assert law.sf(0.3) == pytest.approx(0.7)
    assert law.interval(0.9) == pytest.approx((0.05, 0.95))
    assert law.std == pytest.approx(12**-0.5)


def test_the_calibration_law_of_an_infinite_threshold_is_one():
    law = CalibrationLaw(4, 5)
    assert law.interval() == (1.0, 1.0)
    assert (law.cdf(0.99), law.cdf(1.0), law.sf(0.99), law.sf(1.0)) == (0.0, 1.0, 1.0, 0.0)
    assert law.rvs(np.random.default_rng(0)) == 1.0


def test_whole_weights_are_repetitions_and_others_are_not():
    assert repetitions(np.array([2.0, 0.0, 1.0])).dtype.kind == "i"
    assert repetitions(np.array([1.0, 1.5, 0.5])) is None


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_p_value_of_one_whole_count_equals_the_same_count_among_others(alternative):
    law = CoverageLaw(n=30, alpha=0.2)
    together = law.p_value(np.arange(31), alternative)
    assert [law.p_value(k, alternative) for k in range(31)] == together.tolist()
