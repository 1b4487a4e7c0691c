"""Levels: alpha, confidence and other numbers strictly between 0 and 1."""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, is_array
from calipers.exceptions import InputError, InputTypeError

_ALPHA_RULE = "It is the allowed miscoverage (0.1 for 90 % coverage)"
_SNAP_DENOMINATOR = 10**6
_SNAP_DISTANCE = Fraction(1, 10**12)


def check_alpha(alpha: Any, *, name: str = "alpha") -> float:
    """The allowed miscoverage as a float strictly between 0 and 1.

    Examples
    --------
    >>> from calipers.inputs import check_alpha
    >>> check_alpha(90)
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: alpha must lie strictly between 0 and 1, got 90. It is the allowed
    miscoverage (0.1 for 90 % coverage), not a percentage.
    """
    return float(_inside_unit(alpha, name, _ALPHA_RULE))


def check_alphas(alpha: Any, *, name: str = "alpha") -> tuple[tuple[Any, ...], bool]:
    """The levels as a tuple, and whether a single one was given.

    The levels keep their kind (float, Fraction, Decimal), so that ranks stay exact.

    Examples
    --------
    >>> from calipers.inputs import check_alphas
    >>> check_alphas([0.1, 0.2])
    ((0.1, 0.2), False)
    """
    if isinstance(alpha, (numbers.Number, Decimal)) or not isinstance(alpha, Iterable):
        return (_inside_unit(alpha, name, _ALPHA_RULE),), True
    if is_array(alpha) and getattr(alpha, "ndim", 1) == 0:
        return (_inside_unit(alpha, name, _ALPHA_RULE),), True
    levels = list(as_numpy(alpha, name=name)) if is_array(alpha) else list(alpha)
    if not levels:
        raise InputError(f"{name} must hold at least one level, got an empty list.")
    checked = (_inside_unit(a, f"{name}[{i}]", _ALPHA_RULE) for i, a in enumerate(levels))
    return tuple(checked), False


def check_label_alpha(label_alpha: Any, labels: Iterable[Any]) -> tuple[Fraction, ...]:
    """The allowed miscoverage of every label, as the fractions people mean.

    A sequence in the order of the labels, or a mapping from every label to its level.

    Examples
    --------
    >>> from calipers.inputs.levels import check_label_alpha
    >>> check_label_alpha([0.05, 0.2], ["no", "yes"])
    (Fraction(1, 20), Fraction(1, 5))
    >>> check_label_alpha({"yes": 0.2, "no": 0.05}, ["no", "yes"])
    (Fraction(1, 20), Fraction(1, 5))
    """
    names = list(labels)
    if isinstance(label_alpha, Mapping):
        if len(label_alpha) != len(names) or any(name not in label_alpha for name in names):
            raise InputError(
                f"label_alpha must have the labels {', '.join(map(repr, names[:5]))} as keys, "
                f"got {', '.join(map(repr, list(label_alpha)[:5]))}."
            )
        label_alpha = [label_alpha[name] for name in names]
    levels, single = check_alphas(label_alpha, name="label_alpha")
    if single or len(levels) != len(names):
        count = "one number" if single else len(levels)
        raise InputError(f"label_alpha must have one level per label, {len(names)}, got {count}.")
    return tuple(exact_level(level) for level in levels)


def check_row_alpha(alpha: Any, n: int, *, name: str = "alpha") -> np.ndarray:
    """One level per row: a number in (0, 1) is repeated, a vector has one entry in [0, 1] per row.

    A vector may hold 0 and 1: rows that promise with certainty.

    Examples
    --------
    >>> from calipers.inputs import check_row_alpha
    >>> check_row_alpha(0.1, 2)
    array([0.1, 0.1])
    """
    if isinstance(alpha, (numbers.Number, Decimal, str)) or alpha is None or np.ndim(alpha) == 0:
        return np.full(n, check_alpha(alpha, name=name))
    try:
        values = np.asarray(as_numpy(alpha, name=name), dtype=float)
    except (TypeError, ValueError, OverflowError):
        raise InputTypeError(
            f"{name} must be a number, or one number per row, got {repr(alpha)[:60]}."
        ) from None
    if values.shape != (n,):
        raise InputError(
            f"{name} must be one number or have one entry per row ({n}), got shape {values.shape}."
        )
    bad = ~((values >= 0) & (values <= 1))
    if bad.any():
        row = int(np.argmax(bad))
        raise InputError(
            f"{name} must lie between 0 and 1 in every row, got {values[row]} at row {row}. "
            f"{_ALPHA_RULE}, not a percentage."
        )
    return values


def check_confidence(confidence: Any, *, name: str = "confidence") -> float:
    """The level of an interval as a float strictly between 0 and 1.

    Examples
    --------
    >>> from calipers.inputs import check_confidence
    >>> check_confidence(0.95)
    0.95
    """
    return float(_inside_unit(confidence, name, "It is the level of the interval (0.95 for 95 %)"))


def check_fraction(value: Any, *, name: str, meaning: str = "It is a share") -> float:
    """A share strictly between 0 and 1.

    Examples
    --------
    >>> from calipers.inputs import check_fraction
    >>> check_fraction(0.1, name="min_mass")
    0.1
    """
    return float(_inside_unit(value, name, meaning))


def exact_level(alpha: Any, *, name: str = "alpha") -> Fraction:
    """The level as the fraction a person means by it.

    A float is snapped to the fraction with denominator at most 10^6 that lies within 1e-12 of it, so
    0.1, ``1 - 0.9`` and ``0.30000000000000004`` mean 1/10, 1/10 and 3/10; it is never snapped to 0
    or 1. A float32 is read as its shortest decimal. Fraction and Decimal are taken as they are.

    Examples
    --------
    >>> from calipers.inputs import exact_level
    >>> exact_level(1 - 0.9), exact_level(0.1 + 0.2), exact_level(1 / 3)
    (Fraction(1, 10), Fraction(3, 10), Fraction(1, 3))
    """
    level = _inside_unit(alpha, name, _ALPHA_RULE)
    return _snap(level) if isinstance(level, float) else Fraction(level)


@lru_cache(maxsize=1024)
def _snap(level: float) -> Fraction:
    snapped = snap_to_fraction(level)
    return snapped if 0 < snapped < 1 else Fraction(level)


def snap_to_fraction(value: float) -> Fraction:
    """The fraction with denominator at most 10^6 within 1e-12 of a float; else the float itself.

    Examples
    --------
    >>> from calipers.inputs.levels import snap_to_fraction
    >>> snap_to_fraction(0.1 + 0.2), snap_to_fraction(1 / 3)
    (Fraction(3, 10), Fraction(1, 3))
    """
    exact = Fraction(value)
    snapped = exact.limit_denominator(_SNAP_DENOMINATOR)
    return snapped if abs(snapped - exact) <= _SNAP_DISTANCE else exact


def _inside_unit(value: Any, name: str, meaning: str) -> float | Fraction | Decimal:
    if type(value) is float and 0.0 < value < 1.0:
        return value
    number = _number(value, name)
    inside = not (isinstance(number, Decimal) and number.is_nan()) and 0 < number < 1  # also refuses NaN
    if not inside or float(number) in (0.0, 1.0):
        hint = ", not a percentage." if number == number and number > 1 else "."
        raise InputError(f"{name} must lie strictly between 0 and 1, got {str(value)[:40]}. {meaning}{hint}")
    return number


def _number(value: Any, name: str) -> float | Fraction | Decimal:
    if is_array(value) and getattr(value, "ndim", 1) == 0:
        value = as_numpy(value)[()]
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (numbers.Real, Decimal)):
        shape = tuple(getattr(value, "shape", ()))
        shown = f"of shape {shape}" if shape else repr(value)
        raise InputTypeError(f"{name} must be a number, got {type(value).__name__} {shown}.")
    if isinstance(value, (Fraction, Decimal)):
        return value
    if isinstance(value, np.floating) and not isinstance(value, float):
        return float(str(value))  # float32(0.1) means 0.1, not 0.10000000149
    try:
        return float(value)
    except OverflowError:
        raise InputError(f"{name} is too large a number, got {str(value)[:40]}...") from None
