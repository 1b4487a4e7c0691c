"""The four idealised conformity measures that are optimal for the ten criteria (Table 2)."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from calipers.conformal.idealised.law import Law, Table
from calipers.exceptions import InputError
from calipers.inputs import check_count

KINDS = ("CP", "SP", "MCP", "MSP")


def conformity(Q: Any, kind: str, *, choice: Any = None) -> np.ndarray:
    """An idealised conformity measure; higher is more conforming.

    Parameters
    ----------
    Q : table (objects, labels)
        Joint probabilities, floats or Fractions.
    kind : {"CP", "SP", "MCP", "MSP"}
        Conditional probability ``Q(y | x)`` (eq. 14); signed predictability (section 5); modified
        conditional probability; modified signed predictability.
    choice : sequence of int, optional
        The choice function of SP and MCP where the most probable label is tied: for every object the column
        of one of its most probable labels. By default the first. CP and MSP do not depend on it.

    Returns
    -------
    array (objects, labels)
        Floats, or Fractions (dtype object) when Q holds Fractions.

    References
    ----------
    Vovk, Nouretdinov, Fedorova, Petej, Gammerman (2017), sections 4 and 5.

    Examples
    --------
    >>> from calipers.conformal.idealised import conformity
    >>> conformity([[0.2, 0.3, 0.5]], "SP")
    array([[-0.5, -0.5,  0.5]])
    >>> conformity([[0.2, 0.3, 0.5]], "MSP")
    array([[0., 0., 0.]])
    >>> conformity([[0.4, 0.4, 0.2]], "SP", choice=[1])
    array([[-0.4,  0.4, -0.4]])
    """
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    law = Law.of(Q)
    table = conformity_table(law, kind, None if choice is None else _check_choice(law, choice))
    return np.array(table, dtype=object) if law.exact else np.array(table, dtype=float)


def _check_choice(law: Law, choice: Any) -> list[int]:
    chosen = [check_count(k, name="choice", minimum=0) for k in choice]
    if len(chosen) != law.n_objects:
        raise InputError(f"choice must hold one label index per object, {law.n_objects}, got {len(chosen)}.")
    for x, (k, row) in enumerate(zip(chosen, law.conditional, strict=True)):
        if k >= law.n_labels:
            raise InputError(
                f"choice must hold label indices between 0 and {law.n_labels - 1}, got {k} for object {x}."
            )
        if row[k] != max(row):
            best = [label for label, q in enumerate(row) if q == max(row)]
            raise InputError(
                f"choice must take a most probable label of every object, object {x} chooses label {k}; "
                f"its most probable are {best}."
            )
    return chosen


def conformity_table(law: Law, kind: str, choice: list[int] | None = None) -> Table:
    """The measure as fractions, for a choice function (default: the first most probable label)."""
    conditional = law.conditional
    if kind == "CP":
        return conditional
    top = [max(row) for row in conditional]
    chosen = [row.index(f) for row, f in zip(conditional, top, strict=True)] if choice is None else choice
    rule = {"SP": _signed, "MCP": _modified, "MSP": _modified_signed}[kind]
    return [[rule(q, top[x], k == chosen[x]) for k, q in enumerate(row)] for x, row in enumerate(conditional)]


def _signed(q: Fraction, top: Fraction, chosen: bool) -> Fraction:
    return top if chosen else -top


def _modified(q: Fraction, top: Fraction, chosen: bool) -> Fraction:
    return q if chosen else q - 1


def _modified_signed(q: Fraction, top: Fraction, chosen: bool) -> Fraction:
    if top <= Fraction(1, 2):
        return Fraction(0)
    return top if chosen else -top
