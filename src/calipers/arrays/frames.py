"""Dataframes in and out, through narwhals: pandas, polars, pyarrow, modin and more."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_dataframe

from calipers.arrays.optional import import_optional
from calipers.exceptions import InputError

# Library -> what makes a table of a dictionary of columns.
_TABLES = {"polars": "DataFrame", "pandas": "DataFrame", "pyarrow": "table"}


def is_frame(value: object) -> bool:
    """Whether the value is an eager dataframe of any library narwhals knows.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.arrays import is_frame
    >>> is_frame(pl.DataFrame({"x": [1]})), is_frame([[1]])
    (True, False)
    """
    return not isinstance(value, np.ndarray) and bool(is_into_dataframe(value))


def frame_columns(frame: Any) -> dict[str, nw.Series[Any]]:
    """The columns of a dataframe by name, in order; names become strings and must not repeat.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.arrays import frame_columns
    >>> list(frame_columns(pl.DataFrame({"age": [30], "city": ["Rome"]})))
    ['age', 'city']
    """
    try:
        wrapped = nw.from_native(frame, eager_only=True)
    except nw.exceptions.DuplicateError:  # only pandas lets two columns have one name
        names = [str(name) for name in frame.columns]
    else:
        names = [str(name) for name in wrapped.columns]
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InputError(
            f"column names must differ, {twice!r} appears more than once. Rename or drop one of them."
        )
    return dict(zip(names, wrapped.iter_columns(), strict=True))


def build_frame(columns: Mapping[str, Sequence[Any]], *, backend: str = "polars") -> Any:
    """A dataframe of the named library ("polars", "pandas" or "pyarrow") from equally long columns.

    Examples
    --------
    >>> from calipers.arrays import build_frame
    >>> build_frame({"x": [1, 2]}).shape
    (2, 1)
    """
    if backend not in _TABLES:
        raise InputError(f'backend must be "polars", "pandas" or "pyarrow", got {backend!r}.')
    library = import_optional(backend, purpose=f"to_frame(backend={backend!r})", install=backend)
    table = getattr(library, _TABLES[backend])
    return table({name: _of_one_type(list(values)) for name, values in columns.items()})


def _of_one_type(values: list[Any]) -> list[Any]:
    """Whole numbers as floats where the column holds both; polars takes its type from the first value."""
    if any(isinstance(value, float) for value in values):
        return [float(v) if isinstance(v, int) and not isinstance(v, bool) else v for v in values]
    return values
