"""Options that are not data: a choice among words, a switch, a number."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError, InputTypeError


def check_choice(value: Any, choices: Iterable[str], *, name: str) -> str:
    """One of the words.

    Examples
    --------
    >>> from calipers.inputs.option_checks import check_choice
    >>> check_choice("upper", ("upper", "lower"), name="side")
    'upper'
    """
    known = tuple(choices)
    if not isinstance(value, str) or value not in known:
        raise InputError(f"{name} must be one of {', '.join(known)}, got {repr(value)[:60]}.")
    return value


def check_flag(value: Any, *, name: str) -> bool:
    """True or False; 0 and 1 are taken too.

    Examples
    --------
    >>> from calipers.inputs.option_checks import check_flag
    >>> check_flag(True, name="weighted")
    True
    """
    if isinstance(value, (bool, np.bool_)) or (isinstance(value, numbers.Integral) and value in (0, 1)):
        return bool(value)
    raise InputTypeError(f"{name} must be True or False, got {repr(value)[:60]}.")


def check_number(value: Any, *, name: str, low: float = -math.inf, high: float = math.inf) -> float:
    """A number from ``low`` to ``high``, both included, and finite where they are not.

    Examples
    --------
    >>> from calipers.inputs.option_checks import check_number
    >>> check_number(3, name="penalty", low=0.0)
    3.0
    """
    single = as_numpy(value)[()] if isinstance(value, np.ndarray) and value.ndim == 0 else value
    if isinstance(single, (bool, np.bool_)) or not isinstance(single, (numbers.Real, Decimal)):
        raise InputTypeError(f"{name} must be a number, got {repr(value)[:60]}.")
    try:
        number = float(single)
    except (OverflowError, ValueError):
        raise InputError(f"{name} must be a finite number, got {str(value)[:40]}.") from None
    if not low <= number <= high:  # refuses NaN too
        bounds = f"from {low:g} to {high:g}" if math.isfinite(high) else f"of at least {low:g}"
        raise InputError(f"{name} must be a number {bounds}, got {number:g}.")
    return number


def check_range(ends: Any, *, name: str) -> tuple[float, float]:
    """Two finite numbers, the first below the second.

    Examples
    --------
    >>> from calipers.inputs.option_checks import check_range
    >>> check_range([0, 2], name="loss_range")
    (0.0, 2.0)
    """
    try:
        low, high = (float(end) for end in ends)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name} must be two numbers, got {repr(ends)[:60]}.") from None
    if not (math.isfinite(low) and math.isfinite(high) and low < high):
        raise InputError(f"{name} must be finite and rising, got {repr(ends)[:60]}.")
    return low, high


def check_increasing(function: Any, *, name: str) -> tuple[float, float]:
    """The values at 0 and 1 of a strictly increasing function of arrays with entries in [0, 1].

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.option_checks import check_increasing
    >>> check_increasing(np.square, name="phi")
    (0.0, 1.0)
    """
    grid = np.asarray(function(np.linspace(0.0, 1.0, 1001)), dtype=float)
    if grid.shape != (1001,) or not np.isfinite(grid).all() or not (np.diff(grid) > 0).all():
        raise InputError(f"{name} must map arrays to arrays, finite and strictly increasing on [0, 1].")
    return float(grid[0]), float(grid[-1])


def check_label(value: Any, *, name: str) -> Any:
    """A single label: text or a number, not missing, not several.

    Examples
    --------
    >>> from calipers.inputs.option_checks import check_label
    >>> check_label("yes", name="pos_label")
    'yes'
    """
    single = value.item() if isinstance(value, np.generic) else value
    missing = single is None or type(single).__name__ in {"NAType", "NaTType"}
    if missing or np.ndim(single) != 0 or not hasattr(type(single), "__hash__") or not _is_hashable(single):
        raise InputTypeError(f"{name} must be a single label, got {repr(value)[:60]}.")
    return value


def _is_hashable(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
