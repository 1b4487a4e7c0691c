"""Every number and every comparison in the sentences of an audit, against plain computations.

``false_statements(audit, given)`` lists what is not so. Numbers that follow from a fitted model or from random
splits cannot be computed again without it: those of CAL202, CAL203 and the fitted rivals are compared with the
counts that the finding carries, and these with the rows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from tests.triangulate.plain_facts import Plain

NUMBER = re.compile(r"(?<![\w.])(-?\d+(?:\.\d+)?)( %)?(?![\w])")
FORECAST = re.compile(r"between (\S+?)( %)? and (\S+?)( %)?,")
# Granular sizes and the slope at the threshold: savings agree up to this share of the size.
SAVING_TOLERANCE = 0.02


def false_statements(audit: Any, given: Mapping[str, Any]) -> list[str]:
    """Statements of an audit that plain computations do not bear out."""
    plain = Plain(given, audit.design.alphas[0])
    found = [
        f"{finding.code}: {problem} in {finding.sentence!r}"
        for finding in audit.findings
        if finding.outcome in ("fault", "clean")
        for problem in _problems(finding, audit, plain)
    ]
    return found + [f"estimate {name}: {problem}" for name, problem in _estimates(audit, plain)]


def _problems(finding: Any, audit: Any, plain: Plain) -> Iterator[str]:
    text, facts = _without_names(finding), _facts(finding, audit, plain)
    if finding.code == "CAL601" and (ends := FORECAST.search(text)):
        yield from _not_outward(ends, audit)
        text = text.replace(ends[0], "")
    for number, percent in NUMBER.findall(text):
        unit = 10.0 ** -len(number.partition(".")[2])
        value, unit = (float(number) / 100, unit / 100) if percent else (float(number), unit)
        if not any(abs(value - fact) <= 0.5 * unit * (1 + 1e-6) + 1e-12 for fact in facts):
            yield f"{number}{percent} is none of {[round(fact, 5) for fact in facts]}"
    yield from _false_comparisons(finding, plain)


def _not_outward(ends: re.Match[str], audit: Any) -> Iterator[str]:
    """Ends of a forecast that do not hold the interval, or are more than one unit of their last digit wide."""
    stated = next(e for name, e in audit.estimates.items() if " of the next " in name)
    for number, percent, end, side in (
        (ends[1], ends[2], stated.low, -1),
        (ends[3], ends[4], stated.high, 1),
    ):
        unit = 10.0 ** -len(number.partition(".")[2]) / (100 if percent else 1)
        value = float(number) / (100 if percent else 1)
        if not -1e-9 <= side * (value - end) <= unit * (1 + 1e-6):
            yield f"{number} is not {end} rounded outward"


def _without_names(finding: Any) -> str:
    """The sentence without labels, rules and ranges, whose numbers are names."""
    text = finding.sentence
    text = re.sub(r"In group .+? the (sets|intervals)", "the", text)
    text = re.sub(r"Where .+? the (sets|intervals)", "the", text)
    text = re.sub(r"Worst where .+? \(", "(", text)
    text = re.sub(r"of class \S+ differs", "differs", text)
    text = re.sub(r"probabilities (from|up to|above) .+? \(", "(", text)
    text = re.sub(r"along .+? \(", "(", text)
    return re.sub(r"In the \d+\w\w ", "In the ", text)


def _facts(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """The numbers that a sentence of this code may hold."""
    return [plain.promised, *_OF_CODE[finding.code](finding, audit, plain)]


def _coverage(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if "stated mass" in finding.sentence:
        kept, mass = plain.stated_sets
        return [float(kept.mean()), float(mass.mean())]
    return [plain.coverage, 500.0]


def _stated_there(finding: Any, audit: Any, plain: Plain) -> list[float]:
    """What was stated on average and what happened, in the rows that the finding is about."""
    if finding.outcome != "fault":
        return []
    there = audit.rows_of(finding.code)
    if "stated mass" in finding.details["promise"]:
        happened, stated = plain.stated_sets
    else:
        stated, happened = plain.probability
    facts = [
        float(stated[there].mean()),
        float(happened[there].mean()),
        float(there.sum()),
        float(there.mean()),
    ]
    span = finding.evidence.details.get("interval")
    inside = [] if span is None else plain.in_range(stated[there], happened[there].astype(float), tuple(span))
    return [*facts, *inside]


def _uniformity(finding: Any, audit: Any, plain: Plain) -> list[float]:
    return [plain.small_p_values]


def _group(finding: Any, audit: Any, plain: Plain) -> list[float]:
    named = re.search(r"In group (.+?) the (sets|intervals)", finding.sentence)
    if named is None:
        return []
    assert plain.groups is not None
    there = plain.groups == named[1]
    return [float(plain.covered[there].mean()), float(there.sum()), plain.coverage]


def _features(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if finding.evidence is None:
        return []
    hits, rows = (np.asarray(finding.evidence.details[key]) for key in ("hits", "rows"))
    assert rows.sum() == plain.n
    assert hits.sum() == plain.covered.sum()
    masses = [
        float(e.details["mass"])
        for name, e in audit.estimates.items()
        if name.startswith("coverage where ") and "mass" in e.details
    ]
    return [*(hits / rows).tolist(), *masses]


def _region(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if finding.evidence is None:
        return []
    value, n = float(finding.evidence), float(finding.evidence.n)
    # A share of so many rows.
    assert abs(value * n - round(value * n)) < 1e-6
    return [value, n]


def _sizes(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if plain.intervals is not None:
        finite = np.isfinite(plain.size)
        width = float(plain.size[finite].mean()) if finite.any() else np.nan
        return [width, float(plain.y.std()), _three_digits(plain.y.std()), float((~finite).mean())]
    assert plain.sets is not None
    k = plain.sets.shape[1]
    shares = [float((plain.size == labels).mean()) for labels in (0, 1)]
    silent = float(((plain.size == 0) | (plain.size == k)).mean())
    return [float(plain.size.mean()), float(k), *shares, silent]


def _three_digits(value: float) -> float:
    return float(f"{value:.3g}")


def _narrow(finding: Any, audit: Any, plain: Plain) -> list[float]:
    facts = [*_sizes(finding, audit, plain), min(plain.coverage, plain.promised)]
    for name, estimate in audit.estimates.items():
        if name.startswith("size saved by "):
            details = estimate.details
            facts += [
                float(estimate),
                details["worst_coverage"],
                details["own_coverage_there"],
                details["worst_mass"],
            ]
    return facts


def _difficulty(finding: Any, audit: Any, plain: Plain) -> list[float]:
    if not finding.sentence.startswith("In the "):
        return []
    if "stated mass" in finding.details["promise"]:
        return _stated_there(finding, audit, plain)
    there = plain.part(finding.sentence)
    empty = float((plain.size[there] == 0).mean())
    return [float(plain.covered[there].mean()), float(there.sum()), plain.coverage, empty]


def _follows(finding: Any, audit: Any, plain: Plain) -> list[float]:
    return [plain.rank_correlation(plain.size), plain.rank_correlation(plain.hardness)]


def _top(finding: Any, audit: Any, plain: Plain) -> list[float]:
    assert plain.P is not None
    stated, happened = np.minimum(plain.P.max(axis=1), 1.0), plain.right.astype(float)
    return _calibration(finding, plain, stated, happened)


def _class(finding: Any, audit: Any, plain: Plain) -> list[float]:
    assert plain.P is not None
    k = plain.P.shape[1]
    errors = [plain.calibration_error(plain.P[:, j], (plain.y == j).astype(float)) for j in range(k)]
    worst = 1 if k == 2 else int(np.argmax(errors))
    return _calibration(finding, plain, plain.P[:, worst], (plain.y == worst).astype(float))


def _calibration(finding: Any, plain: Plain, stated: np.ndarray, happened: np.ndarray) -> list[float]:
    error = plain.calibration_error(stated, happened)
    assert abs(error - float(finding.evidence)) < 1e-9, (error, float(finding.evidence))
    ends = finding.evidence.details.get("interval")
    return [error, *([] if ends is None else plain.in_range(stated, happened, tuple(ends)))]


def _forecast(finding: Any, audit: Any, plain: Plain) -> list[float]:
    name = next(name for name in audit.estimates if " of the next " in name)
    stated = audit.estimates[name]
    rows = re.search(r"the next (\d+) rows", name)
    facts = [float(plain.loss.mean()), stated.low, stated.high, stated.confidence, plain.later_scores_worse]
    return [*facts, float(rows[1]) if rows else 1.0]


_OF_CODE = {
    "CAL101": _coverage, "CAL102": _coverage, "CAL103": _uniformity, "CAL201": _group, "CAL202": _features,
    "CAL203": _region, "CAL301": _sizes, "CAL302": _narrow, "CAL401": _difficulty, "CAL402": _follows,
    "CAL501": _top, "CAL502": _top, "CAL503": _class, "CAL504": _stated_there, "CAL505": _stated_there,
    "CAL508": _stated_there, "CAL601": _forecast,
}  # fmt: skip


def _false_comparisons(finding: Any, plain: Plain) -> Iterator[str]:
    """Words such as "less often" and "narrower" that the numbers do not bear out."""
    fault = finding.outcome == "fault"
    level = fault and finding.code in ("CAL101", "CAL102")
    if level and (finding.code == "CAL101") != (plain.coverage < plain.promised_on_average):
        yield f"coverage {plain.coverage:.4f} is on the other side of {plain.promised_on_average}"
    if fault and finding.code == "CAL201":
        share = _group(finding, None, plain)[0]
        if "under-covered" in finding.title and share >= plain.promised:
            yield f"the group covers {share:.4f}, it is not under-covered"
        if share >= plain.coverage:
            yield "the group is not covered less often than all rows"
    if fault and finding.code == "CAL302" and float(finding.evidence) <= 0:
        yield "nothing is saved"
    if finding.code in ("CAL501", "CAL502") and fault:
        _, stated, happened = _top(finding, None, plain)[1:]
        if ("less often" in finding.sentence) != (happened < stated):
            yield "more and less are exchanged"


def _estimates(audit: Any, plain: Plain) -> Iterator[tuple[str, str]]:
    """Estimates that follow from the rows alone, and printed lines whose parts contradict each other."""
    for name, estimate in audit.estimates.items():
        expected = _expected(name, plain)
        tolerance = SAVING_TOLERANCE if name.startswith("size saved") else 1e-9
        if expected is not None and abs(float(estimate) - expected) > tolerance * max(1.0, abs(expected)):
            yield name, f"{float(estimate)} is {expected}"
        shown = str(estimate)
        if re.search(r"p = (-|0(?!\.)|0\.0+(?!\d))", shown):
            yield name, f"prints a p-value of 0: {shown}"
        if estimate.low is not None and not estimate.low <= float(estimate) <= estimate.high:
            yield name, f"the value lies outside its interval: {shown}"
        if _contradicts(estimate):
            yield name, f"band and p-value contradict each other: {shown}"


def _contradicts(estimate: Any) -> bool:
    """Whether a one-sided band and the p-value of the same null disagree clearly."""
    if estimate.p_value is None or estimate.null_high is None or estimate.alternative != "greater":
        return False
    return bool(float(estimate) > estimate.null_high and estimate.p_value > 0.1) or bool(
        float(estimate) < estimate.null_high and estimate.p_value < 0.01
    )


def _expected(name: str, plain: Plain) -> float | None:
    if name.startswith("size saved by "):
        return plain.saved(name.removeprefix("size saved by "))
    simple = {
        "coverage": lambda: plain.coverage,
        "mean width": lambda: float(plain.size[np.isfinite(plain.size)].mean()),
        "mean size": lambda: float(plain.size.mean()),
        "empty sets": lambda: float((plain.size == 0).mean()),
        "accuracy of the top label": lambda: float(plain.right.mean()),
        "deficit": lambda: float(np.maximum(0, plain.hardness - plain.size).mean()),
        "excess": lambda: float(np.maximum(0, plain.size - plain.hardness).mean()),
        "correlation of size and difficulty": lambda: plain.rank_correlation(plain.size),
        "correlation of hardness and difficulty": lambda: plain.rank_correlation(plain.hardness),
        "chance that a later row scores worse": lambda: plain.later_scores_worse,
        "p-value uniformity": lambda: plain.small_p_values,
    }
    return simple[name]() if name in simple else None
