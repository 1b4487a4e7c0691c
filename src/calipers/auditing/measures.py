"""What predictors are compared by: one contribution per row, or one number per audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calipers.auditing.material import Material
from calipers.auditing.result import Audit


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One line of a comparison.

    Parameters
    ----------
    name : str
        What is measured.
    rows : callable
        Contribution of every row, or None when the material does not have it.
    target : callable or None
        The value it should have; None when less is better.
    """

    name: str
    rows: Callable[[Material], np.ndarray | None]
    target: Callable[[Material], float] | None = None


def _covered(material: Material) -> np.ndarray | None:
    return material.levels[0].covered.astype(float) if material.levels else None


def _size(material: Material) -> np.ndarray | None:
    if not material.levels or not np.isfinite(material.levels[0].size).all():
        return None
    return material.levels[0].size


def _winkler(material: Material) -> np.ndarray | None:
    """Width, and 2/alpha times the distance of an outcome outside; smallest for the true quantiles."""
    if material.task != "regression" or _size(material) is None:
        return None
    level = material.levels[0]
    lower, upper = level.prediction[:, 0], level.prediction[:, 1]
    outside = np.maximum(0.0, np.maximum(lower - material.y, material.y - upper))
    return np.asarray(level.size + 2 / level.alpha * outside)


def _error(material: Material) -> np.ndarray | None:
    if material.probabilities is not None:
        return np.asarray(material.probabilities.argmax(axis=1) != material.y, dtype=float)
    if material.task == "regression":
        middle = material.levels[0].prediction.mean(axis=1)
        return np.asarray(np.abs(material.y - middle)) if np.isfinite(middle).all() else None
    return None


def brier_rows(material: Material) -> np.ndarray | None:
    """Squared distance of the probabilities from the outcome."""
    P = material.probabilities
    if P is None:
        return None
    return np.asarray((P**2).sum(axis=1) - 2 * P[np.arange(material.n), material.y] + 1)


def log_loss_rows(material: Material) -> np.ndarray | None:
    """Minus the log-probability of the outcome, at most that of 1e-12: one row must not hide the rest."""
    P = material.probabilities
    if P is None:
        return None
    return np.asarray(-np.log(np.maximum(P[np.arange(material.n), material.y], 1e-12)))


MEASURES = (
    Measure(name="coverage", rows=_covered, target=lambda material: material.levels[0].promised),
    Measure(name="mean size", rows=_size),
    Measure(name="interval score", rows=_winkler),
    Measure(name="mean error", rows=_error),
    Measure(name="Brier score", rows=brier_rows),
    Measure(name="log loss", rows=log_loss_rows),
)


def conditional_error(audit: Audit) -> float | None:
    """How far coverage falls below the promise where it is worst: risky rows, a group or a hard part."""
    codes = ("CAL201", "CAL202", "CAL203", "CAL401")
    effects = [
        finding.details["shortfall"]
        for finding in audit.findings
        if finding.code in codes and finding.details.get("shortfall") is not None
    ]
    return max(0.0, *effects) if effects else None
