"""What the page shows of the findings: one card per fault, one line for everything else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from calipers.report.drawing import draw, picture_keys
from calipers.report.drawing_intervals import MEASURED
from calipers.report.measure_names import measure_name
from calipers.report.text_formats import UNBROKEN, split_repair, what_to_do
from calipers.results import Estimate
from calipers.results.formatting import format_count, p_in_words
from calipers.results.picture_data import table_picture

# Which pictures show a finding best, by how their names begin; the first that is there is taken.
PICTURES_OF = {
    "CAL101": ("coverage_by_alpha",),
    "CAL102": ("coverage_by_alpha",),
    "CAL103": ("coverage_by_alpha",),
    "CAL202": ("coverage_by_expectation",),
    "CAL203": ("CAL203_plane", "coverage_by_region"),
    "CAL402": ("size_by_difficulty",),
    "CAL501": ("reliability",),
    "CAL502": ("reliability",),
    "CAL503": ("CAL503_reliability", "reliability"),
    "CAL509": ("reliability",),
    "CAL601": ("loss_along_the_file", "coverage_along_time"),
}
_TINY_P = re.compile(r"p = \d\.\d+e-\d+")


def prose(text: str) -> str:
    """A sentence as it is shown: percentages stay on one line, tiny p-values are bounds.

    Examples
    --------
    >>> prose("covers 95 % (p = 1.1e-111)").replace(chr(160), "_")
    'covers 95_% (p_<_0.001)'
    """
    shown = _TINY_P.sub("p < 0.001", text).replace("a perfect predictor would", "a valid predictor would")
    return UNBROKEN.sub("\u00a0", shown)


# What is measured without a promise behind it: it is told, not called fine.
MEASURED_ONLY = ("CAL601",)


def fine_checks(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Checks that found a promise kept."""
    return [f for f in one_line_each(document, "clean") if not _is_measured_only(f)]


def measured_checks(document: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Checks that describe something about which nothing was promised."""
    return [f for f in one_line_each(document, "clean") if _is_measured_only(f)]


def _is_measured_only(finding: Mapping[str, Any]) -> bool:
    return finding["code"] in MEASURED_ONLY or bool(finding["details"].get("descriptive"))


def fault_cards(document: Mapping[str, Any], pictures: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Per fault: sentence, picture, how sure, where, rows and repair."""
    faults = [finding for finding in document["findings"] if finding["outcome"] == "fault"]
    cards = [_card(document, finding, pictures) for finding in faults]
    for card in cards:
        card["parts"] = [part for part in cards if part["details"].get("explained_by") == card["code"]]
    return [card for card in cards if "explained_by" not in card["details"]]


def _card(
    document: Mapping[str, Any], finding: Mapping[str, Any], pictures: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    evidence = finding["evidence"]
    picture = picture_of(finding, pictures) or _evidence_picture(finding)
    details = finding["details"]
    return dict(finding) | {
        "anchor": f"fault-{finding['code']}",
        "picture": picture,
        "number": "" if evidence is None else _measured(Estimate(**evidence)),
        "sure": how_sure(details.get("p_adjusted"), details.get("tests_in_audit"), evidence),
        "examples": document.get("examples", {}).get(finding["code"]),
        "rows": _rows_words(document, finding),
        "by_itself": _by_itself(finding),
        "repair_words": what_to_do(finding, document["about"]),
        "repair_code": split_repair(finding["repair"])[1],
    }


def how_sure(p: float | None, tests: int | None, evidence: Mapping[str, Any] | None) -> str:
    """The one p-value of a card, after correction for all tests, in words.

    Examples
    --------
    >>> how_sure(0.0031, 1, None)
    'chance alone shows as much in about 3 of 1000 audits of a valid predictor (p = 0.003)'
    """
    if p is None:
        return ""
    digits = 3 if p < 0.01 else 2
    often = f"about {max(1, round(p * 10**digits))} of {10**digits}" if p >= 0.001 else "fewer than 1 of 1000"
    subject = ((evidence or {}).get("details") or {}).get("null_subject", "a valid predictor")
    corrected = f", corrected for {tests} tests" if tests and tests > 1 else ""
    return f"chance alone shows as much in {often} audits of {subject} ({p_in_words(p)}{corrected})"


def _by_itself(finding: Mapping[str, Any]) -> str:
    """Why the card of a fault says less than its tile and its cell; empty where it says the same."""
    own, told = finding["details"].get("own_severity", finding["severity"]), finding["severity"]
    return "" if own == told else f"{own}; a {told} here, because another fault has to be mended first"


def _rows_words(document: Mapping[str, Any], finding: Mapping[str, Any]) -> str:
    """How many rows the fault is about, of how many."""
    examples = document.get("examples", {}).get(finding["code"])
    if examples is None:
        return ""
    about = document["about"]
    sampled = about.get("sample_rows")
    whole = f"a sample of {format_count(sampled)}" if sampled else format_count(about["rows"])
    return f"{format_count(examples['rows'])} of {whole}"


def _measured(estimate: Estimate) -> str:
    """The printed line with a colon after the name; how sure it is stands beside it."""
    shown = replace(estimate, p_value=None, reason="" if estimate.p_value is not None else estimate.reason)
    return f"{measure_name(estimate.name)}:{str(shown).removeprefix(estimate.name)}"


def picture_of(finding: Mapping[str, Any], pictures: Sequence[Mapping[str, Any]]) -> Mapping[str, Any] | None:
    """The picture of a finding: one that bears its code, or the one the table names."""
    code, alpha = finding["code"], finding["details"].get("alpha")
    own = finding["details"].get("pictures") or ()
    for beginning in (*PICTURES_OF.get(code, ()), code):
        named = [picture for picture in pictures if str(picture["name"]).startswith(beginning)]
        tagged = [p for p in named if p["name"] in own]
        tagged += [p for p in named if alpha is not None and str(p["name"]).endswith(f"alpha={alpha:g}")]
        if named:
            return (tagged or named)[0]
    return None


def _evidence_picture(finding: Mapping[str, Any]) -> dict[str, Any] | None:
    """The number of a finding without a picture of its own, against the band of its null law."""
    evidence = finding["evidence"]
    if evidence is None or evidence["value"] is None or evidence["low"] is None:
        return None
    estimate, details = Estimate(**evidence), finding["details"]
    coverage = estimate.name.startswith(("coverage", "share below")) and "alpha" in details
    promised = 1.0 - details["alpha"] if coverage else details.get("bound")
    drawn = table_picture({MEASURED: estimate}, title=finding["title"], reference=promised)
    drawn["curves"][0]["details"] = {"worse": "above"} if "bound" in details else {"two_sided": True}
    return {
        "name": f"{finding['code']}_evidence",
        "title": _capitalised(measure_name(estimate.name)),
        "caption": "",
        "svg": draw(drawn),
        "legend": picture_keys(drawn),
        "methods": [],
    }


def _capitalised(words: str) -> str:
    return words[:1].upper() + words[1:]


def one_line_each(document: Mapping[str, Any], outcome: str) -> list[Mapping[str, Any]]:
    """The findings with an outcome, in their order."""
    return [finding for finding in document["findings"] if finding["outcome"] == outcome]


def what_to_add(document: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Remedy -> the checks it would allow; every remedy once, what does not apply at all last."""
    remedies: dict[str, list[str]] = {}
    for question in document["questions"]:
        for entry in question.get("missing", ()):
            remedies.setdefault(entry["add"], []).append(entry["code"])
    asked = {code for codes in remedies.values() for code in codes}
    for finding in one_line_each(document, "not_applicable"):
        if finding["code"] not in asked:
            remedies.setdefault(finding["sentence"], []).append(finding["code"])
    titles = {finding["code"]: finding["title"] for finding in document["findings"]}
    named = [
        (remedy, ", ".join(dict.fromkeys(titles.get(code, code) for code in codes)))
        for remedy, codes in remedies.items()
    ]
    return sorted(named, key=lambda pair: pair[0].startswith("Does not apply"))
