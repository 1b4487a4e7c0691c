"""Who gets it right: each trap of the field, each library, one verdict.

A trap is a `Task` at one size with an exact answer; `benchmarks.traps` lists them. One process per library
goes through all of them. A library without the feature is not asked; one that raises where an answer exists
"refuses".
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from benchmarks.environments import Environment
from benchmarks.measure import Worker, short, stored_inputs, verdict
from benchmarks.protocol import Task
from benchmarks.store import Run
from benchmarks.summary import Cells, shown, text_table
from benchmarks.traps import TASKS

MODULE = "benchmarks.traps"
OURS = "ours"
NOT_OFFERED = "has no such feature"


class Workers:
    """The workers of a league, started when first asked and again when one has died."""

    def __init__(self, peers: dict[str, Environment], stack: ExitStack) -> None:
        self.peers, self.stack = peers, stack
        self.workers: dict[str, Worker] = {}

    def ask(self, library: str, task: Task, inputs: Path) -> dict[str, Any]:
        """One library's answer to one trap, with the verdict."""
        if library == OURS and task.ours is None:
            return {"verdict": NOT_OFFERED, "answers": {}, "problem": ""}
        environment = self.peers.get(library)
        if library != OURS and (environment is None or environment.python is None):
            return {"verdict": "did not install", "answers": {}, "problem": ""}
        worker = self._worker(library, environment)
        reply = worker.take(MODULE, task.name, library, inputs)
        if "error" not in reply:
            reply = worker.ask("run")
        if "error" in reply:
            return {"verdict": "refuses", "answers": {}, "problem": reply["error"][:200]}
        answers = worker.answers(inputs.parent / f"{library}.npz")
        exact = task.exact({}) if task.exact else {}
        return {
            "verdict": verdict(task, {}, answers, exact, library),
            "answers": short(answers),
            "problem": "",
        }

    def _worker(self, library: str, environment: Environment | None) -> Worker:
        worker = self.workers.get(library)
        if worker is None or worker.process.poll() is not None:
            python = environment.python if environment and environment.python else Path(sys.executable)
            worker = self.workers[library] = Worker(python)
            self.stack.callback(worker.close)
        return worker


def answers_to_traps(peers: dict[str, Environment], tasks: list[Task] | None = None) -> list[dict[str, Any]]:
    """One row per trap: the question, the exact answer, and what each library said."""
    rows = []
    with ExitStack() as stack:
        workers = Workers(peers, stack)
        for task in TASKS if tasks is None else tasks:
            print(f"bench: {task.name}", file=sys.stderr, flush=True)
            with stored_inputs(task, 1) as inputs:
                found = {library: workers.ask(library, task, inputs) for library in (OURS, *task.peers)}
            exact = short(task.exact({}) if task.exact else {})
            rows.append({"trap": task.name, "question": task.bar, "exact": exact, "found": found})
    return rows


def fill(run: Run, peers: dict[str, Environment]) -> None:
    """Try every trap and keep the rows in the run."""
    run.content["league"] = answers_to_traps(peers)
    run.save()


def who(row: dict[str, Any], wanted: str) -> str:
    """The libraries with one verdict, with what they said when it is wrong."""
    names = []
    for library, found in row["found"].items():
        if found["verdict"] == wanted:
            name = "Calipers" if library == OURS else library
            names.append(f"{name} ({shown(found['answers'])})" if wanted == "wrong" else name)
    return ", ".join(names)


def cells(rows: list[dict[str, Any]]) -> Cells:
    """The league as a table, heading first."""
    head = ["trap", "exact", "right", "wrong", "refuses"]
    body = [
        [row["question"], exact_cell(row["exact"]), *(who(row, v) for v in ("right", "wrong", "refuses"))]
        for row in rows
    ]
    return [head, *body]


def exact_cell(exact: dict[str, Any]) -> str:
    """The exact answer; what is too long for a cell is left out."""
    text = shown(exact)
    return text if len(text) < 60 else "by counting"


def score_cells(rows: list[dict[str, Any]]) -> Cells:
    """How many traps each library was asked and got right."""
    counts: dict[str, dict[str, int]] = {}
    for row in rows:
        for library, found in row["found"].items():
            if found["verdict"] == NOT_OFFERED:
                continue
            tally = counts.setdefault("Calipers" if library == OURS else library, {})
            tally[found["verdict"]] = tally.get(found["verdict"], 0) + 1
    body = [
        [name, str(sum(tally.values())), *(str(tally.get(v, 0)) for v in ("right", "wrong", "refuses"))]
        for name, tally in sorted(counts.items(), key=lambda item: -sum(item[1].values()))
    ]
    return [["library", "asked", "right", "wrong", "refuses"], *body]


def not_right(rows: list[dict[str, Any]]) -> list[str]:
    """The traps Calipers does not get right."""
    fine = {"right", NOT_OFFERED}
    return [row["trap"] for row in rows if row["found"][OURS]["verdict"] not in fine]


def main(run: Run, peers: dict[str, Environment]) -> int:
    """Try, print and store the league; exit 1 when Calipers is not right everywhere."""
    fill(run, peers)
    rows = run.content["league"]
    print(text_table(cells(rows)))
    print("\n" + text_table(score_cells(rows)))
    for name in not_right(rows):
        found = next(row for row in rows if row["trap"] == name)["found"][OURS]
        print(f"Calipers is not right in {name}: {found}", file=sys.stderr)
    return 1 if not_right(rows) else 0
