"""The document as one HTML page: its style, its script and its pictures are inside it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from calipers.report.cards import (
    fault_cards,
    fine_checks,
    measured_checks,
    one_line_each,
    prose,
    what_to_add,
)
from calipers.report.document import TOO_FEW_ROWS
from calipers.report.drawing import draw, picture_keys
from calipers.report.earlier_reports import earlier_view
from calipers.report.measure_names import measure_name
from calipers.report.svg_axes import moment_of
from calipers.report.text_formats import (
    MARKS,
    candidate_tables,
    change_row,
    estimate_row,
    next_command,
    repair_codes,
    repair_outcome,
    taken_for,
    title_of,
)
from calipers.results import PromiseTable
from calipers.results.formatting import format_count, format_number, format_percent, format_rows, p_in_words
from calipers.results.promise_table import ANSWER_MARKS, NOT_QUITE, slice_name
from calipers.results.serialization import encode

# What the names of the numbers mean, by how one of them begins; the methods say how each was made.
LEGENDS = {
    "ert": "ERT, excess risk of the target coverage: what a classifier that sees the features gains "
    "over the promise, as the mean distance of its coverage from the promise or as the mean squared one; 0 "
    "is perfect.",
    "efficiency": "Efficiency S, N, U, F, M and E, and OU, OF, OM and OE, which know the true label: the "
    "criteria of Vovk, Nouretdinov, Fedorova, Petej and Gammerman (2017); smaller is better.",
    "t_cv": "T-CV: largest deviation of coverage from the promise over bins along ease. T-SS: how well "
    "sizes follow hardness over the bins, 1 is perfect. SSCV: largest deviation over set sizes. Deficit and "
    "excess: labels that sets lack or have too many, on average.",
}
# Points of a curve kept in the page; the JSON has all of them.
POINTS = 240
_VECTORS = ("x", "y", "low", "high", "null_low", "null_high")


def render_html(
    document: Mapping[str, Any], *, embedded: bool = False, place: Path | str | None = None
) -> str:
    """The page, or with ``embedded`` a fragment for a notebook.

    Parameters
    ----------
    document : mapping
        As made by `audit_document`.
    embedded : bool
        Put the page into a frame of its own, so that its style and script cannot touch the notebook's.
    place : path, optional
        Where the page will lie: links to the reports of earlier audits start from there.

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
        return framed(render_html(document))
    pictures = [_picture(picture) for picture in document["pictures"]]
    cards = fault_cards(document, pictures)
    shown = {card["picture"]["name"] for card in cards if card["picture"]}
    rows, grid = _number_rows(document), PromiseTable.of(document.get("promises") or ())
    return str(
        template("report.html").render(
            document=document,
            title=title_of(document),
            about=_about(document),
            history=earlier_view(document.get("history"), place),
            taken=taken_for(document["about"]),
            marks=MARKS,
            grid=grid,
            asked_promises=[name for name in grid.promises if _is_asked(grid, name)],
            untold=document["verdict"]["sentence"] == TOO_FEW_ROWS,
            answer_marks=ANSWER_MARKS,
            severities={"broken": "issue", NOT_QUITE: "warning", "mostly kept": "note"},
            states_shown={grid.cell(name, part).shown for name in grid.promises for part in grid.slices},
            cards=cards,
            fault_anchors={card["code"]: card["anchor"] for own in cards for card in (own, *own["parts"])},
            open_checks=one_line_each(document, "cannot_tell"),
            clean_checks=fine_checks(document),
            measured_checks=measured_checks(document),
            repair_codes=repair_codes(document["findings"]),
            repair_command=next_command("repair", document["about"]),
            remedies=what_to_add(document),
            other_pictures=[picture for picture in pictures if picture["name"] not in shown],
            numbers=_numbers_by_question(document, rows),
            level=format_percent(document["about"].get("confidence", 0.95)),
            methods=_methods(document),
            repair=document.get("repair"),
            changes=[change_row(c) for c in (document.get("repair") or {}).get("changes", ())],
            candidates=candidate_tables((document.get("repair") or {}).get("candidates", ())),
            stage=_stage(document.get("repair")),
            outcome=repair_outcome(document["repair"]) if document.get("repair") else "",
            style=asset("report.css"),
            script=asset("report.js"),
            data=_script_safe(
                {"pictures": {p["name"]: p["table"] for p in pictures}, "slider": _slider(document)}
            ),
        )
    )


def _is_asked(grid: PromiseTable, promise: str) -> bool:
    """Whether anything was asked about a promise."""
    return any(grid.cell(promise, part).answer != "not asked" for part in grid.slices)


def _stage(repair: Mapping[str, Any] | None) -> str:
    """Whether the faults of the page are those before or after the repair, where there is one."""
    if not repair or not repair["steps"]:
        return ""
    return f" {repair.get('faults_shown', 'after')} the repair"


def _about(document: Mapping[str, Any]) -> list[str]:
    """What was audited, in a few facts."""
    about = document["about"]
    facts = [format_rows(about["rows"]), str(about["task"])]
    facts.append("alpha " + ", ".join(f"{alpha:g}" for alpha in about["alphas"]))
    if about.get("n_calibration"):
        facts.append(f"conformalised on {format_rows(about['n_calibration'])}")
    if about.get("sample_rows"):
        facts.append(f"models and pictures from {format_count(about['sample_rows'])} of them")
    if about.get("source") and about["source"] != about.get("name"):
        facts.append(f"from {about['source']}")
    return facts


def _number_rows(document: Mapping[str, Any]) -> dict[str, tuple[str, str, str, str, str]]:
    """Short name -> cells of its row."""
    usual = document["about"].get("confidence", 0.95)
    rows = {}
    for name, fields in document["estimates"].items():
        rows[name] = (measure_name(name), *estimate_row(name, fields, usual=usual)[1:])
    return rows


def _numbers_by_question(
    document: Mapping[str, Any], rows: Mapping[str, tuple[str, str, str, str, str]]
) -> list[tuple[Mapping[str, Any], list[tuple[str, str, str, str, str]]]]:
    """The lines of the table of numbers that belong to each question, and those that belong to none."""
    left = dict(rows)
    made: list[tuple[Mapping[str, Any], list[tuple[str, str, str, str, str]]]] = []
    for question in document["questions"]:
        names = [name for name in dict.fromkeys(question.get("numbers", ())) if name in left]
        said = [words for key, words in LEGENDS.items() if any(name.startswith(key) for name in names)]
        if names:
            made.append((dict(question) | {"legend": " ".join(said)}, [left.pop(name) for name in names]))
    return [*made, ({"title": "Other numbers", "legend": ""}, list(left.values()))] if left else made


def framed(page: str, *, title: str = "Calipers audit") -> str:
    """A page inside a notebook, in a frame of its own."""
    from html import escape

    return (
        f'<iframe srcdoc="{escape(page, quote=True)}" sandbox="allow-scripts" title="{escape(title)}" '
        'style="width:100%;height:720px;border:1px solid #ccd3db;border-radius:6px"></iframe>'
    )


@cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader

    made = Environment(loader=FunctionLoader(asset), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    made.filters["prose"] = prose
    made.filters["slice_name"] = slice_name
    made.filters["p_in_words"] = p_in_words
    return made


def template(name: str) -> Any:
    """A template of this room by name."""
    return _environment().get_template(name)


def asset(name: str) -> str:
    """The text of a template, style or script of this room."""
    return files("calipers.report").joinpath("templates", name).read_text(encoding="utf-8")


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
        "legend": picture_keys(thin),
        "table": _table(thin),
        "slides": picture["name"] == "coverage_by_alpha",
    }


def _thinned(curve: Mapping[str, Any]) -> dict[str, Any]:
    n = len(curve["x"])
    if n <= POINTS:
        return dict(curve)
    keep = sorted({round(i * (n - 1) / (POINTS - 1)) for i in range(POINTS)})
    mass = curve["details"].get("mass")
    return (
        dict(curve)
        | {key: None if curve[key] is None else [curve[key][i] for i in keep] for key in _VECTORS}
        | {"details": {} if mass is None else {"mass": [mass[i] for i in keep]}}
    )


def _table(picture: Mapping[str, Any]) -> dict[str, Any]:
    """Header and rows of the picture's table, numbers as words."""
    columns = [key for key in _VECTORS if any(curve[key] is not None for curve in picture["curves"])]
    first = picture["curves"][0]
    names = {"x": first["x_label"] or "x", "y": first["y_label"] or "y", "null_low": "valid from",
             "null_high": "valid to"}  # fmt: skip
    several = len(picture["curves"]) > 1
    extra = [key for key in ("value", "rows") if len(first["details"].get(key, ())) == len(first["x"])]
    header = [*(["curve"] if several else []), *(names.get(key, key) for key in columns), *extra]
    body = [
        [*([curve["name"]] if several else []), *_cells(picture, curve, i, columns, extra)]
        for curve in picture["curves"]
        for i in range(len(curve["x"]))
    ]
    return {"header": header, "rows": body}


def _cells(
    picture: Mapping[str, Any], curve: Mapping[str, Any], i: int, columns: Sequence[str], extra: Sequence[str]
) -> list[str]:
    cells = ["" if curve[key] is None else format_number(float(curve[key][i])) for key in columns]
    if picture["labels"]:
        cells[0] = picture["labels"][i]
    elif curve["details"].get("dates"):
        cells[0] = moment_of(float(curve["x"][i])).strftime("%Y-%m-%d %H:%M").removesuffix(" 00:00")
    for key in extra:
        column, form = curve["details"].get(key, ()), format_count if key == "rows" else format_number
        cells.append(form(float(column[i])) if len(column) else "")
    return cells


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
        f"a valid predictor reads {100 * low:.1f} to {100 * high:.1f} %"
    )
    if size is not None:
        words += f"; mean size {format_number(float(size[i]))}"
    return {"words": prose(words + "."), "inside": inside, "start": abs(alpha - asked) < 1e-9}


def _methods(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Every method named by an estimate, with the measures it made."""
    made: dict[str, list[str]] = {}
    for name, fields in document["estimates"].items():
        if fields["method"]:
            made.setdefault(fields["method"], []).append(measure_name(name))
    return [(", ".join(names), method) for method, names in made.items()]
