"""Cells of two features as SVG, coloured by how far they lie from the promise, and the rule as a frame."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calipers.report.svg_axes import (
    BOTTOM,
    HEIGHT,
    RIGHT,
    TOP,
    WIDTH,
    Axis,
    kept_labels,
    left_margin,
    make_axis,
    opening,
    shortened,
    text,
)
from calipers.results.formatting import format_rows

# A cell this far below the promise has the full colour.
FULL = 0.35


def draw_plane(picture: Mapping[str, Any]) -> str:
    """The plane with its frame; every cell says its number when it is pointed at."""
    curve, promised = picture["curves"][0], float(picture["reference"])
    details = curve["details"]
    x_axis, y_axis = (_axis(details[key]) for key in ("x_edges", "y_edges"))
    left = left_margin(y_axis)
    x, y = x_axis.scale(left, WIDTH - RIGHT), y_axis.scale(HEIGHT - BOTTOM, TOP)
    x_edges, y_edges = ([float(v) for v in details[key]] for key in ("x_edges", "y_edges"))
    parts = []
    cells = zip(details["x_cell"], details["y_cell"], details["value"], details["rows"], strict=True)
    for i, j, value, rows in cells:
        style, strength = _colour(float(value) - promised)
        parts.append(
            f'<rect class="{style}" fill-opacity="{strength:.2f}" x="{x(x_edges[i]):.1f}" '
            f'y="{y(y_edges[j + 1]):.1f}" width="{x(x_edges[i + 1]) - x(x_edges[i]):.1f}" '
            f'height="{y(y_edges[j]) - y(y_edges[j + 1]):.1f}">'
            f"<title>{100 * float(value):.0f} % of {format_rows(rows)}</title></rect>"
        )
    start, end, low, high = (float(v) for v in details["region"])
    parts.append(
        f'<rect class="frame" x="{x(start):.1f}" y="{y(high):.1f}" width="{x(end) - x(start):.1f}" '
        f'height="{y(low) - y(high):.1f}"/>'
    )
    bottom = HEIGHT - BOTTOM
    parts += [text(at, bottom + 16, words, anchor="middle") for at, words in kept_labels(x_axis, x)]
    parts += [
        text(left - 6, y(tick) + 4, words, anchor="end")
        for tick, words in zip(y_axis.ticks, y_axis.words, strict=True)
    ]
    parts.append(text(2, 12, shortened(curve["y_label"], WIDTH - 8), style="name"))
    across = shortened(curve["x_label"], WIDTH - left - RIGHT)
    parts.append(text((left + WIDTH - RIGHT) / 2, HEIGHT - 6, across, anchor="middle", style="name"))
    said = f"{curve['x_label']} {start:.4g} to {end:.4g}, {curve['y_label']} {low:.4g} to {high:.4g}"
    return opening(HEIGHT, picture["title"], f"The frame is {said}") + "".join(parts) + "</svg>"


def _axis(edges: Any) -> Axis:
    """Exactly from the first to the last edge."""
    ends = (float(edges[0]), float(edges[-1]))
    return make_axis(ends, bounds=ends)


def _colour(departure: float) -> tuple[str, float]:
    strength = min(1.0, 0.15 + 0.85 * abs(departure) / FULL)
    return ("below", strength) if departure < 0 else ("above", min(strength, 0.5))
