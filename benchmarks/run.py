"""``python3 dev.py bench``: every task against every peer, in one run, as ratios.

The run is stored after every measurement. ``--run NAME`` names it, and continues it when it exists: what was
measured is not measured again (``--again`` does), so a long run can be made in pieces (``--seconds N`` stops
after that time). ``--only WORD,WORD`` takes the tasks whose names hold one of the words.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from benchmarks import league, page, picture, store, summary  # noqa: E402
from benchmarks.environments import Environment, build, pinned, pinned_version  # noqa: E402
from benchmarks.measure import measure  # noqa: E402
from benchmarks.protocol import Task  # noqa: E402

QUICK_REPETITIONS = 3
LOCAL = ROOT / "benchmarks" / "results" / "local"


def tasks(word: str) -> list[tuple[str, Task]]:
    """Module and task of everything in benchmarks/tasks whose name holds one of the words."""
    modules = sorted(p.stem for p in (ROOT / "benchmarks" / "tasks").glob("*.py") if p.stem != "__init__")
    names = [f"benchmarks.tasks.{name}" for name in modules]
    return [
        (name, task)
        for name in names
        for task in importlib.import_module(name).TASKS
        if any(part in task.name for part in word.split(","))
    ]


def environments(only: str) -> dict[str, Environment]:
    """The environments of the peers: all of peers.toml, or those named."""
    wanted = only.split(",") if only else list(pinned())
    return {name: build(name) for name in wanted}


def parser() -> argparse.ArgumentParser:
    """The command line of this file."""
    top = argparse.ArgumentParser(
        prog="python3 dev.py bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    add = top.add_argument
    add("--quick", action="store_true", help="smallest size, no peers, against the last stored run")
    add("--run", default="", metavar="NAME", help="name of the run; an existing one is continued")
    add("--only", default="", metavar="WORD,WORD", help="tasks whose name holds one of the words")
    add("--peers", default="", metavar="NAME,NAME", help="these peers only")
    add("--again", action="store_true", help="measure also what the run already holds")
    add("--seconds", type=float, default=float("inf"), help="stop after the measurement under way then")
    add("--repetitions", type=int, default=5)
    add("--league", action="store_true", help="who gets which trap right, and nothing else")
    add("--instructions", action="store_true", help="callgrind counts of the hot kernels, and nothing else")
    add("--gpu", action="store_true", help="GPU arrays, and nothing else")
    add("--page", action="store_true", help="write docs/benchmarks.md from the stored run, measure nothing")
    return top


def main(arguments: list[str]) -> int:
    """Measure what was asked for, print the table, store the run, write the page."""
    options = parser().parse_args(arguments)
    if options.gpu:
        return importlib.import_module("benchmarks.gpu.run").main()
    if options.instructions:
        return importlib.import_module("benchmarks.instructions").main()
    if options.quick:
        return quick(options.only)
    run = store.load(options.run or (latest_name() if options.page else store.new_name()))
    if options.page:
        return finish(run)
    peers = environments(options.peers)
    note_versions(run, peers)
    if options.league:
        return league.main(run, peers)
    done = measure_all(run, peers, options)
    print(summary.text_table(summary.own_cells(run.measurements)))
    print("\n" + summary.text_table(summary.ratio_cells(run.measurements)))
    print("\n" + summary.text_table(summary.wrong_cells(run.measurements)))
    for name, problem in run.content["not_installed"].items():
        print(f"{name} did not install: {problem}")
    if not done or options.only or options.peers:
        run.save()
        print(f"stored; continue it with --run {run.name}")
        return 0
    if not run.content["league"]:
        league.fill(run, peers)
    return finish(run)


def latest_name() -> str:
    """The name of the newest stored run."""
    runs = store.history()
    if not runs:
        raise SystemExit("bench: there is no stored run yet; `python3 dev.py bench` makes one.")
    return runs[-1].name


def note_versions(run: store.Run, peers: dict[str, Environment]) -> None:
    """Write down what is installed, and which peers could not be."""
    import numpy as np

    from calipers import __version__

    run.content["versions"] |= {"calipers": __version__, "numpy": np.__version__}
    run.content["versions"] |= {name: pinned_version(e) for name, e in peers.items() if e.python}
    run.content["not_installed"] |= {name: e.problem for name, e in peers.items() if not e.python}


def plan(word: str, peers: dict[str, Environment]) -> Iterator[tuple[str, Task, int]]:
    """Module, task with the peers of this run, and size, in the order they are measured."""
    for module, task in tasks(word):
        seen = replace(task, peers={name: f for name, f in task.peers.items() if name in peers})
        for size in task.sizes:
            yield module, seen, size


def measure_all(run: store.Run, peers: dict[str, Environment], options: argparse.Namespace) -> bool:
    """Measure what the run does not hold yet; False when the time was up before the end."""
    end = time.monotonic() + options.seconds
    for module, task, size in plan(options.only, peers):
        libraries = {"ours", *task.peers} | ({"limit"} if task.limit else set())
        if run.has(task.name, size, libraries) and not options.again:
            continue
        if time.monotonic() > end:
            return False
        print(f"bench: {task.name} at {size:,}", file=sys.stderr, flush=True)
        run.replace([m.as_dict() for m in measure(module, task, size, peers, options.repetitions)])
        run.save()
    return True


def finish(run: store.Run) -> int:
    """Store the run in the order of the tasks, draw the history, write the page."""
    run.arrange([task.name for _, task in tasks("")])
    run.save()
    picture.draw_history(store.history(), picture.PLACE)
    page.write(run)
    print(f"wrote {page.PLACE.relative_to(ROOT)} from {run.name}")
    return 0


def quick(word: str) -> int:
    """Our own work at the smallest size beside the bare limit and the last stored run."""
    run = store.Run("quick")
    for module, task in tasks(word):
        if not task.quick:
            continue
        alone = replace(task, peers={})
        print(f"bench: {task.name} at {task.sizes[0]:,}", file=sys.stderr, flush=True)
        run.replace([m.as_dict() for m in measure(module, alone, task.sizes[0], {}, QUICK_REPETITIONS)])
    run.save(LOCAL)
    stored = store.history()
    print(summary.text_table(summary.change_cells(run, stored[-1] if stored else None)))
    return 1 if any(m["problem"] or m["agrees"] == "wrong" for m in run.measurements) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
