"""Does it cover as often as it says? Marginal coverage of sets and intervals."""

from __future__ import annotations

from typing import Any

from calipers.arrays import Array, as_numpy, count_along
from calipers.conformal import conformal_rank
from calipers.inference import CoverageLaw, ShareCounts, State
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import (
    NO_EXACT_LAW,
    Weights,
    check_alpha,
    check_confidence,
    check_count,
    exact_level,
)
from calipers.inputs.covered import is_covered
from calipers.inputs.option_checks import check_choice
from calipers.metrics.entry import MetricEntry
from calipers.results import Estimate


def coverage(
    y_true: Any,
    prediction: Any,
    *,
    alpha: Any = None,
    n_calibration: int | None = None,
    sample_weight: Any = None,
    classes: Any = None,
    confidence: float = 0.95,
    alternative: str = "two-sided",
) -> Estimate:
    """Share of rows whose outcome lies in the prediction set or interval.

    A good value is ``1 - alpha``: less means broken promises, much more means wasted width. With
    ``alpha`` the result carries the band a healthy predictor would read and a test against it.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels (with sets) or numbers (with intervals).
    prediction : array
        Sets as bool (n, K), or intervals as float (n, 2), ends included.
    alpha : float, Fraction or Decimal, optional
        Allowed miscoverage. Without it there is no null and no p-value.
    n_calibration : int, optional
        Rows the predictor was conformalised on. Its coverage then varies with the luck of that
        calibration set; without it a healthy split-conformal predictor is accused far too often.
    sample_weight : array of shape (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    classes : sequence of K labels, optional
        The label of every column of the sets.
    confidence : float
        Level of the interval around the estimate.
    alternative : {"two-sided", "less", "greater"}
        Which departures count against the predictor; "less" asks about under-coverage only (right
        when scores have ties, which make a conformal predictor cover more than promised).

    Returns
    -------
    Estimate
        ``details`` holds the counts and, with ``n_calibration``, the rank of the threshold.

    Raises
    ------
    InputError
        For lengths that differ, labels without a column, crossed ends or missing values.

    Notes
    -----
    Interval: Clopper-Pearson, with importance weights at the effective number of rows. Null law of the
    covered count of m rows: Binomial(m, 1 - alpha), or with ``n_calibration`` = n the beta-binomial law with
    parameters (m, k, n + 1 - k), k the rank of `conformal_rank`; it is exact for exchangeable rows and scores
    without ties. Cost: one pass.

    References
    ----------
    Vovk (2012), Conditional validity of inductive conformal predictors.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import coverage
    >>> y = np.linspace(-2, 2, 101)
    >>> print(coverage(y, np.tile([-1.8, 1.8], (101, 1)), alpha=0.1))
    coverage 0.89 [0.81, 0.95] at 95 %; a valid predictor would read 0.84 to 0.95 (p = 0.860)
    """
    return coverage_of_rows(
        is_covered(y_true, prediction, classes=classes),
        alpha=alpha,
        n_calibration=n_calibration,
        weights=sample_weight,
        confidence=check_confidence(confidence),
        alternative=alternative,
    )


def coverage_of_rows(
    covered: Array,
    *,
    alpha: Any = None,
    n_calibration: int | None = None,
    weights: Any = None,
    confidence: float = 0.95,
    alternative: str = "two-sided",
    name: str = "coverage",
) -> Estimate:
    """The coverage estimate from checked rows; every coverage in the package is made here."""
    given = Weights.check(weights, int(covered.shape[0]))
    if given is None:
        # Arrays of other libraries are counted where they lie.
        hits, rows = float(count_along(covered, axis=None)), float(covered.shape[0])
        counts = ShareCounts.one(hits, rows, hits, rows)
    else:
        counts = ShareCounts.of(as_numpy(covered), given)
    fields = share_fields(counts, confidence) | {
        "name": name,
        "method": "share of covered rows, Clopper-Pearson interval",
        "details": {"covered": _count(counts.hits[0]), "rows": _count(counts.totals[0])},
    }
    if alpha is None:
        return Estimate(**fields, reason="without alpha there is no promise to test")
    return Estimate(**_with_null(fields, counts.whole, alpha, n_calibration, alternative))


def share_fields(counts: ShareCounts, confidence: float) -> dict[str, Any]:
    """Fields of an Estimate of the share of one stratum."""
    low, high = counts.interval(confidence)
    return {
        "value": float(counts.shares[0]),
        "std_error": float(counts.std_errors[0]),
        "low": float(low[0]),
        "high": float(high[0]),
        "confidence": confidence,
        "n": counts.n,
    }


def _count(value: float) -> float:
    """A count as an integer when it is one."""
    return int(value) if float(value).is_integer() else float(value)


def coverage_law(m: int, alpha: Any, n_calibration: int | None) -> CoverageLaw:
    """Exact law of the covered count of m rows when nothing is wrong."""
    if n_calibration is None:
        return CoverageLaw(m, check_alpha(alpha))
    n = check_count(n_calibration, name="n_calibration")
    return CoverageLaw(m, float(exact_level(alpha)), n_calibration=n, rank=conformal_rank(n, alpha))


def _with_null(
    fields: dict[str, Any], whole: bool, alpha: Any, n_calibration: int | None, alternative: str
) -> dict[str, Any]:
    check_choice(alternative, ("two-sided", "less", "greater"), name="alternative")
    check_alpha(alpha)
    if not whole:
        return fields | {"reason": NO_EXACT_LAW}
    total, hits = fields["details"]["rows"], fields["details"]["covered"]
    law = coverage_law(total, alpha, n_calibration)
    low, high = law.share_interval(NULL_LEVEL, alternative)
    known = {} if n_calibration is None else {"n_calibration": n_calibration, "rank": law.rank}
    return fields | {
        "p_value": float(law.p_value(hits, alternative)),
        "alternative": alternative,
        "null_low": None if alternative == "greater" else low,
        "null_high": None if alternative == "less" else high,
        "null_level": NULL_LEVEL,
        "method": fields["method"] + (
            ", binomial test" if n_calibration is None else ", beta-binomial test (finite calibration)"
        ),
        "details": fields["details"] | known,
    }  # fmt: skip


def coverage_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Counts of covered rows."""
    from calipers.metrics.states.counts import CountState

    return CountState(_coverage_of_counts, ("covered",), options)


def _coverage_of_counts(covered: Any, *, sample_weight: Any, **options: Any) -> Estimate:
    return coverage_of_rows(covered, weights=sample_weight, **options)


ENTRIES = (
    MetricEntry(
        function=coverage,
        question="coverage",
        inputs=("y_true", "prediction"),
        direction="target",
        good="1 - alpha",
        bounds=(0.0, 1.0),
        null="covers 1 - alpha of the rows (binomial; beta-binomial with n_calibration)",
        interval="Clopper-Pearson",
        merge="counts",
        state=coverage_state,
        weighted=True,
        array_api=True,
    ),
)
