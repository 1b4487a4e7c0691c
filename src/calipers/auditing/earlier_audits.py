"""What an audit follows: the earlier audits of its history, and what changed since the last of them."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl

from calipers.auditing.history import Run, read_history
from calipers.auditing.history_changes import Change
from calipers.exceptions import InputError
from calipers.report import render_json

# Earlier audits that a report lists; `calipers history` shows all of them.
MOST_LISTED = 6


def earlier_audits(
    document: Mapping[str, Any], folder: Path | str, rows: pl.DataFrame | None = None
) -> dict[str, Any] | None:
    """The audits that a folder holds before this one, the newest first, as plain values.

    Parameters
    ----------
    document : mapping
        The audit, as made by `Audit.to_dict`.
    folder : path
        Holds the history; it need not exist yet.
    rows : table, optional
        What its rows contributed; audits of the same rows are compared in pairs.

    Returns
    -------
    dict or None
        ``folder``, ``count``, ``first`` (when the oldest was made), ``earlier`` (at most 6 runs) and
        ``change``; None where there is no earlier audit.

    Examples
    --------
    >>> from calipers.auditing.earlier_audits import earlier_audits
    >>> earlier_audits({"findings": [], "estimates": {}}, "a folder that does not exist") is None
    True
    """
    place = Path(folder)
    try:
        history = read_history(place)
    except InputError:  # the first audit of a history
        return None
    current = Run(dt.datetime.now(dt.UTC), "", json.loads(render_json(document, indent=None)), rows=rows)
    newest = history.runs[::-1]
    return {
        "folder": str(folder),
        "count": len(newest),
        "first": history.runs[0].at.isoformat(),
        "earlier": [_line(run) for run in newest[:MOST_LISTED]],
        "change": _told(history.followed_by(current)),
    }


def _line(run: Run) -> dict[str, Any]:
    about, answers = run.document["about"], run.answers().values()
    return {
        "at": run.at.isoformat(),
        "source": str(about["source"] or about.get("name") or run.file),
        "rows": about["rows"],
        "broken": sum(point["answer"] == "broken" for point in answers),
        "verdict": str(run.document["verdict"]["sentence"]),
        "report": run.report,
    }


def _told(change: Change) -> dict[str, Any]:
    """The changes that a reader is told: answers, and numbers beyond their noise."""
    told = change.to_dict()
    return told | {"numbers": [number for number in told["numbers"] if number["changed"]]}
