"""Rows of numbers: how the study's tables are written, and read by its claims and figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from studies.outcome import write_table

Row = dict[str, Any]


def write_rows(path: Path, header: Sequence[str], rows: Iterable[Row]) -> list[Row]:
    """The rows, written as a table."""
    listed = list(rows)
    write_table(path, header, [[row[key] for key in header] for row in listed])
    return listed


def pick(rows: Iterable[Row], column: str, **wanted: Any) -> list[float]:
    """One column of the rows whose other columns have the values wanted."""
    return [float(row[column]) for row in rows if all(row[k] == v for k, v in wanted.items())]
