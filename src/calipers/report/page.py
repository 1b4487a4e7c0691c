"""The document as one HTML page: its style, its script and its pictures are inside it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from calipers.report.drawing import draw
from calipers.report.words import (
    MARKS,
    candidate_row,
    change_row,
    estimate_row,
    repair_outcome,
    title_of,
)
from calipers.results import Estimate
from calipers.results.formatting import format_number
from calipers.results.serialization import encode

# What the names of the numbers mean, per question; the methods say how each was made.
LEGENDS = {
    "everywhere": "ert: excess risk of the target coverage, what a classifier that sees the features gains "
    "over the promise; l1 is the mean distance of its coverage from the promise, l2 the mean squared one, "
    "over and under their two sides. 0 is perfect.",
    "narrow": "Efficiency S, N, U, F, M and E, and OU, OF, OM and OE, which know the true label: the "
    "criteria of Vovk, Fedorova, Nouretdinov and Gammerman (2016); smaller is better.",
    "adaptive": "t_cv: largest deviation of coverage from the promise over bins along ease. t_ss: how well "
    "sizes follow hardness over the bins, 1 is perfect. sscv: largest deviation over set sizes. deficit and "
    "excess: labels that sets lack or have too many, on average.",
}
# Points of a curve kept in the page; the JSON has all of them.
POINTS = 240


def render_html(document: Mapping[str, Any], *, embedded: bool = False) -> str:
    """The page, or with ``embedded`` a fragment for a notebook.

    Parameters
    ----------
    document : mapping
        As made by `audit_document`.
    embedded : bool
        Put the page into a frame of its own, so that its style and script cannot touch the notebook's.

    Returns
    -------
    str
        HTML without a single address outside itself.

    Examples
    --------
    >>> from calipers.report import audit_document, render_html
    >>> from calipers.results import EstimateTable
    >>> empty = audit_document(about={"rows": 3, "task": "regression", "alphas": [0.1]}, questions=[],
    ...                        findings=[], estimates=EstimateTable([]), pictures=[])
    >>> render_html(empty).startswith("<!doctype html>")
    True
    """
    if embedded:
        return _frame(render_html(document))
    pictures = [_picture(picture) for picture in document["pictures"]]
    rows = [estimate_row(name, fields) for name, fields in document["estimates"].items()]
    return str(
        template("report.html").render(
            document=document,
            title=title_of(document),
            marks=MARKS,
            pictures=pictures,
            findings=[dict(f) | {"number": _sentence(f["evidence"])} for f in document["findings"]],
            rows=rows,
            numbers=_numbers_by_question(document, rows),
            legends=LEGENDS,
            methods=_methods(document),
            repair=document.get("repair"),
            changes=[change_row(c) for c in (document.get("repair") or {}).get("changes", ())],
            candidates=[candidate_row(c) for c in (document.get("repair") or {}).get("candidates", ())],
            outcome=repair_outcome(document["repair"]) if document.get("repair") else "",
            style=asset("report.css"),
            script=asset("report.js"),
            data=_script_safe(
                {"pictures": {p["name"]: p["table"] for p in pictures}, "slider": _slider(document)}
            ),
        )
    )


def _numbers_by_question(
    document: Mapping[str, Any], rows: list[tuple[str, str, str, str, str]]
) -> dict[str, list[tuple[str, str, str, str, str]]]:
    """The lines of the table of numbers that belong to each question."""
    return {
        question["question"]: [row for row in rows if row[0] in set(question.get("numbers", ()))]
        for question in document["questions"]
    }


def _frame(page: str) -> str:
    from html import escape

    return (
        f'<iframe srcdoc="{escape(page, quote=True)}" sandbox="allow-scripts" title="Calipers audit" '
        'style="width:100%;height:720px;border:1px solid #ccd3db;border-radius:6px"></iframe>'
    )


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader

    return Environment(loader=FunctionLoader(asset), autoescape=True, trim_blocks=True, lstrip_blocks=True)


def template(name: str) -> Any:
    """A template of this room by name."""
    return _environment().get_template(name)


def asset(name: str) -> str:
    """The text of a template, style or script of this room."""
    return files("calipers.report").joinpath("templates", name).read_text(encoding="utf-8")


def _sentence(evidence: Mapping[str, Any] | None) -> str:
    return "" if evidence is None else str(Estimate(**evidence))


def _script_safe(value: Any) -> str:
    """JSON that cannot end the script element it sits in."""
    text = json.dumps(encode(value), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _picture(picture: Mapping[str, Any]) -> dict[str, Any]:
    thin = dict(picture) | {"curves": [_thinned(curve) for curve in picture["curves"]]}
    return {
        "name": picture["name"],
        "question": picture["question"],
        "title": picture["title"],
        "caption": picture["caption"],
        "methods": list(dict.fromkeys(curve["method"] for curve in picture["curves"] if curve["method"])),
        "svg": draw(thin),
        "table": _table(thin),
        "slides": picture["name"] == "coverage_by_alpha",
    }


def _thinned(curve: Mapping[str, Any]) -> dict[str, Any]:
    n = len(curve["x"])
    if n <= POINTS:
        return dict(curve)
    keep = sorted({round(i * (n - 1) / (POINTS - 1)) for i in range(POINTS)})
    vectors = ("x", "y", "low", "high", "null_low", "null_high")
    return dict(curve) | {
        key: None if curve[key] is None else [curve[key][i] for i in keep] for key in vectors
    }


def _table(picture: Mapping[str, Any]) -> dict[str, Any]:
    """Header and rows of the picture's table, numbers as words."""
    header, body = ["curve"], []
    columns = [
        key
        for key in ("x", "y", "low", "high", "null_low", "null_high")
        if any(curve[key] is not None for curve in picture["curves"])
    ]
    first = picture["curves"][0]
    names = {"x": first["x_label"] or "x", "y": first["y_label"] or "y", "null_low": "healthy from",
             "null_high": "healthy to"}  # fmt: skip
    header += [names.get(key, key) for key in columns]
    for curve in picture["curves"]:
        for i in range(len(curve["x"])):
            cells = [format_number(float(curve[key][i])) if curve[key] is not None else "" for key in columns]
            if picture["labels"]:
                cells[0] = picture["labels"][i]
            body.append([curve["name"], *cells])
    return {"header": header, "rows": body}


def _slider(document: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What the slider over alpha says at each of its stops."""
    for picture in document["pictures"]:
        if picture["name"] == "coverage_by_alpha":
            curve, asked = picture["curves"][0], document["about"]["alphas"][0]
            return [_stop(curve, i, asked) for i in range(len(curve["x"]))]
    return []


def _stop(curve: Mapping[str, Any], i: int, asked: float) -> dict[str, Any]:
    alpha, value = float(curve["x"][i]), float(curve["y"][i])
    low, high = float(curve["null_low"][i]), float(curve["null_high"][i])
    inside = low <= value <= high
    size = curve["details"].get("size")
    words = (
        f"alpha {alpha:g}: promised {100 * (1 - alpha):.4g} %, covered {100 * value:.1f} %; "
        f"a healthy predictor reads {100 * low:.1f} to {100 * high:.1f} %"
    )
    if size is not None:
        words += f"; mean size {format_number(float(size[i]))}"
    return {"words": words + ".", "inside": inside, "start": abs(alpha - asked) < 1e-9}


def _methods(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every method named by an estimate, with the measures it made."""
    made: dict[str, list[str]] = {}
    for name, fields in document["estimates"].items():
        if fields["method"]:
            made.setdefault(fields["method"], []).append(name)
    return [(", ".join(names), method) for method, names in made.items()]
