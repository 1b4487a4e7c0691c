"""Commands killed at random moments: what they leave is all old or all new, and the next run completes it."""

from __future__ import annotations

import contextlib
import io
import multiprocessing
import os
import signal
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from tests.fuzz.calls import Tally

SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
PART = ".calipers-"
LONGEST = 120.0
_PRELOADED = ["calipers.cli", "calipers.cli.audit", "calipers.auditing", "calipers.engines", __name__]
# What a file holds; a folder of parts is its files by name.
Contents = dict[str, bytes]


@dataclass(frozen=True, slots=True)
class Job:
    """A command that writes files.

    Parameters
    ----------
    words : list of str
        Of the command line; the two variants differ by ``--alpha``.
    new, old : dict
        The files of an uninterrupted run, and those of the other variant, which are there before.
    seconds : float
        What an uninterrupted run takes.
    """

    words: list[str]
    new: Contents
    old: Contents
    seconds: float


def write_rows(folder: Path, n: int = 900, files: int = 3) -> None:
    """Intervals that are too narrow in one group, in several files and in one."""
    rng = np.random.default_rng(0)
    scale = np.where(np.arange(n) % 3 == 0, 2.5, 1.0)
    frame = pl.DataFrame(
        {
            "y_true": rng.normal(size=n) * scale,
            "lower": np.full(n, -1.6),
            "upper": np.full(n, 1.6),
            "group": np.where(scale > 1, "hot", "cool"),
            "ease": rng.random(n),
        }
    )
    (folder / "rows").mkdir()
    for number in range(files):
        frame[number::files].write_parquet(folder / "rows" / f"{number}.parquet")
    frame.write_parquet(folder / "all.parquet")


def commands(folder: Path) -> list[list[str]]:
    """A streamed audit that keeps its work, and a repair that writes rows."""
    rows = str(folder / "all.parquet")
    return [
        ["audit", str(folder / "rows"), "--engine", "local", "--quiet"],
        ["repair", rows, "--apply", rows, "--quiet"],
    ]


def run(words: list[str]) -> None:
    """The command, silently; stored states are written after every piece."""
    from calipers.cli import main
    from calipers.engines import resuming

    resuming._SECONDS = resuming._RATIO = 0.0
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = main(words)
    sys.exit(code)


def start(words: list[str]) -> multiprocessing.process.BaseProcess:
    """The command in a process of its own, of a server that has the imports done."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_PRELOADED)
    process = context.Process(target=run, args=(words,))
    process.start()
    return process


def finished(words: list[str]) -> int | None:
    """The exit code of an uninterrupted run."""
    process = start(words)
    process.join(LONGEST)
    return process.exitcode


def found_in(folder: Path) -> Contents:
    """The files of a folder that are not hidden, by name."""
    if not folder.is_dir():
        return {}
    places = [path for path in folder.rglob("*") if path.is_file()]
    shown = [path.relative_to(folder) for path in places]
    return {str(name): (folder / name).read_bytes() for name in shown if not name.parts[0].startswith(PART)}


def make_job(folder: Path, words: list[str]) -> Job:
    """Run both variants to their end."""
    contents, seconds = [], 0.0
    for alpha in ("0.1", "0.2"):
        out = folder / f"{words[0]}-{alpha}"
        begin = time.monotonic()
        code = finished([*words, "--alpha", alpha, "--out", str(out)])
        seconds = time.monotonic() - begin
        if code not in {0, 1}:
            raise RuntimeError(f"{words[0]} ends with {code}")
        contents.append(found_in(out))
    return Job(words, contents[0], contents[1], seconds)


def kill_run(folder: Path, job: Job, seed: int, tally: Tally) -> None:
    """One run that is killed, what it leaves, and what the next run makes of it; into the tally."""
    rng = np.random.default_rng([seed, 11])
    out, cache = folder / f"out{seed}", folder / f"cache{seed}"
    before = job.old if rng.random() < 0.5 else {}
    for name, content in before.items():
        (out / name).parent.mkdir(parents=True, exist_ok=True)
        (out / name).write_bytes(content)
    words = [*job.words, "--alpha", "0.1", "--out", str(out)]
    words += ["--cache", str(cache)] if job.words[0] == "audit" else []
    process = start(words)
    time.sleep(float(rng.uniform(0, 1.2 * job.seconds)))
    process_number = process.pid
    if process.is_alive() and process_number is not None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process_number, SIGNALS[int(rng.integers(len(SIGNALS)))])
    process.join(LONGEST)
    left = found_in(out)
    was_killed = process.exitcode not in {0, 1}
    wrong = "" if left in (before, job.new) else f"left {sorted(left)}, neither all old nor all new"
    code = finished(words)
    hidden = [path.name for path in out.iterdir() if path.name.startswith(PART)] if out.is_dir() else []
    if found_in(out) != job.new:
        wrong = wrong or f"the next run (exit {code}) does not give the files of an uninterrupted one"
    elif hidden:
        wrong = wrong or f"{hidden[0]} is left after the next run"
    tally.outcomes["mixed" if wrong else "killed" if was_killed else "ended first"] += 1
    if wrong:
        tally.failures.setdefault((f"killed {job.words[0]}", wrong[:40]), f"seed {seed}: {wrong}")


def kill_many(folder: Path, seeds: range, tally: Tally, until: float = np.inf) -> None:
    """Runs of every command in turn, each killed at a random moment, while the clock has not reached the end."""
    write_rows(folder)
    jobs = [make_job(folder, words) for words in commands(folder)]
    for seed in seeds:
        if time.monotonic() >= until:
            break
        kill_run(folder, jobs[seed % len(jobs)], seed, tally)
