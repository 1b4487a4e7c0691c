"""One library in a process of its own, doing one task after another.

Started by `measure` in the environment of the library. It obeys lines on standard input and answers each
with one line of JSON: ``take JSON`` loads the inputs of a task and a role, ``run`` times one call, ``memory``
reads the peak of one call, ``save PATH`` writes the last answers, ``quit`` ends. Only numpy is needed beyond
the library itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

# Calls shorter than this are repeated inside one timing: clocks and interpreters have their own noise.
SHORTEST_SECONDS = 0.02
MOST_CALLS = 200


def load_inputs(path: str) -> dict[str, Any]:
    """Arrays by name; what was a number or a text comes back as one."""
    with np.load(path, allow_pickle=False) as stored:
        return {name: array[()] if array.ndim == 0 else array for name, array in stored.items()}


def memory_mb(field: str) -> float:
    """A field of /proc/self/status in MiB; NaN where there is no such file."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return float("nan")
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith(field)), float("nan"))


def reset_peak() -> None:
    """Make the kernel forget the highest memory use so far, where it can."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
    except OSError:
        return


def give_back_memory() -> None:
    """Make the allocator return what is free: what it keeps from earlier calls would hide the next one's."""
    gc.collect()
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL("libc.so.6").malloc_trim(0)


def cpu_seconds() -> float:
    """CPU time of this process (all threads), of the children it has waited for and of those at work."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime + descendants_seconds("self")


def descendants_seconds(process: str) -> float:
    """CPU time of the living children of a process and of theirs, to a hundredth; 0 where none is known."""
    total = 0.0
    for listed in Path(f"/proc/{process}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread or a child may end while it is looked at
            for child in listed.read_text(encoding="utf-8").split():
                fields = Path(f"/proc/{child}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
                spent = sum(int(ticks) for ticks in fields[11:15])  # its own, and of those it waited for
                total += spent / os.sysconf("SC_CLK_TCK") + descendants_seconds(child)
    return total


class Timer:
    """Times calls of one function; short calls are repeated once their length is known."""

    def __init__(self, function: Any, inputs: dict[str, Any]) -> None:
        self.function, self.inputs, self.calls = function, inputs, 1

    def run(self) -> tuple[dict[str, float], Any]:
        """CPU seconds, wall seconds and extra peak memory of one call, and its answers."""
        reset_peak()
        before = memory_mb("VmRSS")
        answers = None
        cpu, wall = cpu_seconds(), time.perf_counter()
        for _ in range(self.calls):
            answers = self.function(self.inputs)
        wall, cpu = time.perf_counter() - wall, cpu_seconds() - cpu
        found = {"cpu": cpu / self.calls, "wall": wall / self.calls}
        self.calls = int(np.clip(SHORTEST_SECONDS / max(found["wall"], 1e-9), 1, MOST_CALLS))
        return found | {"peak_mb": max(0.0, memory_mb("VmHWM") - before)}, answers

    def memory(self) -> float:
        """Extra peak memory of one call in MiB, its answers included."""
        give_back_memory()
        reset_peak()
        before = memory_mb("VmRSS")
        self.function(self.inputs)
        return max(0.0, memory_mb("VmHWM") - before)


def find(module: str, task: str, role: str) -> Any:
    """The function of that role: ours, limit, exact, or the name of a peer."""
    chosen = next(t for t in importlib.import_module(module).TASKS if t.name == task)
    return chosen.peers[role] if role in chosen.peers else getattr(chosen, role)


def save(answers: Any, path: str) -> None:
    """Write answers that are arrays or numbers."""
    plain = answers if isinstance(answers, dict) else {}
    np.savez(path, **{name: np.asarray(value) for name, value in plain.items()})


class Session:
    """What the process holds between two lines: a timer and the last answers."""

    def __init__(self) -> None:
        self.timer: Timer | None = None
        self.answers: Any = None

    def obey(self, word: str, rest: str) -> dict[str, Any]:
        """Do what one line says."""
        if word == "take":
            order = json.loads(rest)
            self.timer = self.answers = None
            function = find(order["module"], order["task"], order["role"])
            self.timer = Timer(function, load_inputs(order["inputs"]))
            return {"taken": order["task"]}
        if word == "save":
            save(self.answers, rest)
            return {"saved": rest}
        if self.timer is None:
            raise RuntimeError("no task was taken")
        if word == "memory":
            self.answers = None
            return {"peak_mb": self.timer.memory()}
        reply, self.answers = self.timer.run()
        return reply


def main() -> None:
    """Answer lines until ``quit``; an exception is an answer too."""
    session = Session()
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what a library prints must not look like an answer
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            if word == "quit":
                return
            try:
                reply = session.obey(word, rest)
            except Exception as error:  # noqa: BLE001 - a peer that fails is a result
                reply = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main()
