"""The one dictionary behind every form of the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calipers.report.picture_focus import focused
from calipers.results import EstimateTable, Finding, nothing_told, severity_rank
from calipers.results.formatting import in_a_row
from calipers.version import __version__

DOCUMENT_SCHEMA = 1
TOO_FEW_ROWS = "With so few rows nothing can be said about any promise."

# "What will it score next time?" is not answered by yes or no: state -> label, by the code of the fault.
_WORSE = {
    "no": "worse than promised",
    "doubtful": "worse than promised",
    "mostly": "slightly worse than promised",
}
FORECAST_LABELS = {
    "": {"yes": "about the same"},
    "CAL601": {"no": "it drifts", "doubtful": "it may drift"},
    "CAL602": _WORSE,
    "CAL603": {"doubtful": "worse in a group", "mostly": "slightly worse in a group"},
    "CAL605": {"doubtful": "worse in a region", "mostly": "slightly worse in a region"},
    "CAL606": {"doubtful": "worse in a part", "mostly": "slightly worse in a part"},
    "CAL607": {"doubtful": "worse for a time", "mostly": "slightly worse for a time"},
}


# Question -> the fault of all rows that a yes would contradict, the answer by its severity, and its words:
# what covers too often is larger than it needs to be, whether or not a rival was found, and what covers too
# rarely does so somewhere, also where no part is worse than the others.
_OF_ALL_ROWS = {
    "narrow": ("CAL102", {"note": "mostly", "warning": "doubtful", "issue": "doubtful"},
               "They cover more often than promised (CAL102), so smaller ones would do."),
    "everywhere": ("CAL101", {"note": "mostly", "warning": "doubtful", "issue": "no"},
                   "Over all rows they cover less often than promised (CAL101)."),
}  # fmt: skip


def audit_document(
    *,
    about: Mapping[str, Any],
    questions: Sequence[Mapping[str, Any]],
    findings: Sequence[Finding],
    estimates: EstimateTable,
    pictures: Sequence[Mapping[str, Any]],
    promises: Sequence[Mapping[str, Any]] = (),
    examples: Mapping[str, Mapping[str, Any]] | None = None,
    history: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Plain values: the verdict, the six answers, findings, estimates and pictures.

    Parameters
    ----------
    about : mapping
        What was audited: name, source, rows, task, alphas, seed.
    questions : sequence of mappings
        Per question its name, title, the codes that ran and what was missing for the others.
    findings : sequence of Finding
        Outcomes of the checks, the most serious first.
    estimates : EstimateTable
        Every number.
    pictures : sequence of mappings
        Curves with titles and captions.
    promises : sequence of mappings
        Cells of the table of promises and slices.
    examples : mapping
        Code of a fault -> a few of the rows it is about.
    history : mapping, optional
        Earlier audits and what changed since the last of them.

    Returns
    -------
    dict
        Only dictionaries, lists, numbers, text, and arrays inside the curves.

    Examples
    --------
    >>> from calipers.report import audit_document
    >>> from calipers.results import EstimateTable
    >>> document = audit_document(about={"rows": 10}, questions=[], findings=[],
    ...                           estimates=EstimateTable([]), pictures=[])
    >>> document["verdict"]["severity"]
    'none'
    """
    answers = [answer_question(question, findings) for question in questions]
    return {
        "schema": DOCUMENT_SCHEMA,
        "kind": "Audit",
        "calipers": __version__,
        "about": dict(about),
        "verdict": _verdict(findings, answers),
        "questions": answers,
        "findings": [finding.to_dict() for finding in findings],
        "estimates": {name: estimate.to_dict() for name, estimate in estimates.items()},
        "pictures": [focused(picture, findings) for picture in pictures],
        "promises": [dict(cell) for cell in promises],
        "examples": {code: dict(shown) for code, shown in (examples or {}).items()},
        **({} if history is None else {"history": dict(history)}),
    }


def answer_question(question: Mapping[str, Any], findings: Sequence[Finding]) -> dict[str, Any]:
    """The question with its answer: one word and one sentence."""
    mine = [finding for finding in findings if finding.question == question["question"]]
    faults = [finding for finding in mine if finding.outcome == "fault"]
    if question["question"] == "everywhere":
        faults += [finding for finding in findings if finding not in faults and _is_of_a_part(finding)]
    worst = max(faults, key=_weight, default=None)
    state, sentence = _state(question, mine, worst)
    severity = "none" if worst is None else own_severity(worst)
    code, states, words = _OF_ALL_ROWS.get(question["question"], ("", {}, ""))
    overall = next((f for f in findings if f.code == code and f.outcome == "fault"), None)
    if overall is not None and state in ("yes", "mostly"):
        severity = max(severity, own_severity(overall), key=severity_rank)
        state, sentence = states[severity], f"{words} {sentence}"
    few = state == "yes" and any(f.details.get("few_rivals") for f in mine if f.outcome == "clean")
    if few:  # one rival earns no yes
        state = "mostly"
    label = "not quite" if state == "doubtful" else "as far as tried" if few else state
    forecast = question["question"] == "forecast"
    labels = FORECAST_LABELS.get("" if worst is None else worst.code, {}) if forecast else {}
    return dict(question) | {
        "answer": state,
        "label": labels.get(state, label),
        "severity": severity,
        "sentence": sentence,
        "codes": [finding.code for finding in mine],
    }


def _weight(finding: Finding) -> tuple[int, bool, bool]:
    """What a question is answered by: the most serious fault, of equal ones that which names some rows."""
    # However small: what drifts does not stay as it is here.
    of_some_rows = finding.details.get("slices") not in ("", None, "all rows", "score")
    return severity_rank(own_severity(finding)), finding.code == "CAL601", of_some_rows


def _is_of_a_part(finding: Finding) -> bool:
    """Whether coverage is below the promise in some of the rows, whatever question the check belongs to."""
    about, effect = finding.details, finding.details.get("effect")
    by_part = about.get("slices") not in ("", None, "all rows", "score")
    covers = by_part and str(about.get("promise", "")).startswith("coverage")
    # What only lies above the promise breaks nothing.
    above = own_severity(finding) == "note" and (effect or 0.0) < 0
    return finding.outcome == "fault" and covers and not above


def own_severity(finding: Finding) -> str:
    """How serious the fault is by itself, also where another one explains it and it became a note."""
    return str(finding.details.get("own_severity", finding.severity))


def _state(question: Mapping[str, Any], mine: Sequence[Finding], worst: Finding | None) -> tuple[str, str]:
    if worst is not None:
        note = "doubtful" if worst.code == "CAL601" else "mostly"
        return {"issue": "no", "warning": "doubtful"}.get(own_severity(worst), note), worst.sentence
    all_clean = [finding for finding in mine if finding.outcome == "clean"]
    # What only describes does not earn a yes.
    clean = [finding for finding in all_clean if not finding.details.get("descriptive")]
    open_ones = [finding for finding in mine if finding.outcome == "cannot_tell"]
    if clean:
        still = f" Still open: {', '.join(finding.code for finding in open_ones)}." if open_ones else ""
        return "yes", clean[0].sentence + still
    if open_ones:
        return "cannot tell", open_ones[0].sentence
    missing = dict.fromkeys(entry["add"] for entry in question.get("missing", ()))
    asked = [finding for finding in mine if finding.code in question.get("checks", ())]
    reasons = [finding.sentence for finding in asked if finding.outcome == "not_applicable"]
    # Shares by true class are listed with any classifier: they ask no question by themselves.
    all_clean = [finding for finding in all_clean if finding.details.get("slices") != "label"]
    if all_clean:
        return "cannot tell", " ".join([all_clean[0].sentence, *reasons[:1]])
    return "not asked", next(iter([*reasons, *missing]), "It does not apply to this kind of prediction.")


def _verdict(findings: Sequence[Finding], answers: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    faults = [f for f in findings if f.outcome == "fault" and "explained_by" not in f.details]
    severity = max((finding.severity for finding in faults), key=severity_rank, default="none")
    counts = {level: sum(f.severity == level for f in faults) for level in ("issue", "warning", "note")}
    answered = sum(answer["answer"] not in ("not asked", "cannot tell") for answer in answers)
    return {
        "severity": severity,
        "counts": counts,
        "sentence": _verdict_sentence(counts, answered, len(answers), told=not nothing_told(findings)),
    }


def _verdict_sentence(counts: Mapping[str, int], answered: int, questions: int, *, told: bool) -> str:
    named = [f"{count} {level}{'s' if count != 1 else ''}" for level, count in counts.items() if count]
    if not told and not named:
        return TOO_FEW_ROWS
    found = f"Found {in_a_row(named)}" if named else "No fault found"
    scope = "all six questions" if answered == questions else f"{answered} of {questions} questions"
    return f"{found}; {scope} answered." + ("" if told else f" {TOO_FEW_ROWS}")
