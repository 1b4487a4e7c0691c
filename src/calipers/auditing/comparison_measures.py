"""What predictors are compared by: one contribution per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from calipers.auditing.matched_size import label_sets, match_coverage, scaled_intervals
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
    of_prediction : bool
        Whether it is about sets or intervals: then none that breaks its promise of coverage can win.
    at_equal_coverage : bool
        Whether the numbers mean something only for predictors that cover equally often.
    estimate : callable
        The mean of the contributions with its error bar, from rows, ``name``, ``weights`` and ``confidence``.
    """

    name: str
    rows: Callable[[Rows], np.ndarray | None]
    has_target: bool = False
    of_prediction: bool = False
    at_equal_coverage: bool = False
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


def _matched_size(rows: Rows) -> np.ndarray | None:
    """Sizes at the promised coverage: intervals are scaled around their middles, p-values cut elsewhere."""
    wanted = 1.0 - float(rows.alpha)
    if rows.task == "regression":
        if _size(rows) is None:
            return None
        family = scaled_intervals(rows["outcomes"], *rows["interval_at_level"].T)
    elif (p_values := rows.get("p_values")) is not None and p_values.ndim == 2:
        family = label_sets(-p_values, rows["codes"])
    else:
        return None
    matched = match_coverage(family, wanted, rows.weights)
    return None if matched is None else matched.contributions


INTERVAL_SCORE = Measure(name="interval score", rows=_interval_score, of_prediction=True)
BRIER_SCORE = Measure(name="Brier score", rows=_score("brier_score"))
LOG_LOSS = Measure(name="log loss", rows=_score("log_loss"), estimate=log_loss_estimate)
COVERAGE = Measure(name="coverage", rows=_covered, has_target=True, of_prediction=True)
SIZE = Measure(name="mean size", rows=_size, of_prediction=True, at_equal_coverage=True)
MATCHED_SIZE = Measure(name="mean size at matched coverage", rows=_matched_size, of_prediction=True)
MEASURES = (
    COVERAGE,
    SIZE,
    MATCHED_SIZE,
    INTERVAL_SCORE,
    Measure(name="mean error", rows=_error),
    BRIER_SCORE,
    LOG_LOSS,
)
