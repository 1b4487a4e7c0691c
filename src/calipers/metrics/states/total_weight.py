"""The weight of all rows: a part of them may weigh nothing, all of them may not."""

from __future__ import annotations

from typing import Self

from calipers.exceptions import InputError
from calipers.inference.state import Result, State
from calipers.inputs.rows import Rows


class WeightState(State):
    """Whether some row has a weight above 0, or counts once because there are no weights."""

    __slots__ = ("is_there",)

    def __init__(self) -> None:
        self.is_there = False

    @property
    def needs(self) -> frozenset[str]:
        """Weights."""
        return frozenset({"sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Look at the weights of the block."""
        self.is_there = self.is_there or block.weights is None or bool(block.weights.any())

    def merge(self, other: Self) -> Self:
        """Whether either has seen one."""
        self.is_there = self.is_there or other.is_there
        return self

    def advance(self) -> None:
        """Nothing more to see; without any weight there is nothing to measure."""
        if not self.is_there:
            raise InputError("sample_weight must not be zero everywhere.")

    def finish(self) -> Result:
        """The weight is a check, not a result."""
        raise RuntimeError("the weight of the rows is not a result")
