"""Metrics that are means of a number per row: count, mean and spread merge in closed form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from calipers.inference import Moments
from calipers.inference.state import Result, State
from calipers.inputs.rows import Rows

Contributions = Callable[[Rows], dict[str, np.ndarray]]
Fused = Callable[[Rows], dict[str, Moments] | None]
Finish = Callable[[dict[str, Moments]], Result]


class MomentTable(dict[Any, Moments]):
    """Moments by name, to which those of further rows are added."""

    def add(self, found: dict[Any, Moments]) -> None:
        """Merge the moments of further rows."""
        for name, own in found.items():
            self[name] = self[name].merge(own) if name in self else own


class MomentState(State):
    """Moments of named contributions per row.

    Parameters
    ----------
    rows : callable
        A block to its contributions by name; a module-level function, so that it travels.
    finisher : callable
        Moments by name to the result.
    columns : tuple of str
        Columns of a block that ``rows`` looks at.
    fused : callable or None
        A block of rows that count once to the moments of the same contributions, by compiled kernels; or
        None, when these cannot tell.
    tails : bool
        Whether the moments keep third and fourth powers, for means of rows without a known range.
    """

    __slots__ = ("columns", "finisher", "fused", "moments", "rows", "tails")

    def __init__(
        self,
        rows: Contributions,
        finisher: Finish,
        columns: tuple[str, ...],
        fused: Fused | None = None,
        *,
        tails: bool = False,
    ) -> None:
        self.rows, self.finisher, self.columns, self.fused = rows, finisher, columns, fused
        self.tails = tails
        self.moments = MomentTable()

    @property
    def needs(self) -> frozenset[str]:
        """Its columns."""
        return frozenset(self.columns) | {"sample_weight"}

    def absorb(self, block: Rows) -> None:
        """Add the block's moments."""
        found = None
        if self.fused is not None and block.kernels is not None and block.weights is None:
            found = self.fused(block)
        if found is None:
            rows = self.rows(block)
            found = {name: Moments.of(x, block.weights, tails=self.tails) for name, x in rows.items()}
        self.moments.add(found)

    def merge(self, other: Self) -> Self:
        """Pool the moments."""
        self.moments.add(other.moments)
        return self

    def finish(self) -> Result:
        """The estimates of the means."""
        return self.finisher(self.moments)


def keep(moments: dict[str, Moments]) -> Any:
    """The moments themselves, for callers that finish them later."""
    return moments
