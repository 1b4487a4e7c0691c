"""Coverage by group: the mean gap, the worst stratum, and the same by outcome."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.stats import binom

from calipers.arrays import RandomState, as_numpy, generator
from calipers.inference import NO_EXACT_LAW, ShareCounts, SimulatedLaw, sidak_confidence
from calipers.inference.proportions import binomial_tails
from calipers.inputs import check_alpha, check_confidence
from calipers.inputs.option_checks import check_flag
from calipers.inputs.row_checks import numeric
from calipers.metrics.conditional.strata import Strata, binned_strata, group_strata
from calipers.metrics.entry import MetricEntry
from calipers.metrics.equal_values import pool_equal
from calipers.results import Estimate

_NULL_LEVEL = 0.95
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
    sample_weight: Any = None,
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
    alpha : float
        Allowed miscoverage.
    weighted : bool
        Weight groups by their share of the rows instead of equally.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
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
    Null: independent binomial counts with coverage 1 - alpha in every group, 9 999 draws; the p-value is
    exact for any number of draws. Interval: Clopper-Pearson for every group, Sidak-adjusted so that they hold
    together, and the smallest and the largest mean gap they allow; it never undercovers and is wide for many
    groups. Standard error: of the signed gaps, ``sqrt(sum w_g^2 c_g (1 - c_g) / n_g)``.

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
    strata = group_strata(covered, groups, sample_weight)
    target, level = 1.0 - check_alpha(alpha), check_confidence(confidence)
    estimate = _gap_fields(strata, target, weighted, level, "coverage gap")
    if not strata.counts.whole:
        return Estimate(**(estimate | {"reason": NO_EXACT_LAW}))
    law = _simulated_gaps(strata.counts, target, weighted, generator(random_state))
    null = law.estimate_fields(estimate["value"], alternative="greater", level=_NULL_LEVEL)
    details = estimate["details"] | {"null_mean": law.mean}
    return Estimate(**(estimate | null | {"details": details}))


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
    strata = binned_strata(covered, y_true, n_bins, sample_weight, name="y_true")
    target, level = 1.0 - check_alpha(alpha), check_confidence(confidence)
    fields = _gap_fields(strata, target, weighted, level, "equal-opportunity gap")
    return Estimate(**(fields | {"reason": _BY_OUTCOME}))


def feature_stratified_coverage(
    covered: Any,
    feature: Any,
    *,
    alpha: Any = None,
    n_bins: int = 10,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Estimate:
    """Coverage of the worst stratum of one feature; 1 - alpha is right.

    Parameters
    ----------
    covered : bool array of shape (n,)
        Whether each outcome lay in its set.
    feature : array of shape (n,)
        Text, categories or numbers; many numbers are put into ``n_bins`` bins of nearly equal mass.
    alpha : float, optional
        Allowed miscoverage; without it there is no test.
    n_bins : int
        Bins for numbers with more distinct values than that.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    confidence : float
        Level of the interval.

    Returns
    -------
    Estimate
        ``details``: "worst" stratum and rows and coverage of all "groups".

    Notes
    -----
    Exact null law of the minimum: ``P(min > x) = prod_g P(K_g / n_g > x)`` with independent binomial counts.
    Interval: Sidak-adjusted Clopper-Pearson per stratum, mapped through the minimum.

    Examples
    --------
    >>> from calipers.metrics import feature_stratified_coverage
    >>> feature_stratified_coverage([1, 1, 0, 1], ["a", "a", "b", "b"], alpha=0.1).value
    0.5
    """
    strata = binned_strata(covered, feature, n_bins, sample_weight, name="feature")
    return _worst(strata, alpha, confidence, "feature-stratified coverage")


def size_stratified_coverage(
    covered: Any,
    size: Any,
    *,
    alpha: Any = None,
    n_bins: int = 10,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Estimate:
    """Coverage of the worst stratum of set sizes or interval widths; 1 - alpha is right.

    Parameters
    ----------
    covered, alpha, n_bins, sample_weight, confidence
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
    strata = binned_strata(covered, sizes, n_bins, sample_weight, name="size")
    return _worst(strata, alpha, confidence, "size-stratified coverage")


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
    strata = binned_strata(covered, y_true, n_bins, sample_weight, name="y_true")
    estimate = _worst(strata, None, confidence, "label-stratified coverage")
    return Estimate(**(estimate.to_dict() | {"reason": _BY_OUTCOME}))


def _group_weights(counts: ShareCounts, weighted: bool) -> np.ndarray:
    if check_flag(weighted, name="weighted"):
        return np.asarray(counts.totals / counts.totals.sum())
    return np.full(len(counts.totals), 1.0 / len(counts.totals))


def _gap_fields(
    strata: Strata, target: float, weighted: bool, confidence: float, name: str
) -> dict[str, Any]:
    counts = strata.counts
    w, n_groups = _group_weights(counts, weighted), len(strata.labels)
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


def _simulated_gaps(
    counts: ShareCounts, target: float, weighted: bool, rng: np.random.Generator
) -> SimulatedLaw:
    if len(counts.totals) > _MANY_GROUPS:
        return SimulatedLaw(_gaps_by_size(counts.totals.astype(np.int64), target, weighted, rng))
    w, totals = _group_weights(counts, weighted), counts.totals.astype(np.int64)
    step = max(1, _CELLS // len(totals))
    draws = []
    for start in range(0, _DRAWS, step):
        drawn = rng.binomial(totals, target, size=(min(step, _DRAWS - start), len(totals)))
        draws.append(np.abs(drawn / totals - target) @ w)
    return SimulatedLaw(np.concatenate(draws))


def _gaps_by_size(totals: np.ndarray, target: float, weighted: bool, rng: np.random.Generator) -> np.ndarray:
    """The same draws for many groups: those of one size have one law, so their counts are multinomial."""
    sizes, groups = np.unique(totals, return_counts=True)
    gaps = np.zeros(_DRAWS)
    for size, many in zip(sizes.tolist(), groups.tolist(), strict=True):
        share = (size / totals.sum()) if weighted else 1.0 / len(totals)
        outcomes = np.arange(size + 1)
        distance = share * np.abs(outcomes / size - target)
        if many > size:
            pmf = binom.pmf(outcomes, size, target)
            gaps += rng.multinomial(many, pmf / pmf.sum(), size=_DRAWS) @ distance
            continue
        step = max(1, _CELLS // many)
        for start in range(0, _DRAWS, step):
            stop = min(start + step, _DRAWS)
            gaps[start:stop] += distance[rng.binomial(size, target, size=(stop - start, many))].sum(axis=1)
    return gaps


def _worst(strata: Strata, alpha: Any, confidence: float, name: str) -> Estimate:
    counts, level = strata.counts, check_confidence(confidence)
    share, totals = counts.shares, counts.totals
    low, high = counts.interval(sidak_confidence(level, len(share)))
    at = int(np.argmin(share))
    fields: dict[str, Any] = {
        "name": name,
        "value": float(share[at]),
        "std_error": float(counts.std_errors[at]),
        "low": float(np.min(low)),
        "high": float(np.min(high)),
        "confidence": level,
        "n": counts.n,
        "method": f"least coverage of {len(share)} strata, Sidak Clopper-Pearson interval",
        "details": {"worst": strata.name(at), "groups": strata.describe(-share)},
    }
    if alpha is None:
        return Estimate(**fields, reason="without alpha there is no promise to test")
    target = 1.0 - check_alpha(alpha)
    if not counts.whole:
        return Estimate(**fields, reason=NO_EXACT_LAW)
    return Estimate(
        **fields,
        p_value=_minimum_law(totals, target, float(share[at])),
        alternative="less",
        null_low=_minimum_point(totals, target),
        null_level=_NULL_LEVEL,
    )


def _minimum_law(totals: np.ndarray, target: float, x: float) -> float:
    """P(min over strata of K / n <= x) for independent binomial counts."""
    most = np.floor(totals * x + 1e-9)  # the largest count with K / n <= x
    ones = np.ones(len(totals))
    lower, _ = binomial_tails(np.minimum(most, totals), totals, target * ones, (1.0 - target) * ones)
    with np.errstate(divide="ignore"):
        return float(-np.expm1(np.sum(np.log1p(-lower))))


def _minimum_point(totals: np.ndarray, target: float) -> float:
    """The smallest share x whose reading would not be rejected: P(min <= x) > 1 - level."""
    counts = [np.arange(int(n) + 1) / n for n in np.unique(totals)]
    shares = np.unique(np.concatenate(counts))
    first, last = 0, len(shares) - 1
    while first < last:
        middle = (first + last) // 2
        if _minimum_law(totals, target, float(shares[middle])) > 1.0 - _NULL_LEVEL:
            last = middle
        else:
            first = middle + 1
    return float(shares[first])


def _entry(function: Any, inputs: tuple[str, ...], **fields: Any) -> MetricEntry:
    common = {"question": "everywhere", "merge": "counts", "weighted": True, "bounds": (0.0, 1.0)}
    return MetricEntry(function=function, inputs=inputs, **(common | fields))  # type: ignore[arg-type]


_BOX = "Sidak-adjusted Clopper-Pearson per stratum, mapped through the"
ENTRIES = (
    _entry(
        coverage_gap, ("covered", "groups"), direction="lower", good="0, up to the noise floor",
        null="covers 1 - alpha in every group (independent binomial counts, simulated)",
        interval=f"{_BOX} mean gap", randomized=True,
    ),
    _entry(
        feature_stratified_coverage, ("covered", "feature"), direction="target", good="1 - alpha",
        null="covers 1 - alpha in every stratum (exact law of the minimum)", interval=f"{_BOX} minimum",
    ),
    _entry(
        size_stratified_coverage, ("covered", "size"), direction="target", good="1 - alpha",
        null="covers 1 - alpha at every size (exact law of the minimum)", interval=f"{_BOX} minimum",
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
