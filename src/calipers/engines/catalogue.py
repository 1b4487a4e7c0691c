"""From a metric's name to the state that measures it over any number of rows."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from calipers.engines.block import Block, at_label
from calipers.engines.calibration import CalibrationOptions, CalibrationState
from calipers.engines.classwise import ClasswiseState
from calipers.engines.counts import CountState
from calipers.engines.criteria import CriteriaState
from calipers.engines.ease import EaseRangeState
from calipers.engines.fusing import columns_of
from calipers.engines.gathered import GatherState
from calipers.engines.moments import MomentState
from calipers.engines.state import Result, State
from calipers.engines.sums import BinState, DifferenceState, LabelState
from calipers.exceptions import InputError
from calipers.inference import Moments, mean_estimate
from calipers.inputs import check_alphas
from calipers.metrics import metric_entries, metric_entry
from calipers.metrics.interval_size import size_rows, sizes_from_moments
from calipers.metrics.marginal import coverage_of_rows
from calipers.metrics.p_value_laws import average_of
from calipers.metrics.row_scores import (
    LOG_LOSS_FLOOR,
    brier_rows,
    brier_scale,
    is_at_floor,
    log_loss_rows,
    with_floored_rows,
)
from calipers.results import EstimateTable


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
    chosen = accepted(entry.function, {"alpha": alpha, "confidence": confidence} | options)
    if metric in _BY_EASE:
        return EaseRangeState(entry.function, entry.inputs, chosen)
    if entry.merge == "sum":
        return CountState(entry.function, entry.inputs, chosen)
    return GatherState(entry.function, entry.inputs, chosen, weighted=entry.weighted)


def merge_rules() -> dict[str, str]:
    """How each registered metric is measured: by "counts", "moments", "bins", "passes" or "gather".

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
    kinds: dict[type, str] = {
        CountState: "counts", GatherState: "gather", MomentState: "moments", LabelState: "moments",
        DifferenceState: "moments", CriteriaState: "moments", BinState: "bins",
    }  # fmt: skip
    names = [entry.name for entry in metric_entries()]
    return {name: kinds.get(type(state_of(name)), "passes") for name in names}


def accepted(function: Callable[..., Any], options: dict[str, Any]) -> dict[str, Any]:
    """The options the function has a parameter for."""
    import inspect

    known = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in known}


_BY_EASE = frozenset({"t_cv", "t_ss"})


# --- coverage -----------------------------------------------------------------------------------


def covered_with_weights(covered: Any, *, sample_weight: Any, **options: Any) -> Result:
    """Coverage of distinct rows with their counts."""
    return coverage_of_rows(covered, weights=sample_weight, **options)


def _coverage(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    chosen = {"alpha": alpha, "confidence": confidence} | options
    return CountState(covered_with_weights, ("covered",), chosen)


# --- the ten criteria ---------------------------------------------------------------------------


def _efficiency(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    _refuse_options("efficiency", options)
    return CriteriaState(alpha, confidence)


# --- proper scores ------------------------------------------------------------------------------

_FLOORED = "floored_rows"


def score_columns(block: Block) -> dict[str, np.ndarray]:
    """Log loss and Brier score of every row, and whether its log loss is at the floor."""
    P = block["probabilities"]
    stated = at_label(P, block["codes"]).astype(float)
    losses = log_loss_rows(stated)
    return {
        "log_loss": losses,
        "brier_score": brier_rows(P, stated),
        _FLOORED: is_at_floor(losses).astype(float),
    }


def fused_scores(block: Block) -> dict[str, Moments]:
    """Their moments by compiled kernels."""
    moments, columns = np.zeros((2, 3)), columns_of(block["probabilities"])
    scale = brier_scale(len(columns))
    floored = block.kernels.add_scores(columns, block["codes"], LOG_LOSS_FLOOR, scale, moments)
    log_loss, brier = (Moments(*row) for row in moments.tolist())
    share = floored / log_loss.n if log_loss.n else 0.0
    counted = Moments(log_loss.n, share, floored * (1 - share))
    return {"log_loss": log_loss, "brier_score": brier, _FLOORED: counted}


def finish_scores(moments: dict[str, Moments], *, confidence: float) -> EstimateTable:
    """The mean of either score; that of the log loss with the number of rows at its floor."""
    found = {
        name: mean_estimate(m, name=name, confidence=confidence)
        for name, m in moments.items()
        if name != _FLOORED
    }
    floored = moments[_FLOORED]
    found["log_loss"] = with_floored_rows(found["log_loss"], round(floored.n * floored.mean, 6))
    return EstimateTable(found, title="Proper scores")


def _proper_scores(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    _refuse_options("proper_scores", options)
    finisher = partial(finish_scores, confidence=confidence)
    return MomentState(score_columns, finisher, ("codes", "probabilities"), fused_scores)


# --- criteria by label, between predictors, of intervals, of anomalies --------------------------


def _by_label(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    return LabelState(alpha, confidence, tuple(options.pop("criteria", ("OF", "OE"))))


def _difference(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    _refuse_options("efficiency_difference", options)
    return DifferenceState(alpha, confidence)


def width_columns(block: Block, *, alphas: Any, step: bool) -> dict[str, np.ndarray]:
    """Widths of every row at every level, and what their integral adds up from."""
    ends = block["intervals"].astype(np.float64)
    ends = ends[:, :, None] if ends.ndim == 2 else ends
    return size_rows(ends[:, 1] - ends[:, 0], alphas, step=step)


def _widths(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    levels, _ = check_alphas(options.get("alphas", alpha), name="alphas")
    rows = partial(width_columns, alphas=levels, step=bool(options.get("step", False)))
    return MomentState(
        rows, partial(sizes_from_moments, alphas=levels, confidence=confidence), ("intervals",)
    )


def anomaly_columns(block: Block) -> dict[str, np.ndarray]:
    """The p-value of every object."""
    return {"p": block["p_values"].astype(np.float64)}


def finish_average(moments: dict[str, Moments], *, confidence: float) -> Result:
    """The average p-value."""
    return average_of(moments["p"], confidence=confidence)


def _average(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    _refuse_options("average_p_value", options)
    return MomentState(anomaly_columns, partial(finish_average, confidence=confidence), ("p_values",))


# --- errors in bins of the score ----------------------------------------------------------------


def _binned(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    if options.get("strategy", "uniform") != "uniform":
        entry = metric_entry("expected_calibration_error")
        return GatherState(entry.function, entry.inputs, dict(options), weighted=True)
    return BinState(smooth=False, **{k: v for k, v in options.items() if k != "strategy"})


def _smooth(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    return BinState(smooth=True, **options)


def _refuse_options(metric: str, options: dict[str, Any]) -> None:
    if options:
        raise InputError(f"{metric} over many rows takes no further options, got {', '.join(options)}.")


def _calibration(alpha: Any, confidence: float, options: dict[str, Any]) -> State:
    options = dict(options)
    multiclass = options.pop("multiclass", "top_label")
    known = CalibrationOptions.__slots__
    if unknown := [name for name in options if name not in known]:
        raise InputError(f"calibration_error over many rows takes {', '.join(known)}, got {unknown[0]!r}.")
    chosen = CalibrationOptions(confidence=confidence, **options)
    return CalibrationState(chosen) if multiclass == "top_label" else ClasswiseState(chosen, multiclass)


_SPECIAL: dict[str, Callable[[Any, float, dict[str, Any]], State]] = {
    "average_p_value": _average,
    "efficiency_by_label": _by_label,
    "efficiency_difference": _difference,
    "expected_calibration_error": _binned,
    "regression_efficiency": _widths,
    "smooth_calibration_error": _smooth,
    "calibration_error": _calibration,
    "coverage": _coverage,
    "efficiency": _efficiency,
    "proper_scores": _proper_scores,
}
