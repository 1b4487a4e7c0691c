"""Rows: lengths, weights, groups, finite numbers."""

from __future__ import annotations

import math
import numbers
from decimal import Decimal
from typing import Any

import numpy as np

from calipers.arrays import (
    Array,
    as_array,
    as_numpy,
    count_along,
    floating,
    namespace,
    smallest_and_largest,
)
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs.times import parsed_times

# No sum of squares of so many such numbers overflows.
LARGEST_VALUE, LARGEST_COUNT = 1e150, 10**12


def check_same_length(**arrays: Array | None) -> int:
    """The common number of rows, at least one; None is passed over.

    Examples
    --------
    >>> from calipers.inputs import check_same_length
    >>> check_same_length(y_true=[1, 2, 3], covered=[1, 0])
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: y_true and covered must have the same length, got y_true: 3, covered: 2.
    """
    given = {name: array for name, array in arrays.items() if array is not None}
    lengths = {name: _length(array, name) for name, array in given.items()}
    if not lengths:
        raise InputTypeError(f"{', '.join(arrays) or 'the rows'} must be given, got None.")
    if len(set(lengths.values())) > 1:
        names = " and ".join([", ".join(list(lengths)[:-1]), list(lengths)[-1]])
        found = ", ".join(f"{name}: {n}" for name, n in lengths.items())
        raise InputError(f"{names} must have the same length, got {found}.")
    n = next(iter(lengths.values()))
    if n == 0:
        raise InputError(f"{next(iter(lengths))} must have at least one row, got none.")
    require_same_index(**given)
    return n


def _length(array: Any, name: str) -> int:
    shape = getattr(array, "shape", None)
    if shape is None:
        return len(array) if hasattr(array, "__len__") else _length(as_array(array, name=name), name)
    if not len(shape):
        raise InputError(f"{name} must have one entry per row, got a single value.")
    return int(shape[0])


def require_same_index(**given: Any) -> None:
    """Refuse columns of pandas whose rows are not the same, or not in the same order.

    Paired by position, as arrays are, such rows would belong to different cases.

    Examples
    --------
    >>> import pandas as pd
    >>> from calipers.inputs.row_checks import require_same_index
    >>> require_same_index(y_true=pd.Series([1, 0]), covered=[True, True], groups=pd.Series(["a", "b"]))
    """
    indexed = {name: value.index for name, value in given.items() if hasattr(value, "iloc")}
    if len(indexed) < 2:
        return
    (first, index), *others = indexed.items()
    for name, other in others:
        if index is other or index.equals(other):
            continue
        row = next(i for i, (a, b) in enumerate(zip(index, other, strict=True)) if not _is_same(a, b))
        left, right = index[row : row + 1].tolist()[0], other[row : row + 1].tolist()[0]
        raise InputError(
            f"{first} and {name} have different indexes (first at row {row}: {left!r} and {right!r}). "
            f"Bring them into one order, for instance {name}.loc[{first}.index], or pass {name}.to_numpy() "
            "when rows belong together by position."
        )


def _is_same(first: Any, second: Any) -> bool:
    return bool(first is second or first == second or (first != first and second != second))


def one_column(array: Any) -> Any:
    """A single column as the vector it holds; every other array as it is.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.row_checks import one_column
    >>> one_column(np.ones((3, 1))).shape, one_column(np.ones((3, 2))).shape
    ((3,), (3, 2))
    """
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def check_vector(values: Any, *, name: str, finite: bool = True) -> Array:
    """A one-dimensional array of real numbers in a floating dtype, without NaN (or infinities).

    Examples
    --------
    >>> from calipers.inputs import check_vector
    >>> check_vector([1, 2], name="size")
    array([1., 2.])
    """
    return require_finite(real_vector(values, name=name), name=name, infinite=not finite)


def real_vector(values: Any, *, name: str) -> Array:
    """A one-dimensional array of real numbers in a floating dtype, of any value."""
    array = one_column(as_array(values, name=name))
    if array.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {tuple(array.shape)}.")
    return numeric(array, name)


def numeric(array: Array, name: str) -> Array:
    """The array in a floating dtype; text, dates and complex numbers are refused by name."""
    if isinstance(array, np.ndarray):
        if array.dtype.kind in "biuf":
            _refuse_rounded(array, name)
            return floating(array)
        try:
            return _objects_to_float(array)
        except (TypeError, ValueError, OverflowError):
            raise InputTypeError(f"{name} must hold numbers, got {_first_other(array)}.") from None
    xp = namespace(array)
    if not xp.isdtype(array.dtype, ("bool", "integral", "real floating")):
        raise InputTypeError(f"{name} must hold real numbers, got {array.dtype}.")
    return floating(array)


def _refuse_rounded(array: np.ndarray, name: str) -> None:
    """Refuse whole numbers that a double rounds: 2**53 + 1 would lie in the interval from 2**53 to 2**53."""
    if array.dtype.kind not in "iu" or array.dtype.itemsize < 8 or not array.size:
        return
    if max(-int(array.min()), int(array.max())) <= 2**53:
        return
    # A number whose last 11 bits are 0 is a double; the others are looked at one by one, up to the first.
    doubtful = array[array & array.dtype.type(2047) != 0].tolist()
    rounded = next((value for value in doubtful if float(value) != value), None)
    if rounded is not None:
        raise InputError(
            f"{name} holds {rounded}, which no double holds exactly. Subtract a constant from all values, or "
            f"pass {name}.astype(float) where the rounding does not matter."
        )


def _first_other(array: np.ndarray) -> str:
    """The first value that is not a number and its row; the dtype where all could be numbers, as in text."""
    for row, value in enumerate(array.tolist()):
        for cell in value if isinstance(value, list) else [value]:
            try:
                float(np.nan if cell is None else cell)
            except (TypeError, ValueError, OverflowError):
                return f"{repr(cell)[:40]} at row {row}"
    return f"{array.dtype} (first value {array.flat[:1].tolist()[0]!r})" if array.size else str(array.dtype)


def _objects_to_float(array: np.ndarray) -> np.ndarray:
    if array.dtype.kind != "O":
        raise TypeError
    return np.array([np.nan if _is_missing(v) else float(v) for v in array.ravel()]).reshape(array.shape)


def require_finite(array: Array, *, name: str, infinite: bool = False) -> Array:
    """The array itself, or an error with the count and the first place of NaN (or infinite) values.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs import require_finite
    >>> require_finite(np.array([[0.1, np.nan]]), name="probabilities")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: probabilities has 1 NaN of 2 values (first at row 0, column 1).
    """
    if _is_finite(array, infinite):
        return array
    xp = namespace(array)
    nan, infinities = xp.isnan(array), ~xp.isfinite(array)
    kind, mask = ("NaN", nan) if bool(xp.any(nan)) else ("infinite value(s)", infinities)
    if not bool(xp.any(mask)):
        kind, mask = "value(s) beyond 1e150", xp.abs(array) > LARGEST_VALUE
    if not bool(xp.any(mask)):
        raise InputError(f"{name} has no value beyond 1e-150, too little to be squared. Rescale it.")
    raise InputError(
        f"{name} has {count_true(mask)} {kind} of {array_size(array)} values (first at {place(mask)})."
    )


def _is_finite(array: Array, infinite: bool) -> bool:
    """Whether no value is NaN (or infinite): the smallest and largest say so, and nothing is stored."""
    if not array_size(array):
        return True
    xp, on_host = namespace(array), isinstance(array, np.ndarray)
    if infinite:
        low = array.min() if on_host else xp.min(array)  # a NaN anywhere makes it NaN
        return bool(low == low)
    low, high = smallest_and_largest(array)
    is_double = on_host and array.dtype == np.float64
    if not (is_double or xp.isdtype(array.dtype, "real floating")) or (
        not is_double and float(xp.finfo(array.dtype).max) <= LARGEST_VALUE
    ):
        return math.isfinite(low) and math.isfinite(high)
    reach = max(-low, high)  # NaN makes both of them NaN
    return bool(low == low and high == high and (reach == 0 or 1 / LARGEST_VALUE <= reach <= LARGEST_VALUE))


def array_size(array: Array) -> int:
    """Number of entries, for any array library."""
    size = 1
    for length in array.shape:
        size *= int(length)
    return size


def count_true(mask: Array) -> int:
    """How many entries hold."""
    return int(count_along(mask, axis=None))


def first_true(mask: Array) -> tuple[int, ...]:
    """Index of the first entry that holds."""
    xp = namespace(mask)
    flat = int(xp.argmax(xp.astype(xp.reshape(mask, (-1,)), xp.int8)))
    return tuple(int(i) for i in np.unravel_index(flat, tuple(int(s) for s in mask.shape)))


def place(mask: Array) -> str:
    """Where the first entry that holds lies, in words."""
    index = first_true(mask)
    return ", ".join(f"{axis} {i}" for axis, i in zip(("row", "column", "level"), index, strict=False))


def check_weights(
    weights: Any, n: int, *, name: str = "sample_weight", part: bool = False
) -> np.ndarray | None:
    """Weights as float64, non-negative, finite, not all zero; None stays None (every row once).

    A weight means repetition: a row of weight 2 counts as two equal rows. The weights of a ``part`` of the
    rows may all be zero.

    Examples
    --------
    >>> from calipers.inputs import check_weights
    >>> check_weights([1, 2], 2)
    array([1., 2.])
    """
    if weights is None:
        return None
    array = np.asarray(as_numpy(check_vector(weights, name=name)), dtype=np.float64)
    if array.shape[0] != n:
        raise InputError(f"{name} must have one entry per row ({n}), got {array.shape[0]}.")
    if (array < 0).any():
        row = int(np.argmax(array < 0))
        raise InputError(f"{name} must not be negative, got {array[row]} at row {row}.")
    if not part and not array.any():
        raise InputError(f"{name} must not be zero everywhere.")
    return array


def check_count(value: Any, *, name: str, minimum: int = 1) -> int:
    """A whole number of at least ``minimum``.

    Examples
    --------
    >>> from calipers.inputs import check_count
    >>> check_count(0, name="n_bins")
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: n_bins must be a whole number of at least 1, got 0.
    """
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Integral) or value < minimum:
        raise InputError(f"{name} must be a whole number of at least {minimum}, got {repr(value)[:80]}.")
    if int(value) > LARGEST_COUNT:
        raise InputError(f"{name} must be at most {LARGEST_COUNT}, got {str(value)[:20]}...")
    return int(value)


def check_row_labels(labels: Any, n: int, *, name: str) -> np.ndarray:
    """One label per row, none of them missing."""
    array: np.ndarray = one_column(as_numpy(labels, name=name))
    if array.shape != (n,):
        raise InputError(f"{name} must have one entry per row ({n}), got shape {array.shape}.")
    refuse_missing_labels(array, name)
    return array


def check_groups(groups: Any, n: int, *, name: str = "groups") -> tuple[np.ndarray, np.ndarray]:
    """Distinct group labels in sorted order and, per row, the index of its label.

    Labels may be integers, strings, booleans or any mixture that has an order by type and text;
    missing labels are refused, because they would form a group without a name.

    Examples
    --------
    >>> from calipers.inputs import check_groups
    >>> check_groups(["b", "a", "b"], 3)
    (array(['a', 'b'], dtype='<U1'), array([1, 0, 1]))
    """
    array = check_row_labels(groups, n, name=name)
    if array.dtype.kind == "O":
        return _object_groups(array, name)
    if array.dtype.kind in "iu" and len(array) and int(array.max()) - int(array.min()) < 4 * len(array):
        return _numbered_groups(array)
    labels, codes = np.unique(array, return_inverse=True)
    return named_zero(labels), codes.reshape(-1)


def named_zero(labels: np.ndarray) -> np.ndarray:
    """The labels with 0.0 for -0.0: they are equal, and the order of rows decided which of them was kept.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.row_checks import named_zero
    >>> named_zero(np.array([-0.0, 2.0]))
    array([0., 2.])
    """
    return labels + labels.dtype.type(0) if labels.dtype.kind == "f" else labels


def _numbered_groups(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers close together, looked up in a table instead of sorted: a fifth of the time."""
    low = array.min()
    place = (array.astype(np.uint64) - low.astype(np.uint64)).astype(
        np.int64
    )  # wraps, also for negative ones
    there = np.zeros(int(place.max()) + 1, dtype=bool)
    there[place] = True
    labels = low + np.flatnonzero(there).astype(array.dtype)
    return labels, (np.cumsum(there) - 1)[place]


def distinct_objects(array: np.ndarray, name: str) -> list[Any]:
    """The distinct values of an array of objects, by type and value; what has no order is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.row_checks import distinct_objects
    >>> distinct_objects(np.array(["b", "a", "b"], dtype=object), "groups")
    ['a', 'b']
    """
    try:
        found = sorted(set(array.tolist()), key=lambda v: (_kind(v), v))
    except TypeError:
        first = next((v for v in array.tolist() if not _is_label(v)), array.flat[0])
        raise InputTypeError(
            f"{name} must hold labels such as text or numbers, got {repr(first)[:40]} of type "
            f"{type(first).__name__}. Give every row one label."
        ) from None
    shown: dict[str, Any] = {}
    for label in found:
        if shown.setdefault(str(label), label) is not label:
            raise InputError(
                f"{name} holds {shown[str(label)]!r} and {label!r}, which read the same. "
                "Write every label in one way."
            )
    return found


def _kind(value: Any) -> str:
    """What a value is ordered among: True, 1 and 1.0 are one number, text of numpy and of Python one text."""
    if isinstance(value, (numbers.Number, np.bool_)):
        return "number"
    return "str" if isinstance(value, str) else type(value).__name__


def _is_label(value: Any) -> bool:
    """Whether a value can be told from others and put in order."""
    try:
        return bool({value} and sorted([value, value]))
    except TypeError:
        return False


def _object_groups(array: np.ndarray, name: str) -> tuple[np.ndarray, np.ndarray]:
    distinct = distinct_objects(array, name)
    position = {label: i for i, label in enumerate(distinct)}
    labels = np.empty(len(distinct), dtype=object)
    labels[:] = distinct
    if len({type(v) for v in distinct}) == 1:
        labels = as_numpy(distinct)
    return labels, np.array([position[v] for v in array.tolist()], dtype=np.int64)


def refuse_missing_labels(labels: np.ndarray, name: str) -> None:
    """Refuse labels of groups or clusters of which some are missing."""
    missing = missing_mask(labels)
    if missing.any():
        raise InputError(
            f"{name} has {int(missing.sum())} missing of {len(labels)} values "
            f"(first at row {int(np.argmax(missing))}). "
            "Give missing labels a name of their own, or drop the rows."
        )


def missing_mask(array: np.ndarray) -> np.ndarray:
    """True where a value is missing: NaN, NaT, None or a library's own null."""
    if array.dtype.kind == "f":
        return np.asarray(np.isnan(array))
    if array.dtype.kind in "mM":
        return np.asarray(np.isnat(array))
    if array.dtype.kind != "O":
        return np.zeros(array.shape, dtype=bool)
    # pandas' NA is neither equal nor unequal to itself, NaN is unequal: both are "not equal".
    flags = [_is_missing(v) for v in array.ravel()]
    return np.array(flags, dtype=bool).reshape(array.shape)


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in {"NAType", "NaTType"}:
        return True
    try:
        return bool(value != value)
    except (ArithmeticError, TypeError, ValueError):  # a signalling NaN; an array in a cell
        return isinstance(value, Decimal)


def _refuse_missing_times(lost: np.ndarray, name: str) -> None:
    if lost.any():
        raise InputError(f"{name} has {int(lost.sum())} missing values (first at row {int(lost.argmax())}).")


def check_time(time: Any, *, name: str = "time") -> np.ndarray:
    """When each row happened, as numbers in the same order: numbers as they are, dates as microseconds.

    Examples
    --------
    >>> from calipers.inputs.row_checks import check_time
    >>> check_time(["1970-01-01", "1970-01-01T00:00:01"]).tolist()
    [0.0, 1000000.0]
    """
    values = as_numpy(time, name=name)
    if values.ndim != 1 and values.shape[1:] != (1,):
        raise InputError(f"{name} must have one entry per row, got shape {values.shape}.")
    values = values.reshape(-1)
    if values.dtype.kind == "O":
        _refuse_missing_times(missing_mask(values), name)
    if values.dtype.kind in "OUS":
        values = parsed_times(values, name)
    if values.dtype.kind in "mM":
        _refuse_missing_times(np.isnat(values), name)
        values = values.astype(f"{values.dtype.kind}8[us]").astype(np.int64)
    if values.dtype.kind in "iu":
        values = values.astype(np.float64)  # nanoseconds since 1970 are rounded to 256 of them
    return np.ascontiguousarray(as_numpy(check_vector(values, name=name)), dtype=np.float64)
