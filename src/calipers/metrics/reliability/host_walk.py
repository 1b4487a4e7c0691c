"""Extremes of the walk of w (y - f) over sorted scores, on the host, in expected linear time.

Rows are dropped into buckets of neighbouring scores, and inside bucket b the walk cannot leave
[start - sum of falls, start + sum of rises]. Only buckets whose box reaches beyond the extremes seen at
bucket ends are sorted, a few rows in a thousand on spread-out scores. In the worst case all are, and the
cost is that of one sort of packed 64-bit keys, still below an argsort. Scores that come sorted are
walked as they are, and scores with few or many ties are counted level by level.
"""

from __future__ import annotations

import numpy as np

from calipers.arrays.ordered_bits import pack_outcomes, unpack_outcomes, unpack_scores
from calipers.metrics.reliability.extremes import Extreme
from calipers.metrics.reliability.levels import packed_levels
from calipers.metrics.reliability.rows import BLOCK, BinaryRows

_N_BUCKETS = 1 << 15
# Rows looked at to choose a way; every way is exact, so a misleading sample costs time only.
_SAMPLE = 2048
# Up to so many levels, comparing all rows with each level is faster than any sort.
_FEW_LEVELS = 32
_CACHED = 1 << 15
_RUN = 64

Extremes = tuple[Extreme, Extreme]


def extremes_on_host(rows: BinaryRows, tie: float) -> Extremes:
    """Highest and lowest reading of the walk over checked numpy rows."""
    if rows.weights is None and not rows.soft:
        sample = np.unique(rows.scores[:: max(1, rows.n // _SAMPLE)])
        found = _extremes_of_ties(rows, sample, tie)
        if found is not None:
            return found
    return _extremes_of_sorted(rows, tie) or _extremes_by_buckets(rows, tie)


def _extremes_of_ties(rows: BinaryRows, sample: np.ndarray, tie: float) -> Extremes | None:
    """From counts by level, when a sample of the scores repeats its values; None otherwise."""
    if sample.size <= _FEW_LEVELS and sample[-1] <= 1:
        counts = _count_levels(rows, sample)
        if counts is not None:
            return _walk_levels(sample.astype(np.float64) + 0.0, *counts, tie)
    if rows.n > 2 * _SAMPLE and sample.size <= _SAMPLE // 2:
        levels = packed_levels(rows)
        return _walk_levels(levels.values, levels.trials, levels.hits, tie)
    return None


def _count_levels(rows: BinaryRows, values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows and events at each value; None as soon as a row has another score."""
    trials, hits = np.zeros(values.size), np.zeros(values.size)
    for start in range(0, rows.n, _CACHED):
        f, y = rows.scores[start : start + _CACHED], rows.outcomes[start : start + _CACHED]
        seen = 0
        for k, value in enumerate(values):
            at = f == value
            count = int(np.count_nonzero(at))
            trials[k] += count
            hits[k] += np.count_nonzero(np.logical_and(at, y, out=at))
            seen += count
        if seen < f.size:
            return None
    return trials, hits


def _walk_levels(values: np.ndarray, trials: np.ndarray, hits: np.ndarray, tie: float) -> Extremes:
    top, bottom = Extreme(1, tie), Extreme(-1, tie)
    # Counts are whole, so a level that is right on average steps by exactly 0 where arithmetic allows.
    levels = np.cumsum(hits - trials * values)
    top.update(levels, values)
    bottom.update(levels, values)
    return top, bottom


def _extremes_of_sorted(rows: BinaryRows, tie: float) -> Extremes | None:
    """Walk over scores that are in order already; None at the first one that is not."""
    top, bottom = Extreme(1, tie), Extreme(-1, tie)
    level, largest = 0.0, 1.0 if rows.weights is None else float(rows.weights.max())
    if rows.scores[-1] > 1:
        return None
    for start in range(0, rows.n, _CACHED):
        here = rows.scores[start : start + _CACHED]
        after = rows.scores[start + 1 : start + _CACHED + 1]
        is_end = np.less(here[: after.size], after)
        if not is_end.all() and np.greater(here[: after.size], after).any():
            return None
        part = slice(start, start + here.size)
        steps = np.subtract(rows.outcomes[part], here, dtype=np.float64)
        if rows.weights is not None:
            steps *= rows.weights[part]
        # The last row of all has none after it, and ends its block.
        is_end = is_end if after.size == here.size else np.append(is_end, True)
        level = _walk_block((top, bottom), level, largest, steps, here, is_end)
    return top, bottom


def _walk_block(
    extremes: Extremes,
    level: float,
    largest: float,
    steps: np.ndarray,
    scores: np.ndarray,
    is_end: np.ndarray,
) -> float:
    """Walk over one sorted block unless it cannot reach an extreme; the level after it.

    ``largest`` bounds the size of a step.
    """
    top, bottom = extremes
    if steps.size % _RUN == 0:
        # A running sum is slow (each addition waits for the one before), sums of short runs are not.
        ends = level + np.cumsum(steps.reshape(-1, _RUN).sum(axis=1))
        reach = _RUN * largest + top.tie
        if ends.max() + reach < top.level and reach - ends.min() < bottom.level:
            return float(ends[-1])
    steps[0] += level
    walk = np.cumsum(steps, out=steps)
    _read_ends(top, bottom, walk, scores, is_end)
    return float(walk[-1])


def _read_ends(
    top: Extreme, bottom: Extreme, walk: np.ndarray, scores: np.ndarray, is_end: np.ndarray
) -> None:
    if not is_end.all():
        walk, scores = walk[is_end], scores[is_end]
    if walk.size:
        top.update(walk, scores)
        bottom.update(walk, scores)


class _Buckets:
    """A non-decreasing map from scores to buckets: equal widths between the smallest and largest score."""

    def __init__(self, scores: np.ndarray) -> None:
        # A short sample is sorted as a whole: one bucket.
        self.count = _N_BUCKETS if scores.size > _N_BUCKETS else 1
        self.low = float(scores.min())
        width = min(1.0, float(scores.max())) - self.low
        # Subtraction, multiplication and truncation are monotone in floating point too.
        self.scale = self.count / width if width > 1e-290 else 0.0

    def __call__(self, f: np.ndarray) -> np.ndarray:
        index = ((f - self.low) * self.scale).astype(np.int64)
        return np.minimum(index, self.count - 1, out=index)


def _extremes_by_buckets(rows: BinaryRows, tie: float) -> Extremes:
    buckets = _Buckets(rows.scores)
    rises, falls = _bucket_moves(rows, buckets)
    ends = np.cumsum(rises - falls)
    starts = np.concatenate([[0.0], ends[:-1]])
    # A bucket matters when its box reaches the highest or lowest reading at a bucket end.
    open_top = starts + rises >= max(0.0, float(ends.max())) - tie
    open_bottom = starts - falls <= min(0.0, float(ends.min())) + tie
    chosen = open_top | open_bottom
    if rows.weights is None and not rows.soft:
        return _walk_packed(_packed_keys(rows, buckets, chosen), buckets, starts, tie)
    return _walk_general(rows, buckets, chosen, starts, tie)


def _bucket_moves(rows: BinaryRows, buckets: _Buckets) -> tuple[np.ndarray, np.ndarray]:
    """Sum of upward and of downward steps in every bucket, by one count over doubled bucket numbers."""
    moves = np.zeros(2 * buckets.count)
    for f, y, w in rows.blocks():
        step = y - f if w is None else w * (y - f)
        keys = buckets(f)
        keys <<= 1
        keys |= step > 0
        moves += np.bincount(keys, np.abs(step, out=step), minlength=2 * buckets.count)
    return moves[1::2], moves[::2]


def _packed_keys(rows: BinaryRows, buckets: _Buckets, chosen: np.ndarray) -> np.ndarray:
    """Sorted keys of the rows in chosen buckets, each a score and an outcome."""
    parts = []
    for f, y, _ in rows.blocks():
        keys = pack_outcomes(f, y)
        parts.append(keys if chosen.all() else keys[chosen[buckets(f)]])
    packed = np.concatenate(parts)
    packed.sort()
    return packed


def _walk_packed(keys: np.ndarray, buckets: _Buckets, starts: np.ndarray, tie: float) -> Extremes:
    walk = _Walk(buckets, starts, tie)
    for begin in range(0, keys.size, BLOCK):
        block = keys[begin : begin + BLOCK + 1]
        f = unpack_scores(block)
        outcomes = unpack_outcomes(block[:BLOCK]).astype(np.float64)
        walk.read(f, outcomes - f[:BLOCK])
    return walk.top, walk.bottom


def _walk_general(
    rows: BinaryRows, buckets: _Buckets, chosen: np.ndarray, starts: np.ndarray, tie: float
) -> Extremes:
    """The walk with weights or soft labels, whose steps do not fit into a key."""
    kept_f, kept_steps = [], []
    for f, y, w in rows.blocks():
        kept = chosen[buckets(f)]
        kept_f.append(f[kept])
        kept_steps.append(((y - f) if w is None else w * (y - f))[kept])
    f, steps = np.concatenate(kept_f), np.concatenate(kept_steps)
    order = np.argsort(f)
    walk = _Walk(buckets, starts, tie)
    for begin in range(0, f.size, BLOCK):
        block = order[begin : begin + BLOCK + 1]
        walk.read(f[block] + 0.0, steps[block[:BLOCK]])
    return walk.top, walk.bottom


class _Walk:
    """Reads sorted blocks of rows, each bucket from its own start, and remembers the extremes."""

    def __init__(self, buckets: _Buckets, starts: np.ndarray, tie: float) -> None:
        self.buckets, self.starts = buckets, starts
        self.top, self.bottom = Extreme(1, tie), Extreme(-1, tie)
        self.bucket, self.level = -1, 0.0

    def read(self, f: np.ndarray, steps: np.ndarray) -> None:
        """Walk over a block; ``f`` has one row more than ``steps`` unless the block is the last."""
        here, size = f[: steps.size], steps.size
        bucket = self.buckets(here)
        is_new = np.empty(size, dtype=bool)
        is_new[0] = bucket[0] != self.bucket
        np.not_equal(bucket[1:], bucket[:-1], out=is_new[1:])
        running = np.cumsum(steps)
        first = np.flatnonzero(is_new)
        before = np.where(first > 0, running[first - 1], 0.0)
        shifts = np.concatenate([[self.level], self.starts[bucket[first]] - before])
        levels = running + np.repeat(shifts, np.diff(first, prepend=0, append=size))
        self.bucket, self.level = int(bucket[-1]), float(levels[-1])
        is_end = np.ones(size, dtype=bool)
        np.not_equal(f[1 : size + 1], here[: f.size - 1], out=is_end[: f.size - 1])
        _read_ends(self.top, self.bottom, levels, here, is_end)
