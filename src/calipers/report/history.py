"""The history of a model's audits as one self-contained page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from calipers.report.earlier_reports import link_to, pair_name
from calipers.report.measure_names import measure_name
from calipers.report.page import asset, template
from calipers.report.svg_axes import make_axis
from calipers.results.formatting import format_count, format_interval, format_number, format_p_value
from calipers.results.promise_table import slice_name

WIDTH, HEIGHT, EDGE = 300, 56, 7
# Room right of a course for the values of its lower and upper edge.
LABELS = 62
# Runs drawn one by one; of more, evenly spaced ones and every change of the answer.
MOST_POINTS = 240
_COLOURS = {"broken": "bad", "kept": "c3", "mostly kept": "c3", "cannot tell": "c2"}


def render_history(document: Mapping[str, Any], *, place: Path | str | None = None) -> str:
    """One page: thresholds kept or missed, every promise over time, numbers with bands, what changed last.

    Parameters
    ----------
    document : mapping
        As made by `calipers.auditing.history.AuditHistory.to_dict`.
    place : path, optional
        Where the page will lie: links to the reports of the audits start from there.

    Returns
    -------
    str
        HTML without a single address outside itself.
    """
    runs = document["runs"]
    when = [run["at"][:16].replace("T", " ") for run in runs]
    return str(
        template("history.html").render(
            document=document,
            style=asset("report.css"),
            when=when,
            verdict=_verdict(document, when),
            promises=[_promise(line, when) for line in document["promises"]],
            numbers=[_number(line, when) for line in document["numbers"] if _is_worth(line, runs)],
            changes=_changes(document["change"]),
            runs=[
                _run(run, at, link_to(run.get("report"), document.get("folder", ""), place))
                for run, at in zip(runs, when, strict=True)
            ][::-1],
        )
    )


def _is_worth(line: Mapping[str, Any], runs: Sequence[Any]) -> bool:
    """Numbers seen once among several runs have no course to draw."""
    return len(line["points"]) > 1 or len(runs) == 1


def _verdict(document: Mapping[str, Any], when: Sequence[str]) -> str:
    """What the last audit found, and since when its broken promises are."""
    broken = [line for line in document["promises"] if line["now"] == "broken"]
    since = [when[line["broken_since"]] for line in broken]
    told = (
        f" {len(broken)} {'promise is' if len(broken) == 1 else 'promises are'} broken, since {min(since)}."
        if broken
        else ""
    )
    return f"{document['runs'][-1]['verdict']}{told}"


def _cell(text: Any, *, style: str = "", link: str = "", svg: str = "") -> dict[str, str]:
    return {"text": str(text), "style": style, "link": link, "svg": svg}


def _run(run: Mapping[str, Any], at: str, link: str) -> list[dict[str, str]]:
    threshold = {True: "missed", False: "kept", None: "not stated"}[run["missed"]]
    asked = f" ({run['fail_on']})" if run["fail_on"] else ""
    return [
        _cell(at, link=link),
        _cell(run["source"] or run["file"]),
        _cell(format_count(run["rows"]) if _finite(run["rows"]) else run["rows"]),
        _cell(threshold + asked, style="broken" if run["missed"] else ""),
        _cell(", ".join(f"{f['code']} {f['severity']}" for f in run["faults"]) or "none"),
    ]


def _promise(line: Mapping[str, Any], when: Sequence[str]) -> list[dict[str, str]]:
    first, since = line["first_broken"], line["broken_since"]
    name = " ".join(filter(None, (line["promise"], line["title"])))
    return [
        _cell(name),
        _cell(slice_name(line["slice"])),
        _cell(line["now"], style=line["now"].replace(" ", "-")),
        _cell(_value(line["points"][-1])),
        _cell("never" if first is None else when[first]),
        _cell("" if since is None else when[since]),
        _cell(f"{line['times_broken']} of {len(line['points'])}"),
        _cell("", svg=draw_course(line["points"], len(when), f"{name} {line['slice']}")),
    ]


def _number(line: Mapping[str, Any], when: Sequence[str]) -> list[dict[str, str]]:
    last, name = line["points"][-1], measure_name(line["name"])
    course = draw_course(line["points"], len(when), name)
    return [_cell(name), _cell(_value(last)), _cell(when[last["run"]]), _cell("", svg=course)]


def _value(point: Mapping[str, Any]) -> str:
    """The value with its interval, in the digits that the interval deserves."""
    value, low, high = (point.get(key) for key in ("value", "low", "high"))
    if not _finite(value):
        return ""
    if low is None or high is None:
        return format_number(value, point.get("std_error"))
    return f"{format_number(value, high - low)} [{format_interval(low, high, high - low)}]"


def _changes(change: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if change is None:
        return None
    named = {
        key: [pair_name(*pair) for pair in change[key]] for key in ("broken", "mended", "appeared", "gone")
    }
    numbers = sorted(change["numbers"], key=lambda line: not line["changed"])
    shared = change["shared_rows"]
    return named | {
        "numbers": [_number_change(line) for line in numbers],
        "shared_rows": format_count(shared) if shared else "",
    }


def _number_change(line: Mapping[str, Any]) -> list[dict[str, str]]:
    return [
        _cell(measure_name(line["name"])),
        _cell(format_number(line["before"])),
        _cell(format_number(line["after"]), style="broken" if line["changed"] else ""),
        _cell("" if line["p_value"] is None else format_p_value(line["p_value"]) + _paired(line)),
    ]


def _paired(line: Mapping[str, Any]) -> str:
    return " (paired)" if line["paired"] else ""


def draw_course(points: Sequence[Mapping[str, Any]], n_runs: int, title: str) -> str:
    """Values with their bands against the runs; dots are coloured by the answer.

    Examples
    --------
    >>> from calipers.report.history import draw_course
    >>> point = {"run": 0, "value": 0.9, "low": 0.8, "high": 1.0, "answer": "kept"}
    >>> draw_course([point], 1, "coverage").startswith("<svg")
    True
    """
    shown = [point for point in _thinned(points) if _finite(point.get("value"))]
    if not shown:
        return ""
    ends = [point[key] for point in shown for key in ("value", "low", "high") if _finite(point.get(key))]
    y = make_axis(ends).scale(HEIGHT - EDGE, EDGE)
    step = (WIDTH - 2 * EDGE) / max(n_runs - 1, 1)
    at = [(EDGE + step * point["run"], point) for point in shown]
    banded = [(x, p) for x, p in at if _finite(p.get("low")) and _finite(p.get("high"))]
    band = " ".join(
        [f"{x:.1f},{y(p['low']):.1f}" for x, p in banded]
        + [f"{x:.1f},{y(p['high']):.1f}" for x, p in reversed(banded)]
    )
    line = " ".join(f"{x:.1f},{y(p['value']):.1f}" for x, p in at)
    dots = "".join(
        f'<circle class="dot {_COLOURS.get(p.get("answer", ""), "c0")}" cx="{x:.1f}" '
        f'cy="{y(p["value"]):.1f}" r="3.2"/>'
        for x, p in at
    )
    top, bottom = max(ends), min(ends)
    named = "".join(
        f'<text class="small" x="{WIDTH + 2}" y="{y(end) + 4:.1f}">{format_number(end, top - bottom)}</text>'
        for end in dict.fromkeys((top, bottom))
    )
    return (
        f'<svg viewBox="0 0 {WIDTH + LABELS} {HEIGHT}" role="img" '
        f'aria-label="{escape(title, quote=True)} over time" width="{WIDTH + LABELS}" height="{HEIGHT}">'
        f'<polygon class="band c0" points="{band}"/>'
        f'<polyline class="line c0" points="{line}"/>{dots}{named}</svg>'
    )


def _thinned(points: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    if len(points) <= MOST_POINTS:
        return list(points)
    step = math.ceil(len(points) / (MOST_POINTS // 2))
    kept = {*range(0, len(points), step), len(points) - 1}
    turns = [i for i in range(1, len(points)) if points[i].get("answer") != points[i - 1].get("answer")]
    return [points[i] for i in sorted(kept | set(turns[: MOST_POINTS // 2]))]


def _finite(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)
