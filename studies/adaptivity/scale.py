"""Metrics that need no transformation on CIFAR-100 outputs, and everything at the size of ImageNet."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
from sklearn.frozen import FrozenEstimator

from calipers.arrays import generator
from calipers.conformal import ConformalClassifier
from calipers.difficulty import ease_from_outputs
from calipers.metrics import deficit, escv, excess, rank_cv, rank_ss, sscv, t_cv, t_ss, true_rank
from studies.adaptivity.methods import StoredProbabilities

_RANDOMIZED = {"lac": False, "aps": True, "raps": True, "saps": True}
Row = dict[str, Any]


def cifar_rows(
    probabilities: Mapping[str, np.ndarray],
    labels: np.ndarray,
    *,
    alpha: float = 0.1,
    n_rows: int | None = None,
) -> list[Row]:
    """SSCV, ESCV, Deficit, Excess, Rank-CV and Rank-SS with their bands, for four scores and three models."""
    rows: list[Row] = []
    order = generator(0).permutation(len(labels))[:n_rows]
    half = len(order) // 2
    for model, P in probabilities.items():
        cal, test = order[:half], order[half:]
        ranks = np.asarray(true_rank(labels[test], P[test]))
        for score, randomized in _RANDOMIZED.items():
            sets = _sets(P, labels, cal, test, score, randomized, alpha)
            covered, size = sets[np.arange(len(test)), labels[test]], sets.sum(axis=1)
            row: Row = {"model": model, "score": score, "coverage": covered.mean(), "size": size.mean()}
            for metric in (sscv, escv):
                e = metric(covered, size, alpha=alpha, n_calibration=half)
                row |= {e.name: float(e), f"{e.name} null": e.null_high, f"{e.name} p": e.p_value}
            for e in (
                rank_cv(covered, ranks, alpha=alpha),
                rank_ss(ranks, size, n_draws=99, random_state=0),
                deficit(ranks, size),
                excess(ranks, size),
            ):
                row[e.name] = float(e)
            rows.append(row)
    return rows


def _sets(
    P: np.ndarray,
    labels: np.ndarray,
    calibration: np.ndarray,
    test: np.ndarray,
    score: str,
    randomized: bool,
    alpha: float,
) -> np.ndarray:
    model = FrozenEstimator(StoredProbabilities(P.shape[1]))
    predictor = ConformalClassifier(model, nonconformity=score, randomized=randomized, random_state=0)
    predictor.conformalize(P[calibration], labels[calibration])
    return np.asarray(predictor.predict_set(P[test], alpha=alpha))


def synthetic_rows(n: int, n_classes: int, *, n_transforms: int = 10, alpha: float = 0.1) -> list[Row]:
    """Ease, sets, T-CV and T-SS of four scores on invented outputs, with CPU seconds of each step."""
    rng = generator(1)
    hardness = rng.beta(1.0, 3.0, n)
    logits = rng.standard_normal((n, n_classes), dtype=np.float32)
    # One label stands out, less so in harder rows; the truth is drawn from the stated probabilities.
    logits[np.arange(n), rng.integers(0, n_classes, n)] += (12.0 * (1 - hardness)).astype(np.float32)
    clean = _softmax(logits)
    labels = np.minimum((np.cumsum(clean, axis=1) < rng.random((n, 1))).sum(axis=1), n_classes - 1)
    start = time.process_time()
    ease = ease_from_outputs(clean, _perturbed(logits, hardness, n_transforms, rng))
    seconds = time.process_time() - start
    ranks = np.asarray(true_rank(labels, clean))
    order = rng.permutation(n)
    cal, test = order[: n // 2], order[n // 2 :]
    rows: list[Row] = []
    for score, randomized in _RANDOMIZED.items():
        start = time.process_time()
        sets = _sets(clean, labels, cal, test, score, randomized, alpha)
        set_seconds = time.process_time() - start
        covered, size = sets[np.arange(len(test)), labels[test]], sets.sum(axis=1)
        start = time.process_time()
        violation = t_cv(covered, ease[test], alpha=alpha, n_calibration=len(cal))
        slope = t_ss(ranks[test], size, ease[test], n_draws=99, random_state=0)
        rows.append(
            {
                "score": score,
                "rows": n,
                "classes": n_classes,
                "coverage": float(covered.mean()),
                "size": float(size.mean()),
                "T-CV": float(violation),
                "T-CV null": violation.null_high,
                "T-SS": float(slope),
                "ease seconds (with making the outputs)": seconds,
                "set seconds": set_seconds,
                "metric seconds": time.process_time() - start,
            }
        )
    return rows


def _softmax(logits: np.ndarray) -> np.ndarray:
    e = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _perturbed(
    logits: np.ndarray, hardness: np.ndarray, count: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Outputs for changed inputs, one array at a time: harder rows move more."""
    for _ in range(count):
        noise = rng.standard_normal(logits.shape, dtype=np.float32)
        yield _softmax(logits + (0.2 + hardness[:, None]).astype(np.float32) * noise)
