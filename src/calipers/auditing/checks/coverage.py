"""CAL1xx, does it cover as often as it says: marginal coverage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Design, Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import FEW_CLUSTERS, PromiseRows, promise_rows, without_a_chance_to_miss
from calipers.auditing.severity import LEVEL, NOT_CLEAR, SERIOUS
from calipers.auditing.table_states import table_of
from calipers.auditing.tolerances import interval_of, rows_for, tolerance_at
from calipers.inference import PoissonBinomialLaw, wilson
from calipers.inputs import Weights, covered_by_sets, sets_at
from calipers.inputs.rows import Rows
from calipers.metrics import p_value_uniformity
from calipers.metrics.marginal import coverage_law, coverage_of_rows
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_percent, format_share

QUESTION = "coverage"
# A predictor of unknown calibration is given the luck of this many calibration rows.
ASSUMED_CALIBRATION = 500
# Largest excess of small p-values that is not worth acting on, and rows that are enough to see more.
P_VALUE_TOLERANCE = 0.03
MOST_P_VALUES = 20_000
ALPHA_GRID = np.round(np.concatenate([[0.01, 0.02, 0.03, 0.04], np.arange(0.05, 0.501, 0.025)]), 4)


def coverage_counts(design: Design, promise: Promise) -> States:
    """Covered and missed rows, of every size for sets of labels."""
    if promise.per_row:
        return {}
    columns = ("covered", "size") if design.task == "classification" else ("covered",)
    return {"counts": table_of(*columns)}


def marginal(m: Measurements, promise: Promise) -> CheckResult:
    """Marginal coverage against the promise, under the law of a finite calibration sample."""
    if promise.per_row or "cluster" in m.design.have:
        return _side_by_side(m, promise)
    covered, *_, weights = m.result("counts", promise)
    estimate = coverage_of_rows(
        covered, alpha=promise.alpha, n_calibration=m.design.n_calibration, weights=weights,
        confidence=m.confidence, name=f"coverage{promise.tag}",
    )  # fmt: skip
    result = replace(
        _side(m, promise, estimate, below=float(estimate) < promise.promised),
        rows=_missed(promise, estimate, promise.promised),
    )
    several = m.sample.get("p_values") is not None or len(m.design.levels) > 1
    return replace(result, estimates=(estimate,), pictures=(by_alpha(m),) if several else ())


def _side_by_side(m: Measurements, promise: Promise) -> CheckResult:
    """The same for a probability per row, or rows that depend on each other, from the rows themselves."""
    side = promise_rows(m, promise)
    if side is None:
        return CheckResult(
            code="CAL101", title="under-coverage", question=QUESTION,
            not_applicable=NO_EXACT_TEST_SENTENCE,
        )  # fmt: skip
    promised = float(side.promised.mean())
    estimate = coverage_of_promise(m, promise, side)
    result = _side(m, promise, estimate, below=float(estimate) < promised, promised=promised)
    if (certain := without_a_chance_to_miss(result, promise, side)) is not None:
        return replace(certain, p_value=None, effect_high=None, estimates=(estimate,))
    return replace(result, estimates=(estimate,), rows=_missed(promise, estimate, promised))


def _missed(promise: Promise, estimate: Estimate, promised: float) -> Callable[[Rows], np.ndarray] | None:
    """The rows that under-coverage is about; over-coverage is about all rows, not the missed ones."""
    return (lambda rows: ~promise.rows(rows)["covered"]) if float(estimate) < promised else None


def coverage_of_promise(m: Measurements, promise: Promise, side: PromiseRows) -> Estimate:
    """Share of promises that were kept, with the law of independent coins, or of clusters of rows."""
    hits, n = int(side.kept.sum()), len(side.kept)
    effect = side.design_effect
    low, high = side.share_interval(m.confidence)
    fields: dict[str, Any] = {
        "name": promise.name if promise.per_row else f"coverage{promise.tag}",
        "value": hits / n, "low": low, "high": high, "confidence": m.confidence, "n": n,
        "details": {"covered": hits, "promised": float(side.promised.mean()), "design_effect": effect},
    }  # fmt: skip
    if side.cluster is not None:
        gap = replace(side, expected=side.promised)
        p = gap.sign_test(lambda r: np.abs(r.sum(axis=1)), m.generator(f"clusters {promise.key}"))
        how = f"share of rows, interval at the design effect of {effect:.3g}, test by signs of clusters"
        return Estimate(
            **fields, p_value=p, alternative="two-sided", method=how, reason=FEW_CLUSTERS if p is None else ""
        )
    law = PoissonBinomialLaw.of(side.promised)
    null = law.interval(0.95)
    # A promise of certainty that is broken, or of impossibility, cannot happen: it rejects by itself.
    impossible = np.any((side.promised == 1) & ~side.kept) or np.any((side.promised == 0) & side.kept)
    p = float(np.finfo(float).tiny) if impossible else law.p_value(hits)
    return Estimate(
        **fields, p_value=p, alternative="two-sided", null_low=float(null.low) / n,
        null_high=float(null.high) / n, null_level=0.95,
        method="share of rows, Clopper-Pearson interval; law of independent coins with the promised "
        "probabilities (Poisson-binomial)",
    )  # fmt: skip


def _side(
    m: Measurements, promise: Promise, estimate: Estimate, *, below: bool, promised: float | None = None
) -> CheckResult:
    stated = promise.promised if promised is None else promised
    value, words = float(estimate), format_percent(stated)
    below_by = interval_of(estimate)
    ends = (stated - below_by[1], stated - below_by[0])
    low = ends[0] if below else -ends[1]
    # With few rows there is room on the other side, too.
    high = max(ends[1], -ends[0])
    luck, cap = _calibration_luck(m, promise, estimate)
    promised_words = words if not promise.per_row else f"{format_share(stated)} on average"
    subject = f"The {promise.noun}"
    if promise.kind == "stated":
        mass = format_percent(1 - promise.alpha)
        subject = f"Sets of the likeliest labels, whose stated probabilities reach {mass},"
    says = f"{subject} cover {format_share(value)} of the rows; {promised_words} was promised"
    ending = "." if below else ": they are larger than they need to be."
    return CheckResult(
        code="CAL101" if below else "CAL102",
        title="under-coverage" if below else "over-coverage",
        question=QUESTION,
        evidence=estimate,
        p_value=estimate.p_value,
        effect=abs(stated - value),
        effect_low=low,
        effect_high=high,
        tolerance=tolerance_at(stated),
        serious=SERIOUS * tolerance_at(promise.alpha),
        fault=says + ending + luck,
        clean=_clean_words(estimate, stated, f"{subject} cover {format_share(value)}", promised_words),
        where=promise.tag.strip(),
        repair=repair_snippets.reconformalise(m.task, promise.alpha),
        cap=cap if below else "warning",
        rows_needed=rows_for(promise.alpha, tolerance_at(promise.alpha), m.confidence),
        details={"alpha": 1.0 - stated, "n_calibration": m.design.n_calibration},
    )


def _clean_words(estimate: Estimate, stated: float, says: str, promised: str) -> str:
    """What is said of coverage that is not a fault: whether noise alone explains the difference."""
    low, high = interval_of(estimate)
    if estimate.p_value is not None and estimate.p_value <= LEVEL:
        return f"{says}; {promised} was promised. {NOT_CLEAR}"
    if estimate.p_value is None and not low <= stated <= high:
        return f"{says}; {promised} was promised."
    return f"{says}, as promised ({promised}) up to sampling noise."


def _calibration_luck(m: Measurements, promise: Promise, estimate: Estimate) -> tuple[str, str]:
    """A healthy predictor conformalised on few rows misses by luck; without n_calibration, allow for it."""
    if m.design.n_calibration is not None or estimate.p_value is None or promise.per_row:
        return "", "issue"
    if "cluster" in m.design.have or promise.kind != "coverage":
        return "", "issue"
    rows, hits = int(estimate.n or 0), int(estimate.details["covered"])
    p = float(coverage_law(rows, promise.alpha, ASSUMED_CALIBRATION).p_value(hits, "two-sided"))
    if p <= 0.01:
        return "", "issue"
    luck = (
        f" A healthy predictor conformalised on {ASSUMED_CALIBRATION} rows can read this by luck: "
        "state n_calibration to settle it."
    )
    return luck, "warning"


def uniformity(m: Measurements, promise: None) -> CheckResult:
    """Whether too many p-values of the true labels are small."""
    rows = m.counted_rows()
    base = CheckResult(
        code="CAL103", title="p-values are too small", question=QUESTION, promise="p-values of true labels"
    )
    if rows is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
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
        clean="The p-values of true labels are not clearly smaller than they should be.",
        repair=repair_snippets.reconformalise(m.task, m.design.alphas[0]),
        rows_needed=int(np.ceil((1.36 / P_VALUE_TOLERANCE) ** 2)),
        estimates=(estimate,),
    )


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
        kinds=("coverage", "stated"),
        slices="all rows",
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
        slices="all rows",
        read=uniformity,
        on_sample=True,
        tasks=("classification",),
    ),
)
