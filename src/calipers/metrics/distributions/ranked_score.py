"""How good predicted distributions are: the continuous ranked probability score from quantiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from calipers.inference import Moments, State, mean_estimate
from calipers.inputs import check_confidence, check_same_length, check_weights
from calipers.inputs.rows import Rows
from calipers.metrics.distributions.quantile_columns import (
    check_quantile_levels,
    check_quantiles,
    crossing_rows,
)
from calipers.metrics.entry import MetricEntry, known_options
from calipers.results import Estimate

_NO_NULL = "how small the score can be depends on how predictable the outcomes are"


def crps(
    y_true: Any, quantiles: Any, *, levels: Any, sample_weight: Any = None, confidence: float = 0.95
) -> Estimate:
    """Mean continuous ranked probability score of predicted quantiles; smaller is better.

    In units of the outcome. It rewards quantiles that are both right and close together, and is smallest in
    expectation for the true ones. Compare predictors on the same rows and levels.

    Parameters
    ----------
    y_true : array of shape (n,)
        Outcomes.
    quantiles : array of shape (n, L)
        Predicted quantiles, one column per level. Rows where they cross are scored as they are, and counted
        in ``details``; sort such rows (`numpy.sort` over the columns) for quantiles of a distribution.
    levels : sequence of L numbers
        Level of every column, strictly between 0 and 1; at least two.
    sample_weight : array of shape (n,), optional
        Weights; a weight of 2 counts as two equal rows.
    confidence : float
        Level of the interval.

    Returns
    -------
    Estimate
        ``details``: "level_low", "level_high" (what lies beyond is left out) and "crossing" (share of rows).

    Raises
    ------
    InputError
        For lengths or levels that do not fit, fewer than two levels, and missing values.

    Notes
    -----
    Twice the integral over the level tau of the pinball loss (y - q) (tau - 1{y < q}), by the trapezoid rule
    from the lowest to the highest level given. The tails beyond are left out, so that scores over different
    levels cannot be compared; over all of (0, 1) it is the integral of (F(x) - 1{y <= x})^2.
    Interval: Student t of the mean, for the rows that carry the noise. Cost: one pass.

    References
    ----------
    Gneiting and Raftery (2007), Strictly proper scoring rules, prediction, and estimation. Laio and Tamea
    (2007), Verification tools for probabilistic forecasts of continuous hydrological variables.

    Examples
    --------
    >>> from calipers.metrics import crps
    >>> round(crps([0.0, 4.0], [[-1.0, 1.0], [-1.0, 1.0]], levels=[0.25, 0.75]).value, 3)
    1.0
    """
    n = check_same_length(y_true=y_true, quantiles=quantiles, sample_weight=sample_weight)
    check_weights(sample_weight, n)
    state = crps_state(_ENTRY, {"levels": levels, "confidence": check_confidence(confidence)})
    state.absorb(Rows({"y_true": y_true, "quantiles": quantiles, "sample_weight": sample_weight}))
    return cast("Estimate", state.finish())


def crps_rows(y: np.ndarray, quantiles: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """The score of every row: twice the trapezoid sum of the pinball losses over the levels.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.distributions.ranked_score import crps_rows
    >>> crps_rows(np.array([4.0]), np.array([[-1.0, 1.0]]), [0.25, 0.75])
    array([1.75])
    """
    order = np.argsort(levels)
    tau = np.asarray(levels)[order]
    error = y[:, None] - quantiles[:, order]
    pinball = np.maximum(tau * error, (tau - 1.0) * error)
    gaps = np.diff(tau)
    return np.asarray((pinball[:, 1:] + pinball[:, :-1]) @ gaps)


def _contributions(block: Rows, *, levels: tuple[float, ...]) -> dict[str, np.ndarray]:
    y, table = check_quantiles(block["y_true"], block["quantiles"], levels)
    return {
        "crps": crps_rows(y, table, levels),
        "crossing": crossing_rows(table, levels).astype(np.float64),
    }


def _mean(moments: dict[str, Moments], *, levels: tuple[float, ...], confidence: float) -> Estimate:
    mean = mean_estimate(moments["crps"], name="CRPS", confidence=confidence)
    low, high = min(levels), max(levels)
    details = {"level_low": low, "level_high": high, "crossing": moments["crossing"].mean}
    beyond = f"tails beyond the {low:g} and {high:g} quantiles are left out"
    return replace(
        mean,
        reason="; ".join(filter(None, [mean.reason, beyond, _NO_NULL])),
        details=dict(mean.details) | details,
    )


def crps_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Moments of the scores."""
    from calipers.metrics.states.moments import MomentState

    chosen = known_options(entry, options, ("levels", "confidence"))
    levels = check_quantile_levels(chosen.get("levels"), least=2)
    finish = partial(_mean, levels=levels, confidence=chosen["confidence"])
    return MomentState(partial(_contributions, levels=levels), finish, ("y_true", "quantiles"), tails=True)


_ENTRY = MetricEntry(
    function=crps,
    question="probabilities",
    inputs=("y_true", "quantiles"),
    direction="lower",
    good="as small as the problem allows; compare predictors on the same rows and levels",
    bounds=(0.0, float("inf")),
    no_null=_NO_NULL,
    interval="Student t for the rows that carry the noise",
    merge="moments",
    state=crps_state,
    weighted=True,
)
ENTRIES = (_ENTRY,)
