"""Results in a notebook: small HTML without style sheets or scripts, readable in light and dark."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calipers.results.curve import Curve
    from calipers.results.estimate import Estimate

WIDTH, HEIGHT, PAD = 180, 18, 6
_BAND, _INK = "#9aa7b466", "#2a7f9e"


def estimate_html(estimate: Estimate) -> str:
    """The printed line with its bar, and the method on a line of its own."""
    method = f"<br><small>{escape(estimate.method)}</small>" if estimate.method else ""
    return f"<div>{interval_bar(estimate)} {_prose(str(estimate))}{method}</div>"


def table_html(
    rows: Iterable[tuple[Sequence[str], Estimate]], *, title: str = "", notes: Iterable[str] = ()
) -> str:
    """One line per estimate with its bar; every bar has a scale of its own."""
    head = "".join(f"<th>{name}</th>" for name in ("", "value", "interval", "", "null", "p"))
    body = "".join(
        "<tr>" + "".join(f"<td>{cell}</td>" for cell in _cells(words, estimate)) + "</tr>"
        for words, estimate in rows
    )
    caption = f"<caption>{escape(title)}</caption>" if title else ""
    below = "".join(f"<p><small>{_prose(note)}</small></p>" for note in notes)
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _cells(words: Sequence[str], estimate: Estimate) -> list[str]:
    name, value, interval, null, p = map(_prose, words)
    return [name, value, interval, interval_bar(estimate), null, p]


def curve_html(curve: Curve) -> str:
    """The printed line of a curve over a small drawing of it."""
    return f"<div>{_spark(curve)}<br>{_prose(str(curve))}</div>"


def interval_bar(estimate: Estimate) -> str:
    """The interval as a bar, the value as a dot, the null band in grey; nothing without an interval."""
    ends = [estimate.low, estimate.high, estimate.value]
    known = [float(v) for v in ends if v is not None and math.isfinite(v)]
    if len(known) < 3:
        return ""
    band = [float(v) for v in (estimate.null_low, estimate.null_high) if v is not None and math.isfinite(v)]
    left, right = min([*known, *band]), max([*known, *band])
    if left == right:
        return ""
    scale = (WIDTH - 2 * PAD) / (right - left)
    low, high, value = (PAD + (v - left) * scale for v in known)
    parts = [f'<svg width="{WIDTH}" height="{HEIGHT}" role="img" style="vertical-align:middle">']
    parts.append(f"<title>{escape(str(estimate))}</title>")
    if band:
        start = PAD + (band[0] - left) * scale if estimate.null_low is not None else 0.0
        end = PAD + (band[-1] - left) * scale if estimate.null_high is not None else float(WIDTH)
        parts.append(_rectangle(start, 2, max(1.0, end - start), HEIGHT - 4, _BAND))
    parts.append(_rectangle(low, HEIGHT / 2 - 1, max(1.0, high - low), 2, _INK))
    parts.append(f'<circle cx="{value:.1f}" cy="{HEIGHT / 2:.0f}" r="4" fill="{_INK}"/></svg>')
    return "".join(parts)


def _rectangle(x: float, y: float, width: float, height: float, colour: str) -> str:
    return f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}"/>'


def _spark(curve: Curve) -> str:
    points = [(float(a), float(b)) for a, b in zip(curve.x, curve.y, strict=True)]
    finite = [(a, b) for a, b in points if math.isfinite(a) and math.isfinite(b)]
    if len(finite) < 2:
        return ""
    across, up = _spread([a for a, _ in finite]), _spread([b for _, b in finite])
    step = max(1, len(finite) // WIDTH)
    trace = " ".join(f"{WIDTH * across(a):.1f},{3 * HEIGHT * (1 - up(b)):.1f}" for a, b in finite[::step])
    return (
        f'<svg width="{WIDTH}" height="{3 * HEIGHT}" role="img"><title>{escape(curve.name)}</title>'
        f'<polyline points="{trace}" fill="none" stroke="{_INK}" stroke-width="2"/></svg>'
    )


def _spread(values: Sequence[float]) -> Any:
    low, high = min(values), max(values)
    return lambda value: 0.5 if high == low else (value - low) / (high - low)


def _prose(text: str) -> str:
    """Escaped, and a percentage never on two lines."""
    return escape(text).replace(" %", "&nbsp;%")


# Edges of the cells; the words keep the colour of the notebook, in light and dark.
_ANSWER_COLOURS = {
    "broken": "#c0392b", "not quite kept": "#c98a10", "mostly kept": "#3f8fae", "cannot tell": "#8a74c0",
    "kept": "#2e8b57",
}  # fmt: skip


def promise_html(
    slices: Sequence[str], rows: Sequence[tuple[str, Sequence[tuple[str, str]]]], marks: Mapping[str, str]
) -> str:
    """Promises down, slices across; every cell has its answer, and all it knows when it is pointed at.

    Examples
    --------
    >>> text = promise_html(["time"], [("coverage", [("kept", "coverage, time: kept")])], {"kept": "✓"})
    >>> 'title="coverage, time: kept"' in text
    True
    """
    head = "".join(f'<th scope="col">{escape(part)}</th>' for part in slices)
    body = ""
    for promise, cells in rows:
        shown = "".join(
            f'<td title="{escape(words, quote=True)}" style="border-left:4px solid '
            f'{_ANSWER_COLOURS.get(answer, "transparent")}">'
            f"{escape(marks.get(answer, ''))} {escape(answer)}</td>"
            for answer, words in cells
        )
        body += f'<tr><th scope="row" style="text-align:left">{escape(promise)}</th>{shown}</tr>'
    return f'<table><thead><tr><th scope="col">promise</th>{head}</tr></thead><tbody>{body}</tbody></table>'
