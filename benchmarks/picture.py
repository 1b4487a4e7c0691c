"""The history as a picture: how our work compares with the bare limit, run after run."""

from __future__ import annotations

import math
from pathlib import Path

from benchmarks.environments import ROOT
from benchmarks.store import Run
from benchmarks.summary import number, ratio

PLACE = ROOT / "docs" / "images" / "benchmark-history.png"


def fastest_peer(run: Run, task: str) -> float:
    """CPU of the fastest peer that gave an answer over ours, at the largest size; NaN without one."""
    ours = run.of(task)
    if ours is None:
        return math.nan
    peers = [
        number(m["cpu"])
        for m in run.measurements
        if m["task"] == task and m["size"] == ours["size"] and m["library"] not in {"ours", "limit"}
    ]
    known = [cpu for cpu in peers if math.isfinite(cpu)]
    return ratio(min(known), ours["cpu"]) if known else math.nan


def limit_ratio(run: Run, task: str) -> float:
    """Our CPU over that of the bare limit, at the largest size."""
    ours = run.of(task)
    limit = run.of(task, "limit", ours["size"]) if ours else None
    return ratio(ours["cpu"], limit["cpu"]) if ours and limit else math.nan


def draw_history(runs: list[Run], path: Path) -> None:
    """Two panels over the stored runs: the fastest peer over us, and us over the limit."""
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    questions = [
        ("Fastest peer, times our CPU seconds (above 1: we are faster)", fastest_peer),
        ("Our CPU seconds, times the bare limit (below 2: near it)", limit_ratio),
    ]
    figure, panels = plt.subplots(2, 1, figsize=(10, 11), layout="constrained")
    names = list(dict.fromkeys(m["task"] for run in runs for m in run.measurements))
    days = [run.content["date"].replace("T", "\n") for run in runs]
    for axes, (title, reading) in zip(panels, questions, strict=True):
        series = {task: [reading(run, task) for run in runs] for task in names}
        series = {task: v for task, v in series.items() if any(math.isfinite(x) for x in v)}
        for i, (task, values) in enumerate(sorted(series.items(), key=lambda item: -last(item[1]))):
            style = ("-", "--", ":")[i // 10 % 3]
            axes.plot(
                days, values, style, color=f"C{i % 10}", marker="o", label=f"{task}: {last(values):.3g}"
            )
        axes.axhline(1.0, color="0.5", linewidth=0.8)
        axes.set_yscale("log")
        axes.set_title(title, loc="left", fontsize=10)
        axes.margins(x=0.08)
        axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def last(values: list[float]) -> float:
    """The newest value that is known."""
    return next((v for v in reversed(values) if math.isfinite(v)), math.nan)
