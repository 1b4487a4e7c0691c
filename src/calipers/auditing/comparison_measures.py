"""What predictors are compared by: one contribution per row."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from calipers.auditing.matched_size import label_sets, match_coverage, scaled_intervals
from calipers.inference import mean_estimate
from calipers.inputs.rows import Rows
from calipers.metrics.marginal import coverage_of_rows
from calipers.metrics.probability_scores import score_rows, scores_of_rows
from calipers.metrics.row_scores import interval_score_rows
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
    estimate : callable or None
        The number of some rows with its error bar, from the rows and ``confidence``, as `audit` and
        `measure` give it; None for the mean of the contributions.
    """

    name: str
    rows: Callable[[Rows], np.ndarray | None]
    has_target: bool = False
    of_prediction: bool = False
    at_equal_coverage: bool = False
    estimate: Callable[[Rows, float], Estimate] | None = None

    def of(self, rows: Rows, confidence: float) -> Estimate:
        """The number of these rows, which have it."""
        if self.estimate is not None:
            return replace(self.estimate(rows, confidence), name=self.name)
        found = np.asarray(self.rows(rows))
        return mean_estimate(found, name=self.name, weights=rows.weights, confidence=confidence)


def _covered(rows: Rows) -> np.ndarray | None:
    covered = rows.get("covered")
    return None if covered is None else covered.astype(float)


def _size(rows: Rows) -> np.ndarray | None:
    size = rows.get("size")
    return None if size is None or not np.isfinite(size).all() else size.astype(float)


def _coverage(rows: Rows, confidence: float) -> Estimate:
    """The share of covered rows; whether the promise is kept is a question of its own."""
    found = coverage_of_rows(rows["covered"], weights=rows.weights, confidence=confidence)
    return replace(found, reason="")


def mean_size(rows: Rows, confidence: float) -> Estimate:
    """Mean size of sets, which lies between 0 and the number of labels; mean width of intervals."""
    sets = rows.derived_sets()
    limits = None if sets is None else (0.0, float(sets.shape[1]))
    size = rows["size"].astype(float)
    return mean_estimate(size, name="mean size", weights=rows.weights, confidence=confidence, limits=limits)


def _mean_score(name: str) -> Callable[[Rows, float], Estimate]:
    return lambda rows, confidence: scores_of_rows(rows, confidence)[name]


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
BRIER_SCORE = Measure(name="Brier score", rows=_score("brier_score"), estimate=_mean_score("brier_score"))
LOG_LOSS = Measure(name="log loss", rows=_score("log_loss"), estimate=_mean_score("log_loss"))
COVERAGE = Measure(name="coverage", rows=_covered, has_target=True, of_prediction=True, estimate=_coverage)
SIZE = Measure(name="mean size", rows=_size, of_prediction=True, at_equal_coverage=True, estimate=mean_size)
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
