"""Numbers as a person wants to read them."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Literal

# P-values are printed down to this, and not beyond.
_RESOLUTION = 0.001
# A relative difference that is rounding.
_ROUNDING = 1e-12
# A lower end that stands for "above 0".
_SMALLEST = 2.3e-308


def format_number(value: float | None, spread: float | None = None) -> str:
    """The value with as many digits as its spread deserves: three decimals near 0.01, fewer above.

    Examples
    --------
    >>> format_number(0.0621, 0.03), format_number(12.345, 4.0), format_number(None)
    ('0.062', '12.3', 'undefined')
    """
    if value is None or math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if value != 0 and (abs(value) >= 1e6 or abs(value) < 1e-4):
        return f"{value:.3g}"
    return f"{value:.{_decimals(value, spread)}f}"


def _decimals(value: float, spread: float | None) -> int:
    # Two significant digits of the spread; without one, four significant digits of the value.
    if spread is not None and math.isfinite(spread) and spread > 0:
        return min(6, max(0, 1 - math.floor(math.log10(spread))))
    if value == 0:
        return 3
    return min(6, max(0, 3 - math.floor(math.log10(abs(value)))))


def format_end(
    value: float, spread: float | None = None, *, side: Literal["low", "high"], digits: int | None = None
) -> str:
    """An end of a guaranteed range: as `format_number` writes it, but never inside the range.

    With ``digits`` it has so many significant ones instead.

    Examples
    --------
    >>> format_end(0.26, 15.2, side="low"), format_end(15.4, 15.2, side="high")
    ('0', '16')
    >>> format_end(0.123456789, side="high", digits=6), format_end(float("inf"), side="high")
    ('0.123457', 'inf')
    """
    text = format_number(value, spread) if digits is None else f"{value:.{digits}g}"
    beyond = 1 if side == "high" else -1
    # An end that is a short number but for rounding, such as 0.1 + 0.2, is that number.
    if not math.isfinite(value) or beyond * (float(text) - value) >= -_ROUNDING * abs(value):
        return text
    # One unit of the last digit further out; "#" keeps the zeros that "g" drops.
    shown = Decimal(text if digits is None else f"{value:#.{digits}g}")
    unit = Decimal(1).scaleb(int(shown.as_tuple().exponent))
    moved = shown + unit if side == "high" else shown - unit
    return f"{moved:f}" if digits is None and "e" not in text else f"{float(moved):.{digits or 3}g}"


def format_percent(share: float) -> str:
    """A share as a percentage: 0.95 becomes '95 %', 0.999 becomes '99.9 %'."""
    return f"{100 * share:.6g} %"


def format_interval(low: float, high: float, spread: float | None = None) -> str:
    """Both ends, rounded outward; the smallest positive number says that no more than "above 0" is shown.

    Examples
    --------
    >>> format_interval(0.1239, 0.3241, 0.2), format_interval(2.3e-308, 0.2, 0.2)
    ('0.12, 0.33', '> 0, 0.20')
    """
    return f"{format_low(low, spread)}, {format_end(high, spread, side='high')}"


def format_low(low: float, spread: float | None = None) -> str:
    """The lower end of an interval, rounded outward, or "> 0"."""
    if 0 < low <= _SMALLEST:
        return "> 0"
    return format_end(low, spread, side="low")


def format_p_value(p: float) -> str:
    """A p-value with three decimals; below them it is "< 0.001", never 0.

    Examples
    --------
    >>> format_p_value(0.0421), format_p_value(2.4e-7), format_p_value(0.0)
    ('0.042', '< 0.001', '< 0.001')
    """
    return f"{p:.3f}" if p >= _RESOLUTION else f"< {_RESOLUTION:g}"


def p_in_words(p: float) -> str:
    """A p-value in a sentence: "p = 0.042", "p < 0.001"."""
    shown = format_p_value(p)
    return f"p {shown}" if shown.startswith("<") else f"p = {shown}"
