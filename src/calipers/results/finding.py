"""What the audit says about one check: a code, how bad, a sentence, the evidence and the repair."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from calipers.arrays import short_repr
from calipers.exceptions import InputError
from calipers.results.estimate import Estimate
from calipers.results.frozen_details import restore_frozen

OUTCOMES = ("fault", "clean", "cannot_tell", "not_applicable")
SEVERITIES = ("none", "note", "warning", "issue")


def severity_rank(severity: str) -> int:
    """Position in the order none < note < warning < issue.

    Examples
    --------
    >>> from calipers.results import severity_rank
    >>> severity_rank("issue") > severity_rank("warning")
    True
    """
    if severity not in SEVERITIES:
        raise InputError(f"severity must be one of {', '.join(SEVERITIES)}, got {severity!r}.")
    return SEVERITIES.index(severity)


def nothing_told(findings: Iterable[Any]) -> bool:
    """Whether the rows were too few: some check cannot tell, and none found a fault or its absence.

    What only describes, such as sizes, says nothing about a promise.

    Examples
    --------
    >>> from calipers.results import Finding, nothing_told
    >>> nothing_told([Finding(code="CAL101", title="", question="coverage", outcome="cannot_tell")])
    True
    """
    outcomes = {
        finding.outcome for finding in findings if not getattr(finding, "details", {}).get("descriptive")
    }
    return "cannot_tell" in outcomes and not outcomes & {"fault", "clean"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finding:
    """The outcome of one check.

    Parameters
    ----------
    code : str
        Stable, e.g. "CAL101".
    title : str
        A few words.
    question : str
        Which of the six questions it belongs to.
    outcome : {"fault", "clean", "cannot_tell", "not_applicable"}
        What the check concluded.
    severity : {"none", "note", "warning", "issue"}
        "none" unless the outcome is a fault.
    sentence : str
        One sentence a non-specialist understands.
    evidence : Estimate or None
        The number behind it.
    where : str
        Region, group or interval where it is worst.
    repair : str
        A runnable snippet.
    n_needed : int or None
        With "cannot_tell": rows that would settle it.
    details : mapping
        Everything else.

    Examples
    --------
    >>> from calipers.results import Finding
    >>> print(Finding(code="CAL101", title="under-coverage", question="coverage", outcome="fault",
    ...               severity="issue", sentence="The sets cover 84 %, 90 % was promised."))
    CAL101 issue: The sets cover 84 %, 90 % was promised.
    """

    code: str
    title: str
    question: str
    outcome: str
    severity: str = "none"
    sentence: str = ""
    evidence: Estimate | None = None
    where: str = ""
    repair: str = field(default="", repr=False)
    n_needed: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)

    __repr__ = short_repr

    def __post_init__(self) -> None:
        if self.outcome not in OUTCOMES:
            raise InputError(f"outcome must be one of {', '.join(OUTCOMES)}, got {self.outcome!r}.")
        if (severity_rank(self.severity) > 0) != (self.outcome == "fault"):
            raise InputError(
                'severity must be "none" unless the outcome is "fault", and not "none" if it is; '
                f"got {self.severity!r} with {self.outcome!r}."
            )
        object.__setattr__(self, "details", MappingProxyType(dict(self.details)))

    def __getstate__(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in self.__slots__} | {"details": dict(self.details)}

    __setstate__ = restore_frozen

    def __eq__(self, other: object) -> bool:
        from calipers.results.serialization import same

        return isinstance(other, Finding) and same(self.to_dict(), other.to_dict())

    def __hash__(self) -> int:
        return hash((self.code, self.outcome, self.sentence))

    def to_dict(self) -> dict[str, Any]:
        """Every field by name; the evidence as a dictionary too."""
        evidence = None if self.evidence is None else self.evidence.to_dict()
        return self.__getstate__() | {"evidence": evidence}

    def __str__(self) -> str:
        label = self.severity if self.outcome == "fault" else self.outcome.replace("_", " ")
        return f"{self.code} {label}: {self.sentence or self.title}"
