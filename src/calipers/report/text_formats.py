"""The document as Markdown for a pull request, as text for a terminal, as JSON for machines."""

from __future__ import annotations

import json
import re
import shlex
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from calipers.report.earlier_reports import earlier_sentences
from calipers.report.markdown_text import fenced, markdown_cell, markdown_text
from calipers.results import Estimate
from calipers.results.formatting import (
    format_count,
    format_end,
    format_low,
    format_number,
    format_p_value,
    format_percent,
    format_rows,
)
from calipers.results.serialization import encode
from calipers.results.terminal_safe import one_line, printable

MARKS = {"no": "✗", "doubtful": "!", "cannot tell": "?", "mostly": "~", "yes": "✓", "not asked": "–"}
# Blanks at which no line may be broken: before a percent sign, around the sign of a p-value.
UNBROKEN = re.compile(r"(?<=\d) (?=%)|(?<=\bp) (?=[=<])|(?<=\bp [=<]) ")


def render_json(document: Mapping[str, Any], *, indent: int | None = 2) -> str:
    """Strict JSON; nothing is rounded, NaN and infinities are marked objects.

    Parameters
    ----------
    document : mapping
        As made by `audit_document`.
    indent : int or None
        Blanks per level; None for one line.

    Returns
    -------
    str
        JSON.

    Examples
    --------
    >>> from calipers.report import render_json
    >>> render_json({"value": float("inf")}, indent=None)
    '{"value": {"$float": "inf"}}'
    """
    return json.dumps(encode(document), indent=indent, allow_nan=False, ensure_ascii=False)


def render_markdown(document: Mapping[str, Any]) -> str:
    """A summary with the six answers, the faults with their repairs, and the numbers.

    Parameters
    ----------
    document : mapping
        As made by `audit_document`.

    Returns
    -------
    str
        Markdown, with folded parts as GitHub shows them.

    Examples
    --------
    >>> from calipers.report import audit_document, render_markdown
    >>> from calipers.results import EstimateTable
    >>> empty = audit_document(about={"rows": 3, "task": "regression", "alphas": [0.1]}, questions=[],
    ...                        findings=[], estimates=EstimateTable([]), pictures=[])
    >>> render_markdown(empty).splitlines()[0]
    '## Calipers audit'
    """
    blocks = [
        f"## {markdown_text(title_of(document))}",
        "\n".join(f"- {markdown_text(line)}" for line in taken_for(document["about"])),
        f"**{markdown_text(document['verdict']['sentence'])}** {_about(document)}",
        markdown_text(" ".join(earlier_sentences(document.get("history")))),
        _markdown_answers(document),
        *(_markdown_fault(document, finding) for finding in told_faults(document["findings"])),
        _markdown_repair(document),
        *_markdown_repairs(document),
        _markdown_estimates(document),
    ]
    return "\n\n".join(block for block in blocks if block) + "\n"


def title_of(document: Mapping[str, Any]) -> str:
    """Calipers audit, with the name of the predictor or its file."""
    about = document["about"]
    named = about.get("name") or about.get("source")
    return f"Calipers audit of {named}" if named else "Calipers audit"


def _about(document: Mapping[str, Any]) -> str:
    about = document["about"]
    levels = ", ".join(f"{alpha:g}" for alpha in about.get("alphas", []))
    calibrated = about.get("n_calibration")
    luck = "" if calibrated is None else f", conformalised on {format_rows(calibrated)}"
    return f"{format_rows(about['rows'])}, {about.get('task')}, alpha {levels}{luck}."


def taken_for(about: Mapping[str, Any]) -> list[str]:
    """What was taken for what: columns by role, classes, promises, level and seed, a line each.

    Only for rows that were read from files; arrays were named by the caller.

    Examples
    --------
    >>> taken_for({"columns": {"y": "outcome", "lo": "lower", "a": "feature", "b": "feature"}})
    ['outcome: y; lower: lo; features: a, b']
    """
    by_role: dict[str, list[str]] = {}
    columns = about.get("columns") or {}
    kinds = [role.partition(" of class ")[0] for role in columns.values() if " of class " in role]
    for column, role in columns.items():
        kind, of_class, _ = role.partition(" of class ")
        several = of_class and kinds.count(kind) > 1
        by_role.setdefault(f"{kind} of {kinds.count(kind)} classes" if several else role, []).append(column)
    if not by_role:
        return []
    lines = ["; ".join(f"{_plural(role, names)}: {_some(names)}" for role, names in by_role.items())]
    if about.get("classes"):
        lines.append(f"classes: {_some(about['classes'])}")
    if about.get("promises"):
        lines.append(f"promised: {_some(about['promises'], 4)}")
    if about.get("alphas"):
        seed = "" if about.get("seed") is None else f"; seed {about['seed']}"
        lines.append("alpha " + ", ".join(f"{alpha:g}" for alpha in about["alphas"]) + seed)
    return lines


def _plural(role: str, names: Sequence[str]) -> str:
    return f"{role}s" if len(names) > 1 and role in {"feature", "group"} else role


def _some(names: Sequence[Any], shown: int = 12) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - shown} more" if len(names) > shown else ""
    return ", ".join(str(name) for name in names[:shown]) + more


def _markdown_answers(document: Mapping[str, Any]) -> str:
    if not document["questions"]:
        return ""
    lines = ["| question | answer | |", "|---|---|---|"]
    for answer in document["questions"]:
        mark = MARKS[answer["answer"]]
        lines.append(
            f"| {answer['title']} | {mark} {answer['label']} | {markdown_cell(answer['sentence'])} |"
        )
    return "\n".join(lines)


def change_row(change: Mapping[str, Any]) -> tuple[str, str, str, str, str]:
    """Measure, before, after, difference with its interval, and the verdict."""
    d = change["difference"]
    spread = None if d["low"] is None or d["high"] is None else d["high"] - d["low"]
    shown = format_number(d["value"], spread)
    interval = "" if spread is None else f" [{interval_words(d['low'], d['high'], spread)}]"
    ends = (format_number(change[key]["value"], spread) for key in ("before", "after"))
    return (change["measure"], *ends, shown + interval, change["verdict"])


def _markdown_repair(document: Mapping[str, Any]) -> str:
    repair = document.get("repair")
    if not repair or not repair["steps"]:
        return ""
    lines = [
        f"### Repair, tried on {format_count(repair['rows'])} untouched rows",
        markdown_text(
            f"{'; '.join(repair['steps'])}. Before: {repair['before']['sentence']}", starts_line=True
        ),
        "",
        "| measure | before | after | difference | |",
        "|---|---:|---:|---|---|",
    ]
    lines += [
        "| " + " | ".join(markdown_cell(cell) for cell in change_row(c)) + " |" for c in repair["changes"]
    ]
    lines += ["", repair_outcome(repair)]
    for header, rows in candidate_tables(repair.get("candidates", ())):
        lines += ["", f"| {' | '.join(header)} |", "|---|" + "---:|" * (len(header) - 2) + "---|"]
        lines += [f"| {' | '.join(markdown_cell(cell) for cell in row)} |" for row in rows]
    return "\n".join(lines)


def repair_outcome(repair: Mapping[str, Any]) -> str:
    """What became of the faults, and what is left, in a few sentences."""
    kinds = [
        f"{kind}: {', '.join(repair[kind])}"
        for kind in ("gone", "milder", "unchanged", "new")
        if repair.get(kind)
    ]
    said = f"Faults {'; '.join(kinds)}." if kinds else "There were no faults on these rows, before or after."
    left = " ".join(repair.get("left", ()))
    return said + (f" Left: {left}" if left else "")


def candidate_tables(trials: Sequence[Mapping[str, Any]]) -> list[tuple[tuple[str, ...], list[list[str]]]]:
    """Candidates of maps and of thresholds, a table each: header and rows, the chosen one named so."""
    tables = []
    for promise in ("probabilities", "coverage"):
        mine = [trial for trial in trials if trial["promise"] == promise]
        scores = dict.fromkeys(name for trial in mine for name in trial["scores"])
        numbers = (*(("coverage", "mean size") if promise == "coverage" else ()), *scores)
        header = ("candidate", *numbers, "worst slice" if promise == "coverage" else "slice that is off most")
        tables += [(header, [_candidate_row(trial, numbers) for trial in mine])] if mine else []
    return tables


def _candidate_row(trial: Mapping[str, Any], numbers: Sequence[str]) -> list[str]:
    worst = trial["worst_slice"]
    if trial["worst_coverage"] is not None:
        worst = f"{trial['worst_coverage']:.3f} in {worst}"
    known = dict(trial["scores"]) | {"mean size": trial["mean_size"], "coverage": trial["coverage"]}
    shown = ["" if known.get(name) is None else f"{known[name]:.4g}" for name in numbers]
    return [trial["name"] + (" (chosen)" if trial["chosen"] else ""), *shown, worst]


def told_faults(findings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The faults that are told by themselves; what one of them explains is named beside it."""
    return [f for f in findings if f["outcome"] == "fault" and "explained_by" not in f["details"]]


def also_seen(code: str, findings: Sequence[Mapping[str, Any]]) -> str:
    """What a fault explains, as a sentence; empty where it explains nothing.

    Examples
    --------
    >>> part = {"code": "CAL101", "title": "under-coverage", "details": {"explained_by": "CAL201"}}
    >>> also_seen("CAL201", [part])
    'Also seen as: under-coverage (CAL101).'
    """
    named = [f"{f['title']} ({f['code']})" for f in findings if f["details"].get("explained_by") == code]
    return f"Also seen as: {'; '.join(named)}." if named else ""


def _markdown_fault(document: Mapping[str, Any], finding: Mapping[str, Any]) -> str:
    title, sentence = markdown_text(finding["title"]), markdown_text(finding["sentence"])
    lines = [f"**{finding['code']} {finding['severity']}: {title}.** {sentence}"]
    if finding["evidence"] is not None:
        lines.append(f"\n> {markdown_text(str(Estimate(**finding['evidence'])), starts_line=True)}")
    if also := also_seen(finding["code"], document["findings"]):
        lines.append(f"\n{markdown_text(also)}")
    if words := what_to_do(finding, document["about"]):
        lines.append(f"\nWhat to do: {markdown_text(words)}")
    return "\n".join(lines)


def _markdown_repairs(document: Mapping[str, Any]) -> list[str]:
    """The code of the repairs, each piece once."""
    return [
        f"<details><summary>Code of the repair ({', '.join(codes)})</summary>\n\n"
        f"{fenced(printable(code), 'python')}\n\n</details>"
        for code, codes in repair_codes(document["findings"])
    ]


def split_repair(text: str) -> tuple[str, str]:
    r"""What a repair does, from the comment on top of its code, and the code.

    Examples
    --------
    >>> split_repair("# Thresholds per group.\n# Tried on other rows.\nrepair = found.repair()")
    ('Thresholds per group. Tried on other rows.', 'repair = found.repair()')
    """
    lines = text.splitlines()
    n = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
    return " ".join(line.lstrip("# ") for line in lines[:n]), "\n".join(lines[n:])


def what_to_do(finding: Mapping[str, Any], about: Mapping[str, Any]) -> str:
    r"""What to do about a fault, in one sentence with the command for the rows that were audited.

    Examples
    --------
    >>> file = {"source": "a.csv", "columns": {"y_true": "outcome"}}
    >>> repair = "# Recalibrate: run calipers repair FILE.\nrepair = found.repair()"
    >>> fault = {"severity": "issue", "details": {}, "repair": repair}
    >>> what_to_do(fault, file)
    'Recalibrate: run calipers repair a.csv.'
    >>> what_to_do(fault | {"severity": "note"}, file)
    'Nothing for now: it is too small to act on.'
    """
    severity = finding["details"].get("own_severity", finding["severity"])
    if severity == "note" and finding["repair"]:
        return "Nothing for now: it is too small to act on."
    if cause := finding["details"].get("follows_from"):
        return f"Mend {cause} first: this follows from it."
    command = next_command("repair", about) or "calipers repair FILE"
    return split_repair(finding["repair"])[0].replace("calipers repair FILE", command)


def repair_codes(findings: Sequence[Mapping[str, Any]]) -> list[tuple[str, list[str]]]:
    """Every piece of repairing code once, with the codes of the faults that it repairs."""
    found: dict[str, list[str]] = {}
    for finding in findings:
        code = split_repair(finding["repair"])[1] if finding["outcome"] == "fault" else ""
        if code:
            found.setdefault(code, []).append(finding["code"])
    return list(found.items())


def next_command(name: str, about: Mapping[str, Any]) -> str:
    """A command about the same rows at the same level; empty for rows that were not read from one file.

    Examples
    --------
    >>> next_command("repair", {"source": "a b.csv", "columns": {"y_true": "outcome"}, "alphas": [0.05]})
    "calipers repair 'a b.csv' --alpha 0.05"
    """
    source, alphas = str(about.get("source") or ""), about.get("alphas") or [0.1]
    if not source or not about.get("columns") or ", " in source or any(letter in source for letter in "*?"):
        return ""
    words = ["calipers", name, one_line(source)]
    words += ["--alpha", f"{alphas[0]:g}"] if list(alphas) != [0.1] and len(alphas) == 1 else []
    if isinstance(about.get("n_calibration"), int):
        words += ["--n-calibration", str(about["n_calibration"])]
    return shlex.join(words)


def _markdown_estimates(document: Mapping[str, Any]) -> str:
    if not document["estimates"]:
        return ""
    lines = ["| measure | value | interval | valid | p |", "|---|---:|---|---|---:|"]
    for name, fields in document["estimates"].items():
        cells = estimate_row(name, fields, usual=document["about"].get("confidence", 0.95))
        lines.append("| " + " | ".join(map(markdown_cell, cells)) + " |")
    return "<details><summary>Every number</summary>\n\n" + "\n".join(lines) + "\n\n</details>"


def estimate_row(
    name: str, fields: Mapping[str, Any], *, usual: float | None = None
) -> tuple[str, str, str, str, str]:
    """Name, value, interval, band of a valid predictor and p-value, as words.

    An interval of another level of confidence than the ``usual`` one says so.
    """
    low, high = fields["low"], fields["high"]
    spread = None if low is None or high is None else high - low
    spread = fields["std_error"] if spread is None or spread != spread or spread == float("inf") else spread
    interval = interval_words(low, high, spread)
    if not interval and fields["std_error"]:  # 0 says only that all rows are alike
        interval = f"± {format_number(fields['std_error'], fields['std_error'])}"
    level = fields["confidence"]
    if interval and usual is not None and level is not None and abs(level - usual) > 1e-9:
        interval += f" (at {format_percent(level)})"
    p = fields["p_value"]
    return (
        name,
        format_number(fields["value"], spread),
        interval,
        span(fields["null_low"], fields["null_high"], spread),
        "" if p is None else format_p_value(p) if p > 0 else "< 1e-300",
    )


def interval_words(low: float | None, high: float | None, spread: float | None) -> str:
    """An interval as words, its ends rounded outward."""
    if low is None or high is None:
        return span(low, high, spread)
    return f"{format_low(low, spread)} to {format_end(high, spread, side='high')}"


def span(low: float | None, high: float | None, spread: float | None) -> str:
    """Two ends as words; one end when there is one, empty when there is none."""
    if low is None and high is None:
        return ""
    if low is None:
        return f"up to {format_number(high, spread)}"
    if high is None:
        return f"at least {format_number(low, spread)}"
    return f"{format_number(low, spread)} to {format_number(high, spread)}"


def render_text(document: Mapping[str, Any], *, width: int = 88) -> str:
    """The faults, the worst first, and the six answers, for a terminal.

    Parameters
    ----------
    document : mapping
        As made by `audit_document`.
    width : int
        Letters per line of running text.

    Returns
    -------
    str
        Plain text.

    Examples
    --------
    >>> from calipers.report import audit_document, render_text
    >>> from calipers.results import EstimateTable
    >>> empty = audit_document(about={"rows": 3, "task": "regression", "alphas": [0.1]}, questions=[],
    ...                        findings=[], estimates=EstimateTable([]), pictures=[])
    >>> print(render_text(empty))
    Calipers audit: No fault found; all six questions answered.
    3 rows, regression, alpha 0.1.
    """
    lines = [f"{title_of(document)}: {document['verdict']['sentence']}", _about(document)]
    for sentence in earlier_sentences(document.get("history")):
        lines += wrapped(sentence, width)
    faults = told_faults(document["findings"])
    for finding in faults:
        lines += ["", f"{finding['code']} {finding['severity']}: {finding['title']}"]
        lines += _indented(finding["sentence"], width)
        if finding["evidence"] is not None:
            lines += _indented(str(Estimate(**finding["evidence"])), width)
        lines += _indented(also_seen(finding["code"], document["findings"]), width)
    said = {finding["sentence"] for finding in faults}
    for answer in document["questions"]:
        lines += ["", f"{MARKS[answer['answer']]} {answer['title']} {answer['label']}"]
        lines += [] if answer["sentence"] in said else _indented(answer["sentence"], width)
        said.add(answer["sentence"])
    return "\n".join(lines)


def _indented(text: str, width: int) -> list[str]:
    return wrapped(text, width, indent="    ")


def wrapped(text: str, width: int, *, indent: str = "") -> list[str]:
    """Lines of at most so many letters; a percentage is never on two of them.

    Examples
    --------
    >>> wrapped("the sets cover 95 %", 18)
    ['the sets cover', '95 %']
    """
    lines = textwrap.wrap(
        UNBROKEN.sub("\u00a0", text), width, initial_indent=indent, subsequent_indent=indent,
        break_on_hyphens=False,
    )  # fmt: skip
    return [line.replace("\u00a0", " ") for line in lines]
