"""``python3 dev.py bench``: every task against every peer, in one run, as ratios.

Options: ``--quick`` (smallest size, our own work and the limit only, under three minutes), ``--only
WORD`` (tasks whose name holds the word), ``--peers NAME,NAME``, ``--repetitions N``, ``--no-page``,
``--league`` (who gets which trap right), ``--instructions`` (callgrind counts of the hot kernels),
``--gpu`` (GPU arrays).
"""

from __future__ import annotations

import argparse
import importlib
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from benchmarks import summary  # noqa: E402
from benchmarks.environments import Environment, build, pinned, versions  # noqa: E402
from benchmarks.measure import measure  # noqa: E402
from benchmarks.protocol import Task  # noqa: E402


def tasks(word: str) -> list[tuple[str, Task]]:
    """Module and task of everything in benchmarks/tasks whose name holds the word."""
    modules = sorted(p.stem for p in (ROOT / "benchmarks" / "tasks").glob("*.py") if p.stem != "__init__")
    names = [f"benchmarks.tasks.{name}" for name in modules]
    return [
        (name, task) for name in names for task in importlib.import_module(name).TASKS if word in task.name
    ]


def environments(chosen: list[tuple[str, Task]], only: str) -> dict[str, Environment]:
    """The environments of the peers the chosen tasks name."""
    wanted = {peer for _, task in chosen for peer in task.peers}
    if only:
        wanted &= set(only.split(","))
    return {name: build(name) for name in sorted(wanted)}


def parser() -> argparse.ArgumentParser:
    """The command line of this file."""
    top = argparse.ArgumentParser(prog="python3 dev.py bench", description=__doc__)
    top.add_argument("--quick", action="store_true")
    top.add_argument("--only", default="", metavar="WORD")
    top.add_argument("--peers", default="", metavar="NAME,NAME")
    top.add_argument("--repetitions", type=int, default=3)
    top.add_argument("--no-page", action="store_true")
    top.add_argument("--league", action="store_true")
    top.add_argument("--instructions", action="store_true")
    top.add_argument("--gpu", action="store_true")
    return top


def main(arguments: list[str]) -> int:
    """Measure what was asked for, print the table, store the run, write the page."""
    options = parser().parse_args(arguments)
    if options.gpu:
        return importlib.import_module("benchmarks.gpu.run").main()
    if options.instructions:
        return importlib.import_module("benchmarks.instructions").main()
    if options.league:
        return importlib.import_module("benchmarks.league").main()
    chosen = tasks(options.only)
    if options.quick:
        chosen = [(module, task) for module, task in chosen if task.quick]
    peers = {} if options.quick else environments(chosen, options.peers)
    measurements = []
    for module, task in chosen:
        for size in task.sizes[:1] if options.quick else task.sizes:
            print(f"bench: {task.name} at {size:,}", file=sys.stderr, flush=True)
            seen = without_peers(task, peers)
            measurements += [m.as_dict() for m in measure(module, seen, size, peers, options.repetitions)]
    finish(measurements, chosen, peers, page=not (options.no_page or options.quick or options.only))
    return 0


def without_peers(task: Task, peers: dict[str, Environment]) -> Task:
    """The task with the peers of this run only."""
    from dataclasses import replace

    return replace(task, peers={name: f for name, f in task.peers.items() if name in peers})


def finish(
    measurements: list[dict[str, Any]],
    chosen: list[tuple[str, Task]],
    peers: dict[str, Environment],
    *,
    page: bool,
) -> None:
    """Print, and store a full run with its machine and versions."""
    print(summary.text_table(own_cells(measurements)))
    if any(m["library"] != "ours" for m in measurements):
        print("\n" + summary.text_table(summary.cells(measurements)))
    for name, environment in peers.items():
        if environment.python is None:
            print(f"{name} did not install: {environment.problem}")
    if not page:
        return
    run = {
        "date": datetime.now(UTC).strftime("%Y-%m-%dT%H:%M"),
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.machine(),
            "python": platform.python_version(),
        },
        "versions": peer_versions(peers),
        "measurements": measurements,
    }
    print(f"\nstored as {summary.store(run).relative_to(ROOT)}")
    from benchmarks.league import rows

    summary.write_page(run, {task.name: task.bar for _, task in chosen}, rows(peers))
    summary.plot_history(ROOT / "benchmarks" / "results" / "history.png")
    print(f"wrote {summary.PAGE.relative_to(ROOT)}")


def own_cells(measurements: list[dict[str, Any]]) -> list[list[str]]:
    """Our own cost, task by task."""
    head = ["task", "size", "CPU s", "wall s", "extra MiB", "note"]
    body = [
        [
            m["task"],
            f"{m['size']:,}",
            f"{m['cpu']:.3g}",
            f"{m['wall']:.3g}",
            f"{m['peak_mb']:.0f}",
            m["problem"][:70],
        ]
        for m in measurements
        if m["library"] == "ours"
    ]
    return [head, *body]


def peer_versions(peers: dict[str, Environment]) -> dict[str, str]:
    """The pinned version of every peer that was built, and our own."""
    from calipers import __version__

    found = {"calipers": __version__}
    for name, environment in peers.items():
        if environment.python is not None:
            installed = versions(environment.python)
            pins = [r.split("==")[0] for key in pinned()[name].values() for r in key if "==" in r]
            found |= {pin: installed.get(pin, "?") for pin in pins}
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
