"""What will it score next? Intervals with realised losses, histograms over trials, curves, the monitor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.plots.axes import new_axes
from calipers.results import Curve, Estimate

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
GREY = "#8c8c8c"
# From so many values on, a histogram leaves out the largest half per cent.
_MANY = 1000


def plot_forecast_bars(
    forecasts: Mapping[str, Estimate],
    *,
    realised: Mapping[str, Any] | None = None,
    loss_name: str = "loss",
    ax: Any = None,
) -> Any:
    """One bar per method from the low to the high end of its forecast, realised losses as diamonds.

    Parameters
    ----------
    forecasts : mapping of Estimate, or EstimateTable
        Interval per method; an infinite end runs to the edge of the axes with an arrow.
    realised : mapping or None
        Method to one loss or several, observed later.
    loss_name : str
        Label of the axis.
    ax : matplotlib axes or None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from calipers.performance import forecast_losses
    >>> from calipers.plots import plot_forecast_bars
    >>> table = {"model": forecast_losses(range(1, 100)).to_estimate("model")}
    >>> ax = plot_forecast_bars(table, realised={"model": [3.0, 99.0]})
    >>> ax.get_xlabel()
    'loss'
    """
    ax = new_axes(ax, size=(6.4, 0.8 + 0.5 * len(forecasts)))
    left, right = _limits(forecasts, realised or {})
    for place, (name, estimate) in enumerate(forecasts.items()):
        low, high = _end(estimate.low, left), _end(estimate.high, right)
        colour = COLOURS[place % len(COLOURS)]
        ax.barh(place, high - low, left=low, height=0.5, color=colour, alpha=0.55, edgecolor=colour)
        for end, edge, mark in ((estimate.low, left, "<"), (estimate.high, right, ">")):
            if end is not None and np.isinf(end):
                ax.plot([edge], [place], mark, color=colour, clip_on=False)
        points = np.atleast_1d(np.asarray((realised or {}).get(name, []), dtype=float))
        ax.plot(points, np.full(points.size, place), "D", color="black", markersize=5, zorder=3)
    ax.set_yticks(range(len(forecasts)), list(forecasts))
    ax.set_ylim(len(forecasts) - 0.5, -0.5)
    ax.set_xlim(left, right)
    ax.set_xlabel(loss_name)
    return ax


def plot_interval_histograms(
    low: Any, high: Any, reference: Any, *, name: str = "", colour: str = COLOURS[0], ax: Any = None
) -> Any:
    """Histograms over trials: average test loss (grey), lower ends (plain) and upper ends (hatched).

    Parameters
    ----------
    low, high, reference : arrays (trials,)
        Ends of the interval and average test loss of every trial. Infinite values, and the few that would
        stretch the axis of many trials (beyond the 99.5 % point), are left out and counted in the legend.
    name, colour : str
        Title, and colour of the ends.
    ax : matplotlib axes or None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from calipers.plots import plot_interval_histograms
    >>> plot_interval_histograms([0.1, 0.2], [2.0, 2.1], [1.0, 1.1], name="SVM").get_title()
    'SVM'
    """
    ax = new_axes(ax)
    bins = _bins(low, high, reference)
    ax.hist(_finite(reference), bins=bins, color=GREY, label=f"average test loss{_left_out(reference, bins)}")
    ax.hist(_finite(low), bins=bins, color=colour, label=f"lower ends{_left_out(low, bins)}")
    ax.hist(
        _finite(high), bins=bins, facecolor="none", edgecolor=colour, hatch="///", linewidth=0.6,
        label=f"upper ends{_left_out(high, bins)}",
    )  # fmt: skip
    ax.set_xlabel("loss")
    ax.set_ylabel("trials")
    ax.set_title(name)
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_coverage_histogram(
    coverage: Any,
    *,
    target: float,
    expected: tuple[float, float] | None = None,
    n_test: int | None = None,
    name: str = "",
    colour: str = COLOURS[0],
    ax: Any = None,
) -> Any:
    """Histogram over trials of the share of test losses inside the interval, with the target.

    Parameters
    ----------
    coverage : array (trials,)
        Shares.
    target : float
        Promised coverage, drawn as a line.
    expected : (float, float) or None
        Band that the exact law gives for 95 % of trials, drawn in grey.
    n_test : int or None
        Test losses behind each share: bins then hold whole counts each, and do not beat against them.
    name, colour : str
        Title, and colour of the bars.
    ax : matplotlib axes or None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from calipers.plots import plot_coverage_histogram
    >>> plot_coverage_histogram([0.89, 0.91], target=0.9, expected=(0.87, 0.93)).get_xlabel()
    'share of test losses covered'
    """
    ax = new_axes(ax)
    values = np.asarray(coverage, dtype=float)
    if expected is not None:
        ax.axvspan(*expected, color=GREY, alpha=0.2, label="95 % of trials, exact law")
    ax.hist(values, bins=_share_bins(values, n_test), color=colour, alpha=0.8)
    ax.axvline(target, color="black", linestyle="--", label=f"target {target:g}")
    ax.set_xlabel("share of test losses covered")
    ax.set_ylabel("trials")
    ax.set_title(name)
    ax.legend(frameon=False, fontsize="small")
    return ax


def plot_width_histograms(widths: Mapping[str, Any], *, ax: Any = None) -> Any:
    """Widths of the intervals over trials, one histogram per method.

    Parameters
    ----------
    widths : mapping of name to array (trials,)
        Width of the interval of every trial, per method.
    ax : matplotlib axes or None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from calipers.plots import plot_width_histograms
    >>> plot_width_histograms({"GD": [2.0, 2.2], "SGD": [1.0, 1.1]}).get_xlabel()
    'width of the interval'
    """
    ax = new_axes(ax)
    if not widths:
        raise InputError("widths must hold at least one method, got none.")
    bins = _bins(*widths.values())
    for place, (name, values) in enumerate(widths.items()):
        label = f"{name}{_left_out(values, bins)}"
        ax.hist(_finite(values), bins=bins, alpha=0.6, color=COLOURS[place % len(COLOURS)], label=label)
    ax.set_xlabel("width of the interval")
    ax.set_ylabel("trials")
    ax.legend(frameon=False)
    return ax


def plot_learning_curves(curves: Mapping[str, Curve] | Sequence[Curve], *, ax: Any = None) -> Any:
    """Forecast of the next loss against the training size: median and interval per algorithm.

    Parameters
    ----------
    curves : mapping of name to Curve, or sequence of Curve
        From `calipers.performance.forecast_learning_curves`; infinite ends are not filled.
    ax : matplotlib axes or None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from calipers.plots import plot_learning_curves
    >>> from calipers.results import Curve
    >>> curve = Curve(name="ridge", x=[10, 20], y=[2, 1], low=[1, 1], high=[4, 3], x_label="training rows")
    >>> plot_learning_curves([curve]).get_xlabel()
    'training rows'
    """
    ax = new_axes(ax)
    every = list(curves.values()) if isinstance(curves, Mapping) else list(curves)
    for place, curve in enumerate(every):
        colour = COLOURS[place % len(COLOURS)]
        ax.plot(curve.x, curve.y, "o-", color=colour, label=curve.name)
        if curve.low is not None and curve.high is not None:
            shown = np.isfinite(curve.low) & np.isfinite(curve.high)
            ax.fill_between(
                curve.x[shown], curve.low[shown], curve.high[shown], color=colour, alpha=0.2, linewidth=0
            )
    ax.set_xlabel(every[0].x_label)
    ax.set_ylabel(every[0].y_label)
    ax.legend(frameon=False)
    return ax


def plot_monitor(curve: Curve, *, ax: Any = None) -> Any:
    """Capital of the bet against exchangeability along the stream, with the alarm level.

    Parameters
    ----------
    curve : Curve
        From `calipers.performance.LossMonitor.curve`.
    ax : matplotlib axes or None
        Where to draw; None makes a figure.

    Returns
    -------
    matplotlib axes

    Examples
    --------
    >>> from calipers.performance import LossMonitor
    >>> from calipers.plots import plot_monitor
    >>> plot_monitor(LossMonitor([1.0, 2.0], random_state=0).update([3.0, 4.0]).curve()).get_xlabel()
    'new losses'
    """
    ax = new_axes(ax)
    ax.plot(curve.x, curve.y, color=COLOURS[0])
    if curve.null_high is not None:
        ax.plot(curve.x, curve.null_high, color="black", linestyle="--", label="alarm")
        ax.legend(frameon=False)
    ax.set_xlabel(curve.x_label)
    ax.set_ylabel(curve.y_label)
    return ax


def _limits(forecasts: Mapping[str, Estimate], realised: Mapping[str, Any]) -> tuple[float, float]:
    ends = [
        end for e in forecasts.values() for end in (e.low, e.high) if end is not None and np.isfinite(end)
    ]
    points = [float(v) for values in realised.values() for v in np.atleast_1d(values) if np.isfinite(v)]
    inner = [e.value for e in forecasts.values() if e.value is not None and np.isfinite(e.value)]
    every = ends + points + inner or [0.0, 1.0]
    margin = 0.05 * (max(every) - min(every)) or 1.0
    return min(every) - margin, max(every) + margin


def _end(value: float | None, edge: float) -> float:
    return edge if value is None or np.isinf(value) else value


def _finite(values: Any) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    return np.asarray(array[np.isfinite(array)])


def _left_out(values: Any, bins: np.ndarray) -> str:
    array = np.asarray(values, dtype=float)
    beyond = int(np.sum((array < bins[0]) | (array > bins[-1])))
    return f" ({beyond} beyond)" if beyond else ""


def _share_bins(values: np.ndarray, n_test: int | None) -> Any:
    if n_test is None:
        return 25
    counts = np.rint(values * n_test)
    step = max(1, round((counts.max() - counts.min()) / 25))
    return (np.arange(counts.min(), counts.max() + step + 1, step) - 0.5) / n_test


def _bins(*columns: Any) -> np.ndarray:
    pooled = np.concatenate([_finite(values) for values in columns])
    if pooled.size == 0:
        raise InputError("there is nothing finite to draw.")
    if pooled.size >= _MANY:
        pooled = pooled[pooled <= np.quantile(pooled, 0.995)]
    return np.asarray(np.histogram_bin_edges(pooled, bins=60))
