"""The largest departure over windows of time against its definition, and when it says that things changed."""

import datetime as dt
from math import comb

import numpy as np
import polars as pl
import pytest

from calipers.engines import Rows, state_of
from calipers.exceptions import InputError
from calipers.metrics import change_over_time
from calipers.metrics.over_time.scan_windows import flat_windows, target_windows
from calipers.metrics.over_time.time_nulls import flat_null, target_null
from calipers.metrics.over_time.time_units import TimeUnits

START = np.datetime64("2024-01-01")


def broken(n=2000, at=0.5, before=0.95, after=0.8, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random(n) < np.where(np.arange(n) < at * n, before, after)


def units_of(covered, time, promised):
    t = np.broadcast_to(np.asarray(promised, dtype=float), len(covered)).copy()
    return TimeUnits.of_rows(np.asarray(time), t, np.asarray(covered, dtype=bool), None)


def charge(share, at_end, longest):
    end = 0.7 * np.sqrt(2 * np.log(1 + np.log(longest / share)))
    return end if at_end else max(np.sqrt(2 * np.log(1 / share)) - 0.5, end + 0.4)


def test_flat_is_the_departure_of_a_window_from_what_all_times_have_in_common():
    covered, time = broken(200, after=0.9), np.arange(200)
    error = change_over_time(covered, time, alpha=0.1, random_state=0)
    # Every split of the data and every window of the grid, by hand.
    share = covered.mean()
    variance = share * (1 - share) * 200 / 199
    windows, best = flat_windows(np.full(200, variance)), (-np.inf, 0.0)
    for first, stop in zip(windows.start, windows.stop, strict=True):
        m = stop - first
        z = (covered[first:stop].sum() - m * share) / np.sqrt(variance * m * (1 - m / 200))
        s = min(m, 200 - m) / 200
        best = max(best, (abs(z) - charge(s, first == 0, 0.5), abs(z)))
    assert error.value == pytest.approx(best[1])
    splits = np.arange(1, 200)
    is_long = variance * splits * (1 - splits / 200) >= min(5, 200 * variance / 5)
    assert set(splits[is_long].tolist()) == set(windows.stop[windows.start == 0].tolist())


def test_target_is_the_departure_of_a_window_from_the_promise():
    covered = broken(120, before=0.9, after=0.6)
    promised = np.linspace(0.7, 0.95, 120)
    error = change_over_time(covered, np.arange(120), alpha=1 - promised, null="target", random_state=0)
    noise = promised * (1 - promised)
    windows, best = target_windows(noise, np.zeros(120)), (-np.inf, 0.0)
    for first, stop in zip(windows.start, windows.stop, strict=True):
        inside = slice(first, stop)
        z = np.sum(covered[inside] - promised[inside]) / np.sqrt(np.sum(noise[inside]))
        s = np.sum(noise[inside]) / np.sum(noise)
        best = max(best, (abs(z) - charge(s, first == 0 or stop == 120, 1.0), abs(z)))
    assert error.value == pytest.approx(best[1])


def test_windows_reach_from_a_few_rows_to_all_of_them():
    windows = target_windows(np.full(256, 1.0), np.zeros(256))
    length = windows.stop - windows.start
    assert length.min() == 5  # five times the noise of a row
    assert length.max() == 256
    # Any window has one on the grid whose length and overlap differ by less than a third.
    rng = np.random.default_rng(0)
    for _ in range(50):
        a, b = np.sort(rng.choice(257, 2, replace=False))
        if b - a < 8:
            continue
        overlap = np.minimum(windows.stop, b) - np.maximum(windows.start, a)
        assert np.max(overlap / np.maximum(length, b - a)) > 0.7


def test_exact_law_of_a_single_break():
    # Two times of ten rows: the only window is the first of them, and the law is hypergeometric.
    covered = np.array([True] * 9 + [False] + [True] * 4 + [False] * 6)
    time = np.repeat([0, 1], 10)
    error = change_over_time(covered, time, alpha=0.1, random_state=0)
    extreme = sum(comb(13, k) * comb(7, 10 - k) for k in range(3, 11) if abs(k - 6.5) >= 2.5) / comb(20, 10)
    assert error.p_value == pytest.approx(extreme, abs=4 * np.sqrt(extreme / 999))
    assert error.details["coverage_before"] == 0.9
    assert error.details["coverage_after"] == 0.4


@pytest.mark.parametrize("null", ["flat", "target"])
def test_a_break_is_dated_in_the_unit_that_was_given(null):
    days = START + (np.arange(2000) // 10).astype("timedelta64[D]")
    found = change_over_time(broken(at=0.75), days, alpha=0.1, null=null, random_state=0).details
    assert isinstance(found["changed_at"], np.datetime64)
    assert abs((found["changed_at"] - np.datetime64("2024-05-30")).astype(int)) <= 3
    assert found["until"] is None
    assert found["coverage_before"] > 0.93 > 0.85 > found["coverage_after"]
    assert found["rows_before"] + found["rows_after"] == 2000
    assert found["sign"] == (-1 if found["window"][0] == found["changed_at"] else 1)


@pytest.mark.parametrize(
    ("time", "kind"),
    [
        (np.arange(2000) * 0.5, np.floating),
        ([str(START + np.timedelta64(k // 10, "D")) for k in range(2000)], str),
        ([dt.date(2024, 1, 1) + dt.timedelta(days=k // 10) for k in range(2000)], dt.date),
        (pl.Series([dt.datetime(2024, 1, 1) + dt.timedelta(hours=k) for k in range(2000)]), np.datetime64),
    ],
)
def test_times_come_back_as_they_were_given(time, kind):
    found = change_over_time(broken(), time, alpha=0.1, random_state=0).details
    assert isinstance(found["changed_at"], kind)
    assert str(found["changed_at"])[:7] in found["sentence"]


def test_a_bad_week_has_a_beginning_and_an_end():
    n = 5000
    covered = np.random.default_rng(0).random(n) < np.where(
        (np.arange(n) >= 3000) & (np.arange(n) < 3200), 0.6, 0.9
    )
    found = change_over_time(covered, np.arange(n), alpha=0.1, random_state=0).details
    assert found["changed_at"] == pytest.approx(3000, abs=25)
    assert found["until"] == pytest.approx(3200, abs=25)
    assert found["coverage_after"] < 0.7 < 0.88 < found["coverage_before"]
    assert found["sentence"].endswith(f"until {found['until']}")


def test_the_place_of_a_break_is_found_between_the_cells():
    n = 50_000  # 195 times to a cell
    covered = np.arange(n) < 20_050
    found = change_over_time(covered, np.arange(n), alpha=0.5, random_state=0).details
    assert found["changed_at"] == 20_050


def test_rows_of_one_time_stay_together():
    # All misses come first in each day: an order of rows that means nothing.
    covered = np.tile([False] * 2 + [True] * 18, 30)
    days = np.repeat(np.arange(30), 20)
    error = change_over_time(covered, days, alpha=0.1, random_state=0)
    assert error.value == 0.0
    assert error.p_value == 1.0


def test_the_order_of_rows_changes_nothing():
    covered, time = broken(500, after=0.93), np.arange(500) // 3
    alpha = np.random.default_rng(2).uniform(0.05, 0.3, 500)
    order = np.random.default_rng(1).permutation(500)
    for null in ("flat", "target"):
        once = change_over_time(covered, time, alpha=alpha, null=null, random_state=0)
        again = change_over_time(covered[order], time[order], alpha=alpha[order], null=null, random_state=0)
        assert once == again


@pytest.mark.parametrize("null", ["flat", "target"])
@pytest.mark.parametrize("per_row", [False, True])
def test_whole_weights_are_repeated_rows_in_every_number(null, per_row):
    rng = np.random.default_rng(1)
    covered, time, weights = broken(300, after=0.93), np.arange(300) // 2, rng.integers(0, 4, 300)
    alpha = rng.choice([0.05, 0.1, 0.3], 300) if per_row else np.float64(0.1)
    rows = np.repeat(np.arange(300), weights)
    weighted = change_over_time(covered, time, alpha=alpha, null=null, sample_weight=weights, random_state=0)
    repeated = change_over_time(
        covered[rows], time[rows], alpha=alpha[rows] if per_row else alpha, null=null, random_state=0
    )
    assert weighted == repeated


def test_importance_weights_have_no_scale_and_no_test():
    covered, weights = broken(300), np.random.default_rng(1).uniform(0.5, 1.5, 300)
    for null in ("flat", "target"):
        found = [
            change_over_time(covered, np.arange(300), alpha=0.1, null=null, sample_weight=c * weights)
            for c in (1.0, 2.0)
        ]
        assert found[0].value == pytest.approx(found[1].value)
        assert found[0].p_value is None
        assert found[0].details["changed_at"] == found[1].details["changed_at"]


def test_one_promise_per_row_is_the_same_as_one_for_all():
    covered = broken(400, after=0.93)
    one = change_over_time(covered, np.arange(400), alpha=0.1, null="target", random_state=0)
    each = change_over_time(covered, np.arange(400), alpha=np.full(400, 0.1), null="target", random_state=0)
    assert one.value == pytest.approx(each.value)
    assert one.p_value == each.p_value


def test_promises_that_move_with_time_and_are_kept_are_no_change():
    rng = np.random.default_rng(0)
    promised = np.clip(rng.normal(np.linspace(0.6, 0.95, 3000), 0.03), 0, 1)
    covered = rng.random(3000) < promised
    # Coverage itself rises from 0.6 to 0.95.
    assert change_over_time(covered, np.arange(3000), alpha=0.2, random_state=0).p_value < 1e-6
    for null in ("flat", "target"):
        error = change_over_time(covered, np.arange(3000), alpha=1 - promised, null=null, random_state=0)
        assert error.p_value > 0.01


def test_flat_does_not_mind_a_level_that_is_off_at_all_times():
    covered = np.random.default_rng(0).random(2000) < 0.8
    assert change_over_time(covered, np.arange(2000), alpha=0.1, random_state=0).p_value > 0.05
    off = change_over_time(covered, np.arange(2000), alpha=0.1, null="target", random_state=0)
    assert off.p_value < 1e-6


def test_nothing_changed_where_all_times_are_off_together():
    covered = np.zeros(200, dtype=bool)
    found = change_over_time(covered, np.arange(200), alpha=0.5, null="target", random_state=0)
    assert found.details["changed_at"] is None
    assert found.details["window"] == (0, 199)
    assert found.details["sentence"] == "0.0% covered over the whole time"


def test_the_luck_of_a_calibration_sample_is_no_change():
    covered = np.random.default_rng(0).random(5000) < 0.93  # two standard deviations of 200 calibration rows
    plain = change_over_time(covered, np.arange(5000), alpha=0.1, null="target", random_state=0)
    known = change_over_time(
        covered, np.arange(5000), alpha=0.1, null="target", n_calibration=200, random_state=0
    )
    assert plain.p_value < 1e-6
    assert known.p_value > 0.05


def test_levels_of_one_calibration_sample_are_its_order_statistics():
    units = units_of([True] * 4, [0, 0, 1, 1], [0.9, 0.5, 0.9, 0.5])
    null = target_null(units, 99)
    drawn = null.draw(20_000, np.random.default_rng(0))
    # Per cell one row of each level: heads minus 0.9 and 0.5, variance p (1 - p) and twice the covariance.
    inside = 0.5 * 0.1 / 101
    assert drawn.mean() == pytest.approx(0, abs=0.01)
    assert drawn[:, 0].var() == pytest.approx(0.09 + 0.25 + 2 * inside, rel=0.05)
    between = (0.09 + 0.25) / 101 + 2 * inside
    assert np.cov(drawn.T)[0, 1] == pytest.approx(between, abs=0.006)


def test_shuffling_keeps_the_number_of_hits_of_every_promise():
    rng = np.random.default_rng(0)
    promised = rng.choice([0.3, 0.9], 60)
    units = units_of(rng.random(60) < promised, np.arange(60) // 6, promised)
    drawn = flat_null(units).draw(50, rng)
    assert drawn.sum(axis=1) == pytest.approx(np.zeros(50), abs=1e-9)
    assert len(np.unique(drawn[:, 0].round(9))) > 3


def test_a_broken_promise_of_certainty_rejects_by_itself():
    alpha = np.full(400, 0.1)
    alpha[:10] = 0.0
    covered = np.random.default_rng(0).random(400) < 0.9
    covered[:10] = True
    kept = change_over_time(covered, np.arange(400), alpha=alpha, null="target", random_state=0)
    covered[3] = False
    failed = change_over_time(covered, np.arange(400), alpha=alpha, null="target", random_state=0)
    assert kept.p_value > 0.01
    assert failed.p_value <= failed.details["resolution"]


@pytest.mark.parametrize(
    ("covered", "time"),
    [(np.ones(50, dtype=bool), np.arange(50)), (broken(50), np.zeros(50)), ([True], [3.0])],
)
def test_where_nothing_can_change_nothing_is_said(covered, time):
    error = change_over_time(covered, time, alpha=0.1, random_state=0)
    assert error.value == 0.0
    assert error.p_value == 1.0
    assert error.details["changed_at"] is None


def test_small_p_values_are_resolved():
    error = change_over_time(broken(5000), np.arange(5000), alpha=0.1, random_state=0)
    assert 0 < error.p_value < 1e-12


def test_the_limit_is_for_windows_of_the_same_length():
    error = change_over_time(broken(400, after=0.9), np.arange(400), alpha=0.1, random_state=0)
    assert (error.p_value <= 0.05) == (error.value > error.null_high)


@pytest.mark.parametrize("promised", [None, "given"])
def test_a_stream_of_blocks_gives_the_same_estimate(promised):
    rng = np.random.default_rng(1)
    covered, days = broken(900, after=0.93), START + (np.arange(900) // 3).astype("timedelta64[D]")
    given = {"covered": covered, "time": days}
    alpha = 0.1
    if promised is not None:
        alpha = rng.choice([0.05, 0.2], 900)
        given["promised"] = 1 - alpha
    parts = []
    for first in (600, 0, 300):
        state = state_of("change_over_time", alpha=0.1, random_state=0)
        state.absorb(Rows({name: column[first : first + 300] for name, column in given.items()}))
        parts.append(state)
    merged = parts[0].merge(parts[1]).merge(parts[2]).finish()
    assert merged == change_over_time(covered, days, alpha=alpha, random_state=0)
    assert isinstance(merged.details["changed_at"], np.datetime64)


def test_too_many_times_are_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr("calipers.metrics.over_time.time_state.MAX_TIMES", 10)
    with pytest.raises(InputError, match="time takes more than 10 values; round it"):
        change_over_time(broken(50), np.arange(50), alpha=0.1)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"null": "none"}, "null must be one of flat, target"),
        ({"alpha": 1.5}, "alpha must lie strictly between 0 and 1"),
        ({"alpha": np.full(50, 1.5)}, r"alpha must lie between 0 and 1 in every row, got 1.5 at row 0"),
        ({"alpha": np.full(49, 0.1)}, "one entry per row"),
        ({"time": np.arange(49)}, "must have the same length"),
        ({"time": ["soon"] * 50}, "must hold numbers, dates or text like"),
        ({"null": "target", "n_calibration": 0}, "n_calibration must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_measured_is_refused(change, said):
    with pytest.raises(InputError, match=said):
        change_over_time(**({"covered": broken(50), "time": np.arange(50), "alpha": 0.1} | change))
