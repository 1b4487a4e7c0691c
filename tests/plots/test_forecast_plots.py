"""Forecast plots draw what they are given, and say what they leave out."""

from __future__ import annotations

import io

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.performance import LossMonitor
from calipers.plots import (
    plot_coverage_histogram,
    plot_forecast_bars,
    plot_interval_histograms,
    plot_learning_curves,
    plot_monitor,
    plot_width_histograms,
)
from calipers.results import Curve, Estimate, EstimateTable

BARS = EstimateTable(
    [
        Estimate(name="short", value=1.0, low=0.5, high=2.0),
        Estimate(name="open", value=1.0, low=float("-inf"), high=float("inf")),
    ]
)


def saved(ax):
    """The figure can be written."""
    stream = io.BytesIO()
    ax.figure.savefig(stream, format="png")
    return stream.getvalue().startswith(b"\x89PNG")


def test_bars_span_the_interval_and_diamonds_mark_what_came():
    ax = plot_forecast_bars(BARS, realised={"short": [0.7, 3.0]}, loss_name="absolute error")
    bar = ax.patches[0]
    assert (bar.get_x(), bar.get_x() + bar.get_width()) == (0.5, 2.0)
    diamonds = [line for line in ax.lines if line.get_marker() == "D"]
    assert diamonds[0].get_xdata().tolist() == [0.7, 3.0]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["short", "open"]
    assert ax.get_xlabel() == "absolute error"
    assert saved(ax)


def test_infinite_ends_reach_the_edge_with_an_arrow():
    ax = plot_forecast_bars(BARS)
    left, right = ax.get_xlim()
    bar = ax.patches[1]
    assert (bar.get_x(), bar.get_x() + bar.get_width()) == (pytest.approx(left), pytest.approx(right))
    assert {line.get_marker() for line in ax.lines if len(line.get_xdata())} == {"<", ">"}


def test_histograms_count_the_infinite_ends_they_leave_out():
    high = np.array([2.0, 2.5, np.inf])
    ax = plot_interval_histograms([0.1, 0.2, 0.1], high, [1.0, 1.1, 1.2], name="SVM")
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["average test loss", "lower ends", "upper ends (1 beyond)"]
    assert saved(ax)
    with pytest.raises(InputError, match="nothing finite to draw"):
        plot_interval_histograms([np.inf], [np.inf], [np.inf])


def test_coverage_has_its_target_and_the_band_of_the_exact_law():
    ax = plot_coverage_histogram([0.88, 0.9, 0.92], target=0.9, expected=(0.85, 0.95), name="GD")
    assert ax.lines[0].get_xdata() == [0.9, 0.9]
    assert ax.get_title() == "GD"
    assert saved(ax)


def test_coverage_bins_hold_whole_counts():
    counts = np.repeat(np.arange(60, 100), 5)
    ax = plot_coverage_histogram(counts / 100, target=0.8, n_test=100)
    heights = [bar.get_height() for bar in ax.patches]
    # Two counts of five trials each per bin, and no empty bin between.
    assert heights == [10] * 20


def test_widths_share_their_bins():
    ax = plot_width_histograms({"GD": [2.0, 3.0], "SGD": [1.0, 1.5, np.inf]})
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    assert labels == ["GD", "SGD (1 beyond)"]
    assert saved(ax)
    with pytest.raises(InputError, match="widths must hold at least one method"):
        plot_width_histograms({})


def test_learning_curves_leave_out_infinite_bands():
    curve = Curve(
        name="ridge",
        x=[5, 10, 20],
        y=[3, 2, 1],
        low=[1, 1, -np.inf],
        high=[5, 4, np.inf],
        x_label="training rows",
    )
    ax = plot_learning_curves({"ridge": curve})
    assert ax.lines[0].get_xdata().tolist() == [5, 10, 20]
    assert ax.collections[0].get_paths()[0].vertices[:, 0].max() == 10
    assert saved(ax)


def test_the_monitor_shows_its_alarm_level():
    monitor = LossMonitor([1.0, 2.0, 3.0], random_state=0).update([2.0, 9.0])
    ax = plot_monitor(monitor.curve())
    assert ax.lines[1].get_ydata().tolist() == [2.0, 2.0]
    assert saved(ax)


def test_given_axes_are_drawn_on():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    assert plot_forecast_bars(BARS, ax=ax) is ax
