"""An interval as a line of text: ``░`` null band, ``─`` interval, ``●`` value, ``┊`` promise."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

BAND, BAR, DOT, PROMISE = "░", "─", "●", "┊"
# A bar of fewer letters says nothing.
_NARROWEST = 5


def text_bar(evidence: Mapping[str, Any], *, reference: float | None = None, width: int = 40) -> str:
    """The interval of an estimate against its null band and the promise; empty without both, or an interval.

    Parameters
    ----------
    evidence : mapping
        ``Estimate.to_dict()``.
    reference : float or None
        The promise.
    width : int
        Letters.

    Returns
    -------
    str
        One line.

    Examples
    --------
    >>> from calipers.report.text_bars import text_bar
    >>> text_bar({"value": 0.4, "low": 0.3, "high": 0.5}, reference=0.9, width=13)
    '──●──       ┊'
    """
    value, low, high = (evidence.get(key) for key in ("value", "low", "high"))
    if value is None or low is None or high is None or not all(map(math.isfinite, (value, low, high))):
        return ""
    start, end = (evidence.get(key) for key in ("null_low", "null_high"))
    marks = [mark for mark in (start, end, reference) if mark is not None and math.isfinite(mark)]
    left, right = min([low, *marks]), max([high, *marks])
    if not marks or left == right or width < _NARROWEST:
        return ""

    def place(number: float) -> int:
        return int((width - 1) * (number - left) / (right - left) + 0.5)

    letters = [" "] * width
    if start is not None or end is not None:
        _fill(letters, 0 if start is None else place(start), width - 1 if end is None else place(end), BAND)
    _fill(letters, place(low), place(high), BAR)
    if reference is not None:
        letters[place(reference)] = PROMISE
    letters[place(value)] = DOT
    return "".join(letters).rstrip()


def _fill(letters: list[str], first: int, last: int, letter: str) -> None:
    letters[first : last + 1] = letter * (last - first + 1)
