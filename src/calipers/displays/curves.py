"""Curves that the displays and the pictures of an audit are drawn from: coverage by group, ease and time."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.inference import ShareCounts, normal_quantile, sidak_confidence
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import Weights, check_count, check_covered, check_same_length, check_vector
from calipers.inputs.row_checks import check_time
from calipers.metrics.adaptivity.binning import bin_by_ease
from calipers.metrics.conditional.strata import equal_mass_bins, group_strata
from calipers.metrics.marginal import coverage_law
from calipers.results import Curve

# Times between 1973 and 2286, in microseconds since 1970: numbers this large are dates.
_DATES = (1e14, 1e16)


def coverage_by_group(
    covered: Any,
    groups: Any,
    *,
    alpha: float,
    n_calibration: int | None,
    sample_weight: Any,
    confidence: float,
) -> Curve:
    """Coverage of every group, worst first; ``details["labels"]`` names them."""
    strata = group_strata(covered, groups, alpha=alpha, sample_weight=sample_weight)
    order = np.argsort(strata.counts.shares, kind="stable")
    return _share_curve(
        strata.counts.take(order), np.arange(len(order), dtype=float), "group", alpha, n_calibration,
        confidence, {"labels": [strata.names[i] for i in order]},
    )  # fmt: skip


def coverage_along_ease(
    covered: Any,
    ease: Any,
    *,
    alpha: float,
    n_bins: int,
    n_calibration: int | None,
    sample_weight: Any,
    confidence: float,
) -> Curve:
    """Coverage of bins of equal mass along the ease, hardest first."""
    z, score, weights = _along(covered, ease, sample_weight)
    bins = bin_by_ease([z], score, check_count(n_bins, name="n_bins"), weights)
    counts = bins.counts()
    return _share_curve(
        counts, _middles(counts.totals), "share of rows, hardest first", alpha, n_calibration, confidence, {}
    )


def size_along_ease(size: Any, ease: Any, *, n_bins: int, sample_weight: Any, confidence: float) -> Curve:
    """Mean size of bins of equal mass along the ease, hardest first, with the band of shuffled sizes.

    The band is what sizes that do not depend on difficulty would read: a mean of n_b of n rows drawn without
    replacement has variance s^2 (1 - n_b / n) / n_b.
    """
    values = as_numpy(check_vector(size, name="size")).astype(float)
    score = as_numpy(check_vector(ease, name="ease")).astype(float)
    weights = Weights.check(sample_weight, check_same_length(size=values, ease=score))
    bins = bin_by_ease([values, values**2], score, check_count(n_bins, name="n_bins"), weights)
    there, rows = bins.filled, bins.effective_mass[bins.filled]
    mean, square = bins.means()[:, there]
    half = normal_quantile(confidence) * np.sqrt(np.maximum(0.0, square - mean**2) / rows)
    total = bins.mass[there]
    level = float((mean * total).sum() / total.sum())
    spread = np.sqrt(max(0.0, float((square * total).sum() / total.sum()) - level**2))
    null = normal_quantile(NULL_LEVEL) * spread * np.sqrt((1 - rows / rows.sum()) / rows)
    return Curve(
        name="mean size", x=_middles(total), y=mean, low=mean - half, high=mean + half,
        confidence=confidence, null_low=level - null, null_high=level + null, null_level=NULL_LEVEL,
        x_label="share of rows, hardest first", y_label="mean size",
        method="mean and normal interval per bin; band of sizes shuffled over the rows",
    )  # fmt: skip


def coverage_over_time(
    covered: Any,
    time: Any,
    *,
    alpha: float,
    n_pieces: int,
    n_calibration: int | None,
    sample_weight: Any,
    confidence: float,
) -> Curve:
    """Coverage of consecutive pieces of nearly equal mass; rows of one time stay together."""
    moments = check_time(time)
    z = as_numpy(check_covered(covered))
    weights = Weights.check(sample_weight, check_same_length(covered=z, time=moments))
    codes, centres = pieces_of(moments, n_pieces, None if weights is None else weights.mass)
    counts = ShareCounts.of(z, weights, codes, len(centres))
    dated = are_dates(moments)
    return _share_curve(
        counts, centres / 1e6 if dated else centres, "time", alpha, n_calibration, confidence,
        {"dates": dated},
    )  # fmt: skip


def pieces_of(
    moments: np.ndarray, n_pieces: int, mass: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Piece of every row along time, and the mean time of every piece; equal times stay together.

    Examples
    --------
    >>> import numpy as np
    >>> pieces_of(np.array([1.0, 1.0, 2.0, 4.0]), 2)
    (array([0, 0, 1, 1]), array([1., 3.]))
    """
    check_count(n_pieces, name="n_pieces")
    weight = np.ones(len(moments)) if mass is None else mass
    times, at = np.unique(moments, return_inverse=True)
    per_time = np.bincount(at, weights=weight)
    _, codes = np.unique(equal_mass_bins(per_time, n_pieces), return_inverse=True)
    # Dates are large numbers: their mean is taken around the first one.
    centres = times[0] + np.bincount(codes, weights=per_time * (times - times[0])) / np.bincount(
        codes, weights=per_time
    )
    return codes[at].reshape(-1), centres


def are_dates(moments: np.ndarray) -> bool:
    """Whether times are microseconds since 1970, which dates become when rows are checked."""
    return bool(len(moments) and moments.min() >= _DATES[0] and moments.max() <= _DATES[1])


def _along(covered: Any, ease: Any, sample_weight: Any) -> tuple[np.ndarray, np.ndarray, Weights | None]:
    z, score = as_numpy(check_covered(covered)), as_numpy(check_vector(ease, name="ease")).astype(float)
    return z, score, Weights.check(sample_weight, check_same_length(covered=z, ease=score))


def _middles(totals: np.ndarray) -> np.ndarray:
    return np.asarray((np.cumsum(totals) - 0.5 * totals) / totals.sum())


def _share_curve(
    counts: ShareCounts,
    x: np.ndarray,
    x_label: str,
    alpha: float,
    n_calibration: int | None,
    confidence: float,
    details: dict[str, Any],
) -> Curve:
    """Shares with intervals that hold together, and the band of each one's exact null law."""
    low, high = counts.interval(sidak_confidence(confidence, len(x)))
    null_low, null_high = _bands(counts, alpha, n_calibration)
    return Curve(
        name="coverage", x=x, y=counts.shares, low=low, high=high, confidence=confidence, null_low=null_low,
        null_high=null_high, null_level=None if null_low is None else NULL_LEVEL, x_label=x_label,
        y_label="coverage", method="share of covered rows; Clopper-Pearson intervals that hold together "
        "(Sidak); pointwise band of the exact null law",
        reason="" if counts.whole else "importance weights have no exact null law",
        details={"rows": counts.totals} | details,
    )  # fmt: skip


def _bands(
    counts: ShareCounts, alpha: float, n_calibration: int | None
) -> tuple[np.ndarray | None, np.ndarray | None]:
    if not counts.whole:
        return None, None
    rows = np.maximum(1, np.rint(counts.totals)).astype(int)
    bands = [coverage_law(int(n), alpha, n_calibration).share_interval(NULL_LEVEL) for n in rows]
    return np.array([b.low for b in bands]), np.array([b.high for b in bands])
