"""Columns of a file that make up a matrix, copied into one only for the rows that are looked at."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

if TYPE_CHECKING:
    import polars as pl


class Column(Protocol):
    """A column that writes some of its rows into an array."""

    def write(self, start: int, out: np.ndarray) -> None:
        """Fill the array with the rows from ``start`` on."""


class Numbers:
    """Numbers, in the pieces in which they were read: nothing is copied before it is asked for."""

    __slots__ = ("parts", "starts")

    def __init__(self, column: pl.Series) -> None:
        self.parts = [part.to_numpy() for part in column.get_chunks()]
        self.starts = np.cumsum([0, *map(len, self.parts)]).tolist()

    def write(self, start: int, out: np.ndarray) -> None:
        """Fill the array with the rows from ``start`` on."""
        stop = start + len(out)
        for first, part in zip(self.starts, self.parts, strict=False):
            a, b = max(start, first), min(stop, first + len(part))
            if a < b:
                out[a - start : b - start] = part[a - first : b - first]


class Bits:
    """Booleans without nulls, eight to a byte as arrow keeps them."""

    __slots__ = ("packed", "skipped")

    def __init__(self, column: pl.Series) -> None:
        array: Any = column.rechunk().to_arrow()
        self.packed = np.frombuffer(array.buffers()[1], dtype=np.uint8)
        self.skipped = array.offset

    def write(self, start: int, out: np.ndarray) -> None:
        """Fill the array with the rows from ``start`` on."""
        first, skipped = divmod(self.skipped + start, 8)
        bits = np.unpackbits(self.packed[first:], count=skipped + len(out), bitorder="little")
        out[:] = bits[skipped:].view(bool)

    def bytes_of(self, start: int, n: int) -> np.ndarray | None:
        """The bytes of n rows from ``start`` on; None when they do not begin with a byte of their own."""
        first, skipped = divmod(self.skipped + start, 8)
        return None if skipped else self.packed[first : first + (n + 7) // 8]


def _unpacked(columns: Sequence[Bits], start: int, n: int) -> np.ndarray:
    """Bits as booleans (K, n): all columns at once where their rows begin with a byte."""
    parts = [column.bytes_of(start, n) for column in columns]
    if all(part is not None for part in parts):
        packed = np.stack([part for part in parts if part is not None])
        return np.unpackbits(packed, axis=1, count=n, bitorder="little").view(bool)
    matrix = np.empty((len(columns), n), dtype=bool)
    for column, out in zip(columns, matrix, strict=True):
        column.write(start, out)
    return matrix


class ColumnMatrix:
    """Columns of one kind; a matrix (n, K) wherever an array is asked for.

    A slice copies nothing. The matrix of a slice is made while its rows are near the processor: for a whole
    file the same copy goes through main memory twice.

    Parameters
    ----------
    columns : sequence of polars series
        One per column of the matrix, of the same length.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from calipers.inputs.column_matrix import ColumnMatrix
    >>> table = ColumnMatrix([pl.Series([1.0, 2.0, 3.0]), pl.Series([4.0, 5.0, 6.0])])
    >>> table.shape, np.asarray(table[1:]).tolist()
    ((3, 2), [[2.0, 5.0], [3.0, 6.0]])
    """

    __slots__ = ("columns", "dtype", "start", "stop")

    def __init__(self, columns: Sequence[pl.Series]) -> None:
        self.columns, self.dtype = _columns(columns)
        self.start, self.stop = 0, len(columns[0])

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), len(self.columns)

    @property
    def ndim(self) -> int:
        """Two."""
        return 2

    def __len__(self) -> int:
        return self.stop - self.start

    def __getitem__(self, rows: slice) -> ColumnMatrix:
        first, last, _ = rows.indices(len(self))
        part = object.__new__(ColumnMatrix)
        part.columns, part.dtype = self.columns, self.dtype
        part.start, part.stop = self.start + first, self.start + max(first, last)
        return part

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        bits = [column for column in self.columns if isinstance(column, Bits)]
        if len(bits) == len(self.columns):
            return np.asarray(_unpacked(bits, self.start, len(self)).T, dtype=dtype)
        matrix: np.ndarray = np.empty((len(self.columns), len(self)), dtype=self.dtype)
        for column, out in zip(self.columns, matrix, strict=True):
            column.write(self.start, out)
        return np.asarray(matrix.T, dtype=dtype)


def column_matrix(columns: Sequence[pl.Series]) -> np.ndarray:
    """Columns as a matrix whose columns lie one after the other in memory; float32 and booleans stay so."""
    return np.asarray(ColumnMatrix(columns))


def _columns(columns: Sequence[pl.Series]) -> tuple[list[Column], np.dtype[Any]]:
    kinds = {str(column.dtype) for column in columns}
    if kinds == {"Boolean"} and not any(column.null_count() for column in columns):
        kind: type = Numbers if find_spec("pyarrow") is None else Bits
        return [kind(column) for column in columns], np.dtype(np.bool_)
    if kinds == {"Float32"}:
        return [Numbers(column) for column in columns], np.dtype(np.float32)
    return [Numbers(column.cast(float)) for column in columns], np.dtype(np.float64)
