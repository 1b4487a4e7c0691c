"""A state that reads every block at one level, with some columns in the place of others."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

from calipers.inference.state import State
from calipers.inputs.rows import Column, Rows


class ReadingAs(State):
    """A state that sees every block as one promise states it.

    Parameters
    ----------
    state : State
        What it does there.
    level : int
        Number of the level.
    reads : mapping
        Columns that take the place of others: {"covered": "top_is_right"}.
    """

    __slots__ = ("level", "reads", "state")

    def __init__(self, state: State, level: int, reads: Mapping[str, Column] | None = None) -> None:
        self.state, self.level, self.reads = state, level, dict(reads or {})

    @property
    def needs(self) -> frozenset[str] | None:
        """What the state looks at, under the names that it has in the rows."""
        needs = self.state.needs
        if needs is None:
            return None
        if any(callable(read) for read in self.reads.values()):  # what a function looks at is not known
            return None
        found = {str(self.reads.get(name, name)) for name in needs}
        # Whether a set is empty is seen from its size.
        return frozenset(found | {str(self.reads.get("size", "empty"))} if "empty" in needs else found)

    def fresh(self) -> Self:
        """An empty state of the same pass and level."""
        return type(self)(self.state.fresh(), self.level, self.reads)

    def absorb(self, block: Rows) -> None:
        """Pass the block on, at the level."""
        self.state.absorb(block.at(self.level, self.reads))

    def settle(self) -> None:
        """Do the deferred work of the state."""
        self.state.settle()

    def shed(self) -> None:
        """Drop what every worker was given."""
        self.state.shed()

    def regain(self, given: Self) -> None:
        """Take it over again."""
        self.state.regain(given.state)

    def merge(self, other: Self) -> Self:
        """Merge what both saw."""
        self.state.merge(other.state)
        return self

    def advance(self) -> State | None:
        """The next pass, at the same level."""
        following = self.state.advance()
        return None if following is None else ReadingAs(following, self.level, self.reads)

    def finish(self) -> Any:
        """What the state found."""
        return self.state.finish()
