"""Numbers as a person wants to read them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from typing import Literal

# P-values are printed down to this, and not beyond.
_RESOLUTION = 0.001
# A relative difference that is rounding.
_ROUNDING = 1e-12
# A lower end that stands for "above 0".
_SMALLEST = 2.3e-308
# Between thousands: narrow, and no line is broken at it.
THIN_SPACE = "\u202f"
_LARGEST = 1e15


def format_number(value: float | None, spread: float | None = None) -> str:
    """The value with as many digits as its spread deserves: three decimals near 0.01, fewer above.

    Examples
    --------
    >>> format_number(0.0621, 0.03), format_number(12.345, 4.0), format_number(None)
    ('0.062', '12.3', 'undefined')
    >>> format_number(295392.4, 1800.0).replace(THIN_SPACE, "_"), format_number(1.23e18)
    ('295_400', '1.23e+18')
    """
    if value is None or math.isnan(value):
        return "undefined"
    if math.isinf(value):
        return "inf" if value > 0 else "-inf"
    if _in_powers(value):
        return f"{value:.3g}"
    decimals = _decimals(value, spread)
    return group_digits(f"{round(value, decimals):z.{max(0, decimals)}f}")  # "z": no minus before 0.00


def _in_powers(value: float) -> bool:
    """Whether so many digits would be needed that a power of ten reads better."""
    return value != 0 and (abs(value) >= _LARGEST or abs(value) < 1e-4)


def group_digits(text: str) -> str:
    """Thousands of a written number apart, from five digits before the point on.

    Examples
    --------
    >>> group_digits("1500.25"), group_digits("-10613").replace(THIN_SPACE, "_")
    ('1500.25', '-10_613')
    >>> group_digits("+10613.5").replace(THIN_SPACE, "_")
    '+10_613.5'
    """
    whole, point, rest = text.partition(".")
    digits = whole.lstrip("+-")
    if len(digits) < 5 or not digits.isdigit():
        return text
    return whole[: len(whole) - len(digits)] + f"{int(digits):,}".replace(",", THIN_SPACE) + point + rest


def format_count(count: float) -> str:
    """A number of rows, thousands apart."""
    return group_digits(f"{count:.0f}")


def in_a_row(words: Sequence[str]) -> str:
    """Words as a list in a sentence.

    Examples
    --------
    >>> in_a_row(["a"]), in_a_row(["a", "b", "c"])
    ('a', 'a, b and c')
    """
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def format_rows(count: float) -> str:
    """A number of rows with the word.

    Examples
    --------
    >>> format_rows(1), format_rows(899)
    ('1 row', '899 rows')
    """
    return f"{format_count(count)} {'row' if count == 1 else 'rows'}"


def _decimals(value: float, spread: float | None) -> int:
    """Decimals to keep, below 0 for tens and hundreds.

    Two significant digits of the spread, but at least one of the value; without a spread four of the value.
    """
    size = 0 if value == 0 else math.floor(math.log10(abs(value)))
    if spread is not None and math.isfinite(spread) and spread > 0:
        wanted = 1 - math.floor(math.log10(spread))
        return min(6, wanted if wanted >= 0 else max(wanted, -max(0, size)))
    return 3 if value == 0 else min(6, 3 - size)


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
    text = format_number(value, spread) if digits is None else f"{value:z.{digits}g}"
    beyond = 1 if side == "high" else -1
    number = Decimal(text.replace(THIN_SPACE, "")) if math.isfinite(value) else Decimal(0)
    # An end that is a short number but for rounding, such as 0.1 + 0.2, is that number.
    if not math.isfinite(value) or beyond * (float(number) - value) >= -_ROUNDING * abs(value):
        return text
    # One unit of the last digit further out.
    unit = _last_unit(value, spread, digits)
    moved = number + unit if side == "high" else number - unit
    if digits is None and not _in_powers(value):
        return group_digits(f"{moved:f}")
    return f"{float(moved):.{digits or 3}g}"


def _last_unit(value: float, spread: float | None, digits: int | None) -> Decimal:
    """What the last digit that is shown counts."""
    if digits is None and not _in_powers(value):
        return Decimal(1).scaleb(-_decimals(value, spread))
    # "#" keeps the zeros that "g" drops.
    return Decimal(1).scaleb(int(Decimal(f"{value:#.{digits or 3}g}").as_tuple().exponent))


def format_percent(share: float) -> str:
    """A share as a percentage: 0.95 becomes '95 %', 0.999 becomes '99.9 %'."""
    return f"{100 * share:z.6g} %"


def format_share(share: float, decimals: int = 1) -> str:
    """A measured share as a percentage that agrees with the share as `format_number` rounds it.

    Examples
    --------
    >>> format_share(0.8425), f"{0.8425:.3f}", f"{84.25:.1f}", format_share(0.196, 0)
    ('84.3 %', '0.843', '84.2', '20 %')
    """
    return f"{100 * round(float(share), decimals + 2):z.{decimals}f} %"


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
