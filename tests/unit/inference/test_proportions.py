import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from calipers.exceptions import InputError
from calipers.inference import binomial_p_value, clopper_pearson, sidak_confidence, wilson
from calipers.inference.proportions import (
    binomial_lower_tail,
    binomial_tails,
    binomial_upper_tail,
    tails_of_one,
)


def test_clopper_pearson_without_successes_has_the_closed_form():
    # (1 - high)^10 = 0.025
    low, high = clopper_pearson(0, 10)
    assert low == 0.0
    assert high == pytest.approx(1 - 0.025**0.1, rel=1e-12)


def test_clopper_pearson_with_only_successes_has_the_closed_form():
    low, high = clopper_pearson(10, 10)
    assert high == 1.0
    assert low == pytest.approx(0.025**0.1, rel=1e-12)


@pytest.mark.parametrize("interval", [clopper_pearson, wilson])
def test_no_trials_give_the_whole_range(interval):
    assert interval(0, 0) == (0.0, 1.0)


@pytest.mark.parametrize("interval", [clopper_pearson, wilson])
def test_one_sided_intervals_put_all_the_error_on_their_end(interval):
    two_sided = interval(7, 20, confidence=0.9)
    assert interval(7, 20, confidence=0.95, alternative="greater") == pytest.approx((two_sided.low, 1.0))
    assert interval(7, 20, confidence=0.95, alternative="less") == pytest.approx((0.0, two_sided.high))


@pytest.mark.parametrize("interval", [clopper_pearson, wilson])
def test_intervals_broadcast_like_arrays(interval):
    successes, n = np.array([[0], [3]]), np.array([5, 8])
    together = interval(successes, n)
    for i in range(2):
        for j in range(2):
            assert interval(successes[i, 0], n[j]) == (together.low[i, j], together.high[i, j])


@pytest.mark.parametrize("interval", [clopper_pearson, wilson])
@pytest.mark.parametrize(("successes", "n"), [(-1, 5), (6, 5), (np.nan, 5), (2, np.inf), (2, np.nan)])
def test_impossible_counts_are_refused(interval, successes, n):
    with pytest.raises(InputError, match="successes must lie between 0 and n, got"):
        interval(successes, n)


def test_rounding_of_a_weighted_sum_is_not_refused():
    weights = np.full(10, 0.1)
    assert clopper_pearson(np.sum(weights) * (1 + 1e-15), np.sum(weights)).high == 1.0


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95])
def test_confidence_outside_the_unit_interval_is_refused(confidence):
    with pytest.raises(InputError, match="confidence must lie strictly between 0 and 1"):
        clopper_pearson(1, 2, confidence=confidence)


def test_unknown_alternative_is_refused():
    with pytest.raises(
        InputError, match='alternative must be "two-sided", "greater" or "less", got \'both\''
    ):
        wilson(1, 2, alternative="both")


def test_probability_outside_the_unit_interval_is_refused():
    with pytest.raises(InputError, match=r"probability must lie in \[0, 1\], got 1.5"):
        binomial_p_value(1, 2, 1.5)


def test_the_two_sided_p_value_doubles_the_smaller_tail():
    # K ~ Binomial(4, 1/4): P(K >= 3) = (12 + 1)/256, P(K <= 3) = 255/256.
    assert binomial_p_value(3, 4, 0.25) == pytest.approx(26 / 256, rel=1e-14)
    assert binomial_p_value(3, 4, 0.25, alternative="greater") == pytest.approx(13 / 256, rel=1e-14)
    assert binomial_p_value(3, 4, 0.25, alternative="less") == pytest.approx(255 / 256, rel=1e-14)


def test_a_certain_null_rejects_only_what_it_excludes():
    assert binomial_p_value([5, 4], 5, 1.0).tolist() == [1.0, 0.0]
    assert binomial_p_value([0, 1], 5, 0.0).tolist() == [1.0, 0.0]


def test_a_sidak_adjusted_interval_keeps_its_digits_at_tiny_errors():
    # The high end after s = 0 of n: error^(1/n), here with error 2.5e-11 per end.
    confidence = sidak_confidence(0.95, 10**9)
    high = clopper_pearson(0, 50, confidence=confidence).high
    assert high == pytest.approx(1 - ((1 - confidence) / 2) ** (1 / 50), rel=1e-12)


@given(
    st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))),
    st.floats(0.02, 0.98),
    st.sampled_from([0.8, 0.95, 0.999]),
)
def test_clopper_pearson_holds_exactly_what_the_test_does_not_reject(counts, p, confidence):
    low, high = clopper_pearson(*counts, confidence=confidence)
    p_value = binomial_p_value(*counts, p)
    if abs(p_value - (1 - confidence)) > 1e-9:
        assert (low <= p <= high) == (p_value > 1 - confidence)


@given(st.integers(1, 40), st.floats(0, 1), st.floats(0.01, 0.98))
def test_fractional_counts_lie_between_their_whole_neighbours(n, share, step):
    count = np.floor(share * (n - 1))
    ends = [clopper_pearson(c, n) for c in (count, count + step, count + 1)]
    assert ends[0].low <= ends[1].low <= ends[2].low
    assert ends[0].high <= ends[1].high <= ends[2].high


@pytest.mark.parametrize("p", [[0.1, 0.1], [0.9, 0.9], [0.1, 0.9], [0.8, 0.3]])
def test_binomial_tails_equal_exact_sums_on_either_side_of_one_half(p):
    n = 9
    chances = np.resize(np.array(p), n + 1)
    lower, upper = binomial_tails(np.arange(n + 1.0), np.full(n + 1, float(n)), chances, 1.0 - chances)
    for k, chance in enumerate(chances):
        x = Fraction(float(chance))
        mass = [math.comb(n, j) * x**j * (1 - x) ** (n - j) for j in range(n + 1)]
        assert lower[k] == pytest.approx(float(sum(mass[: k + 1])), rel=1e-12)
        assert upper[k] == pytest.approx(float(sum(mass[k:])), rel=1e-12)


def test_tails_computed_alone_equal_those_computed_together():
    s, n, p = np.arange(8.0), np.full(8, 7.0), np.linspace(0.05, 0.95, 8)
    lower, upper = binomial_tails(s, n, p, 1.0 - p)
    assert np.array_equal(lower, binomial_lower_tail(s, n, p, 1.0 - p))
    assert np.array_equal(upper, binomial_upper_tail(s, n, p, 1.0 - p))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.83])
def test_one_count_without_arrays_equals_the_same_count_among_others(p):
    s = np.arange(13.0)
    together = binomial_tails(s, np.full(13, 12.0), np.full(13, p), np.full(13, 1.0 - p))
    alone = [tails_of_one(float(k), 12.0, p, 1.0 - p) for k in s]
    np.testing.assert_array_equal(np.array(alone).T, np.array(together))


@pytest.mark.parametrize("alternative", ["two-sided", "greater", "less"])
def test_the_interval_of_one_count_equals_the_same_count_among_others(alternative):
    s = np.arange(13.0)
    together = clopper_pearson(s, 12.0, alternative=alternative)
    alone = [clopper_pearson(float(k), 12.0, alternative=alternative) for k in s]
    np.testing.assert_array_equal(np.array(alone).T, np.array(together))
    assert {type(end) for end in alone[5]} == {np.float64}
