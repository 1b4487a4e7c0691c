"""Times that are not numbers yet: text, dates and datetimes, with and without a time zone."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import numpy as np

from calipers.exceptions import InputError

_ZONE = re.compile(r"[T ]\d.*(Z|[+-]\d\d(:?\d\d)?)$")


def parsed_times(values: np.ndarray, name: str) -> np.ndarray:
    """Objects and text as datetime64 in microseconds, in UTC where they state a zone; all or none may.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.times import parsed_times
    >>> parsed_times(np.array(["2024-05-31T12:00+02:00", "2024-05-31T10:00Z"]), "time").tolist()
    [datetime.datetime(2024, 5, 31, 10, 0), datetime.datetime(2024, 5, 31, 10, 0)]
    """
    cells = values.astype(str) if values.dtype.kind == "S" else values
    kinds = {_kind(cell) for cell in cells.tolist()}
    if len(kinds) > 1 and kinds != {"a date", "a time"}:
        raise InputError(f"{name} must hold times of one kind, got {' and '.join(sorted(kinds))}.")
    try:
        if kinds == {"a number"}:
            return np.array([float(cell) for cell in cells])
        if kinds & {"a time with a zone", "text with a zone"}:
            return np.array([_in_utc(cell) for cell in cells.tolist()], dtype="datetime64[us]")
        return np.asarray(cells.astype(str).astype("datetime64[us]"))
    except (ValueError, OverflowError):
        raise InputError(
            f"{name} must hold numbers, dates or text like 2024-05-31T12:00, got {str(values[0])[:40]!r}."
        ) from None


def _kind(cell: Any) -> str:
    if isinstance(cell, str):
        return "text with a zone" if _ZONE.search(cell) else "text"
    if isinstance(cell, dt.datetime):
        return "a time" if cell.tzinfo is None else "a time with a zone"
    if isinstance(cell, dt.date):
        return "a date"
    return "a number" if isinstance(cell, (int, float)) else "another object"


def _in_utc(cell: Any) -> dt.datetime:
    time: dt.datetime = dt.datetime.fromisoformat(cell) if isinstance(cell, str) else cell
    return time.astimezone(dt.UTC).replace(tzinfo=None)
