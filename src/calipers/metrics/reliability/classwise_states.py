"""Every class's own calibration error over any number of rows, and the worst or the mean of them."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calipers.inference.state import Result, State
from calipers.inputs.rows import Rows
from calipers.metrics.reliability.calibration_states import (
    CalibrationOptions,
    CalibrationState,
    OpenRowsState,
)
from calipers.metrics.reliability.class_errors import classes_together, error_of_classes
from calipers.metrics.reliability.multiclass import ClassRows
from calipers.metrics.reliability.score_buckets import EqualBuckets
from calipers.metrics.reliability.summary import Walk

# Buckets of all classes together: a state stays small with a thousand classes.
_ALL_BUCKETS = 1 << 20
_MOST_BUCKETS = 1 << 16
# Probabilities kept as they are, so that labels can be drawn by row.
_KEPT_VALUES = 2_000_000


class ClasswiseState(State):
    """One calibration state per class, each in a pass of its own.

    Parameters
    ----------
    options : CalibrationOptions
        Of the metric.
    multiclass : {"max", "classwise"}
        The worst class, or the mean over classes.
    """

    __slots__ = ("kept", "multiclass", "n_rows", "names", "options", "parts")

    def __init__(self, options: CalibrationOptions, multiclass: str) -> None:
        self.options, self.multiclass = options, multiclass
        self.parts: list[State] | None = None
        self.kept: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] | None = []
        self.n_rows = 0
        self.names: list[Any] | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Probabilities and outcomes."""
        return frozenset({"probabilities", "codes", "sample_weight"})

    def fresh(self) -> Self:
        """An empty state of the same pass."""
        other = type(self)(self.options, self.multiclass)
        other.kept, other.names = None if self.kept is None else [], self.names
        other.parts = None if self.parts is None else [part.fresh() for part in self.parts]
        return other

    def absorb(self, block: Rows) -> None:
        """Add the block to every class that still counts."""
        P = block["probabilities"]
        if self.parts is None:
            self.parts = self._first_parts(P.shape[1])
        for part in self.parts:
            part.absorb(block)
        if self.names is None:
            self.names = list(range(P.shape[1])) if block.classes is None else list(block.classes)
        self.n_rows += block.n
        # A copy: a view would keep all the columns of its piece.
        self._keep([(np.array(P), block["codes"], block.weights)] if self.kept is not None else None)

    def settle(self) -> None:
        """Class after class, what was put off."""
        for part in self.parts or ():
            part.settle()

    def shed(self) -> None:
        """Of every class."""
        for part in self.parts or ():
            part.shed()

    def regain(self, given: Any) -> None:
        """Of every class that the pass began with."""
        for part, own in zip(self.parts or (), given.parts or (), strict=False):
            part.regain(own)

    def _first_parts(self, n_classes: int) -> list[State]:
        equal = EqualBuckets(min(_MOST_BUCKETS, 1 << (max(256, _ALL_BUCKETS // n_classes).bit_length() - 1)))
        return [
            CalibrationState(self.options, equal, column=k, n_states=n_classes, n_tests=n_classes)
            for k in range(n_classes)
        ]

    def _keep(self, rows: list[Any] | None) -> None:
        width = 0 if self.parts is None else len(self.parts)
        small = self.kept is not None and rows is not None and self.n_rows * width <= _KEPT_VALUES
        self.kept = [*(self.kept or ()), *(rows or ())] if small else None

    def merge(self, other: Self) -> Self:
        """Add the other's classes."""
        if other.parts is None:
            return self
        if self.parts is None:
            self.parts, self.kept = other.parts, other.kept
            self.n_rows, self.names = other.n_rows, other.names
            return self
        for mine, theirs in zip(self.parts, other.parts, strict=True):
            mine.merge(theirs)
        self.n_rows += other.n_rows
        self._keep(other.kept)
        return self

    def advance(self) -> State | None:
        """The next pass of the classes that need one; the others wait."""
        if self.kept is not None or self.parts is None:
            return None
        following = [part.advance() for part in self.parts]
        if all(state is None for state in following):
            return None
        after = ClasswiseState(self.options, self.multiclass)
        after.kept, after.names, after.n_rows = None, self.names, 0
        after.parts = [
            Waiting(part) if state is None else state
            for part, state in zip(self.parts, following, strict=True)
        ]
        return after

    def finish(self) -> Result:
        """The estimate over classes."""
        names = self.names or list(range(len(self.parts or ())))
        if self.kept is not None:
            return classes_together(_class_rows(self.kept, names), self.multiclass, self.options)
        walks = [_walk(part) for part in self.parts or ()]
        return error_of_classes(walks, self.multiclass, self.options, names, None)


def _class_rows(parts: list[Any], names: list[Any]) -> ClassRows:
    """The rows of several blocks; blocks with and without weights mix."""
    P, codes = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    if all(part[2] is None for part in parts):
        return ClassRows(codes, P, names)
    weights = [np.ones(len(part[0])) if part[2] is None else part[2] for part in parts]
    return ClassRows(codes, P, names, np.concatenate(weights)).present()


class Waiting(State):
    """A class that has finished while others need another pass."""

    __slots__ = ("done",)
    SHARED = ("done",)

    def __init__(self, done: State) -> None:
        self.done = done

    def fresh(self) -> Self:
        """Another one that waits."""
        return type(self)(self.done)

    def absorb(self, block: Rows) -> None:
        """Nothing more to learn."""

    def merge(self, other: Self) -> Self:
        """Both know the same."""
        return self

    def finish(self) -> Result:
        """What it has found."""
        return self.done.finish()


def _walk(part: State) -> Walk:
    while isinstance(part, Waiting):
        part = part.done
    if not isinstance(part, (CalibrationState, OpenRowsState)):
        raise TypeError(f"a class ended as {type(part).__name__}")
    return part.walk()
