"""Tests of a comparison: does one predictor differ from another, and does each keep its promise."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from calipers.auditing.audit_result import Audit
from calipers.inference import ShareCounts, binomial_p_value, mean_estimate, paired_difference
from calipers.inputs import Weights
from calipers.metrics.marginal import coverage_of_rows
from calipers.results import Estimate

# A promise is called broken when one that is kept would read so low in fewer than one of a hundred samples.
BROKEN = 0.01
# Coverages that differ at this level, before any correction, are not equal.
UNEQUAL = 0.05
EQUAL = "two equal predictors"


def promise_of(audit: Audit) -> Estimate | None:
    """Coverage against the promise, one-sided: too low counts. None without sets or intervals."""
    rows, design = audit.data, audit.design
    if rows.get("covered") is None:
        return None
    return coverage_of_rows(
        rows["covered"], alpha=design.alphas[0], n_calibration=design.n_calibration, weights=rows.weights,
        confidence=design.confidence, alternative="less",
    )  # fmt: skip


def is_broken(promise: Estimate | None, promised: float) -> bool:
    """Whether coverage lies below the promise beyond noise; with importance weights, by the interval."""
    if promise is None:
        return False
    if promise.p_value is not None:
        return promise.p_value <= BROKEN
    return promise.high is not None and promise.high < promised


def coverage_difference(
    first: np.ndarray, second: np.ndarray, *, name: str, weights: np.ndarray | None, confidence: float
) -> Estimate:
    """Coverage of the first minus that of the second; exact test of the rows that only one of them covers."""
    found = paired_difference(first, second, name=name, weights=weights, confidence=confidence)
    given = Weights.check(weights, len(first))
    if given is not None and not given.whole:
        return found
    gaps = first - second
    counts = ShareCounts.of(gaps[gaps != 0] > 0, None if given is None else given.take(gaps != 0))
    more, discordant = counts.hits[0], counts.totals[0]
    p = float(binomial_p_value(more, discordant, 0.5)) if discordant else 1.0
    return replace(
        found, p_value=p, alternative="two-sided", method="exact test of discordant rows (McNemar)"
    )


def most_given_up(lost: np.ndarray, won: np.ndarray, weights: np.ndarray | None) -> float:
    """Upper bound of the share of rows lost less the share won, each bounded at 95 %."""
    given = Weights.check(weights, len(lost))
    ends = [ShareCounts.of(rows, given).interval(1 - 2 * UNEQUAL) for rows in (lost, won)]
    return float(ends[0][1][0] - ends[1][0][0])


def distance_difference(
    first: np.ndarray,
    second: np.ndarray,
    promised: float,
    *,
    name: str,
    weights: np.ndarray | None,
    confidence: float,
) -> Estimate:
    """How much further the coverage of the first is from the promise than that of the second.

    Notes
    -----
    With a and b the signed distances, |a| - |b| is 0 when a - b or a + b is, and otherwise it is the one of
    them that is nearer to 0, with the sign of their product. So it differs from 0 when both do; each is
    tested (a - b by the discordant rows, a + b by the mean of both) at half the level, and its interval is
    the range over the rectangle of theirs.
    """
    options: dict[str, Any] = {"weights": weights, "confidence": 1 - (1 - confidence) / 2}
    gap = coverage_difference(first, second, name=name, **options)
    both = mean_estimate(first + second, name=name, null=2 * promised, **options)
    u, v = float(gap), float(both) - 2 * promised
    p = min(1.0, 2 * max(gap.p_value or 1.0, both.p_value or 1.0))
    if gap.low is None or gap.high is None or both.low is None or both.high is None:
        low = high = None
    else:
        ends = product((gap.low, gap.high), (both.low - 2 * promised, both.high - 2 * promised))
        corners = [_nearer_to_zero(*end) for end in ends]
        low, high = min(corners), max(corners)
    return Estimate(
        name=f"difference of distances of {name} from the promise", value=_nearer_to_zero(u, v), low=low,
        high=high, confidence=None if low is None else confidence, n=gap.n, p_value=p,
        alternative="two-sided", details={"difference": u, "null_subject": EQUAL},
        method="coverages differ (exact test of discordant rows) and their mean is not the promise (t test)",
    )  # fmt: skip


def _nearer_to_zero(u: float, v: float) -> float:
    return float(np.sign(u * v) * min(abs(u), abs(v)))
