"""How alike two answers of a model are: the sim of eq. 1, 1 for the same answer.

Each kernel takes the array library, the clean answers (n, K) or (n,) and as many transformed ones, and gives
one number per row, where its arguments lie.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import Array, as_array, namespace
from calipers.exceptions import InputError
from calipers.inputs.option_checks import check_number

Kernel = Callable[[Any, Array, Array], Array]


def cosine(xp: Any, clean: Array, transformed: Array) -> Array:
    """Cosine of the angle between two rows; 1 for two rows of zeros, 0 for one of them.

    In [0, 1] for probabilities. Logits can give negative values: apply a softmax first.
    """
    product = xp.sum(clean * transformed, axis=1)
    scale = xp.sum(clean * clean, axis=1) * xp.sum(transformed * transformed, axis=1)
    one = xp.ones_like(product)
    ratio = product / xp.sqrt(xp.where(scale > 0, scale, one))
    both_zero = xp.all(clean == 0, axis=1) & xp.all(transformed == 0, axis=1)
    # Rounding must not lift a cosine above 1.
    return xp.where(both_zero, one, xp.where(ratio > 1, one, ratio))


def total_variation(xp: Any, clean: Array, transformed: Array) -> Array:
    """1 minus the total variation distance, half the summed absolute differences."""
    return 1 - 0.5 * xp.sum(xp.abs(clean - transformed), axis=1)


def jensen_shannon(xp: Any, clean: Array, transformed: Array) -> Array:
    """1 minus the Jensen-Shannon divergence in bits, which lies in [0, 1]."""
    middle = (clean + transformed) / 2
    divergence = (_entropy_terms(xp, clean, middle) + _entropy_terms(xp, transformed, middle)) / 2
    return 1 - xp.where(divergence > 0, divergence, xp.zeros_like(divergence))


def _entropy_terms(xp: Any, p: Array, q: Array) -> Array:
    """Sum of p log2(p / q), 0 where p is 0."""
    one = xp.ones_like(p)
    present = p > 0
    ratio = xp.where(present, p, one) / xp.where(present, q, one)
    return xp.sum(xp.where(present, p * xp.log2(ratio), xp.zeros_like(p)), axis=1)


def agreement(xp: Any, clean: Array, transformed: Array) -> Array:
    """1 where both answers have the same label on top (the first of ties), else 0."""
    if clean.ndim == 2:
        same = xp.argmax(clean, axis=1) == xp.argmax(transformed, axis=1)
    else:
        same = clean == transformed
    return xp.astype(same, xp.float64)


def exp_abs(xp: Any, clean: Array, transformed: Array, unit: float = 1.0) -> Array:
    """exp(-|y1 - y2| / unit) for numbers; the paper's unit is 1."""
    return xp.exp(-xp.abs(clean - transformed) / unit)


_FOR_ROWS: dict[str, Kernel] = {
    "cosine": cosine,
    "total_variation": total_variation,
    "jensen_shannon": jensen_shannon,
    "agreement": agreement,
}
NAMES = (*_FOR_ROWS, "exp_abs")


def similarity_of(similarity: Any, clean: Array, unit: float | str) -> Kernel:
    """The kernel for answers of this kind.

    Rows of probabilities have no exp_abs. Single numbers have no angle: "cosine" becomes exp_abs for
    numbers and agreement for labels, so that a regressor needs no option of its own.
    """
    if callable(similarity):
        return _Users(similarity)
    if not isinstance(similarity, str) or similarity not in NAMES:
        raise InputError(f"similarity must be one of {', '.join(NAMES)} or a callable, got {similarity!r}.")
    if clean.ndim == 2:
        if similarity == "exp_abs":
            raise InputError(
                'similarity="exp_abs" compares one number per row, but predict gives rows of '
                f"{int(clean.shape[1])}. Use cosine, total_variation, jensen_shannon or agreement."
            )
        return _FOR_ROWS[similarity]
    if similarity == "agreement" or (isinstance(clean, np.ndarray) and clean.dtype.kind not in "iuf"):
        return agreement
    if similarity in ("cosine", "exp_abs"):
        return _ExpAbs(_unit(unit, clean))
    raise InputError(
        f'similarity="{similarity}" needs rows of probabilities, but predict gives one number per row. '
        "Use exp_abs."
    )


@dataclass(frozen=True, slots=True)
class _Users:
    """A callable of two answers, in the form of a kernel."""

    function: Callable[[Array, Array], Any]

    def __call__(self, xp: Any, clean: Array, transformed: Array) -> Array:
        return as_array(self.function(clean, transformed), name="similarity(clean, transformed)")


@dataclass(frozen=True, slots=True)
class _ExpAbs:
    """exp_abs with its unit; equal units are equal kernels."""

    unit: float

    def __call__(self, xp: Any, clean: Array, transformed: Array) -> Array:
        return exp_abs(xp, clean, transformed, self.unit)


def _unit(unit: float | str, clean: Array) -> float:
    if isinstance(unit, str):
        if unit != "spread":
            raise InputError(f'unit must be a positive number or "spread", got {unit!r}.')
        spread = float(namespace(clean).std(clean))
        return spread if spread > 0 else 1.0
    number = check_number(unit, name="unit")
    if not number > 0:
        raise InputError(f'unit must be positive or "spread", got {number:g}.')
    return number
