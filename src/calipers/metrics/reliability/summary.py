"""From checked rows to the numbers a calibration estimate is made of."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import Array, namespace
from calipers.inputs.row_checks import count_true
from calipers.metrics.reliability import certificates
from calipers.metrics.reliability.calibration_test import (
    MAX_RANGE_COINS,
    asymptotic_test,
    exact_test,
    n_coins,
)
from calipers.metrics.reliability.levels import has_more_levels_than, score_levels
from calipers.metrics.reliability.range_law import range_survival
from calipers.metrics.reliability.rows import BinaryRows
from calipers.metrics.reliability.worst_interval import SupInterval
from calipers.results.formatting import format_number, format_percent

# Rows per block of the sums: what a core keeps close while several arrays are made of them.
_CACHED = 1 << 15
SOFT_REASON = "soft labels have no Bernoulli law, so calibration cannot be tested"
WEIGHTS_REASON = "with unequal weights the upper bound is asymptotic, not guaranteed"


@dataclass(frozen=True, slots=True)
class RowMoments:
    """Sums over rows that bounds and words need.

    Parameters
    ----------
    total, squared_total : float
        Sum of weights and of squared weights.
    second_moment : float
        Weighted mean of (y - f)^2, the Brier score.
    variance : float
        Sum of w^2 f (1 - f): variance of the weighted events under calibration.
    inside, stated, happened : float
        Weight in the maximising interval, and there the mean score and the share of events.
    inside_square : float
        Sum of w^2 (y - f)^2 in the interval.
    impossible : int
        Rows whose outcome was stated to have probability 0.
    """

    total: float
    squared_total: float
    second_moment: float
    variance: float
    inside: float
    stated: float
    happened: float
    inside_square: float
    impossible: int

    @property
    def n_effective(self) -> float:
        """Rows of equal weight that carry as much information."""
        return self.total**2 / self.squared_total

    def std_error(self, error: float) -> float:
        """Standard error of the discrepancy in the maximising interval, were that interval fixed."""
        return math.sqrt(max(0.0, self.inside_square / self.total**2 - error**2 / self.n_effective))


def row_moments(rows: BinaryRows, found: SupInterval) -> RowMoments:
    """One pass over the rows, in blocks."""
    sums = np.sum([_block_sums(f, y, w, found) for f, y, w in rows.blocks(_CACHED)], axis=0)
    total, squared, second, variance, inside, stated, happened, inside_square, impossible = sums.tolist()
    return RowMoments(
        total=total,
        squared_total=squared,
        second_moment=second / total,
        variance=variance,
        inside=inside,
        stated=stated / inside if inside else math.nan,
        happened=happened / inside if inside else math.nan,
        inside_square=inside_square,
        impossible=int(impossible),
    )


def _block_sums(f: Array, y: Array, w: Array | None, found: SupInterval) -> list[float]:
    # Sums of products rather than dot products, which would wake the threads of BLAS for every block.
    xp = namespace(f)
    # NaN ends (no interval) compare false: nothing is inside.
    inside = xp.astype((f > found.low) & (f <= found.high), xp.float64)
    residual, spread = y - f, f * (1 - f)
    # f (1 - f) is 0 for certainties alone; one of them is impossible when it did not come true.
    is_impossible = (spread == 0) & (residual != 0)
    square = residual * residual
    inside_square = inside * square
    n = size = float(f.shape[0])
    if w is not None:
        n, size = float(xp.sum(w)), float(xp.sum(w * w))
        square, inside_square, spread = square * w, inside_square * w * w, spread * w * w
        is_impossible, inside = is_impossible & (w > 0), inside * w
    return [
        n,
        size,
        float(xp.sum(square)),
        float(xp.sum(spread)),
        float(xp.sum(inside)),
        float(xp.sum(inside * f)),
        float(xp.sum(inside * y)),
        float(xp.sum(inside_square)),
        float(count_true(is_impossible)),
    ]


def in_words(found: SupInterval, moments: RowMoments, highest: float) -> str:
    """Where the model errs most, and how, in one sentence."""
    if found.sign == 0:
        return "no interval of scores stands out: stated and observed frequencies agree exactly"
    gap = abs(moments.happened - moments.stated)
    adverb = "over-confident" if found.sign < 0 else "under-confident"
    share = format_percent(float(f"{moments.inside / moments.total:.3g}"))
    return (
        f"{_place(found, highest)} the model is {adverb} by {format_number(gap, gap)}: it states "
        f"{moments.stated:.3f} on average and {moments.happened:.3f} happens ({share} of rows)"
    )


def _place(found: SupInterval, highest: float) -> str:
    low, high = (format_number(end, found.high - max(found.low, 0.0)) for end in (found.low, found.high))
    if math.isinf(found.low):
        return "over all scores" if found.high >= highest else f"up to {high}"
    return f"above {low}" if found.high >= highest else f"between {low} and {high}"


def bound_fields(
    n_rows: int, found: SupInterval, moments: RowMoments, *, confidence: float, n_models: int
) -> dict[str, Any]:
    """Upper bound (``high``), its asymptotic companion and the bounds from below, with their kind."""
    level: dict[str, Any] = {"confidence": confidence, "n_models": n_models}
    value, second = min(1.0, found.value), moments.second_moment
    equal = moments.n_effective >= n_rows * (1 - 1e-12)
    n = n_rows if equal else moments.n_effective
    width = certificates.asymptotic_band(second, n, **level)
    asymptotic = certificates.asymptotic_upper_bound(value, second, n, **level)
    fields: dict[str, Any] = {
        "high": asymptotic,
        "asymptotic_high": asymptotic,
        "low_bound": max(0.0, value - width),
        "asymptotic_band": (max(0.0, value - width), min(1.0, value + width)),
        "guaranteed_band": None,
        "guaranteed": equal,
    }
    if not equal:
        return fields
    width = certificates.uniform_band(n_rows, **level)
    return fields | {
        "high": certificates.upper_bound(value, second, n_rows, **level),
        "guaranteed_band": (max(0.0, value - width), min(1.0, value + width)),
    }


def null_fields(
    rows: BinaryRows,
    found: SupInterval,
    moments: RowMoments,
    *,
    n_draws: int,
    generator: np.random.Generator,
) -> dict[str, Any]:
    """Test of calibration: exact by Monte Carlo where affordable, else asymptotic; none with soft labels."""
    if rows.soft:
        return {"p_value": None, "alternative": None, "null_high": None, "null_level": None, "test": ""}
    scale = math.sqrt(moments.variance)
    asymptotic_p = range_survival(found.value * moments.total / scale) if scale else None
    extra = {"asymptotic_p_value": asymptotic_p}
    if not has_more_levels_than(rows, MAX_RANGE_COINS // n_draws):
        levels = score_levels(rows)
        if n_coins(levels, n_draws) <= MAX_RANGE_COINS:
            return exact_test(levels, n_draws=n_draws, generator=generator) | extra
    return asymptotic_test(found.value, moments.variance, moments.total) | extra
