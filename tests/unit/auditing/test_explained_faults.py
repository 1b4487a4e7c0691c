"""One fault is told once, and no fault is said to be part of another one that is elsewhere."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calipers
from calipers.auditing.explained_faults import told_once
from calipers.auditing.faults_without_rows import vanishes_within
from calipers.auditing.promises import IMPLIED_SETS, PER_ROW, TOP
from calipers.cli.options import exit_code
from calipers.report.document import answer_question
from calipers.results import Estimate, Finding


def fault(
    code: str, where: str = "", promise: str = "", severity: str = "warning", value: float | None = None
) -> Finding:
    return Finding(
        code=code, title="t", question="everywhere", outcome="fault", severity=severity, sentence="It is so.",
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


def test_promises_per_row_that_are_off_are_told_once() -> None:
    found = told_once([fault("CAL101", promise=PER_ROW), fault("CAL501", promise=PER_ROW)], binary=False)
    coverage, probabilities = found
    assert (coverage.severity, probabilities.severity) == ("note", "warning")
    assert coverage.sentence.endswith("This is part of CAL501.")
    # Hard rows that are off are a place, not another view of all rows.
    found = told_once([fault("CAL401", promise=PER_ROW), fault("CAL501", promise=PER_ROW)], binary=False)
    assert [finding.severity for finding in found] == ["warning", "warning"]


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


def over_time(narrow: float, *, always: bool) -> dict[str, np.ndarray]:
    """Intervals that are too narrow since row 1200, or at all times where they are narrow, with noisier rows since."""
    n, rng = 2000, np.random.default_rng(0)
    late, spread = np.arange(n) >= 1200, np.exp(0.3 * rng.normal(size=n))
    tight = spread < 0.75 if always else late
    half = 1.645 * spread * np.where(tight, narrow, 1.0)
    y = spread * rng.normal(size=n) * np.where(late & always, 1.5, 1.0)
    return {"y_true": y, "intervals": np.column_stack([-half, half]), "time": np.arange(n)}


def test_intervals_that_became_too_narrow_are_one_fault() -> None:
    found = calipers.audit(**over_time(0.6, always=False), random_state=0)
    faults = {finding.code: finding for finding in found.faults}
    assert faults["CAL204"].severity == "issue"
    assert faults["CAL401"].details["explained_by"] == "CAL204"
    assert faults["CAL401"].sentence.endswith("This is part of CAL204.")


def test_narrow_intervals_that_miss_at_all_times_are_a_fault_of_their_own() -> None:
    found = calipers.audit(**over_time(0.6, always=True), random_state=0)
    severities = {finding.code: finding.severity for finding in found.faults}
    assert severities["CAL204"] == "issue"
    assert severities["CAL401"] == "issue"


def test_time_is_explained_by_hard_rows_that_came_late() -> None:
    """Hard rows are missed at all times; there are more of them later."""
    rng = np.random.default_rng(1)
    hard = rng.random(3000) < np.where(np.arange(3000) >= 1500, 0.6, 0.1)
    kept = rng.random(3000) < np.where(hard, 0.7, 0.95)
    late = np.arange(3000) >= 1500
    assert vanishes_within(kept - 0.9, late, hard)
    assert not vanishes_within(kept - 0.9, hard, late)


def test_what_vanishes_by_chance_is_rare() -> None:
    """Two faults side by side stay two: a part that misses 20 % more often, apart from the time."""
    rng, folded = np.random.default_rng(2), 0
    for _ in range(200):
        late, part = np.arange(1000) >= 600, rng.random(1000) < 0.2
        kept = rng.random(1000) < 0.9 - 0.2 * part - 0.15 * late
        folded += vanishes_within(kept - 0.9, part, late)
    assert folded <= 6  # a shortfall of 5.5 standard errors is missed at 2.33 with probability 0.001


def test_misses_that_change_with_time_are_told_once() -> None:
    rng = np.random.default_rng(3)
    covered = rng.random(2000) < np.where(np.arange(2000) >= 1200, 0.65, 0.9)
    found = calipers.audit(covered=covered, time=np.arange(2000), random_state=0)
    faults = {finding.code: finding for finding in found.faults}
    assert faults["CAL204"].severity == "issue"
    assert (faults["CAL601"].severity, faults["CAL601"].details["explained_by"]) == ("note", "CAL204")
    answer = next(q for q in found.to_dict()["questions"] if q["question"] == "forecast")
    assert (answer["answer"], answer["label"]) == ("no", "it drifts")


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


def test_no_region_is_called_fine_beside_coverage_that_depends_on_the_features() -> None:
    clean = Finding(code="CAL203", title="t", question="everywhere", outcome="clean", sentence="No region.")
    regions, _ = told_once([clean, fault("CAL202")], binary=False)
    assert regions.sentence.endswith("see CAL202.")
    assert regions.details["descriptive"]
    assert told_once([clean], binary=False) == [clean]


@pytest.mark.parametrize(("level", "severity"), [("issue", "note"), ("note", "warning")])
def test_narrower_intervals_are_a_note_where_the_level_is_broken(level: str, severity: str) -> None:
    narrow, _ = told_once([fault("CAL302"), fault("CAL101", severity=level)], binary=False)
    assert narrow.severity == severity
    assert narrow.sentence.endswith("mended first (CAL101).") == (severity == "note")


@pytest.mark.parametrize(
    ("severity", "answer", "label"), [("issue", "no", "no"), ("warning", "doubtful", "not quite")]
)
def test_hard_rows_that_are_missed_answer_whether_it_covers_everywhere(
    severity: str, answer: str, label: str
) -> None:
    part = Finding(
        code="CAL401", title="t", question="adaptive", outcome="fault", severity=severity, sentence="Hard rows.",
        details={"promise": "coverage of the sets", "slices": "difficulty", "effect": 0.2},
    )  # fmt: skip
    told = answer_question({"question": "everywhere", "title": "t"}, [part])
    assert (told["answer"], told["label"], told["sentence"]) == (answer, label, "Hard rows.")


def test_over_coverage_is_not_about_the_rows_that_were_missed() -> None:
    y = np.random.default_rng(0).normal(size=2000)
    found = calipers.audit(y, intervals=np.tile([-2.6, 2.6], (2000, 1)), random_state=0)
    assert found.rows_of("CAL102").all()


def softmax(z: np.ndarray) -> np.ndarray:
    shares = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(shares / shares.sum(axis=1, keepdims=True))


def sharp_in_a_group(seed: int, *, everywhere: float = 1.0, n: int = 5000) -> dict[str, np.ndarray]:
    """Probabilities of four classes: log-odds 2.5 times too large in one group, and by a factor in all."""
    rng = np.random.default_rng(seed)
    groups, z = rng.choice(list("abcde"), n), 1.5 * rng.normal(size=(n, 4))
    y = (softmax(z).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 3)
    stated = softmax(z * everywhere * np.where(groups == "c", 2.5, 1.0)[:, None])
    return {"y_true": y, "probabilities": stated, "groups": groups}


@pytest.mark.parametrize("seed", range(3))
def test_over_confidence_of_one_group_is_told_once_and_by_the_group(seed: int) -> None:
    found = calipers.audit(**sharp_in_a_group(seed), random_state=0)
    told = [finding for finding in found.faults if "explained_by" not in finding.details]
    assert [(finding.code, finding.severity) for finding in told] == [("CAL504", "issue")]
    assert told[0].where == "group c"
    also = {finding.code for finding in found.faults} - {"CAL504"}
    assert {"CAL501", "CAL509"} <= also == set(told[0].details["also_seen_as"])
    assert found.faults[0].code == "CAL504"


def test_over_confidence_of_all_rows_is_no_part_of_the_group_that_is_worse() -> None:
    found = calipers.audit(**sharp_in_a_group(0, everywhere=1.7), random_state=0)
    faults = {finding.code: finding for finding in found.faults}
    assert "explained_by" not in faults["CAL501"].details
    assert "explained_by" not in faults["CAL504"].details


def a_group(seed: int, *, level: float, twin: bool) -> dict[str, np.ndarray]:
    """Promises kept less often in one group, and a feature that says which rows those are."""
    rng = np.random.default_rng(seed)
    groups = rng.choice(["EU", "US", "Asia"], 4000, p=[0.5, 0.35, 0.15])
    asia = groups == "Asia"
    feature = asia if twin else rng.random(4000)
    covered = rng.random(4000) < np.where(asia, 0.6, level)
    return {"covered": covered, "groups": groups, "X": np.column_stack([feature, rng.random(4000)])}


def test_a_region_that_is_a_group_is_told_by_the_group_and_the_shortfall_of_all_rows_names_it() -> None:
    found = calipers.audit(**a_group(0, level=0.9, twin=True), random_state=0)
    faults = {finding.code: finding for finding in found.faults}
    assert {"CAL101", "CAL201", "CAL202"} <= faults.keys()
    parts = {code for code, finding in faults.items() if finding.details.get("explained_by") == "CAL201"}
    assert parts == faults.keys() - {"CAL101", "CAL201"}
    assert faults["CAL101"].severity == faults["CAL201"].severity == "issue"
    assert faults["CAL101"].sentence.endswith("Without the rows of CAL201 it is kept.")
    assert "What to do: Mend CAL201 first" in found.to_markdown()


def test_the_shortfall_of_all_rows_is_its_own_fault_where_the_others_fall_short_too() -> None:
    for seed in range(5):
        found = calipers.audit(**a_group(seed, level=0.86, twin=False), random_state=0)
        faults = {finding.code: finding for finding in found.faults}
        assert "Without the rows" not in faults["CAL101"].sentence
        assert "explained_by" not in faults["CAL201"].details


def drifting(late: float, *, gradual: bool) -> dict[str, np.ndarray]:
    """Errors that grow after row 2000 at once, or from row 800 on little by little."""
    rng, at = np.random.default_rng(5), np.arange(3000)
    spread = 1 + late * (np.clip((at - 800) / 1500, 0, 1) if gradual else at >= 2000)
    half = np.tile([-1.645, 1.645], (3000, 1))
    return {"y_true": spread * rng.normal(size=3000), "y_pred": np.zeros(3000), "intervals": half, "time": at}


def test_one_change_has_one_date() -> None:
    faults = {f.code: f for f in calipers.audit(**drifting(0.8, gradual=False), random_state=0).faults}
    since = faults["CAL204"].where
    assert faults["CAL601"].where == since
    assert since.capitalize() in faults["CAL601"].sentence
    assert faults["CAL601"].details["explained_by"] == "CAL204"
    evidence = faults["CAL601"].evidence
    assert evidence is not None
    assert float(evidence) == pytest.approx(evidence.details["after"] - evidence.details["before"])


def test_two_dates_of_a_gradual_change_say_why() -> None:
    faults = {f.code: f for f in calipers.audit(**drifting(3.0, gradual=True), random_state=0).faults}
    assert faults["CAL204"].where != faults["CAL601"].where
    assert "is different since" in faults["CAL601"].sentence


def test_the_top_label_of_two_classes_is_read_from_rows_of_its_own() -> None:
    rng = np.random.default_rng(0)
    p = rng.random(400)
    found = calipers.audit(rng.random(400) < p, probabilities=p, random_state=0)
    assert TOP.key not in {promise.key for promise in found.design.promises}


def test_a_report_tells_an_explained_fault_beside_the_one_that_explains_it() -> None:
    found = calipers.audit(**a_group(0, level=0.9, twin=True), random_state=0)
    told = str(found)
    assert told.startswith("Calipers audit: Found 2 issues; ")
    assert "Also seen as: coverage depends on the features (CAL202)" in " ".join(told.split())
    assert "\nCAL202 " not in told
    assert "**CAL202" not in found.to_markdown()
    page = found.to_html()
    assert page.count('id="fault-CAL202"') == 1
    assert page.count('<article class="fault') == 2


def test_a_question_is_answered_by_the_fault_that_names_its_rows() -> None:
    found = calipers.audit(**sharp_in_a_group(0), random_state=0)
    answer = next(q for q in found.to_dict()["questions"] if q["question"] == "probabilities")
    assert answer["sentence"].startswith("In group c ")


@pytest.mark.parametrize(("sharper", "severity"), [(1.0, "warning"), (3.0, "issue")])
def test_hard_rows_that_probabilities_foresee_are_a_warning_else_an_issue(
    sharper: float, severity: str
) -> None:
    """Sets of the top label alone: honest probabilities foresee misses of hard rows, sharp ones do not."""
    rng = np.random.default_rng(4)
    z = 2.0 * rng.normal(size=(6000, 3))
    y = (softmax(z).cumsum(axis=1) < rng.random((6000, 1))).sum(axis=1).clip(0, 2)
    stated = softmax(sharper * z)
    sets = stated >= stated.max(axis=1, keepdims=True)
    found = calipers.audit(y, probabilities=stated, sets=sets, alpha=0.2, random_state=0)
    (hard,) = (finding for finding in found.faults if finding.code == "CAL401")
    assert hard.details.get("own_severity", hard.severity) == severity


@pytest.mark.parametrize(("few", "label"), [(True, "as far as tried"), (False, "yes")])
def test_one_rival_earns_no_yes_to_narrowness(few: bool, label: str) -> None:
    sizes = Finding(
        code="CAL302", title="t", question="narrow", outcome="clean", sentence="Tried.",
        details={"few_rivals": few},
    )  # fmt: skip
    assert answer_question({"question": "narrow", "title": "t"}, [sizes])["label"] == label


def planted(place: str) -> dict[str, Any]:
    """Promises kept in 60 % of a fifth of the rows that share a group, a region or a stretch of time."""
    rng, n = np.random.default_rng(7), 4000
    groups, X, time = rng.choice(list("abcde"), n), rng.random((n, 2)), np.arange(n)
    rows = {"group": groups == "c", "region": X[:, 0] > 0.8, "time": time >= 3200}[place]
    covered = rng.random(n) < np.where(rows, 0.6, 0.9)
    return {"covered": covered, "groups": groups, "X": X, "time": time}


@pytest.mark.parametrize(("place", "codes"), [("group", "CAL201"), ("region", "CAL202"), ("time", "CAL204")])
def test_the_planted_place_leads_beside_all_other_slices(place: str, codes: str) -> None:
    found = calipers.audit(**planted(place), random_state=0)
    told = [finding for finding in found.faults if "explained_by" not in finding.details]
    assert {(finding.code, finding.severity) for finding in told} == {("CAL101", "issue"), (codes, "issue")}
    (whole,) = (finding for finding in told if finding.code == "CAL101")
    assert whole.sentence.endswith(f"Without the rows of {codes} it is kept.")
    parts = [finding.code for finding in found.faults if "explained_by" in finding.details]
    assert bool(parts) == (place != "group")
    assert all(exit_code(found.findings, part) == 1 for part in parts)


def test_sets_and_probabilities_that_are_off_in_one_group_both_lead() -> None:
    given = sharp_in_a_group(0)
    sets = given["probabilities"] >= np.quantile(given["probabilities"].max(axis=1), 0.02)
    found = calipers.audit(**given, sets=sets, alpha=0.3, random_state=0)
    faults = {finding.code: finding for finding in found.faults}
    assert "explained_by" not in faults["CAL504"].details
    assert faults["CAL501"].details["explained_by"] == "CAL504"
    assert all(
        not finding.code.startswith(("CAL1", "CAL2", "CAL4"))
        or finding.details.get("explained_by") != "CAL504"
        for finding in found.faults
    )
