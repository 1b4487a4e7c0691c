"""One labelled interval per row as SVG: the name above its bar, the number at the end of the line."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from calipers.report.svg_axes import (
    RIGHT,
    WIDTH,
    Axis,
    Scale,
    kept_labels,
    line,
    make_axis,
    opening,
    rectangle,
    shortened,
    text,
    text_width,
    tick_labels,
)
from calipers.results.formatting import format_number
from calipers.results.picture_data import null_span

ROW, BELOW, LEFT = 34, 40, 8
MOST_ROWS = 12
# An interval so many times as wide as the usual one runs out of the drawing instead of squeezing the others.
_WIDEST = 4.0
# Names that begin alike are told apart by their ends.
_TAIL = 9


def draw_intervals(picture: Mapping[str, Any], *, most: int = MOST_ROWS) -> str:
    """The first intervals of a picture; the table has them all."""
    curve, reference = picture["curves"][0], picture["reference"]
    labels = list(picture["labels"]) or list(tick_labels([float(v) for v in curve["x"]]))
    shown = min(len(labels), most)
    left_out = len(labels) - shown
    axis = _axis(curve, shown, reference)
    x = axis.scale(LEFT, WIDTH - RIGHT)
    bottom = ROW * shown + (18 if left_out else 0)
    parts = [_background(curve, i, axis, x) for i in range(shown)]
    if reference is not None:
        parts.append(line(x(reference), x(reference), 4, ROW * shown, "promise"))
    parts += [_row(curve, i, labels[i], reference, axis, x) for i in range(shown)]
    if left_out:
        parts.append(text(LEFT, bottom - 4, f"and {left_out} more in the table"))
    parts += [text(at, bottom + 16, words, anchor="middle") for at, words in kept_labels(axis, x)]
    if (name := curve["y_label"]) != "value":
        parts.append(text(WIDTH / 2, bottom + 33, shortened(name, WIDTH), anchor="middle", style="name"))
    said = "; ".join(f"{labels[i]} {float(curve['y'][i]):.3g}" for i in range(min(shown, 6)))
    return opening(bottom + BELOW, picture["title"], said) + "".join(parts) + "</svg>"


def _axis(curve: Mapping[str, Any], shown: int, reference: float | None) -> Axis:
    intervals = _usual_ends(_ends(curve, i)[:2] for i in range(shown))
    bands = _usual_ends(span for i in range(shown) if (span := null_span(curve, i)) is not None)
    extra = [] if reference is None else [float(reference)]
    return make_axis([float(v) for v in curve["y"][:shown]] + intervals + bands + extra)


def _usual_ends(pairs: Iterable[tuple[float, float]]) -> list[float]:
    """Ends of the pairs that do not lie far wider apart than the others."""
    finite = [(low, high) for low, high in pairs if math.isfinite(low) and math.isfinite(high)]
    widest = _WIDEST * median(high - low for low, high in finite) if finite else 0.0
    usual = [pair for pair in finite if pair[1] - pair[0] <= widest] or finite
    return [end for pair in usual for end in pair]


def _background(curve: Mapping[str, Any], i: int, axis: Axis, x: Scale) -> str:
    """Ticks below the words of a row, and its null band."""
    at = ROW * i + 25
    parts = [line(x(t), x(t), at - 6, at + 7, "grid") for t in axis.ticks]
    if (span := null_span(curve, i)) is not None:
        start, end = (x(min(max(edge, axis.low), axis.high)) for edge in span)
        parts.append(rectangle(start, at - 7, end - start, 14, "null"))
    return "".join(parts)


def _row(curve: Mapping[str, Any], i: int, label: str, reference: float | None, axis: Axis, x: Scale) -> str:
    top, at = ROW * i, ROW * i + 25
    number = _number(curve, i)
    room = WIDTH - RIGHT - LEFT - text_width(number) - 10
    short = shortened(label, room, tail=_TAIL)
    parts = [text(LEFT, top + 14, short, style="name halo")]
    parts.append(text(WIDTH - RIGHT, top + 14, number, anchor="end", style="halo"))
    low, high, value = _ends(curve, i)
    colour = "bad" if _is_off(curve, low, high, reference) else "c0"
    if math.isfinite(low) and math.isfinite(high):
        parts.append(_bar(low, high, axis, x, at, colour))
    if math.isfinite(value):
        parts.append(f'<circle class="dot {colour}" cx="{x(value):.1f}" cy="{at:.1f}" r="4"/>')
    return "".join(parts)


def _is_off(curve: Mapping[str, Any], low: float, high: float, reference: float | None) -> bool:
    """Whether a whole interval lies on a wrong side of the promise: below it, for losses above, or either."""
    if reference is None:
        return False
    details = curve.get("details") or {}
    above, below = low > reference, high < reference
    if details.get("two_sided"):
        return above or below
    return above if details.get("worse") == "above" else below


def _bar(low: float, high: float, axis: Axis, x: Scale, at: float, colour: str) -> str:
    """The interval; an arrow where it goes on beyond the drawing."""
    start, end = x(max(low, axis.low)), x(min(high, axis.high))
    parts = [line(start, end, at, at, f"line {colour}")]
    for beyond, tip, back in ((low < axis.low, start, 6.0), (high > axis.high, end, -6.0)):
        if beyond:
            points = f"{tip + back:.1f},{at - 5:.1f} {tip:.1f},{at:.1f} {tip + back:.1f},{at + 5:.1f}"
            parts.append(f'<polyline class="line {colour}" points="{points}"/>')
    return "".join(parts)


def _ends(curve: Mapping[str, Any], i: int) -> tuple[float, float, float]:
    low, high = (math.nan if curve[key] is None else float(curve[key][i]) for key in ("low", "high"))
    return low, high, float(curve["y"][i])


def _number(curve: Mapping[str, Any], i: int) -> str:
    low, high, value = _ends(curve, i)
    return format_number(value, high - low if math.isfinite(high - low) else None)
