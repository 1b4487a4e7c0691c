"""Can its probabilities be read as probabilities? The sup-interval calibration error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calipers.arrays import RandomState, as_array
from calipers.inputs import check_confidence, check_count
from calipers.inputs.option_checks import check_choice
from calipers.metrics.reliability.bucket_walk import walk_of_rows
from calipers.metrics.reliability.calibration_estimate import error_from_walk
from calipers.metrics.reliability.calibration_states import CalibrationOptions
from calipers.metrics.reliability.calibration_test import N_DRAWS
from calipers.metrics.reliability.class_errors import classes_together
from calipers.metrics.reliability.multiclass import check_class_rows, check_reliability_rows
from calipers.results import Estimate

MULTICLASS = ("top_label", "classwise", "max")


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
        Weights. Whole numbers are repetitions; other weights are importance weights, and nothing is tested.
    classes : sequence of K labels, optional
        The label of every column, when it cannot be read off ``y_true``.
    confidence : float
        Level of ``low`` and of ``high``, each for itself: both ends are one-sided.
    n_models : int
        How many models are measured on these rows; the allowed error is divided by it, so that the bounds
        hold for all of them, also for the one that is chosen because of its bound.
    n_draws : int
        Draws of the exact test.
    random_state : int, Generator or None
        Source of those draws.

    Returns
    -------
    Estimate
        ``high`` is a one-sided guaranteed upper bound for the population error of a model fixed before these
        rows were seen. ``low`` is a one-sided lower bound by inverting the test: 0 exactly when the test
        does not reject, the smallest positive number (printed "> 0") when no more can be shown. ``details``
        has ``interval`` (p1, p2] (p1 is -inf when it starts below every score; None when nothing stands
        out), ``sign`` (1: events happen more often than stated there, -1: less often), ``sentence`` in
        words, ``asymptotic_high``, ``low_bound`` (asymptotic, without the test), ``asymptotic_band`` and
        ``guaranteed_band`` (two-sided), ``guaranteed`` (whether ``high`` is), ``brier``, ``noise_floor``
        (mean of the null), ``asymptotic_p_value`` and ``impossible`` (rows whose outcome was given
        probability 0).

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
    beyond 1e7 coins the law of the range of Brownian motion, or, where the number of events has a variance
    below 100, draws by 500 cells of the score: with few expected events no asymptotic law holds, however many
    rows there are. It is strong against shifts and errors in one region of scores and weak against wrong
    slopes: `calibration_tests` adds the tests that see those.
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
    calibration_error 0.170 [0.147, 0.193] at 95 %, each end one-sided; a valid predictor would read up
    to ...
    >>> error.details["sentence"]
    'up to 0.93 the model is over-confident by 0.18: it states 0.462 on average and 0.278 happens (92.6 % of
    rows)'
    """
    check_choice(multiclass, MULTICLASS, name="multiclass")
    options = CalibrationOptions(
        confidence=check_confidence(confidence),
        n_models=check_count(n_models, name="n_models"),
        n_draws=check_count(n_draws, name="n_draws"),
        random_state=random_state,
    )
    scores = as_array(probabilities, name="probabilities")
    if scores.ndim == 2 and scores.shape[1] > 2:
        rows = check_class_rows(y_true, probabilities, classes=classes, sample_weight=sample_weight)
        if multiclass != "top_label":
            return classes_together(rows, multiclass, options)
        estimate = error_from_walk(walk_of_rows(rows.top_label(), options), options)
        return replace(estimate, details={**estimate.details, "multiclass": "top_label"})
    binary = check_reliability_rows(
        y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight, classes=classes
    )
    return error_from_walk(walk_of_rows(binary, options), options)
