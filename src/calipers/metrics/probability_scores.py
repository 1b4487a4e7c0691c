"""Brier score and log loss: proper scores of stated probabilities, row by row."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from calipers.arrays.compiled import columns_of
from calipers.inference import Moments, State, mean_estimate
from calipers.inputs import check_confidence
from calipers.inputs.rows import Rows, at_label
from calipers.metrics.entry import MetricEntry, known_options
from calipers.results import EstimateTable

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
        Weights; a weight of 2 counts as two equal rows.
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
    Interval: Student t of the mean over rows. Cost: one pass.

    Examples
    --------
    >>> from calipers.metrics import proper_scores
    >>> round(proper_scores([0, 1], [0.25, 0.75])["log_loss"].value, 4)
    0.2877
    """
    state = proper_scores_state(_ENTRY, {"confidence": check_confidence(confidence)})
    given = {"y_true": y_true, "probabilities": probabilities, "sample_weight": sample_weight}
    state.absorb(Rows(given, classes=classes))
    return cast("EstimateTable", state.finish())


def score_rows(block: Rows) -> dict[str, np.ndarray]:
    """Log loss and Brier score of every row."""
    P, codes = block["probabilities"], block["codes"]
    own = at_label(P, codes).astype(float)
    with np.errstate(divide="ignore"):
        log_loss = -np.log(own)
    brier = np.einsum("ij,ij->i", P, P, dtype=float) - 2 * own + 1
    return {"log_loss": log_loss, "brier_score": brier}


def compiled_score_moments(block: Rows) -> dict[str, Moments] | None:
    """Their moments by compiled kernels; None when some log loss is infinite."""
    moments = np.zeros((2, 3))
    columns, codes = columns_of(block["probabilities"]), block["codes"]
    if not block.kernels.add_scores(columns, codes, moments):
        return None
    return {name: Moments(*m) for name, m in zip(("log_loss", "brier_score"), moments.tolist(), strict=True)}


def _table(moments: dict[str, Moments], *, confidence: float) -> EstimateTable:
    means = [mean_estimate(m, name=name, confidence=confidence) for name, m in moments.items()]
    reasons = ["; ".join(filter(None, [mean.reason, _NO_NULL])) for mean in means]
    table = [replace(mean, reason=reason) for mean, reason in zip(means, reasons, strict=True)]
    return EstimateTable(table, title="Proper scores")


def proper_scores_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Moments of both scores."""
    from calipers.metrics.states.moments import MomentState

    chosen = known_options(entry, options, ("confidence",))
    return MomentState(
        score_rows, partial(_table, **chosen), ("codes", "probabilities"), compiled_score_moments
    )


_ENTRY = MetricEntry(
    function=proper_scores,
    question="probabilities",
    inputs=("y_true", "probabilities"),
    returns="table",
    direction="lower",
    good="as small as the problem allows; compare predictors on the same rows",
    bounds=(0.0, float("inf")),
    no_null=_NO_NULL,
    interval="Student t",
    merge="moments",
    state=proper_scores_state,
    weighted=True,
)
ENTRIES = (_ENTRY,)
