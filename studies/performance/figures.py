"""Figures 1, 2 and 4 to 7 of the paper, redrawn from the trials."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from calipers.arrays import import_optional
from calipers.inference import CoverageLaw
from calipers.plots import (
    plot_coverage_histogram,
    plot_forecast_bars,
    plot_interval_histograms,
    plot_width_histograms,
)
from calipers.plots.forecast import COLOURS
from calipers.results import Estimate
from studies.outcome import write_figure
from studies.performance.digits import ModulatedTrial
from studies.performance.trials import ALPHA, TrialTable

DPI = 120


def trial_figure(tables: list[TrialTable], title: str, path: Path) -> Path:
    """Figures 4, 6 and 7: per method the ends beside the average test losses, and the coverage."""
    figure = _figure(11.0, 3.2 * len(tables))
    grid = figure.subplots(len(tables), 2, squeeze=False)
    for row, (table, colour) in enumerate(zip(tables, COLOURS, strict=False)):
        plot_interval_histograms(
            table.low, table.high, table.mean_loss, name=f"{table.name}: interval ends", colour=colour,
            ax=grid[row][0],
        )  # fmt: skip
        rate, low, high = table.new_loss_rate()
        band = table.law.share_interval(0.95)
        plot_coverage_histogram(
            table.coverage,
            target=1 - ALPHA,
            expected=(float(band.low), float(band.high)),
            n_test=table.n_test,
            name=f"{table.name}: new loss cover rate {rate:.3f} [{low:.3f}, {high:.3f}]",
            colour=colour,
            ax=grid[row][1],
        )
    figure.suptitle(title)
    return write_figure(figure, path, dpi=DPI)


def digits_overview(tables: list[TrialTable], trial: ModulatedTrial, case: int, path: Path) -> Path:
    """Figure 1: widths over trials above, one image with its forecasts below."""
    figure = _figure(8.0, 6.0)
    top, bottom = figure.subfigures(2, 1, height_ratios=(1.3, 1.0))
    plot_width_histograms({t.name: t.width for t in tables}, ax=top.subplots())
    top.suptitle("Candidate forecasts: widths over trials")
    draw_case(bottom, trial, case)
    return write_figure(figure, path, dpi=DPI)


def case_figure(trial: ModulatedTrial, case: int, path: Path) -> Path:
    """Figure 5: another image with its forecasts."""
    figure = _figure(8.0, 2.6)
    draw_case(figure, trial, case)
    return write_figure(figure, path, dpi=DPI)


def draw_case(figure: Any, trial: ModulatedTrial, case: int) -> None:
    """The image on the left, the interval of each method with the realised loss on the right."""
    picture, bars = figure.subplots(1, 2, width_ratios=(1, 3))
    picture.imshow(trial.images[case], cmap="gray_r")
    picture.set_xticks([])
    picture.set_yticks([])
    picture.set_title(f"label {trial.labels[case]}")
    forecasts = {
        name: Estimate(name=name, low=float(ends[case, 0]), high=float(ends[case, 1]))
        for name, ends in trial.intervals.items()
    }
    realised = {name: losses[case] for name, losses in trial.losses.items()}
    plot_forecast_bars(forecasts, realised=realised, loss_name="logistic loss", ax=bars)
    bars.axvline(trial.cap, color="0.5", linestyle=":", linewidth=1)
    bars.set_title(
        f"forecast after training on {trial.train_size} new rows; diamond: realised\n"
        f"dotted: a digit absent from training costs -ln {trial.floor:g} = {trial.cap:.2f}, the chosen floor",
        fontsize=8.5,
    )


def bucket_figure(counts: np.ndarray, path: Path) -> Path:
    """Figure 3 with numbers: how often a new loss falls into each bucket between n sorted losses."""
    points, trials = len(counts) - 1, int(counts.sum())
    low, high = CoverageLaw(n=trials, alpha=points / (points + 1)).share_interval(0.95)[:2]
    figure = _figure(8.0, 3.2)
    ax = figure.subplots()
    ax.bar(np.arange(points + 1), counts / trials, color=COLOURS[0])
    ax.axhspan(float(low), float(high), color="0.5", alpha=0.3, label="95 % of runs when each has 1/(n + 1)")
    ax.set_xticks(range(points + 1), [str(k) for k in range(points + 1)])
    ax.set(xlabel="how many of the sorted losses lie below the new one", ylabel="share of trials")
    ax.set_title(f"A new loss among {points} exchangeable ones, {trials} trials")
    ax.set_ylim(0, 1.45 * float(high))
    ax.legend(frameon=False, loc="upper right")
    return write_figure(figure, path, dpi=DPI)


def width_figure(
    candidate: list[TrialTable], algorithm: list[TrialTable], train_size: int, title: str, path: Path
) -> Path:
    """Figure 2: candidate widths above, algorithm widths below."""
    figure = _figure(8.0, 6.0)
    top, bottom = figure.subplots(2, 1)
    plot_width_histograms({t.name: t.width for t in candidate}, ax=top)
    top.set_title(f"Candidate: normal noise, one model trained on {candidate[0].n_losses} rows")
    plot_width_histograms({t.name: t.width for t in algorithm}, ax=bottom)
    bottom.set_title(f"Algorithm, Z-free: Student-t noise, retrained on {train_size} rows")
    figure.suptitle(title)
    return write_figure(figure, path, dpi=DPI)


def naive_figure(rows: list[tuple[str, float, float, float]], path: Path) -> Path:
    """Cover rates of the conformal and the naive intervals with their 95 % intervals."""
    figure = _figure(8.0, 0.8 + 0.32 * len(rows))
    ax = figure.subplots()
    places = np.arange(len(rows))
    rate = np.array([row[1] for row in rows])
    spread = np.abs(np.array([[row[2], row[3]] for row in rows]).T - rate)
    colours = [COLOURS[0] if "conformal" in row[0] else COLOURS[1] for row in rows]
    ax.errorbar(rate, places, xerr=spread, fmt="none", ecolor="black", capsize=3, zorder=2)
    ax.scatter(rate, places, color=colours, zorder=3)
    ax.axvline(1 - ALPHA, color="black", linestyle="--", linewidth=1)
    ax.set_yticks(places, [row[0] for row in rows])
    ax.invert_yaxis()
    ax.set_xlim(0, 1)
    ax.set_xlabel("share of new losses covered (target 0.9)")
    return write_figure(figure, path, dpi=DPI)


def _figure(width: float, height: float) -> Any:
    figures = import_optional("matplotlib.figure", purpose="figures", install="calipers[plots]")
    return figures.Figure(figsize=(width, height), layout="constrained")
