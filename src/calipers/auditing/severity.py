"""From evidence to a verdict: significance after correction, and size of the effect.

A reading becomes a fault only when its p-value, corrected for every test of the audit by Holm's
method, is at most `LEVEL`. How serious the fault is follows from the interval around the effect:

- issue: the whole interval lies beyond the tolerance;
- warning: the estimate lies beyond the tolerance, the interval does not;
- note: real, but smaller than the tolerance.

A reading that is not a fault is clean when its interval excludes an effect of `SERIOUS` times the
tolerance, and "cannot tell" otherwise. A point estimate alone never decides.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calipers.auditing.reading import Reading
from calipers.inference import holm
from calipers.results import SEVERITIES, Finding, severity_rank

LEVEL = 0.05
SERIOUS = 3.0


def judge_all(readings: Sequence[Reading], *, rows: int | None = None, level: float = LEVEL) -> list[Finding]:
    """A finding per reading, with p-values corrected for the number of tests; ``rows`` of the audit."""
    p_values = [np.nan if r.p_value is None or r.not_applicable else r.p_value for r in readings]
    adjusted = holm(p_values) if p_values else np.array([])
    tests = int(np.sum(~np.isnan(adjusted)))
    return [
        judge(reading, None if math.isnan(p) else float(p), tests=tests, rows=rows, level=level)
        for reading, p in zip(readings, adjusted, strict=True)
    ]


def judge(
    reading: Reading,
    adjusted: float | None,
    *,
    tests: int = 1,
    rows: int | None = None,
    level: float = LEVEL,
) -> Finding:
    """The finding of one reading, given its corrected p-value (None: it was not tested)."""
    base = Finding(
        code=reading.code,
        title=reading.subject or reading.title,
        question=reading.question,
        outcome="not_applicable",
        sentence=reading.not_applicable,
        evidence=reading.evidence,
        details=dict(reading.details) | _numbers(reading, adjusted, tests),
    )
    if reading.not_applicable:
        return base
    severity = severity_of(reading, adjusted, level=level)
    if severity != "none":
        return replace(
            base,
            title=reading.title,
            outcome="fault",
            severity=severity,
            sentence=reading.fault,
            where=reading.where,
            repair=reading.repair,
        )
    if _is_open(reading):
        return replace(
            base, outcome="cannot_tell", sentence=_open_sentence(reading, rows), n_needed=reading.rows_needed
        )
    return replace(base, outcome="clean", sentence=reading.clean)


def severity_of(reading: Reading, adjusted: float | None, *, level: float = LEVEL) -> str:
    """none, note, warning or issue; see the rules at the top of this file."""
    if adjusted is None or adjusted > level:
        return "none"
    if reading.effect_low is not None and reading.effect_low > reading.tolerance:
        found = "issue"
    elif reading.effect is not None and reading.effect > reading.tolerance:
        found = "warning"
    else:
        found = "note"
    return min(found, reading.cap, key=severity_rank)


def _is_open(reading: Reading) -> bool:
    """Whether the rows leave room for a serious effect."""
    return reading.effect_high is not None and reading.effect_high > SERIOUS * reading.tolerance


def _open_sentence(reading: Reading, rows: float | None) -> str:
    """How many rows are missing; the evidence may be about a part of them, so the audit's own are counted."""
    if rows is None:
        rows = reading.evidence.n if reading.evidence is not None else None
    if reading.rows_needed is None or rows is None or reading.rows_needed <= rows:
        return "Cannot tell with these rows; the interval leaves room for a fault that matters."
    more = math.ceil(reading.rows_needed - rows)
    return f"Cannot tell with {rows:,.0f} rows; about {more:,} more are needed.".replace(",", " ")


def _numbers(reading: Reading, adjusted: float | None, tests: int) -> dict[str, object]:
    return {
        "p_value": reading.p_value,
        "p_adjusted": adjusted,
        "tests_in_audit": tests,
        "effect": reading.effect,
        "effect_low": reading.effect_low,
        "effect_high": reading.effect_high,
        "tolerance": reading.tolerance,
    }


def worst(severities: Sequence[str]) -> str:
    """The highest of some severities; "none" of none."""
    return max(severities, key=severity_rank, default=SEVERITIES[0])
