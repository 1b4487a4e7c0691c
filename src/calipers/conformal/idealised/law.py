"""Joint tables in exact arithmetic, and the p-values of a conformity measure as lines in tau."""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np

from calipers.exceptions import InputError, InputTypeError
from calipers.inputs.levels import snap_to_fraction

Table = list[list[Fraction]]
_SUM_TOLERANCE = Fraction(1, 10**6)


@dataclass(frozen=True, slots=True)
class Law:
    """A joint table as fractions that sum to 1.

    Parameters
    ----------
    joint : list of lists of Fraction
        Q(x, y).
    objects : list of Fraction
        Its marginal on objects, all positive.
    exact : bool
        Whether the table came as fractions; answers then are fractions too.
    """

    joint: Table
    objects: list[Fraction]
    exact: bool

    @classmethod
    def of(cls, Q: Any) -> Law:
        """Check a table: rectangular, not negative, summing to 1; floats are read as people mean them.

        A float within 1e-12 of a fraction with denominator up to 10^6 is that fraction, so that equal
        conditional probabilities are equal; a table of floats is then divided by its sum.
        """
        table, exact = _fractions(Q, "Q")
        if any(q < 0 for row in table for q in row):
            raise InputError("Q must not be negative.")
        total = sum((q for row in table for q in row), Fraction(0))
        if (exact and total != 1) or abs(total - 1) > _SUM_TOLERANCE:
            raise InputError(f"Q must sum to 1, got {float(total):.9g}. Divide it by its sum.")
        joint = [[q / total for q in row] for row in table]
        objects = [sum(row, Fraction(0)) for row in joint]
        if min(objects) == 0:
            raise InputError(
                "every object of Q must have positive probability, "
                f"object {objects.index(Fraction(0))} has none. Leave such rows out."
            )
        return cls(joint, objects, exact)

    @property
    def n_objects(self) -> int:
        """Rows."""
        return len(self.joint)

    @property
    def n_labels(self) -> int:
        """Columns."""
        return len(self.joint[0])

    @property
    def conditional(self) -> Table:
        """Q(y | x)."""
        return [[q / total for q in row] for row, total in zip(self.joint, self.objects, strict=True)]

    @property
    def labels(self) -> list[Fraction]:
        """The marginal on labels; refused where one is 0, because label-conditional p-values divide by it."""
        totals = [sum((row[k] for row in self.joint), Fraction(0)) for k in range(self.n_labels)]
        if min(totals) == 0:
            raise InputError(
                "label-conditional p-values need every label to occur, "
                f"label {totals.index(Fraction(0))} does not."
            )
        return totals

    def answer(self, value: Fraction) -> Any:
        """The value in the kind the table came in."""
        return value if self.exact else float(value)


def measure_table(A: Any, law: Law) -> list[list[Any]]:
    """A conformity measure as comparable numbers, in the shape of Q."""
    table = [list(row) for row in (A.tolist() if isinstance(A, np.ndarray) else A)]
    if len(table) != law.n_objects or any(len(row) != law.n_labels for row in table):
        shape = (len(table), len(table[0]) if table else 0)
        raise InputError(f"A must have the shape of Q, ({law.n_objects}, {law.n_labels}), got {shape}.")
    for row in table:
        for value in row:
            if not isinstance(value, (numbers.Real, Decimal)) or value != value:
                raise InputTypeError(f"A must hold numbers, got {value!r}.")
    return table


@dataclass(frozen=True, slots=True)
class Lines:
    """p(x, y) = below + tau * equal for every example (eq. 11; eq. 43 when label-conditional)."""

    below: Table
    equal: Table

    @classmethod
    def of(cls, law: Law, A: list[list[Any]], *, label_conditional: bool = False) -> Lines:
        """Masses below and at each example's conformity; within its label when label-conditional."""
        if not label_conditional:
            cells = [(A[x][k], law.joint[x][k]) for x in range(law.n_objects) for k in range(law.n_labels)]
            below, equal = _masses(cells)
            return cls(*(_lookup(A, [masses] * law.n_labels) for masses in (below, equal)))
        totals = law.labels
        columns = [
            _masses([(A[x][k], law.joint[x][k] / totals[k]) for x in range(law.n_objects)])
            for k in range(law.n_labels)
        ]
        return cls(*(_lookup(A, [column[part] for column in columns]) for part in (0, 1)))


def _masses(cells: list[tuple[Any, Fraction]]) -> tuple[dict[Any, Fraction], dict[Any, Fraction]]:
    equal: dict[Any, Fraction] = {}
    for value, mass in cells:
        equal[value] = equal.get(value, Fraction(0)) + mass
    below, running = {}, Fraction(0)
    for value in sorted(equal):
        below[value] = running
        running += equal[value]
    return below, equal


def _lookup(A: list[list[Any]], columns: list[dict[Any, Fraction]]) -> Table:
    return [[columns[k][value] for k, value in enumerate(row)] for row in A]


def _fractions(Q: Any, name: str) -> tuple[Table, bool]:
    rows = Q.tolist() if isinstance(Q, np.ndarray) else [list(row) for row in Q]
    if not rows or not isinstance(rows[0], list) or not rows[0] or len({len(row) for row in rows}) != 1:
        raise InputError(
            f"{name} must be a table with at least one object and one label, all rows equally long."
        )
    exact = all(isinstance(q, (Fraction, int, Decimal)) for row in rows for q in row)
    return [[_fraction(q, name) for q in row] for row in rows], exact


def _fraction(value: Any, name: str) -> Fraction:
    if isinstance(value, bool) or not isinstance(value, (numbers.Real, Decimal)):
        raise InputTypeError(f"{name} must hold numbers, got {value!r}.")
    if isinstance(value, (Fraction, int, Decimal)):
        return Fraction(value)
    if not np.isfinite(float(value)):
        raise InputError(f"{name} must hold finite numbers, got {value!r}.")
    return snap_to_fraction(float(value))
