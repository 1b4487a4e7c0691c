"""Predictions of all kinds to audit: healthy and faulty, synthetic and real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calipers.conformal import aps, conformal_p_values, lac

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Given = dict[str, Any]


def intervals(seed: int) -> Given:
    """Intervals of three shapes and five levels around a good or a poor middle."""
    rng = np.random.default_rng([1, seed])
    n = 700 + 100 * (seed % 4)
    X = rng.normal(size=(n, 3))
    spread = np.exp(0.5 * X[:, 1]) if seed % 2 else np.ones(n)
    y = 2 * X[:, 0] + spread * rng.normal(size=n)
    centre = np.zeros(n) if seed % 5 == 4 else 2 * X[:, 0] + 0.3 * rng.normal(size=n)
    reach = (1.645, 1.2, 4.0, 1.9, 3.6)[seed % 5]
    half = reach * (spread if seed % 3 else np.ones(n))
    given = {"y_true": y, "intervals": np.column_stack([centre - half, centre + half]), "X": X}
    if seed % 3 == 1:
        given |= {"ease": -spread - 0.01 * rng.random(n)}
    if seed % 4 == 2:
        given |= {"groups": np.where(X[:, 1] > 0.8, "far", "near")}
    return given


def _labels(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([2, seed])
    P = rng.dirichlet(np.full(2 + seed % 5, 0.6), size=1000)
    return rng, P, (P.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1)


def probabilities(seed: int) -> Given:
    """Probabilities that are right, too sharp or too blunt."""
    _, P, y = _labels(seed)
    stated = P ** (1.0, 1.8, 0.5)[seed % 3]
    return {"y_true": y, "probabilities": stated / stated.sum(axis=1, keepdims=True)}


def sets(seed: int) -> Given:
    """Sets by a threshold, or adaptive ones, with the probabilities; some cover too little or too much."""
    rng, P, y = _labels(seed)
    scores = lac(P) if seed % 2 else aps(P, rng.random(len(P)))
    level = (0.9, 0.8, 0.97)[seed % 3]
    kept = scores <= np.quantile(scores[np.arange(len(y)), y], level)
    return {"y_true": y, "sets": kept, "probabilities": P, "groups": P.argmax(axis=1)}


def p_values(seed: int) -> Given:
    """Conformal p-values, of calibration rows that are like the others or not."""
    rng, P, y = _labels(seed)
    learn = rng.permutation(1000) < 500
    own = lac(P)[np.arange(1000), y][learn] * (1.0 if seed % 2 else 0.8)
    given = {"y_true": y[~learn], "p_values": conformal_p_values(own, lac(P[~learn]))}
    return given | ({"probabilities": P[~learn]} if seed % 3 else {})


def digits(seed: int) -> Given:
    """Handwritten digits, a quarter of the pixels seen, naive Bayes or a logistic regression."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    X, y = load_digits(return_X_y=True)
    X = X[:, seed % 4 :: 4] / 16.0
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:600], order[600:]
    model = GaussianNB() if seed % 2 else LogisticRegression(max_iter=5000)
    P = model.fit(X[train], y[train]).predict_proba(X[test])
    return {"y_true": y[test], "probabilities": P, "sets": lac(P) <= 0.9, "X": X[test][:, :4]}


def diabetes(seed: int) -> Given:
    """Disease progression with intervals of one width, by a line."""
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import Ridge

    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:150], order[150:]
    middle = Ridge(alpha=0.1).fit(X[train], y[train]).predict(X[test])
    half = (60.0, 90.0, 200.0)[seed % 3]
    return {"y_true": y[test], "intervals": np.column_stack([middle - half, middle + half]), "X": X[test]}


def cifar(seed: int) -> Given:
    """Probabilities of a network for photographs, from the shared data where they are there."""
    with np.load(DATA / "cifar10_resnet50_val_test.npz") as stored:
        names = {name: stored[name] for name in stored.files}
    P = next(a for a in names.values() if a.ndim == 2 and a.shape[1] == 10).astype(float)
    y = next(a for a in names.values() if a.ndim == 1 and len(a) == len(P)).astype(int)
    if not ((P >= 0).all() and np.allclose(P.sum(axis=1), 1, atol=1e-3)):
        P = np.exp(P - P.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    rows = np.random.default_rng(seed).choice(len(y), 1500, replace=False)
    return {"y_true": y[rows], "probabilities": P[rows], "sets": lac(P[rows]) <= (0.7, 0.99)[seed % 2]}


KINDS: dict[str, Callable[[int], Given]] = {
    "intervals": intervals, "probabilities": probabilities, "sets": sets, "p_values": p_values,
    "digits": digits, "diabetes": diabetes,
}  # fmt: skip
if (DATA / "cifar10_resnet50_val_test.npz").exists():
    KINDS["cifar"] = cifar
