"""Every promise, everywhere: kept promises are left alone, broken ones are found where they are broken."""

from __future__ import annotations

import pytest
from benchmarks.code_worlds import CODE_FAULTS, audit_code, has_code
from benchmarks.promise_worlds import FAULTS, KINDS, ROWS, audit_world, is_found
from scipy import stats

from calipers.auditing.checks import CHECKS

# The shares that the guide states, and how improbable a count below them must be to fail.
ACCUSED, FOUND, SURE = 0.05, 0.95, 0.001
CELLS = [(kind, fault) for kind in KINDS for fault in KINDS[kind].codes]


def accused(kind: str, runs: range, rows: int, *, features: bool) -> int:
    audits = [audit_world(kind, None, rows, seed, features=features) for seed in runs]
    return sum(audit.severity == "issue" for audit in audits)


def found(kind: str, fault: str, runs: range) -> int:
    rows = ROWS[kind, fault]
    return sum(is_found(kind, fault, audit_world(kind, fault, rows, seed)) for seed in runs)


def test_every_fault_of_every_promise_has_its_rows() -> None:
    assert set(ROWS) == set(CELLS)
    assert {fault for _, fault in CELLS} == set(FAULTS)


def test_every_code_has_rows_at_which_it_is_found() -> None:
    known = {code for kind in KINDS.values() for codes in kind.codes.values() for code in codes}
    every = {check.code for check in CHECKS} | {"CAL102", "CAL502"}  # the other sides of CAL101 and CAL501
    assert known | set(CODE_FAULTS) == every - {"CAL604"}  # which describes and is never a fault


def test_the_fault_of_a_code_is_found_at_its_rows() -> None:
    runs = range(2)
    hits = sum(
        has_code(code, audit_code(code, fault.rows, seed))
        for code, fault in CODE_FAULTS.items()
        for seed in runs
    )
    assert hits >= stats.binom.ppf(SURE, len(runs) * len(CODE_FAULTS), FOUND)


@pytest.mark.slow
@pytest.mark.parametrize("code", CODE_FAULTS)
def test_the_fault_of_a_code_is_found_in_95_percent_of_100_audits(code: str) -> None:
    hits = sum(has_code(code, audit_code(code, CODE_FAULTS[code].rows, seed)) for seed in range(100))
    assert hits >= stats.binom.ppf(SURE, 100, FOUND)


def test_kept_promises_are_left_alone() -> None:
    runs = range(4)
    issues = sum(accused(kind, runs, 400, features=False) for kind in KINDS)
    assert issues <= stats.binom.ppf(1 - SURE, len(runs) * len(KINDS), ACCUSED)


def test_broken_promises_are_found_and_placed() -> None:
    # Faults in a region are learnt from features, which takes long: see the slow version.
    cells = [(kind, fault) for kind, fault in CELLS if not FAULTS[fault].features]
    hits = sum(found(kind, fault, range(1)) for kind, fault in cells)
    assert hits >= stats.binom.ppf(SURE, len(cells), FOUND)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_at_most_5_percent_of_200_audits_of_kept_promises_raise_an_issue(kind: str) -> None:
    assert accused(kind, range(200), 700, features=True) <= stats.binom.ppf(1 - SURE, 200, ACCUSED)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "fault"), CELLS)
def test_a_fault_is_found_and_placed_in_95_percent_of_100_audits(kind: str, fault: str) -> None:
    assert found(kind, fault, range(100)) >= stats.binom.ppf(SURE, 100, FOUND)
