"""Are outcomes where the predicted distributions said? Uniformity of the probability integral transform."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inference import NO_EXACT_LAW
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import check_confidence, check_same_length, check_vector, check_weights
from calipers.inputs.weights import effective_size
from calipers.metrics.distributions.anderson_darling import anderson_darling, anderson_darling_p_value
from calipers.metrics.entry import MetricEntry
from calipers.results import Estimate

_NO_ERROR = "a largest distance has no standard error"
# Spread of a uniform number; more means that outcomes lie in the tails.
_UNIFORM_VARIANCE = 1.0 / 12.0


def pit_uniformity(pit: Any, *, confidence: float = 0.95, sample_weight: Any = None) -> Estimate:
    """Largest distance between the distribution of PIT values and the uniform law; good is near 0.

    The PIT of a row is the predicted distribution function at the outcome, F(y). When predictions are right
    it is uniform: one outcome in ten falls below the predicted 10 % quantile, and so at every level.

    Parameters
    ----------
    pit : array of shape (n,)
        F(y) of every row, in [0, 1]. Where F jumps at y (counts, ensembles, quantiles) it must be
        randomised: F(y-) + u (F(y) - F(y-)) with u uniform, drawn anew for every row.
    confidence : float
        Level of the interval.
    sample_weight : array of shape (n,), optional
        Weights. Whole numbers are repeated rows; with others there is no test.

    Returns
    -------
    Estimate
        ``p_value`` small: predictions are off. ``details``: "mean" (below 1/2: outcomes are lower than
        predicted), "spread" (variance over 1/12; above 1: predictions are too narrow), "shape" ("shifted",
        "too narrow" or "too wide": the larger departure of the two), "anderson_darling",
        "kolmogorov_p_value", and "sentence".

    Raises
    ------
    InputError
        For values that are missing or outside [0, 1].

    Notes
    -----
    Value: Kolmogorov's distance sup |G(u) - u|, G the distribution of the PIT. Interval: the
    Dvoretzky-Kiefer-Wolfowitz band, which holds at any n (with fractional weights: at the effective n, an
    approximation). ``null_high`` is the 95 % point of the exact law of the distance.
    Test: Anderson-Darling, which weighs all quantiles equally and so sees predictions that are too narrow,
    too wide or wrong in the tails, where the distance alone is weak: outcomes that spread 20 % more than
    predicted are found among 200 rows in 60 %, by the distance in 26 %. So a small p-value may stand beside
    a distance within its limit. The law is that of many rows times 1 + 1/n. A PIT of exactly 0 or 1 is read
    as one rounding error inside. Cost: one sort.

    References
    ----------
    Dawid (1984), Statistical theory: the prequential approach. Anderson and Darling (1952), Asymptotic
    theory of certain goodness of fit criteria. Massart (1990), The tight constant in the
    Dvoretzky-Kiefer-Wolfowitz inequality. Czado, Gneiting and Held (2009), Predictive model assessment
    for count data.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> from calipers.metrics import pit_uniformity
    >>> y = np.random.default_rng(0).normal(0, 1.3, 500)
    >>> uniformity = pit_uniformity(stats.norm.cdf(y))         # predicted: standard deviation 1
    >>> uniformity.p_value < 1e-4
    True
    >>> uniformity.details["sentence"]
    'predictions are too narrow: PIT values vary 1.32 times as much as they should'
    """
    u = as_numpy(check_vector(pit, name="pit")).astype(np.float64)
    _refuse_outside(u)
    weights = check_weights(sample_weight, check_same_length(pit=pit, sample_weight=sample_weight))
    w = np.ones(len(u)) if weights is None else weights
    return uniformity_of(u[w > 0], w[w > 0], check_confidence(confidence))


def uniformity_of(u: np.ndarray, w: np.ndarray, confidence: float) -> Estimate:
    """The estimate from checked values and positive weights."""
    order = np.argsort(u, kind="stable")
    first = np.flatnonzero(np.append(True, np.diff(u[order]) > 0))
    values, rows = u[order][first], np.add.reduceat(w[order], first)
    up_to = np.cumsum(rows)
    below, n = up_to - rows, float(up_to[-1])
    is_whole = bool(np.all(w == np.floor(w)))
    distance = float(np.max(np.maximum(up_to / n - values, values - below / n)))
    effective = effective_size(n, float(np.sum(w * w)), whole=is_whole)
    half = math.sqrt(math.log(2.0 / (1.0 - confidence)) / (2.0 * effective))
    fields: dict[str, Any] = {
        "name": "PIT uniformity",
        "value": distance,
        "low": max(0.0, distance - half),
        "high": min(1.0, distance + half),
        "confidence": confidence,
        "n": effective,
        "reason": _NO_ERROR,
        "method": "Kolmogorov distance, DKW interval",
        "details": _shape(values, rows),
    }
    if not is_whole:
        return Estimate(**(fields | {"reason": f"{_NO_ERROR}; {NO_EXACT_LAW}"}))
    return Estimate(**(fields | _tested(fields, values, below, up_to)))


def _tested(
    fields: dict[str, Any], values: np.ndarray, below: np.ndarray, up_to: np.ndarray
) -> dict[str, Any]:
    n = int(up_to[-1])
    from scipy import stats

    statistic, law = anderson_darling(values, below, up_to), stats.kstwo(n)
    own = float(np.clip(law.sf(fields["value"]), 5e-324, 1.0))
    details = {"anderson_darling": statistic, "kolmogorov_p_value": own}
    return {
        "p_value": anderson_darling_p_value(statistic, n),
        "alternative": "greater",
        "null_high": float(law.ppf(NULL_LEVEL)),
        "null_level": NULL_LEVEL,
        "method": fields["method"] + ", Anderson-Darling test",
        "details": fields["details"] | details,
    }


def _shape(values: np.ndarray, rows: np.ndarray) -> dict[str, Any]:
    """Mean and spread of the PIT values, and the larger departure of the two in words."""
    mean = float(np.average(values, weights=rows))
    spread = float(np.average((values - mean) ** 2, weights=rows)) / _UNIFORM_VARIANCE
    # Standard deviations per row: sqrt(1 / 12) of the mean, sqrt(0.8) of the spread.
    if abs(mean - 0.5) / math.sqrt(_UNIFORM_VARIANCE) >= abs(spread - 1.0) / math.sqrt(0.8):
        side, shape = "lower" if mean < 0.5 else "higher", "shifted"
        sentence = f"outcomes are {side} than predicted: the mean PIT value is {mean:.3f}, not 0.5"
    else:
        shape = "too narrow" if spread > 1 else "too wide"
        sentence = f"predictions are {shape}: PIT values vary {spread:.2f} times as much as they should"
    return {"mean": mean, "spread": spread, "shape": shape, "sentence": sentence}


def _refuse_outside(u: np.ndarray) -> None:
    outside = (u < 0) | (u > 1)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"pit must lie in [0, 1], {int(outside.sum())} of {len(u)} values do not "
            f"(first at row {row}: {u[row]:g}). It is the predicted distribution function at the outcome."
        )


ENTRIES = (
    MetricEntry(
        function=pit_uniformity,
        question="probabilities",
        inputs=("pit",),
        direction="lower",
        good="near 0; below null_high, with p above 0.05",
        bounds=(0.0, 1.0),
        null="PIT values are uniform (Anderson-Darling)",
        interval="Dvoretzky-Kiefer-Wolfowitz",
        merge="gather",
        weighted=True,
    ),
)
