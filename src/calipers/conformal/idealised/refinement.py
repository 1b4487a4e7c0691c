"""When one conformity measure refines another: eq. 15, the sets R, R' and R'', label-conditionally."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from calipers.conformal.idealised.law import Law, Lines, measure_table
from calipers.conformal.idealised.measures import KINDS, conformity_table
from calipers.exceptions import InputError

_HALF = Fraction(1, 2)


def is_refinement(A: Any, B: Any, *, within_objects: bool = False, label_conditional: bool = False) -> bool:
    """Whether A refines B: ``B(z1) < B(z2)`` implies ``A(z1) < A(z2)`` (eq. 15).

    Parameters
    ----------
    A, B : tables (objects, labels)
        Conformity measures.
    within_objects : bool
        Also ask that labels of one object that B ties are tied by A (the notion behind R').
    label_conditional : bool
        Compare examples of one label only (section 8.3).

    Returns
    -------
    bool

    Examples
    --------
    >>> from calipers.conformal.idealised import is_refinement
    >>> is_refinement([[1, 2, 3]], [[1, 1, 2]]), is_refinement([[1, 1, 2]], [[1, 2, 3]])
    (True, False)
    >>> is_refinement([[1, 2, 3]], [[1, 1, 2]], within_objects=True)
    False
    """
    a, b = ([list(row) for row in table] for table in (A, B))
    if [len(row) for row in a] != [len(row) for row in b]:
        raise InputError("A and B must have the same shape.")
    columns = range(len(a[0]))
    if label_conditional:
        keeps = all(_keeps([(row[k], other[k]) for row, other in zip(a, b, strict=True)]) for k in columns)
    else:
        keeps = _keeps([(row[k], other[k]) for row, other in zip(a, b, strict=True) for k in columns])
    return keeps and (not within_objects or all(_ties(r, o) for r, o in zip(a, b, strict=True)))


def refines(Q: Any, A: Any, kind: str, *, label_conditional: bool = False) -> bool:
    """Whether A is in the paper's set of refinements of a measure: R(CP), R'(SP), R(MCP) or R''(MSP).

    Parameters
    ----------
    Q : table (objects, labels)
        Joint probabilities.
    A : table of the same shape
        Conformity measure.
    kind : {"CP", "SP", "MCP", "MSP"}
        Which set; for SP and MCP some choice function has to do.
    label_conditional : bool
        Label-conditional refinements; the paper defines them for CP only.

    Returns
    -------
    bool

    Notes
    -----
    Examples of probability zero that no probability separates have the same p-values, so their order is
    not looked at.

    Examples
    --------
    >>> from calipers.conformal.idealised import refines
    >>> Q = [[0.2, 0.3, 0.5]]
    >>> refines(Q, [[1, 2, 3]], "CP"), refines(Q, [[1, 2, 3]], "SP"), refines(Q, [[1, 1, 3]], "SP")
    (True, False, True)
    """
    if kind not in KINDS:
        raise InputError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    if label_conditional and kind != "CP":
        raise InputError("label-conditional refinements are defined for CP only.")
    law = Law.of(Q)
    order = canonical_order(law, measure_table(A, law), label_conditional=label_conditional)
    return in_refinements(law, order, kind, label_conditional=label_conditional)


def in_refinements(law: Law, A: list[list[Any]], kind: str, *, label_conditional: bool = False) -> bool:
    """Membership, for a measure in canonical order."""
    if kind == "CP":
        return is_refinement(A, law.conditional, label_conditional=label_conditional)
    if kind == "MSP":
        return is_refinement(A, conformity_table(law, "MSP")) and _modified_ties(law, A)
    choice = _choice_of(law, A)
    if choice is None:
        return False
    return is_refinement(A, conformity_table(law, kind, choice), within_objects=kind == "SP")


def canonical_order(law: Law, A: list[list[Any]], *, label_conditional: bool = False) -> list[list[Any]]:
    """The order of A as the p-values see it: by mass below, then by mass at the same conformity."""
    lines = Lines.of(law, A, label_conditional=label_conditional)
    return [
        list(zip(below, equal, strict=True)) for below, equal in zip(lines.below, lines.equal, strict=True)
    ]


def _choice_of(law: Law, A: list[list[Any]]) -> list[int] | None:
    """The choice function a refinement of SP or MCP must have: each object's only most conforming label.

    Both put the chosen label of an object strictly above its others, so no other choice can do.
    """
    choice = []
    for row, conditional in zip(A, law.conditional, strict=True):
        top = max(row)
        label = row.index(top)
        if row.count(top) > 1 or conditional[label] != max(conditional):
            return None
        choice.append(label)
    return choice


def _modified_ties(law: Law, A: list[list[Any]]) -> bool:
    """The two extra conditions of R'': which labels of an object must be tied."""
    for row, conditional in zip(A, law.conditional, strict=True):
        top = max(conditional)
        tied = row if top < _HALF else [a for a, q in zip(row, conditional, strict=True) if q < _HALF]
        if any(a != tied[0] for a in tied):
            return False
    return True


def _keeps(pairs: list[tuple[Any, Any]]) -> bool:
    """Whether a strictly larger second entry always comes with a strictly larger first one."""
    ordered = sorted(pairs, key=lambda pair: pair[1])
    best: Any = None  # largest first entry among strictly smaller second entries
    block: list[Any] = []
    current: Any = None
    for a, b in ordered:
        if current is None or b > current:
            best = max([*([] if best is None else [best]), *block], default=None)
            block, current = [], b
        if best is not None and not best < a:
            return False
        block.append(a)
    return True


def _ties(row: list[Any], other: list[Any]) -> bool:
    return all(row[i] == row[j] for i in range(len(row)) for j in range(i) if other[i] == other[j])
