"""The martingale step by step, and weighted intervals against brute force."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.conformal import conformal_interval, conformal_quantile
from calipers.exceptions import InputError
from calipers.performance import (
    LossMonitor,
    effective_sample_size,
    estimate_shift_weights,
    forecast_losses,
    shifted_intervals,
)
from calipers.performance.monitoring import _Capital


def test_p_values_are_smoothed_ranks_in_the_growing_bag():
    calibration, new = [1.0, 2.0, 2.0, 5.0], [2.0, 7.0, 2.0]
    u = np.random.default_rng(9).random(3)
    monitor = LossMonitor(calibration, random_state=9).update(new)
    bag, expected = list(calibration), []
    for loss, draw in zip(new, u, strict=True):
        above, ties = sum(v > loss for v in bag), sum(v == loss for v in bag)
        expected.append((above + draw * (ties + 1)) / (len(bag) + 1))
        bag.append(loss)
    assert monitor.p_values_ == pytest.approx(expected, abs=1e-15)


def test_updates_in_parts_equal_one_update(seed):
    rng = np.random.default_rng(seed)
    calibration, new = rng.exponential(size=50), rng.exponential(size=40)
    whole = LossMonitor(calibration, random_state=seed).update(new)
    parts = LossMonitor(calibration, random_state=seed).update(new[:15]).update(new[15:])
    assert (whole.log_capital_ == parts.log_capital_).all()


@pytest.mark.parametrize("alternative", ["greater", "less", "two-sided"])
def test_every_bet_is_fair(alternative):
    # E[capital after one uniform p] = 1 whatever was bet before.
    capital = _Capital(alternative)
    for p in (0.01, 0.4, 0.9):
        capital.bet(p)
    start, shares = capital._log, capital._shares.copy()

    def after(p):
        capital._log, capital._shares = 0.0, shares.copy()
        return math.exp(capital.bet(p))

    # Substituting p = t^5 tames the singularity p^(-0.8) at 0 (and its mirror image at 1).
    step = 0.5**0.2 / 2000
    t = (np.arange(2000) + 0.5) * step
    total = sum((after(s**5) + after(1 - s**5)) * 5 * s**4 * step for s in t.tolist())
    # Below the resolution of the random draw the bettor is paid a little less than is fair.
    assert 0.999 < total < 1.0 + 1e-5
    assert math.isfinite(start)


def test_growth_raises_the_alarm_and_it_stays():
    rng = np.random.default_rng(0)
    monitor = forecast_losses(rng.exponential(size=400)).monitor(
        3 * rng.exponential(size=200), random_state=0
    )
    assert monitor.alarm_
    first = monitor.alarm_at_
    assert (
        monitor.log_capital_[first] >= math.log(100) > monitor.log_capital_[: max(first, 1)].max(initial=0.0)
    )
    monitor.update(rng.exponential(size=50))
    assert monitor.alarm_at_ == first
    assert str(monitor).startswith(f"alarm at new loss {first + 1} of 250")
    assert monitor.result().p_value <= 0.01
    assert monitor.curve().null_high[0] == pytest.approx(2.0)


def test_shrinking_losses_are_seen_by_less_and_not_by_greater():
    rng = np.random.default_rng(1)
    calibration, new = rng.exponential(size=400), 0.2 * rng.exponential(size=200)
    assert LossMonitor(calibration, alternative="less", random_state=0).update(new).alarm_
    assert LossMonitor(calibration, alternative="two-sided", random_state=0).update(new).alarm_
    quiet = LossMonitor(calibration, random_state=0).update(new)
    assert not quiet.alarm_
    assert str(quiet) == "no alarm in 200 new losses (false-alarm rate 0.01)"


def test_an_empty_stream_says_nothing():
    monitor = LossMonitor([1.0, 2.0])
    assert monitor.result().p_value == 1.0
    assert monitor.curve().y.size == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alternative": "up"}, "alternative must be one of greater, less, two-sided, got 'up'"),
        ({"false_alarm_rate": 0}, "false_alarm_rate must lie strictly between 0 and 1, got 0"),
    ],
)
def test_bad_monitor_options_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        LossMonitor([1.0], **options)
    with pytest.raises(InputError, match="calibration_losses must have at least one entry"):
        LossMonitor([])


def brute_upper(losses, weights, new, alpha):
    """Smallest loss whose weighted distribution function, new weight at infinity, reaches 1 - alpha."""
    total = sum(weights) + new
    for u in sorted(losses):
        if Fraction(sum(w for v, w in zip(losses, weights, strict=True) if v <= u), total) >= 1 - alpha:
            return float(u)
    return math.inf


@settings(max_examples=80, deadline=None)
@given(
    pairs=st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 5)), min_size=1, max_size=40),
    new=st.integers(0, 6),
    percent=st.integers(2, 60),
)
def test_weighted_ends_match_their_definition(pairs, new, percent):
    losses, weights = [p[0] for p in pairs], [p[1] for p in pairs]
    alpha = Fraction(percent, 100)
    upper = brute_upper(losses, weights, new, alpha / 2)
    lower = -brute_upper([-v for v in losses], weights, new, alpha / 2)
    assert shifted_intervals(losses, weights, [new], alpha).tolist() == [[lower, upper]]
    one_sided = shifted_intervals(losses, weights, [new], alpha, side="upper")[0]
    assert one_sided.tolist() == [-math.inf, brute_upper(losses, weights, new, alpha)]


@settings(max_examples=40, deadline=None)
@given(n=st.integers(1, 200), percent=st.integers(1, 99))
def test_equal_weights_are_no_shift(n, percent):
    alpha = Fraction(percent, 100)
    ends = shifted_intervals(range(n), np.ones(n), [1.0], alpha)[0]
    assert tuple(ends) == conformal_interval(range(n), alpha, tight=True)
    assert shifted_intervals(range(n), np.ones(n), [1.0], alpha, side="upper")[0, 1] == conformal_quantile(
        range(n), alpha
    )


@pytest.mark.parametrize("factor", [0.1, 0.3, 0.7, 3.3])
@pytest.mark.parametrize(("n", "side"), [(9, "upper"), (39, "two-sided"), (19, "lower")])
def test_a_common_factor_of_the_weights_changes_nothing(factor, n, side):
    ends = [
        shifted_intervals(range(n), np.full(n, w), [w, 2 * w], 0.1, side=side).tolist() for w in (1.0, factor)
    ]
    assert ends[0] == ends[1]


def test_a_row_unlike_anything_seen_gets_infinite_ends():
    assert shifted_intervals([1.0, 2.0, 3.0], [1.0, 1.0, 1.0], [100.0], 0.1).tolist() == [
        [-math.inf, math.inf]
    ]


def test_the_forecast_passes_its_losses_on():
    forecast = forecast_losses(range(1, 100), 0.1)
    assert forecast.shifted_interval(np.ones(99), [1.0])[0].tolist() == [5.0, 95.0]


def test_bad_weights_are_refused():
    with pytest.raises(InputError, match="weights must not be negative, got -1.0 at row 1"):
        shifted_intervals([1.0, 2.0], [1.0, -1.0], [1.0], 0.1)
    with pytest.raises(InputError, match="new_weights must not be negative, got -2.0 at row 0"):
        shifted_intervals([1.0, 2.0], [1.0, 1.0], [-2.0], 0.1)
    with pytest.raises(InputError, match="weights must be given"):
        shifted_intervals([1.0, 2.0], None, [1.0], 0.1)


def test_effective_size_counts_equal_weights_as_they_are():
    assert effective_sample_size(np.full(50, 3.0)) == pytest.approx(50)
    assert effective_sample_size([1.0, 0.0, 0.0]) == 1.0


def test_weights_without_mass_or_below_zero_have_no_effective_size():
    with pytest.raises(InputError, match="weights must not be zero everywhere"):
        effective_sample_size([0.0, 0.0])
    with pytest.raises(InputError, match="weights must not be negative, got -1.0 at row 1"):
        effective_sample_size([1.0, -1.0])


def test_estimated_weights_come_close_to_the_true_ratio():
    # N(0, 1) against N(1, 1): ratio exp(x - 1/2).
    rng = np.random.default_rng(3)
    old, new = rng.normal(0, 1, (4000, 1)), rng.normal(1, 1, (2000, 1))
    first, second = estimate_shift_weights(old, new, random_state=0)
    for found, rows in ((first, old), (second, new)):
        assert np.median(np.abs(np.log(found) - (rows[:, 0] - 0.5))) < 0.1


def test_text_columns_are_coded_together():
    # Bonn is found among old rows only, Zug among new ones only: the ratio is near 0 and far above 1.
    old = pl.DataFrame({"city": ["Bonn", "Rome"] * 200})
    new = pl.DataFrame({"city": ["Rome", "Zug"] * 200})
    first, second = estimate_shift_weights(old, new, random_state=0)
    assert first[::2].max() < 0.1
    assert first[1::2] == pytest.approx(np.ones(200), abs=0.35)
    assert second[1::2].min() > 10


def test_columns_are_matched_by_name_not_by_position():
    rng = np.random.default_rng(0)
    old = pl.DataFrame({"a": rng.normal(size=500), "b": rng.normal(5, 1, size=500)})
    new = pl.DataFrame({"b": rng.normal(5, 1, size=500), "a": rng.normal(size=500)})
    first, _ = estimate_shift_weights(old, new, random_state=0)
    assert np.quantile(np.abs(np.log(first)), 0.9) < 0.4  # noise of the classifier; no shift
    with pytest.raises(InputError, match="X_old and X_new must have the same columns; only X_old has 'a'"):
        estimate_shift_weights(old, new.rename({"a": "c"}))


def test_missing_values_are_a_difference_like_any_other():
    old, new = np.random.default_rng(0).normal(size=(2, 400, 1))
    new[::2] = np.nan
    first, second = estimate_shift_weights(old, new, random_state=0)
    assert second[::2].min() > 10
    assert np.quantile(np.abs(first - 0.5), 0.9) < 0.2
