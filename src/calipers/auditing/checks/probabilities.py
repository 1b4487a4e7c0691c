"""CAL5xx, can its probabilities be read as probabilities: over- and under-confidence, single classes."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calipers.auditing import repairs
from calipers.auditing.material import Material
from calipers.auditing.reading import Check, Picture, Reading
from calipers.metrics import calibration_error, cumulative_difference_curve, reliability_curve
from calipers.results import Curve, Estimate

QUESTION = "probabilities"
# Share of all rows by which stated and observed counts may differ in some range of probabilities.
TOLERANCE = 0.02
MOST_DRAWN_ROWS = 20_000
MOST_POINTS = 400


def top_label(material: Material) -> Reading:
    """The largest probability of every row, read as the chance that its label is the right one."""
    P = material.require("probabilities")
    top = P.max(axis=1)
    right = (P.argmax(axis=1) == material.y).astype(int)
    estimate = replace(
        calibration_error(
            right, top, sample_weight=material.weights, confidence=material.confidence,
            random_state=material.generator("CAL501"),
        ),
        name="calibration error of the top label",
    )  # fmt: skip
    accuracy = Estimate(
        name="accuracy of the top label", value=float(right.mean()), n=material.n,
        std_error=float(np.sqrt(right.var() / material.n)), method="share of rows",
    )  # fmt: skip
    return top_label_reading(material, estimate, accuracy, _pictures(material, right, top))


def top_label_reading(
    material: Material, estimate: Estimate, accuracy: Estimate, pictures: tuple[Picture, ...]
) -> Reading:
    """What the calibration error of the most probable label says."""
    under = estimate.details["sign"] > 0
    code, title = ("CAL502", "under-confident probabilities") if under else (
        "CAL501", "over-confident probabilities"
    )  # fmt: skip
    says = "The top label is right more often than stated" if under else (
        "The top label is right less often than stated"
    )  # fmt: skip
    reading = _reading(material, estimate, code, title, says)
    return replace(reading, estimates=(estimate, accuracy), pictures=pictures)


def _pictures(material: Material, right: np.ndarray, top: np.ndarray) -> tuple[Picture, Picture]:
    rows = np.arange(material.n)
    if material.n > MOST_DRAWN_ROWS:
        rows = material.generator("reliability").choice(material.n, MOST_DRAWN_ROWS, replace=False)
    options: dict[str, Any] = {"sample_weight": None if material.weights is None else material.weights[rows]}
    reliability = reliability_curve(
        right[rows], top[rows], random_state=material.generator("reliability curve"), **options
    )
    cumulative = replace(
        cumulative_difference_curve(right[rows], top[rows], **options), y_label="right minus stated, share"
    )
    return (
        Picture(
            name="reliability", question=QUESTION, title="Stated against observed",
            caption="How often the top label is right, against its stated probability; the grey band is "
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
    return replace(curve, **thin, details={})


def single_classes(material: Material) -> Reading:
    """Every class's own probability against its own frequency: the worst class, corrected for all."""
    P = material.require("probabilities")
    options: dict[str, Any] = {
        "sample_weight": material.weights,
        "confidence": material.confidence,
        "random_state": material.generator("CAL503"),
    }
    if P.shape[1] == 2:
        estimate = calibration_error((material.y == 1).astype(int), P[:, 1], **options)
        name = f"calibration error of class {material.classes[1]}"
    else:
        estimate = calibration_error(
            material.y, P, multiclass="max", classes=np.arange(P.shape[1]), **options
        )
        name = "calibration error of the worst class"
    return class_reading(material, replace(estimate, name=name))


def class_reading(material: Material, estimate: Estimate) -> Reading:
    """What the calibration error of the worst class says."""
    reading = _reading(
        material, estimate, "CAL503", "probabilities of a class are off",
        f"The probability of class {_worst_class(material, estimate)} differs from how often it happens",
    )  # fmt: skip
    return replace(reading, estimates=(estimate,))


def _worst_class(material: Material, estimate: Estimate) -> Any:
    return material.classes[int(estimate.details.get("class", len(material.classes) - 1))]


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


def _reading(material: Material, estimate: Estimate, code: str, title: str, says: str) -> Reading:
    details = estimate.details
    span, stated, seen = (
        details.get(key) for key in ("interval", "stated_in_interval", "observed_in_interval")
    )
    where = "" if span is None else range_in_words(*span)
    share = details.get("share_in_interval")
    numbers = "."
    if where and stated is not None and seen is not None and share is not None:
        numbers = (
            f": with {where} ({100 * share:.0f} % of the rows) {100 * stated:.1f} % were stated and "
            f"{100 * seen:.1f} % happened."
        )
    return Reading(
        code=code,
        title=title,
        question=QUESTION,
        evidence=estimate,
        p_value=estimate.p_value,
        effect=estimate.value,
        effect_low=details.get("low_bound"),
        effect_high=details.get("asymptotic_high", estimate.high),
        tolerance=TOLERANCE,
        fault=says + numbers,
        clean=f"Stated and observed frequencies agree: they differ by at most {float(estimate):.3f} of all "
        f"rows in any range, as noise alone would.",
        where=where,
        repair=repairs.calibrate(),
        rows_needed=_rows_needed(material, estimate),
    )


def _rows_needed(material: Material, estimate: Estimate) -> int | None:
    """Rows at which the bound would come within the tolerance of the estimate; it shrinks like 1/sqrt(n)."""
    high = estimate.details.get("asymptotic_high", estimate.high)
    if high is None or estimate.value is None or high <= estimate.value:
        return None
    return int(np.ceil((estimate.n or material.n) * ((high - estimate.value) / TOLERANCE) ** 2))


_ADD = "Add probabilities: one column per class, or the positive class of two."
CHECKS = (
    Check(
        code="CAL501",
        title="confidence of the top label",
        question=QUESTION,
        needs=("probabilities",),
        add=_ADD,
        once=top_label,
        tasks=("classification",),
    ),
    Check(
        code="CAL503",
        title="probabilities of single classes",
        question=QUESTION,
        needs=("probabilities",),
        add=_ADD,
        once=single_classes,
        tasks=("classification",),
    ),
)
