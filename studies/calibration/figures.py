"""The figures of the study."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calipers.arrays import import_optional
from studies.calibration.documents import TopicCurve
from studies.calibration.images import ImageReading
from studies.calibration.repairs import Repair
from studies.calibration.theory import Convergence, Widths
from studies.outcome import write_figure

DPI = 150

# Distinguishable without red and green.
COLOURS = {
    "naive Bayes": "#cc79a7",
    "boosted trees": "#d55e00",
    "SVM": "#e69f00",
    "logistic regression": "#0072b2",
    "random forest": "#009e73",
}
TITLES = {"adult": "ADULT", "covtype": "COVTYPE"}
_GREY = "#8a8a8a"


def _figure(width: float, height: float) -> Any:
    figures = import_optional("matplotlib.figure", purpose="figures", install="calipers[plots]")
    return figures.Figure(figsize=(width, height), layout="constrained")


def _clean(ax: Any) -> None:
    ax.grid(visible=True, color="#e6e6e6", linewidth=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def draw_errors(repairs: Sequence[Repair], path: Path) -> Path:
    """Figure 2, with what the paper could not show: certificates, and what a calibrated model reads."""
    datasets = list(dict.fromkeys(r.dataset for r in repairs))
    figure = _figure(9.2, 3.6)
    axes = np.atleast_1d(figure.subplots(1, len(datasets), sharey=True))
    for ax, dataset in zip(axes, datasets, strict=True):
        rows = [r for r in repairs if r.dataset == dataset][::-1]
        for y, r in enumerate(rows):
            value, high = float(r.before), float(r.before.high or 1)
            ax.plot([value, high], [y, y], color=COLOURS[r.learner], linewidth=2)
            ax.plot([high], [y], "|", color=COLOURS[r.learner], markersize=10, markeredgewidth=2)
            ax.plot([value], [y], "o", color=COLOURS[r.learner], markersize=7)
            ax.plot([float(r.before.null_high or 0)] * 2, [y - 0.3, y + 0.3], color=_GREY, linewidth=2)
            ax.plot([float(r.after)], [y - 0.22], "d", color=_GREY, markersize=5)
        ax.set_yticks(range(len(rows)), [r.learner for r in rows])
        ax.set_xscale("log")
        least = min(min(float(r.before), float(r.after)) for r in rows)
        # The axis belongs to the readings: a tick more than ten times below them all is left outside.
        ticks = [float(r.before.null_high or 0) for r in rows]
        ax.set_xlim(left=0.7 * min([least, *(tick for tick in ticks if tick >= least / 10)]))
        n = int(rows[0].before.n or 0)
        ax.set_title(f"{TITLES.get(dataset, dataset)} ({n:_} test rows)".replace("_", " "), loc="left")
        ax.set_xlabel("calibration error (log scale)")
        _clean(ax)
    figure.supxlabel(
        "dot: c_emp · bar to |: guaranteed bound on the population error, 95 % for all five at once\n"
        "grey tick: a calibrated model reads less in 95 % (left of the axis where missing) · "
        "diamond: after isotonic on 2000 rows",
        fontsize=8.5,
    )
    return write_figure(figure, path, dpi=DPI)


def draw_topic(curve: TopicCurve, path: Path) -> Path:
    """Figure 1: the sigmoid of largest likelihood follows P(Y = 1 | w(X))."""
    figure = _figure(5.4, 3.8)
    ax = figure.subplots()
    ax.plot(curve.score, curve.truth, "o", color="#d55e00", ms=4, label="P(Y = 1 | w(X)), means of bins")
    ax.plot(curve.score, curve.stated, color="#0072b2", label="1 / (1 + exp(-a w(X) - b)), fitted")
    ax.set(xlabel="w(X), sum of the word weights", ylabel="probability of the topic", ylim=(0, 1))
    _clean(ax)
    ax.legend(frameon=False, fontsize=8.5)
    return write_figure(figure, path, dpi=DPI)


def draw_ratios(repairs: Sequence[Repair], path: Path) -> Path:
    """Figure 3: what isotonic regression on 2000 rows does to the cost of decisions."""
    datasets = list(dict.fromkeys(r.dataset for r in repairs))
    figure = _figure(9.2, 4.2)
    axes = np.atleast_1d(figure.subplots(1, len(datasets), sharey=True))
    for ax, dataset in zip(axes, datasets, strict=True):
        for r in (r for r in repairs if r.dataset == dataset):
            label = f"{r.learner}" if dataset == datasets[0] else None
            ax.plot(r.ratio.x, r.ratio.y, color=COLOURS[r.learner], linewidth=1.8, label=label)
            band = {"color": COLOURS[r.learner], "alpha": 0.15, "linewidth": 0}
            ax.fill_between(r.ratio.x, r.ratio.low, r.ratio.high, **band)
        ax.axhline(1, color=_GREY, linewidth=1)
        ax.set_ylim(0, 1.3)
        ax.set_title(TITLES.get(dataset, dataset), loc="left")
        ax.set_xlabel("cost parameter p (false positive p, false negative 1 - p)")
        _clean(ax)
    axes[0].set_ylabel("cost after calibration / before")
    figure.legend(loc="outside lower center", ncols=5, frameon=False)
    return write_figure(figure, path, dpi=DPI)


def draw_certificates(rows: Sequence[Widths], path: Path) -> Path:
    """Bounds for one model judged on n rows: Theorem 2 against the certificate."""
    lines = {
        "proved_massart": ("Theorem 2, proved constant, Massart", "#d55e00", "-"),
        "printed_massart": ("Theorem 2 as printed, Massart", "#d55e00", "--"),
        "printed_exact": ("Theorem 2 as printed, exact Rademacher", "#e69f00", "--"),
        "uniform": ("two-sided, guaranteed (DKW)", "#cc79a7", "-"),
        "guaranteed": ("upper bound, guaranteed", "#0072b2", "-"),
        "asymptotic": ("upper bound, asymptotic", "#0072b2", "--"),
    }
    figure = _figure(7.2, 4.6)
    ax = figure.subplots()
    x = [row.n for row in rows]
    for field, (label, colour, style) in lines.items():
        ax.plot(x, [getattr(row, field) for row in rows], style, color=colour, label=label, marker="o", ms=3)
    ax.axhline(1, color=_GREY, linewidth=1)
    ax.annotate("above 1 a bound says nothing", (x[-1], 1.08), ha="right", fontsize=8.5, color="#555555")
    ax.set(xscale="log", yscale="log", xlabel="validation rows n", ylabel="bound above c_emp, 95 %")
    ax.set_title("What n rows prove about a calibrated model (uniform scores)", loc="left")
    _clean(ax)
    ax.legend(frameon=False, fontsize=8.5)
    return write_figure(figure, path, dpi=DPI)


def draw_convergence(rows: Sequence[Convergence], path: Path) -> Path:
    """Claim 6: isotonic regression approaches the convex minorant."""
    worlds = list(dict.fromkeys(row.world for row in rows))
    figure = _figure(9.2, 4.0)
    axes = np.atleast_1d(figure.subplots(1, len(worlds), sharey=True))
    for ax, world in zip(axes, worlds, strict=True):
        part = [row for row in rows if row.world == world]
        x = [row.n for row in part]
        ax.plot(x, [r.proved for r in part], color="#d55e00", label="2 epsilon, proved constant")
        ax.plot(x, [r.printed for r in part], "--", color="#d55e00", label="2 epsilon as printed")
        runs = {"color": "#0072b2", "marker": "o", "ms": 3}
        ax.plot(x, [r.high for r in part], label="95 % of the runs below", **runs)
        ax.plot(x, [r.median for r in part], "--", label="median of the runs", **runs)
        slope = part[0].median * np.sqrt(part[0].n / np.array(x))
        ax.plot(x, slope, ":", color=_GREY, label="falls like 1 / sqrt(n)")
        ax.set(xscale="log", yscale="log", xlabel="calibration rows n")
        ax.set_title(world, loc="left")
        _clean(ax)
    axes[0].set_ylabel("largest distance of G_e from the hull")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False, fontsize=8.5)
    return write_figure(figure, path, dpi=DPI)


def draw_images(rows: Sequence[ImageReading], path: Path) -> Path:
    """Top-label and largest class-wise error of every image model, with certificates."""
    figure = _figure(9.2, 4.6)
    axes = figure.subplots(1, 2, sharex=True, sharey=True)
    ordered = list(rows)[::-1]
    panels = {"top_label": "top label", "classwise": "largest of ten classes"}
    for ax, (field, title) in zip(axes, panels.items(), strict=True):
        for y, row in enumerate(ordered):
            e = getattr(row, field)
            colour = "#009e73" if "," in row.model else "#0072b2"
            ax.plot([float(e), float(e.high or 1)], [y, y], color=colour, linewidth=2)
            ax.plot([float(e.high or 1)], [y], "|", color=colour, markersize=9, markeredgewidth=2)
            ax.plot([float(e)], [y], "o", color=colour, markersize=6)
            ax.plot([float(e.null_high or 0)] * 2, [y - 0.3, y + 0.3], color=_GREY, linewidth=2)
        ax.set_title(title, loc="left")
        ax.set(xscale="log", xlabel="calibration error (log scale)")
        _clean(ax)
    axes[0].set_yticks(range(len(ordered)), [row.model for row in ordered])
    figure.supxlabel(
        "dot: c_emp · bar to |: guaranteed bound, 95 % for all models at once · "
        "grey: a calibrated model reads less\ngreen: ResNet-50 repaired on its 5000 validation images",
        fontsize=8.5,
    )
    return write_figure(figure, path, dpi=DPI)
