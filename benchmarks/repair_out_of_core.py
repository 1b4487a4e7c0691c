"""A repair applied to many rows in a file: time beside reading and writing them, and memory.

Run with ``python -m benchmarks.repair_out_of_core [--rows 10000000]``. Each run is a process of its own, so
that its peak memory is its own: the file is read and written part by part as it is, then through a repair of
each kind: one threshold, a threshold per group, and one that reads features by boosted trees.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import polars as pl

import calipers
from calipers.auditing.repair import load_repair
from calipers.auditing.repair.repaired_files import repair_file
from calipers.auditing.repair.rule import RepairRule
from calipers.inputs.block_sizes import rows_per_piece
from calipers.inputs.files.formats import write_table
from calipers.inputs.files.readers import open_file

FEATURES = 4


def rows(n: int, seed: int) -> pl.DataFrame:
    """Intervals whose coverage depends on a group and on features."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, FEATURES))
    group = rng.integers(0, 4, n)
    center = X[:, 2]
    spread = 0.3 + 2 * (X[:, 0] > 0.8) + X[:, 1] + 0.5 * group
    return pl.DataFrame(
        {"y_true": center + spread * rng.normal(size=n), "lower": center - 2.5, "upper": center + 2.5}
        | {f"x{j}": X[:, j] for j in range(FEATURES)}
        | {"group": np.array(["a", "b", "c", "d"])[group]}
    )


def make_repairs(folder: Path) -> list[str]:
    """Repairs of each kind, saved."""
    frame = rows(4000, 0)
    given = {
        "y_true": frame["y_true"].to_numpy(),
        "intervals": frame.select("lower", "upper").to_numpy(),
    }
    X, groups = frame.select([f"x{j}" for j in range(FEATURES)]), frame["group"].to_numpy()
    kinds = {
        "one threshold or scale": {},
        "per group": {"groups": groups},
        "trees": {"X": X, "groups": groups},
    }
    for name, further in kinds.items():
        calipers.audit(**given, **further, random_state=0).repair().save(folder / f"{name}.json")
    return list(kinds)


def write_as_it_is(path: Path, folder: Path) -> None:
    """Read and write part by part: what a repair cannot be faster than."""
    reader = open_file(str(path))
    names = list(reader.columns)
    parts = reader.batches(0, reader.n_rows, names, rows_per_piece(len(names)))
    for number, frame in enumerate(parts):
        write_table(frame, str(folder / f"part-{number:05d}.parquet"))


def one_run(kind: str, folder: Path) -> None:
    """One kind in this process: seconds, seconds of processors and peak memory in MiB."""
    source = folder / "rows.parquet"
    with tempfile.TemporaryDirectory(dir=folder) as out:
        begin, busy = time.perf_counter(), time.process_time()
        if kind == "as it is":
            write_as_it_is(source, Path(out))
        else:
            rule = load_repair(folder / f"{kind}.json").rule
            assert isinstance(rule, RepairRule)
            repair_file(rule, source, Path(out))
        spent, busy = time.perf_counter() - begin, time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{spent:.2f} {busy:.2f} {peak:.0f}")


def make_rows(folder: Path, n: int) -> None:
    """Write the file, in a process of its own: its peak memory would count as that of every later child."""
    step = 1_000_000
    pl.concat([rows(min(step, n - first), first) for first in range(0, n, step)]).write_parquet(
        folder / "rows.parquet"
    )


def child(folder: str, *words: str) -> list[str]:
    """What this module prints when it is run with these words."""
    command = [sys.executable, "-m", "benchmarks.repair_out_of_core", "--folder", folder, *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()


def main() -> None:
    """Print a table of seconds, ratios (of seconds, of processor seconds) and memory."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--run", default="")
    parser.add_argument("--folder", default="")
    chosen = parser.parse_args()
    if chosen.run == "make":
        make_rows(Path(chosen.folder), chosen.rows)
        return
    if chosen.run:
        one_run(chosen.run, Path(chosen.folder))
        return
    with tempfile.TemporaryDirectory() as folder:
        child(folder, "--run", "make", "--rows", str(chosen.rows))
        base: list[float] = []
        print("| what is done | seconds | processor seconds | beside reading and writing | peak memory |")
        print("|---|---:|---:|---:|---:|")
        for kind in ("as it is", *make_repairs(Path(folder))):
            done = child(folder, "--run", kind)
            spent, busy = float(done[0]), float(done[1])
            base = base or [spent, busy]
            ratios = f"{spent / base[0]:.2f}, {busy / base[1]:.2f}"
            print(f"| {kind} | {spent:.1f} | {busy:.1f} | {ratios} | {done[2]} MiB |", flush=True)


if __name__ == "__main__":
    main()
