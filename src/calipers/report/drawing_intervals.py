"""One labelled interval per row as SVG: its name and number above its bar, its rows beside it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from calipers.report.svg_axes import (
    RIGHT,
    SMALL,
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
from calipers.results.formatting import format_number, format_percent, format_rows
from calipers.results.picture_data import is_off, null_span, reference_words

ROW, HEAD, BELOW, LEFT = 34, 18, 40, 8
MOST_ROWS = 10
# The one row of a picture that shows a single number.
MEASURED = "measured"
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
    axis, counts = _axis(curve, shown, reference), _counts(curve, shown)
    room = max((text_width(words) * SMALL + 6 for words in counts), default=0.0)
    x = axis.scale(LEFT, WIDTH - RIGHT - room)
    head = 4 if reference is None else HEAD
    bottom = head + ROW * shown + (18 if left_out else 0)
    parts = [] if reference is None else [_head(picture, x)]
    focus = (picture.get("focus") or {}).get("label")
    for i in range(shown):
        row = _background(curve, i, axis, x, reference) + _row(curve, i, labels[i], reference, axis, x)
        row += text(WIDTH - RIGHT, 29, counts[i], anchor="end", style="small") if counts else ""
        parts.append(f'<g transform="translate(0 {head + ROW * i})"{_focus(labels[i] == focus)}{row}</g>')
    if left_out:
        parts.append(text(LEFT, bottom - 4, f"and {left_out} more in the table"))
    parts += [text(at, bottom + 16, words, anchor="middle") for at, words in kept_labels(axis, x)]
    if (name := curve["y_label"]) != "value":
        parts.append(text(WIDTH / 2, bottom + 33, shortened(name, WIDTH), anchor="middle", style="name"))
    said = "; ".join(f"{labels[i]} {float(curve['y'][i]):.3g}" for i in range(min(shown, 6)))
    return opening(bottom + BELOW, picture["title"], said) + "".join(parts) + "</svg>"


def _focus(is_it: bool) -> str:
    """The end of a row's opening tag, and the ground of the row that the finding is about."""
    return f' class="focus">{rectangle(0, 1, WIDTH, ROW - 1, "ground")}' if is_it else ">"


def interval_keys(picture: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What else the drawing shows: class of the sample and words."""
    curve, reference = picture["curves"][0], picture["reference"]
    shown = min(len(curve["y"]), MOST_ROWS)
    axis, keys = _axis(curve, shown, reference), []
    if any(is_off(curve, i, reference) for i in range(shown)):
        level = "the promise" if reference else "zero"
        share = "" if curve["confidence"] is None else f"{format_percent(curve['confidence'])} "
        keys.append(("off", f"whole {share}interval off {level}"))
    if (picture.get("focus") or {}).get("label") in picture["labels"][:shown]:
        keys.append(("ground", "what the finding names"))
    if any(low < axis.low or high > axis.high for low, high, _ in (_ends(curve, i) for i in range(shown))):
        keys.append(("beyond", "goes on beyond the drawing"))
    return keys


def _head(picture: Mapping[str, Any], x: Scale) -> str:
    """What the dashed line is, above it."""
    reference = float(picture["reference"])
    words = reference_words(picture) + (f" {tick_labels([reference])[0]}" if reference else "")
    half = text_width(words) * SMALL / 2
    centre = min(max(x(reference), half), WIDTH - half)
    return text(centre, 12, words, anchor="middle", style="small")


def _counts(curve: Mapping[str, Any], shown: int) -> list[str]:
    """How many rows each interval is from; empty where that is not known."""
    rows = (curve.get("details") or {}).get("rows", ())
    return [format_rows(float(n)) for n in rows[:shown]] if len(rows) == len(curve["y"]) else []


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


_BAR = 25


def _background(curve: Mapping[str, Any], i: int, axis: Axis, x: Scale, reference: float | None) -> str:
    """Ticks below the words of a row, its null band and the promise, which crosses no words."""
    parts = [line(x(t), x(t), _BAR - 6, _BAR + 7, "grid") for t in axis.ticks]
    if (span := null_span(curve, i)) is not None:
        start, end = (x(min(max(edge, axis.low), axis.high)) for edge in span)
        parts.append(rectangle(start, _BAR - 7, end - start, 14, "null"))
    if reference is not None:
        parts.append(line(x(reference), x(reference), _BAR - 8, _BAR + 8, "promise"))
    return "".join(parts)


def _row(curve: Mapping[str, Any], i: int, label: str, reference: float | None, axis: Axis, x: Scale) -> str:
    low, high, value = _ends(curve, i)
    parts = [_words(label, _number(curve, i), x(value))]
    colour = "bad" if is_off(curve, i, reference) else "c0"
    if math.isfinite(low) and math.isfinite(high):
        parts.append(_bar(low, high, axis, x, colour))
    if math.isfinite(value):
        parts.append(f'<circle class="dot {colour}" cx="{x(value):.1f}" cy="{_BAR}" r="4"/>')
    return "".join(parts)


def _words(label: str, number: str, at: float) -> str:
    """Name and number at the ends of the line; a number that is alone stands above its dot."""
    if label == MEASURED:
        half = text_width(f"{label} {number}") / 2
        centre = min(max(at, half), WIDTH - half)
        return text(centre, 14, f"{label} {number}", anchor="middle", style="name")
    room = WIDTH - RIGHT - LEFT - text_width(number) - 10
    return text(LEFT, 14, shortened(label, room, tail=_TAIL), style="name") + text(
        WIDTH - RIGHT, 14, number, anchor="end"
    )


def _bar(low: float, high: float, axis: Axis, x: Scale, colour: str) -> str:
    """The interval; an arrow where it goes on beyond the drawing."""
    start, end = x(max(low, axis.low)), x(min(high, axis.high))
    parts = [line(start, end, _BAR, _BAR, f"line {colour}")]
    for beyond, tip, back in ((low < axis.low, start, 6.0), (high > axis.high, end, -6.0)):
        if beyond:
            points = f"{tip + back:.1f},{_BAR - 5} {tip:.1f},{_BAR} {tip + back:.1f},{_BAR + 5}"
            parts.append(f'<polyline class="line {colour}" points="{points}"/>')
    return "".join(parts)


def _ends(curve: Mapping[str, Any], i: int) -> tuple[float, float, float]:
    low, high = (math.nan if curve[key] is None else float(curve[key][i]) for key in ("low", "high"))
    return low, high, float(curve["y"][i])


def _number(curve: Mapping[str, Any], i: int) -> str:
    low, high, value = _ends(curve, i)
    return format_number(value, high - low if math.isfinite(high - low) else None)
