"""The walk of w (y - f) over sorted scores, read from bucket sums and from the rows of open buckets."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.arrays import generator
from calipers.inference.state import Result
from calipers.metrics.reliability.calibration_measure import error_from_parts
from calipers.metrics.reliability.calibration_test import (
    MAX_RANGE_COINS,
    asymptotic_test,
    exact_test,
    n_coins,
)
from calipers.metrics.reliability.extremes import Extreme
from calipers.metrics.reliability.levels import ScoreLevels
from calipers.metrics.reliability.multiclass import ClassPart
from calipers.metrics.reliability.range_law import range_survival
from calipers.metrics.reliability.score_buckets import BucketSums
from calipers.metrics.reliability.score_columns import ScoredRows
from calipers.metrics.reliability.summary import RowMoments, bound_fields
from calipers.metrics.reliability.worst_interval import SupInterval, interval_between

if TYPE_CHECKING:
    from calipers.metrics.reliability.calibration_states import CalibrationState


def estimate_from_buckets(state: CalibrationState, rows: ScoredRows | None) -> Result:
    """The calibration estimate from bucket sums and the sorted rows of open buckets."""
    found, moments, bounds = class_part(state, rows, n_statements=state.options.n_models)
    highest = float(state.buckets.high.max())
    null = null_of(state, found, moments)
    return error_from_parts(
        found, moments, bounds, null, highest=highest, confidence=state.options.confidence
    )


def class_part(state: CalibrationState, rows: ScoredRows | None, *, n_statements: int) -> ClassPart:
    """The worst interval, the moments of the rows and the bounds when so many statements are made."""
    total, squared, square_sum, variance, impossible = state.totals.tolist()
    found = interval_between(*walk_extremes(state, rows), total)
    inside = inside_sums(state, rows, found)
    weight = float(inside[2])
    moments = RowMoments(
        total=total,
        squared_total=squared,
        second_moment=square_sum / total,
        variance=variance,
        inside=weight,
        stated=float(inside[3]) / weight if weight else math.nan,
        happened=float(inside[4]) / weight if weight else math.nan,
        inside_square=float(inside[5]),
        impossible=int(impossible),
    )
    confidence = state.options.confidence
    bounds = bound_fields(state.n_rows, found, moments, confidence=confidence, n_models=n_statements)
    return found, moments, bounds


def walk_extremes(state: CalibrationState, rows: ScoredRows | None) -> tuple[Extreme, Extreme]:
    """Highest and lowest reading, over bucket ends and, in open buckets, over every score."""
    top, bottom = Extreme(1, state.tie), Extreme(-1, state.tie)
    ends = np.cumsum(state.buckets.rises - state.buckets.falls)
    starts = np.concatenate([[0.0], ends[:-1]])
    filled = np.flatnonzero(state.buckets.sums[2] > 0)
    readings, scores = ends[filled], state.buckets.high[filled]
    if rows is not None:
        inner, at = _inner_readings(state, rows, starts)
        # Scores in order; a bucket's end is also the last inner reading of an open bucket.
        place = np.searchsorted(at, scores, side="right")
        readings, scores = np.insert(inner, place, readings), np.insert(at, place, scores)
    top.update(readings, scores)
    bottom.update(readings, scores)
    return top, bottom


def _inner_readings(
    state: CalibrationState, rows: ScoredRows, starts: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Readings at the ends of blocks of equal scores inside open buckets."""
    f, y, w = rows
    running = np.cumsum((y - f) if w is None else w * (y - f))
    bucket = state.bucket_of(f)
    first = np.flatnonzero(np.diff(bucket, prepend=-1))
    before = np.where(first > 0, running[first - 1], 0.0)
    running += np.repeat(starts[bucket[first]] - before, np.diff(first, append=f.size))
    is_end = np.append(f[1:] != f[:-1], True)
    return running[is_end], f[is_end]


def inside_sums(state: CalibrationState, rows: ScoredRows | None, found: SupInterval) -> np.ndarray:
    """Bucket sums over the rows with a score in (low, high]; a closed bucket lies inside or outside."""
    buckets = state.buckets
    with np.errstate(invalid="ignore"):
        whole = (buckets.low > found.low) & (buckets.high <= found.high)
        touched = ~whole & (buckets.high > found.low) & (buckets.low <= found.high)
    sums = buckets.sums[:, whole].sum(axis=1)
    if rows is None or not touched.any():
        return np.asarray(sums)
    f, y, w = rows
    cut = touched[state.bucket_of(f)] & (f > found.low) & (f <= found.high)
    part = BucketSums(1)
    part.add(np.zeros(int(cut.sum()), dtype=np.int64), (f[cut], y[cut], None if w is None else w[cut]))
    return np.asarray(sums + part.sums[:, 0])


def null_of(state: CalibrationState, found: SupInterval, moments: RowMoments) -> dict[str, Any]:
    """The test of calibration: exact where every bucket holds one score, else the Brownian range."""
    scale = math.sqrt(moments.variance)
    extra = {"asymptotic_p_value": range_survival(found.value * moments.total / scale) if scale else None}
    filled = state.buckets.sums[2] > 0
    if (
        state.buckets.low[filled] == state.buckets.high[filled]
    ).all() and moments.squared_total == moments.total:
        values, trials, hits = (
            x[filled] for x in (state.buckets.high, state.buckets.sums[2], state.buckets.sums[4])
        )
        levels = ScoreLevels(values, trials, hits)
        if n_coins(levels, state.options.n_draws) <= MAX_RANGE_COINS:
            draws = generator(state.options.random_state)
            return exact_test(levels, n_draws=state.options.n_draws, generator=draws) | extra
    return asymptotic_test(found.value, moments.variance, moments.total) | extra
