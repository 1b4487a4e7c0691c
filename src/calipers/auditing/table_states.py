"""States that several checks of an audit share: tables of counts, and widths."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calipers.inference import Moments, ShareCounts, State
from calipers.inputs import Weights
from calipers.inputs.rows import Column, Rows
from calipers.metrics.states.counts import CountState


def table_of(*columns: Column) -> State:
    """Distinct rows of some columns and how often each occurs, as arrays; their weights come last."""
    return CountState(_as_they_are, columns, {})


def _as_they_are(*columns: np.ndarray, sample_weight: Weights) -> Any:
    return (*columns, sample_weight)


@dataclass(eq=False)
class WidthState(State):
    """Widths of intervals: moments of the finite ones, how many are infinite, and the spread of outcomes."""

    width: Moments = field(default_factory=Moments)
    outcome: Moments = field(default_factory=Moments)
    is_infinite: Moments = field(default_factory=Moments)

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
        self.outcome = self.outcome.merge(Moments.of(block["outcomes"], weights))
        self.is_infinite = self.is_infinite.merge(Moments.of((~finite).astype(float), weights))

    def merge(self, other: Self) -> Self:
        """Add the other's."""
        self.width, self.outcome = self.width.merge(other.width), self.outcome.merge(other.outcome)
        self.is_infinite = self.is_infinite.merge(other.is_infinite)
        return self

    @property
    def infinite(self) -> ShareCounts:
        """Infinite intervals among all."""
        return ShareCounts.of_moments(self.is_infinite)

    def finish(self) -> Any:
        """The state itself: its fields are the numbers."""
        return self
