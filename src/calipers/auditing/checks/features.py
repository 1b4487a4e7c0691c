"""CAL202, does coverage depend on the features: rows expected to fare worst, chosen on other rows.

A classifier learns on one half of the rows where misses happen and picks the fifth of the other half that it
expects to fare worst; then the halves change places. Given the half it learnt from, the picked rows are any
rows if coverage does not depend on the features, so the hypergeometric test is exact whatever the classifier.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calipers.auditing import repairs
from calipers.auditing.checks.coverage import rows_for, tolerance_at
from calipers.auditing.checks.everywhere import (
    FEWEST_MISSES,
    PART_TOLERANCE,
    QUESTION,
    flat_p_values,
    group_counts,
)
from calipers.auditing.checks.regions import regions_below, worst_rule
from calipers.auditing.material import Level, Material
from calipers.auditing.reading import Check, Picture, Reading
from calipers.exceptions import InputError
from calipers.inference import clopper_pearson
from calipers.inputs import Features
from calipers.metrics import ert_table
from calipers.metrics.conditional import CoverageClassifier
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_percent

CODE, TITLE = "CAL202", "coverage depends on the features"
HALVES = (
    "share of covered rows in the fifth that a coverage ensemble expects to fare worst, fitted "
    "to the other half of the rows; hypergeometric test in both halves, corrected for two"
)
PICKED = 0.2
MOST_TRAINING_ROWS = 30_000
MOST_RISK_ROWS = 20_000
FORESEEN = (
    " The stated probabilities foresee it: a set holds a label or does not. Randomised sets (aps with "
    "randomized=True) can cover evenly."
)
# A rule is looked for only when the classifier found something to describe.
SUSPECT = 0.05


def by_features(material: Material, level: Level) -> Reading:
    """Coverage of the rows that a classifier, fitted to other rows, expects to fare worst."""
    if material.features is None:
        return Reading(code=CODE, title=TITLE, question=QUESTION, not_applicable="There are no features.")
    rng = material.generator(f"{CODE}{level.tag}")
    half = rng.permutation(material.n) < material.n // 2
    misses = min(int((~level.covered[part]).sum()) for part in (half, ~half))
    if misses < FEWEST_MISSES:
        reason = f"A half of the rows has {misses} misses; {FEWEST_MISSES} are needed to learn from."
        return Reading(code=CODE, title=TITLE, question=QUESTION, not_applicable=reason)
    picked = np.zeros(material.n, dtype=bool)
    p_values = []
    for learn, judge in ((half, ~half), (~half, half)):
        picked[judge] = pick_worst(material.features, level.covered, learn, judge, rng)
        counts = group_counts(
            level.covered[judge], (~picked[judge]).astype(int), 2,
            None if material.weights is None else material.weights[judge],
        )  # fmt: skip
        p_values.append(flat_p_values(*counts)[0])
    p = float(np.min(p_values)) * 2
    p_value = None if np.isnan(p) else min(1.0, p)
    counts = group_counts(level.covered, (~picked).astype(int), 2, material.weights)
    high = float(clopper_pearson(counts[0][0], counts[1][0], confidence=material.confidence)[1])
    foreseen = is_foreseen(material, level, picked, high)
    reading = risk_reading(material, level, *counts, p_value, foreseen=foreseen)
    numbers, picture = excess_risk(material, level)
    return replace(reading, estimates=(*reading.estimates, *numbers), pictures=(picture,))


def excess_risk(material: Material, level: Level) -> tuple[list[Estimate], Picture]:
    """The excess risk of the target coverage, and coverage over tenths of what was expected of the rows."""
    rows = np.arange(material.n)
    if material.n > MOST_RISK_ROWS:
        rows = material.generator(f"ERT rows{level.tag}").choice(material.n, MOST_RISK_ROWS, replace=False)
    if material.features is None:
        raise InputError("X was not given to the audit.")
    table = ert_table(
        material.features.take(rows), level.covered[rows], alpha=level.alpha, losses=("l1", "l2"),
        null="flat",
        sample_weight=None if material.weights is None else material.weights[rows],
        confidence=material.confidence, random_state=material.generator(f"ERT{level.tag}"),
    )  # fmt: skip
    expected = np.asarray(table["l1"].details["predictions"])
    named = [replace(found, name=f"ert {key}{level.tag}") for key, found in table.items()]
    return named, _expected_picture(expected, level.covered[rows], level, material.confidence)


def _expected_picture(expected: np.ndarray, covered: np.ndarray, level: Level, confidence: float) -> Picture:
    parts = np.array_split(np.argsort(expected, kind="stable"), min(10, len(expected)))
    hits = np.array([covered[part].sum() for part in parts], dtype=float)
    rows = np.array([len(part) for part in parts], dtype=float)
    means = np.array([expected[part].mean() for part in parts])
    return expectation_picture(means, hits, rows, level, confidence)


def expectation_picture(
    means: np.ndarray, hits: np.ndarray, rows: np.ndarray, level: Level, confidence: float
) -> Picture:
    """Coverage of parts of the rows against what was expected of them."""
    low, high = (np.asarray(end) for end in clopper_pearson(hits, rows, confidence=confidence))
    curve = Curve(
        name="coverage", x=means, y=hits / rows, low=low,
        high=high, confidence=confidence, x_label="expected coverage, from the features of other rows",
        y_label="observed coverage", method="tenths of the rows by out-of-fold prediction, Clopper-Pearson",
    )  # fmt: skip
    return Picture(
        name=f"coverage_by_expectation{level.tag}".replace(" ", "_"), question=QUESTION,
        title=f"Coverage against what the features foretell{level.tag}",
        caption="Rows sorted by the coverage a classifier expects of them, in tenths. If coverage is the "
        "same everywhere the points scatter around the promise; points that rise along the axis are a fault.",
        kind="points", curves=(curve,), reference=level.promised,
    )  # fmt: skip


def pick_worst(
    features: Features, covered: np.ndarray, learn: np.ndarray, judge: np.ndarray, rng: np.random.Generator
) -> np.ndarray:
    """Which of the rows to evaluate belong to the fifth that is expected to be covered least."""
    rows = np.flatnonzero(learn)
    if len(rows) > MOST_TRAINING_ROWS:
        rows = rng.choice(rows, MOST_TRAINING_ROWS, replace=False)
    expected = expected_coverage(features.take(rows), covered[rows], features.values[judge], rng)
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


def is_foreseen(material: Material, level: Level, picked: np.ndarray, high: float) -> bool:
    """Whether the stated probabilities of the labels inside the sets say that these rows are missed so often.

    A set holds a label or does not, so sets of labels cannot cover exactly 1 - alpha at every x. Where the
    probabilities foresee what happens, the predictor is coarse, not wrong.
    """
    if material.probabilities is None or level.prediction.dtype.kind != "b":
        return False
    stated = np.sum(material.probabilities[picked] * level.prediction[picked], axis=1)
    weights = None if material.weights is None else material.weights[picked]
    return float(np.average(stated, weights=weights)) <= high + tolerance_at(level.alpha)


def risk_reading(
    material: Material,
    level: Level,
    hits: np.ndarray,
    rows: np.ndarray,
    p: float | None,
    *,
    foreseen: bool,
    method: str = HALVES,
) -> Reading:
    """What the coverage of the rows picked as risky, and of the others, says."""
    low, high = (float(end) for end in clopper_pearson(hits[0], rows[0], confidence=material.confidence))
    share, tolerance = hits[0] / rows[0], PART_TOLERANCE * tolerance_at(level.alpha)
    owed = min(level.promised, float(hits[1] / rows[1]))
    evidence = Estimate(
        name=f"coverage where it is expected to be worst{level.tag}", value=float(share), low=low, high=high,
        confidence=material.confidence, n=float(rows[0]), p_value=p, alternative="less",
        method=method,
        reason="" if p is not None else "no exact test with weights that are not whole numbers",
        details={"hits": hits, "rows": rows},
    )  # fmt: skip
    return Reading(
        code=CODE,
        title=TITLE,
        question=QUESTION,
        evidence=evidence,
        p_value=p,
        effect=float(owed - share),
        effect_low=owed - high,
        effect_high=owed - low,
        tolerance=tolerance,
        fault=f"In the fifth of rows that the features mark as risky the {material.noun} cover "
        f"{100 * share:.1f} %; {format_percent(level.promised)} was promised, and the other rows reach "
        f"{100 * hits[1] / rows[1]:.1f} %." + (FORESEEN if foreseen else ""),
        cap="warning" if foreseen else "issue",
        clean="The features do not tell which rows will be missed.",
        repair=repairs.by_group(material.task, level.alpha),
        rows_needed=int(np.ceil(rows_for(level.alpha, tolerance) / PICKED)),
        estimates=(evidence,),
        details={"alpha": level.alpha, "shortfall": float(level.promised - share)},
    )


def by_features_with_place(material: Material, level: Level) -> Reading:
    """Coverage along the features and, where it fails, the rule in words that describes the worst place."""
    return with_place(material, level, by_features(material, level))


def with_place(material: Material, level: Level, reading: Reading) -> Reading:
    """The reading with the worst place, when it is suspect and a search of the material finds one."""
    suspect = reading.p_value is not None and reading.p_value < SUSPECT and (reading.effect or 0.0) > 0
    if not suspect or material.weights is not None:
        return reading
    under = regions_below(material, level)
    if not under:
        return reading
    rule = worst_rule(under)
    if (under[rule].p_value or 1.0) > SUSPECT:
        return reading
    mass = 100 * float(under[rule].details["mass"])
    place = f" Worst where {rule} ({mass:.0f} % of the rows)."
    return replace(
        reading, where=f"{rule}{level.tag}", fault=reading.fault + place,
        details=dict(reading.details) | {"place": place},
    )  # fmt: skip


CHECKS = (
    Check(
        code=CODE,
        title="coverage along the features",
        question=QUESTION,
        needs=("prediction", "X"),
        add="Add X, the features of the rows, to find where coverage fails.",
        at_level=by_features_with_place,
    ),
)
