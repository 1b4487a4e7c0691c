"""Figure 1: digits of the data set; Figure 2: average unconfidence and observed fuzziness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calipers.arrays import import_optional
from studies.efficiency.digits import Digits
from studies.efficiency.matrices import METRICS
from studies.efficiency.predictors import MEASURES, Reading, curve_of
from studies.outcome import write_figure

PANELS = {"U": "average unconfidence (U)", "OF": "average observed fuzziness (OF)"}
# One colour per measure, distinguishable without red and green; one line style per metric.
COLOURS = {"ratio": "#0072b2", "probability": "#d55e00", "predictability": "#444444"}
STYLES = {"tangent": "-", "euclidean": "--"}
METRIC_NAMES = {"tangent": "tangent distance", "euclidean": "Euclidean distance"}


def draw_digits(digits: Digits, path: Path, examples: int = 4) -> Path:
    """The first training images of every digit, as they come."""
    figures = import_optional("matplotlib.figure", purpose="figures", install="calipers[plots]")
    figure = figures.Figure(figsize=(7.0, 0.75 * examples + 0.4), layout="constrained")
    labels = np.unique(digits.y_train)
    axes = figure.subplots(examples, len(labels), squeeze=False)
    for column, label in zip(axes.T, labels, strict=True):
        images = digits.raw_train[digits.y_train == label][:examples]
        for ax, image in zip(column, images, strict=False):
            ax.imshow(image.reshape(16, 16), cmap="gray_r", vmin=-1, vmax=1)
        for ax in column:
            ax.set_axis_off()
    figure.suptitle("USPS: the first training images of every digit", fontsize=10)
    return write_figure(figure, path, dpi=150)


def draw_figure(readings: list[Reading], path: Path) -> Path:
    """Both panels in one PNG, lines with bands of one standard error."""
    figures = import_optional("matplotlib.figure", purpose="figures", install="calipers[plots]")
    figure = figures.Figure(figsize=(8.2, 8.6), layout="constrained")
    axes = figure.subplots(2, 1, sharex=True)
    for ax, (criterion, label) in zip(axes, PANELS.items(), strict=True):
        draw_panel(ax, readings, criterion)
        ax.set_ylabel(label)
    axes[0].set_title("USPS digits: smaller is better; bands are one standard error", loc="left")
    axes[1].set_xlabel("number of neighbours K")
    axes[1].set_xticks([1, *range(5, max(r.k for r in readings) + 1, 5)])
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return write_figure(figure, path, dpi=150)


def draw_panel(ax: Any, readings: list[Reading], criterion: str) -> None:
    """The six lines of one criterion."""
    for measure in MEASURES:
        for metric in METRICS:
            curve = curve_of(readings, measure, metric, criterion)
            style = {"color": COLOURS[measure], "linestyle": STYLES[metric]}
            ax.plot(
                curve.x, curve.y, label=f"{MEASURES[measure]}, {METRIC_NAMES[metric]}", linewidth=1.6, **style
            )
            ax.fill_between(curve.x, curve.low, curve.high, color=COLOURS[measure], alpha=0.12, linewidth=0)
    ax.set_ylim(bottom=0)
    ax.grid(visible=True, color="#e6e6e6", linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
