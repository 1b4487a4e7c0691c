"""Features: a matrix or a dataframe with numeric, boolean, categorical and text columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np

from calipers.arrays import as_numpy, frame_columns, is_frame, short_repr
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs.row_checks import LARGEST_VALUE, missing_mask


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """Columns in one float64 matrix, with what each column means.

    Numeric and boolean columns hold their values; a categorical or text column holds the index of its
    category, in sorted order of the categories. A missing value is NaN everywhere.

    Parameters
    ----------
    values : float64 array (n, d)
        The columns side by side.
    names : tuple of str
        Column names; "x0", "x1", ... for a bare matrix.
    categories : tuple
        Per column None (numeric) or the tuple of its category labels.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.inputs import check_features
    >>> f = check_features(pl.DataFrame({"age": [30, 41], "city": ["Rome", "Bonn"]}))
    >>> f.values.tolist(), f.categories
    ([[30.0, 1.0], [41.0, 0.0]], (None, ('Bonn', 'Rome')))
    """

    values: np.ndarray
    names: tuple[str, ...]
    categories: tuple[tuple[Any, ...] | None, ...]

    __repr__ = short_repr

    @property
    def is_categorical(self) -> np.ndarray:
        """True for each categorical or text column."""
        return np.array([c is not None for c in self.categories], dtype=bool)

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def __getitem__(self, rows: slice) -> Features:
        return Features(self.values[rows], self.names, self.categories)

    def take(self, rows: np.ndarray) -> Features:
        """The same columns for some rows."""
        return Features(self.values[rows], self.names, self.categories)


def check_features(X: Any, *, name: str = "X", allow_missing: bool = True) -> Features:
    """Any table of features as `Features`: dataframes, matrices, vectors, lists; a `Features` as it is.

    Infinite values are refused. Missing values become NaN, or are refused with their column and
    first row when ``allow_missing`` is False. Dates become seconds since 1970.

    Examples
    --------
    >>> from calipers.inputs import check_features
    >>> check_features([[1, 2], [3, 4]]).names
    ('x0', 'x1')
    """
    if isinstance(X, Features):
        features = X
    elif is_frame(X):
        features = _from_frame(X, name)
    else:
        features = _from_matrix(as_numpy(X, name=name), name)
    _refuse_infinite(features, name)
    if not allow_missing:
        _refuse_missing(features, name)
    return features


def _from_frame(frame: Any, name: str) -> Features:
    columns = frame_columns(frame)
    if not columns:
        raise InputError(f"{name} must have at least one column, got none.")
    parts = [_column(series, f"column {label!r} of {name}") for label, series in columns.items()]
    return Features(np.column_stack([v for v, _ in parts]), tuple(columns), tuple(c for _, c in parts))


def _column(series: nw.Series[Any], name: str) -> tuple[np.ndarray, tuple[Any, ...] | None]:
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy()
        values = np.asarray(values, dtype=np.float64)
        # Only polars tells null from NaN, and both mean missing here.
        return values, None
    if series.dtype in (nw.Datetime, nw.Date, nw.Duration):
        return _time_column(series.to_numpy())
    if series.dtype.is_nested():
        raise InputTypeError(f"{name} must hold numbers, booleans or text, got {series.dtype}.")
    return encode_categories(np.asarray(series.to_list(), dtype=object), name)


def _time_column(values: np.ndarray) -> tuple[np.ndarray, None]:
    kind = "datetime64[us]" if values.dtype.kind in "MO" else "timedelta64[us]"
    stamps = values.astype(kind)
    seconds = stamps.astype(np.int64) / 1e6
    return np.where(np.isnat(stamps), np.nan, seconds), None


def encode_categories(values: np.ndarray, name: str) -> tuple[np.ndarray, tuple[Any, ...] | None]:
    """Category codes in sorted order; objects that are all numbers become a numeric column."""
    missing = missing_mask(values)
    present = values[~missing].tolist()
    if all(isinstance(v, (bool, int, float, np.number, np.bool_)) for v in present):
        numbers = np.full(len(values), np.nan)
        try:
            numbers[~missing] = np.array(present, dtype=float)
        except OverflowError:
            raise InputError(f"{name} holds a whole number that is too large for a feature.") from None
        return numbers, None
    try:
        distinct = sorted(set(present), key=lambda v: (type(v).__name__, v))
    except TypeError:
        raise InputTypeError(
            f"{name} must hold numbers, booleans or text, got values of type {type(present[0]).__name__}."
        ) from None
    position = {label: float(i) for i, label in enumerate(distinct)}
    codes = np.full(len(values), np.nan)
    codes[~missing] = [position[v] for v in present]
    return codes, tuple(distinct)


def _from_matrix(array: np.ndarray, name: str) -> Features:
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2:
        raise InputError(
            f"{name} must be a table (n, d), got shape {array.shape}. "
            "Flatten images or series to one row of features per case."
        )
    if array.shape[1] == 0:
        raise InputError(f"{name} must have at least one column, got none.")
    names = tuple(f"x{j}" for j in range(array.shape[1]))
    if array.dtype.kind in "biuf":
        return Features(array.astype(np.float64), names, (None,) * len(names))
    if array.dtype.kind in "mM":
        parts = [_time_column(array[:, j]) for j in range(array.shape[1])]
        return Features(np.column_stack([v for v, _ in parts]), names, (None,) * len(names))
    if array.dtype.kind not in "OUS":
        raise InputTypeError(f"{name} must hold numbers, booleans or text, got {array.dtype}.")
    encoded = [
        encode_categories(array[:, j].astype(object), f"column {j} of {name}") for j in range(array.shape[1])
    ]
    return Features(np.column_stack([v for v, _ in encoded]), names, tuple(c for _, c in encoded))


def _refuse_infinite(features: Features, name: str) -> None:
    infinite = np.abs(features.values) > LARGEST_VALUE
    if infinite.any():
        row, column = np.argwhere(infinite)[0]
        what = "infinite value(s)" if np.isinf(features.values[row, column]) else "value(s) beyond 1e150"
        raise InputError(
            f"{name} has {int(infinite.sum())} {what} (first at row {row}, "
            f"column {features.names[column]!r})."
        )


def _refuse_missing(features: Features, name: str) -> None:
    missing = np.isnan(features.values)
    if missing.any():
        row, column = np.argwhere(missing)[0]
        raise InputError(
            f"{name} has {int(missing.sum())} missing of {missing.size} values (first at row {row}, "
            f"column {features.names[column]!r}). Fill them or drop the rows."
        )
