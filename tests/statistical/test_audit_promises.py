"""The audit keeps its promises: healthy predictors are left alone, planted faults get their code."""

from __future__ import annotations

import pytest
from scipy import stats

from tests.statistical.audit_worlds import PLANTED, clean_audit, detects

# At most 8 % of healthy audits may raise an issue; Holm's level promises 5 %.
RATE = 0.05


def issues(repeats: int, n: int) -> int:
    return sum(clean_audit(i, n).severity == "issue" for i in range(repeats))


def test_healthy_predictors_are_left_alone() -> None:
    repeats = 16
    assert issues(repeats, 800) <= stats.binom.ppf(0.999, repeats, RATE)


@pytest.mark.slow
def test_at_most_16_of_200_healthy_audits_raise_an_issue() -> None:
    assert issues(200, 2000) <= 16


@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_gets_its_code_at_the_stated_number_of_rows(fault: str) -> None:
    repeats, n = 12, PLANTED[fault][2]
    found = sum(detects(fault, n, seed)[0] for seed in range(repeats))
    assert found >= stats.binom.ppf(0.001, repeats, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("fault", PLANTED)
def test_a_planted_fault_is_found_in_95_of_100_audits(fault: str) -> None:
    assert sum(detects(fault, PLANTED[fault][2], seed)[0] for seed in range(100)) >= 95
