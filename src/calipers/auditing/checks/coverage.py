"""CAL1xx, does it cover as often as it says: marginal coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calipers.auditing import repairs
from calipers.auditing.material import Level, Material
from calipers.auditing.reading import Check, Picture, Reading
from calipers.inference import normal_quantile, wilson
from calipers.metrics import p_value_uniformity
from calipers.metrics.contributions import sets_at
from calipers.metrics.marginal import coverage_law, coverage_of_rows, covered_by_sets
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_percent

QUESTION = "coverage"
# Share of alpha, up to alpha = 0.1, by which coverage may miss the promise before anybody should act.
TOLERATED = 0.2
# A predictor of unknown calibration is given the luck of this many calibration rows.
ASSUMED_CALIBRATION = 500
# Largest excess of small p-values that is not worth acting on, and rows that are enough to see more.
P_VALUE_TOLERANCE = 0.03
MOST_P_VALUES = 20_000
ALPHA_GRID = np.round(np.concatenate([[0.01, 0.02, 0.03, 0.04], np.arange(0.05, 0.501, 0.025)]), 4)


def tolerance_at(alpha: float) -> float:
    """The deviation of coverage that is not worth acting on: 0.02 at alpha = 0.1, less below."""
    return TOLERATED * min(alpha, 0.1)


def rows_for(alpha: float, half_width: float, confidence: float) -> int:
    """Rows at which a coverage near the promise is known to within the half-width."""
    return int(np.ceil(normal_quantile(confidence) ** 2 * alpha * (1 - alpha) / half_width**2))


def interval_of(estimate: Estimate) -> tuple[float, float]:
    """Both ends of the interval; infinite where there is none."""
    low, high = estimate.low, estimate.high
    return -np.inf if low is None else low, np.inf if high is None else high


def marginal(material: Material, level: Level) -> Reading:
    """Marginal coverage against the promise, under the law of a finite calibration sample."""
    estimate = coverage_of_rows(
        level.covered,
        alpha=level.alpha,
        n_calibration=material.n_calibration,
        weights=material.weights,
        confidence=material.confidence,
        name=f"coverage{level.tag}",
    )
    return marginal_reading(material, level, estimate)


def marginal_reading(material: Material, level: Level, estimate: Estimate) -> Reading:
    """What the coverage of all rows says."""
    below = float(estimate) < level.promised
    reading = _side(material, level, estimate, below=below)
    pictures = (by_alpha(material),) if material.p_values is not None or len(material.levels) > 1 else ()
    return replace(reading, estimates=(estimate,), pictures=pictures)


def _side(material: Material, level: Level, estimate: Estimate, *, below: bool) -> Reading:
    value, promised, noun = float(estimate), format_percent(level.promised), material.noun
    below_by = interval_of(estimate)
    ends = (level.promised - below_by[1], level.promised - below_by[0])
    low, high = ends if below else (-ends[1], -ends[0])
    luck, cap = _calibration_luck(material, level, estimate)
    says = f"The {noun} cover {_percent(value)} of the rows; {promised} was promised"
    ending = "." if below else ": they are larger than they need to be."
    return Reading(
        code="CAL101" if below else "CAL102",
        title="under-coverage" if below else "over-coverage",
        question=QUESTION,
        evidence=estimate,
        p_value=estimate.p_value,
        effect=abs(level.promised - value),
        effect_low=low,
        effect_high=high,
        tolerance=tolerance_at(level.alpha),
        fault=says + ending + luck,
        clean=f"The {noun} cover {_percent(value)}, as promised ({promised}) up to sampling noise.",
        where=level.tag.strip(),
        repair=repairs.reconformalise(material.task, level.alpha),
        cap=cap if below else "warning",
        rows_needed=rows_for(level.alpha, tolerance_at(level.alpha), material.confidence),
        details={"alpha": level.alpha, "n_calibration": material.n_calibration},
    )


def _calibration_luck(material: Material, level: Level, estimate: Estimate) -> tuple[str, str]:
    """A healthy predictor conformalised on few rows misses by luck; without n_calibration, allow for it."""
    if material.n_calibration is not None or estimate.p_value is None:
        return "", "issue"
    rows, hits = int(estimate.n or 0), int(estimate.details["covered"])
    p = float(coverage_law(rows, level.alpha, ASSUMED_CALIBRATION).p_value(hits, "two-sided"))
    if p <= 0.01:
        return "", "issue"
    luck = (
        f" A healthy predictor conformalised on {ASSUMED_CALIBRATION} rows can read this by luck: "
        "state n_calibration to settle it."
    )
    return luck, "warning"


def uniformity(material: Material) -> Reading:
    """Whether too many p-values of the true labels are small."""
    rows = np.arange(material.n)
    if material.n > MOST_P_VALUES:
        rows = material.generator("CAL103").choice(material.n, MOST_P_VALUES, replace=False)
    estimate = p_value_uniformity(
        material.y[rows], material.require("p_values")[rows], classes=np.arange(len(material.classes)),
        n_calibration=material.n_calibration or ASSUMED_CALIBRATION, smoothed=False,
        confidence=material.confidence, random_state=material.generator("CAL103 law"),
    )  # fmt: skip
    low, high = interval_of(estimate)
    excess = f"{100 * float(estimate):.1f}"
    return Reading(
        code="CAL103",
        title="p-values are too small",
        question=QUESTION,
        evidence=estimate,
        p_value=estimate.p_value,
        effect=float(estimate),
        effect_low=low,
        effect_high=high,
        tolerance=P_VALUE_TOLERANCE,
        fault=f"Small p-values of true labels come too often: at some level {excess} % of the rows more than "
        "allowed. Sets made from them cover less than promised.",
        clean="The p-values of true labels are no smaller than they should be.",
        repair=repairs.reconformalise(material.task, material.alphas[0]),
        rows_needed=int(np.ceil((1.36 / P_VALUE_TOLERANCE) ** 2)),
        estimates=(estimate,),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def by_alpha(material: Material) -> Picture:
    """Coverage and size over alpha, with the band of a healthy predictor: the slider of the report."""
    if material.p_values is not None and material.sets is None:
        alphas = ALPHA_GRID
        kept = [np.asarray(sets_at(material.p_values, float(a))) for a in alphas]
        shares = np.array([np.asarray(covered_by_sets(material.y, sets)).mean() for sets in kept])
        sizes = np.array([np.mean(np.sum(sets, axis=1)) for sets in kept])
    else:
        alphas = np.array(material.alphas)
        shares = np.array([level.covered.mean() for level in material.levels])
        sizes = np.array([level.size.mean() for level in material.levels])
    return alpha_picture(material, material.n, alphas, shares, sizes)


def alpha_picture(
    material: Material, n: int, alphas: np.ndarray, shares: np.ndarray, sizes: np.ndarray
) -> Picture:
    """The picture of coverage over alpha from the shares of n rows."""
    bands = np.array([_band(material, n, float(a)) for a in alphas])
    low, high = wilson(np.round(shares * n), n, confidence=material.confidence)
    order = np.argsort(alphas, kind="stable")
    curve = Curve(
        name="coverage by alpha", x=alphas[order], y=shares[order], low=np.asarray(low)[order],
        high=np.asarray(high)[order], confidence=material.confidence, null_low=bands[order, 0],
        null_high=bands[order, 1], null_level=0.95, x_label="alpha (allowed miscoverage)", y_label="coverage",
        method="share of covered rows, Wilson interval, exact band of a healthy predictor",
        details={"size": sizes[order], "target": 1 - alphas[order]},
    )  # fmt: skip
    return Picture(
        name="coverage_by_alpha", question=QUESTION, title="Coverage at every alpha",
        caption="The line should lie inside the grey band, which holds 95 % of the readings of a healthy "
        "predictor.", kind="line", curves=(curve,),
    )  # fmt: skip


def _band(material: Material, n: int, alpha: float) -> tuple[float, float]:
    return coverage_law(n, alpha, material.n_calibration).share_interval(0.95, "two-sided")


CHECKS = (
    Check(
        code="CAL101",
        title="marginal coverage",
        question=QUESTION,
        needs=("prediction",),
        add="Add sets, p_values or intervals: what the predictor promises to contain the outcome.",
        at_level=marginal,
    ),
    Check(
        code="CAL103",
        title="p-values of true labels",
        question=QUESTION,
        needs=("p_values",),
        add="Add p_values, one column per class.",
        once=uniformity,
        tasks=("classification",),
    ),
)
