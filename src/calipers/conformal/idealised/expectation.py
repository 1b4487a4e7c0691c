"""Exact expectations of the criteria over objects (and labels) and tau."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np

from calipers.conformal.idealised.law import Law, Lines, measure_table
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import exact_level
from calipers.inputs.option_checks import check_increasing

LEVEL_FREE = ("S", "U", "F", "OU", "OF", "credibility")
LEVEL_DEPENDENT = ("N", "M", "E", "OM", "OE", "empty")
NAMES = ("S", "N", "U", "F", "M", "E", "OU", "OF", "OM", "OE", "credibility", "empty")
_OBSERVED = frozenset({"OU", "OF", "OM", "OE"})
_ZERO, _ONE = Fraction(0), Fraction(1)
_NODES = 64  # of the integral of phi over tau

# One object's p-values as (below, equal) pairs.
Pairs = list[tuple[Fraction, Fraction]]


def criterion_value(
    Q: Any,
    A: Any,
    name: str,
    *,
    alpha: Any = None,
    label_conditional: bool = False,
    phi: Callable[[Any], Any] | None = None,
) -> Any:
    """Expected value of a criterion when Q is known; smaller is better.

    Parameters
    ----------
    Q : table (objects, labels)
        Joint probabilities, floats or Fractions.
    A : table of the same shape
        Conformity measure, higher is more conforming; only its order matters.
    name : str
        S, N, U, F, M, E, OU, OF, OM, OE, the tie-break keys "credibility" and "empty", or "S_phi".
    alpha : float, Fraction or Decimal
        Level, needed by N, M, E, OM, OE and empty; taken in exact arithmetic.
    label_conditional : bool
        Compare within labels (eq. 43) instead of over all examples (eq. 11).
    phi : callable
        With "S_phi" only, the sum of transformed p-values: a strictly increasing function on [0, 1] that
        maps arrays to arrays.

    Returns
    -------
    Fraction when Q holds Fractions, else float
        The expectation over x (and y) and tau, exact up to the final rounding. S_phi is a float.

    Notes
    -----
    Each p-value is a line in tau with a slope of at least 0. At a level, a label enters the set when tau
    passes the line's crossing, so set sizes follow from sorted crossings; level-free criteria integrate the
    sorted lines between their intersections. The integral of phi along a line is a Gauss-Legendre rule with
    64 points: exact for polynomials up to degree 127, to rounding for smooth functions.

    References
    ----------
    Vovk, Nouretdinov, Fedorova, Petej, Gammerman (2017), sections 3, 5 and 8; S_phi: Remark of section 4.

    Examples
    --------
    >>> from fractions import Fraction
    >>> from calipers.conformal.idealised import conformity, criterion_value
    >>> Q = [[Fraction(2, 10), Fraction(3, 10), Fraction(5, 10)]]
    >>> criterion_value(Q, conformity(Q, "CP"), "U"), criterion_value(Q, conformity(Q, "SP"), "U")
    (Fraction(7, 20), Fraction(1, 4))
    """
    if phi is not None and name != "S_phi":
        raise InputError(f"phi is used only with the criterion S_phi, got {name!r}.")
    law = Law.of(Q)
    lines = Lines.of(law, measure_table(A, law), label_conditional=label_conditional)
    if name == "S_phi":
        return _transformed_sum(law, lines, phi)
    return law.answer(expected(law, lines, name, alpha))


def _transformed_sum(law: Law, lines: Lines, phi: Callable[[Any], Any] | None) -> float:
    """E over x and tau of the sum over labels of phi(p(x, y)), the criterion S_phi."""
    if phi is None or not callable(phi):
        raise InputTypeError(f"the criterion S_phi needs phi, a function on [0, 1], got {repr(phi)[:60]}.")
    check_increasing(phi, name="phi")
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    tau = (1 + nodes) / 2
    below, equal = (np.array(table, dtype=float) for table in (lines.below, lines.equal))
    means = np.asarray(phi(below[..., None] + equal[..., None] * tau)) @ (weights / 2)
    return float(np.array(law.objects, dtype=float) @ means.sum(axis=1))


def expected(law: Law, lines: Lines, name: str, alpha: Any) -> Fraction:
    """The expectation from the lines."""
    if name not in NAMES:
        raise InputError(f"there is no criterion {name!r}; known are {', '.join((*NAMES, 'S_phi'))}.")
    if name in LEVEL_DEPENDENT and alpha is None:
        raise InputError(f"criterion {name} needs alpha.")
    level = None if alpha is None or name in LEVEL_FREE else exact_level(alpha)
    total = _ZERO
    for x in range(law.n_objects):
        pairs = list(zip(lines.below[x], lines.equal[x], strict=True))
        if name not in _OBSERVED:
            total += law.objects[x] * _of_object(name, pairs, level)
            continue
        for k, mass in enumerate(law.joint[x]):
            if mass:
                total += mass * _of_object(name, pairs[:k] + pairs[k + 1 :], level)
    return total


def _of_object(name: str, pairs: Pairs, level: Fraction | None) -> Fraction:
    """Expectation over tau for one object; observed criteria come with the false labels only."""
    if level is not None:
        return _AT_LEVEL[name](sorted(_crossing(b, e, level) for b, e in pairs))
    if name in ("S", "OF"):
        return sum((b + e / 2 for b, e in pairs), _ZERO)
    if name == "F":
        return _of_object("S", pairs, None) - ranked_integral(pairs, 0)
    return ranked_integral(pairs, 1 if name == "U" else 0)


def _crossing(below: Fraction, equal: Fraction, level: Fraction) -> Fraction:
    """The label is in the set for tau in (crossing, 1], up to a null set."""
    if equal == 0:
        return _ZERO if below > level else _ONE
    return min(_ONE, max(_ZERO, (level - below) / equal))


# From the sorted crossings of the labels considered.
_AT_LEVEL: dict[str, Callable[[list[Fraction]], Fraction]] = {
    "N": lambda c: sum((1 - t for t in c), _ZERO),
    "M": lambda c: 1 - c[1] if len(c) > 1 else _ZERO,
    "E": lambda c: sum((1 - t for t in c[1:]), _ZERO),
    "OM": lambda c: 1 - c[0] if c else _ZERO,
    "OE": lambda c: sum((1 - t for t in c), _ZERO),
    "empty": lambda c: c[0] if c else _ONE,
}


def ranked_integral(pairs: Pairs, rank: int) -> Fraction:
    """Integral over tau of the rank-th largest line (0 for the largest); 0 when there are too few."""
    if rank >= len(pairs):
        return _ZERO
    cuts = {_ZERO, _ONE}
    for i, (b1, e1) in enumerate(pairs):
        for b2, e2 in pairs[i + 1 :]:
            if e1 != e2 and 0 < (b2 - b1) / (e1 - e2) < 1:
                cuts.add((b2 - b1) / (e1 - e2))
    ordered, total = sorted(cuts), _ZERO
    for first, last in pairwise(ordered):
        # Between two intersections the order is fixed and the line straight: midpoint rule, exact.
        middle = (first + last) / 2
        values = sorted((b + middle * e for b, e in pairs), reverse=True)
        total += (last - first) * values[rank]
    return total
