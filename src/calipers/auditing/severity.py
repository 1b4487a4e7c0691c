"""From evidence to a verdict: significance after correction, and size of the effect.

A check becomes a fault only when its p-value, corrected for every test of the audit by Holm's
method, is at most `LEVEL`. How serious the fault is follows from the interval around the effect:

- issue: the whole interval lies beyond the tolerance;
- warning: the estimate lies beyond the tolerance, the interval does not;
- note: real, but smaller than the tolerance.

A check that is not a fault is clean when its interval excludes an effect of `SERIOUS` times the
tolerance, and "cannot tell" otherwise. A point estimate alone never decides. ``min_rows`` puts a number of
rows in place of that rule: with fewer every check that is not a fault is "cannot tell", with as many none is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calipers.auditing.check_result import CheckResult
from calipers.inference import holm
from calipers.results import SEVERITIES, Finding, severity_rank
from calipers.results.formatting import format_count

# Of every decision by p-values that are corrected for all tests made together.
LEVEL = 0.05
# Said of what noise alone would rarely do, where the correction for all tests leaves no fault.
NOT_CLEAR = "Corrected for all tests of this audit that is not a clear fault."
# Said of what its interval shows to be off where no test confirms it.
UNTESTED = "Its interval leaves out what was promised, but there is no exact test here: no finding."
SERIOUS = 3.0


def findings_of(
    results: Sequence[CheckResult],
    *,
    rows: int | None = None,
    min_rows: int | None = None,
    level: float = LEVEL,
) -> list[Finding]:
    """A finding per check, with p-values corrected for the number of tests; ``rows`` of the audit."""
    p_values = [np.nan if r.p_value is None or r.not_applicable else r.p_value for r in results]
    adjusted = holm(p_values) if p_values else np.array([])
    tests = int(np.sum(~np.isnan(adjusted)))
    return [
        finding_of(
            result,
            None if math.isnan(p) else float(p),
            tests=tests,
            rows=rows,
            min_rows=min_rows,
            level=level,
        )
        for result, p in zip(results, adjusted, strict=True)
    ]


def finding_of(
    result: CheckResult,
    adjusted: float | None,
    *,
    tests: int = 1,
    rows: int | None = None,
    min_rows: int | None = None,
    level: float = LEVEL,
) -> Finding:
    """The finding of one check, given its corrected p-value (None: it was not tested)."""
    base = Finding(
        code=result.code,
        title=result.subject or result.title,
        question=result.question,
        outcome="not_applicable",
        sentence=result.not_applicable,
        evidence=result.evidence,
        details=dict(result.details) | _numbers(result, adjusted, tests),
    )
    if result.not_applicable and result.rows_needed is None:
        return base
    if result.not_applicable:  # for lack of rows
        return replace(base, outcome="cannot_tell", n_needed=result.rows_needed)
    severity = severity_of(result, adjusted, level=level)
    if severity != "none":
        return replace(
            base,
            title=result.title,
            outcome="fault",
            details={key: value for key, value in base.details.items() if key != "descriptive"},
            severity=severity,
            sentence=result.fault,
            where=result.where,
            repair=result.repair,
        )
    if min_rows is not None and rows is not None:
        if rows < min_rows and not result.details.get("descriptive"):
            said = f"Cannot tell: there are {format_count(rows)} rows, and min_rows asks for {min_rows}."
            return replace(base, outcome="cannot_tell", sentence=said, n_needed=min_rows)
    elif _is_untested(result):
        return replace(base, outcome="cannot_tell", sentence=f"{result.fault} {UNTESTED}")
    elif _is_open(result):
        return replace(
            base, outcome="cannot_tell", sentence=_open_sentence(result, rows), n_needed=result.rows_needed
        )
    return replace(base, outcome="clean", sentence=result.clean)


def severity_of(result: CheckResult, adjusted: float | None, *, level: float = LEVEL) -> str:
    """none, note, warning or issue; see the rules at the top of this file."""
    if adjusted is None or adjusted > level:
        return "none"
    if result.effect_low is not None and result.effect_low > result.tolerance:
        found = "issue"
    elif result.effect is not None and result.effect > result.tolerance:
        found = "warning"
    else:
        found = "note"
    return min(found, result.cap, key=severity_rank)


def _is_untested(result: CheckResult) -> bool:
    """Whether the interval leaves out a kept promise and there is no test, as with importance weights."""
    descriptive = result.details.get("descriptive")
    return result.p_value is None and not descriptive and (result.effect_low or 0.0) > 0


def _is_open(result: CheckResult) -> bool:
    """Whether the rows leave room for a serious effect."""
    serious = SERIOUS * result.tolerance if result.serious is None else result.serious
    return result.effect_high is not None and result.effect_high > serious


def _open_sentence(result: CheckResult, rows: float | None) -> str:
    """How many rows are missing; the evidence may be about a part of them, so the audit's own are counted."""
    if rows is None:
        rows = result.evidence.n if result.evidence is not None else None
    if result.rows_needed is None or rows is None or result.rows_needed <= rows:
        return "Cannot tell with these rows; the interval leaves room for a fault that matters."
    more = format_count(math.ceil(result.rows_needed - rows))
    return (
        f"Cannot tell with {format_count(rows)} row{'' if rows == 1 else 's'}; about {more} more are needed."
    )


def _numbers(result: CheckResult, adjusted: float | None, tests: int) -> dict[str, object]:
    return {
        "p_value": result.p_value,
        "p_adjusted": adjusted,
        "tests_in_audit": tests,
        "effect": result.effect,
        "effect_low": result.effect_low,
        "effect_high": result.effect_high,
        "tolerance": result.tolerance,
        "promise": result.promise,
        "slices": result.slices,
    }


def worst(severities: Sequence[str]) -> str:
    """The highest of some severities; "none" of none."""
    return max(severities, key=severity_rank, default=SEVERITIES[0])
