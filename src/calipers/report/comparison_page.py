"""A comparison as one page and as Markdown, from one dictionary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from calipers.report.drawing_intervals import draw_intervals
from calipers.report.markdown_text import markdown_cell, markdown_text
from calipers.report.page import asset, template
from calipers.report.svg_axes import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, make_axis
from calipers.report.text_formats import estimate_row
from calipers.results import Estimate
from calipers.results.formatting import format_p_value, in_a_row, p_in_words
from calipers.results.picture_data import table_picture
from calipers.version import __version__


def comparison_document(
    *,
    names: Sequence[str],
    rows: int,
    lines: Sequence[Mapping[str, Any]],
    rankings: Mapping[str, Mapping[str, Any]],
    trade_off: Mapping[str, Mapping[str, Any]],
    promises: Mapping[str, Mapping[str, Any]] | None = None,
) -> dict[str, Any]:
    """Plain values: who was compared, line by line, ranks over data sets, and the trade-off.

    Parameters
    ----------
    names : sequence of str
        The predictors.
    rows : int
        Rows they share, or data sets.
    lines : sequence of mappings
        Per measure the values, the paired differences and the winner.
    rankings : mapping
        Per measure the average ranks and what differs.
    trade_off : mapping
        Per predictor size, conditional error, whether it is efficient and whether it breaks its promise.
    promises : mapping, optional
        Per predictor its coverage, whether it breaks the promise, and a sentence if it does.

    Returns
    -------
    dict
        Only dictionaries, lists, numbers and text.

    Examples
    --------
    >>> from calipers.report import comparison_document
    >>> comparison_document(names=["a", "b"], rows=9, lines=[], rankings={}, trade_off={})["verdict"]
    'No difference beyond noise.'
    """
    return {
        "schema": 1,
        "kind": "Comparison",
        "calipers": __version__,
        "names": list(names),
        "rows": rows,
        "verdict": _verdict(lines, rankings, promises or {}),
        "promises": dict(promises or {}),
        "lines": list(lines),
        "rankings": dict(rankings),
        "trade_off": dict(trade_off),
    }


def _verdict(
    lines: Sequence[Mapping[str, Any]],
    rankings: Mapping[str, Mapping[str, Any]],
    promises: Mapping[str, Mapping[str, Any]],
) -> str:
    measures: dict[str, list[str]] = {}
    for line in lines:
        if line["winner"]:
            measures.setdefault(line["winner"], []).append(line["measure"])
    won = [f"{winner} wins by {in_a_row(names)}" for winner, names in measures.items()]
    for name, ranking in rankings.items():
        shared = ranking["shared_ranks"]
        leaders = [method for method, rank in shared.items() if rank == 1]
        if len(leaders) < len(shared):
            won.append(f"{' and '.join(leaders)} {'leads' if len(leaders) == 1 else 'lead'} by {name}")
    if won:
        return "; ".join(won) + "."
    broken = [name for name, promise in promises.items() if promise["sentence"]]
    if broken:  # a difference may be plain to see; it does not rank predictors that break the promise
        return f"No winner: {' and '.join(broken)} {'breaks' if len(broken) == 1 else 'break'} the promise."
    return "No difference beyond noise."


def _cells(line: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    shown = []
    for name in names:
        _, value, interval, _, _ = estimate_row(name, line["values"][name])
        shown.append(f"{value} ({interval})" if interval else value)
    return [line["measure"], *shown, line["winner"] or "–"]


def _difference(entry: Mapping[str, Any]) -> list[str]:
    _, value, interval, _, _ = estimate_row("", entry["estimate"])
    p = entry["estimate"]["p_value"]
    tested = entry["estimate"]["reason"] if p is None else format_p_value(p)
    return [f"{entry['first']} - {entry['second']}", value, interval, tested]


def _remarks(document: Mapping[str, Any]) -> list[str]:
    """Sentences about promises that are broken, and why a best one does not win."""
    broken = [promise["sentence"] for promise in document["promises"].values() if promise["sentence"]]
    return broken + [f"{line['measure']}: {line['reason']}." for line in document["lines"] if line["reason"]]


def render_comparison_markdown(document: Mapping[str, Any]) -> str:
    """The verdict and the tables.

    Parameters
    ----------
    document : mapping
        As made by `comparison_document`.

    Returns
    -------
    str
        Markdown.

    Examples
    --------
    >>> from calipers.report import comparison_document, render_comparison_markdown
    >>> empty = comparison_document(names=["a", "b"], rows=9, lines=[], rankings={}, trade_off={})
    >>> render_comparison_markdown(empty).splitlines()[0]
    '## Calipers comparison of a and b'
    """
    names = document["names"]
    blocks = [
        markdown_text(f"## Calipers comparison of {', '.join(names[:-1])} and {names[-1]}"),
        f"**{markdown_text(document['verdict'])}**",
    ]
    if document["lines"]:
        rows = [_cells(line, names) for line in document["lines"]]
        blocks.append(_table(["measure", *names, "winner"], rows))
    if remarks := _remarks(document):
        blocks.append("\n".join(f"- {remark}" for remark in remarks))
    for name, ranking in document["rankings"].items():
        pairs = zip(ranking["names"], ranking["average_ranks"], strict=True)
        rows = [
            [m, f"{r:.2f}", str(ranking["shared_ranks"][m])] for m, r in sorted(pairs, key=lambda x: x[1])
        ]
        title = f"{name}: Friedman {p_in_words(ranking['p_value'])} over {ranking['n_blocks']} data sets"
        blocks += [
            markdown_text(title, starts_line=True),
            _table(["method", "average rank", "shared rank"], rows),
        ]
    return "\n\n".join(blocks) + "\n"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(map(markdown_cell, header)) + " |", "|" + "---|" * len(header)]
    lines += ["| " + " | ".join(map(markdown_cell, row)) + " |" for row in rows]
    return "\n".join(lines)


def _differences_drawn(line: Mapping[str, Any]) -> str:
    """The paired differences of a measure with their intervals; empty where nothing differs or is known."""
    made = {f"{e['first']} minus {e['second']}": Estimate(**e["estimate"]) for e in line["differences"]}
    known = {name: estimate for name, estimate in made.items() if estimate.low is not None}
    picture = table_picture(known, title=f"Differences of {line['measure']}", reference=0.0)
    picture["curves"][0]["details"] = {"two_sided": True}
    return draw_intervals(picture) if known else ""


def render_comparison(document: Mapping[str, Any], *, links: Mapping[str, str] | None = None) -> str:
    """One self-contained page: tables, the trade-off of size and conditional error, critical differences.

    Parameters
    ----------
    document : mapping
        As made by `comparison_document`.
    links : mapping, optional
        Predictor -> address of its report.

    Returns
    -------
    str
        HTML without a single address outside itself, but for ``links``.

    Examples
    --------
    >>> from calipers.report import comparison_document, render_comparison
    >>> empty = comparison_document(names=["a", "b"], rows=9, lines=[], rankings={}, trade_off={})
    >>> render_comparison(empty).startswith("<!doctype html>")
    True
    """
    names = document["names"]
    return str(
        template("comparison.html").render(
            document=document,
            style=asset("report.css"),
            links=links or {},
            lines=[_cells(line, names) for line in document["lines"]],
            differences=[
                (line["measure"], [_difference(e) for e in line["differences"]], _differences_drawn(line))
                for line in document["lines"]
            ],
            remarks=_remarks(document),
            trade_off=draw_trade_off(document["trade_off"]),
            rankings=[
                (name, ranking, p_in_words(ranking["p_value"]), draw_ranks(ranking))
                for name, ranking in document["rankings"].items()
            ],
        )
    )


def draw_trade_off(points: Mapping[str, Mapping[str, Any]]) -> str:
    """Conditional error against size; filled where no other that keeps its promise is better in both."""
    known = {
        name: point
        for name, point in points.items()
        if point["size"] is not None and point["conditional_error"] is not None
    }
    if len(known) < 2:
        return ""
    x_axis = make_axis([p["size"] for p in known.values()])
    y_axis = make_axis([0.0, *(p["conditional_error"] for p in known.values())])
    x, y = x_axis.scale(LEFT, WIDTH - RIGHT - 60), y_axis.scale(HEIGHT - BOTTOM, TOP)
    parts = [f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img"><title>Size against conditional error</title>']
    parts += [
        f'<text x="{x(t):.1f}" y="{HEIGHT - BOTTOM + 15}" text-anchor="middle">{words}</text>'
        f'<line class="grid" x1="{x(t):.1f}" x2="{x(t):.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
        for t, words in zip(x_axis.ticks, x_axis.words, strict=True)
    ]
    parts += [
        f'<text x="{LEFT - 6}" y="{y(t) + 4:.1f}" text-anchor="end">{t:.3g}</text>'
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(t):.1f}" y2="{y(t):.1f}"/>'
        for t in y_axis.ticks
    ]
    for name, p in known.items():
        at, up = x(p["size"]), y(p["conditional_error"])
        parts.append(f'{_mark(p, at, up)}<text x="{at + 8:.1f}" y="{up + 4:.1f}">{escape(name)}</text>')
    parts.append(
        f'<text class="name" x="{WIDTH / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">mean size</text>'
        '<text class="name" x="2" y="12">'
        "conditional error</text></svg>"
    )
    return "".join(parts)


def _mark(point: Mapping[str, Any], at: float, up: float) -> str:
    """A cross where the promise is broken, else a dot."""
    if point.get("broken"):
        lines = ((-5, -5, 5, 5), (-5, 5, 5, -5))
        return "".join(
            f'<line class="broken" x1="{at + a:.1f}" y1="{up + b:.1f}" x2="{at + c:.1f}" y2="{up + d:.1f}"/>'
            for a, b, c, d in lines
        )
    style = "dot c0" if point["efficient"] else "dot hollow"
    return f'<circle class="{style}" cx="{at:.1f}" cy="{up:.1f}" r="5"/>'


def draw_ranks(ranking: Mapping[str, Any]) -> str:
    """A critical-difference diagram: average ranks on a line, bars join methods that do not differ."""
    names, ranks = ranking["names"], ranking["average_ranks"]
    order = sorted(range(len(names)), key=lambda i: ranks[i])
    axis = make_axis([1.0, float(len(names))], count=len(names))
    x = axis.scale(LEFT, WIDTH - RIGHT - 20)
    bars = _bars(ranking, order)
    base = 30 + 10 * len(bars)
    height = base + 20 * len(names) + 16
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img"><title>Average ranks</title>']
    parts.append(f'<line class="promise" x1="{x(1):.1f}" x2="{x(len(names)):.1f}" y1="22" y2="22"/>')
    parts += [
        f'<text x="{x(k):.1f}" y="14" text-anchor="middle">{k}</text>' for k in range(1, len(names) + 1)
    ]
    for depth, (first, last) in enumerate(bars):
        at = 32 + 10 * depth
        parts.append(
            f'<line class="line c1" x1="{x(ranks[first]) - 4:.1f}" x2="{x(ranks[last]) + 4:.1f}" '
            f'y1="{at}" y2="{at}"/>'
        )
    for row, i in enumerate(order):
        at = base + 14 + 20 * row
        parts.append(
            f'<line class="grid" x1="{x(ranks[i]):.1f}" x2="{x(ranks[i]):.1f}" y1="22" y2="{at}"/>'
            f'<circle class="dot c0" cx="{x(ranks[i]):.1f}" cy="22" r="4"/>'
            f'<text x="{x(ranks[i]) + 5:.1f}" y="{at}">{escape(names[i])} {ranks[i]:.2f}</text>'
        )
    return "".join([*parts, "</svg>"])


def _bars(ranking: Mapping[str, Any], order: Sequence[int]) -> list[tuple[int, int]]:
    """Runs of neighbours none of whose ends differ; runs inside longer ones are left out."""
    adjusted, alpha = ranking["adjusted"], ranking["alpha"]
    alike = ranking["p_value"] > alpha
    runs: list[tuple[int, int]] = []
    for start in range(len(order)):
        end = start
        while end + 1 < len(order) and (alike or adjusted[order[start]][order[end + 1]] > alpha):
            end += 1
        if end > start and not (runs and runs[-1][1] >= end):
            runs.append((start, end))
    return [(order[start], order[end]) for start, end in runs]
