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

from calipers.difficulty import uniform_mass_limits
from calipers.inference.state import Result, State
from calipers.inputs.categorical import Categorical
from calipers.inputs.rows import Rows
from calipers.inputs.weights import are_whole
from calipers.metrics.entry import MetricEntry
from calipers.metrics.reliability.score_buckets import EqualBuckets
from calipers.metrics.states.counts import CountState, distinct_rows

_N_BUCKETS, _FEWEST_BUCKETS = 1 << 16, 1 << 10
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
        return EaseBucketState(self, [(self.place, 0.0)], np.asarray(limits, dtype=float))

    @property
    def place(self) -> EqualBuckets:
        """Buckets over the whole range."""
        return EqualBuckets(_N_BUCKETS, self.low, self.high)

    def finish(self) -> Result:
        """Never the last pass."""
        raise RuntimeError("the range of the ease is only the first pass")


class EaseBucketState(State):
    """Counting passes: mass in narrow buckets inside each interval that still holds an edge."""

    __slots__ = ("counts", "highs", "limits", "lows", "origin", "pieces")

    def __init__(
        self, origin: EaseRangeState, pieces: list[tuple[EqualBuckets, float]], limits: np.ndarray
    ) -> None:
        # Buckets of an interval, and the mass below it.
        self.origin, self.pieces, self.limits = origin, pieces, limits
        shape = (len(pieces), pieces[0][0].n)
        self.counts, self.lows, self.highs = np.zeros(shape), np.full(shape, np.inf), np.full(shape, -np.inf)

    @property
    def needs(self) -> frozenset[str]:
        """Ease and weights."""
        return self.origin.needs

    def absorb(self, block: Rows) -> None:
        """Count the rows of each interval, and find the ends of its buckets."""
        ease, weights = block[self.origin.ease], block.weights
        for k, (place, _) in enumerate(self.pieces):
            if len(self.pieces) == 1 and weights is None and (compiled := block.kernels) is not None:
                ends = self.lows[k], self.highs[k]
                compiled.count_in_buckets(ease, place.low, place.scale, self.counts[k], *ends)
                continue
            inside = np.flatnonzero((ease >= place.low) & (ease <= place.high))
            own = ease[inside].astype(np.float64)
            bucket = place(own)
            mass = None if weights is None else weights[inside]
            self.counts[k] += np.bincount(bucket, weights=mass, minlength=place.n)
            np.minimum.at(self.lows[k], bucket, own)
            np.maximum.at(self.highs[k], bucket, own)

    def merge(self, other: Self) -> Self:
        """Add the counts."""
        self.counts += other.counts
        np.minimum(self.lows, other.lows, out=self.lows)
        np.maximum(self.highs, other.highs, out=self.highs)
        return self

    def advance(self) -> State:
        """Narrower buckets where one with an edge holds many rows of several values, else the last pass."""
        found = self._edge_buckets()
        if all(mass <= _NARROW or low == high for low, high, _, mass in found):
            return EaseCountState(self.origin, [(low, high) for low, high, _, _ in found])
        n = max(_FEWEST_BUCKETS, _N_BUCKETS // len(found))
        pieces = [(EqualBuckets(n, low, high), below) for low, high, below, _ in found]
        return EaseBucketState(self.origin, pieces, self.limits)

    def _edge_buckets(self) -> list[tuple[float, float, float, float]]:
        """(lowest, highest value, mass below, mass inside) of every bucket that holds a limit."""
        found = set()
        for k, (_, below) in enumerate(self.pieces):
            cumulative = below + np.concatenate([[0.0], np.cumsum(self.counts[k])])
            inside = self.limits[(self.limits >= cumulative[0]) & (self.limits <= cumulative[-1])]
            # The row at the limit and the one after it decide where the bin ends.
            at = np.searchsorted(cumulative, np.concatenate([inside, inside + 1]), side="left") - 1
            for b in np.unique(np.clip(at, 0, self.counts.shape[1] - 1)):
                if self.counts[k, b] > 0:
                    ends = float(self.lows[k, b]), float(self.highs[k, b])
                    found.add((*ends, float(cumulative[b]), float(self.counts[k, b])))
        return sorted(found)

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
        self.table = _gap_of_buckets(origin.place, lows, highs)

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
        place = self.origin.place
        if compiled is None:
            gap = self.table[place(ease.astype(np.float64))].astype(np.int64)
            unsure = np.flatnonzero(gap < 0)
        else:
            gap, room = np.empty(ease.size, dtype=np.int64), np.empty(ease.size + 1, dtype=np.int64)
            n = compiled.look_up_buckets(ease, place.low, place.scale, self.table, gap, room)
            unsure = room[:n]
        near = ease[unsure].astype(np.float64)
        lows, highs = (np.array(ends) for ends in zip(*self.edges, strict=True))
        at = np.searchsorted(highs, near, side="left")
        kept = (at < len(lows)) & (near >= lows[np.minimum(at, len(lows) - 1)])
        gap[unsure[~kept]] = at[~kept]
        values, inverse = np.unique(near[kept], return_inverse=True)
        gap[unsure[kept]] = len(self.middles) + inverse.reshape(-1)
        return Categorical(np.concatenate([self.middles, values]), gap)


def _gap_of_buckets(place: EqualBuckets, lows: np.ndarray, highs: np.ndarray) -> np.ndarray:
    """Per bucket of the whole range: the gap all its values lie in, or -1 when it touches an edge bucket."""
    first, last = place(lows), place(highs)
    gap = np.searchsorted(last, np.arange(place.n), side="left")
    touched = np.zeros(place.n + 1, dtype=np.int64)
    np.add.at(touched, first, 1)
    np.add.at(touched, last + 1, -1)
    return np.where(np.cumsum(touched)[:-1] > 0, -1, gap).astype(np.int32)


def by_ease(entry: MetricEntry, options: dict[str, Any]) -> State:
    """The first pass of a metric over bins of equal mass along the ease."""
    return EaseRangeState(entry.function, entry.inputs, options)
