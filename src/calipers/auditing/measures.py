"""What predictors are compared by: one contribution per row, or one number per audit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calipers.auditing.result import Audit
from calipers.inputs.rows import Rows
from calipers.metrics.probability_scores import score_rows


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
    """

    name: str
    rows: Callable[[Rows], np.ndarray | None]
    has_target: bool = False


def _covered(rows: Rows) -> np.ndarray | None:
    covered = rows.get("covered")
    return None if covered is None else covered.astype(float)


def _size(rows: Rows) -> np.ndarray | None:
    size = rows.get("size")
    return None if size is None or not np.isfinite(size).all() else size.astype(float)


def _winkler(rows: Rows) -> np.ndarray | None:
    """Width, and 2/alpha times the distance of an outcome outside; smallest for the true quantiles."""
    if rows.task != "regression" or (size := _size(rows)) is None:
        return None
    lower, upper = rows["interval_at_level"].T
    outside = np.maximum(0.0, np.maximum(lower - rows["outcomes"], rows["outcomes"] - upper))
    return np.asarray(size + 2 / rows.alpha * outside)


def _error(rows: Rows) -> np.ndarray | None:
    if rows.get("probabilities") is not None:
        return np.asarray(~rows["top_is_right"], dtype=float)
    if rows.task == "regression" and np.isfinite(rows["interval_at_level"]).all():
        return rows["hardness"]
    return None


def brier_rows(rows: Rows) -> np.ndarray | None:
    """The Brier score of every row."""
    return None if rows.get("probabilities") is None else score_rows(rows)["brier_score"]


def log_loss_rows(rows: Rows) -> np.ndarray | None:
    """Minus the log-probability of the outcome of every row."""
    return None if rows.get("probabilities") is None else score_rows(rows)["log_loss"]


MEASURES = (
    Measure(name="coverage", rows=_covered, has_target=True),
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
