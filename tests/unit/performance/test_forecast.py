"""Ranks, bounds and promises of the forecast from losses alone."""

from __future__ import annotations

import math
import pickle
import re
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.exceptions import InputError
from calipers.performance import LossForecast, forecast_losses
from calipers.results.formatting import THIN_SPACE


def empirical_quantile(values, beta):
    """inf{u : F_n(u) >= beta} by its definition (the display before eq. 4), with its limits."""
    if beta <= 0:
        return -math.inf
    for u in sorted(values):
        if Fraction(sum(v <= u for v in values), len(values)) >= beta:
            return float(u)
    return math.inf


@settings(max_examples=60, deadline=None)
@given(
    values=st.lists(st.integers(-5, 5), min_size=1, max_size=60),
    percent=st.integers(1, 99),
)
def test_ends_are_the_quantiles_of_eq_15_and_14(values, percent):
    alpha, n = Fraction(percent, 100), len(values)
    low = alpha / 2 - (1 - alpha / 2) / n
    high = (1 + Fraction(1, n)) * (1 - alpha / 2)
    forecast = forecast_losses(values, alpha)
    assert forecast.interval() == (empirical_quantile(values, low), empirical_quantile(values, high))
    assert forecast.upper_bound() == empirical_quantile(values, (1 + Fraction(1, n)) * (1 - alpha))


def test_hand_computed_ranks():
    # n = 99, alpha = 0.1: ceil(100 x 0.05) - 1 = 4, ceil(100 x 0.95) = 95, ceil(100 x 0.9) = 90.
    forecast = forecast_losses(range(1, 100), 0.1)
    assert forecast.interval() == (4.0, 95.0)
    assert forecast.upper_bound() == 90.0
    # The mirror image of 90 among 99.
    assert forecast.lower_bound() == 10.0
    assert forecast_losses(range(1, 100), 0.1, tight=True).interval() == (5.0, 95.0)


def test_it_unpacks_as_low_and_high_and_takes_another_alpha():
    forecast = forecast_losses(range(1, 100), 0.1)
    low, high = forecast
    assert (low, high) == (forecast.low, forecast.high) == (4.0, 95.0)
    assert forecast.interval(0.5) == (24.0, 75.0)


def test_order_of_the_losses_does_not_matter(seed):
    losses = np.random.default_rng(seed).normal(size=57)
    assert forecast_losses(losses).interval() == forecast_losses(losses[::-1]).interval()


@pytest.mark.parametrize(
    ("n", "low", "high"), [(18, -math.inf, math.inf), (19, -math.inf, 19.0), (20, 1.0, 20.0)]
)
def test_ends_are_infinite_exactly_below_the_needed_number(n, low, high):
    forecast = forecast_losses(range(1, n + 1), 0.1)
    assert forecast.interval() == (low, high)
    sentence = forecast.guarantee_
    assert ("infinite" in sentence) == (n < 20)
    if n < 20:
        assert f"{n} losses are fewer than the 20 needed at alpha = 0.1" in sentence


def test_the_promise_is_the_difference_of_ranks_over_n_plus_one():
    promise = forecast_losses(range(1, 100), 0.1).guarantee()
    assert promise.coverage == Fraction(91, 100)
    assert (promise.law.n_calibration, promise.law.rank) == (99, 91)
    sentence = str(promise)
    assert "exactly 91 % = 91/100" in sentence
    assert "n = 99" in sentence
    assert "Beta(91, 9)" in sentence
    assert sentence.count(".") >= 1
    assert sentence.endswith(".")


@settings(max_examples=60, deadline=None)
@given(n=st.integers(1, 3000), percent=st.integers(1, 99))
def test_coverage_lies_between_the_bounds_of_theorem_5(n, percent):
    alpha = Fraction(percent, 100)
    forecast = forecast_losses(range(n), alpha)
    two_sided = forecast.guarantee().coverage
    assert 1 - alpha <= two_sided <= 1 - alpha + Fraction(2, n + 1)
    for side in ("upper", "lower"):
        assert 1 - alpha <= forecast.guarantee(side=side).coverage <= 1 - alpha + Fraction(1, n + 1)
    tight = forecast_losses(range(n), alpha, tight=True).guarantee().coverage
    assert 1 - alpha <= tight <= two_sided


def test_one_sided_promises_speak_of_their_own_ends():
    promise = forecast_losses(range(1, 9), 0.1).guarantee(side="upper")
    assert promise.needed == 9
    assert "the upper end is infinite because 8 losses are fewer than the 9 needed" in str(promise)
    # The lower end of an upper bound is infinite by design, and is not excused.
    assert "lower" not in str(promise)


def test_probability_of_being_right_matches_the_boundary_of_the_interval():
    losses = [0] * 90 + [1] * 9
    forecast = forecast_losses(losses, 0.1)
    right = forecast.probability(at_most=0)
    # Clopper-Pearson for 90 of 99, from scipy.stats.binomtest(90, 99).proportion_ci().
    assert right.value == pytest.approx(90 / 99)
    assert (right.low, right.high) == (pytest.approx(0.8344310, abs=1e-6), pytest.approx(0.9575835, abs=1e-6))
    # The largest confidence at which the bound is still 0 is 90/100.
    assert right.details["forecast_low"] == 0.9
    assert forecast.upper_bound(Fraction(1, 10)) == 0.0
    assert forecast.upper_bound(Fraction(999, 10000)) == 1.0


def test_forecast_distribution_brackets_the_empirical_one():
    curve = forecast_losses([3.0, 1.0, 1.0]).distribution()
    assert curve.x.tolist() == [1.0, 3.0]
    assert curve.low.tolist() == [0.5, 0.75]
    assert curve.high.tolist() == [0.75, 1.0]


def test_infinite_losses_are_kept():
    forecast = forecast_losses([1.0] * 97 + [math.inf] * 2, 0.05)
    assert forecast.upper_bound() == 1.0
    assert forecast.upper_bound(0.01) == math.inf


@pytest.mark.parametrize(
    ("losses", "alpha", "message"),
    [
        ([], 0.1, "losses must have at least one entry, got none"),
        ([1.0, math.nan], 0.1, r"losses has 1 NaN of 2 values \(first at row 1\)"),
        ([[1.0, 2.0]], 0.1, "losses must have one dimension"),
        ([1.0], 90, "alpha must lie strictly between 0 and 1, got 90"),
    ],
)
def test_bad_input_is_refused_with_its_name(losses, alpha, message):
    with pytest.raises(InputError, match=message):
        forecast_losses(losses, alpha)


def test_an_unknown_side_is_refused():
    with pytest.raises(InputError, match="side must be one of two-sided, upper, lower, got 'both'"):
        forecast_losses([1.0]).guarantee(side="both")


def test_it_can_be_pickled_and_shown():
    forecast = forecast_losses(range(1, 100), 0.1)
    again = pickle.loads(pickle.dumps(forecast))
    assert isinstance(again, LossForecast)
    assert again.interval() == forecast.interval()
    assert repr(forecast) == "LossForecast(n=99, alpha=0.1, interval=(4, 95))"
    assert str(forecast) == forecast.guarantee_


def test_as_an_estimate_it_carries_width_and_bound():
    estimate = forecast_losses(range(1, 100), 0.1).to_estimate("SVM")
    assert (estimate.name, estimate.value, estimate.low, estimate.high) == ("SVM", 50.0, 4.0, 95.0)
    assert estimate.details["width"] == 91.0
    assert estimate.details["upper_bound"] == 90.0


def test_a_printed_promise_holds_for_what_is_printed():
    forecast = forecast_losses([0.2, 15.4] * 20)
    assert forecast.interval() == (0.2, 15.4)
    assert "lies in [0, 16] with" in forecast.guarantee_
    assert repr(forecast) == "LossForecast(n=40, alpha=0.1, interval=(0.2, 15.4))"
    rng = np.random.default_rng(0)
    for scale in (1e-7, 1e-3, 1.0, 1e3, 1e9):
        made = forecast_losses(scale * rng.exponential(size=25))
        low, high = re.search(r"lies in \[(.+), (.+)\] with", made.guarantee_).groups()
        assert float(low.replace(THIN_SPACE, "")) <= made.low
        assert float(high.replace(THIN_SPACE, "")) >= made.high
        low, high = re.search(r"interval=\((.+), (.+)\)\)", repr(made)).groups()
        assert float(low) <= made.low
        assert float(high) >= made.high


def test_limits_hold_the_ends():
    few = forecast_losses([0.5, 0.2, 0.9], limits=(0, 1))
    assert few.interval() == (0.0, 1.0)
    assert "the lower end is the least a loss can be and the upper end is the most a loss can be" in str(few)
    assert few.interval(alpha=0.6) == forecast_losses([0.5, 0.2, 0.9]).interval(alpha=0.6)
