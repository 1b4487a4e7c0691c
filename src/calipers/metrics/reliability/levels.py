"""Rows gathered by score: what is stated, how often it is stated, how often the event happened."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calipers.arrays import as_numpy, namespace
from calipers.arrays.ordered_bits import pack_outcomes, unpack_outcomes, unpack_scores
from calipers.metrics.reliability.rows import BinaryRows


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
        Weight of one trial of each unit. With weights that are not whole numbers every row is a unit of
        one trial; otherwise None, and every distinct score is one unit.
    """

    values: np.ndarray
    trials: np.ndarray
    hits: np.ndarray
    weights: np.ndarray | None = None

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
    def variances(self) -> np.ndarray:
        """Variance of the weighted number of events of every unit when the statements are true."""
        return np.asarray(self.unit_weights**2 * self.trials * self.values * (1 - self.values))

    @property
    def variance(self) -> float:
        """The same of all units together."""
        return float(np.sum(self.variances))


def score_levels(rows: BinaryRows) -> ScoreLevels:
    """Levels of hard outcomes; the scores of a device array are sorted there and come over as levels."""
    if not rows.on_host:
        return _device_levels(rows)
    if rows.weights is None:
        return packed_levels(rows)
    f = np.concatenate([block[0] for block in rows.blocks()]) + 0.0
    order = np.argsort(f, kind="stable")
    f, y, w = f[order], rows.outcomes[order].astype(float), rows.weights[order]
    if not np.array_equal(w, np.floor(w)):
        positive = w > 0
        f, y, w = f[positive], y[positive], w[positive]
        # Units of one score are put in order of weight and outcome, whatever the order of rows.
        order = np.lexsort((y, w, f))
        return ScoreLevels(f[order], np.ones(f.size), y[order], w[order])
    first = np.flatnonzero(np.append(True, f[1:] != f[:-1]))
    trials = np.add.reduceat(w, first)
    levels = ScoreLevels(f[first], trials, np.add.reduceat(w * y, first))
    kept = trials > 0
    return ScoreLevels(levels.values[kept], trials[kept], levels.hits[kept])


def packed_levels(rows: BinaryRows) -> ScoreLevels:
    """One in-place sort of (bits of the score, outcome); counts are run lengths."""
    keys = np.empty(rows.n, dtype=np.uint64)
    start = 0
    for f, y, _ in rows.blocks():
        keys[start : start + f.size] = pack_outcomes(f, y)
        start += f.size
    keys.sort()
    values = unpack_scores(keys)
    first = np.flatnonzero(np.append(True, values[1:] != values[:-1]))
    hits = np.add.reduceat(unpack_outcomes(keys, out=keys), first)
    return ScoreLevels(values[first], np.diff(first, append=rows.n).astype(float), hits.astype(float))


def _device_levels(rows: BinaryRows) -> ScoreLevels:
    if rows.weights is not None:
        return score_levels(rows.to_host())
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
