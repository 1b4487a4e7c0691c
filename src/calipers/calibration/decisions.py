"""Decisions under unequal costs, what they cost, and what calibration saves."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from calipers.arrays import Array, as_numpy
from calipers.deprecation import warn_deprecated
from calipers.exceptions import InputError
from calipers.inference import Moments, bounded_mean_p_value, bounded_ratio_interval, mean_estimate
from calipers.inputs import (
    check_binary,
    check_confidence,
    check_positive_probabilities,
    check_same_length,
    check_weights,
)
from calipers.inputs.row_checks import numeric
from calipers.results import Curve, Estimate


def bayes_decision(probabilities: Any, *, false_positive_cost: float, false_negative_cost: float) -> Array:
    """Whether to act as if the event will happen: True where p >= fp / (fp + fn).

    For calibrated probabilities no other rule that sees only the probability costs less (Claim 1 of [1]_).

    Parameters
    ----------
    probabilities : array (n,) or (n, 2)
        Stated probability of the positive class.
    false_positive_cost, false_negative_cost : float
        Costs of acting in vain and of not acting when the event comes; non-negative, not both 0.

    Returns
    -------
    bool array (n,)
        In the array library of the input.

    Raises
    ------
    InputError
        For probabilities outside [0, 1] or costs that are negative, not finite, or both 0.

    References
    ----------
    .. [1] Gao, Parameswaran and Peng (2017), On the interpretability of conditional probability estimates
       in the agnostic setting. AISTATS.

    Examples
    --------
    >>> from calipers.calibration import bayes_decision
    >>> bayes_decision([0.05, 0.1, 0.6], false_positive_cost=1, false_negative_cost=9)
    array([False,  True,  True])
    """
    threshold = decision_threshold(false_positive_cost, false_negative_cost)
    return check_positive_probabilities(probabilities) >= threshold


_LARGEST_COST = 1e150


def decision_threshold(false_positive_cost: float, false_negative_cost: float) -> float:
    """The probability fp / (fp + fn) from which acting is the cheaper decision."""
    costs = {"false_positive_cost": false_positive_cost, "false_negative_cost": false_negative_cost}
    for name, cost in costs.items():
        single = isinstance(cost, (int, float, np.number)) and not isinstance(cost, bool)
        if not (single and _is_affordable(cost) and cost >= 0):  # refuses NaN too
            raise InputError(f"{name} must be a finite number of at least 0, got {repr(cost)[:40]}.")
    if float(false_positive_cost) + float(false_negative_cost) == 0:
        raise InputError("false_positive_cost and false_negative_cost must not both be 0.")
    return float(false_positive_cost) / (float(false_positive_cost) + float(false_negative_cost))


def _is_affordable(cost: Any) -> bool:
    try:
        return float(cost) <= _LARGEST_COST
    except (OverflowError, TypeError):  # 10**400; a complex number
        return False


class _Rows(NamedTuple):
    positive: np.ndarray
    weights: np.ndarray | None
    stated: tuple[np.ndarray, ...]


def loss_ratio(
    y_true: Any,
    before: Any,
    after: Any,
    *,
    false_positive_cost: float,
    false_negative_cost: float,
    pos_label: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    n_draws: None = None,
    random_state: None = None,
) -> Estimate:
    """Average cost of decisions after calibration, divided by the cost before; below 1 is a gain.

    Parameters
    ----------
    y_true : array (n,)
        What happened, on rows that served neither training nor calibration.
    before, after : array (n,) or (n, 2)
        Probability of the positive class as stated, and as calibrated, of the same rows.
    false_positive_cost, false_negative_cost : float
        Costs of the two mistakes; decisions follow `bayes_decision`.
    pos_label : label or None
        The positive label; None takes the larger of two.
    sample_weight : array (n,) or None
        Repetitions of the rows.
    confidence : float
        Level of the interval.
    n_draws, random_state : None
        Deprecated: the interval needs no draws. Giving either warns.

    Returns
    -------
    Estimate
        ``p_value`` tests whether both cost the same; ``details`` hold both average losses, the number of
        changed decisions, and the paired difference. NaN, with a reason, when nothing was lost before.

    Raises
    ------
    InputError
        For unequal lengths, probabilities outside [0, 1], or impossible costs.

    Notes
    -----
    Ratio of two means over the same rows. Interval: ratios r for which 0 is a plausible mean of (loss
    after) - r (loss before), decided by an interval for rows of a known range
    (`calipers.inference.bounded_ratio_interval`). It holds when few rows are lost, as with costs of 0.05
    and 0.95, where a bootstrap never sees the losses that did not happen, and exists when no decision
    changed. Test: the mean change over the rows whose decision changed, by the same interval; with equal
    costs the exact test of discordant rows (McNemar). Rows are taken as independent and both models as
    fixed: the noise of fitting the calibrator is not in it.

    Examples
    --------
    >>> from calipers.calibration import loss_ratio
    >>> from calipers.datasets import ScoreWorld
    >>> world = ScoreWorld("uniform", "shift", 1.0)
    >>> p, y = world.sample(5000, random_state=0)
    >>> costs = {"false_positive_cost": 1, "false_negative_cost": 4}
    >>> loss_ratio(y, p, world.link_at(p), **costs).high < 1
    True
    """
    _refuse_draws("loss_ratio", n_draws, random_state)
    confidence = check_confidence(confidence)
    rows = _check_rows(y_true, (before, after), pos_label, sample_weight)
    losses = [_losses(rows.positive, p, false_positive_cost, false_negative_cost) for p in rows.stated]
    cells, masses = _cells(losses[0], losses[1], rows.weights)
    threshold = decision_threshold(false_positive_cost, false_negative_cost)
    details = _loss_details(cells, masses) | {"threshold": threshold}
    base = Estimate(name="loss ratio", value=math.nan, n=float(masses.sum()), details=details)
    if details["loss_before"] == 0:
        return replace(base, reason="nothing was lost before calibration, so the ratio is undefined")
    limit = float(max(false_positive_cost, false_negative_cost))
    value = details["loss_after"] / details["loss_before"]
    ends = bounded_ratio_interval(cells, masses, limit=limit, confidence=confidence)
    change = Moments.of(cells[:, 1] - cells[:, 0], masses)
    at_value = Moments.of(cells[:, 1] - value * cells[:, 0], masses)
    return replace(
        base,
        value=value,
        std_error=at_value.std_error / details["loss_before"] if at_value.n > 1 else None,
        low=ends.low,
        high=ends.high,
        confidence=confidence,
        p_value=_equal_cost_p_value(cells, masses, limit),
        alternative="two-sided",
        method="ratio of paired means, Fieller's interval for losses of a known range",
        details=details | {"difference": change.mean, "difference_std_error": change.std_error},
    )


def _equal_cost_p_value(cells: np.ndarray, masses: np.ndarray, limit: float) -> float:
    """Whether the rows whose loss changed gained as much as they lost; 1 when none changed."""
    changes = cells[:, 1] - cells[:, 0]
    moved = changes != 0
    if not moved.any():
        return 1.0
    moments = Moments.of(changes[moved], masses[moved])
    return bounded_mean_p_value(moments, null=0.0, low=-limit, high=limit)


def _loss_details(cells: np.ndarray, masses: np.ndarray) -> dict[str, float]:
    """Average losses before and after, and the mass of changed decisions."""
    before, after = masses @ cells / masses.sum()
    changed = masses[cells[:, 0] != cells[:, 1]].sum()
    return {"loss_before": float(before), "loss_after": float(after), "changed": float(changed)}


def cost_curve(
    y_true: Any,
    probabilities: Any,
    *,
    thresholds: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Curve:
    """Average cost of Bayes decisions over the cost parameter p; lower is better.

    A false positive costs p and a false negative 1 - p, so the decision threshold is p itself (Section 4
    of the paper). Draw the curves before and after calibration in one plot to see where it pays.

    Parameters
    ----------
    y_true : array (n,)
        What happened.
    probabilities : array (n,) or (n, 2)
        Stated probability of the positive class.
    thresholds : array or None
        Values of p in (0, 1); 0.05, 0.10, ..., 0.95 by default.
    pos_label : label or None
        The positive label; None takes the larger of two.
    sample_weight : array (n,) or None
        Repetitions of the rows.
    confidence : float
        Level of the pointwise band.

    Returns
    -------
    Curve
        Average cost with a pointwise interval for costs of a known range.

    Raises
    ------
    InputError
        For unequal lengths, probabilities outside [0, 1], or thresholds outside (0, 1).

    Examples
    --------
    >>> from calipers.calibration import cost_curve
    >>> curve = cost_curve([0, 1, 1, 0], [0.2, 0.4, 0.9, 0.6], thresholds=[0.5])
    >>> float(curve.y[0])  # one false positive and one false negative in four rows, 0.5 each
    0.25
    """
    rows = _check_rows(y_true, (probabilities,), pos_label, sample_weight)
    grid = check_thresholds(thresholds)
    points = [
        mean_estimate(
            _losses(rows.positive, rows.stated[0], float(p), 1 - float(p)),
            name="cost",
            weights=rows.weights,
            confidence=confidence,
            limits=(0.0, max(float(p), 1 - float(p))),
        )
        for p in grid
    ]
    return Curve(
        name="cost",
        x=grid,
        y=np.array([float(e) for e in points]),
        low=np.array([math.nan if e.low is None else e.low for e in points]),
        high=np.array([math.nan if e.high is None else e.high for e in points]),
        confidence=confidence,
        x_label="cost parameter p (false positive p, false negative 1 - p)",
        y_label="average cost of a decision",
        method="mean cost per threshold, pointwise interval for costs of a known range",
    )


def loss_ratio_curve(
    y_true: Any,
    before: Any,
    after: Any,
    *,
    thresholds: Any = None,
    pos_label: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    n_draws: None = None,
    random_state: None = None,
) -> Curve:
    """Loss ratio over the cost parameter p, with its pointwise band (Figure 3 of the paper).

    Parameters
    ----------
    y_true : array (n,)
        What happened.
    before, after : array (n,) or (n, 2)
        Probability of the positive class as stated, and as calibrated.
    thresholds : array or None
        Values of p in (0, 1); 0.05, 0.10, ..., 0.95 by default.
    pos_label, sample_weight, confidence, n_draws, random_state
        As in `loss_ratio`.

    Returns
    -------
    Curve
        NaN where nothing was lost before. ``details["mean"]`` is the mean over the grid.

    Raises
    ------
    InputError
        As `loss_ratio`.

    Examples
    --------
    >>> from calipers.calibration import loss_ratio_curve
    >>> curve = loss_ratio_curve([0, 1, 1, 0], [0.2, 0.4, 0.9, 0.6], [0.1, 0.6, 0.9, 0.6], thresholds=[0.5])
    >>> float(curve.y[0])  # the false negative is gone, the false positive stays
    0.5
    """
    _refuse_draws("loss_ratio_curve", n_draws, random_state)
    grid = check_thresholds(thresholds)
    points = [
        loss_ratio(
            y_true,
            before,
            after,
            false_positive_cost=float(p),
            false_negative_cost=1 - float(p),
            pos_label=pos_label,
            sample_weight=sample_weight,
            confidence=confidence,
        )
        for p in grid
    ]
    values = np.array([float(e) for e in points])
    return Curve(
        name="loss ratio",
        x=grid,
        y=values,
        low=np.array([math.nan if e.low is None else e.low for e in points]),
        high=np.array([math.nan if e.high is None else e.high for e in points]),
        confidence=confidence,
        x_label="cost parameter p (false positive p, false negative 1 - p)",
        y_label="cost after calibration / before",
        method="ratio of paired means per threshold, pointwise Fieller interval for losses of a known range",
        details={"mean": float(np.nanmean(values)) if np.isfinite(values).any() else math.nan},
    )


def _refuse_draws(function: str, n_draws: Any, random_state: Any) -> None:
    """Warn about options that were taken when the interval was a bootstrap."""
    for name, value in {"n_draws": n_draws, "random_state": random_state}.items():
        if value is not None:
            warn_deprecated(
                f"{function}: the argument {name} has no effect, the interval needs no draws", "0.4"
            )


def check_thresholds(thresholds: Any) -> np.ndarray:
    """Cost parameters strictly between 0 and 1; 0.05 to 0.95 in steps of 0.05 by default."""
    if thresholds is None:
        return np.arange(1, 20) / 20
    grid = as_numpy(numeric(np.atleast_1d(as_numpy(thresholds, name="thresholds")), "thresholds"))
    if grid.ndim != 1 or not grid.size or not ((grid > 0) & (grid < 1)).all():
        raise InputError(f"thresholds must lie strictly between 0 and 1, got {repr(thresholds)[:60]}.")
    return grid


def _check_rows(y_true: Any, stated: tuple[Any, ...], pos_label: Any, sample_weight: Any) -> _Rows:
    names = ("before", "after") if len(stated) == 2 else ("probabilities",)
    columns = {n: check_positive_probabilities(p, name=n) for n, p in zip(names, stated, strict=True)}
    n = check_same_length(y_true=y_true, **dict(zip(names, stated, strict=True)), sample_weight=sample_weight)
    positive = as_numpy(check_binary(y_true, pos_label=pos_label))
    return _Rows(positive, check_weights(sample_weight, n), tuple(as_numpy(p) for p in columns.values()))


def _losses(positive: np.ndarray, p: np.ndarray, false_positive: float, false_negative: float) -> np.ndarray:
    acts = p >= decision_threshold(false_positive, false_negative)
    return np.where(acts & ~positive, float(false_positive), np.where(~acts & positive, false_negative, 0.0))


def _cells(
    before: np.ndarray, after: np.ndarray, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Distinct pairs (before, after) of losses and the total weight of each."""
    levels, codes = np.unique(np.concatenate([before, after]), return_inverse=True)
    k = levels.size
    pairs = codes[: before.size] * k + codes[before.size :]
    masses = np.bincount(pairs, weights, minlength=k * k).astype(np.float64)
    found = np.flatnonzero(masses)
    return np.stack([levels[found // k], levels[found % k]], axis=1), masses[found]
