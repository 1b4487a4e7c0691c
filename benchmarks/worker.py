"""One library on one task, in a process of its own.

Started by `measure` in the environment of the library: it loads the inputs once, then obeys lines on
standard input: ``run`` times one call, ``save PATH`` writes the last answers, ``quit`` ends. It answers
each with one line of JSON. Only numpy is needed beyond the library itself.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


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


def cpu_seconds() -> float:
    """CPU time of this process and of the children it has waited for."""
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return own.ru_utime + own.ru_stime + children.ru_utime + children.ru_stime


def timed(function: Any, inputs: dict[str, Any]) -> tuple[dict[str, float], Any]:
    """CPU seconds, wall seconds and extra peak memory of one call."""
    reset_peak()
    before = memory_mb("VmRSS")
    wall, cpu = time.perf_counter(), cpu_seconds()
    answers = function(inputs)
    cpu, wall = cpu_seconds() - cpu, time.perf_counter() - wall
    return {"cpu": cpu, "wall": wall, "peak_mb": max(0.0, memory_mb("VmHWM") - before)}, answers


def find(module: str, task: str, role: str) -> Any:
    """The function of that role: ours, limit, exact, or the name of a peer."""
    chosen = next(t for t in importlib.import_module(module).TASKS if t.name == task)
    return chosen.peers[role] if role in chosen.peers else getattr(chosen, role)


def save(answers: Any, path: str) -> None:
    """Write answers that are arrays or numbers; others are left out by name."""
    plain = answers if isinstance(answers, dict) else {}
    np.savez(path, **{name: np.asarray(value) for name, value in plain.items()})


def main(module: str, task: str, role: str, inputs_path: str) -> None:
    """Answer lines until ``quit``; an exception is an answer too."""
    answers: Any = None
    with os.fdopen(os.dup(1), "w") as out:
        os.dup2(2, 1)  # what a library prints must not look like an answer
        inputs = load_inputs(inputs_path)
        function = None
        for line in sys.stdin:
            word, _, rest = line.strip().partition(" ")
            if word == "quit":
                return
            try:
                function = function or find(module, task, role)
                if word == "save":
                    save(answers, rest)
                    reply: dict[str, Any] = {"saved": rest}
                else:
                    reply, answers = timed(function, inputs)
            except Exception as error:  # noqa: BLE001 - a peer that fails is a result
                reply = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(reply), file=out, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:5])
