"""Sums over buckets of the score, equal ones and ones with any edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.metrics.reliability.score_columns import ScoredRows


class BucketSums:
    """Sums over the rows of every bucket, and its smallest and largest score.

    What belongs to a bucket lies together, eight numbers of one line of the processor's memory.
    """

    # rises, falls, weight, weighted score, weighted outcome, squared weighted residual
    N_SUMS = 6

    def __init__(self, n: int) -> None:
        self.table = np.zeros((n, self.N_SUMS + 2))
        self.low[:], self.high[:] = np.inf, -np.inf

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

    def add(self, bucket: np.ndarray, rows: ScoredRows, compiled: Any = None) -> None:
        """Add rows that fall into the given buckets."""
        f, y, w = rows
        if compiled is not None and w is None:
            compiled.add_at_buckets(bucket, f, y, self.table)
            return
        if w is None and bucket.size > self.low.size:
            self._add_single_rows(bucket, f, y)
        else:
            step = (y - f) if w is None else w * (y - f)
            mass = np.ones(f.size) if w is None else w
            columns = (np.maximum(step, 0.0), np.maximum(-step, 0.0), mass, mass * f, mass * y, step * step)
            for k, column in enumerate(columns):
                np.add.at(self.table[:, k], bucket, column)
        np.minimum.at(self.low, bucket, f)
        np.maximum.at(self.high, bucket, f)

    def _add_single_rows(self, bucket: np.ndarray, f: np.ndarray, y: np.ndarray) -> None:
        """Three counts over (bucket, outcome) hold all six sums when every row counts once."""
        n, cell = self.low.size, 2 * bucket + y
        count = np.bincount(cell, minlength=2 * n).reshape(n, 2).T
        score = np.bincount(cell, weights=f, minlength=2 * n).reshape(n, 2).T
        square = np.bincount(cell, weights=f * f, minlength=2 * n).reshape(n, 2).T
        found = (
            count[1] - score[1],
            score[0],
            count[0] + count[1],
            score[0] + score[1],
            count[1],
            square[0] + (count[1] - 2 * score[1] + square[1]),
        )
        for k, column in enumerate(found):
            self.table[:, k] += column

    def merge(self, other: BucketSums) -> None:
        """Add the sums of other rows."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.table += other.table  # whole, which is faster than six of eight columns
        self.low[:], self.high[:] = low, high

    @property
    def rises(self) -> np.ndarray:
        """Upward steps of the walk in every bucket."""
        return np.asarray(self.sums[0])

    @property
    def falls(self) -> np.ndarray:
        """Downward steps, as positive numbers."""
        return np.asarray(self.sums[1])

    def open_buckets(self, tie: float) -> np.ndarray:
        """Buckets of several scores inside which the walk could pass its extremes at bucket ends."""
        ends = np.cumsum(self.rises - self.falls)
        starts = np.concatenate([[0.0], ends[:-1]])
        over = starts + self.rises >= max(0.0, float(ends.max())) - tie
        under = starts - self.falls <= min(0.0, float(ends.min())) + tie
        return np.asarray((over | under) & (self.high > self.low))


def equal_bucket(f: np.ndarray, n_buckets: int) -> np.ndarray:
    """The bucket of every score among equal ones, a power of two of them, so that nothing is rounded."""
    return np.minimum((f * n_buckets).astype(np.int64), n_buckets - 1)


class Grid:
    """Buckets with any edges, found by way of equal ones: only scores in a cut bucket are searched for.

    Parameters
    ----------
    edges : array
        Inner edges, increasing; those of the equal buckets are among them.
    n_buckets : int
        Equal buckets on [0, 1], a power of two.
    """

    __slots__ = ("edges", "first", "is_cut", "n_buckets")

    def __init__(self, edges: np.ndarray, n_buckets: int) -> None:
        self.edges, self.n_buckets = edges, n_buckets
        ends = np.arange(n_buckets + 1) / n_buckets
        self.first = np.searchsorted(edges, ends[:-1], side="right")
        self.is_cut = np.searchsorted(edges, ends[1:], side="left") > self.first

    def touched(self, marked: np.ndarray) -> np.ndarray:
        """Which equal buckets hold one of the marked buckets."""
        before = np.concatenate([[0], np.cumsum(marked)])
        return np.asarray(before[np.append(self.first[1:], marked.size)] > before[self.first])

    def bucket_of(self, f: np.ndarray) -> np.ndarray:
        """The bucket of every score; an edge belongs to the bucket above it."""
        equal = equal_bucket(f, self.n_buckets)
        bucket = self.first[equal]
        cut = np.flatnonzero(self.is_cut[equal])
        bucket[cut] = np.searchsorted(self.edges, f[cut], side="right")
        return np.asarray(bucket)
