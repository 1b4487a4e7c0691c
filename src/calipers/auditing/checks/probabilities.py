"""CAL5xx, can its probabilities be read as probabilities: over- and under-confidence, single classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check import ADD_PROBABILITIES, Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.measurements import Design, Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import FEW_CLUSTERS, promise_rows
from calipers.auditing.promises import EACH_CLASS, TOP
from calipers.auditing.severity import NOT_CLEAR, SERIOUS
from calipers.auditing.table_states import table_of
from calipers.auditing.tolerances import COMMON, tolerance_at
from calipers.metrics import calibration_error, cumulative_difference_curve, reliability_curve
from calipers.metrics.marginal import coverage_of_rows
from calipers.metrics.reliability.calibration_states import CalibrationOptions, CalibrationState
from calipers.metrics.reliability.classwise_states import ClasswiseState
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_share

QUESTION = "probabilities"
MOST_DRAWN_ROWS = 20_000
MOST_POINTS = 400


def top_states(design: Design, promise: None) -> States:
    """The calibration error of the top label, and how often it is right."""
    if "probabilities" not in design.have:
        return {}
    options = CalibrationOptions(confidence=design.confidence, random_state=design.generator("CAL501"))
    return {"top": CalibrationState(options, column="top"), "right": table_of("top_is_right")}


def top_label(m: Measurements, promise: None) -> CheckResult:
    """The largest probability of every row, read as the chance that its label is the right one."""
    right, counts = m.result("right")
    estimate = replace(m.result("top"), name="calibration error of the top label")
    accuracy = replace(
        coverage_of_rows(right, weights=counts, confidence=m.confidence, name="accuracy of the top label"),
        reason="nothing was promised about it", method="share of rows, Clopper-Pearson interval", details={},
    )  # fmt: skip
    under = estimate.details["sign"] > 0
    code, title = ("CAL502", "under-confident probabilities") if under else (
        "CAL501", "over-confident probabilities"
    )  # fmt: skip
    says = "The top label is right more often than stated" if under else (
        "The top label is right less often than stated"
    )  # fmt: skip
    result = _with_clusters(m, TOP, _result(m, estimate, _mean(m, "top_probability"), code, title, says))
    return replace(
        result, estimates=(estimate, accuracy), pictures=_pictures(m), promise=TOP.name,
        rows=_score_rows(estimate, "top_probability"),
    )  # fmt: skip


def _mean(m: Measurements, column: str, label: Any = None) -> float:
    """Mean of a stated probability over the sample; ``label`` chooses the class."""
    stated = np.asarray(m.sample[column], dtype=float)
    if stated.ndim > 1:
        stated = stated[:, list(m.classes).index(label)]
    return float(np.average(stated, weights=m.sample.weights))


def _score_rows(estimate: Estimate, column: str) -> Any:
    """Rows whose score lies in the interval where stated and observed differ most."""
    low, high = estimate.details.get("interval") or (-np.inf, np.inf)
    return lambda rows: (rows[column] > low) & (rows[column] <= high)


def _with_clusters(m: Measurements, promise: Promise, result: CheckResult) -> CheckResult:
    """The result with a test for rows that depend on each other, where there are clusters."""
    if "cluster" not in m.design.have:
        return result
    side = promise_rows(m, promise)
    if side is None:
        return result
    order = np.argsort(side.promised, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(side.promised[order])), len(order) - 1)

    def largest(residuals: np.ndarray) -> np.ndarray:
        walk = np.cumsum(residuals[:, order], axis=1)[:, ends]
        return np.asarray(np.maximum(walk.max(axis=1), 0) - np.minimum(walk.min(axis=1), 0))

    p = replace(side, expected=side.promised).sign_test(largest, m.generator(f"score signs {promise.name}"))
    low, value = result.effect_low, float(result.effect or 0.0)
    wider = np.sqrt(side.design_effect)
    evidence = result.evidence and replace(
        result.evidence, p_value=p, null_low=None, null_high=None, null_level=None,
        method=f"{result.evidence.method}; test by signs of whole clusters",
        reason=FEW_CLUSTERS if p is None else "rows depend on each other: no band of independent rows",
    )  # fmt: skip
    return replace(
        result, p_value=p, evidence=evidence,
        effect_low=None if low is None else value - wider * (value - low),
        effect_high=None if result.effect_high is None else value + wider * (result.effect_high - value),
    )  # fmt: skip


def promised_elsewhere(m: Measurements, promise: Promise) -> CheckResult:
    """Probabilities that were promised for outcomes found elsewhere, read as probabilities."""
    side = promise_rows(m, promise) if promise.per_row else None
    if side is None:
        return CheckResult(
            code="CAL501", title="over-confident probabilities", question=QUESTION,
            not_applicable="Add promised: the probability that was stated for every row.",
        )  # fmt: skip
    error = calibration_error(
        side.kept, side.promised, pos_label=True, confidence=m.confidence, random_state=m.generator("CAL501")
    )
    estimate = replace(error, name="calibration error of the promised probability")
    under = estimate.details["sign"] > 0
    result = _result(
        m, estimate, float(side.promised.mean()), "CAL502" if under else "CAL501",
        f"{'under' if under else 'over'}-confident probabilities",
        f"The promise comes true {'more' if under else 'less'} often than stated",
    )  # fmt: skip
    right, stated = side.kept.astype(int), side.promised
    pictures = _reliability_pictures(m, right, stated, {}, "the promise comes true")
    result = _with_clusters(m, promise, replace(result, estimates=(estimate,), pictures=pictures))
    return replace(result, rows=_score_rows(estimate, "promised"))


def _pictures(m: Measurements) -> tuple[Picture, Picture]:
    rows = m.sample
    if rows.n > MOST_DRAWN_ROWS:
        rows = rows.take(m.shuffled("reliability")[:MOST_DRAWN_ROWS])
    right, top = rows["top_is_right"].astype(int), np.minimum(rows["top_probability"].astype(float), 1.0)
    return _reliability_pictures(m, right, top, {"sample_weight": rows.weights}, "the top label is right")


def _reliability_pictures(
    m: Measurements, right: np.ndarray, top: np.ndarray, options: dict[str, Any], event: str
) -> tuple[Picture, Picture]:
    reliability = reliability_curve(right, top, random_state=m.generator("reliability curve"), **options)
    cumulative = replace(
        cumulative_difference_curve(right, top, **options), y_label="right minus stated, share"
    )
    return (
        Picture(
            name="reliability", question=QUESTION, title="Stated against observed",
            caption=f"How often {event}, against the stated probability; the grey band is "
            "where a calibrated model's curve would lie.", kind="line", curves=(_few_points(reliability),),
        ),
        Picture(
            name="cumulative_difference", question=QUESTION, title="Cumulative difference",
            caption="Right answers minus stated ones up to each probability, as a share of all rows; where "
            "it falls the model states too much.", kind="line", curves=(_few_points(cumulative),),
            reference=0.0,
        ),
    )  # fmt: skip


def _few_points(curve: Curve) -> Curve:
    """At most so many points that the report stays small; the ends are kept."""
    if len(curve) <= MOST_POINTS:
        return curve
    keep = np.unique(np.round(np.linspace(0, len(curve) - 1, MOST_POINTS)).astype(int))
    vectors = ("x", "y", "low", "high", "null_low", "null_high")
    thin: dict[str, Any] = {
        key: None if (vector := getattr(curve, key)) is None else vector[keep] for key in vectors
    }
    mass = curve.details.get("mass")
    return replace(curve, **thin, details={} if mass is None else {"mass": [mass[i] for i in keep]})


def class_states(design: Design, promise: None) -> States:
    """The calibration error of the second of two classes, or of the worst of several."""
    options = CalibrationOptions(confidence=design.confidence, random_state=design.generator("CAL503"))
    two = len(design.classes) == 2
    return {"classes": CalibrationState(options, column=1) if two else ClasswiseState(options, "max")}


def single_classes(m: Measurements, promise: None) -> CheckResult:
    """Every class's own probability against its own frequency: the worst class, corrected for all."""
    estimate = m.result("classes")
    worst = m.classes[1] if len(m.classes) == 2 else estimate.details["class"]
    name = f"class {worst}" if len(m.classes) == 2 else "the worst class"
    result = _result(
        m, replace(estimate, name=f"calibration error of {name}"), _mean(m, "probabilities", worst), "CAL503",
        "probabilities of a class are off",
        f"The probability of class {worst} differs from how often it happens",
    )  # fmt: skip
    result = replace(result, estimates=(result.evidence,) if result.evidence else ())
    if len(m.classes) > 2:
        return replace(result, promise=EACH_CLASS)
    binary = m.design.promises_of(("probability",))[0]
    result = _with_clusters(m, binary, replace(result, promise=binary.name))
    return replace(result, rows=_score_rows(estimate, "positive_probability"))


def end_in_words(probability: float) -> str:
    """A probability to three digits, or to as many as tell it from 0 and from 1.

    Examples
    --------
    >>> end_in_words(0.62345), end_in_words(0.999987), end_in_words(1e-43), end_in_words(-float("inf"))
    ('0.623', '0.99999', 'just above 0', '0')
    """
    if probability <= 0 or probability >= 1:
        return "0" if probability <= 0 else "1"
    if probability < 1e-6:
        return "just above 0"
    if probability > 1 - 1e-6:
        return "just below 1"
    digits = next(d for d in range(3, 8) if 0 < float(f"{probability:.{d}f}") < 1)
    return f"{probability:.{digits}f}".rstrip("0")


def range_in_words(low: float, high: float) -> str:
    """A range of probabilities, without the end that leaves nothing out.

    Examples
    --------
    >>> range_in_words(0.2, 0.5), range_in_words(-float("inf"), 0.5), range_in_words(0.8, 1.0)
    ('probabilities from 0.2 to 0.5', 'probabilities up to 0.5', 'probabilities above 0.8')
    """
    if low <= 0:
        return "all probabilities" if high >= 1 else f"probabilities up to {end_in_words(high)}"
    if high >= 1:
        return f"probabilities above {end_in_words(low)}"
    return f"probabilities from {end_in_words(low)} to {end_in_words(high)}"


def top_or_promised(m: Measurements, promise: None) -> CheckResult:
    """The probability of the top label, or that promised for an outcome found elsewhere."""
    if "probabilities" in m.design.have:
        return top_label(m, None)
    own = m.design.promises_of(("coverage",))[0]
    return replace(promised_elsewhere(m, own), promise=own.name)


def _result(
    m: Measurements, estimate: Estimate, mean_stated: float, code: str, title: str, says: str
) -> CheckResult:
    details = estimate.details
    span, stated, seen = (
        details.get(key) for key in ("interval", "stated_in_interval", "observed_in_interval")
    )
    where = "" if span is None else range_in_words(*span)
    share = details.get("share_in_interval")
    numbers = "."
    if where and stated is not None and seen is not None and share is not None:
        rows = "over all rows" if share == 1 else f"with {where} ({format_share(share, 0)} of the rows)"
        numbers = f": {rows} {format_share(stated)} were stated and {format_share(seen)} happened."
    return CheckResult(
        code=code,
        title=title,
        question=QUESTION,
        evidence=estimate,
        p_value=estimate.p_value,
        effect=estimate.value,
        effect_low=details.get("low_bound"),
        effect_high=_highest(m, estimate),
        tolerance=tolerance_at(mean_stated),
        serious=SERIOUS * COMMON,
        fault=says + numbers,
        clean=_clean_words(estimate),
        where=where,
        repair=repair_snippets.calibrate(),
        rows_needed=_rows_needed(m, estimate),
    )


def _clean_words(estimate: Estimate) -> str:
    """What is said of probabilities without a fault: whether noise alone explains the difference."""
    most = f"differ by at most {float(estimate):.3f} of all rows in any range"
    if estimate.null_high is None:
        return f"Stated and observed frequencies {most}."
    if float(estimate) <= estimate.null_high:
        return f"Stated and observed frequencies agree: they {most}, as noise alone would."
    return f"Stated and observed frequencies {most}, more than noise alone mostly would. {NOT_CLEAR}"


def _highest(m: Measurements, estimate: Estimate) -> float | None:
    """The bound from above; no smaller than the share of rows that may hold what none of these showed.

    Probabilities near 0 and 1 leave few events to see, and the asymptotic bound then says nothing: of n rows
    without an event up to -log(1 - confidence) / n of all rows may have one (the rule of three).
    """
    high = estimate.details.get("asymptotic_high", estimate.high)
    return None if high is None else max(float(high), -np.log1p(-m.confidence) / max(1, estimate.n or m.n))


def _rows_needed(m: Measurements, estimate: Estimate) -> int | None:
    """Rows at which the bound would come within the tolerance of the estimate; it shrinks like 1/sqrt(n)."""
    high = _highest(m, estimate)
    if high is None or estimate.value is None or high <= estimate.value:
        return None
    return int(np.ceil((estimate.n or m.n) * ((high - estimate.value) / COMMON) ** 2))


CHECKS = (
    Check(
        code="CAL501",
        title="confidence of the top label",
        question=QUESTION,
        needs=("stated",),
        add=ADD_PROBABILITIES,
        once=True,
        slices="score",
        states=top_states,
        read=top_or_promised,
        tasks=("classification", "outcomes"),
    ),
    Check(
        code="CAL503",
        title="probabilities of single classes",
        question=QUESTION,
        needs=("probabilities",),
        add=ADD_PROBABILITIES,
        once=True,
        slices="score",
        states=class_states,
        read=single_classes,
        tasks=("classification",),
    ),
)
