"""Displays: the curve is the measured one, by hand, with its null band, on the axes that were given."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.inference import CoverageLaw, clopper_pearson

matplotlib = pytest.importorskip("matplotlib", reason="plots need calipers[plots]")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from calipers.displays import (  # noqa: E402
    CoverageDisplay,
    DifficultyDisplay,
    ReliabilityDisplay,
    TimeDisplay,
)
from calipers.displays.curves import pieces_of  # noqa: E402


@pytest.fixture(autouse=True)
def close() -> Any:
    yield
    plt.close("all")


# Ten rows, y = 0..9; the interval [0, 6] covers seven, group a (even y) 4 of 5, group b (odd) 3 of 5.
Y = np.arange(10.0)
INTERVALS = np.tile([0.0, 6.0], (10, 1))
GROUPS = np.where(np.arange(10) % 2, "b", "a")


def test_coverage_by_group_counts_rows_and_shows_the_worst_first() -> None:
    _, axes = plt.subplots()
    shown = CoverageDisplay.from_predictions(Y, INTERVALS, GROUPS, alpha=0.25, ax=axes)
    assert shown.ax_ is axes
    assert shown.figure_ is axes.figure
    assert shown.curve.details["labels"] == ["b", "a"]
    assert shown.curve.y.tolist() == [0.6, 0.8]
    each = clopper_pearson(3, 5, confidence=0.95**0.5)
    assert (shown.curve.low[0], shown.curve.high[0]) == pytest.approx((each.low, each.high))
    band = CoverageLaw(5, 0.25).share_interval(0.95)
    assert (shown.curve.null_low[0], shown.curve.null_high[0]) == (band.low, band.high)
    assert shown.estimate.value == 0.7


def test_repeated_rows_and_whole_weights_give_the_same_display() -> None:
    weights = np.arange(10) % 3
    weighted = CoverageDisplay.from_predictions(Y, INTERVALS, GROUPS, alpha=0.25, sample_weight=weights)
    rows = np.repeat(np.arange(10), weights)
    repeated = CoverageDisplay.from_predictions(Y[rows], INTERVALS[rows], GROUPS[rows], alpha=0.25)
    for key in ("y", "low", "high", "null_low", "null_high"):
        assert getattr(weighted.curve, key).tolist() == getattr(repeated.curve, key).tolist()


def test_importance_weights_have_no_null_band() -> None:
    shown = CoverageDisplay.from_predictions(
        Y, INTERVALS, GROUPS, alpha=0.25, sample_weight=np.linspace(0.5, 1.4, 10)
    )
    assert shown.curve.null_low is None
    assert "no exact null law" in shown.curve.reason


def test_coverage_along_difficulty_starts_with_the_hardest_rows() -> None:
    shown = DifficultyDisplay.from_predictions(Y, INTERVALS, -Y, alpha=0.25, n_bins=2)
    assert shown.curve.y.tolist() == [0.4, 1.0]  # 5..9: 5 and 6 are covered; 0..4: all
    assert shown.curve.x.tolist() == [0.25, 0.75]
    assert shown.estimate.name == "T-CV"


def test_sizes_along_difficulty_have_the_band_of_shuffled_sizes() -> None:
    widths = np.tile(np.arange(1.0, 5.0), 50)
    intervals = np.column_stack([np.zeros(200), widths])
    easy_last = np.repeat([0.0, 1.0], 100)
    shown = DifficultyDisplay.from_predictions(
        np.zeros(200), intervals, easy_last, alpha=0.1, n_bins=2, quantity="size"
    )
    assert shown.curve.y.tolist() == [2.5, 2.5]
    # Variance of 1..4 is 1.25; half the rows: 1.96 sqrt(1.25 * (1 - 1/2) / 100).
    assert shown.curve.null_high[0] - 2.5 == pytest.approx(1.959964 * np.sqrt(0.00625), rel=1e-6)
    with pytest.raises(InputError, match="quantity must be one of coverage, size, got 'width'"):
        DifficultyDisplay.from_predictions(Y, INTERVALS, Y, alpha=0.1, quantity="width")


def test_rows_of_one_time_stay_together_and_dates_are_dates() -> None:
    day = np.datetime64("2024-03-01") + np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3])
    shown = TimeDisplay.from_predictions(Y, INTERVALS, day, alpha=0.25, n_pieces=2, random_state=0)
    assert shown.curve.details["rows"].tolist() == [5.0, 5.0]
    assert shown.curve.y.tolist() == [1.0, 0.4]
    assert shown.curve.details["dates"]
    assert str(np.float64(shown.curve.x[0]).astype("datetime64[s]"))[:10] == "2024-03-01"
    codes, centres = pieces_of(np.array([7.0, 7.0, 7.0]), 4)
    assert (codes.tolist(), centres.tolist()) == ([0, 0, 0], [7.0])


def test_numbers_as_times_stay_numbers() -> None:
    shown = TimeDisplay.from_predictions(Y, INTERVALS, np.arange(10), alpha=0.25, n_pieces=2, random_state=0)
    assert not shown.curve.details["dates"]
    assert shown.curve.x.tolist() == [2.0, 7.0]


def test_reliability_has_its_band_and_the_calibration_error() -> None:
    rng = np.random.default_rng(0)
    stated = np.round(rng.random(2000), 1)
    shown = ReliabilityDisplay.from_predictions(rng.random(2000) < stated**2, stated, random_state=0)
    assert shown.curve.null_low is not None
    assert shown.estimate.p_value < 0.01
    assert repr(shown) == "ReliabilityDisplay('Stated against observed', 11 points)"
