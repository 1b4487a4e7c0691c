"""One stage of the study: rows of numbers, computed once and kept as a table."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from studies.outcome import write_table

Row = dict[str, Any]


def stage(path: Path, header: Sequence[str], compute: Callable[[], Iterable[Row]]) -> list[Row]:
    """The rows in the file if it is there, else computed and written; numbers come back as numbers."""
    if not path.exists():
        rows = list(compute())
        write_table(path, header, [[row[key] for key in header] for row in rows])
    with path.open(newline="", encoding="utf-8") as stream:
        return [{key: _number(text) for key, text in row.items()} for row in csv.DictReader(stream)]


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text


def pick(rows: Iterable[Row], column: str, **wanted: Any) -> list[float]:
    """One column of the rows whose other columns have the values wanted."""
    return [float(row[column]) for row in rows if all(row[k] == v for k, v in wanted.items())]
