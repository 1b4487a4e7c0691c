"""CAL505, and CAL202 of promises per row: whether the features know better than what was promised."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check_result import CheckResult
from calipers.auditing.checks.regions import SUSPECT, clearest_region, deviating_region, region_mask
from calipers.auditing.compared_parts import QUESTION
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import PromiseRows, promise_rows, without_a_chance_to_miss
from calipers.auditing.severity import SERIOUS, severity_of
from calipers.auditing.tolerances import (
    COMMON,
    PART_TOLERANCE,
    STATED_TOLERANCE,
    interval_of,
    rows_with,
    tolerance_at,
)
from calipers.inference import FEWEST_CLUSTERS
from calipers.inputs import check_features
from calipers.metrics import ert_table
from calipers.metrics.conditional import CoverageClassifier
from calipers.results import Estimate, severity_rank
from calipers.results.formatting import format_rows, format_share

CODE, TITLE = "CAL202", "coverage depends on the features"
CLUSTERED = (
    "excess risk of the promise by cross-fitted models; test by signs of whole clusters of one half of them, "
    "along the residuals that a model of the other half predicts, corrected for two"
)
FEW_HALVES = (
    "Rows depend on each other inside clusters, and half of the clusters, or their misses, are too few: no "
    f"test with fewer than {2 * FEWEST_CLUSTERS} clusters."
)
# Rows from which the excess risk of a promise per row is estimated; more change little.
MOST_ERT_ROWS = 20_000
# Before a rule that fits these rows best, where other rows do not confirm it.
DESCRIBED = "The rule that describes it best, unconfirmed by other rows: "
# Rows to train on and to estimate excess risks from in a quick audit, whose excess risks use no forest.
QUICK_ROWS = 5000
QUICK = CoverageClassifier(n_trees=0)
# Kind of the promise -> code, title and question of its fault along the features.
_FAULTS = {
    "coverage": (CODE, TITLE, QUESTION),
    "stated": (CODE, TITLE, QUESTION),
    "probability": ("CAL505", "calibration depends on the features", "probabilities"),
    "quantile": ("CAL505", "calibration of quantiles depends on the features", "probabilities"),
}
# Rows whose outcome is the rarer one, below which nothing can be learnt about where they are.
_FEWEST_RARE = 20
# A mean distance below this is none to speak of: a tenth of a point.
_SHOWN = 0.001


def excess_risk_at_promise(m: Measurements, promise: Promise) -> CheckResult:
    """Excess risk of the promised probabilities: whether the features know better than the promise."""
    code, title, question = _FAULTS[promise.kind]
    base = CheckResult(code=code, title=title, question=question)
    side = promise_rows(m, promise)
    if side is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
    if (certain := without_a_chance_to_miss(base, promise, side)) is not None:
        return certain
    if promise.is_of_class:
        return _by_regions(m, promise, side, base)
    most = QUICK_ROWS if m.design.quick else MOST_ERT_ROWS
    if len(side.kept) > most:
        side = side.take(m.generator(f"rows {promise.key}").choice(len(side.kept), most, replace=False))
    rare = int(min(side.kept.sum(), (~side.kept).sum()))
    if rare < _FEWEST_RARE:
        return replace(
            base,
            not_applicable=f"The rarer outcome happened in {format_rows(rare)}; {_FEWEST_RARE} are needed to "
            "learn where.",
            rows_needed=rows_with(_FEWEST_RARE, min(promise.alpha, 1.0 - promise.alpha), m.n, rare),
        )  # fmt: skip
    risk, *others = _excess_risks(m, promise, side, code)
    few = side.cluster is not None and risk.p_value is None
    result = replace(
        base,
        evidence=risk,
        p_value=risk.p_value,
        effect=float(risk),
        effect_low=risk.low,
        effect_high=float(risk.high if risk.high is not None else 1.0),
        tolerance=tolerance_at(float(side.promised.mean())),
        serious=SERIOUS * COMMON,
        fault=_dependence_words(promise, side, float(risk)),
        clean=f"The features do not clearly tell where the {promise.noun} are off.",
        repair=repair_snippets.calibrate()
        if question == "probabilities"
        else repair_snippets.by_group(m.task, promise.alpha),
        estimates=(risk, *others),
        details={"alpha": promise.alpha, "reason": FEW_HALVES} if few else {"alpha": promise.alpha},
    )
    return _place_of_promise(m, promise, side, result)


def _by_regions(m: Measurements, promise: Promise, side: PromiseRows, base: CheckResult) -> CheckResult:
    """The probability of one of several classes in the regions that stand out: no models for every class."""
    found = clearest_region(m, promise, side)
    base = replace(base, clean="No region of the features clearly stands out for any class.")
    if found is None:
        return replace(base, p_value=1.0)
    result = replace(
        base,
        evidence=replace(found, name=f"share where {found.name} ({promise.name})"),
        p_value=found.p_value,
        effect=0.0,
        fault=f"The features tell where the {promise.name} is off: what happens there differs from "
        f"{_compared_with(promise, side).rstrip(',')}.",
        repair=repair_snippets.calibrate(),
        details={"alpha": promise.alpha},
    )
    result = replace(result, estimates=(result.evidence,) if result.evidence is not None else ())
    return _place_of_promise(m, promise, side, result)


def _excess_risks(m: Measurements, promise: Promise, side: PromiseRows, code: str) -> tuple[Estimate, ...]:
    """The L1 excess risk, whose test takes clusters as they are, before the others."""
    table = ert_table(
        check_features(side.rows.given["X"]), side.kept, alpha=1.0 - side.expected, losses=("l1", "l2"),
        cluster=side.cluster, confidence=m.confidence, random_state=m.generator(f"{code}{promise.key}"),
        **({"n_repeats": 1} | models(m)),
    )  # fmt: skip
    named = {key: replace(e, name=f"ert {key} ({promise.name})") for key, e in table.items()}
    risk = named.pop("l1")
    if side.cluster is not None:
        p = _clustered_p_value(side, m.generator(f"{code}{promise.key} clusters"))
        risk = replace(risk, p_value=p, reason=FEW_HALVES if p is None else "", method=CLUSTERED)
    return risk, *named.values()


def _dependence_words(promise: Promise, side: PromiseRows, risk: float) -> str:
    says = f"The features tell where the {promise.noun} are off"
    if risk < _SHOWN:  # a small place, which the mean over all rows does not show
        return f"{says} ({promise.name})."
    return (
        f"{says}: given them, what happens differs from {_compared_with(promise, side)} by "
        f"{100 * risk:.1f} points on average ({promise.name})."
    )


def _compared_with(promise: Promise, side: PromiseRows) -> str:
    """What the features are compared with: what is wrong with all rows alike is another finding."""
    if not promise.per_row:
        return "the share over all rows"
    if np.array_equal(side.expected, side.promised):
        return "what was stated"
    return "what was stated, corrected by one map for all rows,"


def _along(predicted: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Residuals weighted by those that were predicted, summed for every draw."""
    return lambda residuals: residuals @ predicted


def _clustered_p_value(side: PromiseRows, rng: np.random.Generator) -> float | None:
    """Whether a model of other clusters predicts the residuals, by signs of whole clusters.

    The model of one half of the clusters predicts the rows of the other half, then the halves change places;
    the smaller p-value counts twice. None with too few clusters.
    """
    features = check_features(side.rows.given["X"])
    _, codes = np.unique(np.asarray(side.cluster), return_inverse=True)
    half = (rng.permutation(int(codes.max()) + 1) % 2 == 0)[codes.reshape(-1)]
    p_values = []
    for train, test in ((half, ~half), (~half, half)):
        rows, inside = np.flatnonzero(train), side.take(test)
        if len(np.unique(side.kept[rows])) < 2:
            return None
        model = CoverageClassifier().fit(features.take(rows), side.kept[rows], side.expected[rows], None, rng)
        predicted = model.predict(features.values[test], inside.expected).unshrunk - inside.expected
        p_values.append(inside.sign_test(_along(predicted), rng))
    known = [p for p in p_values if p is not None]
    return min(1.0, 2.0 * min(known)) if len(known) == 2 else None


def _place_of_promise(
    m: Measurements, promise: Promise, side: PromiseRows, result: CheckResult
) -> CheckResult:
    """The result with the region that stands out most, where the test found that there is one."""
    if result.p_value is None or result.p_value > SUSPECT:
        return result
    if (found := deviating_region(m, promise, side)) is None:
        return result
    (rule, conditions), measured = found
    mask, is_measured = region_mask(side.rows, conditions), measured is not None
    stated, seen = float(side.promised[mask].mean()), float(side.kept[mask].mean())
    numbers = f": {_numbers_there(promise, side, mask)}." if is_measured else "."
    lead = "Most where " if is_measured else DESCRIBED
    place = f" {lead}{rule} ({format_share(mask.mean(), 0)} of the rows){numbers}"
    result = replace(
        result, where=rule, fault=result.fault + place, rows=lambda rows: region_mask(rows, conditions),
        details=dict(result.details) | {"place": place, "shortfall": stated - seen},
    )  # fmt: skip
    return result if measured is None else _judged_by_place(promise, side, mask, result, measured)


def _judged_by_place(
    promise: Promise, side: PromiseRows, mask: np.ndarray, result: CheckResult, measured: Estimate
) -> CheckResult:
    """The result, with the effect in its region where that weighs more than the mean over all rows.

    What held-out rows measured there is compared with what was expected of them; a small region that is far
    off matters, however little of it is left in a mean.
    """
    expected, (low, high) = float(side.expected[mask].mean()), interval_of(measured)
    gap = expected - float(measured)
    own = replace(
        result,
        effect=gap if not promise.two_sided else abs(gap),
        effect_low=expected - high if not promise.two_sided else max(expected - high, low - expected),
        tolerance=(STATED_TOLERANCE if promise.two_sided else PART_TOLERANCE) * tolerance_at(expected),
    )
    return max(result, own, key=lambda r: severity_rank(severity_of(r, 0.0)))


def _numbers_there(promise: Promise, side: PromiseRows, mask: np.ndarray) -> str:
    """What was expected in a region, as `_compared_with` says, and what happened."""
    expected, seen = (format_share(values[mask].mean()) for values in (side.expected, side.kept))
    if not promise.per_row:
        return f"{seen}, over all rows {expected}"
    corrected = "" if np.array_equal(side.expected, side.promised) else " after that correction"
    return f"{expected} stated{corrected}, {seen} happened"


def models(m: Measurements) -> dict[str, Any]:
    """Options of an excess risk that keep its models small in a quick audit."""
    return {"classifier": QUICK, "n_repeats": 1} if m.design.quick else {}
