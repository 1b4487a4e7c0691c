"""Tests of groups and regions beside MCGrad's MulticalibrationError and MAPIE's conditional metrics.

Run with ``python -m benchmarks.group_tests [--repeats N] [--rows N]``. Two attributes (2 and 3 groups) and
four features; in the faulty samples one of the three groups, one intersection or one region is off, and the
other rows make up for it. A size is the share of fault-free samples that are rejected at 5 %, a power that
of faulty ones, on the same rows. MCGrad (in its own environment, peers.toml) has a p-value, compared with the
level and with what fault-free samples read. MAPIE's coverage gap, worst slab and excess risk are numbers
without a test: they are given the critical value that fault-free samples of the same law have, which nobody
knows outside a simulation.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.environments import ROOT, build, clean_variables
from calipers.metrics import coverage_gap, ert, multicalibration_error, worst_slab_coverage
from calipers.results import Estimate

LEVEL, ALPHA = 0.05, 0.1
# Of the test of the worst slab over all rows: with 99 a level of 5 % is exact.
N_DRAWS = 99
Sample = dict[str, np.ndarray]
# Which rows are off, and by how much: probabilities and coverage alike.
EFFECT = {"nothing": 0.0, "a group": 0.12, "an intersection": 0.2, "a region": 0.2}
# What looks at groups, and what at features; a fault is shown to those that can see it.
OF_GROUPS, OF_FEATURES = ("nothing", "a group", "an intersection"), ("nothing", "a region")


def sample(rng: np.random.Generator, n: int, fault: str) -> Sample:
    """Stated probabilities with outcomes, and coverage of intervals, off in the same rows."""
    X = rng.normal(size=(n, 4))
    sex, site, p = rng.integers(0, 2, n), rng.integers(0, 3, n), rng.uniform(0.25, 0.75, n)
    inside = {
        "nothing": np.zeros(n, dtype=bool), "a group": site == 1, "an intersection": (site == 1) & (sex == 0),
        "a region": X[:, 2] > 0.7,
    }[fault]  # fmt: skip
    gap = EFFECT[fault] * (inside - ~inside * inside.mean() / (1 - inside.mean()))
    covered, y = rng.random(n) < 1 - ALPHA - gap, rng.random(n) < p - gap
    return {"X": X, "sex": sex, "site": site, "p": p, "y": y.astype(int), "covered": covered}


def ours(s: Sample, seed: int, fault: str) -> dict[str, bool]:
    """What our tests reject."""
    found: dict[str, Estimate] = {}
    if fault in OF_GROUPS:
        groups = {"sex": s["sex"], "site": s["site"]}
        cell = 3 * s["sex"] + s["site"]
        found["multicalibration_error"] = multicalibration_error(s["y"], s["p"], groups, random_state=seed)
        found["coverage_gap"] = coverage_gap(s["covered"], cell, alpha=ALPHA, random_state=seed)
    if fault in OF_FEATURES:
        rows = {"alpha": ALPHA, "random_state": seed}
        found["worst_slab_coverage"] = worst_slab_coverage(s["X"], s["covered"], **rows, n_draws=N_DRAWS)
        found["ert"] = ert(s["X"], s["covered"], **rows)
    return {name: (e.p_value if e.p_value is not None else 1.0) <= LEVEL for name, e in found.items()}


def peers(name: str, samples: dict[str, list[Sample]]) -> dict[str, dict[str, list[float]]]:
    """Numbers of a peer by fault and metric, one per sample; empty when it is not installed."""
    environment = build(name)
    if environment.python is None:
        print(f"{name} is not installed: {environment.problem}")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        for fault, drawn in samples.items():
            for number, s in enumerate(drawn):
                np.savez(Path(folder) / f"{fault}.{number:04d}.npz", **s)  # type: ignore[arg-type]
        script = ROOT / "benchmarks" / "group_tests_peer.py"
        subprocess.run([environment.python, script, name, folder], check=True, env=clean_variables())
        found: dict[str, dict[str, list[float]]] = json.loads((Path(folder) / "peer.json").read_text())
    return found


def rejections(name: str, values: dict[str, dict[str, list[float]]]) -> dict[str, dict[str, float]]:
    """Share of samples rejected, by metric and fault."""
    shares: dict[str, dict[str, float]] = {}
    for metric in values.get("nothing", {}):
        # A p-value is compared with the level, a plain number with what fault-free samples read.
        by_fault = {fault: np.array(own[metric]) for fault, own in values.items() if metric in own}
        critical = float(np.quantile(by_fault["nothing"], 1 - LEVEL))
        shares[f"{name} {metric}"] = {
            fault: float(np.mean(own <= LEVEL if metric.endswith("p-value") else own > critical))
            for fault, own in by_fault.items()
        }
        if metric.endswith("p-value"):  # at a size that holds, too
            smallest = float(np.quantile(by_fault["nothing"], LEVEL))
            shares[f"{name} {metric}, its own critical value"] = {
                fault: float(np.mean(own <= smallest)) for fault, own in by_fault.items()
            }
    return shares


def measure(repeats: int, rows: int) -> dict[str, dict[str, float]]:
    """Shares rejected: metric -> fault -> share."""
    samples = {
        fault: [sample(np.random.default_rng([k, i]), rows, fault) for i in range(repeats)]
        for k, fault in enumerate(EFFECT)
    }
    own = {fault: [ours(s, i, fault) for i, s in enumerate(drawn)] for fault, drawn in samples.items()}
    shares: dict[str, dict[str, float]] = {
        f"calipers {metric}": {
            fault: float(np.mean([r[metric] for r in runs]))
            for fault, runs in own.items()
            if metric in runs[0]
        }
        for metric in own["nothing"][0]
    }
    for name in ("mcgrad", "mapie"):
        shares |= rejections(name, peers(name, samples))
    return shares


def told(by_fault: dict[str, float], fault: str) -> str:
    """A share, or a dash where the test is not about this fault."""
    return f"{by_fault[fault]:.2f}" if fault in by_fault else "-"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=100)
    parser.add_argument("--rows", type=int, default=600)
    options = parser.parse_args()
    shares = measure(options.repeats, options.rows)
    print("| test | " + " | ".join(EFFECT) + " |\n|---|" + "---|" * len(EFFECT))
    for metric, by_fault in shares.items():
        print(f"| {metric} | " + " | ".join(told(by_fault, fault) for fault in EFFECT) + " |")


if __name__ == "__main__":
    main()
