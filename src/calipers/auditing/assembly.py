"""The results of all checks as one audit: corrected together, one finding per code, the table of promises."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from calipers.auditing.audit_result import Audit
from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.evidence_pictures import evidence_pictures
from calipers.auditing.explained_faults import told_once
from calipers.auditing.faults_without_rows import FaultsWithoutRows
from calipers.auditing.measurements import Design, Measurements
from calipers.auditing.plan import plan_audit, what_to_add
from calipers.auditing.questions import QUESTIONS
from calipers.auditing.severity import findings_of
from calipers.inputs.rows import Rows
from calipers.results import Estimate, EstimateTable, Finding, PromiseCell, PromiseTable, severity_rank
from calipers.results.promise_table import answer_of_finding

LONGEST_DETAIL = 200

_OUTCOME_ORDER = {"fault": 0, "cannot_tell": 1, "clean": 2, "not_applicable": 3}


def assemble(
    m: Measurements,
    checks: Sequence[Check],
    ready: Sequence[Check],
    results: Sequence[CheckResult],
    *,
    rows: Rows | None,
    min_rows: int | None = None,
    name: str,
    origin: str,
) -> Audit:
    """The audit from the results of its checks: corrected together, in order."""
    per_result = findings_of(results, rows=m.n, min_rows=min_rows)
    chosen = leading(per_result, results)
    told = told_once(
        [_counted_once(per_result[k], results[k], results) for k in chosen.values()],
        binary=len(m.classes) == 2,
        without_rows=FaultsWithoutRows(m, {code: results[k] for code, k in chosen.items()}),
    )
    findings = [*told, *_not_run(checks, ready, m.design)]
    return Audit(
        data=m.sample if rows is None else rows,
        design=m.design,
        plan=plan_audit(m.design, checks),
        findings=tuple(sorted(findings, key=_order)),
        estimates=EstimateTable(_estimates(results), title="Everything that was measured"),
        pictures=(*_pictures(results), *evidence_pictures(m, findings)),
        measured={
            question: tuple(e.name for r in results if r.question == question for e in r.estimates)
            for question in QUESTIONS
        },
        sample_rows=m.sample.n,
        name=name,
        origin=origin,
        promises=PromiseTable(
            [
                replace(cell, severity=_told_severity(cell, told))
                for finding, r in zip(per_result, results, strict=True)
                if r.slices and (cell := _cell(finding, r))
            ]
        ),
        selectors={code: results[k].rows for code, k in chosen.items() if per_result[k].outcome == "fault"},
    )


def leading(per_result: Sequence[Finding], results: Sequence[CheckResult]) -> dict[str, int]:
    """Code -> number of the finding that weighs most; all of them stand in the table of promises."""
    best: dict[str, int] = {}
    for number, finding in enumerate(per_result):
        now = best.get(finding.code)
        if now is None or _weight(per_result, results, number) > _weight(per_result, results, now):
            best[finding.code] = number
    return best


def _counted_once(finding: Finding, chosen: CheckResult, results: Sequence[CheckResult]) -> Finding:
    """The finding with its pictures and the number of promises it was chosen from."""
    if chosen.pictures:
        pictures = [picture.name for picture in chosen.pictures]
        finding = replace(finding, details=dict(finding.details) | {"pictures": pictures})
    subject = next(result.subject for result in results if result.code == finding.code)
    many = sum(result.subject == subject for result in results)
    return replace(finding, details=dict(finding.details) | {"levels": many}) if many > 1 else finding


def _weight(
    per_result: Sequence[Finding], results: Sequence[CheckResult], number: int
) -> tuple[int, int, float]:
    finding, p = per_result[number], results[number].p_value
    return -_OUTCOME_ORDER[finding.outcome], severity_rank(finding.severity), -(2.0 if p is None else p)


def _cell(finding: Finding, result: CheckResult) -> PromiseCell:
    answer = answer_of_finding(finding.outcome, finding.severity, finding.details)
    evidence = finding.evidence
    p = finding.details.get("p_adjusted")
    return PromiseCell(
        promise=result.promise, slice=result.slices, answer=answer,
        value=None if evidence is None else evidence.value, low=None if evidence is None else evidence.low,
        high=None if evidence is None else evidence.high, p_value=p if isinstance(p, float) else None,
        n=None if evidence is None else evidence.n, code=finding.code, where=finding.where or result.where,
        severity=str(finding.details.get("own_severity", finding.severity)),
    )  # fmt: skip


def _told_severity(cell: PromiseCell, told: Sequence[Finding]) -> str:
    """How serious the fault of a cell is, as its finding tells it: raised where it explains worse ones."""
    mine = [f for f in told if (f.code, f.details.get("promise")) == (cell.code, cell.promise)]
    return max((cell.severity, *(f.severity for f in mine)), key=severity_rank)


def _not_run(checks: Sequence[Check], ready: Sequence[Check], design: Design) -> list[Finding]:
    return [
        Finding(
            code=check.code,
            title=check.title,
            question=check.question,
            outcome="not_applicable",
            sentence=what_to_add(check, design),
        )
        for check in checks
        if check not in ready
    ]


def _order(finding: Finding) -> tuple[int, bool, int, str]:
    is_part = "explained_by" in finding.details
    return _OUTCOME_ORDER[finding.outcome], is_part, -severity_rank(finding.severity), finding.code


def _estimates(results: Iterable[CheckResult]) -> dict[str, Estimate]:
    return {e.name: _slim(e) for result in results for e in result.estimates}


def _slim(estimate: Estimate) -> Estimate:
    """Without the details that hold something for every row: an audit is not a copy of its data."""
    kept = {
        key: value
        for key, value in estimate.details.items()
        if not isinstance(value, (list, tuple, np.ndarray)) or len(value) <= LONGEST_DETAIL
    }
    return estimate if len(kept) == len(estimate.details) else replace(estimate, details=kept)


def _pictures(results: Iterable[CheckResult]) -> tuple[Picture, ...]:
    return tuple({p.name: p for result in results for p in result.pictures}.values())
