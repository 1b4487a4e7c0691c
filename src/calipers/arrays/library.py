"""Which array library, which device: both are read off the array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import array_api_compat
import numpy as np
from narwhals.dependencies import is_into_dataframe, is_into_series

from calipers.arrays.device_rows import scatter_rows
from calipers.exceptions import InputTypeError

# Any array of any library; the array API standard has no common base class to name.
Array: TypeAlias = Any
_NAMESPACES: dict[type, Any] = {}
# Up to so many positions it is faster to mark the wanted ones than to sort them.
_FEW_MARKS = 1 << 14


def is_array(value: object) -> bool:
    """Whether the value is an array of a library we compute in (numpy, torch, CuPy, JAX, strict).

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import is_array
    >>> is_array(np.zeros(2)), is_array([0, 0])
    (True, False)
    """
    # Most values are numpy's, or plain numbers: neither needs to be compared with every library.
    if isinstance(value, (np.ndarray, np.generic, float, int)):
        return isinstance(value, np.ndarray)
    return bool(array_api_compat.is_array_api_obj(value))


def namespace(*arrays: Array) -> Any:
    """The array-API namespace shared by the arrays; scalars and None are passed over.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import namespace
    >>> xp = namespace(np.zeros(2))
    >>> float(xp.sum(xp.ones(3)))
    3.0
    """
    kinds = {*map(type, arrays)}
    if len(kinds) != 1:
        return array_api_compat.array_namespace(*arrays)
    # Arrays of one type have one namespace: it is looked for once.
    kind = kinds.pop()
    if kind not in _NAMESPACES:
        _NAMESPACES[kind] = array_api_compat.array_namespace(*arrays)
    return _NAMESPACES[kind]


def as_array(values: object, *, name: str) -> Array:
    """An array: arrays stay as they are and where they are, everything else becomes numpy.

    Lists, tuples, ranges, numpy scalars, and the columns of pandas, polars and arrow are converted.
    A masked or sparse array is refused, because what it leaves out would be read as a value.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.arrays import as_array
    >>> as_array(pl.Series([1, 2]), name="y_true")
    array([1, 2])
    """
    if isinstance(values, np.ma.MaskedArray):
        raise InputTypeError(
            f"{name} is a masked array; fill it or drop the masked rows first, "
            "for instance with .compressed()."
        )
    if is_array(values):
        return values
    if is_into_series(values):
        return _column_to_numpy(values, name)
    if hasattr(values, "toarray") and hasattr(values, "nnz"):
        raise InputTypeError(f"{name} is a sparse matrix; pass {name}.toarray() instead.")
    if values is None or isinstance(values, (str, bytes, dict, set, frozenset)) or callable(values):
        raise InputTypeError(f"{name} must be an array or a list, got {type(values).__name__}.")
    if hasattr(values, "collect") and hasattr(values, "collect_schema"):
        raise InputTypeError(f"{name} is a lazy frame and holds no rows yet; pass {name}.collect() instead.")
    if isinstance(values, Iterator):
        raise InputTypeError(
            f"{name} must be an array or a list, got {type(values).__name__}, which can be read only once. "
            f"Pass list({name})."
        )
    return _plain_to_numpy(values, name)


def _column_to_numpy(column: Any, name: str) -> np.ndarray:
    import narwhals as nw

    wrapped = nw.from_native(column, series_only=True)
    if wrapped.dtype in (nw.Int128, nw.UInt128):  # numpy has no such numbers
        wrapped = wrapped.cast(nw.Float64)
    return _values_of(wrapped, f"{name} is a column of {wrapped.dtype}")


def _frame_to_numpy(frame: Any, name: str) -> np.ndarray:
    import narwhals as nw

    from calipers.arrays.frames import frame_columns

    frame_columns(frame)  # refuses two columns of one name
    wrapped = nw.from_native(frame, eager_only=True)
    wide = [key for key, kind in wrapped.schema.items() if kind in (nw.Int128, nw.UInt128)]
    if wide:
        wrapped = wrapped.with_columns(nw.col(*wide).cast(nw.Float64))
    return _values_of(wrapped, f"{name} is a table")


def _values_of(wrapped: Any, what: str) -> np.ndarray:
    try:
        return np.asarray(wrapped.to_numpy())
    except Exception as error:  # noqa: BLE001 - every dataframe library has errors of its own
        cause = str(error).split("\n", maxsplit=1)[0][:120]
        raise InputTypeError(f"{what} that cannot be read as numbers or text ({cause}).") from None


def _plain_to_numpy(values: Any, name: str) -> np.ndarray:
    if is_into_dataframe(values):
        return _frame_to_numpy(values, name)
    if hasattr(values, "to_numpy"):  # an index of pandas, an array of arrow
        return np.asarray(_plain_column(values))
    try:
        array = np.asarray(values)
    except ValueError:
        raise InputTypeError(f"{name} must be rectangular: its rows have different lengths.") from None
    return np.array(values, dtype=object) if _loses_kinds(values, array) else array


def _loses_kinds(values: Any, array: np.ndarray) -> bool:
    """Whether numpy made text of what is none, or rounded whole numbers: 1 and "1" are two labels."""
    if not isinstance(values, (list, tuple)) or array.ndim not in (1, 2) or array.dtype.kind not in "Uf":
        return False
    cells = values if array.ndim == 1 else [cell for row in values for cell in row]
    if array.dtype.kind == "U":
        return not all(isinstance(cell, str) for cell in cells)
    return array.ndim == 1 and len(cells) > 0 and all(type(cell) is int for cell in cells)


def _plain_column(values: Any) -> Any:
    """The values of a column that is not a series; arrow copies only when it is told that it may."""
    if type(values).__module__.split(".")[0] == "pyarrow":
        return values.to_numpy(zero_copy_only=False)
    return values.to_numpy()


def as_numpy(values: object, *, name: str = "array") -> np.ndarray:
    """The values as a numpy array on the host, copied off a device when they live on one.

    Examples
    --------
    >>> from calipers.arrays import as_numpy
    >>> as_numpy([0.5, 1.0])
    array([0.5, 1. ])
    """
    array = as_array(values, name=name)
    if isinstance(array, np.ndarray):
        return array
    if array_api_compat.is_torch_array(array):
        return np.asarray(array.detach().cpu().numpy())
    if array_api_compat.is_cupy_array(array):
        return np.asarray(array.get())
    return np.asarray(array)


def floating(array: Array) -> Array:
    """The array in a floating dtype: floats keep theirs, integers and booleans become float64.

    Integer division gives float32 in torch and JAX; casting first keeps every library in agreement.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import floating
    >>> floating(np.array([1, 2])), floating(np.float32([1])).dtype
    (array([1., 2.]), dtype('float32'))
    """
    if isinstance(array, np.ndarray):
        return array if array.dtype.kind == "f" else array.astype(np.float64)
    xp = namespace(array)
    return array if xp.isdtype(array.dtype, "real floating") else xp.astype(array, xp.float64)


def sort_with_order(array: Array, *, axis: int = -1, descending: bool = False) -> tuple[Array, Array]:
    """The values in order along an axis and the positions they come from, ties in their first order.

    torch gives both from one sort; elsewhere the values are taken by the order, which costs a pass. A numpy
    column of distinct values is sorted in a quarter of the time of numpy's stable sort.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import sort_with_order
    >>> sort_with_order(np.array([0.5, 0.1, 0.5]), descending=True)
    (array([0.5, 0.5, 0.1]), array([0, 2, 1]))
    """
    if array_api_compat.is_torch_array(array):
        values, order = array.sort(dim=axis, descending=descending, stable=True)
        return values, order
    if isinstance(array, np.ndarray) and array.ndim == 1 and not descending:
        return _sort_column(array)
    xp = namespace(array)
    order = xp.argsort(array, axis=axis, descending=descending, stable=True)
    return xp.take_along_axis(array, order, axis=axis), order


def _sort_column(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The stable order of a column; numpy's default sort is vectorised and finds it when no two are equal."""
    order = np.argsort(column)
    ordered = column[order]
    # NaN come last and are equal to nothing, also not to each other.
    if np.any(ordered[1:] == ordered[:-1]) or (column.size > 1 and ordered[-2] != ordered[-2]):
        order = np.argsort(column, kind="stable")
        ordered = column[order]
    return ordered, order


def smallest_and_largest(array: Array) -> tuple[Any, Any]:
    """Both ends of at least one number, as Python numbers: one read and one answer from a device.

    NaN anywhere makes both NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import smallest_and_largest
    >>> smallest_and_largest(np.array([[2, 5], [3, 4]]))
    (2, 5)
    """
    if isinstance(array, np.ndarray):
        return array.min().item(), array.max().item()
    xp = namespace(array)
    if array_api_compat.is_torch_array(array):
        low, high = xp.stack(array.aminmax()).tolist()
    else:
        low, high = as_numpy(xp.stack([xp.min(array), xp.max(array)])).tolist()
    return low, high


def not_negative(array: Array) -> Array:
    """The array with 0 in the place of negative entries.

    numpy's own maximum takes a tenth of the time of `clip` of the array standard for a few entries.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import not_negative
    >>> not_negative(np.array([-1.0, 2.0]))
    array([0., 2.])
    """
    if isinstance(array, np.ndarray):
        return np.maximum(array, 0.0)
    return namespace(array).clip(array, min=0.0)


def take_at(values: Array, positions: Array) -> Array:
    """The entries of a vector at positions that are known to lie inside it.

    `take` of the array standard counts from the end for negative positions, which costs torch three more
    passes over the positions.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import take_at
    >>> take_at(np.array([0.1, 0.2, 0.3]), np.array([2, 0]))
    array([0.3, 0.1])
    """
    if array_api_compat.is_torch_array(values):
        return values.index_select(0, positions)
    return namespace(values).take(values, positions)


def pick_columns(table: Array, columns: Array) -> Array:
    """The entry of each row of (n, K) at the row's own column; columns are known to lie in 0..K-1.

    numpy reads it off the flat table, in less than half the time of `take_along_axis`.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import pick_columns
    >>> pick_columns(np.array([[0.1, 0.9], [0.7, 0.3]]), np.array([1, 0]))
    array([0.9, 0.7])
    """
    if isinstance(table, np.ndarray) and table.flags.c_contiguous:
        at = np.arange(0, table.size, table.shape[1])
        at += columns
        return table.reshape(-1).take(at)
    if array_api_compat.is_torch_array(table):  # `take_along_axis` would look for negative columns first
        return table.gather(1, columns[:, None])[:, 0]
    return namespace(table).take_along_axis(table, columns[:, None], axis=1)[:, 0]


def running_sums(columns: Sequence[Array], ends: Array) -> list[Array]:
    """Of each column of float64 the sum of its first m entries, for every m in ``ends``, of any shape.

    numpy sums between the ends only, which takes no memory and a fifth of the time of all the sums.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import running_sums
    >>> running_sums([np.array([0.5, 1.0, 2.0])], np.array([[0, 2], [3, 2]]))
    [array([[0. , 1.5],
           [3.5, 1.5]])]
    """
    if isinstance(columns[0], np.ndarray):
        stops, place = _distinct_ends(np.asarray(ends), len(columns[0]))
        sums = np.zeros((len(columns), stops.size))
        for own, column in zip(sums, columns, strict=True):
            np.add.reduceat(column[: stops[-1]], stops[:-1], out=own[1:])
        np.cumsum(sums[:, 1:], axis=1, out=sums[:, 1:])
        return list(sums.take(place, axis=1))
    xp = namespace(columns[0])
    zero = xp.zeros((1,), dtype=xp.float64, device=columns[0].device)
    cumulative = [xp.concat([zero, xp.cumulative_sum(column)]) for column in columns]
    return [xp.reshape(xp.take(sums, xp.reshape(ends, (-1,))), ends.shape) for sums in cumulative]


def _distinct_ends(ends: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct ends in 0..n, 0 always first, and where each end stands among them."""
    if n > _FEW_MARKS:
        stops, place = np.unique(np.append(ends, 0), return_inverse=True)
        return stops, place[:-1].reshape(ends.shape)
    is_end = np.zeros(n + 1, dtype=bool)
    is_end[0] = is_end[ends] = True
    return np.flatnonzero(is_end), (np.cumsum(is_end) - 1)[ends]


def count_in_order(ordered: Array, limits: Array) -> Array:
    """How many entries of each ascending row of (n, K) are at most the row's limit, (n,).

    torch searches every row; the array standard searches vectors only, so elsewhere entries are compared.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import count_in_order
    >>> count_in_order(np.array([[0.1, 0.2, 0.2, 0.9]]), np.array([0.2]))
    array([3])
    """
    if array_api_compat.is_torch_array(ordered):
        found = namespace(ordered).searchsorted
        return found(ordered.contiguous(), limits[:, None].contiguous(), right=True)[:, 0]
    return count_along(ordered <= limits[:, None], axis=1)


def count_along(mask: Array, *, axis: int | None) -> Array:
    """How many entries hold along an axis (None: in all).

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import count_along
    >>> count_along(np.array([[True, False], [True, True]]), axis=1)
    array([1, 2])
    """
    if isinstance(mask, np.ndarray):
        return np.asarray(np.count_nonzero(mask, axis=axis))
    xp = namespace(mask)
    # torch widens the mask to the type of the sum before it adds: four bytes an entry, not eight.
    width = xp.int32 if int(np.prod(mask.shape)) < 1 << 31 else xp.int64
    is_tensor = array_api_compat.is_torch_array(mask)
    octets = mask.view(xp.uint8) if is_tensor else xp.astype(mask, xp.uint8)
    total = xp.sum(octets, axis=axis, dtype=width)
    return total if axis is None else xp.astype(total, xp.int64)


def put_rows(array: Array, rows: Array, values: Array) -> Array:
    """The matrix with ``values`` in the given rows, in place.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import put_rows
    >>> put_rows(np.zeros((2, 2)), np.array([1]), np.ones((1, 2)))
    array([[0., 0.],
           [1., 1.]])
    """
    if isinstance(array, np.ndarray) or array_api_compat.is_torch_array(array):
        array[rows] = values
        return array
    for at, row in enumerate(as_numpy(rows).tolist()):
        array[row, ...] = values[at, ...]
    return array


def undo_row_order(values: Array, order: Array) -> Array:
    """Put the value at place r of each row into column ``order[r]``; the inverse of taking along rows.

    The array standard has no scatter, so libraries that have one are asked for theirs: elsewhere the
    inverse order costs a second sort.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import undo_row_order
    >>> undo_row_order(np.array([[10.0, 20.0, 30.0]]), np.array([[2, 0, 1]]))
    array([[20., 30., 10.]])
    """
    xp = namespace(values)
    if (scattered := scatter_rows(values, order)) is not None:
        return scattered
    if array_api_compat.is_torch_array(values):
        return xp.empty_like(values).scatter_(1, order, values)
    if isinstance(values, np.ndarray) or array_api_compat.is_cupy_array(values):
        columns = xp.empty_like(values)
        xp.put_along_axis(columns, order, values, axis=1)
        return columns
    return xp.take_along_axis(values, xp.argsort(order, axis=1), axis=1)


def on_device_of(values: np.ndarray, like: Array) -> Array:
    """Numpy values moved to the library and device of ``like``.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import on_device_of
    >>> on_device_of(np.array([1.0]), np.zeros(3))
    array([1.])
    """
    xp = namespace(like)
    return xp.asarray(values, device=array_api_compat.device(like))
