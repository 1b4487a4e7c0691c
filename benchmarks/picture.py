"""The history as a picture: how our work compares with the bare limit, run after run."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.store import Run
from benchmarks.summary import NOT_TIMED, ratio, right_peers, times

PLACE = ROOT / "docs" / "images" / "benchmark-history.png"


def fastest_peer(run: Run, task: str) -> float:
    """CPU of the fastest peer that was not wrong over ours, at the largest size; NaN without one."""
    ours = run.of(task)
    return min(right_peers(run, task, ours["size"]).values(), default=math.nan) if ours else math.nan


def limit_ratio(run: Run, task: str) -> float:
    """Our CPU over that of the bare limit, at the largest size."""
    ours = run.of(task)
    limit = run.of(task, "limit", ours["size"]) if ours else None
    return ratio(ours["cpu"], limit["cpu"]) if ours and limit else math.nan


QUESTIONS = (
    ("CPU seconds of the fastest peer over ours: right of 1 we are faster", fastest_peer, 1.0),
    ("Our CPU seconds over the bare limit: left of 2 we are near it", limit_ratio, 2.0),
)


def draw_history(runs: list[Run], path: Path) -> None:
    """Two panels: the fastest peer over us, and us over the limit; a row per task, a dot per stored run."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    tables = [ratios_by_task(runs, reading) for _, reading, _ in QUESTIONS]
    heights = [max(2, len(table)) for table in tables]
    figure, panels = plt.subplots(
        2, 1, figsize=(9, 1.8 + 0.24 * sum(heights)), height_ratios=heights, layout="constrained"
    )
    shades = [str(0.75 * (1 - (i + 1) / len(runs)) ** 0.25) for i in range(len(runs))]  # the newest is black
    for axes, (title, _, mark), table in zip(panels, QUESTIONS, tables, strict=True):
        for i, run in enumerate(runs):
            values = [series[i] for series in table.values()]
            axes.scatter(
                values,
                range(len(table)),
                color=shades[i],
                s=22,
                label=run.name,
                zorder=i + 2,
            )
        axes.set_yticks(
            range(len(table)), [f"{task}   {times(last(v))}" for task, v in table.items()], fontsize=8
        )
        axes.axvline(mark, color="0.5", linewidth=0.8)
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(lambda x, _: f"{x:g}x")
        axes.grid(axis="both", color="0.92")
        axes.set_axisbelow(True)
        axes.set_title(title, loc="left", fontsize=10)
    panels[0].legend(title="run", fontsize=7, title_fontsize=7, loc="lower right")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def ratios_by_task(runs: list[Run], reading: Callable[[Run, str], float]) -> dict[str, list[float]]:
    """One value per run for every task that has any, the largest newest value last (drawn on top)."""
    names = dict.fromkeys(m["task"] for run in runs for m in run.measurements if m["task"] not in NOT_TIMED)
    table = {task: [reading(run, task) for run in runs] for task in names}
    known = {task: v for task, v in table.items() if any(map(math.isfinite, v))}
    return dict(sorted(known.items(), key=lambda item: last(item[1])))


def last(values: list[float]) -> float:
    """The newest value that is known."""
    return next((v for v in reversed(values) if math.isfinite(v)), math.nan)
