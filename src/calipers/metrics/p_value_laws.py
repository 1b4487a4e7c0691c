"""What single p-values should do: be uniform for true outcomes, be small for anomalies."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from calipers.arrays import Array, RandomState, as_numpy, generator, namespace
from calipers.exceptions import InputError
from calipers.inference import Moments, SimulatedLaw, State, mean_estimate
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import (
    check_confidence,
    check_count,
    check_p_values,
    check_same_length,
    check_vector,
    covered_by_sets,
    encode_labels,
)
from calipers.inputs.option_checks import check_flag
from calipers.inputs.rows import Rows
from calipers.metrics.entry import MetricEntry, known_options
from calipers.metrics.states.moments import MomentState
from calipers.metrics.states.one_block import over_one_block
from calipers.results import Estimate


def average_p_value(p_values: Any, *, sample_weight: Any = None, confidence: float = 0.95) -> Estimate:
    """Mean p-value of test objects: the efficiency of an anomaly detector, smaller on anomalies is better.

    For objects like the calibration ones it reads about 1/2 (smoothed); for anomalies it should be
    close to ``1 / (n + 1)``, the smallest p-value n calibration rows can give.

    Parameters
    ----------
    p_values : array of shape (n,)
        One p-value per object.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights.
    confidence : float
        Level of the interval.

    Returns
    -------
    Estimate

    Notes
    -----
    The interval is the one for rows between 0 and 1 (`calipers.inference.bounded_mean_interval`), for the
    calibration rows at hand.

    References
    ----------
    Smith, Nouretdinov, Craddock, Offer, Gammerman (2014), Anomaly detection of trajectories with kernel
    density estimation by conformal prediction.

    Examples
    --------
    >>> from calipers.metrics import average_p_value
    >>> round(float(average_p_value([0.01, 0.02, 0.12])), 3)
    0.05
    """
    state = average_state(_AVERAGE, {"confidence": check_confidence(confidence)})
    given = {"p_values": p_values, "sample_weight": sample_weight}
    return cast("Estimate", over_one_block(state, given))


def p_value_uniformity(
    y_true: Any,
    p_values: Any,
    *,
    classes: Any = None,
    n_calibration: int | None = None,
    smoothed: bool = True,
    confidence: float = 0.95,
    n_simulations: int = 999,
    random_state: RandomState = None,
) -> Estimate:
    """Largest distance between the p-values of the true labels and the uniform law; good is near 0.

    Parameters
    ----------
    y_true : array of shape (n,)
        Observed labels.
    p_values : array of shape (n, K)
        p-values of all labels.
    classes : sequence of K labels, optional
        The label of every column.
    n_calibration : int, optional
        Rows behind the p-values. All test rows then share that calibration set, and the null law takes
        its luck into account; without it a healthy predictor is accused far too often.
    smoothed : bool
        Whether p-values are smoothed and so should be uniform; unsmoothed ones may be larger, never
        smaller, so only an excess of small ones counts.
    confidence : float
        Level of the interval.
    n_simulations : int
        Draws of the null law, with ``n_calibration``.
    random_state : None, int or Generator
        Source of these draws.

    Returns
    -------
    Estimate
        ``p_value`` small: the p-values cannot be trusted as p-values.

    Notes
    -----
    Statistic: sup |F(u) - u| (smoothed) or sup (F(u) - u)^+ (not), F the empirical distribution. Null with
    ``n_calibration``: exact Monte-Carlo test over joint draws of calibration and test scores without ties.
    Without: the exact Kolmogorov law for independent p-values, right only for one test row per calibration
    draw. Interval: Dvoretzky-Kiefer-Wolfowitz band around F, for this calibration set; conservative.

    References
    ----------
    Massart (1990), The tight constant in the Dvoretzky-Kiefer-Wolfowitz inequality.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import p_value_uniformity
    >>> p = np.stack([np.linspace(0.005, 0.995, 100), np.zeros(100)], axis=1)
    >>> round(float(p_value_uniformity(np.zeros(100, dtype=int), p)), 3)
    0.005
    """
    table = check_p_values(p_values)
    n = check_same_length(y_true=y_true, p_values=p_values)
    codes = encode_labels(y_true, int(table.shape[1]), classes=classes, table=p_values)
    own = as_numpy(covered_by_sets(codes, table)).astype(np.float64)
    smoothed = check_flag(smoothed, name="smoothed")
    distance = float(_distance(own[None, :], smoothed)[0])
    half = math.sqrt(math.log(2 / (1 - check_confidence(confidence))) / (2 * n))
    fields: dict[str, Any] = {
        "name": "p-value uniformity",
        "value": distance,
        "low": max(0.0, distance - half),
        "high": min(1.0, distance + half),
        "confidence": confidence,
        "n": float(n),
        "reason": "a largest distance has no standard error",
        "details": {"smoothed": smoothed, "n_calibration": n_calibration},
    }
    if n_calibration is None:
        return Estimate(**fields, **_kolmogorov(distance, n, smoothed))
    rows = check_count(n_calibration, name="n_calibration")
    draws = _simulate(rows, n, smoothed, check_count(n_simulations, name="n_simulations"), random_state)
    law = SimulatedLaw(draws).estimate_fields(distance, alternative="greater", level=NULL_LEVEL)
    method = "Kolmogorov distance, DKW interval, exact Monte-Carlo test with finite calibration"
    return Estimate(**fields, **law, method=method)


def _distance(p: np.ndarray, smoothed: bool) -> np.ndarray:
    """sup |F - u| or sup (F - u)^+ of every row of p."""
    ordered = np.sort(p, axis=1)
    m = ordered.shape[1]
    above = (np.arange(1, m + 1) / m - ordered).max(axis=1)
    if not smoothed:
        return np.asarray(np.maximum(above, 0.0))
    below = (ordered - np.arange(m) / m).max(axis=1)
    return np.asarray(np.maximum(above, below))


def _simulate(n: int, m: int, smoothed: bool, n_simulations: int, random_state: RandomState) -> np.ndarray:
    """Distances of healthy predictors: uniform scores, n for calibration and m for test."""
    rng = generator(random_state)
    draws = np.empty(n_simulations)
    for i in range(n_simulations):
        ranks = n - np.searchsorted(np.sort(rng.random(n)), rng.random(m))
        tau = rng.random(m) if smoothed else 1.0
        draws[i] = _distance(((ranks + tau) / (n + 1))[None, :], smoothed)[0]
    return draws


def _kolmogorov(distance: float, n: int, smoothed: bool) -> dict[str, Any]:
    from scipy import stats

    law = stats.kstwo(n) if smoothed else stats.ksone(n)
    return {
        "p_value": float(min(1.0, law.sf(distance))),
        "alternative": "greater",
        "null_high": float(law.ppf(NULL_LEVEL)),
        "null_level": NULL_LEVEL,
        "method": "Kolmogorov distance, DKW interval, exact test for independent p-values",
    }


def _unit_vector(p_values: Any) -> Array:
    p = check_vector(p_values, name="p_values")
    xp = namespace(p)
    if bool(xp.any((p < 0) | (p > 1))):
        raise InputError("p_values must lie in [0, 1].")
    return p


def _p_value_rows(block: Rows) -> dict[str, np.ndarray]:
    """The p-value of every object."""
    return {"p": as_numpy(_unit_vector(block["p_values"])).astype(np.float64)}


def _average_of_moments(moments: dict[str, Moments], *, confidence: float) -> Estimate:
    mean = mean_estimate(moments["p"], name="average p-value", confidence=confidence, limits=(0.0, 1.0))
    reason = "no null: how small it could be depends on how different the anomalies are"
    return replace(mean, reason="; ".join(filter(None, [mean.reason, reason])))


def average_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Moments of the p-values."""
    chosen = known_options(entry, options, ("confidence",))
    return MomentState(_p_value_rows, partial(_average_of_moments, **chosen), ("p_values",))


_AVERAGE = MetricEntry(
    function=average_p_value,
    question="narrow",
    inputs=("p_values",),
    direction="lower",
    good="close to 1 / (n + 1) on anomalies, about 1/2 on ordinary objects",
    bounds=(0.0, 1.0),
    no_null="how small it could be depends on how different the anomalies are",
    interval="for rows of a known range",
    merge="moments",
    state=average_state,
    weighted=True,
    array_api=True,
)
ENTRIES = (
    MetricEntry(
        function=p_value_uniformity,
        question="coverage",
        inputs=("y_true", "p_values"),
        direction="lower",
        good="near 0; below the null's 95 % point",
        bounds=(0.0, 1.0),
        null="p-values of true labels are uniform (unsmoothed: at least uniform)",
        interval="Dvoretzky-Kiefer-Wolfowitz",
        merge="gather",
        weighted=False,
        randomized=True,
        array_api=True,
    ),
    _AVERAGE,
)
