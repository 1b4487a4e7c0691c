"""Audits of the samples as plain values: outcomes of the findings, and the numbers with how far they may move."""

from __future__ import annotations

import math
import re
from typing import Any

import calipers
from calipers.auditing import audit_stream
from calipers.engines import ArraySource
from tests.golden.samples import SAMPLES, Sample, weighted_rows
from tests.golden.signatures import aliases_may_warn

# Seeds of the recording; what differs between them draws.
SEEDS = (0, 1, 2, 3, 4)
# Estimates of the model of coverage given the features, and of what is searched with it.
LEARNED = re.compile(r"ert\b|where |slab|region|rule", re.IGNORECASE)
LEARNED_CODES = {"CAL202", "CAL203"}
RELATIVE = 1e-9


def audit_in_memory(sample: Sample, seed: int) -> Any:
    given = dict(sample)
    return calipers.audit(given.pop("y_true"), **given, random_state=seed)


def audit_streamed(sample: Sample, seed: int) -> Any:
    """The same rows in pieces of 250."""
    given = dict(sample)
    options = {key: given.pop(key) for key in ("alpha", "n_calibration") if key in given}
    classes = given.pop("classes", None)
    source = ArraySource(given, classes=classes, alpha=options.get("alpha", 0.1), piece_rows=250)
    with aliases_may_warn():
        return audit_stream(source, **options, random_state=seed)


def outcomes(audit: Any) -> dict[str, list[str]]:
    """Code -> outcome and severity."""
    return {finding.code: [finding.outcome, finding.severity] for finding in audit.findings}


def numbers(audit: Any) -> dict[str, float]:
    """Name -> value, of what is not learned."""
    return {
        name: float(estimate)
        for name, estimate in audit.estimates.items()
        if not LEARNED.search(name) and not math.isnan(float(estimate))
    }


def same(left: float, right: float) -> bool:
    return math.isclose(left, right, rel_tol=RELATIVE, abs_tol=1e-12)


def unequal(stored: dict[str, float], found: dict[str, float]) -> dict[str, tuple[float, float | None]]:
    """Stored name -> (stored, found) where a number is missing or another one."""
    return {
        name: (value, found.get(name))
        for name, value in stored.items()
        if name not in found or not same(value, found[name])
    }


def record() -> dict[str, Any]:
    """What every sample gives today, and which numbers of the weighted rows are right today."""
    found = {name: record_sample(make()) for name, make in SAMPLES.items()}
    weights, repeats = weighted_rows()
    weighted = numbers(audit_streamed(weights, 0))
    written_out = [numbers(audit_streamed(repeats, seed)) for seed in (0, 1)]
    right = {
        name: value
        for name, value in weighted.items()
        if all(same(value, other.get(name, math.nan)) for other in written_out)
    }
    return {"samples": found, "weighted": right}


def record_sample(sample: Sample) -> dict[str, Any]:
    audits = [audit_in_memory(sample, seed) for seed in SEEDS]
    streamed = audit_streamed(sample, 0)
    exact, drawn = _split([numbers(audit) for audit in audits], audits[0].estimates)
    return {
        "rows": audits[0].rows,
        "findings": _steady_outcomes([outcomes(audit) for audit in audits]),
        "exact": exact,
        "drawn": drawn,
        "streamed": sorted(n for n, v in numbers(streamed).items() if n in exact and same(v, exact[n])),
        "streamed_findings": _steady_outcomes([outcomes(audit_streamed(sample, seed)) for seed in SEEDS[:3]]),
    }


def _steady_outcomes(found: list[dict[str, list[str]]]) -> dict[str, list[str]]:
    """Findings that every seed agrees about; learned ones only where a fault is found.

    What does not apply today may apply tomorrow.
    """
    steady = {c: o for c, o in found[0].items() if all(other.get(c) == o for other in found)}
    return {
        code: outcome
        for code, outcome in steady.items()
        if outcome[0] != "not_applicable" and (code not in LEARNED_CODES or outcome[0] == "fault")
    }


def _split(found: list[dict[str, float]], estimates: Any) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Numbers that every seed agrees about, and [value, allowed distance] of the others."""
    exact, drawn = {}, {}
    for name, value in found[0].items():
        values = [other[name] for other in found if name in other]
        if len(values) == len(found) and all(same(value, other) for other in values):
            exact[name] = value
        elif len(values) == len(found):
            drawn[name] = [value, 3 * (estimates[name].std_error or _spread(values))]
    return exact, drawn


def _spread(values: list[float]) -> float:
    """The standard deviation over seeds of the difference of two draws."""
    centre = sum(values) / len(values)
    return math.sqrt(2 * sum((value - centre) ** 2 for value in values) / (len(values) - 1))
