"""Coverage by group: the mean gap, the worst stratum, and the same by outcome."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator
from calipers.inference import NullLaw, ShareCounts, SimulatedLaw, sidak_confidence
from calipers.inference.minimum_law import MinimumLaw
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import check_confidence
from calipers.inputs.option_checks import check_flag
from calipers.inputs.row_checks import numeric
from calipers.metrics.conditional.strata import Strata, binned_strata, group_strata
from calipers.metrics.entry import MetricEntry
from calipers.metrics.equal_values import pool_equal
from calipers.metrics.states.row_arguments import ROW_ARGUMENTS
from calipers.metrics.strata_null import StrataNull
from calipers.results import Estimate

_DRAWS = 9999
_CELLS = 1 << 21
# So many groups repeat their sizes, and one draw per group and replication takes seconds.
_MANY_GROUPS = 2000
_BY_OUTCOME = (
    "even a perfect predictor does not cover 1 - alpha given the outcome: rare and extreme outcomes are "
    "missed more often, so there is no null to test"
)


def coverage_gap(
    covered: Any,
    groups: Any,
    *,
    alpha: Any,
    weighted: bool = False,
    n_calibration: Any = None,
    sample_weight: Any = None,
    cluster: Any = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> Estimate:
    """Mean over groups of the distance between a group's coverage and 1 - alpha.

    0 is perfect, but a sound predictor reads more than 0 by chance, the more so the smaller the groups:
    compare with ``null_high`` and ``details["null_mean"]``, the noise floor.

    Parameters
    ----------
    covered : bool array of shape (n,)
        Whether each outcome lay in its set.
    groups : array of shape (n,)
        Labels of any kind.
    alpha : float or array of shape (n,)
        Allowed miscoverage: a number in (0, 1), or one in [0, 1] per row (``1 - p`` for probabilities).
    weighted : bool
        Weight groups by their share of the rows instead of equally.
    n_calibration : int or array, optional
        Rows the predictor was conformalised on: one number for one threshold, which shifts all groups
        together, or one per group, in sorted order of their labels, for thresholds of their own.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    cluster : array of shape (n,), optional
        Rows of one cluster depend on each other.
    confidence : float
        Level of the interval.
    random_state : int, Generator or None
        Source of the draws behind the null.

    Returns
    -------
    Estimate
        ``details["groups"]`` holds rows and coverage of every group; of more than 10 000 groups, those with
        the largest distance.

    Notes
    -----
    Null: every row is covered with its promised probability, 9 999 draws, and ten times as many while fewer
    than ten of them reach the value; the p-value is exact for any number of draws. With one threshold from n
    calibration rows all groups share the coverage c ~ Beta(k, n + 1 - k), drawn anew every time; levels
    that differ by row are then order statistics of one calibration sample. With ``cluster`` the gaps are
    drawn from the normal law of the cluster sums, with Student's allowance for few clusters; a group
    with rows of fewer than 10 clusters leaves no test.

    Interval: Clopper-Pearson for every group (at the effective number of independent rows with ``cluster``),
    Sidak-adjusted so that they hold together, and the smallest and the largest mean gap they allow; it never
    undercovers and is wide for many groups. Standard error: of the signed gaps,
    ``sqrt(sum w_g^2 c_g (1 - c_g) / n_g)``.

    References
    ----------
    Ding, Angelopoulos, Bates, Jordan and Tibshirani (2023), Class-conditional conformal prediction with many
    classes.

    Examples
    --------
    >>> from calipers.metrics import coverage_gap
    >>> e = coverage_gap([1, 1, 1, 1, 1, 0, 1, 0], list("aaaabbbb"), alpha=0.25, random_state=0)
    >>> e.value                                                  # (|1 - 0.75| + |0.5 - 0.75|) / 2
    0.25
    """
    strata = group_strata(
        covered,
        groups,
        alpha=alpha,
        n_calibration=n_calibration,
        sample_weight=sample_weight,
        cluster=cluster,
    )
    estimate = _gap_fields(strata, weighted, check_confidence(confidence), "coverage gap")
    null, w = strata.null, _group_weights(strata.counts, weighted)
    if null.no_test:
        return Estimate(**(estimate | {"reason": null.no_test}))
    rng = generator(random_state)
    if len(w) > _MANY_GROUPS and null.rows.is_plain and null.thresholds is None:
        law = SimulatedLaw(_gaps_by_size(strata.counts.totals, float(null.target[0]), weighted, rng))
    else:
        law = null.simulated(lambda gaps: np.abs(gaps) @ w, estimate["value"], rng)
    tested = law.estimate_fields(estimate["value"], alternative="greater", level=NULL_LEVEL)
    details = estimate["details"] | {"null_mean": law.mean}
    return Estimate(**(estimate | null.with_certainty(tested, law.n_draws) | {"details": details}))


def equal_opportunity_gap(
    covered: Any,
    y_true: Any,
    *,
    alpha: Any,
    n_bins: int = 10,
    weighted: bool = False,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Estimate:
    """Mean over outcomes of the distance between the coverage given the outcome and 1 - alpha.

    Labels are strata of their own; many numeric outcomes are put into ``n_bins`` bins of nearly equal mass.
    0 would mean that every outcome is covered equally often; unlike for groups of x, no promise of a
    marginal or conditional predictor says that it should be.

    Parameters
    ----------
    covered, alpha, weighted, sample_weight, confidence
        As in `coverage_gap`.
    y_true : array of shape (n,)
        Labels or numbers.
    n_bins : int
        Bins for numbers with more distinct values than that.

    Returns
    -------
    Estimate
        Without p-value, and with the reason.

    Notes
    -----
    Interval and standard error as in `coverage_gap`. Label-conditional conformal predictors do promise it:
    test them with ``coverage_gap(covered, y_true, alpha=alpha)``.

    Examples
    --------
    >>> from calipers.metrics import equal_opportunity_gap
    >>> equal_opportunity_gap([1, 1, 0, 1], ["cat", "cat", "dog", "dog"], alpha=0.25).value
    0.25
    """
    strata = binned_strata(covered, y_true, n_bins, name="y_true", alpha=alpha, sample_weight=sample_weight)
    fields = _gap_fields(strata, weighted, check_confidence(confidence), "equal-opportunity gap")
    return Estimate(**(fields | {"reason": _BY_OUTCOME}))


def feature_stratified_coverage(
    covered: Any,
    feature: Any,
    *,
    alpha: Any = None,
    n_bins: int = 10,
    n_calibration: Any = None,
    sample_weight: Any = None,
    cluster: Any = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> Estimate:
    """Coverage of the worst stratum of one feature; 1 - alpha is right.

    Parameters
    ----------
    covered : bool array of shape (n,)
        Whether each outcome lay in its set.
    feature : array of shape (n,)
        Text, categories or numbers; many numbers are put into ``n_bins`` bins of nearly equal mass.
    alpha : float or array of shape (n,), optional
        Allowed miscoverage: a number in (0, 1), or one in [0, 1] per row; without it there is no test.
    n_bins : int
        Bins for numbers with more distinct values than that.
    n_calibration : int or array, optional
        Rows the predictor was conformalised on: one number for one threshold, which shifts all strata
        together, or one per stratum, in sorted order, for thresholds of their own.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    cluster : array of shape (n,), optional
        Rows of one cluster depend on each other.
    confidence : float
        Level of the interval.
    random_state : int, Generator or None
        Source of draws, where the null law has to be simulated.

    Returns
    -------
    Estimate
        ``details``: "worst" stratum and rows and coverage of all "groups".

    Notes
    -----
    Exact null law of the minimum: ``P(min > x) = prod_g P(K_g / n_g > x)`` with independent binomial counts;
    with one threshold from n calibration rows its mean over the coverage c ~ Beta(k, n + 1 - k) of all
    strata. With an alpha per row the worst stratum is the one furthest below its promise (the mean of
    its rows), and counts have the law of unequal trials; together with ``n_calibration``, and with
    ``cluster``, the law is simulated as in `coverage_gap`.
    Interval: Sidak-adjusted Clopper-Pearson per stratum, mapped through the minimum.

    Examples
    --------
    >>> from calipers.metrics import feature_stratified_coverage
    >>> feature_stratified_coverage([1, 1, 0, 1], ["a", "a", "b", "b"], alpha=0.1).value
    0.5
    """
    strata = binned_strata(
        covered, feature, n_bins, name="feature", alpha=alpha, n_calibration=n_calibration,
        sample_weight=sample_weight, cluster=cluster,
    )  # fmt: skip
    return _worst(strata, confidence, "feature-stratified coverage", random_state)


def size_stratified_coverage(
    covered: Any,
    size: Any,
    *,
    alpha: Any = None,
    n_bins: int = 10,
    n_calibration: Any = None,
    sample_weight: Any = None,
    cluster: Any = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> Estimate:
    """Coverage of the worst stratum of set sizes or interval widths; 1 - alpha is right.

    Parameters
    ----------
    covered, alpha, n_bins, n_calibration
        As in `feature_stratified_coverage`.
    sample_weight, cluster, confidence, random_state
        As in `feature_stratified_coverage`.
    size : array of shape (n,)
        Number of labels in each set, or width of each interval; finite. Widths within a part in 10^9 of each
        other are one.

    Returns
    -------
    Estimate
        ``details``: "worst" stratum and rows and coverage of all "groups".

    Notes
    -----
    The size is a function of x, so a conditionally valid predictor covers 1 - alpha at every size; law and
    interval as in `feature_stratified_coverage`.

    References
    ----------
    Angelopoulos, Bates, Malik and Jordan (2021), Uncertainty sets for image classifiers using conformal
    prediction.

    Examples
    --------
    >>> from calipers.metrics import size_stratified_coverage
    >>> size_stratified_coverage([1, 1, 0, 1], [1, 1, 2, 2], alpha=0.1).details["worst"]
    '2.0'
    """
    sizes = np.asarray(numeric(as_numpy(size, name="size"), "size"), dtype=float)
    sizes = pool_equal(sizes) if sizes.ndim == 1 and np.isfinite(sizes).all() else sizes
    strata = binned_strata(
        covered, sizes, n_bins, name="size", alpha=alpha, n_calibration=n_calibration,
        sample_weight=sample_weight, cluster=cluster,
    )  # fmt: skip
    return _worst(strata, confidence, "size-stratified coverage", random_state)


def label_stratified_coverage(
    covered: Any,
    y_true: Any,
    *,
    n_bins: int = 10,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Estimate:
    """Coverage of the worst covered outcome: a label, or a bin of numbers.

    The nearer to the marginal coverage the fairer; no promise but a label-conditional one says what it
    should be.

    Parameters
    ----------
    covered, n_bins, sample_weight, confidence
        As in `feature_stratified_coverage`.
    y_true : array of shape (n,)
        Labels or numbers.

    Returns
    -------
    Estimate
        Without p-value, and with the reason.

    Notes
    -----
    Interval as in `feature_stratified_coverage`.

    Examples
    --------
    >>> from calipers.metrics import label_stratified_coverage
    >>> label_stratified_coverage([1, 1, 0, 1], ["cat", "cat", "dog", "dog"]).value
    0.5
    """
    strata = binned_strata(covered, y_true, n_bins, name="y_true", alpha=None, sample_weight=sample_weight)
    estimate = _worst(strata, confidence, "label-stratified coverage", None)
    return Estimate(**(estimate.to_dict() | {"reason": _BY_OUTCOME}))


def _group_weights(counts: ShareCounts, weighted: bool) -> np.ndarray:
    if check_flag(weighted, name="weighted"):
        return np.asarray(counts.totals / counts.totals.sum())
    return np.full(len(counts.totals), 1.0 / len(counts.totals))


def _gap_fields(strata: Strata, weighted: bool, confidence: float, name: str) -> dict[str, Any]:
    counts, target = strata.counts, strata.null.target
    w, n_groups = _group_weights(counts, weighted), len(strata.names)
    low, high = counts.interval(sidak_confidence(confidence, n_groups))
    nearest = np.maximum(np.maximum(low - target, target - high), 0.0)
    farthest = np.maximum(np.abs(low - target), np.abs(high - target))
    return {
        "name": name,
        "value": float(w @ np.abs(counts.shares - target)),
        "std_error": float(np.sqrt(np.sum((w * counts.std_errors) ** 2))),
        "low": float(w @ nearest),
        "high": float(w @ farthest),
        "confidence": confidence,
        "n": counts.n,
        "method": f"{'mass-weighted' if weighted else 'equal'} mean of |coverage - target| over "
        f"{n_groups} groups, Sidak Clopper-Pearson interval",
        "details": {"groups": strata.describe(np.abs(counts.shares - target))},
    }


def _gaps_by_size(totals: np.ndarray, target: float, weighted: bool, rng: np.random.Generator) -> np.ndarray:
    """Draws for many groups: those of one size have one law, so their counts are multinomial."""
    sizes, groups = np.unique(totals.astype(np.int64), return_counts=True)
    gaps = np.zeros(_DRAWS)
    for size, many in zip(sizes.tolist(), groups.tolist(), strict=True):
        share = (size / totals.sum()) if weighted else 1.0 / len(totals)
        outcomes = np.arange(size + 1)
        distance = share * np.abs(outcomes / size - target)
        if many > size:
            from scipy.stats import binom

            pmf = binom.pmf(outcomes, size, target)
            gaps += rng.multinomial(many, pmf / pmf.sum(), size=_DRAWS) @ distance
            continue
        step = max(1, _CELLS // many)
        for start in range(0, _DRAWS, step):
            stop = min(start + step, _DRAWS)
            gaps[start:stop] += distance[rng.binomial(size, target, size=(stop - start, many))].sum(axis=1)
    return gaps


def _worst(strata: Strata, confidence: float, name: str, random_state: RandomState) -> Estimate:
    counts, level, null = strata.counts, check_confidence(confidence), strata.null
    # With one promise for all rows the worst stratum is the least covered one, whatever was promised.
    target = np.zeros(len(counts.totals)) if null.rows.promised is None else null.target
    departures = counts.shares - target
    low, high = counts.interval(sidak_confidence(level, len(departures)))
    at = int(np.argmin(departures))
    fields: dict[str, Any] = {
        "name": name,
        "value": float(counts.shares[at]),
        "std_error": float(counts.std_errors[at]),
        "low": float(np.min(low - target) + target[at]),
        "high": float(np.min(high - target) + target[at]),
        "confidence": level,
        "n": counts.n,
        "method": f"least coverage of {len(departures)} strata, Sidak Clopper-Pearson interval",
        "details": {"worst": strata.names[at], "groups": strata.describe(-departures)},
    }
    if null.no_test:
        return Estimate(**fields, reason=null.no_test)
    law = _least_law(null, target, float(departures[at]), random_state)
    tested = law.estimate_fields(float(departures[at]), alternative="less", level=NULL_LEVEL)
    tested["null_low"] += float(target[at])
    n_draws = {"n_draws": law.n_draws} if isinstance(law, SimulatedLaw) else {}
    return Estimate(**fields, **null.with_certainty(tested, **n_draws))


def _least_law(null: StrataNull, target: np.ndarray, observed: float, random_state: RandomState) -> NullLaw:
    """The law of the least coverage minus ``target`` over strata."""
    laws = null.laws()
    if laws is not None:
        return MinimumLaw(laws, target.tolist(), threshold=null.threshold)
    shift = null.target - target
    # The tail that matters is the lower one: the statistic is turned around to get its draws, and back.
    turned = null.simulated(lambda gaps: -np.min(gaps + shift, axis=1), -observed, generator(random_state))
    return turned.mirrored()


def _entry(function: Any, inputs: tuple[str, ...], **fields: Any) -> MetricEntry:
    common = {"question": "everywhere", "merge": "counts", "weighted": True, "bounds": (0.0, 1.0)}
    return MetricEntry(function=function, inputs=inputs, **(common | fields))  # type: ignore[arg-type]


_BOX = "Sidak-adjusted Clopper-Pearson per stratum, mapped through the"
ENTRIES = (
    _entry(
        coverage_gap, ("covered", "groups"), direction="lower", good="0, up to the noise floor",
        null="covers 1 - alpha in every group (simulated counts)",
        interval=f"{_BOX} mean gap", randomized=True, row_arguments=ROW_ARGUMENTS,
    ),
    _entry(
        feature_stratified_coverage, ("covered", "feature"), direction="target", good="1 - alpha",
        null="covers 1 - alpha in every stratum (exact law of the minimum)", interval=f"{_BOX} minimum",
        row_arguments=ROW_ARGUMENTS,
    ),
    _entry(
        size_stratified_coverage, ("covered", "size"), direction="target", good="1 - alpha",
        null="covers 1 - alpha at every size (exact law of the minimum)", interval=f"{_BOX} minimum",
        row_arguments=ROW_ARGUMENTS,
    ),
    _entry(
        label_stratified_coverage, ("covered", "y_true"), direction="higher", good="the marginal coverage",
        no_null=_BY_OUTCOME, interval=f"{_BOX} minimum",
    ),
    _entry(
        equal_opportunity_gap, ("covered", "y_true"), direction="lower", good="small",
        no_null=_BY_OUTCOME, interval=f"{_BOX} mean gap",
    ),
)  # fmt: skip
