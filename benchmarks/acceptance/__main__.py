"""Run the producers, audit what they made, write the table."""

from __future__ import annotations

import argparse
import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

import calipers
from benchmarks.acceptance.problems import SETS, Problem
from benchmarks.acceptance.producers import ALPHA, LIBRARIES
from benchmarks.environments import ROOT, build, clean_variables

# Methods that two libraries make alike are read once, and later models of a set get one of them.
METHODS = {
    "mapie": ("sets lac", "sets aps", "intervals quantile"),
    "crepes": ("p_values hinge", "p_values class-conditional", "intervals normalised", "intervals Mondrian"),
    "torchcp": ("sets raps", "sets saps", "intervals absolute"),
}
FEW = {"mapie": (), "crepes": (), "torchcp": ("sets aps",)}


def produced(problem: Problem, first: bool, out: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Name of the producer and what it states, the model itself first."""
    yield f"scikit-learn, {problem.model}", dict(problem.own)
    if not problem.stated:
        return
    place = out / "stated" / f"{problem.set} {problem.model}.npz".replace("/", "-")
    place.parent.mkdir(parents=True, exist_ok=True)
    if not place.exists():
        np.savez_compressed(place, **problem.stated)
    for library in LIBRARIES if first else [name for name in LIBRARIES if FEW[name]]:
        for method, array in outputs(library, place, out).items():
            if method in (METHODS if first else FEW)[library]:
                kind, words = method.split(" ", 1)
                extra = {} if kind == "intervals" else {"probabilities": problem.stated["probabilities"]}
                calibration = {"n_calibration": len(problem.stated["calibration_y"])}
                yield f"{library} {words}, {problem.model}", {kind: array} | extra | calibration


def outputs(library: str, place: Path, out: Path) -> dict[str, np.ndarray]:
    """What a library made, from its own environment or from an earlier run."""
    target = out / "produced" / f"{place.stem} {library}.npz"
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        environment = build(library)
        if environment.python is None:
            raise SystemExit(f"{library} cannot be installed: {environment.problem}")
        words = [environment.python, "-m", "benchmarks.acceptance.producers", library, place, target]
        subprocess.run(words, check=True, env=clean_variables() | {"PYTHONPATH": str(ROOT)}, cwd=ROOT)
    with np.load(target) as file:
        return {key: file[key] for key in file.files}


def rows_of(problem: Problem, given: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    """The arguments of an audit of some rows."""
    arrays = {key: value if key == "n_calibration" else value[rows] for key, value in given.items()}
    return {"y_true": problem.y[rows], **arrays, **{key: value[rows] for key, value in problem.about.items()}}


def audit_halves(problem: Problem, given: dict[str, Any]) -> list[calipers.auditing.Audit]:
    """One half to be read, and a fresh one on which every fault must be seen again."""
    half = len(problem.y) // 2
    parts = np.arange(half), np.arange(half, len(problem.y))
    classes = {} if "intervals" in given else {"classes": np.arange(problem.own["probabilities"].shape[1])}
    return [
        calipers.audit(**rows_of(problem, given, rows), **classes, alpha=ALPHA, random_state=0)
        for rows in parts
    ]


def record(problem: Problem, producer: str, given: dict[str, Any]) -> dict[str, Any]:
    """The findings of the first half, each with what the fresh half says about it."""
    first, fresh = audit_halves(problem, given)
    again = {finding.code: finding for finding in fresh.findings}
    findings = []
    for finding in first.findings:
        if finding.outcome == "not_applicable":
            continue
        numbers = ("p_value", "effect", "effect_low", "tolerance")
        entry = {key: getattr(finding, key) for key in ("code", "outcome", "severity", "sentence", "where")}
        entry |= {key: finding.details.get(key) for key in numbers}
        if (other := again.get(finding.code)) is not None:
            entry["fresh"] = other.severity if other.outcome == "fault" else other.outcome
            entry |= {f"fresh_{key}": other.details.get(key) for key in numbers}
        findings.append(entry)
    return {"set": problem.set, "producer": producer, "n": first.data.n, "findings": findings}


def table(records: list[dict[str, Any]]) -> str:
    """Every fault on a line of its own; a clean audit on one line."""
    lines = [
        "| set | producer | rows | code | severity | seen again | finding |",
        "|---|---|---|---|---|---|---|",
    ]
    for entry in records:
        faults = [f for f in entry["findings"] if f["outcome"] == "fault"]
        start = f"| {entry['set']} | {entry['producer']} | {entry['n']} |"
        lines += [
            f"{start} {f['code']} | {f['severity']} | {f.get('fresh')} | {f['sentence']} |" for f in faults
        ] or [f"{start} | none | | |"]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Audit every set, or those named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--sets", default=",".join(SETS))
    arguments = parser.parse_args()
    records = []
    for name in arguments.sets.split(","):
        kept = arguments.out / "audits" / f"{name}.json"
        if not kept.exists():
            found = []
            for i, problem in enumerate(SETS[name](arguments.data)):
                for producer, given in produced(problem, i == 0, arguments.out):
                    found.append(record(problem, producer, given))
                    print(f"{name}: {producer}", flush=True)
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.write_text(json.dumps(found, default=float, indent=1), encoding="utf-8")
        records += json.loads(kept.read_text(encoding="utf-8"))
    (arguments.out / "findings.md").write_text(table(records), encoding="utf-8")


if __name__ == "__main__":
    main()
