"""Rows pooled by time and promise: what was promised, how often, and how often it came true."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calipers.inputs.row_checks import check_time

# Consecutive times are pooled into at most so many cells, of equal rows as far as times allow.
MAX_CELLS = 256


@dataclass(frozen=True, eq=False)
class TimeUnits:
    """Rows of one time and one promise, in order of time and then of the promise.

    Parameters
    ----------
    times : array (m,)
        The times as they were given.
    moments : float64 array (m,)
        The same as numbers in the same order.
    promised : float64 array (m,)
        Promised probability.
    weight, hits, squares : float64 array (m,)
        Sum of the weights of the rows, of the weights of those that came true, and of squared weights.
    whole : bool
        Whether all weights are whole numbers: repeated rows.
    """

    times: np.ndarray
    moments: np.ndarray
    promised: np.ndarray
    weight: np.ndarray
    hits: np.ndarray
    squares: np.ndarray
    whole: bool

    @classmethod
    def of_rows(
        cls, times: np.ndarray, promised: np.ndarray, covered: np.ndarray, weights: np.ndarray | None
    ) -> TimeUnits:
        """Of rows, each with its time, promise and outcome; rows of weight 0 are not there."""
        w = np.ones(len(covered)) if weights is None else weights
        kept = w > 0
        times, promised, w, hits = times[kept], promised[kept], w[kept], (w * covered)[kept]
        whole = bool(np.all(w == np.floor(w)))
        moments = check_time(times) if len(times) else np.empty(0)
        return cls(times, moments, promised, w, hits, w * w, whole).pooled()

    def pooled(self) -> TimeUnits:
        """Equal times and promises once."""
        if not len(self.moments):
            return self
        order = np.lexsort((self.promised, self.moments))
        moments, promised = self.moments[order], self.promised[order]
        is_new = (moments[1:] != moments[:-1]) | (promised[1:] != promised[:-1])
        first = np.flatnonzero(np.append(True, is_new))
        weight, hits, squares = (
            np.add.reduceat(c[order], first) for c in (self.weight, self.hits, self.squares)
        )
        times = self.times[order[first]]
        return TimeUnits(times, moments[first], promised[first], weight, hits, squares, self.whole)

    def with_other(self, other: TimeUnits) -> TimeUnits:
        """Both together."""
        return TimeUnits(
            np.concatenate([self.times, other.times]),
            np.concatenate([self.moments, other.moments]),
            np.concatenate([self.promised, other.promised]),
            np.concatenate([self.weight, other.weight]),
            np.concatenate([self.hits, other.hits]),
            np.concatenate([self.squares, other.squares]),
            self.whole and other.whole,
        ).pooled()

    def __len__(self) -> int:
        return len(self.moments)

    @cached_property
    def first_of_time(self) -> np.ndarray:
        """The first unit of every distinct time."""
        return np.flatnonzero(np.append(True, self.moments[1:] != self.moments[:-1]))

    @cached_property
    def cell_of_time(self) -> np.ndarray:
        """The cell of every distinct time; a time is never cut."""
        rows = self.per_time(self.weight)
        if len(rows) <= MAX_CELLS:
            return np.arange(len(rows))
        middle = (np.cumsum(rows) - 0.5 * rows) / rows.sum()
        cells = np.minimum((middle * MAX_CELLS).astype(np.int64), MAX_CELLS - 1)
        return np.unique(cells, return_inverse=True)[1].reshape(-1)

    @cached_property
    def cell(self) -> np.ndarray:
        """The cell of every unit."""
        lengths = np.diff(self.first_of_time, append=len(self))
        return np.repeat(self.cell_of_time, lengths)

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return int(self.cell_of_time[-1]) + 1

    def per_time(self, column: np.ndarray) -> np.ndarray:
        """Sums of a column (m,) over every distinct time."""
        return np.asarray(np.add.reduceat(column, self.first_of_time))

    def per_cell(self, column: np.ndarray) -> np.ndarray:
        """Sums of a column (m,) over every cell."""
        return np.bincount(self.cell, weights=column, minlength=self.n_cells)

    def time_at(self, which: int) -> Any:
        """The distinct time of this number, as it was given."""
        return self.times[self.first_of_time[which]]
