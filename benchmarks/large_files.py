"""Files larger than memory: each measurement beside a bare scan of the same columns, and its memory.

    python -m benchmarks.large_files --folder DIR --rows 1e6,1e7,1e8 --out large_files.json

Writes parquet files of ten classes in float32 (about 57 bytes a row) into DIR, one size at a time, measures
each task in a process of its own (scan and task in turns, the best of a few), and deletes the file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

N_CLASSES = 10
GROUP_ROWS = 1 << 18
SCORES = tuple(f"p_{k}" for k in range(N_CLASSES))
SETS = tuple(f"set_{k}" for k in range(N_CLASSES))
# Task -> the columns it reads, the metrics, and whether the scores stand for p-values.
TASKS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "coverage": (("y_true", *SETS), ("coverage",)),
    "coverage and sizes": (("y_true", *SETS), ("coverage", "sscv", "escv")),
    "groups": (("y_true", "group", *SETS), ("coverage_gap",)),
    "ten criteria": (("y_true", *SCORES), ("efficiency",)),
    "proper scores": (("y_true", *SCORES), ("proper_scores",)),
    "calibration error": (("y_true", *SCORES), ("calibration_error",)),
    "T-CV": (("y_true", "ease", *SETS), ("t_cv",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """One task at one size: seconds of the scan and of the task, passes over the rows, peak memory."""

    task: str
    rows: int
    passes: int
    scan_wall: float
    wall: float
    scan_cpu: float
    cpu: float
    peak_gb: float

    def row(self) -> str:
        """A line of the table."""
        wall, cpu = self.wall / self.scan_wall, self.cpu / self.scan_cpu
        return (
            f"| {self.task} | {self.rows:.0e} | {self.passes} | {self.scan_wall:.2f} | {self.wall:.2f} | "
            f"{wall:.2f} | {cpu:.2f} | {2 * self.passes} | {self.peak_gb:.2f} |"
        )


def block_of_rows(rng: np.random.Generator, n: int) -> dict[str, np.ndarray]:
    """Columns of n rows: a calibrated model of ten classes, adaptive sets, a noisy ease, eight groups."""
    logits = rng.standard_normal((n, N_CLASSES), dtype=np.float32) * np.float32(1.5)
    P = np.exp(logits)
    P /= P.sum(axis=1, keepdims=True)
    drawn = rng.random((n, 1), dtype=np.float32) > P.cumsum(axis=1)
    y = np.minimum(drawn.sum(axis=1), N_CLASSES - 1).astype(np.int8)
    order = np.argsort(-P, axis=1)
    ordered = np.take_along_axis(P, order, axis=1)
    sets = np.empty((n, N_CLASSES), dtype=bool)
    np.put_along_axis(sets, order, ordered.cumsum(axis=1) - ordered < np.float32(0.9), axis=1)
    noise = rng.standard_normal(n, dtype=np.float32) * np.float32(0.05)
    columns = {"y_true": y, "ease": P.max(axis=1) + noise, "group": rng.integers(0, 8, n).astype(np.int8)}
    columns |= {name: np.ascontiguousarray(P[:, k]) for k, name in enumerate(SCORES)}
    return columns | {name: np.ascontiguousarray(sets[:, k]) for k, name in enumerate(SETS)}


def write_file(place: Path, n: int, seed: int = 0) -> None:
    """A parquet file of n rows, written row group by row group."""
    import pyarrow as pa
    import pyarrow.parquet as parquet

    rng = np.random.default_rng(seed)
    first = pa.table(block_of_rows(rng, min(n, GROUP_ROWS)))
    with parquet.ParquetWriter(place, first.schema, compression="snappy", use_dictionary=False) as writer:
        writer.write_table(first)
        for start in range(GROUP_ROWS, n, GROUP_ROWS):
            writer.write_table(pa.table(block_of_rows(rng, min(GROUP_ROWS, n - start))))


def scan(place: str, columns: Sequence[str]) -> None:
    """Count the rows and average the columns, by the streaming engine of polars."""
    import polars as pl

    means = [pl.col(name).mean() for name in columns]
    pl.scan_parquet(place).select(pl.len(), *means).collect(engine="streaming")


class CountingEngine:
    """The local engine, counting its passes."""

    def __init__(self) -> None:
        from calipers.engines.running import LocalEngine

        self.own, self.passes = LocalEngine(), 0

    def reduce(self, pieces: Any, states: Any, progress: Any) -> Any:
        """One pass more."""
        self.passes += 1
        return self.own.reduce(pieces, states, progress)


def measure_task(place: str, task: str) -> int:
    """The task over a file; the passes it took."""
    from calipers.engines import FileSource, measure
    from calipers.inputs.files import ColumnChoice

    choice = ColumnChoice(p_values=("p_*",)) if task == "ten criteria" else ColumnChoice()
    engine = CountingEngine()
    measure(FileSource(place, choice=choice), TASKS[task][1], alpha=0.1, engine=engine)
    return engine.passes


def audit_file(place: str) -> int:
    """The whole audit of a file; the passes it took."""
    from calipers.auditing import audit
    from calipers.engines import FileSource

    engine = CountingEngine()
    audit(source=FileSource(place), alpha=0.1, random_state=0, engine=engine)
    return engine.passes


def clocked(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """Wall seconds, processor seconds, and the answer."""
    wall, cpu = time.perf_counter(), time.process_time()
    answer = work()
    return time.perf_counter() - wall, time.process_time() - cpu, answer


def run_task(place: str, task: str, rows: int, repeats: int) -> Measured:
    """Scan and task in turns, the best of each; everything in this process, imports before the clock."""
    for module in ("calipers.auditing", "calipers.engines", "polars", "sklearn.ensemble"):
        importlib.import_module(module)

    if task == "audit":
        columns: tuple[str, ...] = ("y_true", "ease", "group", *SCORES, *SETS)
        work: Callable[[], int] = lambda: audit_file(place)  # noqa: E731
    else:
        columns = TASKS[task][0]
        work = lambda: measure_task(place, task)  # noqa: E731
    scans, tasks = [], []
    for _ in range(repeats):
        scans.append(clocked(lambda: scan(place, columns)))
        tasks.append(clocked(work))
    return Measured(
        task=task, rows=rows, passes=tasks[0][2],
        scan_wall=min(s[0] for s in scans), wall=min(t[0] for t in tasks),
        scan_cpu=min(s[1] for s in scans), cpu=min(t[1] for t in tasks),
        peak_gb=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    )  # fmt: skip


def in_own_process(place: Path, task: str, rows: int, repeats: int) -> Measured:
    """The task in a process of its own, so that its peak of memory is its own."""
    words = [sys.executable, "-m", "benchmarks.large_files", "--one", task, "--file", str(place)]
    words += ["--rows", str(rows), "--repeats", str(repeats)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)
    return Measured(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Write, measure, delete, size by size."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path())
    parser.add_argument("--rows", default="1e6,1e7")
    parser.add_argument("--tasks", default=",".join([*TASKS, "audit"]))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--one")
    parser.add_argument("--file")
    given = parser.parse_args()
    if given.one:
        print(json.dumps(asdict(run_task(given.file, given.one, int(given.rows), given.repeats))))
        return
    print("| task | rows | passes | scan s | task s | wall ratio | CPU ratio | bar | peak GB |")
    print("|---|---|---|---|---|---|---|---|---|", flush=True)
    found: list[Measured] = []
    for rows in (int(float(word)) for word in given.rows.split(",")):
        place = given.folder / f"rows-{rows}.parquet"
        if not place.exists():
            write_file(place, rows)
        try:
            for task in given.tasks.split(","):
                found.append(in_own_process(place, task, rows, given.repeats))
                print(found[-1].row(), flush=True)
        finally:
            place.unlink()
    if given.out is not None:
        given.out.write_text(json.dumps([asdict(one) for one in found], indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
