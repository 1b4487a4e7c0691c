"""CAL4xx, is it wider exactly where the case is harder: coverage and size along difficulty."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from scipy import stats

from calipers.auditing import repairs
from calipers.auditing.checks.everywhere import Parts, Wording, group_counts, part_reading
from calipers.auditing.material import Level, Material
from calipers.auditing.reading import Check, Picture, Reading
from calipers.inference import normal_quantile
from calipers.metrics import deficit, excess, sscv, t_cv, t_ss
from calipers.metrics.adaptivity.ranks import rank_of_label
from calipers.results import Curve, Estimate

QUESTION = "adaptive"
# Parts along difficulty, and the rows from which on so many are made. The hardest part must hold enough
# rows for its interval to leave the tolerance behind: with 1500 rows fifths see more than tenths.
PARTS = ((10, 5000), (5, 500), (4, 400), (2, 0))
ROWS_PER_PART = 100
# Sizes whose rank correlation with difficulty is surely below this do not follow it.
FOLLOWS = 0.1
# Shuffles behind T-SS: 999, fewer where each of them costs a pass over many rows.
_MOST_SHUFFLED = 20_000_000
_NAMES = {
    10: ("tenth", "tenths"), 5: ("fifth", "fifths"), 4: ("quarter", "quarters"), 2: ("half", "halves")
}  # fmt: skip


def ease_of(material: Material) -> tuple[np.ndarray, bool]:
    """The ease that was given, or the largest probability in its place; and whether it was given."""
    if material.ease is not None:
        return material.ease, True
    return material.require("probabilities").max(axis=1), False


def parts_of(ease: np.ndarray, n_parts: int) -> tuple[np.ndarray, int]:
    """Part of every row along the ease, 0 the hardest; rows of equal ease stay together."""
    edges = np.unique(np.quantile(ease, np.arange(1, n_parts) / n_parts, method="inverted_cdf"))
    codes = np.searchsorted(edges, ease, side="left")
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
    middle = tuple(f"{_ordinal(i + 1)} hardest {one}" for i in range(1, n_parts - 1))
    return (f"hardest {one}", *middle, f"easiest {one}")


def _ordinal(i: int) -> str:
    return f"{i}{ {1: 'st', 2: 'nd', 3: 'rd'}.get(i, 'th') }"


def coverage_along_difficulty(material: Material, level: Level) -> Reading:
    """Coverage over parts of equal size along the ease, to see whether a hard part is covered less often."""
    ease, given = ease_of(material)
    wanted = next(parts for parts, rows in PARTS if material.n >= rows)
    codes, n_parts = parts_of(ease, wanted)
    hits, rows = group_counts(level.covered, codes, n_parts, material.weights)
    numbers = tuple(_coverage_numbers(material, level, ease))
    empty = np.bincount(codes, weights=level.size == 0, minlength=n_parts)
    parts = Parts(hits=hits, rows=rows, labels=part_names(n_parts), kind="difficulty", foremost=0)
    return difficulty_reading(material, level, parts, empty, given=given, numbers=numbers)


def difficulty_reading(
    material: Material,
    level: Level,
    parts: Parts,
    empty: np.ndarray,
    *,
    given: bool,
    numbers: tuple[Estimate, ...],
) -> Reading:
    """What the coverage of parts along the ease, hardest first, and their empty sets say."""
    wording = Wording(
        code="CAL401", title="hard cases are covered less often", question=QUESTION,
        repair=repairs.by_difficulty(material.task, level.alpha), cap="issue" if given else "warning",
        phrase=lambda part: f"In the {part} of rows ({_measure(given)})",
    )  # fmt: skip
    reading = part_reading(material, level, parts, wording)
    if reading.not_applicable:
        return replace(reading, not_applicable="All rows are equally easy; there is nothing to compare.")
    clean = f"Hard and easy rows are covered equally often ({_measure(given)})."
    worst = reading.details["part"]
    nothing = _empty_words(level, float(empty[worst] / parts.rows[worst]))
    title = reading.title if 2 * worst < len(parts.rows) else "coverage changes with difficulty"
    return replace(
        reading,
        title=title,
        estimates=(*reading.estimates, *numbers),
        clean=clean,
        fault=reading.fault + nothing,
    )


def _empty_words(level: Level, share: float) -> str:
    """Why sets miss hard rows, where it is because they hold nothing there."""
    if level.prediction.dtype.kind != "b":
        return ""
    return f" There {100 * share:.0f} % of the sets are empty." if share > level.alpha else ""


def _measure(given: bool) -> str:
    return "by ease" if given else "by the largest probability"


def _coverage_numbers(material: Material, level: Level, ease: np.ndarray) -> list[Estimate]:
    bins = int(np.clip(material.n // ROWS_PER_PART, 2, 50))
    found = t_cv(
        level.covered, ease, alpha=level.alpha, n_bins=bins, n_calibration=material.n_calibration,
        sample_weight=material.weights, confidence=material.confidence, n_draws=999,
        random_state=material.generator("t_cv"),
    )  # fmt: skip
    estimates = [replace(found, name=f"t_cv{level.tag}")]
    if material.task == "classification":
        by_size = sscv(
            level.covered, level.size, alpha=level.alpha, sample_weight=material.weights,
            confidence=material.confidence,
        )  # fmt: skip
        estimates.append(replace(by_size, name=f"sscv{level.tag}"))
    return estimates


def hardness(material: Material, level: Level) -> np.ndarray | None:
    """How hard each row turned out: rank of the true label, or distance from the middle of the interval."""
    if material.task == "regression":
        return np.asarray(np.abs(material.y - level.prediction.mean(axis=1)))
    if material.probabilities is None:
        return None
    return np.asarray(rank_of_label(material.y, material.probabilities), dtype=float)


def size_along_difficulty(material: Material, level: Level) -> Reading:
    """Whether sizes grow where rows are harder, given that some are."""
    ease, given = ease_of(material)
    hard = hardness(material, level)
    base = Reading(code="CAL402", title="size ignores difficulty", question=QUESTION)
    if hard is None or not (np.isfinite(level.size).all() and np.isfinite(hard).all()):
        reason = "Add probabilities." if hard is None else "Some intervals are infinite."
        return replace(base, not_applicable=f"How hard a row turned out cannot be measured. {reason}")
    if not (np.ptp(hard) and np.ptp(ease)):
        return replace(base, not_applicable="No row turned out harder than another.")
    word, sure = f"and difficulty{level.tag}", material.confidence
    difficulty = _rank_correlation(-ease, hard, f"correlation of hardness {word}", sure)
    follows = _rank_correlation(-ease, level.size, f"correlation of size {word}", sure)
    high = 1.0 if follows.high is None else follows.high
    compared = "are smaller" if high < 0 else "are not larger"
    ignored = high < FOLLOWS and float(difficulty) > 0
    return replace(
        base,
        evidence=follows,
        # Two things must hold: difficulty is real (tested), and the sizes surely do not follow it.
        p_value=difficulty.p_value if ignored else 1.0,
        # Difficulty that hardly shows in the outcomes is nothing that sizes must follow: a note.
        effect=float(difficulty) - FOLLOWS,
        effect_low=None if difficulty.low is None else difficulty.low - FOLLOWS,
        cap="warning",
        fault=f"Some rows are harder than others ({_measure(given)}; rank correlation "
        f"{float(difficulty):.2f} with how hard they turned out), but the {material.noun} {compared} "
        f"there: the rank correlation of size and difficulty is {float(follows):.2f}.",
        clean=_size_clean(material.noun, follows, float(difficulty), given, ignored=ignored),
        repair=repairs.by_difficulty(material.task, level.alpha),
        estimates=(follows, difficulty, *_size_numbers(material, level, ease, hard)),
        pictures=(_size_picture(material, level, ease, hard),),
        details={"alpha": level.alpha, "difficulty_correlation": float(difficulty)},
    )


def _size_clean(noun: str, follows: Estimate, difficulty: float, given: bool, *, ignored: bool) -> str:
    """What is said when sizes are not accused: they follow, nothing shows that they should, or it is open."""
    size = f"the rank correlation of size and difficulty is {float(follows):.2f}"
    if ignored or difficulty <= 0:
        return (
            f"These rows do not show that some are harder ({_measure(given)}; the rank correlation with how "
            f"hard they turned out is {difficulty:.2f}), so nothing says that the {noun} must differ: {size}."
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
    half = normal_quantile(confidence) * np.sqrt((1 + r**2 / 2) / max(1, len(x) - 3))
    z = np.arctanh(np.clip(r, -0.999999, 0.999999))
    low, high = np.tanh(z - half), np.tanh(z + half)
    p = float(found.pvalue)
    return Estimate(**fields, value=r, low=float(low), high=float(high), p_value=p, alternative="two-sided")


def _size_numbers(material: Material, level: Level, ease: np.ndarray, hard: np.ndarray) -> list[Estimate]:
    bins = int(np.clip(material.n // ROWS_PER_PART, 3, 50))
    found = t_ss(
        hard, level.size, ease, n_bins=bins, sample_weight=material.weights, confidence=material.confidence,
        n_permutations=int(np.clip(_MOST_SHUFFLED // material.n, 99, 999)),
        random_state=material.generator("t_ss"),
    )  # fmt: skip
    estimates = [replace(found, name=f"t_ss{level.tag}")]
    if material.task == "classification":
        for measure in (deficit, excess):
            value = measure(hard, level.size, sample_weight=material.weights, confidence=material.confidence)
            estimates.append(replace(value, name=f"{measure.__name__}{level.tag}"))
    return estimates


def _size_picture(material: Material, level: Level, ease: np.ndarray, hard: np.ndarray) -> Picture:
    codes, n_parts = parts_of(ease, int(np.clip(material.n // ROWS_PER_PART, 2, 20)))
    share = (np.arange(n_parts) + 0.5) / n_parts
    unit = "labels in the set" if material.task == "classification" else "width of the interval"
    outcome = "rank of the true label" if material.task == "classification" else "absolute error"
    curves = tuple(
        _mean_curve(name, values, codes, n_parts, share, unit, material.confidence)
        for name, values in ((unit, level.size), (outcome, hard))
    )
    return Picture(
        name=f"size_by_difficulty{level.tag}".replace(" ", "_"), question=QUESTION,
        title=f"Size against difficulty{level.tag}",
        caption="Mean size and mean hardness over parts of equally many rows, hardest on the left; an "
        "adaptive predictor's sizes fall with the hardness.", kind="line", curves=curves,
    )  # fmt: skip


def _mean_curve(
    name: str,
    values: np.ndarray,
    codes: np.ndarray,
    n_parts: int,
    share: np.ndarray,
    unit: str,
    confidence: float,
) -> Curve:
    rows = np.bincount(codes, minlength=n_parts)
    mean = np.bincount(codes, weights=values, minlength=n_parts) / rows
    square = np.bincount(codes, weights=values**2, minlength=n_parts) / rows
    half = normal_quantile(confidence) * np.sqrt(np.maximum(0.0, square - mean**2) / rows)
    return Curve(
        name=name, x=share, y=mean, low=mean - half, high=mean + half, confidence=confidence,
        x_label="share of rows, hardest first", y_label=unit, method="mean and normal interval per part",
    )  # fmt: skip


_ADD = "Add ease (calipers.difficulty.ease of the model and X), or probabilities whose largest one stands in."
CHECKS = (
    Check(
        code="CAL401",
        title="coverage along difficulty",
        question=QUESTION,
        needs=("prediction", "difficulty"),
        add=_ADD,
        at_level=coverage_along_difficulty,
    ),
    Check(
        code="CAL402",
        title="size along difficulty",
        question=QUESTION,
        needs=("prediction", "difficulty"),
        add=_ADD,
        at_level=size_along_difficulty,
    ),
)
