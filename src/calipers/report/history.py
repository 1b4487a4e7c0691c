"""The history of a model's audits as one self-contained page."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from calipers.report.page import asset, template
from calipers.report.svg_axes import make_axis
from calipers.results.formatting import format_p_value

WIDTH, HEIGHT, EDGE = 300, 56, 5
# Runs drawn one by one; of more, evenly spaced ones and every change of the answer.
MOST_POINTS = 240
_COLOURS = {"broken": "bad", "kept": "c3", "mostly kept": "c3", "cannot tell": "c2"}


def render_history(document: Mapping[str, Any]) -> str:
    """One page: thresholds kept or missed, every promise over time, numbers with bands, what changed last.

    Parameters
    ----------
    document : mapping
        As made by `calipers.auditing.history.AuditHistory.to_dict`.

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
            promises=[_promise(line, when) for line in document["promises"]],
            numbers=[_number(line, when) for line in document["numbers"] if _is_worth(line, runs)],
            changes=_changes(document["change"]),
            runs=[_run(run, at) for run, at in zip(runs, when, strict=True)][::-1],
        )
    )


def _is_worth(line: Mapping[str, Any], runs: Sequence[Any]) -> bool:
    """Numbers seen once among several runs have no course to draw."""
    return len(line["points"]) > 1 or len(runs) == 1


def _run(run: Mapping[str, Any], at: str) -> dict[str, Any]:
    threshold = {True: "missed", False: "kept", None: "not stated"}[run["missed"]]
    return {
        "at": at,
        "source": run["source"] or run["file"],
        "rows": run["rows"],
        "threshold": threshold + (f" ({run['fail_on']})" if run["fail_on"] else ""),
        "is_missed": bool(run["missed"]),
        "faults": ", ".join(f"{f['code']} {f['severity']}" for f in run["faults"]) or "none",
    }


def _promise(line: Mapping[str, Any], when: Sequence[str]) -> dict[str, Any]:
    first, since = line["first_broken"], line["broken_since"]
    name = " ".join(filter(None, (line["promise"], line["title"])))
    return {
        "name": name,
        "slice": line["slice"],
        "now": line["now"],
        "kind": line["now"].replace(" ", "-"),
        "value": _value(line["points"][-1]),
        "first": "never" if first is None else when[first],
        "since": "" if since is None else when[since],
        "times": f"{line['times_broken']} of {len(line['points'])}",
        "picture": draw_course(line["points"], len(when), name),
    }


def _number(line: Mapping[str, Any], when: Sequence[str]) -> dict[str, Any]:
    last = line["points"][-1]
    return {
        "name": line["name"],
        "value": _value(last),
        "at": when[last["run"]],
        "picture": draw_course(line["points"], len(when), line["name"]),
    }


def _value(point: Mapping[str, Any]) -> str:
    value, low, high = (point.get(key) for key in ("value", "low", "high"))
    if value is None:
        return ""
    ends = "" if low is None or high is None else f" [{low:.4g}, {high:.4g}]"
    return f"{value:.4g}{ends}"


def _changes(change: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if change is None:
        return None
    named = {
        key: [" ".join(filter(None, pair)) for pair in change[key]]
        for key in ("broken", "mended", "appeared", "gone")
    }
    numbers = [
        {
            "name": line["name"],
            "before": f"{line['before']:.4g}",
            "after": f"{line['after']:.4g}",
            "p": "" if line["p_value"] is None else format_p_value(line["p_value"]),
            "changed": line["changed"],
        }
        for line in change["numbers"]
    ]
    return named | {"numbers": sorted(numbers, key=lambda line: not line["changed"])}


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
        f'cy="{y(p["value"]):.1f}" r="2.4"/>'
        for x, p in at
    )
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title, quote=True)} over time" '
        f'width="{WIDTH}" height="{HEIGHT}"><polygon class="band c0" points="{band}"/>'
        f'<polyline class="line c0" points="{line}"/>{dots}</svg>'
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
