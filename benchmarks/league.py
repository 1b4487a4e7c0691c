"""Who gets it right: each trap of the field, each library, one verdict.

A trap is a `Task` at one size with an ``exact`` answer; `benchmarks.traps` lists them. A library
without the feature has a blank cell, one that raises where an answer exists is marked "refuses".
"""

from __future__ import annotations

import importlib
import sys

from benchmarks import summary
from benchmarks.environments import Environment, build
from benchmarks.measure import measure
from benchmarks.protocol import Task

MODULE = "benchmarks.traps"


def traps() -> list[Task]:
    """Every trap."""
    return list(importlib.import_module(MODULE).TASKS)


def verdicts(task: Task, peers: dict[str, Environment]) -> dict[str, str]:
    """Library to "right", "wrong", "refuses" or the reason why it could not be asked."""
    found = {}
    for m in measure(MODULE, task, task.sizes[0], peers, 1):
        refused = bool(m.problem) and not m.problem.startswith("did not install")
        found[m.library] = "refuses" if refused else m.problem or m.agrees
    return found


def rows(peers: dict[str, Environment] | None = None) -> list[list[str]]:
    """The league as a table: one row per trap, one column per library."""
    known = dict(peers or {})
    for task in traps():
        known |= {name: build(name) for name in task.peers if name not in known}
    results = {task.name: verdicts(task, known) for task in traps()}
    libraries = ["ours", *sorted({name for found in results.values() for name in found} - {"ours"})]
    head = ["trap", *("Calipers" if name == "ours" else name for name in libraries)]
    return [
        head,
        *([name, *(found.get(library, "") for library in libraries)] for name, found in results.items()),
    ]


def main() -> int:
    """Print the league; exit 1 when Calipers is wrong anywhere."""
    table = rows()
    print(summary.text_table(table))
    wrong = [row[0] for row in table[1:] if row[1] != "right"]
    if wrong:
        print(f"Calipers is not right in: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0
