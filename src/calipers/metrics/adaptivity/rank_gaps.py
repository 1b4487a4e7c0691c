"""How far set sizes are off the rank of the truth: Deficit and Excess."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from calipers.arrays import as_numpy, namespace
from calipers.inference import Moments, mean_estimate
from calipers.inputs import check_confidence
from calipers.metrics.adaptivity.size_and_difficulty import difficulty_columns
from calipers.metrics.entry import MetricEntry
from calipers.results import Estimate


def deficit(ranks: Any, size: Any, *, sample_weight: Any = None, confidence: float = 0.95) -> Estimate:
    """Deficit: labels that were missing to reach the truth, max(0, rank - size), on average over all rows.

    0 is best, and a set of all labels reaches it: read it together with `excess`.

    Parameters
    ----------
    ranks, size : array (n,)
        1-based rank of the true label, and set size.
    sample_weight : array (n,), optional
        Weights; a weight of 2 counts as two equal rows.
    confidence : float
        Level of the interval.

    Returns
    -------
    Estimate
        Without p-value: no value is the one a sound predictor should read.

    Notes
    -----
    Exact for sets that hold the most likely labels (lac, aps, raps, saps, top_k); other sets are
    counted as if they did. Mean over all rows, covered or not. Interval: standard error times the quantile of
    Student's t for as many rows as carry the noise (`calipers.inference.effective_quantile`: few when the
    model is good), not below 0; none when no row differs from the others.

    References
    ----------
    Navratil, Arnold and Elder (2021); Seedat, Jeffares, Imrie and van der Schaar (2023).

    Examples
    --------
    >>> from calipers.metrics import deficit
    >>> float(deficit([1, 2, 5, 1], [1, 3, 2, 4]))
    0.75
    """
    return _mean_gap("Deficit", ranks, size, 1.0, sample_weight, confidence)


def excess(ranks: Any, size: Any, *, sample_weight: Any = None, confidence: float = 0.95) -> Estimate:
    """Excess: labels that could go while the truth stays in, max(0, size - rank), on average over all rows.

    0 is best, and empty sets reach it: read it together with `deficit`.

    Parameters
    ----------
    ranks, size, sample_weight, confidence
        As in `deficit`.

    Returns
    -------
    Estimate
        Without p-value: no value is the one a sound predictor should read.

    Notes
    -----
    As in `deficit`.

    References
    ----------
    Navratil, Arnold and Elder (2021); Seedat, Jeffares, Imrie and van der Schaar (2023).

    Examples
    --------
    >>> from calipers.metrics import excess
    >>> float(excess([1, 2, 5, 1], [1, 3, 2, 4]))
    1.0
    """
    return _mean_gap("Excess", ranks, size, -1.0, sample_weight, confidence)


def _mean_gap(
    name: str, ranks: Any, size: Any, sign: float, sample_weight: Any, confidence: float
) -> Estimate:
    difficulty, sizes, weights, _ = difficulty_columns(ranks, size, sample_weight)
    xp = namespace(sizes)
    gap = sign * (xp.astype(difficulty, xp.float64) - xp.astype(sizes, xp.float64))
    rows = as_numpy(xp.where(gap > 0, gap, xp.zeros_like(gap)))
    moments = Moments.of(rows, weights, tails=True)
    estimate = mean_estimate(moments, name=name, confidence=check_confidence(confidence))
    if estimate.low is not None:
        estimate = replace(estimate, low=max(estimate.low, 0.0))
    reason = "; ".join(filter(None, [estimate.reason, f"no value of {name} is the sound one: no test"]))
    return replace(estimate, reason=reason)


_DEFICIT = MetricEntry(
    function=deficit,
    question="adaptive",
    inputs=("ranks", "size"),
    direction="lower",
    good="0, together with a small excess",
    bounds=(0.0, float("inf")),
    no_null="no value is the one a sound predictor should read",
    interval="Student t for the rows that carry the noise",
    merge="counts",
    weighted=True,
    array_api=True,
)
ENTRIES = (_DEFICIT, replace(_DEFICIT, function=excess, good="0, together with a small deficit"))
