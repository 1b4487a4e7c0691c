"""Intercept and slope on the logit scale: logit P(Y = 1) = a + b logit f."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calipers.exceptions import InputError
from calipers.inference import LogisticFit, fit_logistic, normal_quantile
from calipers.inputs import check_confidence
from calipers.inputs.weights import effective_size
from calipers.metrics.reliability.binary_rows import BinaryRows
from calipers.metrics.reliability.multiclass import check_reliability_rows
from calipers.results import Estimate, EstimateTable

_FEW_SURPRISES = 3.0
_REASON_FEW = (
    "fewer than 3 surprises are expected (the sum of p (1 - p)), too few for a Wald interval and test; "
    "calibration_tests has exact ones"
)
_REASON_SEPARATED = "the outcomes are separated by the score, so the maximum likelihood is not attained"
_REASON_CONSTANT = "all scores are equal, so there is no slope"


def calibration_slope(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
) -> EstimateTable:
    """Intercept and slope of the outcomes on the logit of the stated probability.

    Slope 1 and intercept 0 are right. A slope below 1 says that the probabilities are too extreme
    (over-fitting), above 1 too timid; ``in_the_large`` above 0 says that events are more frequent than
    stated.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels.
    probabilities : array of shape (n,), (n, 2) or (n, K)
        Of the positive class, or one column per class; with K > 2 those of the top label.
    pos_label : label, optional
        The positive class; the larger of two labels by default.
    sample_weight : array of shape (n,), optional
        Weights.
    classes : sequence of K labels, optional
        The label of every column.
    confidence : float
        Level of the intervals.

    Returns
    -------
    EstimateTable
        ``slope`` and ``intercept`` of the joint fit, and ``in_the_large``, the intercept with the slope
        held at 1. ``details["excluded"]`` counts rows stated with probability 0 or 1, which have no logit.

    Raises
    ------
    InputError
        When no row has a probability strictly between 0 and 1, or labels are soft.

    Notes
    -----
    Maximum likelihood by Newton steps; Wald intervals and tests from 3 expected surprises on, the sum of
    p (1 - p) as stated and as fitted: with fewer they reject calibrated models far too often. Whole-number
    weights are repetitions, other weights get the sandwich variance. Asymptotic. Cost: O(n) per step, about
    six steps.

    References
    ----------
    Cox (1958), Two further applications of a model for binary regression.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import calibration_slope
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(4000)
    >>> extreme = 1 / (1 + ((1 - f) / f) ** 2)
    >>> print(calibration_slope(rng.random(4000) < f, extreme)["slope"])
    slope 0.481 [0.448, 0.514] at 95 %; p < 0.001
    """
    rows = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    )
    level = check_confidence(confidence)
    if rows.soft:
        raise InputError("y_true holds soft labels; the slope needs labels.")
    logits, y, weights, excluded = _inner_rows(rows.to_host())
    if not logits.size:
        raise InputError("no row has a probability strictly between 0 and 1, so there is no logit to fit.")
    repeated = rows.whole
    w = np.ones(y.size) if weights is None else weights
    ones, stated = np.ones((y.size, 1)), special.expit(logits)
    line = level_only = None
    if not _separated(logits, y):
        calibrated = np.array([0.0, 1.0])
        fit = fit_logistic(design := np.column_stack([ones, logits]), y, weights=w, start=calibrated)
        line = _Coefficients.of(fit, design, y, w, repeated, stated)
    if 0 < y.sum() < y.size:
        fit = fit_logistic(ones, y, weights=w, offset=logits)
        level_only = _Coefficients.of(fit, ones, y, w, repeated, stated)
    shared: dict[str, Any] = {
        "confidence": level,
        "n": effective_size(float(w.sum()), float(np.sum(w * w)), whole=repeated),
        "excluded": excluded,
    }
    return EstimateTable(
        [
            _row(
                "slope",
                line,
                1,
                1.0,
                _REASON_CONSTANT if np.ptp(logits) == 0 else _REASON_SEPARATED,
                **shared,
            ),
            _row("intercept", line, 0, 0.0, _REASON_SEPARATED, **shared),
            _row("in_the_large", level_only, 0, 0.0, _REASON_SEPARATED, **shared),
        ],
        title="Outcomes on the logit of the stated probability",
    )


def _inner_rows(rows: BinaryRows) -> tuple[np.ndarray, np.ndarray, np.ndarray | None, int]:
    f = np.asarray(rows.scores, dtype=np.float64)
    inner = (f > 0) & (f < 1)
    weights = None if rows.weights is None else rows.weights[inner]
    return special.logit(f[inner]), rows.outcomes[inner].astype(float), weights, int(f.size - inner.sum())


def _separated(logits: np.ndarray, y: np.ndarray) -> bool:
    """Whether a threshold parts the two outcomes (ties at the threshold allowed): then no maximum exists."""
    if not 0 < y.sum() < y.size:
        return True
    events, others = logits[y == 1], logits[y == 0]
    return bool(others.max() <= events.min() or events.max() <= others.min())


@dataclass(frozen=True, slots=True)
class _Coefficients:
    values: np.ndarray
    covariance: np.ndarray
    surprises: float

    @classmethod
    def of(
        cls,
        fit: LogisticFit,
        design: np.ndarray,
        y: np.ndarray,
        w: np.ndarray,
        repeated: bool,
        stated: np.ndarray,
    ) -> _Coefficients | None:
        """Inverse information of repeated rows, sandwich variance of other weights; None without maximum."""
        if not fit.converged:
            return None
        inverse, p = np.linalg.inv(fit.information), fit.fitted
        rows = effective_size(float(w.sum()), float(np.sum(w * w)), whole=repeated)
        surprises = rows * min(float(np.average(q * (1 - q), weights=w)) for q in (p, stated))
        if repeated:
            return cls(fit.coefficients, inverse, surprises)
        meat = design.T @ (design * (w**2 * (y - p) ** 2)[:, None])
        return cls(fit.coefficients, inverse @ meat @ inverse, surprises)


def _row(
    name: str,
    fit: _Coefficients | None,
    k: int,
    right: float,
    reason: str,
    *,
    confidence: float,
    n: float,
    excluded: int,
) -> Estimate:
    if fit is None:
        return Estimate(name=name, n=n, method="logistic regression on the logit", reason=reason)
    value, spread = float(fit.values[k]), math.sqrt(float(fit.covariance[k, k]))
    if fit.surprises < _FEW_SURPRISES:
        return Estimate(
            name=name,
            value=value,
            std_error=spread,
            n=n,
            method="logistic regression on the logit",
            reason=_REASON_FEW,
            details={"right": right, "excluded": excluded},
        )
    z = normal_quantile(confidence)
    return Estimate(
        name=name,
        value=value,
        std_error=spread,
        low=value - z * spread,
        high=value + z * spread,
        confidence=confidence,
        n=n,
        p_value=2 * float(special.ndtr(-abs(value - right) / spread)),
        alternative="two-sided",
        method="logistic regression on the logit, Wald interval and test",
        details={"right": right, "excluded": excluded},
    )
