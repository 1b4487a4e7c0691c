"""A dozen small audits: what was predicted, with healthy and with planted faults, from seeded generators.

Faults are large, so that a correct audit finds them with any seed, and healthy samples are healthy by construction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, softmax
from scipy.stats import norm

Sample = dict[str, Any]


def binary_calibrated() -> Sample:
    rng = np.random.default_rng(101)
    X = rng.normal(size=(900, 2))
    p = expit(1.5 * X[:, 0])
    return {"y_true": (rng.random(900) < p).astype(int), "probabilities": p, "X": X, "groups": X[:, 1] > 0}


def binary_overconfident_with_text_labels() -> Sample:
    rng = np.random.default_rng(102)
    score = rng.normal(size=1000)
    happened = rng.random(1000) < expit(score)
    p = expit(3 * score)
    return {
        "y_true": np.where(happened, "yes", "no"), "probabilities": np.stack([1 - p, p], axis=1),
        "classes": ["no", "yes"], "time": np.arange(1000),
    }  # fmt: skip


def _several_classes(rng: np.random.Generator, n: int, k: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    X = rng.normal(size=(n, k))
    P = softmax(1.2 * X, axis=1)
    y = (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1).clip(0, k - 1)
    return X, P, y


def _threshold(P: np.ndarray, y: np.ndarray, alpha: float) -> float:
    """The split-conformal threshold of 1 - p on these calibration rows."""
    scores = np.sort(1 - P[np.arange(len(y)), y])
    return float(scores[int(np.ceil((len(y) + 1) * (1 - alpha))) - 1])


def multiclass_conformal_sets() -> Sample:
    rng = np.random.default_rng(103)
    X, P, y = _several_classes(rng, 1500, 4)
    sets = 1 - P[500:] <= _threshold(P[:500], y[:500], 0.1)
    return {
        "y_true": y[500:], "probabilities": P[500:], "sets": sets, "X": X[500:], "n_calibration": 500,
        "groups": np.array(["east", "north", "west"])[rng.integers(0, 3, 1000)],
    }  # fmt: skip


def multiclass_probabilities_with_a_bad_class() -> Sample:
    rng = np.random.default_rng(104)
    _, P, y = _several_classes(rng, 1200, 3)
    tilted = P * [1.0, 1.0, 2.5]
    return {"y_true": y, "probabilities": tilted / tilted.sum(axis=1, keepdims=True)}


def sets_too_large_everywhere() -> Sample:
    rng = np.random.default_rng(105)
    _, P, y = _several_classes(rng, 800, 5)
    return {"y_true": y, "sets": P > 0.01, "alpha": 0.2}


def sets_at_two_levels() -> Sample:
    rng = np.random.default_rng(106)
    _, P, y = _several_classes(rng, 1300, 3)
    levels = [1 - P[400:] <= _threshold(P[:400], y[:400], alpha) for alpha in (0.05, 0.2)]
    return {
        "y_true": y[400:], "sets": np.stack(levels, axis=-1), "alpha": [0.05, 0.2], "n_calibration": 400,
        "ease": P[400:].max(axis=1),
    }  # fmt: skip


def _p_values(P: np.ndarray, y: np.ndarray, n: int, rng: np.random.Generator) -> np.ndarray:
    """Smoothed split-conformal p-values of the rows after the first n."""
    known = np.sort(1 - P[np.arange(n), y[:n]])
    return (n - np.searchsorted(known, 1 - P[n:]) + rng.random((len(P) - n, 1))) / (n + 1)


def p_values_valid() -> Sample:
    rng = np.random.default_rng(107)
    _, P, y = _several_classes(rng, 1500, 4)
    return {
        "y_true": y[600:],
        "p_values": _p_values(P, y, 600, rng),
        "probabilities": P[600:],
        "n_calibration": 600,
    }


def p_values_too_small_at_two_levels() -> Sample:
    rng = np.random.default_rng(108)
    _, P, y = _several_classes(rng, 1300, 3)
    return {"y_true": y[300:], "p_values": _p_values(P, y, 300, rng) ** 2, "alpha": [0.1, 0.3]}


def intervals_healthy() -> Sample:
    rng = np.random.default_rng(109)
    X = rng.uniform(-1, 1, size=(1100, 2))
    spread = 1 + np.abs(X[:, 0])
    residual = np.sort(np.abs(rng.normal(size=300)))[int(np.ceil(301 * 0.9)) - 1] * spread
    y = X[:, 1] + spread * rng.normal(size=1100)
    intervals = np.stack([X[:, 1] - residual, X[:, 1] + residual], axis=1)
    return {"y_true": y, "intervals": intervals, "X": X, "n_calibration": 300, "ease": -spread}


def intervals_failing_in_a_region() -> Sample:
    rng = np.random.default_rng(110)
    X = rng.uniform(-1, 1, size=(1600, 3))
    y = np.where(X[:, 0] > 0.4, 3.0, 1.0) * rng.normal(size=1600)
    half = norm.ppf(0.95)
    groups = np.where(X[:, 0] > 0.4, "hard", np.where(X[:, 1] > 0, "easy", "middling"))
    return {"y_true": y, "intervals": np.tile([-half, half], (1600, 1)), "X": X, "groups": groups}


def intervals_at_two_levels() -> Sample:
    rng = np.random.default_rng(111)
    spread = rng.uniform(0.5, 3, 1000)
    y = spread * rng.normal(size=1000)
    halves = norm.ppf([0.95, 0.75]) * spread.mean()
    ends = [np.tile([-half, half], (1000, 1)) for half in halves]
    return {"y_true": y, "intervals": np.stack(ends, axis=-1), "alpha": [0.1, 0.5], "ease": -spread}


def intervals_that_drift() -> Sample:
    rng = np.random.default_rng(112)
    when = np.arange("2024-01-01", "2026-01-01", dtype="datetime64[D]")
    y = np.linspace(0.6, 1.6, len(when)) * rng.normal(size=len(when))
    order = rng.permutation(len(when))
    intervals = np.tile([-1.9, 1.9], (len(when), 1))
    return {"y_true": y[order], "intervals": intervals, "time": when[order], "alpha": 0.1}


def shipped_digits() -> Sample:
    """Nearest class means of the digits that ship with the package, with a planted fault."""
    from calipers.datasets import load_demo_classification, plant_fault

    data = load_demo_classification()
    pixels = data.X[:, :64]
    fit, rest = slice(0, None, 3), np.arange(len(pixels)) % 3 != 0
    means = np.stack([pixels[fit][data.y[fit] == k].mean(axis=0) for k in range(10)])
    distance = ((pixels[:, None, :] - means[None]) ** 2).sum(axis=2)
    P = softmax(-distance / 60, axis=1)
    faulty = plant_fault(data, "ink", above=5.5, strength=0.6, random_state=113)
    sets = np.less_equal(1 - P, _threshold(P[fit], data.y[fit], 0.1))
    return {"y_true": faulty.y[rest], "probabilities": P[rest], "sets": sets[rest], "X": data.X[rest][:, 64:]}


def shipped_diabetes() -> Sample:
    """A straight line through body-mass index, for the patients that ship with the package."""
    from calipers.datasets import load_demo_regression

    data = load_demo_regression()
    bmi = data.column("bmi")
    slope, level = np.polyfit(bmi[::2], data.y[::2], 1)
    centre = slope * bmi + level
    error = np.sort(np.abs(data.y - centre)[::2])
    half = error[int(np.ceil((len(error) + 1) * 0.9)) - 1]
    rest = slice(1, None, 2)
    intervals = np.stack([centre - half, centre + half], axis=1)[rest]
    return {"y_true": data.y[rest], "intervals": intervals, "groups": data.column("sex")[rest].astype(int)}


SAMPLES: dict[str, Callable[[], Sample]] = {
    made.__name__: made
    for made in (
        binary_calibrated, binary_overconfident_with_text_labels, multiclass_conformal_sets,
        multiclass_probabilities_with_a_bad_class, sets_too_large_everywhere, sets_at_two_levels, p_values_valid,
        p_values_too_small_at_two_levels, intervals_healthy, intervals_failing_in_a_region,
        intervals_at_two_levels, intervals_that_drift, shipped_digits, shipped_diabetes,
    )
}  # fmt: skip


def weighted_rows() -> tuple[Sample, Sample]:
    """Rows with whole-number weights, zero among them, and the same rows written out."""
    rng = np.random.default_rng(120)
    X, P, y = _several_classes(rng, 900, 3)
    weights = rng.integers(0, 4, 900)
    given = {
        "y_true": y, "probabilities": P, "sets": P > 0.12, "groups": np.where(X[:, 0] > 0, "a", "b"),
        "ease": P.max(axis=1),
    }  # fmt: skip
    return given | {"sample_weight": weights.astype(float)}, {
        k: np.repeat(v, weights, axis=0) for k, v in given.items()
    }
