"""The figures of the study."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calipers.arrays import import_optional
from studies.conditional.rows import Row, pick
from studies.outcome import write_figure

DPI = 130
_COLOURS = {"L1-ERT": "C0", "WSC, measured": "C1", "WSC, as searched": "C3", "CovGap": "C2"}


def _figure(columns: int, size: tuple[float, float]) -> tuple[Any, Any]:
    pyplot = import_optional("matplotlib.pyplot", purpose="figures", install="calipers[plots]")
    figure, axes = pyplot.subplots(1, columns, figsize=size, layout="constrained")
    return figure, axes


def draw_efficiency(rows: list[Row], truth: float, path: Path) -> Path:
    """Section 6: each measure against the number of rows, as its distance from the target."""
    figure, axes = _figure(2, (10, 4))
    for ax, sets, title in zip(
        axes, ("marginal", "oracle"), ("one width: fails locally", "oracle: covers everywhere"), strict=True
    ):
        for measure, colour in _COLOURS.items():
            sizes = sorted({float(r["n"]) for r in rows})
            values = [np.array(pick(rows, "value", sets=sets, n=n, measure=measure)) for n in sizes]
            # Worst slabs are shown as their distance below the target, like the others.
            shown = [0.9 - v if measure.startswith("WSC") else v for v in values]
            mean = [float(np.mean(v)) for v in shown]
            spread = [float(np.std(v)) for v in shown]
            ax.errorbar(sizes, mean, yerr=spread, color=colour, marker="o", capsize=3, label=measure)
        ax.axhline(truth if sets == "marginal" else 0.0, color="black", ls=":", label="true L1-ERT")
        ax.set(xscale="log", xlabel="rows", title=title)
    axes[0].set_ylabel("distance from the target\n(bars: one standard deviation over seeds)")
    axes[1].legend(fontsize=8)
    return write_figure(figure, path, dpi=DPI)


def draw_curve(rows: list[Row], path: Path) -> Path:
    """Section 5: h(x) and the true conditional coverage."""
    figure, axes = _figure(2, (10, 3.6))
    for ax, sets in zip(axes, ("marginal", "oracle"), strict=True):
        x, h, p = (np.array(pick(rows, key, sets=sets)) for key in ("x", "predicted", "true"))
        ax.plot(x, h, ".", ms=2, color="C0", label="h(x), rows not seen")
        ax.plot(x, p, color="black", lw=1.5, label="true coverage")
        ax.axhline(0.9, color="C3", ls="--", lw=1, label="target")
        ax.set(xlabel="x", title=f"{sets}: L1-ERT {pick(rows, 'ert', sets=sets)[0]:.3f}", ylim=(0.5, 1.02))
    axes[0].set_ylabel("P(covered | x)")
    axes[0].legend(fontsize=8, loc="lower center")
    return write_figure(figure, path, dpi=DPI)


def draw_scores(rows: list[Row], path: Path, ylabel: str = "size / smallest size of the data set") -> Path:
    """Section 9: L1-ERT against size, each data set's smallest size being 1; data sets by mark."""
    figure, ax = _figure(1, (7.6, 4.5))
    smallest = {d: min(pick(rows, "size", data=d)) for d in dict.fromkeys(r["data"] for r in rows)}
    colours = {score: f"C{i}" for i, score in enumerate(dict.fromkeys(str(r["score"]) for r in rows))}
    marks = dict(
        zip(smallest, "osD^vPX*" if isinstance(rows[0]["data"], str) else "o" * len(smallest), strict=False)
    )
    for r in rows:
        ax.errorbar(
            [r["ert"]], [r["size"] / smallest[r["data"]]], xerr=[r["std_error"]], fmt=marks[r["data"]],
            color=colours[r["score"]], alpha=0.8, capsize=2,
        )  # fmt: skip
    for score, colour in colours.items():
        ax.plot([], [], "o", color=colour, label=score)
    if len(set(marks.values())) > 1:
        for name, mark in marks.items():
            ax.plot([], [], mark, color="grey", label=name)
    ax.axvline(0, color="black", lw=0.8)
    ax.set(xlabel="L1-ERT (0: covers everywhere; bars: one standard error)", ylabel=ylabel)
    ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return write_figure(figure, path, dpi=DPI)


def draw_classifiers(shares: dict[str, tuple[float, float, float]], path: Path) -> Path:
    """Section 8: share of the largest ERT recovered, and the time it took."""
    figure, ax = _figure(1, (7.6, 4))
    for i, (name, (l1, l2, seconds)) in enumerate(shares.items()):
        ax.scatter([seconds], [100 * l1], color=f"C{i}", marker="o", s=50, label=name)
        ax.scatter([seconds], [100 * l2], color=f"C{i}", marker="^", s=50)
    ax.scatter([], [], color="grey", marker="o", label="L1")
    ax.scatter([], [], color="grey", marker="^", label="L2")
    ax.set(xscale="log", xlabel="CPU seconds per 1000 rows", ylabel="% of the largest ERT recovered")
    ax.set_ylim(bottom=0)
    ax.grid(alpha=0.3)
    ax.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return write_figure(figure, path, dpi=DPI)
