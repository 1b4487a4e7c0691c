"""What a fault is about in its picture: the row of a group, or the time since which things are different."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calipers.results import Finding


def focused(picture: Mapping[str, Any], findings: Sequence[Finding]) -> dict[str, Any]:
    """The picture with its ``focus``, and the interval that its fault names first.

    Parameters
    ----------
    picture : mapping
        A picture of an audit.
    findings : sequence of Finding
        Of the same audit.

    Returns
    -------
    dict
        The picture, as it was where no fault names a place in it.
    """
    for finding in findings:
        names = finding.details.get("pictures") or ()
        if finding.outcome != "fault" or picture["name"] not in names:
            continue
        if picture["kind"] == "intervals":
            return _first_named(picture, finding.where)
        if (focus := _change(picture["curves"][0], finding)) is not None:
            return dict(picture) | {"focus": focus}
    return dict(picture)


def _first_named(picture: Mapping[str, Any], where: str) -> dict[str, Any]:
    """The picture with the row of the named part marked, and first where rows have no order of their own."""
    labels, curve = list(picture["labels"]), picture["curves"][0]
    kind = curve["x_label"]
    at = next((i for i, label in enumerate(labels) if where in (label, f"{kind} {label}")), None)
    if at is None:
        return dict(picture)
    marked = dict(picture) | {"focus": {"label": labels[at]}}
    if kind != "group":
        return marked
    order = [at, *(i for i in range(len(labels)) if i != at)]
    moved = {key: _taken(curve[key], order) for key in ("y", "low", "high", "null_low", "null_high")}
    details = {key: _taken(v, order) for key, v in curve["details"].items()}
    return marked | {
        "labels": [labels[i] for i in order],
        "curves": [dict(curve) | moved | {"details": details}],
    }


def _taken(values: Any, order: Sequence[int]) -> Any:
    """A column in another order; what is no column of the rows as it is."""
    is_column = isinstance(values, (list, tuple, np.ndarray)) and len(values) == len(order)
    return np.asarray(values)[list(order)] if is_column else values


def _change(curve: Mapping[str, Any], finding: Finding) -> dict[str, Any] | None:
    """Since when, and until when, on the grid of the curve."""
    evidence = {} if finding.evidence is None else finding.evidence.details
    # The date that is told, which may be that of another fault that explains this one.
    since, until = finding.where.removeprefix("since "), evidence.get("until")
    if since == finding.where or curve["x_label"] != "time":
        return None
    dated = bool(curve["details"].get("dates"))
    words = finding.where if until is None else "different between the lines"
    return {
        "since": _place(since, dated),
        "until": None if until is None else _place(until, dated),
        "words": words,
    }


def _place(moment: Any, dated: bool) -> float:
    """A time on the grid of a curve: seconds since 1970 for dates."""
    if not dated:
        return float(moment)
    return float(np.datetime64(str(moment).replace(" ", "T"), "us").astype(np.int64)) / 1e6
