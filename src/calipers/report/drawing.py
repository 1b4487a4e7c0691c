"""Curves as SVG. Colours are classes, so that light, dark and print share one drawing."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

# Small enough that text stays readable when a phone shrinks the drawing to its width.
WIDTH, HEIGHT = 460, 280
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 12, 42
ROW, LABEL_WIDTH, LABEL_LETTERS = 24, 160, 21
LEGEND_ROW = 17
COLOURS = 4

Scale = Callable[[float], float]


@dataclass(frozen=True, slots=True)
class Axis:
    """Ends of the data and the ticks between them."""

    low: float
    high: float
    ticks: tuple[float, ...]

    def scale(self, start: float, end: float) -> Scale:
        """Data -> pixels."""
        width = self.high - self.low or 1.0
        return lambda value: start + (end - start) * (value - self.low) / width


def draw(picture: Mapping[str, Any]) -> str:
    """The picture as one SVG element."""
    if picture["kind"] == "intervals":
        return _intervals(picture)
    return _lines(picture)


def make_axis(values: Iterable[float], *, count: int = 5, bounds: tuple[float, float] | None = None) -> Axis:
    """An axis around the finite values, with round ticks.

    Examples
    --------
    >>> make_axis([0.82, 0.97]).ticks
    (0.85, 0.9, 0.95)
    """
    finite = [v for v in values if math.isfinite(v)] or [0.0, 1.0]
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


def _values(curves: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> list[float]:
    return [float(v) for curve in curves for key in keys if curve[key] is not None for v in curve[key]]


def _opening(height: float, title: str) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:.0f}" role="img" preserveAspectRatio="xMidYMid meet">'
        f"<title>{escape(title)}</title>"
    )


def _tick_label(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1e4 else f"{value:.1e}"


def _lines(picture: Mapping[str, Any]) -> str:
    curves, reference = picture["curves"], picture["reference"]
    extra = [] if reference is None else [reference]
    x_axis = make_axis(_values(curves, ("x",)))
    y_axis = make_axis(_values(curves, ("y", "low", "high", "null_low", "null_high")) + extra)
    x, y = x_axis.scale(LEFT, WIDTH - RIGHT), y_axis.scale(HEIGHT - BOTTOM, TOP)
    below = LEGEND_ROW * len(curves) if len(curves) > 1 else 0
    parts = [_opening(HEIGHT + below, picture["title"]), _grid(x_axis, y_axis, x, y), _axis_names(curves[0])]
    parts += [_band(curve, "null_low", "null_high", x, y, "null") for curve in curves]
    if reference is not None:
        parts.append(_level_line(y(reference)))
    for position, curve in enumerate(curves):
        colour = f"c{position % COLOURS}"
        if picture["kind"] == "points":
            parts.append(_points(curve, x, y, colour))
        else:
            parts += [_band(curve, "low", "high", x, y, f"band {colour}"), _path(curve, x, y, colour)]
    if picture["name"] == "coverage_by_alpha":
        parts.append(_marker(curves[0], x, y))
    parts += [_legend(curves), "</svg>"]
    return "".join(parts)


def _grid(x_axis: Axis, y_axis: Axis, x: Scale, y: Scale) -> str:
    bottom = HEIGHT - BOTTOM
    vertical = [
        f'<line class="grid" x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{TOP}" y2="{bottom}"/>'
        f'<text x="{x(t):.1f}" y="{bottom + 15}" text-anchor="middle">{_tick_label(t)}</text>'
        for t in x_axis.ticks
    ]
    across = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        f'<text x="{LEFT - 6}" y="{y(t) + 4:.1f}" text-anchor="end">{_tick_label(t)}</text>'
        for t in y_axis.ticks
    ]
    return "".join(vertical + across)


def _axis_names(curve: Mapping[str, Any]) -> str:
    centre, middle = (LEFT + WIDTH - RIGHT) / 2, (TOP + HEIGHT - BOTTOM) / 2
    across, up = escape(curve["x_label"]), escape(curve["y_label"])
    turned = f'transform="translate(12 {middle:.0f}) rotate(-90)"'
    return (
        f'<text class="name" x="{centre:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{across}</text>'
        f'<text class="name" {turned} text-anchor="middle">{up}</text>'
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


def _path(curve: Mapping[str, Any], x: Scale, y: Scale, colour: str) -> str:
    points = _stepped(_points_of(curve, "y", x, y), curve["step"])
    dots = "".join(f'<circle class="dot {colour}" cx="{a:.1f}" cy="{b:.1f}" r="2.6"/>' for a, b in points)
    line = f'<polyline class="line {colour}" points="{_trace(points)}"/>'
    return line + (dots if len(points) <= 30 else "")


def _points(curve: Mapping[str, Any], x: Scale, y: Scale, colour: str) -> str:
    parts = []
    for i, at in enumerate(curve["x"]):
        value = float(curve["y"][i])
        if not math.isfinite(value):
            continue
        if curve["low"] is not None and curve["high"] is not None:
            low, high = float(curve["low"][i]), float(curve["high"][i])
            if math.isfinite(low) and math.isfinite(high):
                parts.append(
                    f'<line class="line {colour}" x1="{x(at):.1f}" x2="{x(at):.1f}" y1="{y(low):.1f}" '
                    f'y2="{y(high):.1f}"/>'
                )
        parts.append(f'<circle class="dot {colour}" cx="{x(at):.1f}" cy="{y(value):.1f}" r="3.2"/>')
    return "".join(parts)


def _level_line(at: float) -> str:
    return f'<line class="promise" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{at:.1f}" y2="{at:.1f}"/>'


def _marker(curve: Mapping[str, Any], x: Scale, y: Scale) -> str:
    """One hidden marker per stop of the slider; the script shows one of them."""
    return "".join(
        f'<g class="stop" data-stop="{i}"><line class="promise" x1="{x(a):.1f}" x2="{x(a):.1f}" y1="{TOP}" '
        f'y2="{HEIGHT - BOTTOM}"/><circle class="now" cx="{x(a):.1f}" cy="{y(b):.1f}" r="5"/></g>'
        for i, (a, b) in enumerate(zip(curve["x"], curve["y"], strict=True))
    )


def _upright(at: float, bottom: float, style: str) -> str:
    return f'<line class="{style}" x1="{at:.1f}" x2="{at:.1f}" y1="{TOP}" y2="{bottom}"/>'


def _bar(start: float, end: float, at: float, colour: str) -> str:
    return f'<line class="line {colour}" x1="{start:.1f}" x2="{end:.1f}" y1="{at:.1f}" y2="{at:.1f}"/>'


def _legend(curves: Sequence[Mapping[str, Any]]) -> str:
    """Names of several curves, below the drawing where they hide nothing."""
    if len(curves) < 2:
        return ""
    return "".join(
        f'<circle class="dot c{i % COLOURS}" cx="{LEFT + 4}" cy="{HEIGHT + 4 + LEGEND_ROW * i}" r="3.5"/>'
        f'<text x="{LEFT + 12}" y="{HEIGHT + 8 + LEGEND_ROW * i}">{escape(curve["name"])}</text>'
        for i, curve in enumerate(curves)
    )


def _intervals(picture: Mapping[str, Any]) -> str:
    curve, reference = picture["curves"][0], picture["reference"]
    labels = picture["labels"] or [_tick_label(float(v)) for v in curve["x"]]
    extra = [] if reference is None else [reference]
    axis = make_axis(_values([curve], ("y", "low", "high", "null_low", "null_high")) + extra)
    height = TOP + ROW * len(labels) + BOTTOM
    x, bottom = axis.scale(LABEL_WIDTH, WIDTH - RIGHT), height - BOTTOM
    ticks = "".join(
        f'<line class="grid" x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{TOP}" y2="{bottom}"/>'
        f'<text x="{x(t):.1f}" y="{bottom + 15}" text-anchor="middle">{_tick_label(t)}</text>'
        for t in axis.ticks
    )
    promise = "" if reference is None else _upright(x(reference), bottom, "promise")
    rows = "".join(_interval_row(curve, i, labels[i], reference, x) for i in range(len(labels)))
    name = (
        f'<text class="name" x="{(LABEL_WIDTH + WIDTH - RIGHT) / 2:.0f}" y="{height - 8}" '
        f'text-anchor="middle">{escape(curve["y_label"])}</text>'
    )
    return _opening(height, picture["title"]) + ticks + promise + rows + name + "</svg>"


def _interval_row(curve: Mapping[str, Any], i: int, label: str, reference: float | None, x: Scale) -> str:
    at = TOP + ROW * i + ROW / 2
    short = label if len(label) <= LABEL_LETTERS else label[: LABEL_LETTERS - 1] + "…"
    words = f"{escape(short)}<title>{escape(label)}</title>"
    parts = [f'<text x="{LABEL_WIDTH - 8}" y="{at + 4:.1f}" text-anchor="end">{words}</text>']
    if curve["null_low"] is not None and curve["null_high"] is not None:
        left, right = x(float(curve["null_low"][i])), x(float(curve["null_high"][i]))
        width = max(0.0, right - left)
        parts.append(f'<rect class="null" x="{left:.1f}" y="{at - 8:.1f}" width="{width:.1f}" height="16"/>')
    colour = "c0"
    if curve["low"] is not None and curve["high"] is not None:
        low, high = float(curve["low"][i]), float(curve["high"][i])
        colour = "bad" if reference is not None and high < reference else "c0"
        if math.isfinite(low) and math.isfinite(high):
            parts.append(_bar(x(low), x(high), at, colour))
    value = float(curve["y"][i])
    if math.isfinite(value):
        parts.append(f'<circle class="dot {colour}" cx="{x(value):.1f}" cy="{at:.1f}" r="3.6"/>')
    return "".join(parts)
