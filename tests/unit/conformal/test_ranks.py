"""Ranks against exact rational arithmetic, and against the cells where peers are one rank off."""

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calipers.conformal import (
    conformal_interval,
    conformal_quantile,
    conformal_rank,
    interval_ranks,
    smallest_calibration_size,
)
from calipers.exceptions import InputError, InputTypeError


@pytest.mark.parametrize("first", range(1, 1000, 111))
def test_rank_is_exact_for_every_n_to_2000_and_every_thousandth(first):
    # ceil((n + 1)(1000 - k) / 1000) with integers only; alpha enters as the float k / 1000.
    wrong = [
        (n, k)
        for k in range(first, min(first + 111, 1000))
        for n in range(1, 2001)
        if conformal_rank(n, k / 1000) != -((n + 1) * (k - 1000) // 1000)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("alpha", "meant"),
    [
        (1 - 0.9, Fraction(1, 10)),
        (0.1 + 0.2, Fraction(3, 10)),
        (1 / 3, Fraction(1, 3)),
        (Fraction(1, 7), Fraction(1, 7)),
        (Decimal("0.05"), Fraction(1, 20)),
        (np.float32(0.1), Fraction(1, 10)),
        (np.float64(0.1), Fraction(1, 10)),
        (1e-9, Fraction(1e-9)),
        (1 - 1e-13, Fraction(1 - 1e-13)),
    ],
)
def test_rank_reads_the_level_people_mean(alpha, meant):
    for n in (1, 8, 9, 10, 19, 29, 99, 100, 999, 2000):
        assert conformal_rank(n, alpha) == math.ceil((n + 1) * (1 - meant))


def test_rank_where_float_arithmetic_is_one_off():
    off = [
        (n, k)
        for k in range(1, 100)
        for n in range(1, 200)
        if math.ceil((n + 1) * (1 - k / 100)) != conformal_rank(n, k / 100)
    ]
    assert (149, 18) in off  # floats give 124, exactly 150 * 0.82 = 123 is needed
    assert conformal_rank(149, 0.18) == 123
    assert conformal_rank(99, 0.1) == 90  # int((1 - 0.9) * 100) - 1 picks 91


def test_quantile_is_infinite_exactly_when_the_rank_exceeds_n():
    for n in range(1, 60):
        scores = np.arange(n, dtype=float)[::-1]
        for alpha in (0.01, 0.05, 0.1, 1 / 3, 0.5, 0.9):
            rank = conformal_rank(n, alpha)
            expected = np.inf if rank > n else np.sort(scores)[rank - 1]
            assert conformal_quantile(scores, alpha) == expected


def test_nine_scores_at_a_tenth_have_a_finite_threshold():
    assert conformal_quantile(range(1, 10), 0.1) == 9.0
    assert conformal_quantile(range(1, 9), 0.1) == np.inf


def test_interval_follows_the_printed_ranks():
    # n = 19, alpha = 0.2: (n + 1) alpha / 2 = 2, so lower rank 2 - 1 = 1 and upper rank ceil(20 * 0.9) = 18.
    assert conformal_interval(range(1, 20), 0.2) == (1.0, 18.0)
    assert conformal_interval(range(1, 20), 0.2, tight=True) == (2.0, 18.0)
    # n = 20, alpha = 0.2: 2.1 -> lower 3 - 1 = 2 either way, upper ceil(18.9) = 19.
    assert (
        conformal_interval(range(1, 21), 0.2)
        == conformal_interval(range(1, 21), 0.2, tight=True)
        == (2.0, 19.0)
    )


def test_interval_is_infinite_below_the_needed_size():
    assert conformal_interval([1.0, 2.0], 0.1) == (-np.inf, np.inf)


@given(st.integers(0, 500), st.fractions(Fraction(1, 1000), Fraction(999, 1000), max_denominator=1000))
def test_interval_ranks_leave_at_most_half_of_alpha_on_each_side(n, alpha):
    lower, upper = interval_ranks(n, alpha)
    tight_lower, tight_upper = interval_ranks(n, alpha, tight=True)
    assert Fraction(lower, n + 1) <= alpha / 2
    assert Fraction(n + 1 - upper, n + 1) <= alpha / 2
    assert Fraction(tight_lower, n + 1) <= alpha / 2 < Fraction(tight_lower + 1, n + 1)
    assert lower <= tight_lower <= lower + 1
    assert upper == tight_upper


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=40), st.sampled_from([0.05, 0.1, 0.25, 0.5]))
def test_quantile_is_the_smallest_valid_threshold_with_ties(values, alpha):
    threshold = conformal_quantile(values, alpha)
    n = len(values)

    def covers(t):  # exact conformal p-value rule at a new score t: keep when (#{>= t} + 1) / (n + 1) > alpha
        return Fraction(sum(v >= t for v in values) + 1, n + 1) > Fraction(str(alpha))

    kept = [t for t in range(-4, 5) if covers(t)]
    assert kept == [t for t in range(-4, 5) if t <= threshold]


@pytest.mark.parametrize("alpha", [0.001, 0.05, 0.1, 1 / 3, 0.5, 0.9])
def test_smallest_calibration_size_is_the_first_finite_one(alpha):
    n = smallest_calibration_size(alpha)
    assert conformal_rank(n, alpha) <= n
    assert n == 1 or conformal_rank(n - 1, alpha) > n - 1


@pytest.mark.parametrize("alpha", [0, 1, -0.1, 90, float("nan"), float("inf"), Fraction(1), Decimal(0)])
def test_levels_outside_the_unit_interval_are_refused(alpha):
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1, got"):
        conformal_rank(10, alpha)


@pytest.mark.parametrize("alpha", ["0.1", None, True, [0.1], 1j])
def test_levels_that_are_not_numbers_are_refused(alpha):
    with pytest.raises(InputTypeError, match="alpha must be a number"):
        conformal_rank(10, alpha)


def test_bad_counts_and_scores_are_refused():
    with pytest.raises(InputError, match="n must be a whole number of at least 0, got -1"):
        conformal_rank(-1, 0.1)
    with pytest.raises(InputError, match="scores has 1 NaN of 2 values"):
        conformal_quantile([1.0, float("nan")], 0.1)


def test_infinite_scores_are_kept():
    assert conformal_quantile([np.inf] * 5 + [0.0] * 5, 0.5) == np.inf
    assert conformal_quantile([-np.inf, 0.0, 1.0], 0.75) == -np.inf
