"""Several audits side by side, whatever rows they saw: verdicts, answers and shared numbers; no test."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from calipers.report.measure_names import measure_name
from calipers.report.page import asset, template
from calipers.report.text_formats import MARKS, estimate_row
from calipers.results.formatting import format_count

_FIRST = ("coverage", "mean size", "mean width", "calibration error")


def render_side_by_side(
    documents: Mapping[str, Mapping[str, Any]], *, reason: str = "", links: Mapping[str, str] | None = None
) -> str:
    """One self-contained page with a column per audit.

    Parameters
    ----------
    documents : mapping
        Name -> document of `audit_document`.
    reason : str
        Why they are not compared by tests; shown at the top.
    links : mapping, optional
        Name -> address of its report.

    Returns
    -------
    str
        HTML without a single address outside itself, but for ``links``.

    Examples
    --------
    >>> from calipers.report import audit_document
    >>> from calipers.report.side_by_side import render_side_by_side
    >>> from calipers.results import EstimateTable
    >>> one = audit_document(about={"rows": 3, "task": "regression", "alphas": [0.1]}, questions=[],
    ...                      findings=[], estimates=EstimateTable([]), pictures=[])
    >>> render_side_by_side({"a": one, "b": one}).count('<th scope="col">')
    3
    """
    made = list(documents.values())
    lines = [("rows", [format_count(d["about"]["rows"]) for d in made])]
    lines.append(("alpha", [", ".join(f"{a:g}" for a in d["about"]["alphas"]) for d in made]))
    lines.append(("verdict", [d["verdict"]["sentence"] for d in made]))
    titles = dict.fromkeys(q["title"] for d in made for q in d["questions"])
    lines += [(title, [_answer(d, title) for d in made]) for title in titles]
    counts = Counter(name for d in made for name in d["estimates"])
    # What all have, and the numbers that everybody asks for first where any has them.
    kept = [name for name, n in counts.items() if n == len(made) or name.startswith(_FIRST)]
    kept.sort(key=lambda name: not name.startswith(_FIRST))
    lines += [(measure_name(name), [_number(d, name) for d in made]) for name in kept]
    return str(
        template("side_by_side.html").render(
            names=list(documents), lines=lines, reason=reason, links=links or {}, style=asset("report.css")
        )
    )


def _answer(document: Mapping[str, Any], title: str) -> str:
    found = next((q for q in document["questions"] if q["title"] == title), None)
    return "" if found is None else f"{MARKS[found['answer']]} {found['label']}"


def _number(document: Mapping[str, Any], name: str) -> str:
    if name not in document["estimates"]:
        return ""
    _, value, interval, _, _ = estimate_row(name, document["estimates"][name])
    return f"{value} ({interval})" if interval else value
