"""CAL1xx, does it cover as often as it says: marginal coverage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calipers.auditing import repairs
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.measurements import NO_EXACT_TEST, Design, Level, Measurements
from calipers.auditing.table_states import table_of
from calipers.inference import normal_quantile, wilson
from calipers.inputs import Weights, covered_by_sets, sets_at
from calipers.metrics import p_value_uniformity
from calipers.metrics.marginal import coverage_law, coverage_of_rows
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


def coverage_counts(design: Design, level: Level) -> States:
    """Covered and missed rows, of every size for sets of labels."""
    columns = ("covered", "size") if design.task == "classification" else ("covered",)
    return {"counts": table_of(*columns)}


def marginal(m: Measurements, level: Level) -> CheckResult:
    """Marginal coverage against the promise, under the law of a finite calibration sample."""
    covered, *_, weights = m.result("counts", level)
    estimate = coverage_of_rows(
        covered, alpha=level.alpha, n_calibration=m.design.n_calibration, weights=weights,
        confidence=m.confidence, name=f"coverage{level.tag}",
    )  # fmt: skip
    result = _side(m, level, estimate, below=float(estimate) < level.promised)
    several = m.sample.get("p_values") is not None or len(m.design.levels) > 1
    return replace(result, estimates=(estimate,), pictures=(by_alpha(m),) if several else ())


def _side(m: Measurements, level: Level, estimate: Estimate, *, below: bool) -> CheckResult:
    value, promised, noun = float(estimate), format_percent(level.promised), m.noun
    below_by = interval_of(estimate)
    ends = (level.promised - below_by[1], level.promised - below_by[0])
    low, high = ends if below else (-ends[1], -ends[0])
    luck, cap = _calibration_luck(m, level, estimate)
    says = f"The {noun} cover {_percent(value)} of the rows; {promised} was promised"
    ending = "." if below else ": they are larger than they need to be."
    return CheckResult(
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
        repair=repairs.reconformalise(m.task, level.alpha),
        cap=cap if below else "warning",
        rows_needed=rows_for(level.alpha, tolerance_at(level.alpha), m.confidence),
        details={"alpha": level.alpha, "n_calibration": m.design.n_calibration},
    )


def _calibration_luck(m: Measurements, level: Level, estimate: Estimate) -> tuple[str, str]:
    """A healthy predictor conformalised on few rows misses by luck; without n_calibration, allow for it."""
    if m.design.n_calibration is not None or estimate.p_value is None:
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


def uniformity(m: Measurements, level: None) -> CheckResult:
    """Whether too many p-values of the true labels are small."""
    rows = m.counted_rows()
    base = CheckResult(code="CAL103", title="p-values are too small", question=QUESTION)
    if rows is None:
        return replace(base, not_applicable=f"{NO_EXACT_TEST}.".capitalize())
    if rows.n > MOST_P_VALUES:
        rows = rows.take(m.generator("CAL103").choice(rows.n, MOST_P_VALUES, replace=False))
    estimate = p_value_uniformity(
        rows["y"], rows["p_values"], classes=np.arange(len(m.classes)),
        n_calibration=m.design.n_calibration or ASSUMED_CALIBRATION, smoothed=False,
        confidence=m.confidence, random_state=m.generator("CAL103 law"),
    )  # fmt: skip
    low, high = interval_of(estimate)
    excess = f"{100 * float(estimate):.1f}"
    return replace(
        base,
        evidence=estimate,
        p_value=estimate.p_value,
        effect=float(estimate),
        effect_low=low,
        effect_high=high,
        tolerance=P_VALUE_TOLERANCE,
        fault=f"Small p-values of true labels come too often: at some level {excess} % of the rows more than "
        "allowed. Sets made from them cover less than promised.",
        clean="The p-values of true labels are no smaller than they should be.",
        repair=repairs.reconformalise(m.task, m.design.alphas[0]),
        rows_needed=int(np.ceil((1.36 / P_VALUE_TOLERANCE) ** 2)),
        estimates=(estimate,),
    )


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def by_alpha(m: Measurements) -> Picture:
    """Coverage and size over alpha, with the band of a valid predictor: the slider of the report."""
    rows = m.sample
    if rows.get("p_values") is not None and rows.get("sets") is None:
        alphas = ALPHA_GRID
        kept = [np.asarray(sets_at(rows["p_values"], float(a))) for a in alphas]
        columns = [(np.asarray(covered_by_sets(rows["y"], sets)), np.sum(sets, axis=1)) for sets in kept]
    else:
        alphas = np.array(m.design.alphas)
        levels = [m.rows_at(level) for level in m.design.levels]
        columns = [(level["covered"], level["size"]) for level in levels]
    means = [[float(np.average(x, weights=rows.weights)) for x in pair] for pair in columns]
    weights = Weights.check(rows.weights, rows.n)
    n = float(rows.n) if weights is None else weights.effective
    return _alpha_picture(m, n, alphas, np.array(means).T)


def _alpha_picture(m: Measurements, n: float, alphas: np.ndarray, means: np.ndarray) -> Picture:
    shares, sizes = means
    bands = np.array([_band(m, int(n), float(a)) for a in alphas])
    # Shares of counted rows are counts up to rounding.
    hits = np.round(shares * n) if n == int(n) else np.minimum(shares * n, n)
    low, high = wilson(hits, n, confidence=m.confidence)
    order = np.argsort(alphas, kind="stable")
    curve = Curve(
        name="coverage by alpha", x=alphas[order], y=shares[order], low=np.asarray(low)[order],
        high=np.asarray(high)[order], confidence=m.confidence, null_low=bands[order, 0],
        null_high=bands[order, 1], null_level=0.95, x_label="alpha (allowed miscoverage)", y_label="coverage",
        method="share of covered rows, Wilson interval, exact band of a valid predictor",
        details={"size": sizes[order], "target": 1 - alphas[order]},
    )  # fmt: skip
    return Picture(
        name="coverage_by_alpha", question=QUESTION, title="Coverage at every alpha",
        caption="The line should lie inside the grey band, which holds 95 % of the readings of a valid "
        "predictor.", kind="line", curves=(curve,),
    )  # fmt: skip


def _band(m: Measurements, n: int, alpha: float) -> tuple[float, float]:
    return coverage_law(n, alpha, m.design.n_calibration).share_interval(0.95, "two-sided")


CHECKS = (
    Check(
        code="CAL101",
        title="marginal coverage",
        question=QUESTION,
        needs=("prediction",),
        add="Add sets, p_values or intervals: what the predictor promises to contain the outcome.",
        states=coverage_counts,
        read=marginal,
    ),
    Check(
        code="CAL103",
        title="p-values of true labels",
        question=QUESTION,
        needs=("p_values",),
        add="Add p_values, one column per class.",
        once=True,
        read=uniformity,
        on_sample=True,
        tasks=("classification",),
    ),
)
