"""Excess risk of the target coverage (ERT): how far coverage given x is from what was promised."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator
from calipers.deprecation import renamed_arguments
from calipers.exceptions import InputError
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import check_alphas, is_covered
from calipers.metrics.conditional.cross_fitted_risk import LOWER_BOUND, FittedRisk, fit_risk, risk_estimates
from calipers.metrics.conditional.losses import SIDES, check_distance
from calipers.metrics.conditional.risk_rows import check_risk_rows
from calipers.metrics.entry import MetricEntry
from calipers.metrics.states.row_arguments import ROW_ARGUMENTS
from calipers.results import Curve, Estimate, EstimateTable


@renamed_arguments("0.4", groups="cluster")
def ert(
    X: Any,
    covered: Any,
    *,
    alpha: Any,
    loss: Any = "l1",
    side: str = "both",
    classifier: Any = None,
    cv: Any = 5,
    stratify: bool = False,
    null: str | None = "target",
    n_calibration: int | None = None,
    cluster: Any = None,
    sample_weight: Any = None,
    n_repeats: int | None = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> Estimate:
    """Excess risk of the target coverage: the mean distance between coverage at x and 1 - alpha.

    A classifier learns P(covered | x) and is evaluated on rows it has not seen. If the sets cover 1 - alpha
    at every x, nothing beats the constant 1 - alpha and the value is 0 up to noise (it may be negative).
    With ``loss="l1"`` a value of 0.05 says: coverage is on average at least 5 points away from the target,
    here too high, there too low.

    Parameters
    ----------
    X : table of shape (n, d)
        Matrix or dataframe; numbers, booleans, categories, text and missing values are fine.
    covered : bool array of shape (n,)
        Whether each outcome lay in its set; see `is_covered`.
    alpha : float or array of shape (n,)
        Allowed miscoverage: a number in (0, 1), or one in [0, 1] per row, which also becomes a feature of the
        classifier (``alpha=1 - p`` of stated probabilities asks whether they are calibrated at every x).
    loss : {"l1", "l2", "kl"} or callable
        The distance: mean ``|p - t|``, mean ``(p - t)^2``, mean ``KL(p, t)``, or a convex ``d(t, q)`` of
        arrays (with its subderivative as a pair, or see `convex_distance`).
    side : {"both", "over", "under"}
        Count only over-coverage or only under-coverage; the two parts add up to the total.
    classifier : estimator, str or None
        None is `CoverageClassifier`. Any scikit-learn classifier or pipeline with ``predict_proba`` is
        used as it is; "lightgbm", "catboost", "tabicl" and "tabpfn" when installed.
    cv : int, splitter or list of (train, test)
        Random folds, of whole clusters when ``cluster`` is given; or any splitter.
    stratify : bool
        Whether our own folds hold the same share of covered rows. It steadies small samples and lifts the
        value: the level of the test rows is then known from the training rows (see Notes).
    null : {"target", "flat"} or None
        What the p-value tests: "covers 1 - alpha at every x", or "coverage does not depend on x" (right
        for a predictor whose level is off by the luck of a finite calibration set). None saves its time.
    n_calibration : int, optional
        Rows the predictor was conformalised on: under "target" all rows then share one coverage, drawn from
        Beta(k, n_calibration + 1 - k). "Flat" needs none.
    cluster : array of shape (n,), optional
        Rows of one cluster stay on one side of every split and count as dependent.
    sample_weight : array of shape (n,), optional
        Weights; a common factor changes nothing, and weights that differ leave no exact test.
    n_repeats : int or None
        Cross-fits to average, which damps the luck of the folds. None: our own folds are dealt again, up
        to four times, until seeds move the L1 value by less than half its standard error.
    confidence : float
        Level of the interval.
    random_state : int, Generator or None
        Source of the folds, the bags and the test's draws.

    Returns
    -------
    Estimate
        ``details``: "predictions" (out-of-fold P(covered | x) per row), "fold_values", "p_target",
        "p_flat", "coverage", "statement".

    Raises
    ------
    InputError
        For lengths that differ, a loss that is not convex, or splits whose parts overlap.

    Notes
    -----
    With f(q) = d(t, q), t = 1 - alpha, the contribution of a row is ``f(h) + (z - h) f'(h)`` and the value
    is its mean over rows. Its expectation given the classifiers is their mean excess risk, at most
    ``E d(t, p(X))``. The interval is for that mean excess risk of the fitted classifiers: ``low``
    also bounds the true ERT from below, ``high`` does not bound it from above.

    Folds stratified by coverage share their level with the rows that trained their model. On sound sets
    this lifts the mean L1 value to +0.0038 at n = 500 where plain folds read -0.0008 +- 0.0011, so that
    the lower bound no longer holds; hence plain folds. No fold needs a miss: the classifier copes.

    Standard error: every fold trains the models of the others, so scores of different folds are
    correlated. If h responds linearly to outcomes with weights a_ij, the noise of the value is
    ``sum_{i<j} (a_ij + a_ji) e_i e_j``, whose variance is at most twice the row-wise one because
    ``(a + b)^2 <= 2 (a^2 + b^2)``: the standard error is sqrt(2) times the row-wise one (linearised with
    weights, over clusters with ``cluster``). As in the interval of Agresti and Coull two imagined rows that
    were covered and two that were missed are added to it, so that equal outcomes have an error too.

    Test: exact, whatever the classifier and the loss. Twice the smaller of two p-values: one sequential over
    folds (`calipers.metrics.conditional.sequential`), which finds what the classifier finds, and one of all
    features at once (`calipers.metrics.conditional.score_test`, up to 4 000 rows), which splits nothing.
    Both test "flat" given the number covered; for "target" the exact p-value of that number joins, with a
    quarter of the allowed error. With an alpha per row "flat" says that all coverages are off by one
    number on the logit scale.
    ``null_high`` bounds the 95 % point of the value under "target" for every classifier: ``max f(t +- c)``,
    c = 1.645 sqrt(2 t alpha / n + Var), Var that of the Beta law with ``n_calibration``. The value measures a
    distance from the target, so there is no band for "flat"; nor is there one where value and band disagree
    with the p-value, which rests on sharper statistics than the value.

    Cost: with the default classifier 5 to 20 small ensembles, three more for the test, one thread.

    References
    ----------
    Braun, Holzmüller, Jordan and Bach (2025), Conditional coverage diagnostics for conformal prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import ert
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(1000, 3))
    >>> covered = rng.random(1000) < np.where(X[:, 0] > 0, 0.8, 1.0)      # 0.9 on average, 0.1 off everywhere
    >>> e = ert(X, covered, alpha=0.1, random_state=0)
    >>> bool(0.06 < e.value < 0.12 and e.p_value < 0.01)
    True
    """
    fitted = _fitted(
        X, covered, alpha=alpha, null=null, n_calibration=n_calibration, cluster=cluster,
        sample_weight=sample_weight, confidence=confidence, classifier=classifier, cv=cv, stratify=stratify,
        n_repeats=n_repeats, random_state=random_state,
    )  # fmt: skip
    if side not in SIDES:
        raise InputError(f'side must be "both", "over" or "under", got {side!r}.')
    distance = check_distance(loss, fitted.rows.target)
    return risk_estimates(fitted, distance, (side,))[side]


def _fitted(
    X: Any,
    covered: Any,
    *,
    classifier: Any,
    cv: Any,
    stratify: bool,
    n_repeats: int | None,
    random_state: RandomState,
    **options: Any,
) -> FittedRisk:
    rows = check_risk_rows(X, covered, **options)
    return fit_risk(
        X, rows, classifier=classifier, cv=cv, stratify=stratify, n_repeats=n_repeats,
        random_state=random_state,
    )  # fmt: skip


@renamed_arguments("0.4", groups="cluster")
def ert_table(
    X: Any,
    covered: Any,
    *,
    alpha: Any,
    losses: Any = ("l1", "l2", "kl"),
    classifier: Any = None,
    cv: Any = 5,
    stratify: bool = False,
    null: str | None = "target",
    n_calibration: int | None = None,
    cluster: Any = None,
    sample_weight: Any = None,
    n_repeats: int | None = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> EstimateTable:
    """Several excess risks, with their over- and under-coverage parts, from one cross-fit.

    The keys are l1, l1_over, l1_under, l2, ...; the two parts of a loss add up to its total exactly. All
    rows of the table share the classifiers, so they may be compared with each other. 0 is perfect.

    Parameters
    ----------
    X, covered, alpha, classifier, cv, stratify, null, n_calibration, cluster
        As in `ert`.
    sample_weight, n_repeats, confidence, random_state
        As in `ert`.
    losses : sequence of losses
        Names, convex distances or pairs (distance, slope); their names must differ.

    Returns
    -------
    EstimateTable
        Three estimates per loss.

    Notes
    -----
    As in `ert`; the p-value of a part asks for departures to its side only.

    References
    ----------
    Braun, Holzmüller, Jordan and Bach (2025), Conditional coverage diagnostics for conformal prediction.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import ert_table
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(-1, 1, size=(300, 2))
    >>> table = ert_table(X, rng.random(300) < 0.9, alpha=0.1, losses=("l1", "kl"), random_state=0)
    >>> list(table)
    ['l1', 'l1_over', 'l1_under', 'kl', 'kl_over', 'kl_under']
    """
    fitted = _fitted(
        X, covered, alpha=alpha, null=null, n_calibration=n_calibration, cluster=cluster,
        sample_weight=sample_weight, confidence=confidence, classifier=classifier, cv=cv, stratify=stratify,
        n_repeats=n_repeats, random_state=random_state,
    )  # fmt: skip
    chosen = [losses] if isinstance(losses, str) or not isinstance(losses, Iterable) else list(losses)
    distances = [check_distance(loss, fitted.rows.target) for loss in chosen]
    names = [distance.name for distance in distances]
    if len(set(names)) != len(names) or not names:
        raise InputError(f"losses must have different names, got {names}. Name them with convex_distance.")
    estimates = {}
    for distance in distances:
        for side, estimate in risk_estimates(fitted, distance, SIDES).items():
            estimates[distance.name if side == "both" else f"{distance.name}_{side}"] = estimate
    return EstimateTable(estimates, title="Excess risk of the target coverage", notes=(LOWER_BOUND,))


def ert_curve(
    X: Any,
    y_true: Any,
    prediction: Any,
    *,
    alpha: Any,
    loss: Any = "l1",
    side: str = "both",
    classes: Any = None,
    random_state: RandomState = None,
    **options: Any,
) -> Curve:
    """The excess risk at several levels alpha, from sets (n, K, L) or intervals (n, 2, L).

    Parameters
    ----------
    X, loss, side, random_state
        As in `ert`; every level uses the same folds where its misses allow.
    y_true : array of shape (n,)
        Labels or numbers.
    prediction : array with a last axis of levels
        Sets as bool (n, K, L) or intervals as float (n, 2, L).
    alpha : sequence of L levels
        One per slice of the last axis.
    classes : sequence of K labels, optional
        The label of every column of the sets.
    **options
        Everything else `ert` takes.

    Returns
    -------
    Curve
        x: alpha, y: the excess risk, with pointwise intervals and null bounds (NaN where there is none);
        ``details["estimates"]`` holds the estimates.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.conditional import ert_curve
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(size=(200, 2)), rng.normal(size=200)
    >>> radius = np.array([1.645, 1.282])
    >>> ends = np.broadcast_to(np.stack([-radius, radius]), (200, 2, 2))
    >>> len(ert_curve(X, y, ends, alpha=[0.1, 0.2], random_state=0))
    2
    """
    levels, _ = check_alphas(alpha)
    array = as_numpy(prediction, name="prediction")
    if array.ndim != 3 or array.shape[2] != len(levels):
        raise InputError(
            f"prediction must have one slice per level on its last axis ({len(levels)}), "
            f"got shape {array.shape}."
        )
    seed = int(generator(random_state).integers(2**31))
    estimates = [
        ert(
            X, is_covered(y_true, array[:, :, i], classes=classes), alpha=level, loss=loss, side=side,
            random_state=seed, **options,
        )
        for i, level in enumerate(levels)
    ]  # fmt: skip
    ends = {
        key: np.array([math.nan if getattr(e, key) is None else getattr(e, key) for e in estimates])
        for key in ("value", "low", "high", "null_high")
    }
    return Curve(
        name=estimates[0].name, x=np.array([float(a) for a in levels]), y=ends["value"], low=ends["low"],
        high=ends["high"], null_high=ends["null_high"], confidence=estimates[0].confidence,
        null_level=NULL_LEVEL, x_label="alpha", y_label=estimates[0].name, method=estimates[0].method,
        details={"estimates": estimates},
    )  # fmt: skip


_ERT = {
    "question": "everywhere",
    "inputs": ("X", "covered"),
    "direction": "lower",
    "good": "0: coverage is 1 - alpha at every x",
    "bounds": (-math.inf, math.inf),
    "null": "covers 1 - alpha at every x, or coverage does not depend on x",
    "interval": "row-wise error of the cross-fit times sqrt 2 with imagined rows, for the excess risk of the "
    "fitted classifiers",
    "merge": "gather",
    "weighted": True,
    "row_arguments": ROW_ARGUMENTS,
    "splits_rows": True,
    "randomized": True,
}
ENTRIES = (
    MetricEntry(function=ert, **_ERT),  # type: ignore[arg-type]
    MetricEntry(function=ert_table, returns="table", **_ERT),  # type: ignore[arg-type]
)
