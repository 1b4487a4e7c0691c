"""Run the grid: every promise in every regime, with as many runs as decide; finished cells are kept.

``python -m tests.grid.running [--only NAME ...] [--missing] [--doubtful] [--cache FOLDER]`` writes tests/grid/records.json, from which
``python -m tests.grid.page`` writes the page of the site.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calipers.performance.caching import ResumableCache
from tests.grid.promises import PROMISES, Promise
from tests.grid.readings import Count, Reading, count_readings
from tests.grid.regimes import Regime

RECORDS = Path(__file__).with_name("records.json")
Records = dict[str, dict[str, dict[str, Any]]]


def run_cell(promise: Promise, regime: Regime, runs: tuple[int, ...] | None = None) -> dict[str, Count]:
    """The counts of one cell; it ends as soon as they lie on the safe side.

    Counts that lie beyond a bar, which Monte-Carlo error may explain, are decided by four times as many runs.
    """
    stages = promise.runs if runs is None else runs
    found: list[list[Reading]] = []
    counts: dict[str, Count] = {}
    for stage in (*stages, *([4 * stages[-1]] if runs is None and len(stages) > 1 else [])):
        found += [one_run(promise, regime, run) for run in range(len(found), stage)]
        counts = count_readings(found)
        if stage < stages[-1] and all(count.is_clear() for count in counts.values()):
            break
        if stage == stages[-1] and not any(count.is_beyond() for count in counts.values()):
            break
    return counts


def one_run(promise: Promise, regime: Regime, run: int) -> list[Reading]:
    """One data set; its seed belongs to the cell, so that cells can be run in any order."""
    seed = zlib.crc32(f"{promise.name}|{regime.name}".encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small samples warn on purpose
        return promise.trial(np.random.default_rng([seed, run]), regime)


def run_promise(
    promise: Promise,
    cache: ResumableCache,
    report: Any = None,
    kept: Mapping[str, dict[str, Any]] | None = None,
) -> dict[str, dict[str, Any]]:
    """All cells of a promise, in the form in which they are stored; those that are ``kept`` are not run."""
    stored = {}
    for regime in promise.regimes:
        if kept is not None and regime.name in kept:
            stored[regime.name] = kept[regime.name]
            continue
        part = f"{zlib.crc32(f'{promise.name}|{regime.name}|{promise.runs}'.encode()):08x}"
        start = time.perf_counter()
        stored[regime.name] = cache.get(part, lambda regime=regime: to_json(run_cell(promise, regime)))
        if report is not None:
            report(promise, regime, stored[regime.name], time.perf_counter() - start)
    return stored


def decided(cells: Mapping[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Recorded cells whose counts do not lie beyond a bar."""
    return {
        regime: cell
        for regime, cell in cells.items()
        if not any(Count.from_json(stored).is_beyond() for stored in cell.values())
    }


def to_json(counts: dict[str, Count]) -> dict[str, Any]:
    """The counts of a cell as plain numbers."""
    return {key: count.to_json() for key, count in counts.items()}


def read_records() -> Records:
    """The cells that were run last; none when there are no records."""
    return json.loads(RECORDS.read_text(encoding="utf-8")) if RECORDS.exists() else {}


def write_records(records: Records) -> None:
    """Keep the cells, in the order of the table of promises."""
    ordered = {name: records[name] for name in PROMISES if name in records}
    # One line per cell, so that a difference shows the cells that changed.
    parts = [
        f"{json.dumps(name)}: {{\n"
        + ",\n".join(f"{json.dumps(regime)}: {json.dumps(cell)}" for regime, cell in cells.items())
        + "\n}"
        for name, cells in ordered.items()
    ]
    RECORDS.write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def print_cell(promise: Promise, regime: Regime, cell: dict[str, Any], seconds: float) -> None:
    """One line per cell, and one per bar that is missed."""
    counts = {key: Count.from_json(stored) for key, stored in cell.items()}
    missed = {key: count.failures() for key, count in counts.items() if count.failures()}
    print(f"{promise.name} | {regime.name} | {seconds:.1f} s | {'MISSED' if missed else 'holds'}", flush=True)
    for key, lines in missed.items():
        print(f"    {key}: {'; '.join(lines)}", flush=True)


def main(words: list[str] | None = None) -> int:
    """Run the promises that are named, or all, and keep their cells."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=None, help="promises to run")
    parser.add_argument("--missing", action="store_true", help="run only cells that have not been recorded")
    parser.add_argument(
        "--doubtful",
        action="store_true",
        help="run only cells that are missing or whose counts lie beyond a bar",
    )
    parser.add_argument("--cache", default=None, help="folder of finished cells")
    chosen = parser.parse_args(words)
    cache = ResumableCache.open(chosen.cache, "grid")
    for name in chosen.only or PROMISES:
        recorded = read_records().get(name, {})
        kept = recorded if chosen.missing else decided(recorded) if chosen.doubtful else None
        cells = run_promise(PROMISES[name], cache, print_cell, kept)
        write_records(read_records() | {name: cells})
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
