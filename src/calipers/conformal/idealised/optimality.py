"""Which conformity measures are optimal for a criterion: Theorems 1 to 6."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, TypeAlias

import numpy as np

from calipers.conformal.idealised import search
from calipers.conformal.idealised.law import Law, measure_table
from calipers.conformal.idealised.measures import conformity_table
from calipers.conformal.idealised.refinement import canonical_order, in_refinements
from calipers.exceptions import InputError

# Table 2: the measure whose refinements (R, R', R or R'') are the optimal measures.
OPTIMAL_KIND = {
    "S": "CP", "N": "CP", "OF": "CP", "OE": "CP",
    "U": "SP", "M": "SP",
    "F": "MCP", "E": "MCP",
    "OU": "MSP", "OM": "MSP",
}  # fmt: skip
_TIE_BREAK = {"U": "credibility", "F": "credibility", "M": "empty", "E": "empty"}
Order: TypeAlias = list[list[Any]]
_LEVEL_FREE = ("S", "U", "F", "OU", "OF")


def is_optimal(Q: Any, A: Any, name: str, *, label_conditional: bool = False) -> bool:
    """Whether no conformity measure does better on a criterion, at any level, after its tie-break.

    Parameters
    ----------
    Q : table (objects, labels)
        Joint probabilities, floats or Fractions; at least two labels.
    A : table of the same shape
        Conformity measure, higher is more conforming.
    name : str
        One of the ten criteria, or "S_phi": its optimal measures do not depend on phi.
    label_conditional : bool
        Optimal among label-conditional predictors.

    Returns
    -------
    bool

    Raises
    ------
    InputError
        For the label-conditional U, M, F, E, OU and OM on a table too large to try all measures: the paper
        gives no explicit form for them, and finding one is a combinatorial problem.

    Notes
    -----
    Unconditional: membership in R(CP), R'(SP), R(MCP) or R''(MSP), Theorems 1 to 4, with two corrections
    where a label has probability 0 or exactly 1/2 (documented in the guide). S_phi has the optimal measures
    of S, for phi continuously differentiable and strictly increasing (Remark of section 4).
    Label-conditional S, N, OF, OE, S_phi (and OU, OM with two labels): Theorem 5. The others: all measures
    are tried, in floating point. Theorem 6 says that with two labels and different ``Q(1 | x)`` a
    refinement of CP is among the optimal; for U, M, F and E that fails from three objects on (the guide
    has a counterexample), because one
    tau serves both labels of an object.

    References
    ----------
    Vovk, Nouretdinov, Fedorova, Petej, Gammerman (2017), Theorems 1 to 6.

    Examples
    --------
    >>> from calipers.conformal.idealised import conformity, is_optimal
    >>> Q = [[0.2, 0.3, 0.5]]
    >>> [is_optimal(Q, conformity(Q, "CP"), name) for name in ("S", "U", "F", "OU")]
    [True, False, True, False]
    """
    law, kind = _check(Q, name)
    table = measure_table(A, law)
    kind = _binary_kind(law, name, kind)
    if not label_conditional or kind == "CP":
        order = canonical_order(law, table, label_conditional=label_conditional)
        return _is_in_optimal_set(law, order, kind, label_conditional=label_conditional)
    measures, best = _searched(law, name)
    wanted = _ranks_within_labels(canonical_order(law, table, label_conditional=True))
    found = search.lines_of(law, np.concatenate([wanted[None], measures[best]]), label_conditional=True)
    # p-values decide: zero probabilities make several orders one.
    same = [np.abs(lines[1:] - lines[0]).max(axis=(1, 2), initial=0.0) < 1e-12 for lines in found]
    return bool((same[0] & same[1]).any())


def optimal_measure(Q: Any, name: str, *, label_conditional: bool = False) -> np.ndarray:
    """A conformity measure that is optimal for a criterion.

    Parameters
    ----------
    Q : table (objects, labels)
        Joint probabilities, floats or Fractions; at least two labels.
    name : str
        One of the ten criteria, or "S_phi": its optimal measures do not depend on phi.
    label_conditional : bool
        Optimal among label-conditional predictors.

    Returns
    -------
    array (objects, labels)
        CP, SP, MCP or MSP (Theorems 1 to 5); where the paper has no explicit form, ranks found by trying
        all measures on a small table.

    Raises
    ------
    InputError
        When the table is too large to try all, or when no measure is optimal at every level at once.

    Examples
    --------
    >>> from calipers.conformal.idealised import optimal_measure
    >>> optimal_measure([[0.2, 0.3, 0.5]], "M")
    array([[-0.5, -0.5,  0.5]])
    """
    law, kind = _check(Q, name)
    if label_conditional:
        kind = _binary_kind(law, name, kind)
    if label_conditional and kind != "CP":
        measures, best = _searched(law, name)
        if not best.any():
            raise InputError(f"no measure is label-conditionally {name}-optimal at every level for this Q.")
        return np.asarray(measures[int(np.argmax(best))])
    table = conformity_table(law, kind)
    return np.array(table, dtype=object) if law.exact else np.array(table, dtype=float)


def optimal_by_search(law: Law, name: str, *, label_conditional: bool) -> tuple[np.ndarray, np.ndarray]:
    """All inequivalent measures of a small table, and which of them are optimal by the definition."""
    measures = search.all_measures(law, label_conditional=label_conditional)
    below, equal = search.lines_of(law, measures, label_conditional=label_conditional)
    tie_break = _TIE_BREAK.get(name)
    if name not in _LEVEL_FREE:
        return measures, search.smallest_at_every_level(law, below, equal, name, tie_break)
    keys = [search.level_free(law, below, equal, key) for key in filter(None, (name, tie_break))]
    return measures, search.smallest(*keys)


def _is_in_optimal_set(law: Law, order: Order, kind: str, *, label_conditional: bool) -> bool:
    """The theorems, with what their proofs leave out (both found by trying all measures).

    Theorem 4 lets a label with Q(y | x) < 1/2 be more conforming than one with Q(y | x) = 1/2; it must not.
    Theorems 2 and 4 ask labels of probability zero to be tied; being less conforming does no harm.
    """
    if kind in ("SP", "MSP"):
        order = _lift_impossible_labels(law, order)
    if kind == "MSP" and not _halves_on_top(law, order):
        return False
    return in_refinements(law, order, kind, label_conditional=label_conditional)


def _lift_impossible_labels(law: Law, order: Order) -> Order:
    """Labels of probability zero raised to the object's second largest conformity, which changes nothing.

    U, M, OU and OM read an object's two largest p-values, and no other p-value counts a label without mass.
    """
    lifted = []
    for row, joint in zip(order, law.joint, strict=True):
        second = sorted(row)[-2]
        lifted.append([max(a, second) if q == 0 else a for a, q in zip(row, joint, strict=True)])
    return lifted


def _halves_on_top(law: Law, order: Order) -> bool:
    """Where the most probable label has probability exactly 1/2, no less probable label conforms more."""
    half = Fraction(1, 2)
    for row, conditional in zip(order, law.conditional, strict=True):
        halves = [a for a, q in zip(row, conditional, strict=True) if q == half]
        others = [a for a, q in zip(row, conditional, strict=True) if q < half]
        if halves and others and max(others) > min(halves):
            return False
    return True


def _searched(law: Law, name: str) -> tuple[np.ndarray, np.ndarray]:
    if not search.is_searchable(law, label_conditional=True):
        raise InputError(
            f"label-conditional {name}-optimal measures have no explicit form, and a table of "
            f"{law.n_objects} objects and {law.n_labels} labels has too many measures to try."
        )
    return optimal_by_search(law, name, label_conditional=True)


def _check(Q: Any, name: str) -> tuple[Law, str]:
    # O(S_phi) = O(S) for every admissible phi (Remark of section 4).
    criterion = "S" if name == "S_phi" else name
    if criterion not in OPTIMAL_KIND:
        raise InputError(f"name must be one of {', '.join(OPTIMAL_KIND)} or S_phi, got {name!r}.")
    law = Law.of(Q)
    if law.n_labels < 2:
        raise InputError("optimality needs at least two labels, got one.")
    return law, OPTIMAL_KIND[criterion]


def _binary_kind(law: Law, name: str, kind: str) -> str:
    """With two labels OU is OF and OM is OE, so that CP serves both kinds of predictors."""
    return "CP" if law.n_labels == 2 and name in ("OU", "OM") else kind


def _ranks_within_labels(order: list[list[Any]]) -> np.ndarray:
    """Ranks of the objects within every label."""
    columns = [list(column) for column in zip(*order, strict=True)]
    ranks = [[sorted(set(column)).index(value) for value in column] for column in columns]
    return np.array(ranks).T
