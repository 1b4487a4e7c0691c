"""Nonconformity scores of classification: (n, K) probabilities in, (n, K) scores out, higher is stranger.

The same rule scores calibration labels and test labels, bit for bit. That is why probabilities enter
sums in multiples of 2^-52: sums below 2 of such numbers are exact in any order, so the mass of the
larger labels found by counting (calibration, no sort) equals the one found by sorting (test). Ranks are
found in the precision the probabilities came in, which float64 would not change.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from calipers.arrays import (
    Array,
    as_array,
    count_along,
    count_in_order,
    namespace,
    on_device_of,
    put_rows,
    sort_with_order,
    undo_row_order,
)
from calipers.arrays.device_rows import first_labels, running_mass
from calipers.conformal.blocks import row_blocks
from calipers.exceptions import InputError
from calipers.inputs import check_probabilities, require_finite
from calipers.inputs.option_checks import check_number
from calipers.inputs.row_checks import first_true, numeric, place

_BLOCK = 1 << 17
# rank (from 1), own mass, mass through the rank, largest probability, u, number of labels -> score
Formula = Callable[..., Array]


def lac(P: Any) -> Array:
    """Least ambiguous classifier: ``1 - p``. Smallest sets on average, uneven coverage over objects.

    Parameters
    ----------
    P : array of shape (n, K)
        Probabilities, rows summing to 1.

    Returns
    -------
    float64 array of shape (n, K)
        In [0, 1]; smaller is more conforming.

    References
    ----------
    Sadinle, Lei, Wasserman (2019), Least ambiguous set-valued classifiers with bounded error levels.

    Examples
    --------
    >>> from calipers.conformal import lac
    >>> lac([[0.25, 0.75]])
    array([[0.75, 0.25]])
    """
    return _lac(canonical(_check(P)))


def aps(P: Any, u: Any = None) -> Array:
    """Adaptive prediction sets: probability mass down to and including the label, minus ``u p``.

    Sets grow with the difficulty of the object; with u drawn per row coverage is exact, with u = 0
    (None) it is conservative and no set is empty.

    Parameters
    ----------
    P : array of shape (n, K)
        Probabilities, rows summing to 1.
    u : float or array of shape (n,), optional
        In [0, 1), one per row, independent and uniform for the randomised score; None means 0.

    Returns
    -------
    float64 array of shape (n, K)
        In [0, 1]; the last-ranked label of the deterministic score is exactly 1.

    Notes
    -----
    Labels are ranked by descending probability, ties in column order. Cost: one sort per row.

    References
    ----------
    Romano, Sesia, Candès (2020), Classification with valid and adaptive coverage.

    Examples
    --------
    >>> from calipers.conformal import aps
    >>> aps([[0.25, 0.5, 0.25]])
    array([[0.75, 0.5 , 1.  ]])
    >>> aps([[0.25, 0.5, 0.25]], u=0.5)
    array([[0.625, 0.25 , 0.875]])
    """
    return RankedRule(_aps).matrix(*_checked(P, u))


def raps(P: Any, u: Any = None, *, penalty: float = 0.01, k_reg: int = 1) -> Array:
    """Regularised APS: `aps` plus ``penalty * max(0, rank - k_reg)``, which shortens long tails.

    Parameters
    ----------
    P : array of shape (n, K)
        Probabilities, rows summing to 1.
    u : float or array of shape (n,), optional
        As in `aps`.
    penalty : float
        Added per rank beyond ``k_reg``; not negative.
    k_reg : int
        Ranks that are free of charge.

    Returns
    -------
    float64 array of shape (n, K)

    References
    ----------
    Angelopoulos, Bates, Malik, Jordan (2021), Uncertainty sets for image classifiers.

    Examples
    --------
    >>> from calipers.conformal import raps
    >>> raps([[0.25, 0.5, 0.25]], penalty=0.25)
    array([[1. , 0.5, 1.5]])
    """
    return raps_rule(penalty, k_reg).matrix(*_checked(P, u))


def saps(P: Any, u: Any = None, *, weight: float = 0.2) -> Array:
    """Sorted APS: only the largest probability and the rank count.

    ``(1 - u) p_max`` at rank 1, else ``p_max + weight (rank - 1 - u)``; the same rule for calibration and
    test, also at u = 0 (None).

    Parameters
    ----------
    P : array of shape (n, K)
        Probabilities, rows summing to 1.
    u : float or array of shape (n,), optional
        As in `aps`.
    weight : float
        Step per rank; not negative.

    Returns
    -------
    float64 array of shape (n, K)

    References
    ----------
    Huang, Xi, Zhang, Yao, Qiu, Wei (2024), Conformal prediction for deep classifier via label ranking.

    Examples
    --------
    >>> from calipers.conformal import saps
    >>> saps([[0.25, 0.5, 0.25]], weight=0.5)
    array([[1. , 0.5, 1.5]])
    """
    return saps_rule(weight).matrix(*_checked(P, u))


def margin(P: Any) -> Array:
    """Margin: the largest probability among the other labels minus the label's own.

    Parameters
    ----------
    P : array of shape (n, K)
        Probabilities, rows summing to 1.

    Returns
    -------
    float64 array of shape (n, K)
        In [-1, 1].

    Examples
    --------
    >>> from calipers.conformal import margin
    >>> margin([[0.25, 0.75]])
    array([[ 0.5, -0.5]])
    """
    return _margin(canonical(_check(P)))


def top_k(P: Any, u: Any = None) -> Array:
    """Rank of the label by descending probability, from 1, minus u; sets are the top k labels.

    Parameters
    ----------
    P : array of shape (n, K)
        Probabilities, rows summing to 1.
    u : float or array of shape (n,), optional
        As in `aps`.

    Returns
    -------
    float64 array of shape (n, K)

    Examples
    --------
    >>> from calipers.conformal import top_k
    >>> top_k([[0.25, 0.5, 0.25]])
    array([[2., 1., 3.]])
    """
    return top_k_rule().matrix(*_checked(P, u))


@dataclass(frozen=True, slots=True)
class RankedRule:
    """A score that looks at a label through its rank: never decreasing in the rank, for any u in [0, 1).

    Its sets are therefore the first so many labels by probability, and need the sorted values only.
    """

    formula: Formula
    sums_mass: bool = True  # whether the formula reads the own mass and the mass through the rank
    randomizable: bool = field(default=True, init=False)

    def matrix(self, P: Array, u: Array | None) -> Array:
        """Scores of all labels."""
        return _in_blocks(self._matrix_block, P, u)

    def at_labels(self, P: Array, codes: Array, u: Array | None) -> Array:
        """Scores of one label per row, by counting and adding the larger entries."""
        return _in_blocks(self._label_block, P, u, codes)

    def sets(self, P: Array, limits: Array, u: Array | None) -> Array:
        """``score <= limits`` for limits (n, L), as (n, K, L)."""
        return levels_last(_in_blocks(self._set_block, P, u, limits, axis=1))

    def _matrix_block(self, P: Array, u: Any) -> Array:
        descending, order = _descending(P)
        if self.formula is _aps and u is None and (scores := running_mass(descending, order)) is not None:
            return scores
        return undo_row_order(self._by_rank(descending, u), order)

    def _by_rank(self, descending: Array, u: Any) -> Array:
        xp = namespace(descending)
        labels = int(descending.shape[1])
        rank = xp.arange(1, labels + 1, dtype=xp.float64, device=descending.device)[None, :]
        # Only a draw takes a part of the own mass away; without one a device sums in one read.
        through = running_mass(descending) if self.sums_mass and u is None else None
        own = _whole_steps(descending) if self.sums_mass and through is None else None
        if own is not None:
            # Rounding may not lift a sum above the whole, and the last label completes it.
            through = xp.clip(xp.cumulative_sum(own, axis=1), max=1.0)
            through[:, -1] = 1.0
        return self.formula(rank, own, through, canonical(descending[:, :1]), _column(u), labels)

    def _label_block(self, P: Array, u: Any, codes: Array) -> Array:
        xp = namespace(P)
        labels = int(P.shape[1])
        own = xp.take_along_axis(P, codes[:, None], axis=1)
        larger = own < P
        columns = xp.arange(labels, dtype=codes.dtype, device=P.device)[None, :]
        ties = xp.astype(count_along((own == P) & (columns < codes[:, None]), axis=1), xp.float64)
        rank = xp.astype(count_along(larger, axis=1), xp.float64) + ties + 1
        step = through = None
        if self.sums_mass:
            step = _whole_steps(own)[:, 0]
            through = xp.sum(xp.astype(larger, xp.float64) * _whole_steps(P), axis=1) + (ties + 1) * step
            through = xp.where(rank == labels, xp.ones_like(through), xp.clip(through, max=1.0))
        return self.formula(rank, step, through, canonical(xp.max(P, axis=1)), u, labels)

    def _set_block(self, P: Array, u: Any, limits: Array) -> Array:
        xp = namespace(P)
        descending = xp.sort(P, axis=1, descending=True, stable=False)
        scores = self._by_rank(descending, u)
        if int(limits.shape[1]) == 1:
            mask = first_labels(P, descending, scores, limits[:, 0])
            if mask is not None:
                return mask[None, ...]
        sizes = [count_in_order(scores, limits[:, level]) for level in range(int(limits.shape[1]))]
        masks = [_first_labels(P, descending, size) for size in sizes]
        return masks[0][None, ...] if len(masks) == 1 else xp.stack(masks)


@dataclass(frozen=True, slots=True)
class MatrixRule:
    """A score given by a function of the whole (n, K) table: `lac`, `margin` or the user's own."""

    function: Callable[..., Array]
    randomizable: bool = False
    pointwise: bool = False  # whether a label's score depends on its own probability only

    def matrix(self, P: Array, u: Array | None) -> Array:
        """Scores of all labels."""
        P = canonical(P)
        return self.function(P) if u is None else self.function(P, u)

    def at_labels(self, P: Array, codes: Array, u: Array | None) -> Array:
        """Scores of one label per row."""
        xp = namespace(P)
        if self.pointwise:
            return self.matrix(xp.take_along_axis(P, codes[:, None], axis=1), u)[:, 0]
        return xp.take_along_axis(self.matrix(P, u), codes[:, None], axis=1)[:, 0]


Rule = RankedRule | MatrixRule


def checked_scores(function: Callable[..., Any]) -> Callable[..., Array]:
    """A user's function on probabilities, with its scores checked."""

    def checked(P: Array, *u: Array) -> Array:
        scores = as_array(function(P, *u), name="nonconformity scores")
        if tuple(scores.shape) != tuple(P.shape):
            raise InputError(
                f"nonconformity must return scores of shape {tuple(P.shape)}, got {tuple(scores.shape)}."
            )
        scores = numeric(scores, "nonconformity scores")
        return require_finite(scores, name="nonconformity scores", infinite=True)

    return checked


def _lac(P: Array) -> Array:
    return 1 - P


def _margin(P: Array) -> Array:
    xp = namespace(P)
    if int(P.shape[1]) == 1:
        return -P
    columns = xp.arange(P.shape[1], device=P.device)[None, :]
    first = columns == xp.argmax(P, axis=1, keepdims=True)
    second = xp.max(xp.where(first, xp.zeros_like(P) - 1, P), axis=1, keepdims=True)
    return xp.where(first, second, xp.max(P, axis=1, keepdims=True)) - P


def _aps(rank: Array, own: Array, through: Array, top: Array, u: Any, labels: int) -> Array:
    return through if u is None else through - u * own


def _raps(rank: Array, *rest: Any, penalty: float, k_reg: float) -> Array:
    xp = namespace(rank)
    return _aps(rank, *rest) + penalty * xp.clip(rank - k_reg, min=0.0)


def _saps(
    rank: Array, own: Array, through: Array, top: Array, u: Any, labels: int, *, weight: float
) -> Array:
    xp = namespace(rank)
    u = 0.0 if u is None else u
    return xp.where(rank == 1, (1.0 - u) * top, top + weight * (rank - 1.0 - u))


def _top_k(rank: Array, own: Array, through: Array, top: Array, u: Any, labels: int) -> Array:
    return namespace(top).zeros_like(top) + rank - (0.0 if u is None else u)


def lac_rule() -> MatrixRule:
    """The rule of `lac`."""
    return MatrixRule(_lac, pointwise=True)


def margin_rule() -> MatrixRule:
    """The rule of `margin`."""
    return MatrixRule(_margin)


def aps_rule() -> RankedRule:
    """The rule of `aps`."""
    return RankedRule(_aps)


def raps_rule(penalty: float = 0.01, k_reg: int = 1) -> RankedRule:
    """The rule of `raps`."""
    options = {"penalty": _not_negative(penalty, "penalty"), "k_reg": _not_negative(k_reg, "k_reg")}
    return RankedRule(partial(_raps, **options))


def saps_rule(weight: float = 0.2) -> RankedRule:
    """The rule of `saps`."""
    return RankedRule(partial(_saps, weight=_not_negative(weight, "weight")), sums_mass=False)


def top_k_rule() -> RankedRule:
    """The rule of `top_k`."""
    return RankedRule(_top_k, sums_mass=False)


def _whole_steps(P: Array) -> Array:
    """Probabilities rounded to float64 multiples of 2^-52: 1 + p has no finer ones."""
    xp = namespace(P)
    one = xp.ones((1, 1), dtype=xp.float64, device=P.device)  # an array: it widens a float32 P on the way
    return (P + one) - one


def _descending(P: Array) -> tuple[Array, Array]:
    """Probabilities in descending order and their columns, ties in column order."""
    if not isinstance(P, np.ndarray):
        return sort_with_order(P, axis=1, descending=True)
    # numpy's unstable argsort is twice as fast; rows it may have got wrong are those with ties.
    negative = -P
    order = np.argsort(negative, axis=1)
    ordered = np.take_along_axis(negative, order, axis=1)
    tied = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    if tied.size:
        order[tied] = np.argsort(negative[tied], axis=1, kind="stable")
    return -ordered, order


def _first_labels(P: Array, descending: Array, size: Array) -> Array:
    """The ``size`` most probable labels of every row, ties in column order, without their order."""
    xp = namespace(P)
    last = int(P.shape[1]) - 1
    cut = xp.take_along_axis(descending, xp.clip(size - 1, min=0)[:, None], axis=1)
    following = xp.take_along_axis(descending, xp.clip(size, max=last)[:, None], axis=1)
    # Where the label after the last has the same probability, ties decide; these rows are done again.
    is_tied = (size > 0) & (size <= last) & (cut == following)[:, 0]
    cut = xp.where((size == 0)[:, None], xp.full_like(cut, 2.0), cut)
    mask = cut <= P
    if not bool(xp.any(is_tied)):
        return mask
    rows = xp.nonzero(is_tied)[0]
    return put_rows(mask, rows, _cut_ties(*(xp.take(a, rows, axis=0) for a in (P, cut, size))))


def _cut_ties(P: Array, cut: Array, size: Array) -> Array:
    """Labels above the cut and, of those equal to it, the first ones up to the size."""
    xp = namespace(P)
    above, equal = cut < P, cut == P
    room = size - count_along(above, axis=1)
    return above | (equal & (xp.cumulative_sum(xp.astype(equal, xp.int64), axis=1) <= room[:, None]))


def levels_last(masks: Array) -> Array:
    """(L, n, K) seen as (n, K, L): each level stays in one piece of memory."""
    return namespace(masks).permute_dims(masks, (1, 2, 0))


def _column(u: Any) -> Any:
    return u if u is None else u[:, None]


def _in_blocks(
    function: Callable[..., Array], P: Array, u: Array | None, *rows: Array, axis: int = 0
) -> Array:
    xp = namespace(P)
    parts = [
        function(P[cut, ...], None if u is None else u[cut], *(r[cut, ...] for r in rows))
        for cut in row_blocks(P, host_entries=_BLOCK)
    ]
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=axis)


def canonical(P: Array) -> Array:
    """The probabilities in float64: a float32 is held exactly and ranks do not change."""
    xp = namespace(P)
    return P if P.dtype == xp.float64 else xp.astype(P, xp.float64)


def _check(P: Any) -> Array:
    array = check_probabilities(P, name="P")
    if int(array.shape[0]) == 0 or int(array.shape[1]) == 0:
        raise InputError(f"P must have at least one row and one column, got shape {tuple(array.shape)}.")
    return array


def _checked(P: Any, u: Any) -> tuple[Array, Array | None]:
    array = _check(P)
    return array, None if u is None else check_uniforms(u, array)


def check_uniforms(u: Any, P: Array) -> Array:
    """One u in [0, 1) per row, on the device of P."""
    n = int(P.shape[0])
    single = isinstance(u, (int, float)) and not isinstance(u, bool)
    given = np.full(n, check_number(u, name="u")) if single else as_array(u, name="u")
    if tuple(given.shape) != (n,):
        raise InputError(f"u must be one number or one per row ({n}), got shape {tuple(given.shape)}.")
    given = canonical(require_finite(numeric(given, "u"), name="u"))
    xp = namespace(given)
    outside = (given < 0) | (given >= 1)
    if bool(xp.any(outside)):
        value = float(given[first_true(outside)])
        raise InputError(f"u must lie in [0, 1), got {value:g} at {place(outside)}.")
    return on_device_of(given, P) if isinstance(given, np.ndarray) else given


def _not_negative(value: Any, name: str) -> float:
    number = check_number(value, name=name)
    if not 0 <= number <= 1e150:
        raise InputError(f"{name} must be finite and not negative, got {value}.")
    return number
