"""CAL202, does coverage depend on the features: rows expected to fare worst, chosen on other rows.

A classifier learns on one half of the rows where misses happen and picks the fifth of the other half that it
expects to fare worst; then the halves change places. With many rows it learns on a sample and picks among all
others. Given the rows it learnt from, the picked rows are any rows if coverage does not depend on the
features, so the hypergeometric test is exact whatever the classifier.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.checks.excess_risk import (
    CODE,
    DESCRIBED,
    QUICK_ROWS,
    TITLE,
    excess_risk_at_promise,
    models,
)
from calipers.auditing.checks.regions import FLAT, SUSPECT, described_region, region_mask
from calipers.auditing.compared_parts import QUESTION, is_foreseen, stated_inside
from calipers.auditing.measurements import NO_EXACT_TEST, Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.slices import flat_p_values
from calipers.auditing.tolerances import (
    PART_TOLERANCE,
    rows_for,
    rows_with,
    tolerance_at,
)
from calipers.inference import ShareCounts, clopper_pearson
from calipers.inputs import Features, Weights
from calipers.inputs.rows import Rows
from calipers.metrics import ert_table
from calipers.metrics.conditional import CoverageClassifier
from calipers.metrics.conditional.streamed_excess_risk import FEWEST_MISSES, ExcessRiskState, fit_fold_models
from calipers.results import Curve, Estimate, EstimateTable
from calipers.results.formatting import format_percent, format_rows, format_share

HALVES = (
    "share of covered rows in the 20 % with the lowest coverage predicted by an ensemble, fitted "
    "to the other half of the rows; hypergeometric test in both halves, corrected for two"
)
OUTSIDE = (
    "share of covered rows in the 20 % with the lowest coverage predicted by ensembles, fitted to a sample, "
    "among all rows outside the sample; hypergeometric test"
)
PICKED = 0.2
MOST_TRAINING_ROWS = 30_000
FORESEEN = (
    " The stated probabilities foresee it: a set holds a label or does not. Randomised sets (aps with "
    "randomized=True) can cover evenly."
)


def ensemble_states(m: Measurements, promise: Promise) -> States:
    """Models fitted on the sample, evaluated on all rows outside it; none where the sample is all rows."""
    if promise.per_row or promise.two_sided or "cluster" in m.design.have:
        return {}
    covered = m.rows_at(promise)["covered"]
    if m.design.is_whole or int(np.count_nonzero(~covered)) < 2 * FEWEST_MISSES:
        return {}
    models = fit_fold_models(
        m.features, covered, m.sample.weights, alpha=promise.alpha, keys=m.sample.keys(),
        threshold=m.threshold, seed=m.design.seed,
    )  # fmt: skip
    return {"ensemble": ExcessRiskState(models, m.design.seed, confidence=m.confidence)}


def by_features(m: Measurements, promise: Promise) -> CheckResult:
    """Coverage of the rows that a classifier, fitted on other rows, expects to fare worst."""
    if promise.per_row or promise.two_sided or "cluster" in m.design.have:
        return excess_risk_at_promise(m, promise)
    covered = m.rows_at(promise)["covered"]
    misses = int(np.count_nonzero(~covered))
    if misses < 2 * FEWEST_MISSES:
        reason = f"{format_rows(misses)} missed; {2 * FEWEST_MISSES} are needed to learn where misses happen."
        return CheckResult(
            code=CODE, title=TITLE, question=QUESTION, not_applicable=reason,
            rows_needed=rows_with(2 * FEWEST_MISSES, promise.alpha, m.n, misses),
        )  # fmt: skip
    found = _cross_fitted(m, promise) if m.design.is_whole else _outside_the_sample(m, promise)
    result = _with_place(m, promise, _risk_result(m, promise, found))
    numbers = [replace(e, name=f"ert {key}{promise.tag}") for key, e in found.excess_risk.items()]
    return replace(result, estimates=(*result.estimates, *numbers), pictures=(found.picture,))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RiskyFifth:
    """Coverage of the rows expected to fare worst and of the others, and what the same models say of all.

    Parameters
    ----------
    counts : ShareCounts
        Covered and all rows: of the risky fifth, of the others.
    p_value : float or None
        Of the fifth being covered no less often than the others.
    stated : float or None
        Mean probability stated for the labels inside the sets of the fifth.
    excess_risk : EstimateTable
        The excess risk of the target coverage.
    picture : Picture
        Coverage against what was expected.
    method : str
        How the fifth was found.
    """

    counts: ShareCounts
    p_value: float | None
    stated: float | None
    excess_risk: EstimateTable
    picture: Picture
    method: str


def _cross_fitted(m: Measurements, promise: Promise) -> RiskyFifth:
    """Each half of the rows, marked by a model fitted on the other."""
    rows, rng = m.rows_at(promise), m.generator(f"{CODE}{promise.tag}")
    covered, half, p_values = rows["covered"], m.half(f"{CODE}{promise.tag}"), []
    picked, given = np.zeros(rows.n, dtype=bool), Weights.check(rows.weights, rows.n)
    for train, test in ((half, ~half), (~half, half)):
        picked[test] = pick_worst(m.features, covered, train, test, rng, quick=m.design.quick)
        weights = None if given is None else given.take(test)
        counts = ShareCounts.of(covered[test], weights, (~picked[test]).astype(int), 2)
        p_values.append(flat_p_values(counts)[0])
    p = float(np.min(p_values)) * 2
    counts, stated = (
        ShareCounts.of(covered, given, (~picked).astype(int), 2),
        stated_inside(rows.take(picked)),
    )
    features = m.features
    if m.design.quick and rows.n > QUICK_ROWS:
        some = rng.choice(rows.n, QUICK_ROWS, replace=False)
        rows, features = rows.take(some), features.take(some)
    table = ert_table(
        features, rows["covered"], alpha=promise.alpha, losses=("l1", "l2"), null="flat",
        sample_weight=rows.weights, confidence=m.confidence, random_state=m.generator(f"ERT{promise.tag}"),
        **models(m),
    )  # fmt: skip
    expected = np.asarray(table["l1"].details["predictions"])
    return RiskyFifth(
        counts=counts, p_value=None if np.isnan(p) else min(1.0, p), stated=stated,
        excess_risk=table, picture=_tenths_picture(expected, rows, promise, m.confidence), method=HALVES,
    )  # fmt: skip


def _outside_the_sample(m: Measurements, promise: Promise) -> RiskyFifth:
    """All rows outside the sample, marked by models fitted on it."""
    ensemble: ExcessRiskState = m.result("ensemble", promise)
    counts = ensemble.picked_counts()
    p = float(flat_p_values(counts)[0]) if counts.totals.all() else np.nan
    has_sets = m.sample.get("probabilities") is not None and m.task == "classification"
    covered, mass, expected = ensemble.tenths[:, ensemble.tenths[1] > 0]
    return RiskyFifth(
        counts=counts, p_value=None if np.isnan(p) else p,
        stated=float(ensemble.stated / max(1e-300, counts.totals[0])) if has_sets else None,
        excess_risk=ensemble.table(),
        picture=expectation_picture(expected / mass, covered, mass, promise, m.confidence), method=OUTSIDE,
    )  # fmt: skip


def _tenths_picture(expected: np.ndarray, rows: Rows, promise: Promise, confidence: float) -> Picture:
    order = np.argsort(expected, kind="stable")
    parts = np.array_split(order, min(10, len(expected)))
    tenth = np.repeat(np.arange(len(parts)), [len(part) for part in parts])
    mass = np.ones(rows.n) if rows.weights is None else rows.weights
    covered, weight, total = (
        np.bincount(tenth, weights=x[order], minlength=len(parts))
        for x in (mass * rows["covered"], mass, mass * expected)
    )
    return expectation_picture(total / weight, covered, weight, promise, confidence)


def expectation_picture(
    means: np.ndarray, hits: np.ndarray, rows: np.ndarray, promise: Promise, confidence: float
) -> Picture:
    """Coverage of parts of the rows against what was expected of them."""
    low, high = (np.asarray(end) for end in clopper_pearson(hits, rows, confidence=confidence))
    curve = Curve(
        name="coverage", x=means, y=hits / rows, low=low,
        high=high, confidence=confidence, x_label="predicted coverage, by a model fitted on other rows",
        y_label="observed coverage", method="tenths of the rows by out-of-fold prediction, Clopper-Pearson",
    )  # fmt: skip
    return Picture(
        name=f"coverage_by_expectation{promise.tag}".replace(" ", "_"), question=QUESTION,
        title=f"Observed against predicted coverage{promise.tag}",
        caption="Rows sorted by the coverage that a model of their features predicts, in tenths. If coverage "
        "is the same everywhere the points scatter around the promise; points that rise are a fault.",
        kind="points", curves=(curve,), reference=promise.promised,
    )  # fmt: skip


def pick_worst(
    features: Features,
    covered: np.ndarray,
    train: np.ndarray,
    test: np.ndarray,
    rng: np.random.Generator,
    *,
    quick: bool = False,
) -> np.ndarray:
    """Which of the test rows belong to the fifth that is expected to be covered least."""
    rows, most = np.flatnonzero(train), QUICK_ROWS if quick else MOST_TRAINING_ROWS
    if len(rows) > most:
        rows = rng.choice(rows, most, replace=False)
    expected = expected_coverage(features.take(rows), covered[rows], features.values[test], rng)
    # A draw breaks ties: the order of rows must not decide.
    order = np.lexsort((rng.random(len(expected)), expected))
    picked = np.zeros(len(expected), dtype=bool)
    picked[order[: max(1, round(PICKED * len(expected)))]] = True
    return picked


def expected_coverage(
    features: Features, covered: np.ndarray, values: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """P(covered | x) of some rows by the coverage ensemble fitted to others, around their share covered."""
    share = float(np.mean(covered))
    model = CoverageClassifier().fit(features, covered, np.full(len(covered), share), None, rng)
    return model.predict(values, np.full(len(values), share)).unshrunk


def _risk_result(m: Measurements, promise: Promise, found: RiskyFifth) -> CheckResult:
    """What the coverage of the rows picked as risky, and of the others, says."""
    counts, p = found.counts, found.p_value
    low, high = (float(end[0]) for end in counts.interval(m.confidence))
    share, others = (float(x) for x in counts.shares)
    foreseen = is_foreseen(found.stated, promise, high)
    tolerance = PART_TOLERANCE * tolerance_at(promise.alpha)
    owed = min(promise.promised, others)
    evidence = Estimate(
        name=f"coverage where it is expected to be worst{promise.tag}", value=float(share), low=low,
        high=high, confidence=m.confidence, n=float(counts.effective[0]), p_value=p, alternative="less",
        method=found.method,
        reason="" if p is not None else NO_EXACT_TEST,
        details={"hits": counts.hits, "rows": counts.totals, "null_subject": FLAT},
    )  # fmt: skip
    return CheckResult(
        code=CODE,
        title=TITLE,
        question=QUESTION,
        evidence=evidence,
        p_value=p,
        effect=float(owed - share),
        effect_low=owed - high,
        effect_high=owed - low,
        tolerance=tolerance,
        fault=f"In the 20 % of rows with the lowest predicted coverage (by a model of the features, fitted "
        f"on other rows) the {m.noun} cover {format_share(share)}; {format_percent(promise.promised)} was "
        f"promised, and the other rows reach {format_share(others)}." + (FORESEEN if foreseen else ""),
        cap="warning" if foreseen else "issue",
        clean="The features do not clearly tell which rows will be missed.",
        repair=repair_snippets.by_group(m.task, promise.alpha),
        rows_needed=int(np.ceil(rows_for(promise.alpha, tolerance, m.confidence) / PICKED)),
        estimates=(evidence,),
        details={"alpha": promise.alpha, "shortfall": float(promise.promised - share)},
    )


def _with_place(m: Measurements, promise: Promise, result: CheckResult) -> CheckResult:
    """The result with the worst place, when it is suspect and a search of the sample finds one."""
    suspect = result.p_value is not None and result.p_value < SUSPECT and (result.effect or 0.0) > 0
    if not suspect or m.sample.is_weighted:
        return result
    if (found := described_region(m, promise)) is None:
        return result
    (rule, conditions), is_confirmed = found
    lead = "Worst where " if is_confirmed else DESCRIBED
    place = f" {lead}{rule} ({format_share(region_mask(m.sample, conditions).mean(), 0)} of the rows)."
    return replace(
        result, where=f"{rule}{promise.tag}", fault=result.fault + place,
        rows=lambda rows: region_mask(rows, conditions),
        details=dict(result.details) | {"place": place},
    )  # fmt: skip


_ADD = "Add X, the features of the rows, to find where promises fail."
CHECKS = (
    Check(
        code=CODE,
        title="coverage along the features",
        question=QUESTION,
        needs=("X",),
        add=_ADD,
        kinds=("coverage", "stated"),
        slices="features",
        from_sample=ensemble_states,
        read=by_features,
    ),
    Check(
        code="CAL505",
        title="calibration along the features",
        question="probabilities",
        needs=("X",),
        add=_ADD,
        kinds=("probability", "classes", "quantile"),
        slices="features",
        read=by_features,
        on_sample=True,
    ),
)
