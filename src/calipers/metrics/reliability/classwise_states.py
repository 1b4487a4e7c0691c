"""Every class's own calibration error over any number of rows, and the worst or the mean of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from calipers.arrays import as_numpy
from calipers.inference.state import Result, State
from calipers.inputs.rows import Rows
from calipers.metrics.reliability.calibration_estimate import Walk
from calipers.metrics.reliability.calibration_states import (
    CalibrationOptions,
    CalibrationState,
    OpenRowsState,
)
from calipers.metrics.reliability.class_errors import classes_together, error_of_classes
from calipers.metrics.reliability.multiclass import ClassRows
from calipers.metrics.reliability.score_buckets import EqualBuckets

# Buckets of all classes together: a state stays small with a thousand classes.
_ALL_BUCKETS = 1 << 20
_MOST_BUCKETS = 1 << 16
# Probabilities kept as they are, so that labels can be drawn by row.
_KEPT_VALUES = 2_000_000


@dataclass(eq=False)
class ClasswiseState(State):
    """One calibration state per class, each in a pass of its own.

    Parameters
    ----------
    options : CalibrationOptions
        Of the metric.
    multiclass : {"max", "classwise"}
        The worst class, or the mean over classes.
    """

    SHARED: ClassVar = ("done",)
    options: CalibrationOptions
    multiclass: str
    # Classes that still count, and what was found for those that need no further pass.
    parts: dict[int, CalibrationState | OpenRowsState] = field(default_factory=dict)
    done: dict[int, Walk] = field(default_factory=dict)
    kept: list[tuple[np.ndarray, np.ndarray, np.ndarray | None]] | None = field(default_factory=list)
    names: list[Any] = field(default_factory=list)
    n_rows: int = 0

    @property
    def needs(self) -> frozenset[str]:
        """Probabilities and outcomes."""
        return frozenset({"probabilities", "codes", "sample_weight"})

    def fresh(self) -> Self:
        """An empty state of the same pass."""
        parts = {k: part.fresh() for k, part in self.parts.items()}
        return replace(self, parts=parts, kept=None if self.kept is None else [], n_rows=0)

    def absorb(self, block: Rows) -> None:
        """Add the block to every class that still counts."""
        P = block["probabilities"]
        if not self.parts:
            self.parts = dict(enumerate(self._first_parts(P.shape[1])))
            self.names = (
                np.arange(P.shape[1]).tolist() if block.classes is None else as_numpy(block.classes).tolist()
            )
        for part in self.parts.values():
            part.absorb(block)
        self.n_rows += block.n
        # A copy: a view would keep all the columns of its piece.
        self._keep([(np.array(P), block["codes"], block.weights)] if self.kept is not None else None)

    def settle(self) -> None:
        """The deferred work of every class."""
        for part in self.parts.values():
            part.settle()

    def shed(self) -> None:
        """Drop what every worker was given, class after class."""
        super().shed()
        for part in self.parts.values():
            part.shed()

    def regain(self, given: Any) -> None:
        """Take it over again."""
        super().regain(given)
        for k, own in given.parts.items():
            self.parts[k].regain(own)

    def _first_parts(self, n_classes: int) -> list[CalibrationState]:
        equal = EqualBuckets(min(_MOST_BUCKETS, 1 << (max(256, _ALL_BUCKETS // n_classes).bit_length() - 1)))
        return [
            CalibrationState(self.options, equal, column=k, n_states=n_classes, n_tests=n_classes)
            for k in range(n_classes)
        ]

    def _keep(self, rows: list[Any] | None) -> None:
        small = self.kept is not None and rows is not None and self.n_rows * len(self.parts) <= _KEPT_VALUES
        self.kept = [*(self.kept or ()), *(rows or ())] if small else None

    def merge(self, other: Self) -> Self:
        """Add the other's classes."""
        if not self.parts:
            self.parts, self.names = other.parts, other.names
        else:
            for k, theirs in other.parts.items():
                self.parts[k].merge(theirs)  # type: ignore[arg-type]
        self.n_rows += other.n_rows
        self._keep(other.kept)
        return self

    def advance(self) -> State | None:
        """The next pass of the classes that need one."""
        if self.kept is not None:
            return None
        following = {k: part.advance() for k, part in self.parts.items()}
        self.done = self.done | {k: self.parts[k].walk() for k, state in following.items() if state is None}
        self.parts = {k: state for k, state in following.items() if state is not None}
        return replace(self, n_rows=0) if self.parts else None

    def finish(self) -> Result:
        """The estimate over classes."""
        if self.kept is not None:
            return classes_together(_class_rows(self.kept, self.names), self.multiclass, self.options)
        walks = [self.done[k] for k in sorted(self.done)]
        return error_of_classes(walks, self.multiclass, self.options, self.names, None)


def _class_rows(parts: list[Any], names: list[Any]) -> ClassRows:
    """The rows of several blocks; blocks with and without weights mix."""
    P, codes = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    if all(part[2] is None for part in parts):
        return ClassRows(codes, P, names)
    weights = [np.ones(len(part[0])) if part[2] is None else part[2] for part in parts]
    return ClassRows(codes, P, names, np.concatenate(weights)).present()
