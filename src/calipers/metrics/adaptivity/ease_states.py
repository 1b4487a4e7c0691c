"""Metrics over bins of equal mass along the ease, exactly, without keeping the rows.

The bins of eq. 2 need the values at certain ranks. A first pass finds the range; the next ones count
rows in narrow buckets, ever narrower around each wanted rank; the last counts distinct rows, with the
ease kept only inside the few buckets that hold an edge. Between two such buckets every row belongs to
the same bin, so their ease may be forgotten. The metric's own function then bins the distinct rows by
their counts: the same ranks, the same ties, the same answer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from calipers.arrays.ordered_bits import float_to_rank, rank_to_float
from calipers.difficulty import uniform_mass_limits
from calipers.inference.state import Result, State
from calipers.inputs.categorical import Categorical
from calipers.inputs.rows import Rows
from calipers.inputs.weights import are_whole
from calipers.metrics.entry import MetricEntry
from calipers.metrics.states.counts import CountState, distinct_rows

_N_BUCKETS = 1 << 16
# An edge bucket with at most this mass is narrow enough to keep the values inside it.
_NARROW = 20_000.0
_DEFAULT_BINS = 50


class EaseRangeState(State):
    """First pass: smallest and largest ease, and the total mass.

    Parameters
    ----------
    function : callable
        Takes the columns and ``sample_weight``; among the columns is the ease.
    columns : tuple of str
        Its data arguments, as columns of a block.
    options : dict
        Its keyword arguments; ``n_bins`` says where the edges lie. An option that is a function is called
        with the number of rows, counted by their weights where these are whole numbers.
    ease : str
        Which of the columns is the ease.
    """

    __slots__ = ("columns", "ease", "function", "high", "low", "mass", "options", "rows", "whole")

    def __init__(
        self,
        function: Callable[..., Any],
        columns: tuple[str, ...],
        options: dict[str, Any],
        ease: str = "ease",
    ) -> None:
        self.function, self.columns, self.options, self.ease = function, columns, options, ease
        self.low, self.high, self.mass, self.whole = np.inf, -np.inf, 0.0, True
        self.rows = 0

    @property
    def needs(self) -> frozenset[str]:
        """Ease and weights."""
        return frozenset({self.ease, "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Widen the range."""
        ease = block[self.ease]
        self.low, self.high = min(self.low, float(ease.min())), max(self.high, float(ease.max()))
        self.mass += block.n if block.weights is None else float(block.weights.sum())
        self.rows += block.n
        self.whole = self.whole and are_whole(block.weights)

    def merge(self, other: Self) -> Self:
        """The range of both."""
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.mass, self.whole = self.mass + other.mass, self.whole and other.whole
        self.rows += other.rows
        return self

    def advance(self) -> State:
        """Count rows in buckets over the whole range."""
        count = int(self.mass) if self.whole else self.rows
        self.options = {k: v(count) if callable(v) else v for k, v in self.options.items()}
        n_bins = int(self.options.get("n_bins", _DEFAULT_BINS))
        limits = uniform_mass_limits(int(self.mass) if self.whole else self.mass, n_bins)[1:-1]
        return EaseBucketState(self, [(self.low, self.high, 0.0)], np.asarray(limits, dtype=float))

    def finish(self) -> Result:
        """Never the last pass."""
        raise RuntimeError("the range of the ease is only the first pass")


class EaseBucketState(State):
    """Counting passes: mass in narrow buckets inside each interval that still holds an edge."""

    __slots__ = ("counts", "intervals", "limits", "origin")

    def __init__(
        self, origin: EaseRangeState, intervals: list[tuple[float, float, float]], limits: np.ndarray
    ) -> None:
        # An interval is (low, high, mass below it).
        self.origin, self.intervals, self.limits = origin, intervals, limits
        self.counts = np.zeros((len(intervals), _N_BUCKETS))

    @property
    def needs(self) -> frozenset[str]:
        """Ease and weights."""
        return self.origin.needs

    @property
    def is_first(self) -> bool:
        """Whether the buckets cut the whole range."""
        return self.intervals == [(self.origin.low, self.origin.high, 0.0)]

    def absorb(self, block: Rows) -> None:
        """Count the rows of each interval."""
        ease, weights = block[self.origin.ease], block.weights
        if self.is_first and weights is None and (compiled := block.kernels) is not None:
            low, high, _ = self.intervals[0]
            compiled.count_in_buckets(ease, low, bucket_scale(low, high), self.counts[0])
            return
        ease = ease.astype(np.float64)
        for k, (low, high, _) in enumerate(self.intervals):
            own, mass = ease, weights
            if not self.is_first:
                inside = (ease >= low) & (ease <= high)
                own, mass = ease[inside], None if weights is None else weights[inside]
            bucket = bucket_of(own, low, high)
            self.counts[k] += np.bincount(bucket, weights=mass, minlength=_N_BUCKETS)

    def merge(self, other: Self) -> Self:
        """Add the counts."""
        self.counts += other.counts
        return self

    def advance(self) -> State:
        """Narrower buckets where one with an edge is still crowded, else the last pass."""
        found = self._edge_buckets()
        crowded = [piece for piece in found if piece[3] > _NARROW and _can_split(piece[0], piece[1])]
        if crowded:
            return EaseBucketState(self.origin, [(a, b, below) for a, b, below, _ in found], self.limits)
        edges = [(low, high) for low, high, _, _ in found]
        return EaseCountState(self.origin, edges)

    def _edge_buckets(self) -> list[tuple[float, float, float, float]]:
        """(low, high, mass below, mass inside) of every bucket that holds a limit."""
        found = {}
        for k, (low, high, below) in enumerate(self.intervals):
            cumulative = below + np.concatenate([[0.0], np.cumsum(self.counts[k])])
            inside = self.limits[(self.limits >= cumulative[0]) & (self.limits <= cumulative[-1])]
            for limit in inside:
                # The row at the limit and the one after it decide where the bin ends.
                for b in {_bucket_at(cumulative, limit), _bucket_at(cumulative, limit + 1)}:
                    ends = bucket_ends(b, low, high)
                    found[ends] = (*ends, float(cumulative[b]), float(self.counts[k][b]))
        return sorted(found.values())

    def finish(self) -> Result:
        """Never the last pass."""
        raise RuntimeError("counting buckets is not the last pass")


class EaseCountState(CountState):
    """Last pass: distinct rows, their ease kept inside edge buckets and replaced by a code elsewhere."""

    __slots__ = ("edges", "middles", "origin", "table")
    SHARED = ("edges", "middles", "table")

    def __init__(self, origin: EaseRangeState, edges: list[tuple[float, float]]) -> None:
        super().__init__(origin.function, origin.columns, origin.options)
        self.origin, self.edges = origin, edges
        lows, highs = (np.array(ends) for ends in zip(*edges, strict=True))
        # A value between two neighbouring edge buckets stands for all values there.
        above, below = np.append(lows, highs[-1] + 2.0), np.append(lows[0] - 2.0, highs)
        self.middles = below + (above - below) / 2
        self.table = _gap_of_buckets(origin.low, origin.high, lows, highs)

    def absorb(self, block: Rows) -> None:
        """Count distinct rows of the block with its shortened ease."""
        ease, compiled = block[self.origin.ease], block.kernels
        columns = [
            self._shorten(ease, compiled) if name == self.origin.ease else block.coded(name)
            for name in self.columns
        ]
        self.add(block, *distinct_rows(columns, block.weights, block.kernels))

    def _shorten(self, ease: np.ndarray, compiled: Any) -> Categorical:
        """Codes of gaps, and of the distinct values inside edge buckets."""
        low, high = self.origin.low, self.origin.high
        if compiled is None:
            gap = self.table[bucket_of(ease.astype(np.float64), low, high)].astype(np.int64)
            unsure = np.flatnonzero(gap < 0)
        else:
            gap, room = np.empty(ease.size, dtype=np.int64), np.empty(ease.size + 1, dtype=np.int64)
            n = compiled.look_up_buckets(ease, low, bucket_scale(low, high), self.table, gap, room)
            unsure = room[:n]
        near = ease[unsure].astype(np.float64)
        lows, highs = (np.array(ends) for ends in zip(*self.edges, strict=True))
        at = np.searchsorted(highs, near, side="left")
        kept = (at < len(lows)) & (near >= lows[np.minimum(at, len(lows) - 1)])
        gap[unsure[~kept]] = at[~kept]
        values, inverse = np.unique(near[kept], return_inverse=True)
        gap[unsure[kept]] = len(self.middles) + inverse.reshape(-1)
        return Categorical(np.concatenate([self.middles, values]), gap)


def _gap_of_buckets(low: float, high: float, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Per bucket of the whole range: the gap all its values lie in, or -1 when it touches an edge bucket."""
    first, last = bucket_of(lows, low, high), bucket_of(highs, low, high)
    gap = np.searchsorted(last, np.arange(_N_BUCKETS), side="left")
    touched = np.zeros(_N_BUCKETS + 1, dtype=np.int64)
    np.add.at(touched, first, 1)
    np.add.at(touched, last + 1, -1)
    return np.where(np.cumsum(touched)[:-1] > 0, -1, gap).astype(np.int32)


def bucket_of(ease: np.ndarray, low: float, high: float) -> np.ndarray:
    """Bucket of every value of [low, high]; non-decreasing in the value."""
    return np.minimum(((ease - low) * bucket_scale(low, high)).astype(np.int64), _N_BUCKETS - 1)


def bucket_scale(low: float, high: float) -> float:
    """Buckets per unit of the ease."""
    width = high - low
    return _N_BUCKETS / width if width > 0 else 0.0


def bucket_ends(bucket: int, low: float, high: float) -> tuple[float, float]:
    """Smallest and largest float of [low, high] in the bucket, found by bisection on the floats."""
    return _first_float(bucket, low, high), _last_float(bucket, low, high)


def _first_float(bucket: int, low: float, high: float) -> float:
    a, b = float_to_rank(low), float_to_rank(high)
    while a < b:
        middle = (a + b) // 2
        if _bucket_of_rank(middle, low, high) >= bucket:
            b = middle
        else:
            a = middle + 1
    return rank_to_float(a)


def _last_float(bucket: int, low: float, high: float) -> float:
    a, b = float_to_rank(low), float_to_rank(high)
    while a < b:
        middle = (a + b + 1) // 2
        if _bucket_of_rank(middle, low, high) <= bucket:
            a = middle
        else:
            b = middle - 1
    return rank_to_float(a)


def _bucket_of_rank(rank: int, low: float, high: float) -> int:
    return int(bucket_of(np.array([rank_to_float(rank)]), low, high)[0])


def _can_split(low: float, high: float) -> bool:
    return float_to_rank(high) - float_to_rank(low) > 1


def _bucket_at(cumulative: np.ndarray, position: float) -> int:
    """Bucket of the row at a 1-based position in sorted mass."""
    b = int(np.searchsorted(cumulative, position, side="left")) - 1
    return min(max(b, 0), len(cumulative) - 2)


def by_ease(entry: MetricEntry, options: dict[str, Any]) -> State:
    """The first pass of a metric over bins of equal mass along the ease."""
    return EaseRangeState(entry.function, entry.inputs, options)
