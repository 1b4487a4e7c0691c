"""The largest discrepancy over all score intervals, exactly, in expected linear time.

Over sorted scores let C be the running sum of w (y - f), read only at the last row of each block of
equal scores, with a leading 0. Every interval (p1, p2] is a difference of two such readings, so

    c_emp = (max C - min C) / sum w

and the scores at the two extremes are the ends of the maximising interval. Sorting everything is not
needed: rows are dropped into buckets of neighbouring scores, and inside bucket b the walk cannot leave
[start - sum of falls, start + sum of rises]. Only buckets whose box reaches beyond the extremes seen at
bucket ends are sorted, a few rows in a thousand on spread-out scores. In the worst case all are, and the
cost is that of one sort of packed 64-bit keys, still below an argsort.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calipers.arrays import Array, namespace
from calipers.metrics.reliability.rows import BLOCK, BinaryRows

_N_BUCKETS = 1 << 15
# Readings closer than this share of the total weight are one reading: the first of them gives the end of
# the interval, so that the order of rows (the order of rounding) does not decide.
_TIE = 1e-14


@dataclass(frozen=True, slots=True)
class SupInterval:
    """The sup-interval error and where it is.

    Parameters
    ----------
    value : float
        c_emp, in [0, 1].
    low, high : float
        The interval (low, high] of scores; low is -inf when it starts below every score. NaN when no
        interval stands out (value 0 up to rounding).
    sign : int
        1 when the event happens more often there than stated, -1 when less often, 0 when value is 0.
    """

    value: float
    low: float
    high: float
    sign: int


@dataclass(slots=True)
class _Extreme:
    """Highest reading so far of ``direction`` times the walk, and the first and last score that read it."""

    direction: int
    tie: float
    level: float = 0.0
    first: float = -math.inf
    last: float = -math.inf

    def update(self, levels: np.ndarray, scores: np.ndarray) -> None:
        best = float(levels.max() if self.direction > 0 else -levels.min())
        if best < self.level - self.tie:
            return
        is_new = best > self.level + self.tie
        self.level = max(self.level, best)
        reached = np.flatnonzero(self.direction * levels >= self.level - self.tie)
        if is_new:
            self.first = float(scores[reached[0]])
        self.last = float(scores[reached[-1]]) if reached.size else self.last


def sup_interval(rows: BinaryRows) -> SupInterval:
    """c_emp, its interval and its sign; ties are pooled, -0.0 equals 0.0, any array library.

    Where several intervals attain the maximum, a narrow one is reported: zero steps at its ends are left out.
    """
    total = rows.total
    tie = _TIE * total
    top, bottom = _extremes_on_host(rows, tie) if rows.on_host else _extremes_by_sorting(rows, tie)
    height = top.level + bottom.level
    if height <= 4 * tie:
        return SupInterval(height / total, math.nan, math.nan, 0)
    return SupInterval(height / total, *_between(top, bottom))


def _between(top: _Extreme, bottom: _Extreme) -> tuple[float, float, int]:
    """Ends and sign of the interval between the lowest and the highest reading."""
    if top.last < bottom.first:
        return top.last, bottom.first, -1
    if bottom.last < top.first:
        return bottom.last, top.first, 1
    low, high = sorted((top.first, bottom.first))
    return low, high, 1 if top.first == high else -1


def _extremes_by_sorting(rows: BinaryRows, tie: float) -> tuple[_Extreme, _Extreme]:
    """Sort and cumulate where the rows lie; only the extremes come to the host."""
    xp = namespace(rows.scores)
    f, y, w = next(rows.blocks())
    order = xp.argsort(f)
    residuals = (y - f) if w is None else w * (y - f)
    f, walk = xp.take(f, order), xp.cumulative_sum(xp.take(residuals, order))
    last = xp.ones((1,), dtype=xp.bool, device=f.device)
    is_end = xp.concat([f[1:] != f[:-1], last])
    return _device_extreme(f, walk, is_end, 1, tie), _device_extreme(f, walk, is_end, -1, tie)


def _device_extreme(f: Array, walk: Array, is_end: Array, direction: int, tie: float) -> _Extreme:
    xp = namespace(f)
    nowhere = xp.asarray(-math.inf, dtype=xp.float64, device=f.device)
    readings = xp.where(is_end, direction * walk, nowhere)
    level = max(0.0, float(xp.max(readings)))
    reached = xp.nonzero(readings >= level - tie)[0]
    if reached.shape[0] == 0:
        return _Extreme(direction, tie)
    first, last = (float(f[int(reached[end])]) + 0.0 for end in (0, reached.shape[0] - 1))
    return _Extreme(direction, tie, level, first if level > tie else -math.inf, last)


class _Buckets:
    """A non-decreasing map from scores to buckets: equal widths between the smallest and largest score."""

    def __init__(self, scores: np.ndarray) -> None:
        self.low = float(scores.min())
        width = min(1.0, float(scores.max())) - self.low
        # Subtraction, multiplication and truncation are monotone in floating point too.
        self.scale = _N_BUCKETS / width if width > 1e-290 else 0.0

    def __call__(self, f: np.ndarray) -> np.ndarray:
        index = ((f - self.low) * self.scale).astype(np.int64)
        return np.minimum(index, _N_BUCKETS - 1, out=index)


def _extremes_on_host(rows: BinaryRows, tie: float) -> tuple[_Extreme, _Extreme]:
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
    moves = np.zeros(2 * _N_BUCKETS)
    for f, y, w in rows.blocks():
        step = y - f if w is None else w * (y - f)
        keys = buckets(f)
        keys <<= 1
        keys |= step > 0
        moves += np.bincount(keys, np.abs(step, out=step), minlength=2 * _N_BUCKETS)
    return moves[1::2], moves[::2]


def _packed_keys(rows: BinaryRows, buckets: _Buckets, chosen: np.ndarray) -> np.ndarray:
    """Sorted keys of the rows in chosen buckets: the bits of the score, then the outcome as last bit.

    Bits of non-negative floats are ordered like the floats; scores up to 1 leave the top two bits free.
    """
    parts = []
    for f, y, _ in rows.blocks():
        keys = (f + 0.0).view(np.uint64) << np.uint64(1)
        keys |= y.astype(np.uint64)
        parts.append(keys if chosen.all() else keys[chosen[buckets(f)]])
    packed = np.concatenate(parts)
    packed.sort()
    return packed


def _walk_packed(
    keys: np.ndarray, buckets: _Buckets, starts: np.ndarray, tie: float
) -> tuple[_Extreme, _Extreme]:
    walk = _Walk(buckets, starts, tie)
    for begin in range(0, keys.size, BLOCK):
        block = keys[begin : begin + BLOCK + 1]
        f = (block >> np.uint64(1)).view(np.float64)
        outcomes = (block[:BLOCK] & np.uint64(1)).astype(np.float64)
        walk.read(f, outcomes - f[:BLOCK])
    return walk.top, walk.bottom


def _walk_general(
    rows: BinaryRows, buckets: _Buckets, chosen: np.ndarray, starts: np.ndarray, tie: float
) -> tuple[_Extreme, _Extreme]:
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
        self.top, self.bottom = _Extreme(1, tie), _Extreme(-1, tie)
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
        if is_end.any():
            self.top.update(levels[is_end], here[is_end])
            self.bottom.update(levels[is_end], here[is_end])
