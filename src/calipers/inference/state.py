"""What is known about the rows seen so far, and how it combines with what others have seen.

A state absorbs blocks of rows, merges with the state of other blocks, and finishes into a result. The
result does not depend on how the rows were split. A state may ask for another pass over the rows:
`advance` then gives the state that makes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

from calipers.inputs.rows import Rows
from calipers.results import Estimate, EstimateTable

Result = Estimate | EstimateTable


class State(ABC):
    """A mergeable summary of rows.

    Subclasses are small, picklable objects: only they travel between machines, never rows.

    Examples
    --------
    >>> from calipers.engines import State, state_of
    >>> isinstance(state_of("coverage"), State)
    True
    """

    __slots__ = ()
    # Fields that a pass begins with and does not change: every worker has them, so they do not travel back.
    SHARED: ClassVar[tuple[str, ...]] = ()

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    @property
    def needs(self) -> frozenset[str] | None:
        """Columns of a block it looks at, so that nothing else is read; None when it may look at any."""
        return None

    @abstractmethod
    def absorb(self, block: Rows) -> None:
        """Take in a block of rows."""

    def settle(self) -> None:  # noqa: B027 - most states put nothing off
        """Finish work deferred while blocks came in: a piece has ended, and the state may be sent away."""

    def shed(self) -> None:
        """Drop what every worker was given; the state is on its way back."""
        for name in self.SHARED:
            setattr(self, name, None)

    def regain(self, given: Any) -> None:
        """Take it over again from the state with which the pass began."""
        for name in self.SHARED:
            setattr(self, name, getattr(given, name))

    @abstractmethod
    def merge(self, other: Self) -> Self:
        """Take in what another state of the same kind has seen; returns this one."""

    def advance(self) -> State | None:
        """The state of the next pass over the rows, or None when this was the last."""
        return None

    @abstractmethod
    def finish(self) -> Result:
        """The result, after the last pass."""

    def fresh(self) -> Self:
        """An empty state of the same pass, for another worker."""
        import copy

        return copy.deepcopy(self)
