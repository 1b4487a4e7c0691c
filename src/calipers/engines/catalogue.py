"""From a metric's name to the state that measures it over any number of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calipers.engines.block import Block, at_label
from calipers.engines.calibration import CalibrationOptions, CalibrationState
from calipers.engines.counts import CountState
from calipers.engines.ease import EaseRangeState
from calipers.engines.gathered import GatherState
from calipers.engines.moments import MomentState
from calipers.engines.state import Result, State
from calipers.exceptions import InputError
from calipers.inference import Moments, mean_estimate
from calipers.metrics import metric_entries, metric_entry
from calipers.metrics.contributions import criterion_rows, sets_at
from calipers.metrics.criteria import criteria_from_moments
from calipers.metrics.marginal import coverage_of_rows
from calipers.results import EstimateTable

# Data arguments that a block knows under another name.
_COLUMN = {"prediction": "covered", "y_true": "codes", "error": "absolute_error", "width": "size"}


def state_of(metric: str, *, alpha: Any = 0.1, confidence: float = 0.95, **options: Any) -> State:
    """The state of a registered metric, ready to absorb blocks.

    Parameters
    ----------
    metric : str
        Name of a registered metric, or "proper_scores".
    alpha : float
        Allowed miscoverage, for the metrics that take it.
    confidence : float
        Level of the intervals.
    **options
        Further keyword arguments of the metric.

    Returns
    -------
    State
        Its ``finish`` gives what the metric itself would give for all rows at once.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.engines import Block, state_of
    >>> state = state_of("coverage", alpha=0.1)
    >>> for y in ([0.0, 5.0], [1.0]):
    ...     state.absorb(Block({"y_true": y, "intervals": np.tile([-1.0, 1.0], (len(y), 1))}))
    >>> round(float(state.finish()), 3)
    0.667
    """
    if metric in _SPECIAL:
        return _SPECIAL[metric](alpha, confidence, options)
    entry = metric_entry(metric)
    columns = tuple(_COLUMN.get(name, name) for name in entry.inputs)
    chosen = accepted(entry.function, {"alpha": alpha, "confidence": confidence} | options)
    if metric in _BY_EASE:
        return EaseRangeState(entry.function, columns, chosen)
    if entry.merge == "sum" and set(columns) <= _DISCRETE:
        return CountState(entry.function, columns, chosen)
    return GatherState(entry.function, columns, chosen, weighted=entry.weighted)


def merge_rules() -> dict[str, str]:
    """How each registered metric is measured over many rows: "counts", "moments", "passes" or "gather".

    Returns
    -------
    dict
        Metric to rule.

    Examples
    --------
    >>> from calipers.engines import merge_rules
    >>> merge_rules()["coverage"], merge_rules()["efficiency"]
    ('counts', 'moments')
    """
    kinds = {CountState: "counts", MomentState: "moments", GatherState: "gather"}
    names = [entry.name for entry in metric_entries()]
    return {name: kinds.get(type(state_of(name)), "passes") for name in names}


def accepted(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options the function has a parameter for."""
    import inspect

    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in known}


# Columns with few distinct values whatever the number of rows.
_DISCRETE = frozenset({"covered", "size", "ranks", "groups"})
_BY_EASE = frozenset({"t_cv", "t_ss"})


# --- coverage -----------------------------------------------------------------------------------


def covered_with_weights(covered: Any, *, sample_weight: Any, **options: Any) -> Result:
    """Coverage of distinct rows with their counts."""
    return coverage_of_rows(covered, weights=sample_weight, **options)


def _coverage(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    chosen = {"alpha": alpha, "confidence": confidence} | options
    return CountState(covered_with_weights, ("covered",), chosen)


# --- the ten criteria ---------------------------------------------------------------------------


def criterion_columns(block: Block, *, alpha: Any) -> dict[str, np.ndarray]:
    """Contribution of every row to every criterion."""
    p = block["p_values"]
    return {name: np.asarray(x) for name, x in criterion_rows(p, block["codes"], sets_at(p, alpha)).items()}


def _efficiency(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    _refuse_options("efficiency", options)
    return MomentState(
        partial(criterion_columns, alpha=alpha),
        partial(criteria_from_moments, alpha=alpha, confidence=confidence),
        ("codes", "p_values"),
    )


# --- proper scores ------------------------------------------------------------------------------


def score_columns(block: Block) -> dict[str, np.ndarray]:
    """Log loss and Brier score of every row."""
    P, codes = block["probabilities"], block["codes"]
    own = at_label(P, codes).astype(float)
    with np.errstate(divide="ignore"):
        log_loss = -np.log(own)
    brier = np.einsum("ij,ij->i", P, P, dtype=float) - 2 * own + 1
    return {"log_loss": log_loss, "brier_score": brier}


def finish_means(moments: dict[str, Moments], *, confidence: float, title: str) -> EstimateTable:
    """One mean estimate per name."""
    found = {name: mean_estimate(m, name=name, confidence=confidence) for name, m in moments.items()}
    return EstimateTable(found, title=title)


def _proper_scores(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    _refuse_options("proper_scores", options)
    finisher = partial(finish_means, confidence=confidence, title="Proper scores")
    return MomentState(score_columns, finisher, ("codes", "probabilities"))


def _refuse_options(metric: str, options: dict[str, Any]) -> None:
    if options:
        raise InputError(f"{metric} over many rows takes no further options, got {', '.join(options)}.")


def _calibration(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    known = CalibrationOptions.__slots__
    if unknown := [name for name in options if name not in known]:
        raise InputError(f"calibration_error over many rows takes {', '.join(known)}, got {unknown[0]!r}.")
    return CalibrationState(CalibrationOptions(confidence=confidence, **options))


_SPECIAL: dict[str, Callable[[Any, float, dict[str, Any]], State]] = {
    "calibration_error": _calibration,
    "coverage": _coverage,
    "efficiency": _efficiency,
    "proper_scores": _proper_scores,
}
