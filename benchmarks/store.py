"""Runs on disk: one JSON per run in ``benchmarks/history``, with its machine and versions.

A run is written after every measurement, so that a long one can be stopped and taken up again under the
same name. Nothing in it names a computer or a folder.
"""

from __future__ import annotations

import json
import math
import os
import platform
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.environments import ROOT

# CALIPERS_BENCH_HISTORY keeps a run that is under way out of the checkout.
HISTORY = Path(os.environ.get("CALIPERS_BENCH_HISTORY", ROOT / "benchmarks" / "history"))
SCHEMA = 1

Measurements = list[dict[str, Any]]


class Run:
    """One run: what was measured where, with which versions."""

    def __init__(self, name: str, content: dict[str, Any] | None = None) -> None:
        self.name = name
        self.content: dict[str, Any] = content or {
            "schema": SCHEMA, "name": name, "date": now(), "machine": machine(), "versions": {},
            "not_installed": {}, "measurements": [], "league": [],
        }  # fmt: skip

    @property
    def measurements(self) -> Measurements:
        """Every measurement, oldest first."""
        return self.content["measurements"]

    def of(self, task: str, library: str = "ours", size: int | None = None) -> dict[str, Any] | None:
        """One measurement, at the largest size when none is named; None when it was not made."""
        found = [m for m in self.measurements if m["task"] == task and m["library"] == library]
        if size is not None:
            found = [m for m in found if m["size"] == size]
        return max(found, key=lambda m: m["size"], default=None)

    def has(self, task: str, size: int, libraries: set[str]) -> bool:
        """Whether these libraries have done the task at that size in this run."""
        done = {m["library"] for m in self.measurements if m["task"] == task and m["size"] == size}
        return libraries <= done

    def replace(self, measurements: Measurements) -> None:
        """Add measurements; an older one of the same task, size and library goes."""
        new = {key(m) for m in measurements}
        kept = [m for m in self.measurements if key(m) not in new]
        self.content["measurements"] = [*kept, *measurements]
        self.content["date"] = now()

    def arrange(self, tasks: list[str]) -> None:
        """Measurements in the order of the tasks, then by size; unknown tasks last."""
        place = {name: i for i, name in enumerate(tasks)}
        self.measurements.sort(key=lambda m: (place.get(m["task"], len(place)), m["size"]))

    def save(self, folder: Path | None = None) -> Path:
        """Write the run; a stopped write leaves the old file."""
        folder = folder or HISTORY
        folder.mkdir(parents=True, exist_ok=True)
        path, draft = folder / f"{self.name}.json", folder / f"{self.name}.part"
        draft.write_text(json.dumps(without_nan(self.content), indent=1) + "\n", encoding="utf-8")
        draft.replace(path)
        return path


def key(measurement: dict[str, Any]) -> tuple[str, int, str]:
    """What a measurement is told apart by."""
    return measurement["task"], measurement["size"], measurement["library"]


def now() -> str:
    """The time of day, to the minute."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M")


def machine() -> dict[str, Any]:
    """What the numbers depend on, without the computer's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    model = next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return {
        "processor": model or platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def without_nan(value: Any) -> Any:
    """JSON has no NaN: None instead."""
    if isinstance(value, dict):
        return {name: without_nan(item) for name, item in value.items()}
    if isinstance(value, list):
        return [without_nan(item) for item in value]
    return None if isinstance(value, float) and math.isnan(value) else value


def load(name: str, folder: Path | None = None) -> Run:
    """The run of that name, or a new one."""
    path = (folder or HISTORY) / f"{name}.json"
    return Run(name, json.loads(path.read_text(encoding="utf-8")) if path.exists() else None)


def history(folder: Path | None = None) -> list[Run]:
    """Every stored run of tasks, oldest first."""
    paths = sorted((folder or HISTORY).glob("*.json"))
    runs = [Run(path.stem, json.loads(path.read_text(encoding="utf-8"))) for path in paths]
    return sorted((run for run in runs if "measurements" in run.content), key=lambda r: r.content["date"])


def new_name() -> str:
    """A name that sorts by date."""
    return f"run-{now().replace(':', '').replace('T', '-')}"
