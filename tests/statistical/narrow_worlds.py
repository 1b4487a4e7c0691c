"""Predictors that are as narrow as their rows allow, and ones that are not."""

from __future__ import annotations

from typing import Any

import numpy as np

import calipers
from calipers.auditing.checks import CHECKS
from calipers.conformal import aps, lac
from calipers.results import Finding

OTHERS = [check.code for check in CHECKS if check.code != "CAL302"]
Z = 1.6448536


def around(centre: np.ndarray, half: np.ndarray | float) -> np.ndarray:
    return np.column_stack([centre - half, centre + half])


def smaller_exist(y: np.ndarray, **stated: Any) -> Finding:
    """The finding of CAL302."""
    return calipers.audit(y, **stated, mute=OTHERS, random_state=0).findings[0]


def spread_of(kind: str, X: np.ndarray) -> np.ndarray:
    """Of the noise: even, growing with a feature, or 20 times larger in a tenth of the rows."""
    if kind == "even":
        return np.ones(len(X))
    return np.exp(0.6 * X[:, 1]) if kind == "growing" else np.where(X[:, 2] > 1.2816, 20.0, 1.0)


def oracle_intervals(kind: str, n: int, rng: np.random.Generator) -> Finding:
    """Intervals of the true law."""
    X = rng.normal(size=(n, 3))
    spread = spread_of(kind, X)
    y = 2 * X[:, 0] + spread * rng.normal(size=n)
    return smaller_exist(y, intervals=around(2 * X[:, 0], Z * spread), X=X)


def oracle_sets(kind: str, n: int, rng: np.random.Generator) -> Finding:
    """Sets by the true probabilities: the smallest on average, or those of even stated mass."""
    P = rng.dirichlet(np.full(6, 0.6), size=n)
    y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    scores = lac(P) if kind == "lac" else aps(P, rng.random(n))
    large = rng.dirichlet(np.full(6, 0.6), size=20_000)
    label = (large.cumsum(axis=1) < rng.random((20_000, 1))).sum(axis=1)
    all_scores = lac(large) if kind == "lac" else aps(large, rng.random(20_000))
    threshold = np.quantile(all_scores[np.arange(20_000), label], 0.9)
    return smaller_exist(y, sets=scores <= threshold, probabilities=P)


ORACLES = {
    "intervals, even": (oracle_intervals, "even"),
    "intervals, growing": (oracle_intervals, "growing"),
    "intervals, 1 and 20": (oracle_intervals, "two"),
    "sets, threshold": (oracle_sets, "lac"),
}


def wasteful(kind: str, n: int, rng: np.random.Generator) -> Finding:
    """Four that are clearly larger than they need to be."""
    X = rng.normal(size=(n, 3))
    spread = np.exp(0.5 * X[:, 1])
    y = 2 * X[:, 0] + spread * rng.normal(size=n)
    if kind == "constant":
        return smaller_exist(y, intervals=around(np.zeros(n), np.quantile(np.abs(y), 0.9)), X=X)
    if kind == "four sigma":
        return smaller_exist(y, intervals=around(2 * X[:, 0], 4 * spread))
    if kind == "noisy widths":
        half = Z * spread * np.exp(rng.normal(size=n))
        return smaller_exist(y, intervals=around(2 * X[:, 0], half), X=X)
    P = rng.dirichlet(np.full(6, 0.3), size=n)
    label = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    sets = lac(P) <= np.quantile(lac(P)[np.arange(n), label], 0.9)
    sets[np.arange(n), (label + rng.integers(1, 6, n)) % 6] = True  # a wrong label more
    return smaller_exist(label, sets=sets, probabilities=P)


WASTEFUL = ("constant", "four sigma", "noisy widths", "sets with a wrong label more")
