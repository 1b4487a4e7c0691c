"""Rows that state the same probability and belong to the same groups, pooled and put in order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from calipers.arrays import as_numpy
from calipers.inference import repetitions
from calipers.inputs.attributes import Attributes
from calipers.metrics.reliability.binary_rows import BinaryRows

_LARGEST_CODE = 1 << 62


@dataclass(frozen=True, slots=True, eq=False)
class PromiseUnits:
    """Independent trials in order of the stated probability, whatever the order of the rows was.

    Parameters
    ----------
    promised : float64 array (m,)
        Stated probability of each unit, non-decreasing.
    trials : float64 array (m,)
        Rows of each unit; whole-number weights are rows.
    hits : float64 array (m,)
        How many of them had the event.
    attributes : Attributes
        Groups of each unit.
    weights : float64 array (m,) or None
        Importance of one trial; then every row is a unit of its own.
    soft : bool
        Whether hits are sums of probabilities and not counts.
    """

    promised: np.ndarray
    trials: np.ndarray
    hits: np.ndarray
    attributes: Attributes
    weights: np.ndarray | None = None
    soft: bool = False

    def __len__(self) -> int:
        return len(self.promised)

    @property
    def importance(self) -> np.ndarray:
        """Weight of one trial, 1 without importance weights."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def noise(self) -> np.ndarray:
        """Variance of one trial under the promise, t (1 - t)."""
        return self.promised * (1.0 - self.promised)

    def residuals(self, hits: np.ndarray) -> np.ndarray:
        """What happened minus what was promised, for hits (b, m)."""
        difference = np.asarray(hits - self.trials * self.promised)
        return difference if self.weights is None else difference * self.weights

    @property
    def impossible(self) -> np.ndarray:
        """Trials of each unit whose outcome was promised not to happen."""
        never = np.where(self.promised == 0, self.hits, 0.0)
        return np.where(self.promised == 1, self.trials - self.hits, never)

    def draws(self, n_draws: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
        """Batches (b, m) of hits drawn as the promise says."""
        several = np.flatnonzero(self.trials > 1)
        counts, chances = self.trials[several].astype(np.int64), self.promised[several]
        batch = max(1, _BATCH // len(self))
        for start in range(0, n_draws, batch):
            size = min(batch, n_draws - start)
            hits = (generator.random((size, len(self))) < self.promised).astype(np.float64)
            if several.size:
                hits[:, several] = generator.binomial(counts, chances, (size, several.size))
            yield hits


# Cells drawn at a time: they stay in the processor's second memory.
_BATCH = 1 << 16


def pool_units(rows: BinaryRows, attributes: Attributes) -> PromiseUnits:
    """The units of checked rows; rows of weight 0 are not there."""
    rows = rows.to_host()
    promised, outcomes = rows.bounded_scores() + 0.0, as_numpy(rows.outcomes).astype(np.float64)
    weights = np.ones(rows.n) if rows.weights is None else rows.weights
    whole = repetitions(weights) is not None
    keys = (outcomes, weights) if not whole or rows.soft else ()
    profile = _profiles(attributes)
    order = np.lexsort((*keys, profile, promised))
    order = order[weights[order] > 0]
    promised, outcomes, weights, profile = (a[order] for a in (promised, outcomes, weights, profile))
    if not whole:
        ones = np.ones(len(order))
        return PromiseUnits(promised, ones, outcomes, attributes.take(order), weights, rows.soft)
    is_new = (promised[1:] != promised[:-1]) | (profile[1:] != profile[:-1])
    first = np.flatnonzero(np.append(True, is_new))
    trials, hits = np.add.reduceat(weights, first), np.add.reduceat(weights * outcomes, first)
    return PromiseUnits(promised[first], trials, hits, attributes.take(order[first]), None, rows.soft)


def _profiles(attributes: Attributes) -> np.ndarray:
    """One number per row for its labels of all attributes, in the order of the labels."""
    profile, width = np.zeros(len(attributes), dtype=np.int64), 1
    for labels, codes in zip(attributes.labels, attributes.codes.T, strict=True):
        if width * len(labels) > _LARGEST_CODE:
            distinct, profile = np.unique(profile, return_inverse=True)
            width = len(distinct)
        profile, width = profile * len(labels) + codes, width * len(labels)
    return profile
