"""One fault is told once: findings that another one explains become notes that say so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from scipy.special import ndtr

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
# Slices that may hold the same rows: intervals that are too narrow since some day are the narrowest ones.
_SAME_ROWS = (("CAL401", "CAL204"), ("CAL508", "CAL506"))
# A fault is explained by another when this test finds nothing of it inside and outside the rows of the other.
_LEFT = 0.01


def told_once(
    findings: Sequence[Finding], *, binary: bool, vanishes: Callable[[str, str], bool] | None = None
) -> list[Finding]:
    """The findings, where those that another fault explains are notes; the other takes over their severity.

    ``vanishes(code, other)`` says whether the fault of a code is that of the rows of another one, see
    `vanishes_within`.
    """
    found = {finding.code: finding for finding in findings}
    for explained, explaining in (*_SAME_FAULT, *(_OF_TWO_CLASSES if binary else _of_top_label(found))):
        _fold(found, explained, explaining)
    if "CAL402" in found and found["CAL402"].details.get("by_features"):
        # Intervals that do not follow the features miss where these say so.
        _fold(found, "CAL402", "CAL202")
    _fold_times(found, vanishes)
    _say_beside(found)
    for explained, several in _IMPLIED.items():
        if explained in found and _is_about_probabilities(found[explained]):
            for explaining in several:
                if explained != "CAL201" or _in_one_group(found, explained, explaining):
                    _fold(found, explained, explaining)
    return list(found.values())


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


def _fold_times(found: dict[str, Finding], vanishes: Callable[[str, str], bool] | None) -> None:
    """Changes over time, and what else they are seen in."""
    if "CAL601" in found and found["CAL601"].details.get("loss") == "share of misses":
        # Misses that change with time are coverage that does.
        _fold(found, "CAL601", "CAL204")
    if vanishes is None:
        return
    for slice_of, since in _SAME_ROWS:
        if _are_faults(found, slice_of, since):
            for pair in ((slice_of, since), (since, slice_of)):
                if vanishes(*pair):
                    _fold(found, *pair)


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


def vanishes_within(departures: np.ndarray, rows: np.ndarray, other: np.ndarray) -> bool:
    """Whether what distinguishes some rows is gone when those of another fault are looked at apart.

    Parameters
    ----------
    departures : array (n,)
        Whether the promise came true, minus its probability.
    rows, other : bool array (n,)
        The rows of a fault, and those of the one that may explain it.

    Returns
    -------
    bool
        Whether the one-sided test of Cochran, Mantel and Haenszel, stratified by ``other``, finds no
        difference between ``rows`` and the rest in the direction of the fault.

    Examples
    --------
    >>> import numpy as np
    >>> late = np.arange(1000) >= 600
    >>> narrow = late & (np.arange(1000) % 2 == 0)
    >>> kept = np.random.default_rng(0).random(1000) < np.where(late, 0.6, 0.9)
    >>> vanishes_within(kept - 0.9, narrow, late), vanishes_within(kept - 0.9, late, narrow)
    (True, False)
    """
    sign = np.sign(departures[rows].mean() - departures.mean())
    total = variance = 0.0
    for stratum in (other, ~other):
        inside, n = rows[stratum], int(stratum.sum())
        own, d = int(inside.sum()), departures[stratum]
        if n > 1:
            total += float(sign * (d[inside].sum() - own * d.mean()))
            variance += own * (n - own) / (n - 1) * float(d.var())
    return bool(variance == 0 or ndtr(-total / np.sqrt(variance)) > _LEFT)


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
