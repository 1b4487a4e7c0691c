"""Small states that an audit needs beside the metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calipers.inference import Moments
from calipers.inference.state import State
from calipers.inputs.rows import Rows
from calipers.metrics.states.sampling import Sample, rows_outside


@dataclass(eq=False)
class WidthState(State):
    """Widths of intervals: moments of the finite ones, how many are infinite, and the spread of outcomes."""

    width: Moments = field(default_factory=Moments)
    outcome: Moments = field(default_factory=Moments)
    infinite: int = 0
    n: int = 0

    @property
    def needs(self) -> frozenset[str]:
        """Sizes and outcomes."""
        return frozenset({"size", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Add the block's widths."""
        size, weights = block["size"], block.weights
        finite = np.isfinite(size)
        own = None if weights is None else weights[finite]
        self.width = self.width.merge(Moments.of(size[finite], own))
        self.outcome = self.outcome.merge(Moments.of(block["outcomes"]))
        self.infinite += int(np.count_nonzero(~finite))
        self.n += block.n

    def merge(self, other: Self) -> Self:
        """Add the other's."""
        self.width, self.outcome = self.width.merge(other.width), self.outcome.merge(other.outcome)
        self.infinite, self.n = self.infinite + other.infinite, self.n + other.n
        return self

    def finish(self) -> Any:
        """The state itself: its fields are the numbers."""
        return self


@dataclass(eq=False)
class RivalState(State):
    """Sizes of sets by a threshold on the probabilities, against those given, on rows outside a sample.

    Parameters
    ----------
    threshold : float
        Labels with at most this ``1 - probability`` are in the rival's set.
    keys, cut, seed
        The sample the threshold was found on: its rows, and the draw they lie below.
    """

    SHARED = ("keys",)
    threshold: float
    keys: np.ndarray
    cut: float
    seed: int
    saved: Moments = field(default_factory=Moments)
    size: Moments = field(default_factory=Moments)

    @classmethod
    def against(cls, threshold: float, sample: Sample, seed: int) -> RivalState:
        """The state of a threshold found on a sample."""
        return cls(threshold, np.sort(sample.keys), sample.threshold, seed)

    @property
    def needs(self) -> frozenset[str]:
        """Sizes and probabilities."""
        return frozenset({"size", "covered", "probabilities", "row_id"})

    def absorb(self, block: Rows) -> None:
        """Compare the sizes of the block's rows."""
        outside = rows_outside(block, self.keys, self.cut, self.seed)
        rival = np.zeros(block.n, dtype=np.int64)
        for column in block["probabilities"].T:
            rival += 1.0 - column.astype(np.float64) <= self.threshold
        size = block["size"][outside].astype(float)
        self.saved = self.saved.merge(Moments.of(size - rival[outside]))
        self.size = self.size.merge(Moments.of(size))

    def merge(self, other: Self) -> Self:
        """Add the other's."""
        self.saved, self.size = self.saved.merge(other.saved), self.size.merge(other.size)
        return self

    def finish(self) -> Any:
        """Share of the mean size that is saved, its standard error, and the rows compared."""
        mean = max(1e-12, self.size.mean)
        return self.saved.mean / mean, self.saved.std_error / mean, int(self.saved.n)
