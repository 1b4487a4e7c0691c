"""One fault is told once, and no fault is said to be part of another one that is elsewhere."""

from __future__ import annotations

import pytest

from calipers.auditing.explained_faults import told_once
from calipers.auditing.promises import IMPLIED_SETS, PER_ROW
from calipers.results import Finding


def fault(code: str, where: str = "", promise: str = "", severity: str = "warning") -> Finding:
    return Finding(
        code=code, title="t", question="everywhere", outcome="fault", severity=severity, sentence="It is so.",
        where=where, details={"promise": promise},
    )  # fmt: skip


@pytest.mark.parametrize(("where", "severity"), [("group a", "note"), ("group b", "warning")])
def test_implied_sets_of_another_group_are_a_fault_of_their_own(where: str, severity: str) -> None:
    found = told_once([fault("CAL201", where, IMPLIED_SETS), fault("CAL504", "group a")], binary=True)
    (sets,) = (finding for finding in found if finding.code == "CAL201")
    assert sets.severity == severity
    assert ("This is part of CAL504." in sets.sentence) == (severity == "note")


def test_implied_sets_of_several_classes_are_explained_by_the_top_label_first() -> None:
    given = [fault(code, promise=IMPLIED_SETS) for code in ("CAL101", "CAL503", "CAL501")]
    (sets,) = (finding for finding in told_once(given, binary=False) if finding.code == "CAL101")
    assert sets.details["explained_by"] == "CAL501"


def test_promises_per_row_that_are_off_are_told_once() -> None:
    found = told_once([fault("CAL101", promise=PER_ROW), fault("CAL501", promise=PER_ROW)], binary=False)
    coverage, probabilities = found
    assert (coverage.severity, probabilities.severity) == ("note", "warning")
    assert coverage.sentence.endswith("This is part of CAL501.")


@pytest.mark.parametrize("severities", [("issue", "warning"), ("warning", "issue"), ("issue", "note")])
def test_what_explains_takes_over_the_larger_severity(severities: tuple[str, str]) -> None:
    explained, explaining = severities
    found = told_once(
        [fault("CAL203", severity=explained), fault("CAL202", severity=explaining)], binary=True
    )
    assert [finding.severity for finding in found] == ["note", "issue"]
    assert found[0].details["own_severity"] == explained


def test_a_stretch_above_the_bound_is_part_of_losses_that_drift() -> None:
    found = told_once([fault("CAL601"), fault("CAL607")], binary=False)
    assert found[1].details["explained_by"] == "CAL601"
