"""The report of ``calipers demo``: one HTML file with its picture inside, readable without a network."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from jinja2 import Environment

from calipers.results import Estimate, EstimateTable
from calipers.results.formatting import format_number, format_p_value

SIGNIFICANT = 0.05

# Width, left margin of the axis, height of a row, top margin, bottom margin, in pixels.
WIDTH, LEFT, ROW, TOP, BOTTOM = 760, 190, 44, 30, 48
INK, MUTED, BAND, GOOD, BAD = "#1f2933", "#66727f", "#d9e2ec", "#1b7f5c", "#c0392b"


@dataclass(frozen=True, slots=True)
class Row:
    """One estimate as words."""

    name: str
    value: str
    interval: str
    null: str
    p: str
    verdict: str
    accused: bool


def row_of(name: str, estimate: Estimate) -> Row:
    """The words for one line of the table."""
    spread = None if estimate.low is None or estimate.high is None else estimate.high - estimate.low
    accused = estimate.p_value is not None and estimate.p_value < SIGNIFICANT
    below = estimate.null_low is not None and float(estimate) < estimate.null_low
    broken = "too little" if below else "too much"
    return Row(
        name=name,
        value=format_number(estimate.value, spread),
        interval=span(estimate.low, estimate.high, spread),
        null=span(estimate.null_low, estimate.null_high, spread),
        p="" if estimate.p_value is None else format_p_value(estimate.p_value),
        verdict=broken if accused else "kept",
        accused=accused,
    )


def span(low: float | None, high: float | None, spread: float | None) -> str:
    """Two ends as words; empty when there are none."""
    if low is None and high is None:
        return ""
    return f"{format_number(low, spread)} to {format_number(high, spread)}"


def picture(table: EstimateTable, *, alpha: float) -> str:
    """Coverage, interval and null band of every predictor on one axis, as SVG."""
    rows = list(table.items())
    height = TOP + ROW * len(rows) + BOTTOM
    start, ticks = axis(table, alpha)

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - 30) * (value - start) / (1 - start)

    bottom = height - BOTTOM
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'font-family="system-ui, sans-serif" font-size="13"><title>{escape(table.title)}</title>'
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>'
    )
    grid = [
        f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{bottom}" stroke="#eceff3"/>'
        f'<text x="{x(tick):.1f}" y="{bottom + 18}" text-anchor="middle" fill="{MUTED}">{tick:.1f}</text>'
        for tick in ticks
    ]
    predictors = [
        marks(name, estimate, x, TOP + ROW * position + ROW / 2)
        for position, (name, estimate) in enumerate(rows)
    ]
    promised = x(1 - alpha)
    promise = (
        f'<line x1="{promised:.1f}" x2="{promised:.1f}" y1="{TOP - 6}" y2="{bottom}" stroke="{INK}" '
        f'stroke-dasharray="4 3"/><text x="{promised:.1f}" y="{TOP - 12}" text-anchor="middle" '
        f'fill="{INK}">promised {1 - alpha:.4g}</text>'
        f'<text x="{x((1 + start) / 2):.1f}" y="{height - 5}" text-anchor="middle" fill="{MUTED}">'
        "share of held-out rows covered; grey: what a healthy predictor reads</text></svg>"
    )
    return "".join([opening, *grid, *predictors, promise])


def axis(table: EstimateTable, alpha: float) -> tuple[float, list[float]]:
    """Left end of the axis (a tenth below everything shown) and its ticks."""
    ends = [end for e in table.values() for end in (e.low, e.null_low, e.value) if end is not None]
    lowest = max(0, int(10 * min([1 - alpha, *ends]) - 0.5))
    return lowest / 10, [tick / 10 for tick in range(lowest, 11)]


def marks(name: str, estimate: Estimate, x: Callable[[float], float], y: float) -> str:
    """Label, null band, interval and point of one predictor."""
    colour = BAD if row_of(name, estimate).accused else GOOD
    parts = [f'<text x="{LEFT - 14}" y="{y + 4:.1f}" text-anchor="end" fill="{INK}">{escape(name)}</text>']
    if estimate.null_low is not None and estimate.null_high is not None:
        left, right = x(estimate.null_low), x(estimate.null_high)
        parts.append(
            f'<rect x="{left:.1f}" y="{y - 12:.1f}" width="{right - left:.1f}" height="24" fill="{BAND}"/>'
        )
    if estimate.low is not None and estimate.high is not None:
        parts.append(
            f'<line x1="{x(estimate.low):.1f}" x2="{x(estimate.high):.1f}" y1="{y:.1f}" y2="{y:.1f}" '
            f'stroke="{colour}" stroke-width="2.5"/>'
        )
    parts.append(f'<circle cx="{x(float(estimate)):.1f}" cy="{y:.1f}" r="5" fill="{colour}"/>')
    return "".join(parts)


def render(table: EstimateTable, *, alpha: float) -> str:
    """The whole page."""
    rows = [row_of(name, estimate) for name, estimate in table.items()]
    return (
        Environment(autoescape=True)
        .from_string(PAGE)
        .render(
            table=table,
            rows=rows,
            broken=sum(row.accused for row in rows),
            picture=picture(table, alpha=alpha),
            sentences=[str(estimate) for estimate in table.values()],
        )
    )


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{{ table.title }}</title>
<style>
  body { font: 16px/1.5 system-ui, sans-serif; color: #1f2933 }
  body { max-width: 50rem; margin: 2rem auto; padding: 0 1rem }
  h1 { font-size: 1.5rem; margin-bottom: .2rem }
  .verdict { font-size: 1.1rem; margin-top: 0 }
  svg { width: 100%; height: auto }
  .scroll { overflow-x: auto }
  table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
  th, td { text-align: left; padding: .35rem .8rem .35rem 0; border-bottom: 1px solid #e4e9ef }
  th, td { white-space: nowrap }
  .good { color: #1b7f5c } .bad { color: #c0392b }
  .notes { color: #55606c; font-size: .92rem }
</style>
</head>
<body>
<h1>{{ table.title }}</h1>
<p class="verdict">{{ broken }} of {{ rows|length }} predictors
{{ "does" if broken == 1 else "do" }} not keep the promised coverage.</p>
{{ picture|safe }}
<div class="scroll"><table>
<tr><th>predictor</th><th>coverage</th><th>95 % interval</th><th>a healthy one reads</th><th>p</th>
<th>promise</th></tr>
{%- for row in rows %}
<tr><td>{{ row.name }}</td><td>{{ row.value }}</td><td>{{ row.interval }}</td><td>{{ row.null }}</td>
<td>{{ row.p }}</td><td class="{{ 'bad' if row.accused else 'good' }}">{{ row.verdict }}</td></tr>
{%- endfor %}
</table></div>
<ul>{% for sentence in sentences %}<li>{{ sentence }}</li>{% endfor %}</ul>
<div class="notes">{% for note in table.notes %}<p>{{ note }}</p>{% endfor %}
<p>Every number on this page is also in audit.json.</p></div>
</body>
</html>
"""
