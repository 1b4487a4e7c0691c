"""Drive the workers: same inputs, order alternated, several repetitions, answers compared."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import ROOT, Environment, clean_variables
from benchmarks.protocol import Task

BUDGET_SECONDS = 120.0  # per library and size: slower ones run fewer repetitions


@dataclass(slots=True)
class Measurement:
    """What one library did with one task at one size."""

    task: str
    size: int
    library: str
    cpu: float = math.nan
    wall: float = math.nan
    peak_mb: float = math.nan
    repetitions: int = 0
    agrees: str = ""
    problem: str = ""
    runs: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)


class Worker:
    """A library waiting in its own process."""

    def __init__(self, python: Path, module: str, task: str, role: str, inputs: Path) -> None:
        command = [python, ROOT / "benchmarks" / "worker.py", module, task, role, inputs]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
            env=clean_variables(), cwd=ROOT,
        )  # fmt: skip

    def ask(self, line: str) -> dict[str, Any]:
        """Send one line, wait for its answer."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(line + "\n")
            self.process.stdin.flush()
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        return json.loads(answer) if answer else {"error": f"the process ended (code {self.process.poll()})"}

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


@contextmanager
def stored_inputs(task: Task, size: int) -> Iterator[Path]:
    """The inputs of a task in a file that every environment can read."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "inputs.npz"
        np.savez(path, **{name: np.asarray(value) for name, value in task.prepare(size).items()})
        yield path


def measure(
    module: str, task: Task, size: int, peers: dict[str, Environment], repetitions: int
) -> list[Measurement]:
    """Every library on one task at one size; ours first in the list."""
    roles = ["ours", *(["limit"] if task.limit else []), *task.peers]
    results = {role: Measurement(task.name, size, role) for role in roles}
    with stored_inputs(task, size) as inputs, ExitStack() as stack:
        workers = {}
        for role in roles:
            environment = peers.get(role, Environment(role, Path(sys.executable)))
            if role in task.peers and environment.python is None:
                results[role].problem = f"did not install: {environment.problem}"
                continue
            workers[role] = Worker(
                environment.python or Path(sys.executable), module, task.name, role, inputs
            )
            stack.callback(workers[role].close)
        _repeat(workers, results, repetitions)
        _compare(task, workers, results, inputs.parent, stack, module, inputs)
    return list(results.values())


def _repeat(workers: dict[str, Worker], results: dict[str, Measurement], repetitions: int) -> None:
    order = list(workers)
    for turn in range(repetitions + 1):  # the first turn warms caches and imports and is not counted
        for role in order if turn % 2 else reversed(order):
            result = results[role]
            if result.problem or sum(result.runs) > BUDGET_SECONDS:
                continue
            answer = workers[role].ask("run")
            if "error" in answer:
                result.problem = answer["error"]
            elif turn or answer["wall"] > BUDGET_SECONDS / 4:
                _record(result, answer)


def _record(result: Measurement, answer: dict[str, float]) -> None:
    result.runs.append(answer["wall"])
    result.repetitions += 1
    # The best run is the one least disturbed by the rest of the machine.
    if not result.cpu <= answer["cpu"]:
        result.cpu = answer["cpu"]
    if not result.wall <= answer["wall"]:
        result.wall = answer["wall"]
    if not result.peak_mb >= answer["peak_mb"]:
        result.peak_mb = answer["peak_mb"]


def _compare(
    task: Task, workers: dict[str, Worker], results: dict[str, Measurement], folder: Path, stack: ExitStack,
    module: str, inputs: Path,
) -> None:  # fmt: skip
    truth = None
    if task.exact is not None:
        judge = Worker(Path(sys.executable), module, task.name, "exact", inputs)
        stack.callback(judge.close)
        if "error" not in judge.ask("run"):
            truth = _answers(judge, folder / "exact.npz")
    found = {
        role: _answers(worker, folder / f"{i}.npz")
        for i, (role, worker) in enumerate(workers.items())
        if role != "limit" and not results[role].problem
    }
    for role, answers in found.items():
        results[role].agrees = verdict(task, found.get("ours", {}), answers, truth, role)


def verdict(task: Task, ours: dict[str, Any], theirs: dict[str, Any], truth: Any, role: str) -> str:
    """Right or wrong where the truth is known, else whether the answers agree."""
    same = task.agree or close
    if truth is not None:
        return "right" if same(truth, theirs) else "wrong"
    if role == "ours":
        return ""
    if not set(ours) & set(theirs):
        return "not comparable"
    return "same" if same(ours, theirs) else "differs"


def close(left: dict[str, Any], right: dict[str, Any]) -> bool:
    """Every answer both give is equal up to rounding."""
    return all(
        np.shape(left[k]) == np.shape(right[k])
        and np.allclose(
            np.asarray(left[k], float), np.asarray(right[k], float), rtol=1e-6, atol=1e-9, equal_nan=True
        )
        for k in set(left) & set(right)
    )


def _answers(worker: Worker, path: Path) -> dict[str, Any]:
    if "error" in worker.ask(f"save {path}"):
        return {}
    with np.load(path, allow_pickle=False) as stored:
        return dict(stored)
