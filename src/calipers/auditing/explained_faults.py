"""One fault is told once: findings that another one explains become notes that say so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from calipers.auditing.promises import IMPLIED_SETS
from calipers.results import Finding, severity_rank

# (explained, explaining): the first says the same as the second, seen through another number.
_SAME_FAULT = (("CAL203", "CAL202"),)
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


def told_once(findings: Sequence[Finding], *, binary: bool) -> list[Finding]:
    """The findings; those that another fault explains are notes, and the other takes over their severity."""
    found = {finding.code: finding for finding in findings}
    for explained, explaining in (*_SAME_FAULT, *(_OF_TWO_CLASSES if binary else _of_top_label(found))):
        _fold(found, explained, explaining)
    if "CAL402" in found and found["CAL402"].details.get("by_features"):
        # Intervals that do not follow the features miss where these say so.
        _fold(found, "CAL402", "CAL202")
    for explained, several in _IMPLIED.items():
        if explained in found and str(found[explained].details.get("promise", "")).startswith(IMPLIED_SETS):
            for explaining in several:
                if explained != "CAL201" or _in_one_group(found, explained, explaining):
                    _fold(found, explained, explaining)
    return list(found.values())


def _of_top_label(found: dict[str, Finding]) -> tuple[tuple[str, str], ...]:
    """The mean of all rows is one range of the top label's score, where both err to the same side."""
    evidence = found["CAL509"].evidence if "CAL509" in found else None
    if evidence is None or not evidence.value:
        return ()
    return (("CAL509", "CAL501" if evidence.value < 0 else "CAL502"),)


def _in_one_group(found: dict[str, Finding], *codes: str) -> bool:
    """Whether findings name the same group: the fault of one group explains nothing about another."""
    return len({found[code].where for code in codes if code in found}) == 1


def _fold(found: dict[str, Finding], explained: str, explaining: str) -> None:
    one, other = found.get(explained), found.get(explaining)
    if one is None or other is None or one.outcome != "fault" or other.outcome != "fault":
        return
    if "explained_by" in one.details or "explained_by" in other.details:
        return
    found[explaining] = replace(other, severity=max(one.severity, other.severity, key=severity_rank))
    found[explained] = replace(
        one, severity="note", sentence=f"{one.sentence} This is part of {explaining}.",
        details=dict(one.details) | {"explained_by": explaining, "own_severity": one.severity},
    )  # fmt: skip
