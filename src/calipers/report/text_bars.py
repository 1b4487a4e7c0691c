"""An interval as one line of text: ``░`` the band of the null law, ``─`` the interval, ``●`` the value."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

BAND, BAR, DOT = "░", "─", "●"


def text_bar(evidence: Mapping[str, Any], *, width: int = 40) -> str:
    """The interval of an estimate on a scale of its own; empty where there is none.

    Parameters
    ----------
    evidence : mapping
        ``Estimate.to_dict()``.
    width : int
        Letters.

    Returns
    -------
    str
        One line without its ends' numbers.

    Examples
    --------
    >>> from calipers.report.text_bars import text_bar
    >>> text_bar({"value": 0.4, "low": 0.3, "high": 0.5, "null_low": 0.8, "null_high": 1.0}, width=15)
    '──●──     ░░░░░'
    """
    value, low, high = (evidence.get(key) for key in ("value", "low", "high"))
    if any(end is None or not math.isfinite(end) for end in (value, low, high)):
        return ""
    band = [evidence.get(key) for key in ("null_low", "null_high")]
    known = [end for end in band if end is not None and math.isfinite(end)]
    left, right = min([low, *known]), max([high, *known])
    if left == right:
        return ""
    places = [round((width - 1) * (end - left) / (right - left)) for end in (low, high, value)]
    letters = [" "] * width
    if known:
        start = 0 if band[0] is None else round((width - 1) * (known[0] - left) / (right - left))
        end = width - 1 if band[1] is None else round((width - 1) * (known[-1] - left) / (right - left))
        letters[start : end + 1] = BAND * (end - start + 1)
    letters[places[0] : places[1] + 1] = BAR * (places[1] - places[0] + 1)
    letters[places[2]] = DOT
    return "".join(letters)
