"""One fault is told once, and no fault is said to be part of another one that is elsewhere."""

from __future__ import annotations

import pytest

from calipers.auditing.explained_faults import told_once
from calipers.auditing.promises import IMPLIED_SETS
from calipers.results import Estimate, Finding


def fault(code: str, where: str = "", promise: str = "", value: float | None = None) -> Finding:
    return Finding(
        code=code, title="t", question="everywhere", outcome="fault", severity="warning", sentence="It is so.",
        where=where, details={"promise": promise},
        evidence=None if value is None else Estimate(name="gap", value=value),
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


@pytest.mark.parametrize(
    ("binary", "other", "gap", "explained"),
    [
        (True, "CAL503", -0.05, True),
        (True, "CAL503", 0.05, True),
        (False, "CAL501", -0.05, True),
        (False, "CAL502", 0.05, True),
        (False, "CAL502", -0.05, False),
        (False, "CAL503", -0.05, False),
    ],
)
def test_a_wrong_mean_of_all_rows_is_part_of_the_wrong_range(
    binary: bool, other: str, gap: float, explained: bool
) -> None:
    found = told_once([fault("CAL509", value=gap), fault(other)], binary=binary)
    (mean,) = (finding for finding in found if finding.code == "CAL509")
    assert (mean.details.get("explained_by") == other) == explained
    assert mean.severity == ("note" if explained else "warning")
