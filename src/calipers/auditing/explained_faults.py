"""One fault is told once: findings that another one explains say so and are told beside it.

The rows decide. A fault of some rows (a group, a region, a stretch of time, a part along difficulty) that
is gone where the rows of another one are looked at apart is part of that other one; of two that explain
each other the one that was named (a group, a time) leads, else the one with fewer rows. A fault of all rows
that is gone when the rows of a place are left out is part of that place; coverage of all rows, which is what
was promised, stays a fault of its own and names the place. What was predicted and stated probabilities are
kept apart, but for what probabilities imply. The tables hold what is the same by definition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calipers.auditing.faults_without_rows import FaultsWithoutRows
from calipers.auditing.promises import IMPLIED_SETS, PER_ROW
from calipers.results import Finding, severity_rank

# (explained, explaining): the first says the same as the second, seen through another number.
_SAME_FAULT = (("CAL203", "CAL202"), ("CAL607", "CAL601"))
# With two classes the top label and the class say the same thing, and all rows are one range of the score.
_OF_TWO_CLASSES = (("CAL501", "CAL503"), ("CAL502", "CAL503"), ("CAL509", "CAL503"))
# Faults of the sets that plain probabilities imply, and the faults of the probabilities themselves.
_IMPLIED = {
    "CAL101": ("CAL501", "CAL502", "CAL503", "CAL509"),
    "CAL102": ("CAL501", "CAL502", "CAL503", "CAL509"),
    "CAL201": ("CAL504",),
    "CAL202": ("CAL505", "CAL504"),
    "CAL204": ("CAL506",),
    "CAL401": ("CAL501", "CAL502", "CAL503", "CAL508"),
}
# Coverage over all rows is what was promised: whoever is told where it fails is also told that it does.
_PROMISE_ITSELF = "CAL101"


def told_once(
    findings: Sequence[Finding], *, binary: bool, without_rows: FaultsWithoutRows | None = None
) -> list[Finding]:
    """The findings, where those that another fault explains name it; the other takes over their severity.

    A fault that explains others names them in ``details["also_seen_as"]``. Without ``without_rows``, which
    compare faults by their rows, only what is the same by definition is folded.
    """
    found = {finding.code: finding for finding in findings}
    for explained, explaining in (*_SAME_FAULT, *(_OF_TWO_CLASSES if binary else _of_top_label(found))):
        _fold(found, explained, explaining)
    if "CAL402" in found and found["CAL402"].details.get("by_features"):
        # Intervals that do not follow the features miss where these say so.
        _fold(found, "CAL402", "CAL202")
    if "CAL601" in found and found["CAL601"].details.get("loss") == "share of misses":
        # Misses that change with time are coverage that does.
        _fold(found, "CAL601", "CAL204")
    _say_beside(found)
    for explained, several in _IMPLIED.items():
        if explained in found and _is_about_probabilities(found[explained]):
            for explaining in several:
                if explained != "CAL201" or _in_one_group(found, explained, explaining):
                    _fold(found, explained, explaining)
    if without_rows is not None:
        _fold_by_rows(found, without_rows)
    return list(found.values())


def _fold_by_rows(found: dict[str, Finding], without_rows: FaultsWithoutRows) -> None:
    """Faults that are gone without the rows of a place: other places first, then those of all rows."""

    def leaders() -> list[str]:
        return [code for code, finding in found.items()
                if finding.outcome == "fault" and "explained_by" not in finding.details]  # fmt: skip

    places = sorted(filter(without_rows.is_place, leaders()), key=without_rows.breadth)
    for narrow in places:
        for wide in places:
            if wide == narrow or not {narrow, wide} <= set(leaders()):
                continue
            is_first = places.index(narrow) < places.index(wide)
            if not without_rows.vanishes(wide, narrow):
                continue
            if not without_rows.are_of_one_kind(wide, narrow):
                if is_first and without_rows.vanishes(narrow, wide):
                    _say_same_rows(found, narrow, wide)
            elif is_first or not without_rows.vanishes(narrow, wide):
                _fold(found, wide, narrow, by_rows=True)
    _fold_drift(found, without_rows)
    for whole in filter(without_rows.is_whole, leaders()):
        for place in places:
            told = place in leaders() and without_rows.are_of_one_kind(whole, place)
            if told and without_rows.gone_without(whole, place):
                _explain(found, whole, place)
                break


def _explain(found: dict[str, Finding], whole: str, place: str) -> None:
    """Make a fault of all rows part of that of a place; broken coverage stays a fault and names the place."""
    if whole != _PROMISE_ITSELF:
        _fold(found, whole, place, by_rows=True)
        return
    said = f"{found[whole].sentence} Without the rows of {place} it is kept."
    found[whole] = replace(
        found[whole], sentence=said, details=dict(found[whole].details) | {"follows_from": place}
    )


def _say_same_rows(found: dict[str, Finding], one: str, other: str) -> None:
    """Let a fault of what was predicted and one of stated probabilities name each other."""
    for code, beside in ((one, other), (other, one)):
        found[code] = replace(found[code], sentence=f"{found[code].sentence} In the same rows: {beside}.")


def _fold_drift(found: dict[str, Finding], without_rows: FaultsWithoutRows) -> None:
    """Losses that drift beside a promise that changed: one change with one date, or why there are two."""
    for change in ("CAL204", "CAL506"):
        if not _are_faults(found, "CAL601", change) or "explained_by" in found["CAL601"].details:
            continue
        drift, since = found["CAL601"], found[change].where
        if not drift.where.startswith("since "):
            continue
        same = (drift.evidence, drift.sentence) if drift.where == since else without_rows.one_date(change)
        if same is not None:
            found["CAL601"] = replace(drift, evidence=same[0], sentence=same[1], where=since)
            _fold(found, "CAL601", change, by_rows=True)
            continue
        what = found[change].title.split()[0].capitalize()
        why = f"{what} is different {since} ({change}): each date is where its own numbers differ most, so"
        found["CAL601"] = replace(
            drift, sentence=f"{drift.sentence} {why} the change is gradual, or there are two."
        )


def _say_beside(found: dict[str, Finding]) -> None:
    """What a finding must say because of the fault of another one, which it would seem to contradict."""
    regions, narrow, below = (found.get(code) for code in ("CAL203", "CAL302", "CAL101"))
    if regions is not None and regions.outcome == "clean" and _are_faults(found, "CAL202"):
        said = "No single rule of the features describes where coverage is low: see CAL202."
        details = dict(regions.details) | {"descriptive": True}
        found["CAL203"] = replace(regions, sentence=said, details=details)
    if narrow is None or below is None or not _are_faults(found, "CAL101", "CAL302"):
        return
    if below.severity != "note" and narrow.details.get("promise") == below.details.get("promise"):
        said = f"At the coverage they have, {narrow.sentence[:1].lower()}{narrow.sentence[1:]}"
        found["CAL302"] = replace(
            narrow, severity="note", title=f"{narrow.title} at the coverage they have",
            sentence=f"{said} The level has to be mended first (CAL101).",
            details=dict(narrow.details) | {"own_severity": narrow.severity},
        )  # fmt: skip


def _is_about_probabilities(finding: Finding) -> bool:
    """Whether the promise follows from stated probabilities, which then are what is wrong.

    Promises per row are probabilities themselves: over all rows two checks ask the same of them.
    """
    promise = str(finding.details.get("promise", ""))
    return promise.startswith(IMPLIED_SETS) or (
        promise.startswith(PER_ROW) and finding.code in {"CAL101", "CAL102"}
    )


def _of_top_label(found: dict[str, Finding]) -> tuple[tuple[str, str], ...]:
    """The mean of all rows is one range of the top label's score, where both err to the same side."""
    evidence = found["CAL509"].evidence if "CAL509" in found else None
    if evidence is None or not evidence.value:
        return ()
    return (("CAL509", "CAL501" if evidence.value < 0 else "CAL502"),)


def _in_one_group(found: dict[str, Finding], *codes: str) -> bool:
    """Whether findings name the same group: the fault of one group explains nothing about another."""
    return len({found[code].where for code in codes if code in found}) == 1


def _are_faults(found: dict[str, Finding], *codes: str) -> bool:
    return all(code in found and found[code].outcome == "fault" for code in codes)


def _fold(found: dict[str, Finding], explained: str, explaining: str, *, by_rows: bool = False) -> None:
    """Make one fault a part of another, or of what that other one is part of, with all that it explains.

    What is the same by definition becomes a note; what is seen in the same rows keeps its severity.
    """
    one, other = found.get(explained), found.get(explaining)
    if one is None or other is None or one.outcome != "fault" or other.outcome != "fault":
        return
    if (root := other.details.get("explained_by")) is not None:
        other, explaining = found[str(root)], str(root)
    if "explained_by" in one.details or explaining == explained:
        return
    parts = (explained, *one.details.get("also_seen_as", ()))
    found[explaining] = replace(
        other, severity=max(one.severity, other.severity, key=severity_rank),
        details=dict(other.details) | {"also_seen_as": [*other.details.get("also_seen_as", ()), *parts]},
    )  # fmt: skip
    for code in parts:
        found[code] = _part_of(found[code], explaining, severity=found[code].severity if by_rows else "note")


def _part_of(finding: Finding, explaining: str, *, severity: str) -> Finding:
    details = {key: value for key, value in finding.details.items() if key != "also_seen_as"}
    before = details.get("explained_by")
    said = finding.sentence.removesuffix(f" This is part of {before}.") if before else finding.sentence
    own = {"explained_by": explaining, "own_severity": details.get("own_severity", finding.severity)}
    return replace(
        finding, severity=severity, sentence=f"{said} This is part of {explaining}.", details=details | own
    )
