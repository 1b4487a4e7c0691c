"""Earlier audits of a history in a report: what changed since the last, and where their reports lie."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from calipers.report.measure_names import measure_name
from calipers.results.formatting import format_count, format_number
from calipers.results.promise_table import slice_name

# What a reader is told of a change, in this order.
CHANGES = {
    "broken": "Newly broken",
    "mended": "No longer broken",
    "appeared": "Asked for the first time",
    "gone": "Not asked any more",
}
NOTHING = "every answer is as it was, and no number has changed beyond its error bar"


def earlier_view(history: Mapping[str, Any] | None, place: Path | str | None) -> dict[str, Any] | None:
    """What the page shows of earlier audits.

    Parameters
    ----------
    history : mapping or None
        As in the document of an audit.
    place : path or None
        Where the page will lie; without it there are no links.

    Returns
    -------
    dict or None
        A headline, the changes by kind, a line per audit with its link, and how many are not listed.
    """
    if not history:
        return None
    left_out, first = history["count"] - len(history["earlier"]), moment(history["first"])
    more = f"{left_out} more since {first}: calipers history FOLDER shows all of them."
    return {
        "headline": headline(history),
        "changes": _changes(history["change"]),
        "earlier": [_line(run, history["folder"], place) for run in history["earlier"]],
        "more": more if left_out else "",
    }


def headline(history: Mapping[str, Any]) -> str:
    """Since when, and how many promises are newly broken or no longer broken, in one sentence.

    Examples
    --------
    >>> change = {"broken": [("coverage", "all rows")], "mended": [], "numbers": []}
    >>> headline({"earlier": [{"at": "2026-01-02T08:00:00+00:00"}], "change": change})
    'Since the audit of 2026-01-02 08:00: 1 newly broken, 0 no longer broken.'
    """
    change, last = history["change"], moment(history["earlier"][0]["at"])
    counts = [f"{len(change[kind])} {CHANGES[kind].lower()}" for kind in ("broken", "mended")]
    if not (change["broken"] or change["mended"] or change["numbers"]):
        return f"Since the audit of {last}: {NOTHING}."
    numbers = f", {len(change['numbers'])} numbers changed" if change["numbers"] else ""
    return f"Since the audit of {last}: {', '.join(counts)}{numbers}."


def moment(at: str) -> str:
    """An ISO time to the minute.

    Examples
    --------
    >>> moment("2026-01-02T08:00:59+00:00")
    '2026-01-02 08:00'
    """
    return at[:16].replace("T", " ")


def _changes(change: Mapping[str, Any]) -> list[tuple[str, list[str]]]:
    told = [
        (words, [pair_name(*pair) for pair in change[kind]])
        for kind, words in CHANGES.items()
        if change[kind]
    ]
    numbers = [
        f"{measure_name(line['name'])} from {format_number(line['before'])} to {format_number(line['after'])}"
        for line in change["numbers"]
    ]
    told += [("Numbers changed", numbers)] if numbers else []
    return told or [("Changed", [NOTHING])]


def pair_name(promise: str, part: str) -> str:
    """A promise and its slice as one name.

    Examples
    --------
    >>> pair_name("probability of class 1", "score"), pair_name("CAL101", "")
    ('probability of class 1 · stated probability', 'CAL101')
    """
    return " · ".join(filter(None, (promise, slice_name(part))))


def _line(run: Mapping[str, Any], folder: str, place: Path | str | None) -> dict[str, Any]:
    rows = run["rows"]
    cells = (
        moment(run["at"]),
        run["source"],
        format_count(rows) if isinstance(rows, int) else str(rows),
        str(run["broken"]),
        run["verdict"],
    )
    return {"cells": cells, "link": link_to(run["report"], folder, place)}


def link_to(report: str | None, folder: str, place: Path | str | None) -> str:
    """The address of a report, relative to the page; every letter that could mean more is encoded."""
    if report is None or place is None or not folder:
        return ""
    try:
        way = os.path.relpath(Path(folder).resolve() / report, Path(place).resolve().parent)
    except ValueError:  # another drive
        return ""
    return quote(Path(way).as_posix())


def earlier_sentences(history: Mapping[str, Any] | None) -> Sequence[str]:
    """The headline and what is newly broken or no longer broken, for a terminal or a summary."""
    if not history:
        return []
    kinds = [
        (words, lines) for words, lines in _changes(history["change"]) if words in list(CHANGES.values())[:2]
    ]
    return [headline(history), *(f"{words}: {'; '.join(lines)}." for words, lines in kinds)]
