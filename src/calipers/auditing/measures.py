"""What predictors are compared by: one contribution per row, or one number per audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calipers.auditing.result import Audit
from calipers.inference import mean_estimate
from calipers.inputs.rows import Rows
from calipers.metrics.probability_scores import score_rows
from calipers.metrics.row_scores import interval_score_rows, log_loss_estimate
from calipers.results import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One line of a comparison.

    Parameters
    ----------
    name : str
        What is measured.
    rows : callable
        Contribution of every row, or None when the rows do not have it.
    has_target : bool
        Whether the promised coverage is right; less is better otherwise.
    estimate : callable
        The mean of the contributions with its error bar, from rows, ``name``, ``weights`` and ``confidence``.
    """

    name: str
    rows: Callable[[Rows], np.ndarray | None]
    has_target: bool = False
    estimate: Callable[..., Estimate] = mean_estimate


def _covered(rows: Rows) -> np.ndarray | None:
    covered = rows.get("covered")
    return None if covered is None else covered.astype(float)


def _size(rows: Rows) -> np.ndarray | None:
    size = rows.get("size")
    return None if size is None or not np.isfinite(size).all() else size.astype(float)


def _interval_score(rows: Rows) -> np.ndarray | None:
    if rows.task != "regression" or _size(rows) is None:
        return None
    lower, upper = rows["interval_at_level"].T
    return np.asarray(interval_score_rows(rows["outcomes"], lower, upper, rows.alpha))


def _error(rows: Rows) -> np.ndarray | None:
    if rows.get("probabilities") is not None:
        return np.asarray(~rows["top_is_right"], dtype=float)
    if rows.task == "regression" and np.isfinite(rows["interval_at_level"]).all():
        return rows["hardness"]
    return None


def _score(name: str) -> Callable[[Rows], np.ndarray | None]:
    return lambda rows: None if rows.get("probabilities") is None else score_rows(rows)[name]


INTERVAL_SCORE = Measure(name="interval score", rows=_interval_score)
BRIER_SCORE = Measure(name="Brier score", rows=_score("brier_score"))
LOG_LOSS = Measure(name="log loss", rows=_score("log_loss"), estimate=log_loss_estimate)
MEASURES = (
    Measure(name="coverage", rows=_covered, has_target=True),
    Measure(name="mean size", rows=_size),
    INTERVAL_SCORE,
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
