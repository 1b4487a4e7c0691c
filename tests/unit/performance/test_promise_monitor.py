"""Monitors of a promise: fair bets, the same result however the rows are split, stored and restored."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.conformal import conformal_rank
from calipers.exceptions import InputError
from calipers.inference import CalibrationLaw
from calipers.performance import PromiseMonitor, RiskMonitor
from calipers.performance.betting import SHIFTS, SLOPES, Betting, waiting


def slow_e_values(z, t, side, *, slopes=False):
    """The definition, bet by bet and stake by stake, in plain loops."""
    signs = {"under": [-1], "over": [1], "both": [-1, 1]}[side]
    bets = [
        ("shift", s * d, (2 / 3 if slopes else 1) / (len(signs) * SHIFTS.size)) for s in signs for d in SHIFTS
    ]
    bets += [("slope", d, 1 / 3 / SLOPES.size) for d in SLOPES] if slopes else []
    cash = waiting(np.arange(len(z) + 1.0))
    stakes, values = [0.5 * share for *_, share in bets], []
    for i, (x, p) in enumerate(zip(z, t, strict=True)):
        for j, (kind, size, share) in enumerate(bets):
            shift = size if kind == "shift" else size * math.log(p / (1 - p))
            shift = min(max(shift, -SHIFTS[-1]), SHIFTS[-1])
            q = p * math.exp(shift) / (1 - p + p * math.exp(shift))
            # The linear bet that pays the likelihood ratio at 0 and at 1.
            stakes[j] = (stakes[j] + share * (cash[i] - cash[i + 1])) * (
                1 + (x - p) * (q - p) / (p * (1 - p))
            )
        values.append(sum(stakes) + cash[i + 1])
    return values


@pytest.mark.parametrize("side", ["under", "over", "both"])
def test_e_values_follow_their_definition(side, seed):
    rng = np.random.default_rng(seed)
    z = rng.random(300) < 0.85
    monitor = PromiseMonitor(alpha=0.1, side=side)
    found = [monitor.update([row]).e_value_ for row in z]
    assert found == pytest.approx(slow_e_values(z, np.full(300, 0.9), side), rel=1e-9)


@pytest.mark.parametrize("side", ["under", "over", "both"])
def test_e_values_of_promises_per_row_follow_their_definition(side, seed):
    rng = np.random.default_rng(seed)
    t = rng.uniform(0.02, 0.98, 200)
    z = rng.random(200) < t**2
    expected = slow_e_values(z, t, side, slopes=side == "both")
    assert PromiseMonitor(side=side).update(z, t).e_value_ == pytest.approx(expected[-1], rel=1e-9)


@pytest.mark.parametrize("side", ["under", "over", "both"])
def test_a_kept_promise_is_a_fair_game(side):
    # Every course of 9 rows, weighted with its probability under the promise: the mean capital is 1.
    t = np.array([0.9, 0.3, 0.55, 0.99, 0.02, 0.7, 0.8, 0.4, 0.6])
    mean = 0.0
    for z in itertools.product([0, 1], repeat=t.size):
        chance = np.prod(np.where(z, t, 1 - t))
        mean += chance * PromiseMonitor(side=side).update(z, t).e_value_
    assert mean == pytest.approx(1.0, abs=1e-12)


def test_covering_more_than_promised_never_pays_the_bet_on_less():
    t = np.full(8, 0.8)
    for actual in (0.8, 0.9, 1.0):
        chances = [np.prod(np.where(z, actual, 1 - actual)) for z in itertools.product([0, 1], repeat=8)]
        values = [PromiseMonitor().update(z, t).e_value_ for z in itertools.product([0, 1], repeat=8)]
        assert np.dot(chances, values) <= 1.0 + 1e-12


@settings(max_examples=30, deadline=None)
@given(
    cuts=st.lists(st.integers(1, 400), min_size=1, max_size=12),
    kind=st.sampled_from(["alpha", "promised", "calibration", "risk"]),
)
def test_the_result_does_not_depend_on_how_rows_are_split(cuts, kind):
    rng = np.random.default_rng(sum(cuts))
    n = sum(cuts)
    z, t = rng.random(n) < 0.8, rng.uniform(0.1, 1.0, n)
    whole, parts = (made(kind) for _ in range(2))
    feed(whole, kind, z, t)
    start = 0
    for cut in cuts:
        feed(parts, kind, z[start : start + cut], t[start : start + cut])
        start += cut
    assert parts.to_dict() == whole.to_dict()
    assert parts.e_value_ == whole.e_value_
    assert parts.result() == whole.result()
    assert parts.curve() == whole.curve()


def made(kind):
    if kind == "risk":
        return RiskMonitor(bound=0.3, loss_range=(-1.0, 2.0), side="both")
    options = {"alpha": {"alpha": 0.1}, "promised": {}, "calibration": {"alpha": 0.1, "n_calibration": 99}}
    return PromiseMonitor(side="both", **options[kind])


def feed(monitor, kind, z, t):
    if kind == "risk":
        return monitor.update(3 * t - 1)
    return monitor.update(z, t if kind == "promised" else None)


@pytest.mark.parametrize("kind", ["alpha", "promised", "calibration", "risk"])
@pytest.mark.parametrize("stop", [0, 1, 128, 300])
def test_a_stored_monitor_goes_on_as_if_it_had_never_stopped(kind, stop, seed):
    rng = np.random.default_rng(seed)
    z, t = rng.random(700) < 0.7, rng.uniform(0.2, 0.99, 700)
    whole = feed(made(kind), kind, z, t)
    first = feed(made(kind), kind, z[:stop], t[:stop])
    text = json.dumps(first.to_dict(), allow_nan=False)
    second = type(first).from_dict(json.loads(text))
    assert second.n_rows_ == stop
    assert second.result() == first.result()
    feed(second, kind, z[stop:], t[stop:])
    assert second.to_dict() == whole.to_dict()
    assert second.result() == whole.result()


def test_what_is_stored_stays_small_however_long_the_stream():
    monitor = PromiseMonitor(alpha=0.1).update(np.arange(600_000) % 10 > 0)
    assert len(json.dumps(monitor.to_dict())) < 200_000
    curve = monitor.curve()
    assert 500 < len(curve) <= 1025
    assert curve.x[-1] == 600_000
    assert (np.diff(curve.x) > 0).all()


def test_a_damaged_or_foreign_state_is_refused():
    stored = PromiseMonitor(alpha=0.1).update([True]).to_dict()
    with pytest.raises(InputError, match=r"stored must be what RiskMonitor\.to_dict returned"):
        RiskMonitor.from_dict(stored)
    with pytest.raises(InputError, match="schema 7, this version reads 1"):
        PromiseMonitor.from_dict(stored | {"schema": 7})
    broken = stored | {"state": {key: value for key, value in stored["state"].items() if key != "points"}}
    with pytest.raises(InputError, match="the stored PromiseMonitor is damaged"):
        PromiseMonitor.from_dict(broken)


def test_the_alarm_is_where_the_e_value_first_reaches_its_level_and_it_stays():
    rng = np.random.default_rng(4)
    z = rng.random(400) < 0.7
    monitor = PromiseMonitor(alpha=0.1, false_alarm_rate=0.02)
    e_values = [monitor.update([row]).e_value_ for row in z]
    first = int(np.argmax(np.array(e_values) >= 50.0))
    assert e_values[first] >= 50.0
    assert monitor.alarm_
    assert monitor.alarm_at_ == first
    assert monitor.update(np.ones(2000, dtype=bool)).alarm_at_ == first
    assert monitor.e_value_ < 50.0
    assert str(monitor).startswith(f"alarm at row {first} of 2400: the promise is not kept")


def test_the_time_of_change_is_found():
    rng = np.random.default_rng(1)
    errors = []
    for _ in range(20):
        z = np.concatenate([rng.random(3000) < 0.9, rng.random(800) < 0.7])
        details = PromiseMonitor(alpha=0.1).update(z).result().details
        errors.append(abs(details["changed_at"] - 3000))
    assert np.median(errors) <= 10
    quiet = PromiseMonitor(alpha=0.1).update(rng.random(500) < 0.9)
    assert quiet.result().details["changed_at"] is None


@pytest.mark.parametrize(
    ("side", "t", "z"),
    [("under", 1.0, False), ("over", 0.0, True), ("both", 1.0, False), ("both", 0.0, True)],
)
def test_what_the_promise_rules_out_alarms_alone(side, t, z):
    monitor = PromiseMonitor(side=side).update([True, True], [0.5, 0.5]).update([z], [t])
    assert monitor.alarm_at_ == 2
    assert monitor.e_value_ == math.inf
    assert monitor.result().p_value < 1e-300
    assert monitor.result().p_value > 0
    stored = json.dumps(monitor.to_dict(), allow_nan=False)
    assert PromiseMonitor.from_dict(json.loads(stored)).e_value_ == math.inf


@pytest.mark.parametrize(
    ("side", "t", "z"), [("under", 0.0, True), ("over", 1.0, False), ("both", 1.0, True)]
)
def test_certain_rows_that_keep_the_promise_change_nothing(side, t, z):
    monitor = PromiseMonitor(side=side).update([z] * 300, np.full(300, t))
    assert not monitor.alarm_
    assert monitor.e_value_ <= 1.0 + 1e-9


def test_calibration_rows_move_the_promise_and_halve_the_rate():
    n, rate = 200, 0.05
    law = CalibrationLaw(n, conformal_rank(n, 0.1))
    z = np.random.default_rng(0).random(500) < 0.7
    for side, tail in (("under", rate / 2), ("both", rate / 4)):
        monitor = PromiseMonitor(alpha=0.1, n_calibration=n, side=side).update(z)
        low, high = float(law.quantile(tail)), float(law.quantile(1 - tail))
        assert monitor.result().null_high == pytest.approx(2 / rate)
        twin = Betting(
            side, math.log(2 / rate), np.where(monitor._betting.bets.shifts < 0, low, high)[:, None]
        )
        twin.update(z.astype(float))
        assert monitor.e_value_ == pytest.approx(math.exp(twin.now.log_capital))
        details = monitor.result().details
        # The smallest bet still gains a little below the limit itself.
        assert low - 0.002 < details["alarm_below"] < low
        assert details["promised"] == pytest.approx(0.9)
    reason = PromiseMonitor(alpha=0.1, n_calibration=n).result().reason
    assert reason == "with 200 calibration rows only coverage below 0.8544 is certain to alarm"


def test_the_p_value_with_calibration_rows_counts_both_halves():
    z = np.random.default_rng(0).random(3000) < 0.5
    result = PromiseMonitor(alpha=0.1, n_calibration=200).update(z).result()
    assert result.p_value == pytest.approx(0.025, abs=1e-6)
    assert PromiseMonitor(alpha=0.1).update(z).result().p_value < 1e-20


def test_coverage_just_below_the_line_alarms_and_just_above_it_need_not():
    rng = np.random.default_rng(0)
    line = PromiseMonitor(alpha=0.1).result().details["alarm_below"]
    assert 0.898 < line < 0.9
    monitor = PromiseMonitor(alpha=0.1, n_calibration=200)
    line = monitor.result().details["alarm_below"]
    assert monitor.update(rng.random(400_000) < line - 0.004).alarm_
    assert not PromiseMonitor(alpha=0.1, n_calibration=200).update(rng.random(400_000) < line + 0.004).alarm_


def test_the_rows_it_takes_are_told_and_roughly_right():
    rng = np.random.default_rng(0)
    told = PromiseMonitor(alpha=0.1).result().details["rows_to_alarm"]
    for coverage in (0.85, 0.8, 0.7):
        delays = [PromiseMonitor(alpha=0.1).update(rng.random(3000) < coverage).alarm_at_ for _ in range(200)]
        assert np.median(delays) == pytest.approx(told[f"{coverage:g}"], rel=0.3)


def test_probabilities_that_are_too_extreme_are_seen_though_right_on_average():
    rng = np.random.default_rng(0)
    true = rng.beta(2, 2, 4000)
    z = rng.random(4000) < true
    odds = true / (1 - true)
    stated = odds**1.6 / (1 + odds**1.6)
    assert abs(z.mean() - stated.mean()) < 0.02
    assert PromiseMonitor(side="both").update(z, stated).alarm_
    assert not PromiseMonitor(side="both").update(z, true).alarm_


def test_the_running_mean_and_its_band_are_in_the_curve():
    z = np.random.default_rng(0).random(1000) < 0.9
    monitor = PromiseMonitor(alpha=0.1).update(z)
    curve = monitor.curve("mean")
    assert curve.name == "running coverage"
    assert curve.y[-1] == pytest.approx(z.mean())
    assert curve.low[-1] < z.mean() < curve.high[-1]
    assert curve.high[-1] - curve.low[-1] < 0.1
    assert curve.confidence == 0.95
    evidence = monitor.curve()
    assert evidence.details["mean_low"].tolist() == curve.low.tolist()
    assert evidence.null_high[0] == pytest.approx(math.log10(20))
    with pytest.raises(InputError, match='quantity must be "evidence" or "mean"'):
        monitor.curve("coverage")


def test_an_empty_stream_says_nothing():
    monitor = PromiseMonitor(alpha=0.1).update([])
    assert (monitor.e_value_, monitor.alarm_, monitor.n_rows_) == (1.0, False, 0)
    assert monitor.result().p_value == 1.0
    assert monitor.result().details["mean"] is None
    assert len(monitor.curve()) == len(monitor.curve("mean")) == 0
    assert str(monitor) == "no alarm in 0 rows (false-alarm rate 0.05)"


@pytest.mark.parametrize(
    ("options", "rows", "message"),
    [
        ({"side": "up"}, ([True],), "side must be one of under, over, both, got 'up'"),
        (
            {"alpha": 0.1, "n_calibration": 9, "side": "up"},
            ([True],),
            "side must be one of under, over, both",
        ),
        ({"alpha": 90}, ([True],), "alpha must lie strictly between 0 and 1, got 90"),
        (
            {"alpha": 0.1, "false_alarm_rate": 0},
            ([True],),
            "false_alarm_rate must lie strictly between 0 and 1",
        ),
        ({"alpha": 0.1, "n_calibration": 0}, ([True],), "n_calibration must be a whole number of at least 1"),
        ({"n_calibration": 100}, ([True],), "n_calibration needs alpha"),
        ({}, ([True],), "the promise is missing: give alpha to the monitor or promised to update"),
        ({"alpha": 0.1}, ([True], [0.9]), "promised cannot be combined with alpha"),
        (
            {"alpha": 0.1, "n_calibration": 9},
            ([True], [0.9]),
            "promised cannot be combined with n_calibration",
        ),
        ({}, ([True], [1.2]), "promised must lie between 0 and 1, got 1.2 at row 0"),
        ({}, ([True], [0.2, 0.3]), "covered and promised must have the same length, got 1 and 2"),
        ({"alpha": 0.1}, ([0.5],), "covered"),
    ],
)
def test_what_makes_no_sense_is_refused(options, rows, message):
    with pytest.raises(InputError, match=message):
        PromiseMonitor(**options).update(*rows)


def test_a_refused_update_leaves_the_monitor_as_it_was():
    monitor = PromiseMonitor().update([True, False], [0.9, 0.8])
    before = monitor.to_dict()
    with pytest.raises(InputError):
        monitor.update([True, True], [0.5, 2.0])
    assert monitor.to_dict() == before


def test_one_promise_for_all_rows_may_be_a_number():
    z = np.random.default_rng(0).random(200) < 0.8
    assert PromiseMonitor().update(z, 0.9).e_value_ == PromiseMonitor().update(z, np.full(200, 0.9)).e_value_


def test_a_risk_of_zero_and_one_is_coverage_seen_from_the_other_side():
    z = np.random.default_rng(0).random(500) < 0.85
    loss = RiskMonitor(bound=0.1).update(1.0 - z)
    assert loss.e_value_ == pytest.approx(PromiseMonitor(alpha=0.1).update(z).e_value_, rel=1e-9)


def test_the_units_of_a_loss_do_not_matter():
    x = np.random.default_rng(0).beta(2, 8, 500)
    plain = RiskMonitor(bound=0.15).update(x)
    other = RiskMonitor(bound=5 + 1.5, loss_range=(5, 15)).update(5 + 10 * x)
    assert other.e_value_ == pytest.approx(plain.e_value_, rel=1e-9)
    assert other.result().details["mean"] == pytest.approx(5 + 10 * x.mean())
    assert other.result().details["promised"] == pytest.approx(6.5)
    assert other.result().details["alarm_above"] == pytest.approx(
        5 + 10 * plain.result().details["alarm_above"]
    )


@pytest.mark.parametrize(
    ("options", "losses", "message"),
    [
        ({"bound": 2.0}, [], r"bound must lie in loss_range \[0, 1\], got 2.0"),
        ({"bound": 0.5, "loss_range": (1, 0)}, [], "loss_range must be a finite"),
        ({"bound": 0.5, "loss_range": (0, math.inf)}, [], "loss_range must be a finite"),
        ({"bound": 0.5}, [0.2, 1.5], r"losses must lie in loss_range \[0, 1\], got 1.5 at row 1"),
        ({"bound": 0.5}, [math.nan], "losses has 1 NaN"),
    ],
)
def test_a_loss_outside_its_range_is_refused(options, losses, message):
    with pytest.raises(InputError, match=message):
        RiskMonitor(**options).update(losses)
