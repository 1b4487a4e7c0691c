"""Brier score and log loss: proper scores of stated probabilities, row by row."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self, cast

import numpy as np

from calipers.arrays.compiled import columns_of
from calipers.inference import Moments, State, mean_estimate
from calipers.inputs import check_confidence
from calipers.inputs.derived_columns import at_label
from calipers.inputs.rows import Rows
from calipers.metrics.entry import MetricEntry, known_options
from calipers.metrics.row_scores import (
    LOG_LOSS_FLOOR,
    brier_rows,
    brier_scale,
    is_at_floor,
    log_loss_rows,
    with_floored_rows,
)
from calipers.metrics.states.moments import MomentState, keep
from calipers.metrics.states.one_block import over_one_block
from calipers.results import Estimate, EstimateTable

_FLOORED = "floored_rows"
_NO_NULL = "how small a proper score can be depends on how predictable the outcomes are"


def proper_scores(
    y_true: Any,
    probabilities: Any,
    *,
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
) -> EstimateTable:
    """Mean Brier score and mean log loss of stated probabilities.

    Smaller is better; both are smallest in expectation for the true probabilities. Compare predictors on the
    same rows.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels.
    probabilities : array of shape (n, K) or (n,)
        Stated probabilities; a vector is the positive class of two.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights.
    classes : sequence of K labels, optional
        The label of every column.
    confidence : float
        Level of the intervals.

    Returns
    -------
    EstimateTable
        "log_loss" and "brier_score".

    Notes
    -----
    Interval: that of rows of a known range (`bounded_mean_interval`). A Brier score lies in [0, 1], with
    three or more classes in [0, 2]; a log loss is at most that of the smallest probability that any row
    stated for any label. Few rows that are almost always right tell little about the loss of a surprise, and
    the upper end says so. Cost: one pass.

    Examples
    --------
    >>> from calipers.metrics import proper_scores
    >>> round(proper_scores([0, 1], [0.25, 0.75])["log_loss"].value, 4)
    0.2877
    """
    state = proper_scores_state(_ENTRY, {"confidence": check_confidence(confidence)})
    given = {"y_true": y_true, "probabilities": probabilities, "sample_weight": sample_weight}
    return cast("EstimateTable", over_one_block(state, given, classes=classes))


def scores_of_rows(rows: Rows, confidence: float = 0.95) -> dict[str, Estimate]:
    """The numbers of `proper_scores` for rows in canonical form, for those who compare them."""
    state = ScoreState(confidence)
    state.absorb(rows)
    return state.means()


def score_rows(block: Rows) -> dict[str, np.ndarray]:
    """Log loss and Brier score of every row, and whether its log loss is at the floor."""
    P = block["probabilities"]
    stated = at_label(P, block["codes"]).astype(float)
    losses = log_loss_rows(stated)
    return {
        "log_loss": losses,
        "brier_score": brier_rows(P, stated),
        _FLOORED: is_at_floor(losses).astype(float),
    }


def compiled_score_moments(block: Rows) -> dict[str, Moments]:
    """Their moments by compiled kernels."""
    moments, columns = np.zeros((2, 3)), columns_of(block["probabilities"])
    scale = brier_scale(len(columns))
    floored = block.kernels.add_scores(columns, block["codes"], LOG_LOSS_FLOOR, scale, moments)
    log_loss, brier = (Moments(n, mean, squares) for n, mean, squares in moments.tolist())
    share = floored / log_loss.n if log_loss.n else 0.0
    counted = Moments(log_loss.n, share, floored * (1 - share))
    return {"log_loss": log_loss, "brier_score": brier, _FLOORED: counted}


class ScoreState(MomentState):
    """Moments of both scores, and what bounds them: the smallest probability stated, the classes."""

    __slots__ = ("confidence", "n_classes", "smallest")

    def __init__(self, confidence: float) -> None:
        super().__init__(score_rows, keep, ("codes", "probabilities"), compiled_score_moments)
        self.confidence, self.smallest, self.n_classes = confidence, 1.0, 0

    def absorb(self, block: Rows) -> None:
        """Add the block's moments and look for a smaller probability."""
        super().absorb(block)
        P = block["probabilities"]
        if P.shape[0]:
            self.smallest, self.n_classes = min(self.smallest, float(P.min())), int(P.shape[1])

    def merge(self, other: Self) -> Self:
        """Pool the moments; the smaller probability counts."""
        self.smallest = min(self.smallest, other.smallest)
        self.n_classes = max(self.n_classes, other.n_classes)
        return super().merge(other)

    def finish(self) -> EstimateTable:
        """The mean of either score, with the interval of its range."""
        means = [
            replace(mean, reason="; ".join(filter(None, [mean.reason, _NO_NULL])))
            for mean in self.means().values()
        ]
        return EstimateTable(means, title="Proper scores")

    def means(self) -> dict[str, Estimate]:
        """The mean of either score; that of the log loss with the number of rows at its floor."""
        largest = float(log_loss_rows(np.array([self.smallest]))[0])
        limits = {"log_loss": (0.0, largest), "brier_score": (0.0, 2.0 * brier_scale(self.n_classes))}
        found = {
            name: mean_estimate(self.moments[name], name=name, confidence=self.confidence, limits=ends)
            for name, ends in limits.items()
        }
        floored = self.moments[_FLOORED]
        found["log_loss"] = with_floored_rows(found["log_loss"], round(floored.n * floored.mean, 6))
        return found


def proper_scores_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Moments of both scores."""
    chosen = known_options(entry, options, ("confidence",))
    return ScoreState(chosen.get("confidence", 0.95))


_ENTRY = MetricEntry(
    function=proper_scores,
    question="probabilities",
    inputs=("y_true", "probabilities"),
    returns="table",
    direction="lower",
    good="as small as the problem allows; compare predictors on the same rows",
    bounds=(0.0, float("inf")),
    no_null=_NO_NULL,
    interval="for rows of a known range",
    merge="moments",
    state=proper_scores_state,
    weighted=True,
)
ENTRIES = (_ENTRY,)
