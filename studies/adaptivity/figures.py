"""The study's pictures, drawn from finished rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calipers.arrays import import_optional
from calipers.plots import plot_along_ease, plot_critical_difference
from calipers.results import Curve, RankComparison
from studies.adaptivity import regression
from studies.adaptivity.methods import METHODS, OURS
from studies.outcome import write_figure

DPI = 120
Row = dict[str, Any]


def _new(rows: int, columns: int, size: tuple[float, float], *, share: bool = False) -> tuple[Any, Any]:
    pyplot = import_optional("matplotlib.pyplot", purpose="figures", install="calipers[plots]")
    figure, axes = pyplot.subplots(
        rows, columns, figsize=size, layout="constrained", squeeze=False, sharex=share, sharey=share
    )
    return figure, axes


def figure_1(curves: Mapping[str, Curve], path: Path) -> Path:
    """Ease against average rank, one panel per data set."""
    sets = list(dict.fromkeys(name.split("-")[0] for name in curves))
    figure, axes = _new(1, len(sets), (4.6 * len(sets), 3.4))
    for ax, data in zip(axes[0], sets, strict=True):
        chosen = {name.split("-", 1)[1]: c for name, c in curves.items() if name.split("-")[0] == data}
        plot_along_ease(chosen, ax=ax, title=data)
    return write_figure(figure, path, dpi=DPI)


def table_2_figure(
    tables: Mapping[str, Mapping[str, Mapping[str, float]]], floors: Mapping[str, float], path: Path
) -> Path:
    """Median T-CV and T-SS of every case and method, side by side; T-CV comes first, with its noise floor."""
    figure, axes = _new(1, len(tables), (5.6 * len(tables), 4.0))
    for place, floor in enumerate(floors.values()):
        label = "perfect predictor (median)" if place == 0 else None
        ends = [place - 0.42, place + 0.42]
        axes[0][0].plot([floor, floor], ends, color="0.4", linestyle=":", linewidth=1.6, label=label)
    for ax, (title, table) in zip(axes[0], tables.items(), strict=True):
        for i, method in enumerate(METHODS):
            values = [row[method] for row in table.values()]
            mark = "D" if method in OURS else "o"
            ax.plot(values, np.arange(len(values)) + 0.1 * (i - 2.5), mark, markersize=5, label=method)
        ax.set_yticks(range(len(table)), list(table))
        ax.set_ylim(len(table) - 0.5, -0.5)
        ax.set_title(title, fontsize=10)
        ax.grid(axis="x", alpha=0.3)
    handles, labels = axes[0][0].get_legend_handles_labels()
    axes[0][-1].legend(
        handles, labels, fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    return write_figure(figure, path, dpi=DPI)


def cd_panels(comparisons: Mapping[str, RankComparison], title: str, path: Path) -> Path:
    """Figures 7 to 14: one critical-difference diagram per model."""
    rows = -(-len(comparisons) // 2)
    figure, axes = _new(rows, 2, (14.0, 3.2 * rows))
    for ax in axes.flat[len(comparisons) :]:
        ax.set_axis_off()
    for ax, (case, comparison) in zip(axes.flat, comparisons.items(), strict=False):
        plot_critical_difference(comparison, ax=ax, title=case)
    figure.suptitle(title, fontsize=11)
    return write_figure(figure, path, dpi=DPI)


def width_figure(points: Mapping[str, Mapping[str, Any]], title: str, path: Path) -> Path:
    """Figure 4: mean width against mean absolute error of bins of width, with their R-squared and tau."""
    figure, axes = _new(1, len(points), (3.1 * len(points), 3.2), share=True)
    for ax, (method, found) in zip(axes[0], points.items(), strict=True):
        ax.plot(found["widths"], found["errors"], "o", markersize=3)
        ax.set_title(f"{method}\nR2 {found['r_squared']:.2f}, tau {found['tau']:.2f}", fontsize=9)
        ax.set_xlabel("mean interval width", fontsize=8)
    axes[0][0].set_ylabel("mean absolute error", fontsize=8)
    figure.suptitle(title, fontsize=10)
    return write_figure(figure, path, dpi=DPI)


def cd_figure(comparison: RankComparison, title: str, path: Path) -> Path:
    """One critical-difference diagram."""
    return write_figure(plot_critical_difference(comparison, title=title).figure, path, dpi=DPI)


def regression_figure(rows: Sequence[Row], floor: float, path: Path, alpha: float = 0.3) -> Path:
    """Figure 3: means over data sets and seeds, every data set as a point, and the noise floor of T-CV."""
    keys = {
        "t_cv": "T-CV (lower is better)",
        "t_ss": "T-SS (higher is better)",
        "r_squared": "R-squared, width on error",
        "tau": "Kendall's tau, width and error",
    }
    figure, axes = _new(1, 4, (15.0, 3.4))
    data_sets = list(dict.fromkeys(row["data"] for row in rows))
    for ax, (key, title) in zip(axes[0], keys.items(), strict=True):
        means = [regression.average(rows, alpha, m, key) for m in regression.METHODS]
        ax.bar(range(len(means)), np.nan_to_num(means), color="0.85")
        for name in data_sets:
            part = [r for r in rows if r["data"] == name]
            ax.plot(
                [regression.average(part, alpha, m, key) for m in regression.METHODS], "o", label=name, ms=4
            )
        ax.set_xticks(range(len(means)), regression.METHODS, rotation=40, fontsize=8)
        ax.set_title(f"{title}, alpha {alpha:g}", fontsize=9)
        ax.axhline(0, color="black", linewidth=0.6)
        for place in np.flatnonzero(np.isnan(means)):
            ax.text(place, 0, " undefined:\n one width", rotation=90, ha="center", va="bottom", fontsize=7)
    axes[0][0].axhline(floor, color="0.4", linestyle=":", label="perfect predictor (median T-CV)")
    handles, labels = axes[0][0].get_legend_handles_labels()
    axes[0][-1].legend(
        handles, labels, fontsize=7, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    return write_figure(figure, path, dpi=DPI)
