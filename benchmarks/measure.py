"""Drive the workers: same inputs, order alternated, several repetitions, answers judged."""

from __future__ import annotations

import json
import math
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import ROOT, Environment, clean_variables
from benchmarks.protocol import Answers, Task

BUDGET_SECONDS = 40.0  # per library and size: slower ones run fewer repetitions
PATIENCE_SECONDS = 1500.0  # for one call; a library that needs longer is stopped and said to
MOST_NUMBERS = 8  # answers of at most this many numbers are kept in the history


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
    answers: dict[str, Any] = field(default_factory=dict)
    exact: dict[str, Any] = field(default_factory=dict)
    off_by: float = math.nan
    load: float = math.nan
    problem: str = ""
    runs: list[float] = field(default_factory=list)

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def record(self, found: dict[str, float]) -> None:
        """Keep a run; the best one is the one least disturbed by the rest of the machine."""
        self.runs.append(round(found["cpu"], 6))
        self.repetitions += 1
        self.cpu = float(np.fmin(self.cpu, found["cpu"]))
        self.wall = float(np.fmin(self.wall, found["wall"]))
        self.peak_mb = float(np.fmax(self.peak_mb, found["peak_mb"]))


class Worker:
    """A library waiting in its own process."""

    def __init__(self, python: Path) -> None:
        command = [python, ROOT / "benchmarks" / "worker.py"]
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
        except BrokenPipeError:
            return {"error": f"the process ended (code {self.process.wait()})"}
        if not select.select([self.process.stdout], [], [], PATIENCE_SECONDS)[0]:
            self.close()
            return {"error": f"stopped after {PATIENCE_SECONDS:.0f} s"}
        answer = self.process.stdout.readline()
        return json.loads(answer) if answer else {"error": f"the process ended (code {self.process.wait()})"}

    def take(self, module: str, task: str, role: str, inputs: Path) -> dict[str, Any]:
        """Load one task in one role."""
        order = {"module": module, "task": task, "role": role, "inputs": str(inputs)}
        return self.ask(f"take {json.dumps(order)}")

    def answers(self, path: Path) -> Answers:
        """What the last run returned."""
        if "error" in self.ask(f"save {path}"):
            return {}
        with np.load(path, allow_pickle=False) as stored:
            return dict(stored)

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout):
            with suppress(BrokenPipeError):  # what was not read any more
                pipe.close()  # type: ignore[union-attr]


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
    busy = round(os.getloadavg()[0], 1)  # processes that want a core: the clock is only fair when few do
    results = {role: Measurement(task.name, size, role, load=busy) for role in roles}
    with stored_inputs(task, size) as inputs, ExitStack() as stack:
        workers = {}
        for role in roles:
            environment = peers.get(role, Environment(role, Path(sys.executable)))
            if environment.python is None:
                results[role].problem = f"did not install: {environment.problem}"
                continue
            worker = Worker(environment.python)
            stack.callback(worker.close)
            results[role].problem = worker.take(module, task.name, role, inputs).get("error", "")
            workers[role] = worker
        repeat(workers, results, repetitions)
        found = {
            role: worker.answers(inputs.parent / f"{i}.npz")
            for i, (role, worker) in enumerate(workers.items())
            if role != "limit" and not results[role].problem
        }
        weigh(workers, results)
        judge(task, found, results, truth_of(module, task, inputs))
    return list(results.values())


def repeat(workers: dict[str, Worker], results: dict[str, Measurement], repetitions: int) -> None:
    """Run every library in turn, in an order that alternates."""
    order = list(workers)
    for turn in range(repetitions + 1):  # the first turn warms caches and imports and is not counted,
        for role in order if turn % 2 else reversed(order):
            result = results[role]
            if result.problem or sum(result.runs) > BUDGET_SECONDS:
                continue
            answer = workers[role].ask("run")
            if "error" in answer:
                result.problem = answer["error"]
            elif turn or answer["wall"] > BUDGET_SECONDS / 4:  # unless it is too long to be warmed by
                result.record(answer)


def weigh(workers: dict[str, Worker], results: dict[str, Measurement]) -> None:
    """Peak memory from a call of its own, where one is cheap; a long call was weighed while it was timed."""
    for role, worker in workers.items():
        result = results[role]
        if not result.problem and result.wall < BUDGET_SECONDS / 4:
            result.peak_mb = worker.ask("memory").get("peak_mb", math.nan)


def truth_of(module: str, task: Task, inputs: Path) -> Answers | None:
    """The exact answer, worked out in a process of its own, or None."""
    if task.exact is None:
        return None
    worker = Worker(Path(sys.executable))
    try:
        taken = worker.take(module, task.name, "exact", inputs)
        if "error" in taken or "error" in worker.ask("run"):
            return None
        return worker.answers(inputs.parent / "exact.npz")
    finally:
        worker.close()


def judge(
    task: Task, found: dict[str, Answers], results: dict[str, Measurement], truth: Answers | None
) -> None:
    """Say of every library whether its answer is right, and keep answers and truth where they are short."""
    for role, answers in found.items():
        result = results[role]
        result.agrees = verdict(task, found.get("ours", {}), answers, truth, role)
        result.answers = short(answers)
        result.exact = short(truth or {})
        if result.agrees in {"wrong", "differs"}:
            result.off_by = (task.distance or largest_difference)(truth or found["ours"], answers)


def verdict(task: Task, ours: Answers, theirs: Answers, truth: Answers | None, role: str) -> str:
    """Right or wrong where the truth is known, else whether the answers agree."""
    if not task.judged:
        return ""
    same = task.agree or close
    reference = ours if truth is None else truth
    if not set(reference) & set(theirs):
        return "another number"
    if truth is not None:
        return "right" if same(truth, theirs) else "wrong"
    if role == "ours":
        return ""
    return "same" if same(ours, theirs) else "differs"


def close(left: Answers, right: Answers) -> bool:
    """Every answer both give is equal up to rounding."""
    return all(
        np.shape(left[k]) == np.shape(right[k])
        and np.allclose(
            np.asarray(left[k], float), np.asarray(right[k], float), rtol=1e-6, atol=1e-9, equal_nan=True
        )
        for k in set(left) & set(right)
    )


def largest_difference(left: Answers, right: Answers) -> float:
    """Over the answers both give in the same shape; NaN without one."""
    shared = [k for k in left if k in right and np.shape(left[k]) == np.shape(right[k])]
    gaps = [np.abs(np.asarray(left[k], float) - np.asarray(right[k], float)).max() for k in shared]
    return float(max(gaps, default=math.nan))


def short(answers: Answers) -> dict[str, Any]:
    """The answers of few numbers, as plain values."""
    kept = {name: np.asarray(value) for name, value in answers.items() if np.size(value) <= MOST_NUMBERS}
    return {name: value.tolist() for name, value in kept.items() if value.dtype.kind in "biufU"}
