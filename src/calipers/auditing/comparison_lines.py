"""The lines of a comparison: per measure the values, the differences of all pairs, and who wins."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from calipers.auditing.audit_result import Audit
from calipers.auditing.comparison_measures import COVERAGE, MATCHED_SIZE, MEASURES, Measure
from calipers.auditing.comparison_tests import (
    UNEQUAL,
    coverage_difference,
    distance_difference,
    is_broken,
    most_given_up,
    promise_of,
)
from calipers.auditing.severity import LEVEL
from calipers.inference import holm, paired_difference
from calipers.results import Estimate
from calipers.results.formatting import format_percent, format_share

# Coverage that may be given up for a label saved, where sets alone are known: one row in fifty.
PRICE = 0.02
CALIBRATION = "calibration error of the top label"
NOT_EQUAL = "they do not cover equally often, so their sizes mean different things"
# Contributions that differ by so small a part are equal.
_ROUNDING = 1e-9
AT_MATCHED = "sizes are compared at matched coverage, in the line below"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measure over all predictors.

    Parameters
    ----------
    measure : str
        What was measured.
    target : float or None
        The value it should have; None when less is better.
    values : dict of Estimate
        Per predictor.
    differences : dict of Estimate
        "first - second" of every pair, paired by row; with a target, of the distances from it. P-values are
        corrected for all pairs and measures.
    winner : str or None
        The predictor that is significantly better than every other; None when noise could explain it, or
        when it may not win.
    reason : str
        Why the best one does not win, where that is not noise.
    """

    measure: str
    target: float | None
    values: dict[str, Estimate]
    differences: dict[tuple[str, str], Estimate]
    winner: str | None
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the report."""
        return {
            "measure": self.measure,
            "target": self.target,
            "values": {name: estimate.to_dict() for name, estimate in self.values.items()},
            "differences": [
                {"first": first, "second": second, "estimate": estimate.to_dict()}
                for (first, second), estimate in self.differences.items()
            ],
            "winner": self.winner,
            "reason": self.reason,
        }


def promises_of(audits: Mapping[str, Audit]) -> dict[str, dict[str, Any]]:
    """Per predictor with sets or intervals: its coverage against the promise, and whether that is broken."""
    found = {}
    for name, audit in audits.items():
        if (promise := promise_of(audit)) is not None:
            promised = 1.0 - audit.design.alphas[0]
            broken = is_broken(promise, promised)
            found[name] = {
                "coverage": promise,
                "broken": broken,
                "sentence": _broken_sentence(name, promise, promised) if broken else "",
            }
    return found


def _broken_sentence(name: str, promise: Estimate, promised: float) -> str:
    return (
        f"{name} covers {format_share(float(promise))} of the rows and promised {format_percent(promised)}: "
        "it breaks its promise and cannot win."
    )


def make_lines(audits: Mapping[str, Audit], broken: Sequence[str]) -> tuple[Line, ...]:
    """Every measure that all predictors have, and their calibration beside."""
    measured = [(m, rows) for m in MEASURES if (rows := _contributions(m, audits)) is not None]
    names = {measure.name for measure, _ in measured}
    pairs = list(combinations(audits, 2))
    raw = [{pair: _difference(m, rows, pair, audits, names) for pair in pairs} for m, rows in measured]
    lines = [
        _line(measure, rows, differences, audits, broken)
        for (measure, rows), differences in zip(measured, _corrected(raw), strict=True)
    ]
    return (*lines, *_calibration(audits))


def _contributions(measure: Measure, audits: Mapping[str, Audit]) -> dict[str, np.ndarray] | None:
    rows = {name: measure.rows(audit.data) for name, audit in audits.items()}
    found = {name: values for name, values in rows.items() if values is not None}
    return found if len(found) == len(rows) else None


def _options(audits: Mapping[str, Audit]) -> dict[str, Any]:
    first = next(iter(audits.values()))
    return {"weights": first.data.weights, "confidence": first.design.confidence}


def _difference(
    measure: Measure,
    rows: Mapping[str, np.ndarray],
    pair: tuple[str, str],
    audits: Mapping[str, Audit],
    measured: set[str],
) -> Estimate:
    """One pair; without a p-value, and with the reason, where the two cannot be compared by this measure."""
    first, second = (rows[name] for name in pair)
    options = _options(audits)
    if measure.has_target:
        promised = 1.0 - audits[pair[0]].design.alphas[0]
        return distance_difference(first, second, promised, name=measure.name, **options)
    if measure is MATCHED_SIZE:
        # Scaled versions of the same predictions are equal at equal coverage, but for rounding.
        second = np.where(np.isclose(first, second, rtol=_ROUNDING), first, second)
    found = paired_difference(first, second, name=measure.name, **options)
    if not measure.at_equal_coverage:
        return found
    if MATCHED_SIZE.name in measured:
        return _untested(found, AT_MATCHED)
    reason = _unequal(pair, audits, options, float(found))
    return _untested(found, reason) if reason else found


def _unequal(
    pair: tuple[str, str], audits: Mapping[str, Audit], options: dict[str, Any], difference: float
) -> str:
    """Why sizes as they are cannot be compared; empty when they can.

    A coverage that is lower by too little to be seen still buys smaller sets, so what the smaller ones may
    have given up, by its upper bound, must be small beside the labels they save.
    """
    smaller, larger = (np.asarray(COVERAGE.rows(audits[name].data)) for name in pair)
    gap = coverage_difference(smaller, larger, name="coverage", **options)
    if (gap.p_value or 1.0) <= UNEQUAL:
        return NOT_EQUAL
    if difference > 0:
        smaller, larger = larger, smaller
    given_up = most_given_up(larger > smaller, smaller > larger, options["weights"])
    if given_up > PRICE * abs(difference):
        return (
            f"the smaller sets may give up {format_share(given_up)} of coverage, too much to call them better"
        )
    return ""


def _untested(estimate: Estimate, reason: str) -> Estimate:
    return replace(
        estimate, p_value=None, alternative=None, null_low=None, null_high=None, null_level=None,
        reason=reason, details=dict(estimate.details) | {"comparable": False},
    )  # fmt: skip


def _corrected(raw: list[dict[tuple[str, str], Estimate]]) -> list[dict[tuple[str, str], Estimate]]:
    """P-values corrected for all pairs and measures; the null band of one pair by itself goes."""
    p_values = [np.nan if e.p_value is None else e.p_value for line in raw for e in line.values()]
    adjusted = iter(holm(p_values).tolist() if p_values else [])
    return [{pair: _with_p(e, next(adjusted)) for pair, e in line.items()} for line in raw]


def _with_p(estimate: Estimate, p: float) -> Estimate:
    known = None if np.isnan(p) else p
    return replace(estimate, p_value=known, null_low=None, null_high=None, null_level=None)


def _line(
    measure: Measure,
    rows: Mapping[str, np.ndarray],
    differences: dict[tuple[str, str], Estimate],
    audits: Mapping[str, Audit],
    broken: Sequence[str],
) -> Line:
    confidence = next(iter(audits.values())).design.confidence
    values = {name: measure.of(audits[name].data, confidence) for name in rows}
    promised = 1.0 - next(iter(audits.values())).design.alphas[0]
    target = promised if measure.has_target else None
    best = significantly_best(values, differences, target)
    reason = ""
    if best in broken and measure.of_prediction:
        best, reason = None, f"{best} is best by it, but breaks its promise"
    return Line(
        measure=measure.name, target=target, values=values, differences=differences, winner=best,
        reason=reason,
    )  # fmt: skip


def significantly_best(
    values: Mapping[str, Estimate], differences: Mapping[tuple[str, str], Estimate], target: float | None
) -> str | None:
    """The best one, if it differs from each of the others beyond noise."""

    def badness(name: str) -> float:
        return float(values[name]) if target is None else abs(float(values[name]) - target)

    best = min(values, key=badness)
    others = [difference for pair, difference in differences.items() if best in pair]
    return best if all(_differs(difference) for difference in others) else None


def _differs(difference: Estimate) -> bool:
    """Significant, or comparable, the same in every row and not zero: then there is no noise."""
    if difference.p_value is not None:
        return difference.p_value <= LEVEL
    no_noise = difference.std_error == 0 and difference.value not in (None, 0.0)
    return no_noise and bool(difference.details.get("comparable", True))


def _calibration(audits: Mapping[str, Audit]) -> list[Line]:
    """Calibration errors side by side; they do not rank predictors, since a constant can be calibrated."""
    values = {
        name: audit.estimates[CALIBRATION] for name, audit in audits.items() if CALIBRATION in audit.estimates
    }
    if len(values) < len(audits):
        return []
    reason = "it does not rank predictors, since a proper score already rewards calibration"
    return [Line(measure=CALIBRATION, target=None, values=values, differences={}, winner=None, reason=reason)]
