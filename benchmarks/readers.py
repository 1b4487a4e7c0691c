"""Ways to read a promise off a stored run: a figure, and whether it is kept."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from benchmarks import store
from benchmarks.environments import ROOT
from benchmarks.league import not_right
from benchmarks.store import Run
from benchmarks.summary import number, of_limit, ratio, seconds, times

GPU = store.HISTORY / "gpu.json"
LARGE_FILES = store.HISTORY / "large_files.json"


@dataclass(frozen=True, slots=True)
class Reading:
    """A figure, and whether it keeps the promise; None where the run has no figure."""

    figure: str
    met: bool | None


NOT_MEASURED = Reading("not measured in this run", None)
Read = Callable[[Run], Reading]


# --- ways to read a bar -------------------------------------------------------------------------------


def times_faster(task: str, library: str, least: float, size: int) -> Read:
    """A peer takes at least so many times our CPU seconds."""

    def read(run: Run) -> Reading:
        ours, theirs = run.of(task, "ours", size), run.of(task, library, size)
        if ours is None or theirs is None:
            return NOT_MEASURED
        if theirs["problem"]:
            return Reading(f"{library}: {theirs['problem'][:60]}", None)
        found = ratio(theirs["cpu"], ours["cpu"])
        return Reading(
            f"{times(found)} ({seconds(theirs['cpu'])} against {seconds(ours['cpu'])})", found >= least
        )

    return read


def within_limit(task: str, most: float, size: int) -> Read:
    """We take at most so many times the bare work."""

    def read(run: Run) -> Reading:
        found = of_limit(run, task, size)
        return NOT_MEASURED if math.isnan(found) else Reading(f"{found:.2f}x the bare work", found <= most)

    return read


def clock_within_limit(task: str, most: float, size: int) -> Read:
    """The same for work that waits for others: by the clock, or in CPU seconds when the cores were taken."""

    def read(run: Run) -> Reading:
        ours, limit = run.of(task, "ours", size), run.of(task, "limit", size)
        if ours is None or limit is None:
            return NOT_MEASURED
        clock, cpu = (ratio(ours[field], limit[field]) for field in ("wall", "cpu"))
        text = f"{clock:.3f}x the bare fits by the clock, {cpu:.3f}x in CPU seconds"
        if clock > most and busy(ours, run):
            return Reading(f"{text}; {ours['load']:.0f} processes wanted the cores", cpu <= most)
        return Reading(text, clock <= most)

    return read


def memory_below(task: str, most_mb: float, size: int) -> Read:
    """Extra memory of our call."""

    def read(run: Run) -> Reading:
        ours = run.of(task, "ours", size)
        if ours is None or math.isnan(number(ours["peak_mb"])):
            return NOT_MEASURED
        return Reading(f"{number(ours['peak_mb']):.0f} MiB", number(ours["peak_mb"]) < most_mb)

    return read


def bytes_per_row(tasks: list[str], most: float, size: int) -> Read:
    """The largest extra memory per row over some tasks."""

    def read(run: Run) -> Reading:
        found = [m for m in (run.of(task, "ours", size) for task in tasks) if m is not None]
        peaks = [number(m["peak_mb"]) * 2**20 / m["size"] for m in found]
        if len(found) < len(tasks) or any(map(math.isnan, peaks)):
            return NOT_MEASURED
        worst = max(peaks)
        return Reading(f"{worst:.0f} bytes per row at most ({len(found)} tasks)", worst <= most)

    return read


def clock_below(task: str, most: float, size: int) -> Read:
    """Seconds of our call by the clock, which says nothing when others have the cores."""

    def read(run: Run) -> Reading:
        ours = run.of(task, "ours", size)
        if ours is None:
            return NOT_MEASURED
        wall, cpu = number(ours["wall"]), number(ours["cpu"])
        text = f"{wall:.1f} s by the clock, {cpu:.1f} CPU s"
        if wall >= most > cpu and busy(ours, run):
            return Reading(f"{text}; {ours['load']:.0f} processes wanted the cores", None)
        return Reading(text, wall < most)

    return read


def busy(measurement: dict[str, Any], run: Run) -> bool:
    """Whether more processes wanted the cores than there are, our own two aside."""
    return number(measurement.get("load")) > run.content["machine"]["cores"] + 2


def answers_right(run: Run) -> Reading:
    """None of our answers is wrong, at any size of any task that has an exact one."""
    found = [m for m in run.measurements if m["library"] == "ours" and m["agrees"] in {"right", "wrong"}]
    if not found:
        return NOT_MEASURED
    wrong = [f"{m['task']} at {m['size']:,}" for m in found if m["agrees"] == "wrong"]
    return Reading(f"{len(found) - len(wrong)} of {len(found)} right" + "; ".join(["", *wrong]), not wrong)


def same_as(task: str, library: str) -> Read:
    """Both are right at every size, and bit for bit the same where a check sum was kept."""

    def read(run: Run) -> Reading:
        pairs = [
            (run.of(task, "ours", m["size"]), m)
            for m in run.measurements
            if m["task"] == task and m["library"] == library
        ]
        if not pairs:
            return NOT_MEASURED
        fine = all(
            ours
            and ours["agrees"] == m["agrees"] == "right"
            and ours["answers"].get("check sum") == m["answers"].get("check sum")
            for ours, m in pairs
        )
        return Reading("identical" if fine else "not identical", fine)

    return read


def beyond(task: str, most: float) -> Read:
    """CPU seconds of one start beyond those of the limit."""

    def read(run: Run) -> Reading:
        ours, limit = run.of(task, "ours", 1), run.of(task, "limit", 1)
        if ours is None or limit is None:
            return NOT_MEASURED
        mine, bare = number(ours["cpu"]), number(limit["cpu"])
        return Reading(f"{mine:.2f} CPU s, the bare start {bare:.2f}", mine - bare <= most)

    return read


def held_by(path: str, *names: str) -> Read:
    """Simulations that the test suite runs; the test must exist."""

    def read(_: Run) -> Reading:
        file = ROOT / "tests" / path
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        missing = [name for name in names if f"def {name}(" not in text]
        if not text or missing:
            return Reading(f"no such test: {path} {' '.join(missing)}", met=False)
        return Reading(f"test `{path}`", met=True)

    return read


def league_clean(run: Run) -> Reading:
    """No trap on which we are wrong."""
    rows = run.content["league"]
    if not rows:
        return NOT_MEASURED
    asked = [row for row in rows if row["found"]["ours"]["verdict"] != "has no such feature"]
    wrong = not_right(rows)
    return Reading(f"right in {len(asked) - len(wrong)} of {len(asked)} traps", not wrong)


# --- readings of one bar only -------------------------------------------------------------------------


def p_value_memory(run: Run) -> Reading:
    """Extra memory over the bytes of the p-values, 10 000 x 10 doubles."""
    ours = run.of("p-values, smoothed", "ours", 10_000)
    if ours is None:
        return NOT_MEASURED
    found = number(ours["peak_mb"]) * 2**20 / (10_000 * 10 * 8)
    return Reading(f"{found:.1f}x the output", found < 3)


def accuracy(run: Run) -> Reading:
    """Our share of the three risks against the peer's at 500 and 2000 rows, and the spread."""
    lines, fine = [], True
    for size in (500, 2000):
        ours = run.of("accuracy of the excess risk", "ours", size)
        theirs = run.of("accuracy of the excess risk", "covmetrics", size)
        if not ours or not theirs or not ours["answers"] or not theirs["answers"]:
            return NOT_MEASURED
        a, b = ours["answers"], theirs["answers"]
        keys = ("l1", "l2", "kl")
        fine &= all(a[k] >= b[k] for k in keys)
        fine &= all(x <= y for x, y in zip(a["spread"], b["spread"], strict=True))
        lines.append(f"n = {size}: " + ", ".join(f"{k.upper()} {a[k]:.4f} against {b[k]:.4f}" for k in keys))
    return Reading("; ".join(lines), fine)


def risk_time(run: Run) -> Reading:
    """CPU of the excess risk over the peer's, at three sizes."""
    ratios = []
    for size in (1_000, 10_000, 100_000):
        ours, theirs = run.of("excess risk", "ours", size), run.of("excess risk", "covmetrics", size)
        if not ours or not theirs or math.isnan(ratio(theirs["cpu"], ours["cpu"])):
            return NOT_MEASURED
        ratios.append(ratio(theirs["cpu"], ours["cpu"]))
    return Reading(" / ".join(f"{r:.1f}x" for r in ratios) + " at 1k / 10k / 100k", min(ratios) >= 5)


def null_band(run: Run) -> Reading:
    """Median and 95 % point of T-CV at 20 000 rows."""
    ours = run.of("null band of T-CV", "ours", 20_000)
    if ours is None:
        return NOT_MEASURED
    median, high = ours["answers"]["median"], ours["answers"]["high"]
    return Reading(f"{median:.4f}, {high:.4f}", abs(median - 0.0375) <= 0.001 and abs(high - 0.05) <= 0.002)


def certificate(run: Run) -> Reading:
    """How much tighter the bound is at three sizes."""
    found = [m["answers"] for m in run.measurements if m["task"] == "width of the calibration certificate"]
    if not found:
        return NOT_MEASURED
    massart, exact = ([a[f"{name}_over_ours"] for a in found] for name in ("massart", "rademacher"))
    text = f"{min(massart):.1f}-{max(massart):.1f}x, {min(exact):.1f}-{max(exact):.1f}x"
    return Reading(text, min(massart) >= 10 and min(exact) >= 7)


def study_memory(run: Run) -> Reading:
    """Time and memory of the whole USPS study on images of the same number and size."""
    ours = run.of("USPS study", "ours", 9298)
    if ours is None:
        return NOT_MEASURED
    wall, cpu, memory = (number(ours[name]) for name in ("wall", "cpu", "peak_mb"))
    text = f"{wall / 60:.1f} min by the clock, {cpu:.0f} CPU s, {memory / 1024:.1f} GiB"
    if wall >= 900 > cpu and busy(ours, run):
        return Reading(f"{text}; {ours['load']:.0f} processes wanted the cores", None)
    return Reading(text, wall < 900 and memory < 6 * 1024)


def all_kinds(kinds: list[str], most: float, size: int) -> Read:
    """The slowest kind of scores, in units of an argsort."""

    def read(run: Run) -> Reading:
        found = {kind: of_limit(run, f"calibration error of {kind} scores", size) for kind in kinds}
        if any(math.isnan(value) for value in found.values()):
            return NOT_MEASURED
        worst = max(found, key=lambda kind: found[kind])
        return Reading(f"{found[worst]:.2f}x of an argsort ({worst})", found[worst] <= most)

    return read


def faster_than(task: str, libraries: list[str], size: int) -> Read:
    """Every one of these peers is slower."""

    def read(run: Run) -> Reading:
        ours = run.of(task, "ours", size)
        theirs = {name: run.of(task, name, size) for name in libraries}
        if ours is None or any(m is None or m["problem"] for m in theirs.values()):
            return NOT_MEASURED
        ratios = {name: ratio(m["cpu"], ours["cpu"]) for name, m in theirs.items() if m}
        return Reading(", ".join(f"{n} {r:.1f}x" for n, r in ratios.items()), min(ratios.values()) > 1)

    return read


def descent(run: Run) -> Reading:
    """1000 trials of the study from one of them."""
    ours = run.of("performance: GD and SGD of the study, side by side", "ours", 1000)
    if ours is None:
        return NOT_MEASURED
    minutes = 1000 * number(ours["cpu"]) / 60
    return Reading(f"{minutes:.1f} min (1000 times one trial)", minutes < 60)


def gpu_job(word: str, least_times_cpu: float = 50, most_over_bare: float = 2) -> Read:
    """One line of the stored GPU run."""

    def read(_: Run) -> Reading:
        rows = [row for row in gpu_rows() if word in row["job"]]
        if not rows:
            return Reading("no stored GPU run", None)
        row = rows[0]
        text = f"{row['ours_ms']:.2f} ms, {row['over_bare']:.2f}x bare, {row['times_cpu']:.0f}x two cores"
        met = row["times_cpu"] >= least_times_cpu and row["over_bare"] <= most_over_bare and row["same"]
        return Reading(text, met)

    return read


def gpu_chain(run: Run) -> Reading:
    """The chain on the stored GPU run against TorchCP on one core, scaled from 8000 rows to 40 000."""
    theirs = run.of("adaptivity chain", "torchcp", 8_000)
    if theirs is None or not GPU.exists():
        return NOT_MEASURED
    chain = json.loads(GPU.read_text(encoding="utf-8"))["chain"]
    ours = sum(step["seconds"] for step in chain["steps"])
    found = 5 * number(theirs["cpu"]) / ours
    text = (
        f"{found:.0f}x: {1e3 * chain['all steps seconds']:.1f} ms, {1e3 * ours:.0f} ms with null laws; "
        f"ease at {chain['steps'][0]['GB/s']:.0f} of {chain['copy bandwidth GB/s']:.0f} GB/s"
    )
    return Reading(text, found >= 20)


def gpu_rows() -> list[dict[str, Any]]:
    """The stored GPU run, job by job."""
    return json.loads(GPU.read_text(encoding="utf-8"))["rows"] if GPU.exists() else []


def large_file_rows() -> list[dict[str, Any]]:
    """The stored run over files larger than memory: one row per task and size."""
    return json.loads(LARGE_FILES.read_text(encoding="utf-8")) if LARGE_FILES.exists() else []


def largest_file() -> list[dict[str, Any]]:
    """Its rows of the largest size."""
    rows = large_file_rows()
    return [row for row in rows if row["rows"] == max(r["rows"] for r in rows)]


def large_file_scans(*, single: bool) -> Read:
    """Metrics of one pass, or of several, over a bare scan: by the clock, which decides, and in CPU time."""

    def read(_: Run) -> Reading:
        rows = [r for r in largest_file() if r["task"] != "audit" and (r["passes"] == 1) == single]
        if not rows:
            return Reading("no stored run over large files", None)
        figures = [_over_scan(row, passes=not single) for row in rows]
        return Reading("; ".join(figures), all(r["wall"] <= 2 * r["passes"] * r["scan_wall"] for r in rows))

    return read


def _over_scan(row: dict[str, Any], *, passes: bool) -> str:
    clock, cpu = row["wall"] / row["scan_wall"], row["cpu"] / row["scan_cpu"]
    words = f" in {row['passes']} passes" if passes else ""
    return f"{row['task']} {clock:.1f}x{words} (CPU {cpu:.1f}x)"


def large_file_memory(_: Run) -> Reading:
    """The largest peak at the largest size."""
    rows = largest_file()
    if not rows:
        return Reading("no stored run over large files", None)
    worst = max(rows, key=lambda row: row["peak_gb"])
    return Reading(f"{worst['peak_gb']:.2f} GB ({worst['task']})", worst["peak_gb"] < 2)


def gpu_machine() -> str:
    """Where and when the stored GPU run was made."""
    stored = json.loads(GPU.read_text(encoding="utf-8"))
    return f"{stored['device']}, torch {stored['torch']}, {stored['date']} UTC."


def small_install(run: Run) -> Reading:
    """Size on disk, and how many of its packages are deep-learning or boosting libraries."""
    ours = run.of("install size")
    if ours is None or "heavy" not in ours["answers"]:
        return NOT_MEASURED
    found = ours["answers"]
    heavy = found["heavy"] or "none"
    text = f"{found['megabytes']:.0f} MB, {found['packages']} packages, {heavy} of them such a library"
    return Reading(text, found["heavy"] == 0)
