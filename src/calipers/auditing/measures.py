"""What predictors are compared by: one contribution per row, or one number per audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calipers.auditing.material import Material
from calipers.auditing.result import Audit
from calipers.inference import mean_estimate
from calipers.metrics.row_scores import (
    absolute_error_rows,
    brier_rows,
    interval_score_rows,
    log_loss_estimate,
    log_loss_rows,
    stated_probability,
    zero_one_rows,
)
from calipers.results import Estimate


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
    estimate : callable
        The mean of the contributions with its error bar, from rows, ``name``, ``weights`` and ``confidence``.
    """

    name: str
    rows: Callable[[Material], np.ndarray | None]
    target: Callable[[Material], float] | None = None
    estimate: Callable[..., Estimate] = mean_estimate


def _covered(material: Material) -> np.ndarray | None:
    return material.levels[0].covered.astype(float) if material.levels else None


def _size(material: Material) -> np.ndarray | None:
    if not material.levels or not np.isfinite(material.levels[0].size).all():
        return None
    return material.levels[0].size


def _interval_score(material: Material) -> np.ndarray | None:
    if material.task != "regression" or _size(material) is None:
        return None
    level = material.levels[0]
    lower, upper = level.prediction[:, 0], level.prediction[:, 1]
    return np.asarray(interval_score_rows(material.y, lower, upper, level.alpha))


def _error(material: Material) -> np.ndarray | None:
    if material.probabilities is not None:
        return np.asarray(zero_one_rows(material.y, material.probabilities.argmax(axis=1)))
    if material.task == "regression":
        middle = material.levels[0].prediction.mean(axis=1)
        return np.asarray(absolute_error_rows(material.y, middle)) if np.isfinite(middle).all() else None
    return None


def _brier_score(material: Material) -> np.ndarray | None:
    P = material.probabilities
    return None if P is None else np.asarray(brier_rows(P, stated_probability(P, material.y)))


def _log_loss(material: Material) -> np.ndarray | None:
    P = material.probabilities
    return None if P is None else np.asarray(log_loss_rows(stated_probability(P, material.y)))


BRIER_SCORE = Measure(name="Brier score", rows=_brier_score)
LOG_LOSS = Measure(name="log loss", rows=_log_loss, estimate=log_loss_estimate)
MEASURES = (
    Measure(name="coverage", rows=_covered, target=lambda material: material.levels[0].promised),
    Measure(name="mean size", rows=_size),
    Measure(name="interval score", rows=_interval_score),
    Measure(name="mean error", rows=_error),
    BRIER_SCORE,
    LOG_LOSS,
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
