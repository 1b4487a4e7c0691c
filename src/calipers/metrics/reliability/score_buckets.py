"""Sums over buckets of the score, equal ones and ones with any edges."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays.search import SortedColumn
from calipers.metrics.reliability.block_scores import ScoredRows

# Rows added at a time: what is made of them stays in the cache of one core.
_CHUNK = 1 << 16

Place = Callable[[np.ndarray], np.ndarray]


class BucketSums:
    """Sums over the rows of every bucket, and its smallest and largest score.

    What belongs to a bucket lies together, eight numbers of one line of the processor's memory, which is how
    compiled kernels fill it. Sums that numpy adds lie column by column until they are read.
    """

    # rises, falls, weight, weighted score, weighted outcome, weighted squared residual
    N_SUMS = 6

    def __init__(self, n: int) -> None:
        self.n = n
        self._table = np.zeros((n, self.N_SUMS + 2))
        self._table[:, self.N_SUMS :] = np.inf, -np.inf
        self._columns: _Columns | None = None
        # Squared residuals with squared weights; None while every row counts once.
        self.squares: np.ndarray | None = None

    @property
    def table(self) -> np.ndarray:
        """Six sums and two ends of every bucket, (n, 8)."""
        self.settle()
        return self._table

    def settle(self) -> None:
        """Add up what was added column by column."""
        columns, self._columns = self._columns, None
        if columns is not None:
            columns.add_to(self._table)

    @property
    def sums(self) -> np.ndarray:
        """The six sums, (6, n)."""
        return np.asarray(self.table[:, : self.N_SUMS].T)

    @property
    def low(self) -> np.ndarray:
        """Smallest score of every bucket; infinite where there is none."""
        return np.asarray(self.table[:, self.N_SUMS])

    @property
    def high(self) -> np.ndarray:
        """Largest score of every bucket; minus infinity where there is none."""
        return np.asarray(self.table[:, self.N_SUMS + 1])

    @property
    def noise(self) -> np.ndarray:
        """Squared residuals with squared weights, of every bucket."""
        return self.table[:, 5] if self.squares is None else self.squares

    def add(self, place: Place, rows: ScoredRows, compiled: Any = None) -> None:
        """Add rows to the buckets that ``place`` finds for their scores."""
        f, y, w = rows
        if compiled is not None and w is None and y.dtype == bool:
            compiled.add_at_buckets(place(f), f, y, self.table)
            return
        if w is not None and self.squares is None:
            self.squares = self.table[:, 5].copy()
        for start in range(0, f.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            self._add_chunk(place(f[part]), f[part], y[part], None if w is None else w[part])

    def _add_chunk(self, bucket: np.ndarray, f: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> None:
        if self.squares is not None:
            residual = (y - f) ** 2
            np.add.at(self.squares, bucket, residual if w is None else w * w * residual)
        if y.dtype != bool:
            self._add_soft(bucket, f, y, w)
            return
        if self._columns is None:
            self._columns = _Columns(self.n)
        self._columns.add(bucket, f, y, w)

    def _add_soft(self, bucket: np.ndarray, f: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> None:
        """Outcomes that are probabilities rise and fall by parts."""
        mass = np.ones(f.size) if w is None else w
        step = mass * (y - f)
        columns = (np.maximum(step, 0.0), np.maximum(-step, 0.0), mass, mass * f, mass * y, step * (y - f))
        for k, column in enumerate(columns):
            np.add.at(self.table[:, k], bucket, column)
        np.minimum.at(self.low, bucket, f)
        np.maximum.at(self.high, bucket, f)

    def merge(self, other: BucketSums) -> None:
        """Add the sums of other rows."""
        if self.squares is not None or other.squares is not None:
            self.squares = self.noise + other.noise
        table, low, high = self.table, np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        table += other.table  # whole, which is faster than six of eight columns
        self.low[:], self.high[:] = low, high

    def take_over(self, other: BucketSums, which: np.ndarray, at: np.ndarray) -> None:
        """Add some buckets of another cut to those given here."""
        if other.squares is not None:
            self.squares = self.noise.copy() if self.squares is None else self.squares
            np.add.at(self.squares, at, other.squares[which])
        for mine, theirs in zip(self.sums, other.sums, strict=True):
            np.add.at(mine, at, theirs[which])
        np.minimum.at(self.low, at, other.low[which])
        np.maximum.at(self.high, at, other.high[which])

    @property
    def mass(self) -> np.ndarray:
        """Weight of every bucket."""
        return np.asarray(self.table[:, 2])

    @property
    def is_mixed(self) -> np.ndarray:
        """Which buckets hold several scores."""
        return self.high > self.low

    @property
    def steps(self) -> np.ndarray:
        """What the walk gains over every bucket.

        A bucket of one score takes it from its counts, which are whole, so that a score that is right on
        average steps by exactly 0 where arithmetic allows.
        """
        rises, falls, mass, _, hits, _ = self.sums
        with np.errstate(invalid="ignore"):
            return np.asarray(np.where(self.is_mixed | (mass == 0), rises - falls, hits - mass * self.high))

    @property
    def variance(self) -> np.ndarray:
        """Sum of w f (1 - f) over every bucket: the variance of its events if its scores are right.

        The rows that happened have scores of hits - rises together; squared scores follow from residuals.
        """
        rises, _, _, score, hits, square = self.sums
        return np.asarray(np.maximum(score - square - hits + 2 * rises, 0.0))

    def open_buckets(self, tie: float) -> np.ndarray:
        """Buckets of several scores inside which the walk could pass its extremes at bucket ends."""
        rises, falls = self.sums[:2]
        ends = np.cumsum(self.steps)
        starts = np.concatenate([[0.0], ends[:-1]])
        over = starts + rises >= max(0.0, float(ends.max())) - tie
        under = starts - falls <= min(0.0, float(ends.min())) + tie
        return np.asarray((over | under) & self.is_mixed)


class _Columns:
    """Weight, scores and squared scores by (bucket, outcome), which hold all six sums of events."""

    def __init__(self, n: int) -> None:
        self.mass, self.score, self.square = np.zeros((3, 2 * n))
        self.low, self.high = np.full(n, np.inf), np.full(n, -np.inf)

    def add(self, bucket: np.ndarray, f: np.ndarray, y: np.ndarray, w: np.ndarray | None) -> None:
        np.minimum.at(self.low, bucket, f)
        np.maximum.at(self.high, bucket, f)
        cell = 2 * bucket + y
        scored = f if w is None else w * f
        np.add.at(self.mass, cell, 1.0 if w is None else w)
        np.add.at(self.score, cell, scored)
        np.add.at(self.square, cell, scored * f)

    def add_to(self, table: np.ndarray) -> None:
        """Into the lines of the buckets."""
        mass, score, square = (column.reshape(-1, 2).T for column in (self.mass, self.score, self.square))
        table[:, 0] += mass[1] - score[1]
        table[:, 1] += score[0]
        table[:, 2] += mass[0] + mass[1]
        table[:, 3] += score[0] + score[1]
        table[:, 4] += mass[1]
        table[:, 5] += square[0] + (mass[1] - 2 * score[1] + square[1])
        np.minimum(table[:, 6], self.low, out=table[:, 6])
        np.maximum(table[:, 7], self.high, out=table[:, 7])


@dataclass(frozen=True, slots=True)
class EqualBuckets:
    """The bucket of every score among n equal ones between two ends.

    Parameters
    ----------
    n : int
        Buckets; on [0, 1] a power of two, so that nothing is rounded.
    low, high : float
        The ends, which no score passes.
    """

    n: int
    low: float = 0.0
    high: float = 1.0

    def __call__(self, f: np.ndarray) -> np.ndarray:
        """Bucket numbers; subtraction, multiplication and truncation are monotone in floating point too."""
        found = ((f - self.low if self.low else f) * self.scale).astype(np.int64)
        return np.minimum(found, self.n - 1, out=found)

    @property
    def scale(self) -> float:
        """Buckets per unit of the score."""
        width = self.high - self.low
        return self.n / width if width > 1e-290 else 0.0

    @property
    def equal(self) -> EqualBuckets:
        """These; see `Grid`."""
        return self

    @property
    def edges(self) -> np.ndarray:
        """None of them is cut; see `Grid`."""
        return np.empty(0)

    def touched(self, marked: np.ndarray) -> np.ndarray:
        """Those marked; see `Grid`."""
        return marked


class Grid:
    """Equal buckets, some of them cut by further edges: only scores in a cut bucket are searched for.

    Parameters
    ----------
    equal : EqualBuckets
        The buckets that are cut.
    edges : array
        Increasing; an edge belongs to the bucket above it.
    """

    __slots__ = ("column", "edges", "equal", "first", "is_cut", "n")

    def __init__(self, equal: EqualBuckets, edges: np.ndarray) -> None:
        self.equal, self.edges, self.n = equal, edges, equal.n + edges.size
        self.column = SortedColumn(edges)
        inside = np.bincount(equal(edges), minlength=equal.n)
        self.is_cut = inside > 0
        # Edges below the bucket, each of which adds one bucket before it.
        self.first = np.arange(equal.n) + np.cumsum(inside) - inside

    def touched(self, marked: np.ndarray) -> np.ndarray:
        """Which equal buckets hold one of the marked buckets."""
        before = np.concatenate([[0], np.cumsum(marked)])
        return np.asarray(before[np.append(self.first[1:], marked.size)] > before[self.first])

    def __call__(self, f: np.ndarray) -> np.ndarray:
        """The bucket of every score."""
        equal = self.equal(f)
        bucket = self.first[equal]
        cut = np.flatnonzero(self.is_cut[equal])
        bucket[cut] = equal[cut] + self.column.search(f[cut], side="right")
        return np.asarray(bucket)
