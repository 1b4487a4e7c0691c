"""Curves and points as SVG. Colours are classes, so that light, dark and print share one drawing.

Names of vertical axes stand above them, level; nothing is rotated and nothing can overlap a tick.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from calipers.report.drawing_intervals import draw_intervals, interval_keys
from calipers.report.drawing_plane import draw_plane
from calipers.report.svg_axes import (
    BOTTOM,
    HEIGHT,
    RIGHT,
    SMALL,
    TOP,
    WIDTH,
    Axis,
    Scale,
    date_axis,
    kept_labels,
    left_margin,
    line,
    make_axis,
    opening,
    rectangle,
    shortened,
    text,
    text_width,
)
from calipers.results.formatting import format_percent, format_share
from calipers.results.picture_data import has_diagonal, histogram_of, is_off, is_reliability, reference_words

LEGEND_ROW, COLOURS = 18, 4
# The strip of rows below a reliability diagram, and its tallest bar.
HISTOGRAM, TALLEST = 74, 44
_BANDS = ("y", "low", "high", "null_low", "null_high")


def draw(picture: Mapping[str, Any]) -> str:
    """The picture as one SVG element."""
    if picture["kind"] == "intervals":
        return draw_intervals(picture)
    if picture["kind"] == "plane":
        return draw_plane(picture)
    return _draw_curves(picture)


_SAMPLES = {"line": "curve", "points": "point"}


def picture_keys(picture: Mapping[str, Any]) -> list[tuple[str, str]]:
    """What the colours of a drawing mean: class of the sample and words."""
    curves, kind = picture["curves"], picture["kind"]
    if kind == "plane":
        return [("below", "below the promise"), ("above", "above it"), ("frame", "the rule")]
    first, several = curves[0], len(curves) > 1
    keys = [] if several or kind == "intervals" else [(_SAMPLES[kind], "measured")]
    if _has_usual_intervals(picture):
        sample = "band" if kind == "line" else "interval"
        keys.append((sample, f"{format_percent(first['confidence'])} interval"))
    if any(curve["null_high"] is not None or curve["null_low"] is not None for curve in curves):
        keys.append(("null", "a valid predictor"))
    if picture["reference"] is not None or has_diagonal(first):
        keys.append(("promise", reference_words(picture)))
    if "since" in (picture.get("focus") or {}):
        keys.append(("since", "since the change"))
    return keys + (interval_keys(picture) if kind == "intervals" else [])


def _has_usual_intervals(picture: Mapping[str, Any]) -> bool:
    """Whether an interval is drawn in the usual colour."""
    curves, reference = picture["curves"], picture["reference"]
    if not any(curve["low"] is not None and curve["confidence"] for curve in curves):
        return False
    first = curves[0]
    return picture["kind"] != "intervals" or not all(
        is_off(first, i, reference) for i in range(len(first["y"]))
    )


def _draw_curves(picture: Mapping[str, Any]) -> str:
    curves, reference = picture["curves"], picture["reference"]
    reliability = is_reliability(curves[0])
    x_axis, y_axis = _axes(picture)
    left = left_margin(y_axis)
    x, y = x_axis.scale(left, WIDTH - RIGHT), y_axis.scale(HEIGHT - BOTTOM, TOP)
    bars = histogram_of(curves[0]) if reliability else None
    parts = [_grid(x_axis, y_axis, x, y, left), _focus(picture.get("focus") or {}, x, x_axis, left)]
    parts += [_band(curve, "null_low", "null_high", x, y, "null") for curve in curves]
    if reference is not None:
        parts.append(line(left, WIDTH - RIGHT, y(reference), y(reference), "promise"))
    if has_diagonal(curves[0]):
        parts.append(_diagonal(x_axis, y_axis, x, y))
    for position, curve in enumerate(curves):
        parts.append(_curve(picture["kind"], curve, x, y, f"c{position % COLOURS}"))
    if picture["name"] == "coverage_by_alpha":
        parts.append(_stops(curves[0], x, y))
    below = HISTOGRAM if bars else 0
    parts += [_axis_names(curves[0], left, below), "" if bars is None else _histogram(bars, x)]
    parts.append(_legend(curves, HEIGHT + below))
    height = HEIGHT + below + (LEGEND_ROW * len(curves) if len(curves) > 1 else 0)
    return opening(height, picture["title"], summary(picture)) + "".join(parts) + "</svg>"


def summary(picture: Mapping[str, Any]) -> str:
    """What a reader who cannot see the drawing should know: its first, last, lowest and highest point."""
    curve = picture["curves"][0]
    points = [
        (float(a), float(b)) for a, b in zip(curve["x"], curve["y"], strict=True) if math.isfinite(float(b))
    ]
    if not points:
        return ""
    values = [b for _, b in points]
    return (
        f"{len(points)} points of {curve['y_label'] or curve['name']}, from {min(values):.3g} to "
        f"{max(values):.3g}; the first is {values[0]:.3g}, the last {values[-1]:.3g}"
    )


def _axes(picture: Mapping[str, Any]) -> tuple[Axis, Axis]:
    curves, reference = picture["curves"], picture["reference"]
    across = _values(curves, ("x",))
    extra = [] if reference is None else [float(reference)]
    if is_reliability(curves[0]):
        return make_axis([0.0, 1.0], bounds=(0.0, 1.0)), make_axis([0.0, 1.0], bounds=(0.0, 1.0))
    dated = curves[0]["details"].get("dates")
    up = make_axis(_values(curves, _BANDS) + extra)
    return date_axis(across) if dated else make_axis(across), up


def _values(curves: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[float]:
    return [float(v) for curve in curves for key in keys if curve[key] is not None for v in curve[key]]


def _grid(x_axis: Axis, y_axis: Axis, x: Scale, y: Scale, left: float) -> str:
    bottom = HEIGHT - BOTTOM
    parts = [line(x(t), x(t), TOP, bottom, "grid") for t in x_axis.ticks]
    parts += [text(at, bottom + 16, words, anchor="middle") for at, words in kept_labels(x_axis, x)]
    for tick, words in zip(y_axis.ticks, y_axis.words, strict=True):
        parts.append(line(left, WIDTH - RIGHT, y(tick), y(tick), "grid"))
        parts.append(text(left - 6, y(tick) + 4, words, anchor="end"))
    return "".join(parts)


def _axis_names(curve: Mapping[str, Any], left: float, below: float) -> str:
    """The vertical axis is named above its top, the horizontal one below its middle."""
    up = shortened(curve["y_label"], WIDTH - 8)
    long = text_width(curve["x_label"]) > WIDTH - 8
    across = shortened(curve["x_label"], (WIDTH - 8) / (SMALL if long else 1))
    half = text_width(across) / 2 * (SMALL if long else 1)
    centre = min(max((left + WIDTH - RIGHT) / 2, half), WIDTH - half)
    style = "name small" if long else "name"
    return text(2, 12, up, style="name") + text(
        centre, HEIGHT + below - 6, across, anchor="middle", style=style
    )


def _points_of(curve: Mapping[str, Any], key: str, x: Scale, y: Scale) -> list[tuple[float, float]]:
    pairs = zip(curve["x"], curve[key], strict=True)
    return [(x(float(a)), y(float(b))) for a, b in pairs if math.isfinite(a) and math.isfinite(b)]


def _stepped(points: list[tuple[float, float]], step: bool) -> list[tuple[float, float]]:
    if not step:
        return points
    doubled = points[:1]
    for (_, before), (at, value) in pairwise(points):
        doubled += [(at, before), (at, value)]
    return doubled


def _trace(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{a:.1f},{b:.1f}" for a, b in points)


def _band(curve: Mapping[str, Any], low: str, high: str, x: Scale, y: Scale, style: str) -> str:
    if curve[low] is None or curve[high] is None:
        return ""
    up = _stepped(_points_of(curve, high, x, y), curve["step"])
    down = _stepped(_points_of(curve, low, x, y), curve["step"])
    return f'<polygon class="{style}" points="{_trace([*up, *reversed(down)])}"/>'


def _curve(kind: str, curve: Mapping[str, Any], x: Scale, y: Scale, colour: str) -> str:
    if kind == "points":
        return _points(curve, x, y, colour)
    return _band(curve, "low", "high", x, y, f"band {colour}") + _path(curve, x, y, colour)


def _path(curve: Mapping[str, Any], x: Scale, y: Scale, colour: str) -> str:
    points = _stepped(_points_of(curve, "y", x, y), curve["step"])
    dots = "".join(f'<circle class="dot {colour}" cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>' for a, b in points)
    path = f'<polyline class="line {colour}" points="{_trace(points)}"/>'
    return path + (dots if len(points) <= 30 else "")


def _points(curve: Mapping[str, Any], x: Scale, y: Scale, colour: str) -> str:
    parts = []
    for i, at in enumerate(curve["x"]):
        value = float(curve["y"][i])
        if not math.isfinite(value):
            continue
        if curve["low"] is not None and curve["high"] is not None:
            low, high = float(curve["low"][i]), float(curve["high"][i])
            if math.isfinite(low) and math.isfinite(high):
                parts.append(line(x(at), x(at), y(low), y(high), f"line {colour}"))
        parts.append(f'<circle class="dot {colour}" cx="{x(at):.1f}" cy="{y(value):.1f}" r="3.2"/>')
    return "".join(parts)


def _diagonal(x_axis: Axis, y_axis: Axis, x: Scale, y: Scale) -> str:
    low, high = max(x_axis.low, y_axis.low), min(x_axis.high, y_axis.high)
    return line(x(low), x(high), y(low), y(high), "promise")


def _histogram(bars: tuple[Any, Any], x: Scale) -> str:
    """How many rows state each probability, in a strip below the diagram that shares its axis."""
    edges, shares = bars
    base, tallest = HEIGHT + HISTOGRAM - 24, max(shares)
    # What is there at all can be seen.
    heights = [max(1.5, TALLEST * float(s) / tallest) for s in shares]
    drawn = zip(pairwise(map(float, edges)), map(float, shares), heights, strict=True)
    return (
        text(x(0) - 6, base, "rows", anchor="end", style="small")
        + text(x(0) - 6, base - TALLEST + 10, format_share(tallest, 0), anchor="end", style="small")
        + line(x(0), x(1), base, base, "grid")
        + "".join(
            rectangle(x(a) + 0.5, base - h, x(b) - x(a) - 1, h, "bar",
                      f"<title>{100 * s:.1f} % of the rows state {a:.2f} to {b:.2f}</title>")
            for (a, b), s, h in drawn if s > 0
        )
    )  # fmt: skip


def _focus(focus: Mapping[str, Any], x: Scale, axis: Axis, left: float) -> str:
    """Since when things are different, and until when: lines, and the time between them shaded."""
    if "since" not in focus:
        return ""
    until = axis.high if focus.get("until") is None else focus["until"]
    start, end = (x(min(max(float(v), axis.low), axis.high)) for v in (focus["since"], until))
    words = shortened(focus["words"], (WIDTH - left) / SMALL)
    half = text_width(words) * SMALL / 2
    parts = [rectangle(start, TOP, end - start, HEIGHT - BOTTOM - TOP, "since")]
    lines = [start] if focus.get("until") is None else [start, end]
    parts += [line(at, at, TOP, HEIGHT - BOTTOM, "change") for at in lines]
    centre = min(max(start, left + half), WIDTH - half)
    return "".join([*parts, text(centre, TOP - 3, words, anchor="middle", style="small since")])


def _stops(curve: Mapping[str, Any], x: Scale, y: Scale) -> str:
    """One hidden marker per stop of the slider; the script shows one of them."""
    return "".join(
        f'<g class="stop" data-stop="{i}">{line(x(a), x(a), TOP, HEIGHT - BOTTOM, "promise")}'
        f'<circle class="now" cx="{x(a):.1f}" cy="{y(b):.1f}" r="5"/></g>'
        for i, (a, b) in enumerate(zip(curve["x"], curve["y"], strict=True))
    )


def _legend(curves: Sequence[Mapping[str, Any]], top: float) -> str:
    """Names of several curves, below the drawing where they hide nothing."""
    if len(curves) < 2:
        return ""
    return "".join(
        f'<circle class="dot c{i % COLOURS}" cx="8" cy="{top + 8 + LEGEND_ROW * i}" r="4"/>'
        + text(18, top + 12 + LEGEND_ROW * i, shortened(curve["name"], WIDTH - 20))
        for i, curve in enumerate(curves)
    )
