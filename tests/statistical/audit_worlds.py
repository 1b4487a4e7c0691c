"""Healthy predictors and planted faults for the promises of the audit; also run by hand for docs/guide/audit.md.

``python -m tests.statistical.audit_worlds clean 200`` and ``... planted 100`` print the tables of the guide.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

import calipers
from calipers.conformal import aps, conformal_p_values, conformal_quantile
from calipers.datasets import MixtureWorld

CALIBRATION_ROWS = (200, 1000, 5000)
ALPHA = 0.1


def homoscedastic(rng: np.random.Generator, n: int, n_calibration: int) -> dict[str, Any]:
    """Split-conformal intervals of one width, where one width is right."""
    X = rng.normal(size=(n, 4))
    centre, noise = X[:, 0] + np.sin(3 * X[:, 1]), rng.normal(size=n)
    q = conformal_quantile(np.abs(rng.normal(size=n_calibration)), ALPHA)
    return {
        "y_true": centre + noise, "intervals": np.column_stack([centre - q, centre + q]), "X": X,
        "groups": rng.integers(0, 5, n), "ease": rng.normal(size=n), "n_calibration": n_calibration,
    }  # fmt: skip


def heteroscedastic(rng: np.random.Generator, n: int, n_calibration: int) -> dict[str, Any]:
    """Split-conformal intervals as wide as the spread at x: the shape of the oracle."""
    X = rng.normal(size=(n, 4))
    spread = 0.5 + np.abs(X[:, 0])
    q = conformal_quantile(np.abs(rng.normal(size=n_calibration)), ALPHA)
    return {
        "y_true": spread * rng.normal(size=n), "intervals": np.column_stack([-q * spread, q * spread]), "X": X,
        "groups": (X[:, 1] > 0).astype(int), "ease": -spread, "n_calibration": n_calibration,
    }  # fmt: skip


def classes(rng: np.random.Generator, n: int, n_calibration: int) -> dict[str, Any]:
    """True probabilities and randomised adaptive sets: calibrated, and covering everywhere."""
    world = MixtureWorld()
    learn, rows = world.sample(n_calibration, rng), world.sample(n, rng)
    P, known = world.posterior(rows.X), world.posterior(learn.X)
    scores = aps(known, rng.random(n_calibration))[np.arange(n_calibration), learn.y]
    return {
        "y_true": rows.y, "probabilities": P, "p_values": conformal_p_values(scores, aps(P, rng.random(n))),
        "X": rows.X, "groups": rng.integers(0, 4, n), "n_calibration": n_calibration,
    }  # fmt: skip


def oracle_intervals(rng: np.random.Generator, n: int, n_calibration: int) -> dict[str, Any]:
    """The true quantiles at every x; nothing was calibrated."""
    found = heteroscedastic(rng, n, n_calibration)
    spread = -found["ease"]
    ends = 1.6448536269514722 * spread
    return found | {"intervals": np.column_stack([-ends, ends]), "n_calibration": None}


CLEAN = (homoscedastic, heteroscedastic, classes, oracle_intervals)


def clean_audit(i: int, n: int = 2000) -> calipers.auditing.Audit:
    """The i-th healthy data set, audited with everything that is known about it."""
    rng = np.random.default_rng([2024, i])
    made = CLEAN[i % len(CLEAN)](rng, n, CALIBRATION_ROWS[(i // len(CLEAN)) % 3])
    return calipers.audit(**made, alpha=ALPHA, random_state=i)


def bad_group(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """One of five groups is covered with 75 % instead of 90 %."""
    groups = rng.integers(0, 5, n)
    covered = rng.random(n) < np.where(groups == 3, 0.75, 0.9)
    return {
        "y_true": np.where(covered, 0.0, 9.0),
        "intervals": np.tile([-1.0, 1.0], (n, 1)),
        "groups": groups,
    }


def over_confident(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Probabilities of three classes sharpened by a temperature of 0.6."""
    world = MixtureWorld()
    rows = world.sample(n, rng)
    return {"y_true": rows.y, "probabilities": world.distorted(rows.X, temperature=0.6)}


def one_width(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Intervals of one width where the spread grows threefold: hard rows are covered far less often."""
    spread = 0.5 + rng.random(n)
    q = conformal_quantile(np.abs(rng.normal(size=5000) * (0.5 + rng.random(5000))), ALPHA)
    return {
        "y_true": spread * rng.normal(size=n), "intervals": np.tile([-q, q], (n, 1)), "ease": -spread,
        "n_calibration": 5000,
    }  # fmt: skip


def shifted(rng: np.random.Generator, n: int) -> dict[str, Any]:
    """Conformalised on 1000 rows, then the noise grew by a quarter: 81 % instead of 90 %."""
    q = conformal_quantile(np.abs(rng.normal(size=1000)), ALPHA)
    return {"y_true": 1.25 * rng.normal(size=n), "intervals": np.tile([-q, q], (n, 1)), "n_calibration": 1000}


# Fault -> (how it is made, the code that must appear, rows at which it does in at least 95 of 100 audits).
PLANTED: dict[str, tuple[Callable[[np.random.Generator, int], dict[str, Any]], str, int]] = {
    "a group at 75 % instead of 90 %": (bad_group, "CAL201", 1500),
    "over-confident probabilities": (over_confident, "CAL501", 1000),
    "sets that ignore difficulty": (one_width, "CAL401", 1500),
    "shifted calibration": (shifted, "CAL101", 1000),
}


def detects(fault: str, n: int, seed: int) -> tuple[bool, bool]:
    """Whether the right code appears as a fault, and as an issue."""
    make, code, _ = PLANTED[fault]
    rng = np.random.default_rng([77, n, seed])
    found = {
        f.code: f.severity for f in calipers.audit(**make(rng, n), alpha=ALPHA, random_state=seed).faults
    }
    return code in found, found.get(code) == "issue"


def main(kind: str, repeats: int) -> None:
    """Print one of the two tables."""
    if kind == "clean":
        audits = [clean_audit(i) for i in range(repeats)]
        print("audits with an issue:", sum(a.severity == "issue" for a in audits), "of", repeats)
        print(Counter((f.code, f.severity) for a in audits for f in a.faults))
        return
    for fault in PLANTED:
        for n in (250, 500, 1000, 1500, 2000, 4000):
            found = np.array([detects(fault, n, seed) for seed in range(repeats)])
            print(f"| {fault} | {n} | {found[:, 0].mean():.2f} | {found[:, 1].mean():.2f} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
