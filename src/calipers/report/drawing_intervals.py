"""One labelled interval per row as SVG: the name above its bar, the number at the end of the line."""

from __future__ import annotations

import math
from collections.abc import Mapping
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


def draw_intervals(picture: Mapping[str, Any], *, most: int = MOST_ROWS) -> str:
    """The first intervals of a picture; the table has them all."""
    curve, reference = picture["curves"][0], picture["reference"]
    labels = list(picture["labels"]) or list(tick_labels([float(v) for v in curve["x"]]))
    shown = min(len(labels), most)
    left_out = len(labels) - shown
    axis = _axis(curve, shown, reference)
    x = axis.scale(LEFT, WIDTH - RIGHT)
    bottom = ROW * shown + (18 if left_out else 0)
    parts = [_row(curve, i, labels[i], reference, axis, x) for i in range(shown)]
    if left_out:
        parts.append(text(LEFT, bottom - 4, f"and {left_out} more in the table"))
    parts += [text(at, bottom + 16, words, anchor="middle") for at, words in kept_labels(axis, x)]
    if (name := curve["y_label"]) != "value":
        parts.append(text(WIDTH / 2, bottom + 33, shortened(name, WIDTH), anchor="middle", style="name"))
    said = "; ".join(f"{labels[i]} {float(curve['y'][i]):.3g}" for i in range(min(shown, 6)))
    return opening(bottom + BELOW, picture["title"], said) + "".join(parts) + "</svg>"


def _axis(curve: Mapping[str, Any], shown: int, reference: float | None) -> Axis:
    values = [float(v) for key in ("y", "low", "high") if curve[key] is not None for v in curve[key][:shown]]
    spans = [span for i in range(shown) if (span := null_span(curve, i)) is not None]
    extra = [] if reference is None else [float(reference)]
    return make_axis(values + [end for span in spans for end in span] + extra)


def _row(curve: Mapping[str, Any], i: int, label: str, reference: float | None, axis: Axis, x: Scale) -> str:
    top, at = ROW * i, ROW * i + 25
    number = _number(curve, i)
    room = WIDTH - RIGHT - LEFT - text_width(number) - 10
    # Lines stop below the words of the row.
    parts = [line(x(t), x(t), at - 6, at + 7, "grid") for t in axis.ticks]
    if (span := null_span(curve, i)) is not None:
        parts.append(rectangle(x(span[0]), at - 7, x(span[1]) - x(span[0]), 14, "null"))
    if reference is not None:
        parts.append(line(x(reference), x(reference), at - 6, at + 7, "promise"))
    short = shortened(label, room)
    parts.append(text(LEFT, top + 14, short, style="name"))
    parts.append(text(WIDTH - RIGHT, top + 14, number, anchor="end"))
    low, high, value = _ends(curve, i)
    two_sided = bool((curve.get("details") or {}).get("two_sided"))
    off = reference is not None and (high < reference or (two_sided and low > reference))
    colour = "bad" if off else "c0"
    if math.isfinite(low) and math.isfinite(high):
        parts.append(line(x(low), x(high), at, at, f"line {colour}"))
    if math.isfinite(value):
        parts.append(f'<circle class="dot {colour}" cx="{x(value):.1f}" cy="{at:.1f}" r="4"/>')
    return "".join(parts)


def _ends(curve: Mapping[str, Any], i: int) -> tuple[float, float, float]:
    low, high = (math.nan if curve[key] is None else float(curve[key][i]) for key in ("low", "high"))
    return low, high, float(curve["y"][i])


def _number(curve: Mapping[str, Any], i: int) -> str:
    low, high, value = _ends(curve, i)
    return format_number(value, high - low if math.isfinite(high - low) else None)
