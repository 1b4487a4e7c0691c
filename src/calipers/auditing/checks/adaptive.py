"""CAL4xx, is it wider exactly where the case is harder: coverage and size along difficulty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from scipy import special, stats

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.checks.coverage import coverage_counts
from calipers.auditing.compared_parts import (
    Wording,
    calibration_of_parts,
    compare_parts,
    is_foreseen,
    stated_inside,
)
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Design, Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.rivals import FEWEST_TRAINING_ROWS, Learner, distinct_sizes, filled, out_of_half
from calipers.auditing.slices import ALONG, Parts
from calipers.auditing.table_states import table_of
from calipers.inference import ShareCounts, normal_quantile
from calipers.inputs import Weights
from calipers.inputs.rows import Rows
from calipers.metrics import deficit, excess, sscv, t_cv, t_ss
from calipers.metrics.adaptivity.ease_states import EaseRangeState
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_number, format_share

QUESTION = "adaptive"
# The column along which rows are harder or easier: the ease, or what stands in for it.
EASE = "ease_or_size"
# Parts along difficulty, and the rows from which on so many are made. The hardest part must hold enough
# rows for its interval to leave the tolerance behind: with 1500 rows fifths see more than tenths.
PARTS = ((10, 5000), (5, 500), (4, 400), (2, 0))
ROWS_PER_PART = 100
# Rows below which a rank correlation says nothing.
FEWEST_ROWS = 20
# Sizes whose rank correlation with difficulty is surely below this do not follow it.
FOLLOWS = 0.1
# Shuffles behind T-SS: 999, fewer where each of them costs a pass over many rows.
_MOST_SHUFFLED = 20_000_000
_NAMES = {
    10: ("tenth", "tenths"), 5: ("fifth", "fifths"), 4: ("quarter", "quarters"), 2: ("half", "halves")
}  # fmt: skip


def parts_of(ease: np.ndarray, n_parts: int, weights: np.ndarray | None = None) -> tuple[np.ndarray, int]:
    """Part of every row along the ease, 0 the hardest; parts of equal weight, equal ease stays together.

    Examples
    --------
    >>> import numpy as np
    >>> parts_of(np.array([0.1, 0.4, 0.4, 0.9]), 2)
    (array([0, 0, 0, 1]), 2)
    """
    order = np.argsort(ease, kind="stable")
    mass = np.cumsum(np.ones(len(ease)) if weights is None else weights[order])
    # The first value below and at which a share q of the weight lies, whatever the unit of the weights.
    at = np.searchsorted(mass, np.arange(1, n_parts) / n_parts * mass[-1] * (1 - 1e-12), side="left")
    codes = np.searchsorted(np.unique(ease[order][np.minimum(at, len(ease) - 1)]), ease, side="left")
    _, tight = np.unique(codes, return_inverse=True)
    return tight.reshape(-1), int(tight.max()) + 1


def part_names(n_parts: int) -> tuple[str, ...]:
    """The parts in words, hardest first; one part where no row is harder than another."""
    if n_parts == 1:
        return ("all rows",)
    if n_parts not in _NAMES:
        middle = tuple(f"part {i + 1} of {n_parts}" for i in range(1, n_parts - 1))
        return (f"hardest part (1 of {n_parts})", *middle, f"easiest part ({n_parts} of {n_parts})")
    one = _NAMES[n_parts][0]
    middle = tuple(f"{_ordinal(i + 1)} of {n_parts} parts" for i in range(1, n_parts - 1))
    return (f"hardest {one}", *middle, f"easiest {one}")


# By what rows are ordered where probabilities are stated.
BY_TOP = "by the largest probability"


def part_phrase(part: str, along: str) -> str:
    """The place of a part in a sentence.

    Examples
    --------
    >>> part_phrase("hardest fifth", "by ease")
    'In the hardest fifth of rows (by ease)'
    >>> part_phrase("hardest fifth", BY_TOP)
    'In the hardest fifth of rows (those with the lowest top probability)'
    >>> part_phrase("2nd of 5 parts", "by ease")
    'In the 2nd of 5 parts of the rows, from hard to easy (by ease),'
    """
    if part.endswith("parts"):
        return f"In the {part} of the rows, from hard to easy ({along}),"
    by_top = along == BY_TOP and part.startswith("hardest")
    return f"In the {part} of rows ({'those with the lowest top probability' if by_top else along})"


def _ordinal(i: int) -> str:
    return f"{i}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(i, 'th') }"


def difficulty_states(design: Design, promise: Promise) -> States:
    """Coverage of parts along the ease and T-CV; sizes of sets for SSCV."""
    if promise.per_row:
        return {}
    t_cv_options = {
        "alpha": promise.alpha, "n_bins": T_CV_BINS, "n_calibration": design.n_calibration,
        "confidence": design.confidence, "n_draws": 999, "random_state": design.generator("t_cv"),
    }  # fmt: skip
    columns = ("covered", "empty", EASE)
    return coverage_counts(design, promise) | {
        "parts": EaseRangeState(_parts_along, columns, {"n_bins": n_parts_of}, ease=EASE),
        "t_cv": EaseRangeState(t_cv, ("covered", EASE), t_cv_options, ease=EASE),
    }


def n_parts_of(rows: int) -> int:
    """Parts along difficulty, by the number of rows."""
    return next(parts for parts, enough in PARTS if rows >= enough)


def _n_bins(rows: int, fewest: int) -> int:
    return int(np.clip(rows // ROWS_PER_PART, fewest, 50))


# Bins of T-CV and T-SS by the number of rows, in an audit and in ``calipers measure``.
T_CV_BINS, T_SS_BINS = partial(_n_bins, fewest=2), partial(_n_bins, fewest=3)


def _n_shuffles(rows: int) -> int:
    return int(np.clip(_MOST_SHUFFLED // max(1, rows), 99, 999))


def _parts_along(
    covered: np.ndarray, empty: np.ndarray, ease: np.ndarray, *, sample_weight: Weights, n_bins: int
) -> Any:
    """Covered rows of parts along the ease, hardest first, and the share of empty sets in each."""
    codes, n_parts = parts_of(ease, n_bins, sample_weight.mass)
    counts = (ShareCounts.of(column, sample_weight, codes, n_parts) for column in (covered, empty))
    covered_rows, empty_rows = counts
    return covered_rows, empty_rows.shares


def coverage_along_difficulty(m: Measurements, promise: Promise) -> CheckResult:
    """Coverage over parts of equal size along the ease, to see whether a hard part is covered less often."""
    given, along = "ease" in m.design.have, measure_words(m.design)
    if promise.kind == "probability" and not given:
        return CheckResult(
            code="CAL508", title=_FAULTS["probability"][1], question="probabilities", not_applicable=_ADD_EASE
        )
    if promise.per_row:
        return _calibration_along_difficulty(m, promise)
    counts, empty = m.result("parts", promise)
    labels = part_names(len(counts.totals))
    parts = Parts(counts=counts, labels=labels, kind=ALONG, foremost=0)
    code, title, question = _FAULTS[promise.kind]
    wording = Wording(
        code=code, title=title, question=question,
        repair=repair_snippets.by_difficulty(m.task, promise.alpha),
        phrase=lambda part: part_phrase(part, along), kind=ALONG,
    )  # fmt: skip

    result = compare_parts(m, promise, parts, wording, codes=lambda rows: _part_masks(rows, labels))
    if result.not_applicable:
        return replace(result, not_applicable=_one_part_words(m))
    worst, rows = result.details["part"], m.rows_at(promise)
    inside = part_labels(rows) == labels[worst]  # a sample may have fewer parts than all rows
    high = 1.0 if result.evidence is None or result.evidence.high is None else result.evidence.high
    foreseen = not given and bool(inside.any())
    foreseen = foreseen and is_foreseen(stated_inside(rows.take(inside)), promise, high)
    return replace(
        result,
        cap="warning" if foreseen else "issue",
        title=result.title
        if promise.kind == "quantile" or worst < len(labels) // 2
        else "coverage changes with difficulty",
        estimates=(*result.estimates, *_coverage_numbers(m, promise)),
        clean=f"Hard and easy rows show no clear difference in {_COMPARED[promise.kind]} ({along}).",
        fault=result.fault + _empty_words(m, promise, float(empty[worst])),
        rows=lambda rows: part_labels(rows) == labels[worst],
    )


# Kind of the promise -> what is compared along difficulty.
_COMPARED = {
    "coverage": "coverage",
    "stated": "coverage",
    "quantile": "the share of outcomes below a quantile",
}
# Kind of the promise -> code, title and question of its fault along difficulty.
_FAULTS = {
    "coverage": ("CAL401", "hard cases are covered less often", QUESTION),
    "stated": ("CAL401", "hard cases are covered less often", QUESTION),
    "probability": ("CAL508", "calibration depends on difficulty", "probabilities"),
    "quantile": ("CAL508", "calibration of quantiles depends on difficulty", "probabilities"),
}


def part_labels(rows: Rows) -> np.ndarray:
    """The part along difficulty of every row, in words."""
    codes, n_parts = parts_of(rows[EASE].astype(float), n_parts_of(rows.n))
    return np.asarray(np.array(part_names(n_parts))[codes])


def _part_masks(rows: Rows, labels: Sequence[str]) -> list[np.ndarray]:
    own = part_labels(rows)
    return [own == label for label in labels]


def _calibration_along_difficulty(m: Measurements, promise: Promise) -> CheckResult:
    code, title, question = _FAULTS[promise.kind]
    repair = (
        repair_snippets.calibrate()
        if question == "probabilities"
        else repair_snippets.by_difficulty(m.task, promise.alpha)
    )
    wording = Wording(
        code=code, title=title, question=question, repair=repair,
        phrase=lambda part: part_phrase(part, measure_words(m.design)), kind=ALONG,
    )  # fmt: skip
    result = calibration_of_parts(m, promise, wording, part_labels, _part_masks)
    names = list(part_names(len(np.unique(part_labels(m.sample)))))
    easy = result.where in names and names.index(result.where) >= len(names) // 2
    if easy and not promise.two_sided:
        return replace(result, title="coverage changes with difficulty")
    return result


def _coverage_numbers(m: Measurements, promise: Promise) -> list[Estimate]:
    found = [replace(m.result("t_cv", promise), name=f"t_cv{promise.tag}")]
    if m.task == "classification":
        covered, size, counts = m.result("counts", promise)
        by_size = sscv(covered, size, alpha=promise.alpha, sample_weight=counts, confidence=m.confidence)
        found.append(replace(by_size, name=f"sscv{promise.tag}"))
    return found


def _empty_words(m: Measurements, promise: Promise, share: float) -> str:
    """Why sets miss hard rows, where it is because they hold nothing there."""
    if m.task == "regression":
        return ""
    return f" There {format_share(share, 0)} of the sets are empty." if share > promise.alpha else ""


def measure_words(design: Design) -> str:
    """By what rows are called harder or easier."""
    if "ease" in design.have:
        return "by ease"
    if "probabilities" in design.have:
        return BY_TOP
    if "quantiles" in design.have and not design.levels:
        return "by the distance of the outer quantiles"
    return f"by the stated {_SIZES[design.task]}"


# What the size of a prediction is, by task.
_SIZES = {"classification": "size", "regression": "width", "outcomes": "size"}


def _one_part_words(m: Measurements) -> str:
    """Why there is nothing to compare along difficulty."""
    if not m.design.have.isdisjoint({"ease", "probabilities"}):
        return "All rows are equally easy; there is nothing to compare."
    return (
        f"All {m.noun} have one {_SIZES[m.task]}: they call no row harder than another. "
        "Add ease to compare hard rows with easy ones."
    )


def size_states(design: Design, promise: Promise) -> States:
    """Sizes over parts along the ease (T-SS); ranks and sizes of sets for Deficit and Excess."""
    if design.task == "regression" or design.head.get("hardness") is None:
        return {}
    options = {
        "n_bins": T_SS_BINS, "confidence": design.confidence,
        "n_draws": _n_shuffles,
        "random_state": design.generator("t_ss"),
    }  # fmt: skip
    return {
        "ranks": table_of("hardness", "size"),
        "t_ss": EaseRangeState(t_ss, ("hardness", "size", EASE), options, ease=EASE),
    }


def size_along_difficulty(m: Measurements, promise: Promise) -> CheckResult:
    """Whether sizes grow where rows are harder, given that some are."""
    base = CheckResult(code="CAL402", title="size ignores difficulty", question=QUESTION)
    rows = m.counted_rows(promise)
    if rows is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
    size = rows["size"].astype(float)
    # The middle of an infinite interval is nowhere, and so is the error.
    hard = rows.get("hardness") if np.isfinite(size).all() else None
    if hard is None:
        reason = "Add probabilities." if np.isfinite(size).all() else "Some intervals are infinite."
        return replace(base, not_applicable=f"How hard a row turned out cannot be measured. {reason}")
    size = distinct_sizes(rows)
    ease, along = _ease_of(m, rows, hard)
    if ease is None:
        return replace(base, not_applicable=_no_ease_words(m, size))
    if rows.n < FEWEST_ROWS:
        few = f"Fewer than {FEWEST_ROWS} rows: too few to compare sizes with difficulty."
        return replace(base, not_applicable=few, rows_needed=FEWEST_ROWS)
    if not (np.ptp(hard) and np.ptp(ease)):
        return replace(base, not_applicable="No row turned out harder than another.")
    names = ("hardness", "size")
    difficulty, follows = (
        _rank_correlation(-ease, column, f"correlation of {name} and difficulty{promise.tag}", m.confidence)
        for name, column in zip(names, (hard, size), strict=True)
    )
    high = 1.0 if follows.high is None else follows.high
    ignored = high < FOLLOWS and float(difficulty) > 0
    return replace(
        base,
        # What is tested where all sizes are one is that there is a difficulty to follow.
        evidence=follows if np.ptp(size) else difficulty,
        # Two things must hold: difficulty is real (tested), and the sizes surely do not follow it.
        p_value=difficulty.p_value if ignored else 1.0,
        # Difficulty that hardly shows in the outcomes is nothing that sizes must follow: a note.
        effect=float(difficulty) - FOLLOWS,
        effect_low=None if difficulty.low is None else difficulty.low - FOLLOWS,
        cap="warning",
        fault=f"Some rows are harder than others ({along}; rank correlation "
        f"{float(difficulty):z.2f} with how hard they turned out), but "
        + _size_fault(m, size, follows, smaller=high < 0),
        clean=_size_clean(m.noun, follows, float(difficulty), along, ignored=ignored),
        repair=repair_snippets.by_difficulty(m.task, promise.alpha),
        estimates=(follows, difficulty, *_size_numbers(m, promise, rows, ease)),
        pictures=(_size_picture(m, promise, rows, ease),),
        details={
            "alpha": promise.alpha,
            "difficulty_correlation": float(difficulty),
            # Equal sizes are no proof that sizes follow.
            "descriptive": not np.ptp(size),
            "by_features": m.design.have.isdisjoint({"ease", "probabilities"}),
        },
    )


def _ease_of(m: Measurements, rows: Rows, hard: np.ndarray) -> tuple[np.ndarray | None, str]:
    """The ease that was given or the largest probability; else the errors predicted from the features."""
    if not m.design.have.isdisjoint({"ease", "probabilities"}):
        return rows[EASE].astype(float), measure_words(m.design)
    # Copies of one row must not be on both sides of the split, so weights have no such ease.
    if "X" not in m.design.have or rows.is_weighted or rows.n != m.sample.n:
        return None, ""
    half = m.half("CAL402")
    if min(half.sum(), (~half).sum()) < FEWEST_TRAINING_ROWS:
        return None, ""
    learner = Learner(filled(m.features.values), None, m.generator("CAL402"))
    expected = out_of_half(half, lambda train: learner.mean(train, hard.astype(float)))
    return -expected, "by the error that a model of the features predicts, fitted on other rows"


def _no_ease_words(m: Measurements, size: np.ndarray) -> str:
    """What to add so that sizes can be compared with difficulty."""
    one = f"All {m.noun} have one {_SIZES[m.task]}. " if not np.ptp(size) else ""
    return f"{one}Add ease, or X, to see whether some rows are harder and the {m.noun} follow."


def _size_fault(m: Measurements, size: np.ndarray, follows: Estimate, *, smaller: bool) -> str:
    if not np.ptp(size):
        return f"all {m.noun} have one {_SIZES[m.task]}, {format_number(float(size[0]))}."
    compared = "smaller" if smaller else "not larger"
    return (
        f"the {m.noun} are {compared} there: the rank correlation of size and difficulty is "
        f"{float(follows):z.2f}."
    )


def _size_clean(noun: str, follows: Estimate, difficulty: float, along: str, *, ignored: bool) -> str:
    """What is said when sizes are not accused: they follow, nothing shows that they should, or it is open."""
    size = f"the rank correlation of size and difficulty is {float(follows):z.2f}"
    if ignored or difficulty <= 0:
        return (
            f"These rows do not show that some are harder ({along}; the rank correlation with how hard "
            f"they turned out is {difficulty:z.2f}), so nothing says that the {noun} must differ: {size}."
        )
    if follows.low is not None and follows.low > 0:
        return f"The {noun} are larger where rows are harder: {size}."
    return f"Nothing shows that the {noun} ignore difficulty: {size}."


def _rank_correlation(x: np.ndarray, y: np.ndarray, name: str, confidence: float) -> Estimate:
    """Spearman's correlation with the interval of Bonett and Wright; 0 exactly when one side is constant."""
    fields: dict[str, Any] = {
        "name": name,
        "n": len(x),
        "confidence": confidence,
        "method": "Spearman's rank correlation, interval of Bonett and Wright (2000)",
    }
    if not np.ptp(x) or not np.ptp(y):
        return Estimate(**fields, value=0.0, low=0.0, high=0.0, reason="one side is the same in every row")
    found = stats.spearmanr(x, y)
    r = float(found.statistic)
    error = np.sqrt((1 + r**2 / 2) / max(1, len(x) - 3))
    z = np.arctanh(np.clip(r, -0.999999, 0.999999))
    half = normal_quantile(confidence) * error
    low, high = min(r, float(np.tanh(z - half))), max(r, float(np.tanh(z + half)))
    # The t law gives 0 to a perfect order; two of all orders are perfect.
    p = max(float(found.pvalue), float(2 * np.exp(-special.gammaln(len(x) + 1))), np.finfo(float).tiny)
    subject = {"null_subject": f"a {name.split()[2]} that has nothing to do with difficulty"}
    return Estimate(
        **fields, value=r, low=low, high=high, p_value=p, alternative="two-sided", details=subject
    )


def _size_numbers(m: Measurements, promise: Promise, rows: Rows, ease: np.ndarray) -> list[Estimate]:
    if (found := m.result("t_ss", promise)) is None:
        found = t_ss(
            rows["hardness"], rows["size"], ease, n_bins=T_SS_BINS(rows.n),
            confidence=m.confidence, n_draws=_n_shuffles(rows.n),
            random_state=m.generator("t_ss"),
        )  # fmt: skip
        return [replace(found, name=f"t_ss{promise.tag}")]
    ranks, size, counts = m.result("ranks", promise)
    named = {measure.__name__: measure for measure in (deficit, excess)}
    own = [
        replace(
            measure(ranks, size, sample_weight=counts, confidence=m.confidence), name=f"{name}{promise.tag}"
        )
        for name, measure in named.items()
    ]
    return [replace(found, name=f"t_ss{promise.tag}"), *own]


def _size_picture(m: Measurements, promise: Promise, rows: Rows, ease: np.ndarray) -> Picture:
    n_parts = int(np.clip(rows.n // ROWS_PER_PART, 2, 20))
    codes, n_parts = parts_of(ease, n_parts)
    unit = "labels in the set" if m.task == "classification" else "width of the interval"
    error = "absolute error" if "y_pred" in m.design.have else "absolute error of the midpoint"
    outcome = "rank of the true label" if m.task == "classification" else error
    curves = tuple(
        _mean_curve(name, values.astype(float), codes, unit, m.confidence)
        for name, values in ((unit, rows["size"]), (outcome, rows["hardness"]))
    )
    return Picture(
        name=f"size_by_difficulty{promise.tag}".replace(" ", "_"), question=QUESTION,
        title=f"Size against difficulty{promise.tag}",
        caption="Mean size and mean hardness over parts of equally many rows, hardest on the left; an "
        "adaptive predictor's sizes fall with the hardness.", kind="line", curves=curves,
    )  # fmt: skip


def _mean_curve(name: str, values: np.ndarray, codes: np.ndarray, unit: str, confidence: float) -> Curve:
    rows = np.bincount(codes)
    mean = np.bincount(codes, weights=values) / rows
    square = np.bincount(codes, weights=values**2) / rows
    half = normal_quantile(confidence) * np.sqrt(np.maximum(0.0, square - mean**2) / rows)
    return Curve(
        name=name, x=(np.arange(len(rows)) + 0.5) / len(rows), y=mean, low=mean - half, high=mean + half,
        confidence=confidence, x_label="share of rows, hardest first", y_label=unit,
        method="mean and normal interval per part",
    )  # fmt: skip


_ADD = "Add ease (calipers.difficulty.ease of the model and X), or probabilities whose largest one stands in."
_ADD_EASE = "Add ease (calipers.difficulty.ease of the model and X): how easy every row is."
CHECKS = (
    Check(
        code="CAL401",
        title="coverage along difficulty",
        question=QUESTION,
        needs=("prediction", "difficulty"),
        add=_ADD,
        kinds=("coverage", "stated"),
        slices="difficulty",
        states=difficulty_states,
        read=coverage_along_difficulty,
    ),
    Check(
        code="CAL508",
        title="calibration along difficulty",
        question="probabilities",
        needs=("difficulty",),
        add=_ADD_EASE,
        kinds=("probability", "classes", "quantile"),
        slices="difficulty",
        states=difficulty_states,
        read=coverage_along_difficulty,
        on_sample=True,
    ),
    Check(
        code="CAL402",
        title="size along difficulty",
        question=QUESTION,
        needs=("prediction", "difficulty"),
        add=_ADD,
        states=size_states,
        read=size_along_difficulty,
        on_sample=True,
        tasks=("classification", "regression"),
    ),
)
