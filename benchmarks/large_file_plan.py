"""The cost of 1e9 and 1e12 rows from what was measured: bytes read, states moved, passes, time.

    python -m benchmarks.large_file_plan large_files.json [more.json ...] > plan.md

Bytes per row come from a file written for the purpose, sizes of states and times of merges from states that
have absorbed simulated partitions, seconds per row from the largest size measured by
`benchmarks.large_files`. The first table predicts the larger sizes measured from the smaller ones.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large_files import GROUP_ROWS, TASKS, block_of_rows, write_file

WORKERS = {10**9: 2, 10**12: 1000}
PARTITIONS = 16
Result = dict[str, Any]


def row_bytes(columns: tuple[str, ...]) -> float:
    """Stored bytes per row of some columns."""
    import pyarrow.parquet as parquet

    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "rows.parquet")
        write_file(place, GROUP_ROWS)
        group = parquet.ParquetFile(place).metadata.row_group(0)
        sizes = {
            group.column(i).path_in_schema: group.column(i).total_compressed_size
            for i in range(group.num_columns)
        }
    return sum(sizes[name] for name in columns) / GROUP_ROWS


def partition(seed: int, *, p_values: bool) -> Any:
    """A block of simulated rows."""
    from calipers.engines import Rows

    columns = block_of_rows(np.random.default_rng(seed), 1 << 14)
    matrices = {prefix: np.stack([columns[f"{prefix}_{k}"] for k in range(10)]).T for prefix in ("p", "set")}
    given = {"y_true": columns["y_true"], "sets": matrices["set"], "ease": columns["ease"]}
    given |= {"p_values" if p_values else "probabilities": matrices["p"], "groups": columns["group"]}
    return Rows(given, classes=np.arange(10))


def state_cost(task: str) -> tuple[int, float]:
    """Largest bytes of the states of one piece over all passes, and seconds of one merge."""
    from calipers.engines import state_of
    from calipers.engines.planning import state_size
    from calipers.metrics.reliability import calibration_states

    # As in a run of many rows, none of which are kept.
    calibration_states._SMALL = calibration_states._PACKED_ROWS = 0
    blocks = [partition(seed, p_values=task == "ten criteria") for seed in range(PARTITIONS)]
    states: list[Any] = [state_of(name, alpha=0.1) for name in TASKS[task][1]]
    largest, seconds = 0, 0.0
    while states:
        parts = [[state.fresh() for state in states] for _ in blocks]
        for part, block in zip(parts, blocks, strict=True):
            for state in part:
                state.absorb(block)
                state.settle()
                state.shed()
        largest = max(largest, *(sum(state_size(state) for state in part) for part in parts))
        start = time.perf_counter()
        for part in parts[1:]:
            for mine, theirs in zip(parts[0], part, strict=True):
                mine.merge(theirs)
        seconds = max(seconds, (time.perf_counter() - start) / (PARTITIONS - 1))
        for state, given in zip(parts[0], states, strict=True):
            state.regain(given)
        states = [state for state in (s.advance() for s in parts[0]) if state is not None]
    return largest, seconds


def per_row(result: Result) -> float:
    """Processor seconds per row and pass: a machine may be shared, its processor seconds are not."""
    return float(result["cpu"]) / result["rows"] / result["passes"]


def checks(results: list[Result]) -> list[str]:
    """Larger sizes predicted from the next smaller one, beside what they took."""
    lines = [
        "| task | predicted from | rows | predicted CPU s | measured CPU s | ratio |",
        "|---|---|---|---|---|---|",
    ]
    for task in dict.fromkeys(result["task"] for result in results):
        own = sorted((r for r in results if r["task"] == task), key=lambda r: r["rows"])
        for small, large in pairwise(own):
            predicted = per_row(small) * large["rows"] * large["passes"]
            ratio = large["cpu"] / predicted
            sizes = f"{small['rows']:.0e} | {large['rows']:.0e}"
            lines.append(f"| {task} | {sizes} | {predicted:.1f} | {large['cpu']:.1f} | {ratio:.2f} |")
    return lines


def plans(results: list[Result]) -> list[str]:
    """The plan of every task at 1e9 and 1e12 rows."""
    from calipers.engines import plan_run

    lines = [
        "| task | rows | passes | B/row | state kB | piece rows | pieces | read | moved | workers | time |",
        "|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for task in TASKS:
        own = max((r for r in results if r["task"] == task), key=lambda r: r["rows"], default=None)
        if own is None:
            continue
        stored, (state, merge) = row_bytes(TASKS[task][0]), state_cost(task)
        for rows, workers in WORKERS.items():
            plan = plan_run(
                rows, row_bytes=stored, state_bytes=state, passes=own["passes"],
                seconds_per_row=per_row(own), merge_seconds=merge, workers=workers,
            )  # fmt: skip
            lines.append(
                f"| {task} | {rows:.0e} | {plan.passes} | {stored:.1f} | {state / 1e3:.0f} | "
                f"{plan.piece_rows:.1e} | {plan.pieces} | {plan.bytes_read / 1e9:.0f} GB | "
                f"{plan.bytes_moved / 1e9:.3f} GB | {workers} cores | {plan.seconds / 60:.1f} min |"
            )
    return lines


def main() -> None:
    """Print both tables."""
    results = [one for file in sys.argv[1:] for one in json.loads(Path(file).read_text(encoding="utf-8"))]
    print("\n".join(checks(results)))
    print()
    print("\n".join(plans(results)))


if __name__ == "__main__":
    main()
