"""Can its probabilities be read as probabilities? The sup-interval calibration error."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.arrays import Array, RandomState, as_array, generator, namespace
from calipers.exceptions import InputError
from calipers.inputs import check_confidence, check_count
from calipers.metrics.reliability.calibration_test import N_DRAWS
from calipers.metrics.reliability.multiclass import (
    ClassRows,
    check_class_rows,
    check_reliability_rows,
    classes_together,
)
from calipers.metrics.reliability.rows import BinaryRows
from calipers.metrics.reliability.summary import (
    SOFT_REASON,
    WEIGHTS_REASON,
    RowMoments,
    bound_fields,
    in_words,
    null_fields,
    row_moments,
)
from calipers.metrics.reliability.worst_interval import SupInterval, sup_interval
from calipers.results import Estimate

MULTICLASS = ("top_label", "classwise", "max")
_FIELDS = ("p_value", "alternative", "null_high", "null_level")


def calibration_error(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    multiclass: str = "top_label",
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
    n_models: int = 1,
    n_draws: int = N_DRAWS,
    random_state: RandomState = None,
) -> Estimate:
    """How far stated probabilities are from observed frequencies, at worst over all ranges of scores.

    c_emp = (1/n) max over p1 < p2 of |#{events with p1 < f <= p2} - sum of f there|: take any range of
    scores, compare the number of events with the number stated, divide by all rows. 0 is perfect, 1 is the
    worst; a calibrated model reads about 1.6 sqrt(mean f (1 - f) / n), and ``null_high`` says up to where.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels; or soft labels, floating numbers in [0, 1] that are not all 0 or 1. A single class is allowed.
    probabilities : array of shape (n,), (n, 2) or (n, K)
        Of the positive class, or one column per class in order of the sorted labels.
    pos_label : label, optional
        The positive class; the larger of two labels by default.
    multiclass : {"top_label", "classwise", "max"}
        With more than two columns: the error of the largest probability as a statement about "the top
        label is right" (ties of columns go to the first), the mean over classes of each column's error,
        or the largest of them. The last two have a null law and bounds that hold for all classes at once.
    sample_weight : array of shape (n,), optional
        Weights. Whole numbers are repetitions; other weights count each row as one draw.
    classes : sequence of K labels, optional
        The label of every column, when it cannot be read off ``y_true``.
    confidence : float
        One-sided level of ``high`` and of ``details["low_bound"]``.
    n_models : int
        How many models are judged on these rows; the allowed error is divided by it, so that the bounds
        hold for all of them, also for the one that is chosen because of its bound.
    n_draws : int
        Draws of the exact test.
    random_state : int, Generator or None
        Source of those draws.

    Returns
    -------
    Estimate
        ``high`` is a one-sided guaranteed upper bound for the population error of a model fixed before
        these rows were seen; ``low`` is 0, so that [low, high] is a valid interval. ``details`` has
        ``interval`` (p1, p2] (p1 is -inf when it starts below every score; None when nothing stands out),
        ``sign`` (1: events happen more often than stated there, -1: less often), ``sentence`` in words,
        ``asymptotic_high``, ``low_bound`` (asymptotic), ``asymptotic_band`` and ``guaranteed_band``
        (two-sided), ``guaranteed`` (whether ``high`` is), ``brier``, ``noise_floor`` (mean of the null),
        ``asymptotic_p_value`` and ``impossible`` (rows whose outcome was given probability 0).

    Raises
    ------
    InputError
        For missing values, probabilities outside [0, 1], rows that do not sum to 1, unknown labels.

    Notes
    -----
    Ties are pooled: the running difference is read only where the score changes, so the order of rows does
    not matter. ``std_error`` is that of the mean residual in the maximising interval; it describes c_emp
    well when the population error is far above the noise floor and is too large below.
    Test: outcomes are redrawn as coins with the stated probabilities, level by level (exact at any n);
    beyond 1e7 coins the law of the range of Brownian motion. It is strong against shifts and errors in one
    region of scores and weak against wrong slopes: `calibration_tests` adds the tests that see those.
    Upper bound: empirical Bernstein on the one interval the population chooses (see
    `calipers.metrics.reliability.upper_bound`). With unequal weights only the asymptotic one exists.
    A small error does not say that f is close to P(Y = 1 | X): Theorem 1 of the paper shows that no sample
    can certify that distance, for any model, without assumptions on the law.
    Cost: expected O(n) for the error, O(K draws) for K distinct scores for the exact test.

    References
    ----------
    Gao, Parameswaran and Peng (2017), On the interpretability of conditional probability estimates in the
    agnostic setting, AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import calibration_error
    >>> rng = np.random.default_rng(0)
    >>> f = rng.random(2000)
    >>> error = calibration_error(rng.random(2000) < f**2, f, random_state=0)
    >>> print(error)
    calibration_error 0.17 [0.00, 0.19] at 95 %; a perfect predictor would read up to 0.023 (p = 0.001)
    >>> error.details["sentence"]
    'up to 0.93 the model is over-confident by 0.18: it states 0.462 on average and 0.278 happens (92.6 % of
    rows)'
    """
    if multiclass not in MULTICLASS:
        raise InputError(f"multiclass must be one of {', '.join(MULTICLASS)}, got {multiclass!r}.")
    options: dict[str, Any] = {
        "confidence": check_confidence(confidence),
        "n_models": check_count(n_models, name="n_models"),
        "n_draws": check_count(n_draws, name="n_draws"),
        "generator": generator(random_state),
    }
    scores = as_array(probabilities, name="probabilities")
    if scores.ndim == 2 and scores.shape[1] > 2:
        rows = check_class_rows(y_true, probabilities, classes=classes, sample_weight=sample_weight)
        return error_of_classes(rows, multiclass, **options)
    binary = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    )
    return error_of_rows(binary, **options)


def error_of_classes(rows: ClassRows, multiclass: str, **options: Any) -> Estimate:
    """The estimate of a problem with several classes, from checked rows."""
    if multiclass == "top_label":
        estimate = error_of_rows(rows.top_label(), **options)
        details = dict(estimate.details) | {"multiclass": "top_label"}
        return Estimate(**(estimate.to_dict() | {"details": details}))
    return classes_together(rows, multiclass, **options)


def error_of_rows(
    rows: BinaryRows,
    *,
    confidence: float = 0.95,
    n_models: int = 1,
    n_draws: int = N_DRAWS,
    generator: np.random.Generator,
    name: str = "calibration_error",
) -> Estimate:
    """The estimate from checked binary rows; every sup-interval error in the package is made here."""
    found = sup_interval(rows)
    moments = row_moments(rows, found)
    bounds = bound_fields(rows.counted, found, moments, confidence=confidence, n_models=n_models)
    null = null_fields(rows, found, moments, n_draws=n_draws, generator=generator)
    highest = _top(namespace(rows.scores), rows.scores)
    return error_from_parts(
        found, moments, bounds, null, highest=highest, soft=rows.soft, confidence=confidence, name=name
    )


def error_from_parts(
    found: SupInterval,
    moments: RowMoments,
    bounds: dict[str, Any],
    null: dict[str, Any],
    *,
    highest: float,
    soft: bool = False,
    confidence: float = 0.95,
    name: str = "calibration_error",
) -> Estimate:
    """The estimate from the numbers it is made of, however the rows were read."""
    reasons = ([SOFT_REASON] if soft else []) + ([] if bounds["guaranteed"] else [WEIGHTS_REASON])
    kind = "guaranteed (empirical Bernstein)" if bounds["guaranteed"] else "asymptotic"
    return Estimate(
        name=name,
        value=found.value,
        std_error=moments.std_error(found.value),
        low=0.0,
        high=bounds["high"],
        confidence=confidence,
        n=moments.total,
        **{field: null.get(field) for field in _FIELDS},
        method=f"sup-interval error, {kind} upper bound" + (f", {null['test']}" if null["test"] else ""),
        reason="; ".join(reasons),
        details=_details(highest, found, moments, bounds, null),
    )


def _details(highest: float, found: Any, moments: Any, bounds: Any, null: Any) -> dict[str, Any]:
    return {
        "interval": None if found.sign == 0 else (found.low, found.high),
        "sign": found.sign,
        "sentence": in_words(found, moments, highest),
        **{key: bounds[key] for key in bounds if key != "high"},
        "brier": moments.second_moment,
        "share_in_interval": moments.inside / moments.total,
        "stated_in_interval": moments.stated,
        "observed_in_interval": moments.happened,
        "noise_floor": null.get("null_mean"),
        "p_std_error": null.get("p_std_error"),
        "asymptotic_p_value": null.get("asymptotic_p_value"),
        "impossible": moments.impossible,
    }


def _top(xp: Any, scores: Array) -> float:
    return min(1.0, float(xp.max(scores)))
