"""Excess risk of the target coverage (ERT): how far coverage given x is from what was promised."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calipers.arrays import RandomState, as_numpy, generator
from calipers.exceptions import InputError
from calipers.inference import Moments
from calipers.inputs import (
    check_alphas,
    check_confidence,
    check_covered,
    check_features,
    check_groups,
    check_row_alpha,
    check_same_length,
    check_weights,
)
from calipers.metrics.conditional.cross_fit import CrossFit, cross_fit
from calipers.metrics.conditional.learners import check_learner
from calipers.metrics.conditional.losses import SIDES, Distance, check_distance, clip_to_side
from calipers.metrics.conditional.sequential import NULLS, sequential_p_values
from calipers.metrics.entry import MetricEntry
from calipers.metrics.marginal import is_covered
from calipers.results import Curve, Estimate, EstimateTable

_NULL_LEVEL = 0.95
# Variance of a cross-fit mean over its row-wise estimate, at most (Notes of `ert`).
_INFLATION = 2.0
LOWER_BOUND = (
    "in expectation a lower bound of the true excess risk: no classifier beats the true conditional coverage"
)
UNEQUAL_WEIGHTS = "weights that differ have no exact test (repeated rows have one when they are written out)"


@dataclass(frozen=True, slots=True)
class _Job:
    """Checked rows, their cross-fit and the options of the estimates."""

    covered: np.ndarray
    target: np.ndarray
    weights: np.ndarray | None
    clusters: np.ndarray | None
    fit: CrossFit
    null: str | None
    confidence: float
    p_values: Mapping[str, Mapping[str, float | None]]


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
    groups: Any = None,
    sample_weight: Any = None,
    n_repeats: int = 1,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> Estimate:
    """Excess risk of the target coverage: the mean distance between coverage at x and 1 - alpha.

    A classifier learns P(covered | x) and is judged on rows it has not seen. If the sets cover 1 - alpha
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
        Allowed miscoverage. If it varies by row it also becomes a feature of the classifier.
    loss : {"l1", "l2", "kl"} or callable
        The distance: mean ``|p - t|``, mean ``(p - t)^2``, mean ``KL(p, t)``, or a convex ``d(t, q)`` of
        arrays (with its subderivative as a pair, or see `convex_distance`).
    side : {"both", "over", "under"}
        Count only over-coverage or only under-coverage; the two parts add up to the total.
    classifier : estimator, str or None
        None is `CoverageClassifier`. Any scikit-learn classifier or pipeline with ``predict_proba`` is
        used as it is; "lightgbm", "catboost", "tabicl" and "tabpfn" when installed.
    cv : int, splitter or list of (train, test)
        Random folds, of whole groups when ``groups`` is given; or any splitter.
    stratify : bool
        Whether our own folds hold the same share of covered rows. It steadies small samples and lifts the
        value: the level of the test rows is then known from the training rows (see Notes).
    null : {"target", "flat"} or None
        What the p-value tests: "covers 1 - alpha at every x", or "coverage does not depend on x" (right
        for a predictor whose level is off by the luck of a finite calibration set). None saves its time.
    groups : array of shape (n,), optional
        Rows of one group stay on one side of every split and count as dependent.
    sample_weight : array of shape (n,), optional
        Weights; a weight of 2 counts as two equal rows.
    n_repeats : int
        Cross-fits to average, which damps the luck of the folds.
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

    Folds stratified by coverage share their level with the rows that trained their judge. On sound sets
    this lifts the mean L1 value to +0.0038 at n = 500 where plain folds read -0.0008 +- 0.0011, so that
    the lower bound no longer holds; hence plain folds. No fold needs a miss: the classifier copes.

    Standard error: every fold trains the judges of the others, so scores of different folds are
    correlated. If h responds linearly to outcomes with weights a_ij, the noise of the value is
    ``sum_{i<j} (a_ij + a_ji) e_i e_j``, whose variance is at most twice the row-wise one because
    ``(a + b)^2 <= 2 (a^2 + b^2)``: the standard error is sqrt(2) times the row-wise one (with ``groups``, the
    group-wise one). Without anything to learn from this is sharp; far from the null it is wide.

    Test: sequential over folds and exact, see `calipers.metrics.conditional.sequential`. It does not
    depend on the loss. ``null_high`` bounds the 95 % point of the value under the null for every
    classifier: ``max f(t +- c)``, c = 1.645 sqrt(2 t alpha / n).

    Cost: with the default classifier 15 to 25 small boosted fits, four more for the test, one thread.

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
    job = _prepare(
        X, covered, alpha=alpha, classifier=classifier, cv=cv, stratify=stratify, null=null, groups=groups,
        sample_weight=sample_weight, n_repeats=n_repeats, confidence=confidence, random_state=random_state,
    )  # fmt: skip
    if side not in SIDES:
        raise InputError(f'side must be "both", "over" or "under", got {side!r}.')
    distance = check_distance(loss, job.target)
    return _estimates(job, distance, (side,))[side]


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
    groups: Any = None,
    sample_weight: Any = None,
    n_repeats: int = 1,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> EstimateTable:
    """Several excess risks, with their over- and under-coverage parts, from one cross-fit.

    The keys are l1, l1_over, l1_under, l2, ...; the two parts of a loss add up to its total exactly. All
    rows of the table share the classifiers, so they may be compared with each other. 0 is perfect.

    Parameters
    ----------
    X, covered, alpha, classifier, cv, stratify, null, groups
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
    job = _prepare(
        X, covered, alpha=alpha, classifier=classifier, cv=cv, stratify=stratify, null=null, groups=groups,
        sample_weight=sample_weight, n_repeats=n_repeats, confidence=confidence, random_state=random_state,
    )  # fmt: skip
    chosen = [losses] if isinstance(losses, str) or not isinstance(losses, Iterable) else list(losses)
    distances = [check_distance(loss, job.target) for loss in chosen]
    names = [distance.name for distance in distances]
    if len(set(names)) != len(names) or not names:
        raise InputError(f"losses must have different names, got {names}. Name them with convex_distance.")
    found = {}
    for distance in distances:
        for side, estimate in _estimates(job, distance, SIDES).items():
            found[distance.name if side == "both" else f"{distance.name}_{side}"] = estimate
    return EstimateTable(found, title="Excess risk of the target coverage", notes=(LOWER_BOUND,))


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
        x: alpha, y: the excess risk, with pointwise intervals and null bounds; ``details["estimates"]``
        holds the estimates.

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
        null_level=_NULL_LEVEL, x_label="alpha", y_label=estimates[0].name, method=estimates[0].method,
        details={"estimates": estimates},
    )  # fmt: skip


def _prepare(
    X: Any,
    covered: Any,
    *,
    alpha: Any,
    classifier: Any,
    cv: Any,
    stratify: bool,
    null: str | None,
    groups: Any,
    sample_weight: Any,
    n_repeats: int,
    confidence: float,
    random_state: RandomState,
) -> _Job:
    features = check_features(X)
    z = as_numpy(check_covered(covered))
    n = check_same_length(X=features.values, covered=z)
    target = 1.0 - check_row_alpha(alpha, n)
    weights = check_weights(sample_weight, n)
    if null is not None and null not in NULLS:
        raise InputError(f'null must be "target", "flat" or None, got {null!r}.')
    clusters = None if groups is None else check_groups(groups, n)[1]
    level = check_confidence(confidence)
    rng = generator(random_state)
    learner = check_learner(classifier, X, features, z, target, weights)
    # With an alpha per row the test redraws every row, which stratified folds would not allow.
    strata = z if (target == target[0]).all() else np.ones(n, dtype=bool)
    fit = cross_fit(
        learner, features.values, strata, cv=cv, stratify=stratify, groups=clusters, n_repeats=n_repeats,
        sequential=null is not None and clusters is None, rng=rng,
    )  # fmt: skip
    p_values = sequential_p_values(fit.steps, z, target, weights, rng)
    return _Job(z, target, weights, clusters, fit, null, level, p_values)


def _estimates(job: _Job, distance: Distance, sides: tuple[str, ...]) -> dict[str, Estimate]:
    """The estimates of the sides asked for; the total is the sum of its two parts."""
    parts = {side: _contributions(job, distance, side) for side in ("over", "under")}
    values = {side: _weighted_mean(job, rows) for side, rows in parts.items()}
    parts["both"] = parts["over"] + parts["under"]
    values["both"] = values["over"] + values["under"]
    return {side: _estimate(job, distance, side, parts[side], values[side]) for side in sides}


def _contributions(job: _Job, distance: Distance, side: str) -> np.ndarray:
    gains = []
    for fold in job.fit.folds:
        target = job.target[fold.rows]
        h = clip_to_side(fold.predictions, target, side)
        gains.append(distance.contributions(h, job.covered[fold.rows].astype(float), target))
    return job.fit.average(gains)


def _weighted_mean(job: _Job, rows: np.ndarray) -> float:
    kept = ~np.isnan(rows)
    weights = None if job.weights is None else job.weights[kept]
    return float(np.average(rows[kept], weights=weights))


def _estimate(job: _Job, distance: Distance, side: str, rows: np.ndarray, value: float) -> Estimate:
    name = f"{distance.name.upper() if len(distance.name) <= 2 else distance.name}-ERT"
    error, freedom, n = _standard_error(job, rows)
    half = float(special.stdtrit(freedom, (1 + job.confidence) / 2)) * error if error is not None else None
    p_values = job.p_values[side]
    chosen = None if job.null is None else p_values[f"p_{job.null}"]
    tested = ~np.isnan(rows)
    return Estimate(
        name=name if side == "both" else f"{name} ({side}-coverage)",
        value=value,
        std_error=error,
        low=None if half is None else value - half,
        high=None if half is None else value + half,
        confidence=None if half is None else job.confidence,
        n=n,
        p_value=chosen,
        alternative=None if chosen is None else "greater",
        null_high=None if job.null is None else _null_high(job, distance, tested, n),
        null_level=None if job.null is None else _NULL_LEVEL,
        method="cross-fit excess risk, row-wise error times sqrt 2, sequential exact test of "
        f"{'nothing' if job.null is None else job.null}",
        reason=_reason(job, rows, error, chosen),
        details={
            "predictions": job.fit.predictions,
            "fold_values": _fold_values(job, distance, side),
            "coverage": _weighted_mean(job, np.where(tested, job.covered, np.nan)),
            "n_repeats": job.fit.n_repeats,
            "statement": LOWER_BOUND,
            **p_values,
        },
    )


def _standard_error(job: _Job, rows: np.ndarray) -> tuple[float | None, float, float]:
    """Standard error of the mean (None below two rows or groups), its degrees of freedom, and n."""
    kept = ~np.isnan(rows)
    weights = None if job.weights is None else job.weights[kept]
    moments = Moments.of(rows[kept], weights)
    if job.clusters is None:
        error, freedom = moments.std_error, moments.n - 1
    else:
        w = np.ones(int(kept.sum())) if weights is None else weights
        sums = np.bincount(job.clusters[kept], weights=w * (rows[kept] - moments.mean))
        count = len(np.unique(job.clusters[kept]))
        freedom = count - 1
        error = math.sqrt(np.sum(sums**2) * count / max(freedom, 1)) / moments.n
    if not (freedom > 0 and math.isfinite(error)):
        return None, 1.0, moments.n
    return math.sqrt(_INFLATION) * error, freedom, moments.n


def _null_high(job: _Job, distance: Distance, tested: np.ndarray, n: float) -> float:
    """An upper bound of the 95 % point of the value under the null, whatever the classifier.

    With g = h - t the value is about ``f''/2 (2 e g - g^2)``, at most ``f''/2 c^2``, which is f(t + c), when
    the noise e reaches c. Under "flat" the level itself is off by what it is seen to be off.
    """
    target = job.target[tested]
    weights = None if job.weights is None else job.weights[tested]
    spread = math.sqrt(_INFLATION * float(np.average(target * (1 - target), weights=weights)) / n)
    c = float(special.ndtri(_NULL_LEVEL)) * spread
    if job.null == "flat":
        c += abs(_weighted_mean(job, np.where(tested, job.covered - job.target, np.nan)))
    ends = [np.clip(target + sign * c, 0.0, 1.0) for sign in (1.0, -1.0)]
    return max(float(np.average(distance.function(target, q), weights=weights)) for q in ends)


def _fold_values(job: _Job, distance: Distance, side: str) -> list[float]:
    values = []
    for fold in job.fit.folds:
        target = job.target[fold.rows]
        gain = distance.contributions(
            clip_to_side(fold.predictions, target, side), job.covered[fold.rows].astype(float), target
        )
        weights = None if job.weights is None else job.weights[fold.rows]
        positive = weights is None or weights.sum() > 0
        values.append(float(np.average(gain, weights=weights)) if positive else math.nan)
    return values


def _reason(job: _Job, rows: np.ndarray, error: float | None, p_value: float | None) -> str:
    reasons = []
    if error is None:
        reasons.append("fewer than two independent rows have no error bar")
    elif error == 0.0 and not np.nan_to_num(rows).any():
        reasons.append(
            "no classifier found anything to predict, so the value is exactly 0; that proves no coverage"
        )
    if job.null is None:
        reasons.append("no null was asked for")
    elif job.clusters is not None:
        reasons.append("rows of one group are dependent, and no valid test for them is known here")
    elif p_value is None:
        reasons.append("too few rows for a sequential test")
    return "; ".join(reasons)


_ERT = {
    "question": "everywhere",
    "inputs": ("X", "covered"),
    "direction": "lower",
    "good": "0: coverage is 1 - alpha at every x",
    "bounds": (-math.inf, math.inf),
    "null": "covers 1 - alpha at every x, or coverage does not depend on x",
    "interval": "row-wise error of the cross-fit times sqrt 2, for the excess risk of the fitted classifiers",
    "merge": "gather",
    "weighted": True,
    "randomized": True,
}
ENTRIES = (
    MetricEntry(function=ert, **_ERT),  # type: ignore[arg-type]
    MetricEntry(function=ert_table, returns="table", **_ERT),  # type: ignore[arg-type]
)
