"""Severity follows from corrected significance and the interval of the effect, never from a point."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import calipers
from calipers.auditing.check_result import CheckResult
from calipers.auditing.severity import finding_of, findings_of
from calipers.auditing.tolerances import tolerance_at
from calipers.results import Estimate


def reading(**fields: object) -> CheckResult:
    base = {
        "code": "CAL999", "title": "planted", "question": "coverage", "p_value": 0.001, "effect": 0.06,
        "effect_low": 0.03, "effect_high": 0.09, "tolerance": 0.02, "fault": "It fails.", "clean": "It holds.",
        "evidence": Estimate(name="coverage", value=0.84, n=500),
    }  # fmt: skip
    return CheckResult(**(base | fields))


CASES = {
    "whole interval beyond the tolerance": ({}, "issue"),
    "only the estimate beyond it": ({"effect_low": 0.01}, "warning"),
    "real but small": ({"effect": 0.015, "effect_low": 0.01}, "note"),
    "capped": ({"cap": "warning"}, "warning"),
}


@pytest.mark.parametrize("case", CASES)
def test_a_significant_reading_is_as_serious_as_its_interval(case: str) -> None:
    fields, expected = CASES[case]
    finding = finding_of(reading(**fields), 0.01)
    assert (finding.outcome, finding.severity, finding.sentence) == ("fault", expected, "It fails.")


def test_a_large_effect_without_significance_is_no_fault() -> None:
    assert finding_of(reading(effect=0.5, effect_low=0.4, effect_high=0.6), 0.06).outcome == "cannot_tell"


def test_without_significance_a_narrow_interval_is_clean() -> None:
    finding = finding_of(reading(effect=0.01, effect_low=-0.02, effect_high=0.04), 0.5)
    assert (finding.outcome, finding.sentence) == ("clean", "It holds.")


def test_a_wide_interval_says_how_many_rows_would_settle_it() -> None:
    finding = finding_of(reading(effect_high=0.2, rows_needed=1500), 0.5)
    assert finding.outcome == "cannot_tell"
    assert finding.n_needed == 1500
    assert "about 1000 more are needed" in finding.sentence


def test_the_number_of_tests_counts() -> None:
    # 0.02 alone is significant at 0.05; as one of three it becomes 0.06.
    others = [reading(p_value=0.5), reading(p_value=0.9)]
    alone, together = (
        findings_of([reading(p_value=0.02)])[0],
        findings_of([reading(p_value=0.02), *others])[0],
    )
    assert (alone.outcome, together.outcome) == ("fault", "cannot_tell")
    assert together.details["p_adjusted"] == pytest.approx(0.06)
    assert together.details["tests_in_audit"] == 3


def test_readings_without_a_test_are_not_counted() -> None:
    untested = reading(p_value=None, effect_low=-0.01, effect_high=None)
    findings = findings_of([reading(p_value=0.03), untested])
    assert [finding.outcome for finding in findings] == ["fault", "clean"]


def test_a_check_that_could_not_be_made_says_why() -> None:
    finding = finding_of(reading(not_applicable="There is only one group."), None)
    assert (finding.outcome, finding.sentence) == ("not_applicable", "There is only one group.")


def test_the_rows_of_the_audit_are_counted_not_those_of_the_evidence() -> None:
    finding = finding_of(reading(effect_high=0.2, rows_needed=1500), 0.5, rows=1400)
    assert finding.sentence == "Cannot tell with 1400 rows; about 100 more are needed."


def test_a_finding_that_is_no_fault_is_called_after_what_was_looked_at() -> None:
    found = finding_of(reading(subject="marginal coverage", effect_high=0.01), 0.5)
    assert (found.outcome, found.title) == ("clean", "marginal coverage")
    assert finding_of(reading(subject="marginal coverage"), 0.01).title == reading().title


@pytest.mark.parametrize(
    ("chance", "tolerance"), [(0.5, 0.02), (0.9, 0.02), (0.1, 0.02), (0.05, 0.01), (0.99, 0.002), (0.0, 0.0)]
)
def test_a_rare_outcome_is_tolerated_by_a_fifth_of_it(chance: float, tolerance: float) -> None:
    assert tolerance_at(chance) == pytest.approx(tolerance)


def rare_events(n: int = 20_000) -> tuple[np.random.Generator, np.ndarray]:
    rng = np.random.default_rng(6)
    return rng, np.clip(np.exp(rng.normal(-5.0, 0.8, n)), 0.0, 0.5)


def test_twice_as_many_rare_events_as_stated_are_an_issue() -> None:
    rng, stated = rare_events()
    once, twice = (
        calipers.audit((rng.random(len(stated)) < times * stated).astype(int), probabilities=stated, random_state=0)
        for times in (1, 2)
    )  # fmt: skip
    assert once.severity == "none"
    assert next(f for f in twice.faults if f.code == "CAL503").severity == "issue"


def test_three_times_as_many_rare_events_are_an_issue_in_a_group_and_since_a_day() -> None:
    rng, stated = rare_events()
    group, day = rng.choice(list("abc"), len(stated)), np.arange(len(stated)) // 100
    wrong = {"CAL504": group == "b", "CAL506": day >= 140}
    for code, rows in wrong.items():
        y = (rng.random(len(stated)) < np.where(rows, 3, 1) * stated).astype(int)
        found = calipers.audit(y, probabilities=stated, groups=group, time=day, random_state=0)
        assert next(f for f in found.faults if f.code == code).severity == "issue"


def test_a_one_percent_quantile_that_is_exceeded_three_times_as_often_is_an_issue() -> None:
    y = np.random.default_rng(0).normal(size=4000)
    stated = np.tile(stats.norm.ppf([0.03, 0.5, 0.99]), (len(y), 1))
    found = calipers.audit(y, quantiles=stated, quantile_levels=[0.01, 0.5, 0.99], random_state=0)
    (fault,) = found.faults
    assert (fault.code, fault.severity, fault.where) == ("CAL507", "issue", "quantile 0.01")


def test_what_its_interval_shows_to_be_off_is_not_clean_for_want_of_a_test() -> None:
    untested = finding_of(reading(p_value=None, effect_high=0.05, effect_low=0.01), None)
    assert untested.outcome == "cannot_tell"
    assert untested.sentence.startswith("It fails.")
    assert finding_of(reading(p_value=None, effect_high=0.05, effect_low=-0.01), None).outcome == "clean"
    rng = np.random.default_rng(0)
    found = calipers.audit(
        rng.normal(size=4000), intervals=np.tile([-1.5, 1.5], (4000, 1)), sample_weight=rng.gamma(2, 1, 4000)
    )
    assert next(f for f in found.findings if f.code == "CAL101").outcome == "cannot_tell"
