"""Axes of an SVG drawing: round ticks, labels that never touch each other, dates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from html import escape
from unicodedata import east_asian_width

from calipers.results.formatting import group_digits

# As wide as a phone: text keeps its size there, and a wide page shows the drawing at most a third larger.
WIDTH, HEIGHT = 380, 250
LEFT, RIGHT, TOP, BOTTOM = 62, 16, 30, 40
# Small text is so much smaller in the style sheet.
SMALL = 11 / 13
# Widths of letters at the size of the style sheet, those of the widest of its fonts.
_NARROW, _WIDE = frozenset("ijlI.,:;'|!()[]{} -tfr"), frozenset("mwMW@%…—")

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Axis:
    """Ends of the data and the ticks between them.

    Parameters
    ----------
    low, high : float
        Ends of the axis.
    ticks : tuple of float
        Round places between them.
    labels : tuple of str
        What is written at each tick; numbers as short as tells them apart when empty.
    """

    low: float
    high: float
    ticks: tuple[float, ...]
    labels: tuple[str, ...] = ()

    def scale(self, start: float, end: float) -> Scale:
        """Data -> pixels."""
        width = self.high - self.low or 1.0
        return lambda value: start + (end - start) * (value - self.low) / width

    @property
    def words(self) -> tuple[str, ...]:
        """The label of every tick."""
        return self.labels or tick_labels(self.ticks)


def make_axis(values: Iterable[float], *, count: int = 5, bounds: tuple[float, float] | None = None) -> Axis:
    """An axis around the finite values, with round ticks.

    Examples
    --------
    >>> make_axis([0.82, 0.97]).ticks
    (0.85, 0.9, 0.95)
    """
    finite = [float(v) for v in values if math.isfinite(v)] or [0.0, 1.0]
    low, high = min(finite), max(finite)
    pad = 0.06 * (high - low) or 0.05 * (abs(high) or 1.0)
    low, high = low - pad, high + pad
    if bounds is not None:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    step = _round_step((high - low) / count)
    first = math.ceil(low / step - 1e-9)
    last = math.floor(high / step + 1e-9)
    return Axis(low, high, tuple(round(i * step, 12) for i in range(first, last + 1)))


def _round_step(rough: float) -> float:
    power = 10.0 ** math.floor(math.log10(rough)) if rough > 0 else 1.0
    return next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= rough * 0.999)


def tick_labels(ticks: Sequence[float]) -> tuple[str, ...]:
    """Numbers with as many decimals as tell neighbours apart, thousands apart.

    Examples
    --------
    >>> tick_labels([0.85, 0.9, 0.95]), tick_labels([0.0, 2.5e-5]), tick_labels([-0.1, -1e-17])
    (('0.85', '0.9', '0.95'), ('0', '2.5e-05'), ('-0.1', '0'))
    """
    largest = max((abs(tick) for tick in ticks), default=0.0)
    if largest and (largest < 1e-3 or largest >= 1e9):
        return tuple(f"{tick:z.3g}" for tick in ticks)
    return tuple(group_digits(f"{tick:z.4f}".rstrip("0").rstrip(".") or "0") for tick in ticks)


_MONTHS = (1, 2, 3, 6, 12, 24, 60, 120, 240)
_SECONDS = (60, 300, 900, 3600, 3 * 3600, 6 * 3600, 12 * 3600, 86400, 2 * 86400, 7 * 86400, 14 * 86400)


def date_axis(seconds: Iterable[float], *, count: int = 5) -> Axis:
    """An axis over seconds since 1970, with ticks at round dates in universal time.

    Examples
    --------
    >>> import numpy as np
    >>> days = np.array(["2024-01-03", "2024-12-20"], dtype="datetime64[s]").astype(float)
    >>> date_axis(days).labels
    ('2024-01', '2024-04', '2024-07', '2024-10', '2025-01')
    """
    plain = make_axis(seconds)
    for step in _SECONDS:
        if (plain.high - plain.low) / step <= count:
            first = math.ceil(plain.low / step)
            ticks = tuple(float(i * step) for i in range(first, math.floor(plain.high / step) + 1))
            return Axis(plain.low, plain.high, ticks, _date_labels(ticks, step))
    return _month_axis(plain, count)


def _month_axis(plain: Axis, count: int) -> Axis:
    months = [round(_month(end)) for end in (plain.low, plain.high)]
    for step in _MONTHS:
        if (months[1] - months[0]) / step <= count:
            break
    starts = (_start(month) for month in range(-(-months[0] // step) * step, months[1] + 1, step))
    ticks = tuple(tick for tick in starts if plain.low <= tick <= plain.high)
    pattern = "%Y" if step % 12 == 0 else "%Y-%m"
    return Axis(plain.low, plain.high, ticks, tuple(moment_of(tick).strftime(pattern) for tick in ticks))


def moment_of(seconds: float) -> datetime:
    """The date so many seconds after 1970, in universal time."""
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _month(seconds: float) -> int:
    moment = moment_of(seconds)
    return 12 * moment.year + moment.month - 1


def _start(month: int) -> float:
    return datetime(month // 12, month % 12 + 1, 1, tzinfo=UTC).timestamp()


def _date_labels(ticks: Sequence[float], step: float) -> tuple[str, ...]:
    """Days, or hours with the day where it changes."""
    moments = [moment_of(tick) for tick in ticks]
    if step >= 86400:
        return tuple(moment.strftime("%Y-%m-%d") for moment in moments)
    return tuple(
        moment.strftime("%d %b" if moment.hour == moment.minute == 0 else "%H:%M") for moment in moments
    )


def text_width(words: str) -> float:
    """Pixels that a text takes at most.

    Examples
    --------
    >>> text_width("0.95"), text_width("北京")
    (30.4, 27.2)
    """
    return round(sum(map(_letter_width, words)), 1)


def _letter_width(letter: str) -> float:
    if east_asian_width(letter) in "WF":
        return 13.6
    if letter in _WIDE:
        return 13.3
    if letter in _NARROW:
        return 5.5
    return 10.2 if letter.isupper() else 8.3


def kept_labels(axis: Axis, x: Scale, *, gap: float = 8) -> list[tuple[float, str]]:
    """Place and words of the tick labels that fit beside each other, from the left."""
    kept: list[tuple[float, str]] = []
    free = -math.inf
    for tick, words in zip(axis.ticks, axis.words, strict=True):
        half = text_width(words) / 2
        at = min(max(x(tick), half), WIDTH - half)
        if at - half >= free:
            kept.append((at, words))
            free = at + half + gap
    return kept


def left_margin(axis: Axis) -> float:
    """Room for the labels of a vertical axis."""
    return 14 + max((text_width(words) for words in axis.words), default=0.0)


def text(x: float, y: float, words: str, *, anchor: str = "start", style: str = "") -> str:
    """One line of text."""
    named = f' class="{style}"' if style else ""
    return f'<text{named} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def line(x1: float, x2: float, y1: float, y2: float, style: str) -> str:
    """One straight line."""
    return f'<line class="{style}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{y1:.1f}" y2="{y2:.1f}"/>'


def rectangle(x: float, y: float, width: float, height: float, style: str, extra: str = "") -> str:
    """One filled rectangle; ``extra`` is put into it."""
    return (
        f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{max(0.0, width):.1f}" '
        f'height="{max(0.0, height):.1f}">{extra}</rect>'
    )


def opening(height: float, title: str, description: str = "") -> str:
    """The start of a drawing with the words that a screen reader says."""
    said = f"{title}. {description}" if description else title
    return f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" aria-label="{escape(said, quote=True)}">'


def shortened(words: str, room: float, *, tail: int = 0) -> str:
    """The words, cut where they would not fit into so many pixels; ``tail`` letters of their end are kept.

    Examples
    --------
    >>> shortened("customers of branch 7", 100), shortened("customers of branch 7", 100, tail=3)
    ('customers…', 'custome…h 7')
    """
    if text_width(words) <= room:
        return words
    end = words[len(words) - tail :]
    cuts = range(len(words) - tail, 1, -1)
    kept = next((n for n in cuts if text_width(words[:n].rstrip() + "…" + end) <= room), 1)
    return words[:kept].rstrip() + "…" + end
