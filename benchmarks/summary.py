"""From measurements to tables: ratios, growth exponents, who is wrong, what changed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.store import Measurements, Run

Cells = list[list[str]]
NOT_TIMED = {"install size"}  # measured on disk, not by a clock
NOT_GROWING = {"import", "command line help"}  # their sizes are repetitions


def number(value: Any) -> float:
    """A float, NaN for None: JSON has no NaN."""
    return math.nan if value is None else float(value)


def ratio(theirs: Any, ours: Any) -> float:
    """How many times our cost theirs is; NaN where either is unknown."""
    theirs, ours = number(theirs), number(ours)
    return theirs / ours if ours > 0 and math.isfinite(theirs) else math.nan


def ratio_rows(measurements: Measurements) -> list[dict[str, Any]]:
    """One row per task, size and other library: how many times our cost it takes."""
    ours = {(m["task"], m["size"]): m for m in measurements if m["library"] == "ours"}
    rows = []
    for m in measurements:
        base = ours.get((m["task"], m["size"]))
        if m["library"] == "ours" or base is None or m["task"] in NOT_TIMED:
            continue
        rows.append(
            {
                "task": m["task"], "size": m["size"], "library": m["library"],
                "cpu_ratio": ratio(m["cpu"], base["cpu"]), "wall_ratio": ratio(m["wall"], base["wall"]),
                "memory_ratio": ratio(m["peak_mb"], base["peak_mb"]), "ours_cpu": number(base["cpu"]),
                "cpu": number(m["cpu"]), "peak_mb": number(m["peak_mb"]),
                "ours_peak_mb": number(base["peak_mb"]), "agrees": m["agrees"], "problem": m["problem"],
            }
        )  # fmt: skip
    return rows


def right_peers(run: Run, task: str, size: int) -> dict[str, float]:
    """CPU of every peer that was not wrong over ours, where both are known."""
    ours = run.of(task, "ours", size)
    peers = {
        m["library"]: ratio(m["cpu"], ours["cpu"] if ours else None)
        for m in run.measurements
        if m["task"] == task and m["size"] == size and m["library"] not in {"ours", "limit"}
        if m["agrees"] not in {"wrong", "differs"}
    }
    return {name: value for name, value in peers.items() if math.isfinite(value)}


def exponents(measurements: Measurements, field: str) -> dict[tuple[str, str], float]:
    """Slope of log cost against log size per task and library; 1 is linear."""
    found = {}
    for key in {(m["task"], m["library"]) for m in measurements}:
        points = [(m["size"], number(m[field])) for m in measurements if (m["task"], m["library"]) == key]
        points = [(n, cost) for n, cost in points if math.isfinite(cost) and cost > 0]
        if len(points) >= 2:
            n, cost = np.log(np.array(points, dtype=float)).T
            found[key] = float(np.polyfit(n, cost, 1)[0])
    return found


def text_table(rows: Cells) -> str:
    """Columns padded to their widest cell."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = ["  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip() for row in rows]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def markdown_table(rows: Cells) -> str:
    """A pipe table."""
    lines = ["| " + " | ".join(cell.replace("|", "/") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def times(value: float) -> str:
    """A ratio for reading."""
    if math.isnan(value):
        return ""
    return f"{value:.2g}x" if value < 0.1 else f"{value:.2f}x" if value < 10 else f"{value:.0f}x"


def seconds(value: Any) -> str:
    """CPU seconds for reading."""
    value = number(value)
    if math.isnan(value):
        return ""
    return f"{1e3 * value:.3g} ms" if value < 1 else f"{value:.3g} s"


def mebibytes(value: Any) -> str:
    """Memory for reading."""
    value = number(value)
    return "" if math.isnan(value) else f"{value:.0f} MiB" if value >= 1 else "< 1 MiB"


def own_cells(measurements: Measurements) -> Cells:
    """Our own cost, task by task."""
    head = ["task", "size", "CPU", "wall", "extra memory", "answer", "note"]
    body = [
        [
            m["task"], f"{m['size']:,}", seconds(m["cpu"]), seconds(m["wall"]), mebibytes(m["peak_mb"]),
            m["agrees"], m["problem"][:70],
        ]
        for m in measurements if m["library"] == "ours" and m["task"] not in NOT_TIMED
    ]  # fmt: skip
    return [head, *body]


def install_cells(measurements: Measurements) -> Cells:
    """What an installation brings, the smallest first."""
    found = [m for m in measurements if m["task"] == "install size" and m["answers"]]
    found.sort(key=lambda m: m["answers"]["megabytes"])
    body = [
        [
            "Calipers" if m["library"] == "ours" else m["library"],
            f"{m['answers']['megabytes']:.0f} MB",
            str(m["answers"]["packages"]),
        ]
        for m in found
    ]
    return [["library", "on disk", "packages"], *body]


def ratio_cells(measurements: Measurements) -> Cells:
    """The table of ratios, heading first."""
    head = [
        "task",
        "size",
        "ours",
        "against",
        "times our CPU",
        "times our wall",
        "times our memory",
        "answer",
    ]
    body = [
        [
            row["task"], f"{row['size']:,}", seconds(row["ours_cpu"]), row["library"],
            times(row["cpu_ratio"]), times(row["wall_ratio"]), memory_ratio(row),
            row["agrees"] or row["problem"][:60],
        ]
        for row in ratio_rows(measurements)
    ]  # fmt: skip
    return [head, *body]


def memory_ratio(row: dict[str, Any]) -> str:
    """The ratio of two amounts of memory, where both are more than the noise of a process."""
    if math.isnan(row["memory_ratio"]) or min(row["peak_mb"], row["ours_peak_mb"]) < 1:
        return ""
    return times(row["memory_ratio"])


def growth_cells(measurements: Measurements) -> Cells:
    """Fitted exponents, ours beside the others."""
    time, memory = exponents(measurements, "cpu"), exponents(measurements, "peak_mb")
    head = ["task", "sizes", "library", "exponent of time", "exponent of memory"]
    body = []
    for task, library in dict.fromkeys((m["task"], m["library"]) for m in measurements):
        if (task, library) not in time or task in NOT_GROWING:
            continue
        sizes = sorted({m["size"] for m in measurements if m["task"] == task})
        grown = f"{memory[task, library]:.2f}" if (task, library) in memory else ""
        body.append([task, " ".join(f"{n:,}" for n in sizes), library, f"{time[task, library]:.2f}", grown])
    return [head, *body]


def shown(answers: dict[str, Any]) -> str:
    """Answers in a table cell."""
    return ", ".join(f"{name} {plain(value)}" for name, value in answers.items())


def plain(value: Any) -> str:
    """A number, or a short list of them, for reading."""
    if isinstance(value, list):
        return "(" + " ".join(plain(v) for v in value) + ")"
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return str(value)
    return f"{value:.6g}"


def said(m: dict[str, Any]) -> tuple[str, str]:
    """A wrong answer and the exact one; of long answers only how far they are off."""
    if m["answers"]:
        return shown(m["answers"]), shown(m["exact"])
    off = number(m.get("off_by"))
    return "" if math.isnan(off) else f"off by up to {off:.3g}", "every value"


def wrong_cells(measurements: Measurements) -> Cells:
    """Every answer that is not the exact one, or differs from ours where none is exact."""
    head = ["task", "size", "library", "verdict", "its answer", "exact"]
    body = [
        [m["task"], f"{m['size']:,}", m["library"], m["agrees"], *said(m)]
        for m in measurements
        if m["agrees"] in {"wrong", "differs"}
    ]
    return [head, *body]


def change_cells(run: Run, before: Run | None) -> Cells:
    """A quick run beside the stored one: our time in units of the limit, which machines share."""
    head = ["task", "size", "CPU", "times the limit", "stored", "answer", "note"]
    body = []
    for m in run.measurements:
        if m["library"] != "ours":
            continue
        now, then = (of_limit(r, m["task"], m["size"]) if r else math.nan for r in (run, before))
        body.append(
            [
                m["task"], f"{m['size']:,}", seconds(m["cpu"]), times(now), times(then), m["agrees"],
                m["problem"][:70],
            ]
        )  # fmt: skip
    return [head, *body]


def of_limit(run: Run, task: str, size: int | None = None) -> float:
    """Our CPU seconds over those of the bare limit."""
    ours, limit = run.of(task, "ours", size), run.of(task, "limit", size)
    return ratio(ours["cpu"], limit["cpu"]) if ours and limit else math.nan
