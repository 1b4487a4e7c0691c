"""A file opened lazily, whatever its format."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
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


def unmapped(path: str) -> str:
    """The address by which polars reads a local file instead of mapping it into memory.

    A mapped file that another program cuts off ends the process (SIGBUS). By its address a file is read as
    one at a distance is, and its name is not a pattern; polars refuses an address with ``..`` in it. Windows
    does not let mapped files be cut.

    Examples
    --------
    >>> from calipers.inputs.files.opened_file import unmapped
    >>> unmapped("s3://bucket/rows.csv"), unmapped("/data/rows 1.csv")
    ('s3://bucket/rows.csv', 'file:///data/rows%201.csv')
    """
    return path if "://" in path or os.name == "nt" else Path(os.path.realpath(path)).as_uri()
