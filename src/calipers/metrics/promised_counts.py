"""Draws of the numbers of covered rows in cells (strata, times, runs of ease), when every promise is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calipers.arrays import short_repr
from calipers.conformal import conformal_rank

# Promises are told apart by at least and at most so many levels, and in about so many units over all cells.
_FEWEST_LEVELS, _MOST_LEVELS, _UNITS = 16, 128, 256


@dataclass(frozen=True, slots=True, eq=False)
class PromisedCounts:
    """Rows of every cell and promise: how many, and how likely each is covered.

    Parameters
    ----------
    trials : int array of shape (u,)
        Rows of each unit; units are sorted by cell, and every cell has one.
    level : int array of shape (u,)
        Index of the promise of each unit.
    chances : array of shape (u,)
        Its promised probability.
    first : int array of shape (k,)
        The first unit of each cell.
    """

    trials: np.ndarray
    level: np.ndarray
    chances: np.ndarray
    first: np.ndarray

    __repr__ = short_repr

    @classmethod
    def of(
        cls, cell: np.ndarray, n_cells: int, level: np.ndarray, chances: np.ndarray, weight: np.ndarray
    ) -> PromisedCounts:
        """Of rows, each with its cell, the index of its promise, its probability and its repetitions."""
        n_levels = int(level.max()) + 1
        places, inverse = np.unique(cell * n_levels + level, return_inverse=True)
        inverse = inverse.reshape(-1)
        trials, chance = np.bincount(inverse, weights=weight), np.empty(len(places))
        chance[inverse] = chances
        if np.any(chance[inverse] != chances):  # promises were pooled: each unit has its mean
            chance = np.clip(np.bincount(inverse, weights=weight * chances) / trials, 0.0, 1.0)
        first = np.searchsorted(places, np.arange(n_cells) * n_levels)
        return cls(trials.astype(np.int64), places % n_levels, chance, first)

    def __len__(self) -> int:
        return len(self.trials)

    @property
    def cell(self) -> np.ndarray:
        """The cell of each unit."""
        return np.repeat(np.arange(len(self.first)), np.diff(self.first, append=len(self)))

    @property
    def expected(self) -> np.ndarray:
        """Expected covered rows of every cell."""
        return np.asarray(np.add.reduceat(self.trials * self.chances, self.first))

    @property
    def variance(self) -> np.ndarray:
        """Variance of the covered rows of every cell, given the probabilities."""
        return np.asarray(np.add.reduceat(self.trials * self.chances * (1 - self.chances), self.first))

    def draw(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Covered rows of every cell (n_draws, k), each row with its promised probability."""
        return self.toss(self.chances, n_draws, rng)

    def toss(self, chances: np.ndarray, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """The same with probabilities (u,) or (n_draws, u) given."""
        shape = (n_draws, len(self.trials))
        if np.all(self.trials == 1):  # single coins are drawn faster than binomial numbers
            heads = np.asarray(rng.random(shape) < chances, dtype=np.int64)
        else:
            heads = rng.binomial(self.trials, chances, shape)
        return np.asarray(np.add.reduceat(heads, self.first, axis=1))


def promise_levels(promised: np.ndarray, n_cells: int) -> np.ndarray:
    """Index of the promise of every row among few levels, in the order of the promises.

    Many promises are pooled in steps of the arcsine of their square root, the scale on which the noise of a
    count is the same everywhere. Rows that are pooled get their mean promise, which adds at most three
    thousandths to the variance of a count: draws are on the safe side. 0 and 1 stay apart.
    """
    distinct, level = np.unique(promised, return_inverse=True)
    most = int(np.clip(_UNITS // n_cells, _FEWEST_LEVELS, _MOST_LEVELS))
    if len(distinct) <= most:
        return level.reshape(-1)
    angle = np.arcsin(np.sqrt(promised)) / (np.pi / 2)
    steps = 1 + np.minimum((angle * most).astype(np.int64), most - 1)
    steps = np.where(promised == 0.0, 0, np.where(promised == 1.0, most + 1, steps))
    return np.unique(steps, return_inverse=True)[1].reshape(-1)


def threshold_ranks(promised: Sequence[float] | np.ndarray, n_calibration: int) -> np.ndarray:
    """Rank of the threshold behind every promise; certain promises are the ends."""
    ranks = [
        0 if t <= 0 else n_calibration + 1 if t >= 1 else conformal_rank(n_calibration, 1.0 - t)
        for t in np.asarray(promised).tolist()
    ]
    return np.array(ranks)


def order_statistics(ranks: np.ndarray, n: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Order statistics of n uniform numbers at non-decreasing ranks, (b, L): 0 and n + 1 are the ends."""
    gaps = np.diff(np.concatenate([[0], ranks, [n + 1]])).astype(float)
    steps = np.where(gaps > 0, rng.gamma(np.maximum(gaps, 1e-9), size=(n_draws, len(gaps))), 0.0)
    walk = np.cumsum(steps, axis=1)
    return np.asarray(np.minimum(walk[:, :-1] / walk[:, -1:], 1.0))
