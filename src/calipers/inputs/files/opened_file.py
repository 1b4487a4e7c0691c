"""A file opened lazily, whatever its format."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import polars as pl

# Rows looked at to decide the type of a csv or json column; a late surprise is an error, never a silent null.
TYPE_ROWS = 100_000


class Opened(NamedTuple):
    """A file opened lazily.

    ``arrays`` are columns that hold a whole argument of an audit, ``stated`` what holds for all rows.
    """

    lazy: pl.LazyFrame
    arrays: frozenset[str] = frozenset()
    stated: Mapping[str, Any] = {}
