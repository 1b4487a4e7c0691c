"""A state that reads every block at one of several levels of alpha."""

from __future__ import annotations

from typing import Any, Self

from calipers.inference.state import State
from calipers.inputs.rows import Rows


class AtLevel(State):
    """A state that sees every block at one level.

    Parameters
    ----------
    state : State
        What it does there.
    level : int
        Number of the level.
    """

    __slots__ = ("level", "state")

    def __init__(self, state: State, level: int) -> None:
        self.state, self.level = state, level

    @property
    def needs(self) -> frozenset[str] | None:
        """What the state looks at."""
        return self.state.needs

    def fresh(self) -> Self:
        """An empty state of the same pass and level."""
        return type(self)(self.state.fresh(), self.level)

    def absorb(self, block: Rows) -> None:
        """Hand the block on, at the level."""
        self.state.absorb(block.at(self.level))

    def merge(self, other: Self) -> Self:
        """Merge what both saw."""
        self.state.merge(other.state)
        return self

    def advance(self) -> State | None:
        """The next pass, at the same level."""
        following = self.state.advance()
        return None if following is None else AtLevel(following, self.level)

    def finish(self) -> Any:
        """What the state found."""
        return self.state.finish()
