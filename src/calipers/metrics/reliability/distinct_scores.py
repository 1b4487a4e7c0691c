"""Rows gathered by score: what is stated, how often it is stated, how often the event happened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calipers.arrays import as_numpy, namespace
from calipers.inputs.weights import effective_size
from calipers.metrics.reliability.binary_rows import BinaryRows


@dataclass(frozen=True, slots=True)
class ScoreLevels:
    """Independent trials in order of score.

    Parameters
    ----------
    values : float64 array of shape (K,)
        Stated probability of each unit, non-decreasing.
    trials : float64 array of shape (K,)
        Rows (or whole-number weight) of each unit.
    hits : float64 array of shape (K,)
        How many of them had the event.
    weights : float64 array of shape (K,) or None
        Weight of one trial of each unit. With importance weights every row is a unit of one trial;
        otherwise None, and every distinct score is one unit.
    pooled : bool
        Whether units are cells of neighbouring scores, with their mean score.
    """

    values: np.ndarray
    trials: np.ndarray
    hits: np.ndarray
    weights: np.ndarray | None = None
    pooled: bool = False

    @property
    def size(self) -> int:
        """Number of units."""
        return int(self.values.size)

    @property
    def unit_weights(self) -> np.ndarray:
        """Weight of one trial, 1 without weights."""
        return np.ones(self.size) if self.weights is None else self.weights

    @property
    def total(self) -> float:
        """Weight of all trials."""
        return float(np.sum(self.trials * self.unit_weights))

    @property
    def block_ends(self) -> np.ndarray:
        """Last unit of every block of equal scores."""
        if self.weights is None:
            return np.arange(self.size)
        return np.flatnonzero(np.append(self.values[1:] != self.values[:-1], True))

    @property
    def expected(self) -> np.ndarray:
        """Weighted number of events of every unit when the statements are true."""
        return np.asarray(self.trials * self.values * self.unit_weights)

    @property
    def unit_variance(self) -> np.ndarray:
        """Variance of the weighted number of events of every unit when the statements are true."""
        return np.asarray(self.unit_weights**2 * self.trials * self.values * (1 - self.values))

    @property
    def variance(self) -> float:
        """The same of all events together."""
        return float(np.sum(self.unit_variance))

    @property
    def rows(self) -> float:
        """Rows behind the units: their number, or the effective number of rows."""
        squares = float(np.sum(self.trials * self.unit_weights**2))
        return effective_size(self.total, squares, whole=self.weights is None)

    @property
    def unit(self) -> str:
        """What a unit is, in words."""
        return f"{self.size} cells of the score" if self.pooled else "score level"

    @property
    def hidden(self) -> float:
        """The most that is expected to surprise inside one cell; 0 where every unit is one score."""
        if not self.pooled:
            return 0.0
        return float(np.max(self.trials * np.minimum(self.values, 1 - self.values)))

    def in_cells(self, n: int) -> ScoreLevels:
        """Neighbouring units pooled into about n cells of equal variance; certainties keep their own."""
        variance = self.unit_variance
        middle = np.cumsum(variance) - variance / 2
        cell = np.minimum((n * middle / variance.sum()).astype(np.int64), n - 1)
        cell = np.where(self.values == 0, -1, np.where(self.values == 1, n, cell))
        first = np.flatnonzero(np.append(True, cell[1:] != cell[:-1]))
        trials, stated, hits = (
            np.add.reduceat(column, first) for column in (self.trials, self.trials * self.values, self.hits)
        )
        return ScoreLevels(np.minimum(stated / trials, 1.0), trials, hits, pooled=True)


def device_levels(rows: BinaryRows) -> ScoreLevels:
    """Levels of rows that count once, sorted on their device: only levels come over."""
    xp = namespace(rows.scores)
    f, y, _ = next(rows.blocks())
    order = xp.argsort(f)
    f, events = xp.take(f, order), xp.cumulative_sum(xp.take(y, order))
    last = xp.ones((1,), dtype=xp.bool, device=f.device)
    ends = xp.nonzero(xp.concat([f[1:] != f[:-1], last]))[0]
    values, hits = as_numpy(xp.take(f, ends)) + 0.0, as_numpy(xp.take(events, ends))
    return ScoreLevels(values, np.diff(as_numpy(ends), prepend=-1).astype(float), np.diff(hits, prepend=0.0))


def has_more_levels_than(rows: BinaryRows, limit: int) -> bool:
    """Whether a sample of the scores alone already shows more than ``limit`` distinct values."""
    if rows.n <= limit:
        return False
    xp = namespace(rows.scores)
    sample = rows.scores[:: max(1, rows.n // (2 * limit + 1))]
    return int(xp.unique_values(sample).shape[0]) > limit
