"""Two predictors on the same rows: equal ones, and one that is better, by every measure of a comparison."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from calipers.auditing.arguments import rows_of_arguments
from calipers.auditing.comparison_lines import make_lines, promises_of

# A pair of predictions: arguments of an audit, by predictor.
Pair = dict[str, dict[str, Any]]


def winners(y: np.ndarray, pair: Pair, n_calibration: int | None = None) -> dict[str, str | None]:
    """Who wins by each measure, without the checks of an audit around it."""
    audits: Any = {}
    for name, stated in pair.items():
        rows = rows_of_arguments(y, **stated)
        design = SimpleNamespace(alphas=rows.alphas, n_calibration=n_calibration, confidence=0.95)
        audits[name] = SimpleNamespace(data=rows, design=design, estimates={})
    broken = [name for name, promise in promises_of(audits).items() if promise["broken"]]
    return {line.measure: line.winner for line in make_lines(audits, broken)}


def around(centre: np.ndarray, half: Any) -> dict[str, Any]:
    return {"intervals": np.column_stack([centre - half, centre + half])}


def equal_intervals(n: int, rng: np.random.Generator) -> tuple[np.ndarray, Pair]:
    """Two conformal predictors around equally good models, each with a calibration sample of its own."""
    mean, y = rng.normal(size=n), np.empty(n)
    spread = np.exp(0.5 * rng.normal(size=n))
    y = mean + spread * rng.normal(size=n)
    pair = {}
    for name in ("a", "b"):
        error = 0.5 * rng.normal(size=n)
        scores = np.abs(
            np.exp(0.5 * rng.normal(size=500)) * rng.normal(size=500) + 0.5 * rng.normal(size=500)
        )
        pair[name] = around(mean + error, np.sort(scores)[450])
    return y, pair


def better_intervals(n: int, rng: np.random.Generator) -> tuple[np.ndarray, Pair]:
    """A model with half the error in its middles; both cover 90 %."""
    mean = rng.normal(size=n)
    y = mean + rng.normal(size=n)
    noise = rng.normal(size=n)
    spreads = {"a": 1.0, "b": np.sqrt(2.0)}
    return y, {name: around(mean + np.sqrt(s * s - 1) * noise, 1.6449 * s) for name, s in spreads.items()}


def nearer_coverage(n: int, rng: np.random.Generator) -> tuple[np.ndarray, Pair]:
    """Coverage 0.90 against 0.98."""
    y = rng.normal(size=n)
    return y, {"a": around(np.zeros(n), 1.6449), "b": around(np.zeros(n), 2.3263)}


def mirrored_coverage(n: int, rng: np.random.Generator) -> tuple[np.ndarray, Pair]:
    """Coverage 0.93 against 0.87: equally far from the promise."""
    y = rng.random(n)
    return y, {
        name: {"intervals": np.tile([0.0, share], (n, 1))} for name, share in (("a", 0.93), ("b", 0.87))
    }


def _classes(n: int, rng: np.random.Generator, k: int = 5) -> tuple[np.ndarray, np.ndarray]:
    logits = 1.5 * rng.normal(size=(n, k))
    P = np.exp(logits)
    P /= P.sum(axis=1, keepdims=True)
    return logits, (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


def _softmax(logits: np.ndarray) -> np.ndarray:
    P = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def _p_values(P: np.ndarray, rng: np.random.Generator, noise: float) -> np.ndarray:
    """Conformal p-values of 1 - probability, with 500 calibration rows of the same law."""
    logits, y = _classes(500, rng, P.shape[1])
    own = 1 - _softmax(logits + noise * rng.normal(size=logits.shape))[np.arange(500), y]
    rank = np.searchsorted(np.sort(own), 1 - P, side="left")
    return np.asarray((500 - rank + 1) / 501)


def equal_classifiers(n: int, rng: np.random.Generator) -> tuple[np.ndarray, Pair]:
    """Equally noisy logits; sets by conformal p-values."""
    logits, y = _classes(n, rng)
    pair = {}
    for name in ("a", "b"):
        P = _softmax(logits + 0.5 * rng.normal(size=logits.shape))
        pair[name] = {"probabilities": P, "p_values": _p_values(P, rng, 0.5)}
    return y, pair


def equal_sets(n: int, rng: np.random.Generator) -> tuple[np.ndarray, Pair]:
    """The same model twice, with two calibration samples; only the sets are known."""
    logits, y = _classes(n, rng)
    P = _softmax(logits)
    return y, {name: {"sets": _p_values(P, rng, 0.0) > 0.1} for name in ("a", "b")}


def better_classifier(n: int, rng: np.random.Generator) -> tuple[np.ndarray, Pair]:
    """The true probabilities against logits with noise."""
    logits, y = _classes(n, rng)
    pair = {}
    for name, noise in (("a", 0.0), ("b", 1.0)):
        P = _softmax(logits + noise * rng.normal(size=logits.shape))
        pair[name] = {"probabilities": P, "p_values": _p_values(P, rng, noise)}
    return y, pair


def better_sets(n: int, rng: np.random.Generator) -> tuple[np.ndarray, Pair]:
    """The same sets with one wrong label more in a third of the rows: larger, and they cover as often."""
    logits, y = _classes(n, rng)
    sets = _p_values(_softmax(logits), rng, 0.0) > 0.1
    larger = sets.copy()
    some = np.flatnonzero(rng.random(n) < 0.33)
    larger[some, (y[some] + rng.integers(1, 5, len(some))) % 5] = True
    return y, {"a": {"sets": sets}, "b": {"sets": larger}}


World = Callable[[int, np.random.Generator], tuple[np.ndarray, Pair]]


def shares(
    world: World, n: int, repetitions: int, seed: int, n_calibration: int | None = 500
) -> dict[str, dict[str | None, float]]:
    """Per measure, how often each predictor wins."""
    found: dict[str, dict[str | None, float]] = {}
    for r in range(repetitions):
        y, pair = world(n, np.random.default_rng([seed, r]))
        for measure, winner in winners(y, pair, n_calibration).items():
            counts = found.setdefault(measure, {})
            counts[winner] = counts.get(winner, 0.0) + 1 / repetitions
    return found
