"""CAL3xx, is it as narrow as it could be: sets that say nothing, and smaller ones with the same coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from calipers.auditing import repairs
from calipers.auditing.material import Level, Material
from calipers.auditing.reading import Check, Reading
from calipers.conformal import lac
from calipers.inference import binomial_p_value, clopper_pearson, mean_estimate, normal_quantile
from calipers.metrics import efficiency
from calipers.results import Estimate
from calipers.results.formatting import format_number

QUESTION = "narrow"
# Share of predictions that may say nothing before it is worth a note.
SILENT = 0.05
# Share of the mean size that another rule must save before it is worth a note.
SAVING = 0.1


def silent(material: Material, level: Level) -> Reading:
    """Predictions that say nothing: every label, none, or an infinite interval."""
    hits = int(_says_nothing(material, level).sum())
    words, advice = _size_words(material, level), _empty_advice(material, level)
    return silent_reading(material, level, hits, material.n, (words, advice), _sizes(material, level))


def silent_reading(
    material: Material, level: Level, hits: int, n: int, words: tuple[str, str], numbers: Sequence[Estimate]
) -> Reading:
    """What the number of predictions that say nothing, among n, says; in words, and with an advice."""
    low, high = clopper_pearson(hits, n, confidence=material.confidence)
    kind = "infinite intervals" if material.task == "regression" else "sets that hold every label or none"
    p = float(binomial_p_value(hits, n, SILENT, alternative="greater"))
    evidence = Estimate(
        name=f"share of {kind}{level.tag}", value=hits / n, low=float(low), high=float(high),
        confidence=material.confidence, n=n, p_value=p, alternative="greater",
        method=f"share of rows, Clopper-Pearson interval, binomial test against {SILENT:g}",
    )  # fmt: skip
    return Reading(
        code="CAL301",
        title="predictions that say nothing",
        question=QUESTION,
        evidence=evidence,
        p_value=p,
        effect=hits / n - SILENT,
        effect_low=float(low) - SILENT,
        fault=f"{100 * hits / n:.1f} % of the predictions say nothing ({kind}). {words[0]}{words[1]}",
        clean=words[0],
        repair=repairs.reconformalise(material.task, level.alpha),
        cap="warning" if material.task == "regression" else "note",
        estimates=(evidence, *numbers),
        details={"alpha": level.alpha},
    )


def _says_nothing(material: Material, level: Level) -> np.ndarray:
    if material.task == "regression":
        return np.asarray(np.isinf(level.size))
    return np.asarray((level.size == len(material.classes)) | (level.size == 0))


def _empty_advice(material: Material, level: Level) -> str:
    """What empty sets mean, where randomised scores do not explain them; nothing when there are few."""
    if material.task == "regression":
        return ""
    return empty_advice(float(np.mean(level.size == 0)), float(level.size.mean()))


def empty_advice(empty_share: float, mean_size: float) -> str:
    """The advice about so many empty sets of labels."""
    if empty_share < SILENT or mean_size >= 1.0:
        return ""
    return (
        " Empty sets mean that the model errs less often than alpha allows: a smaller alpha fits it, or a "
        "score that keeps the top label."
    )


def _size_words(material: Material, level: Level) -> str:
    finite = level.size[np.isfinite(level.size)]
    if not len(finite):
        return "Every interval is infinite."
    spread = float(np.std(material.y)) if material.task == "regression" else 0.0
    shares = {size: float(np.mean(level.size == size)) for size in (0, 1)}
    return size_words(material, float(finite.mean()), shares, spread)


def size_words(material: Material, mean_size: float, shares: dict[int, float], spread: float) -> str:
    """The sizes in a sentence: their mean, the shares of sets of size 0 and 1, the spread of outcomes."""
    mean = format_number(mean_size)
    if material.task == "regression":
        words = f"The intervals are {mean} wide on average"
        return f"{words}; the outcomes have a standard deviation of {spread:.3g}."
    single = 100 * shares[1]
    words = f"The sets hold {mean_size:.2f} of {len(material.classes)} labels on average"
    empty = 100 * shares[0]
    none = f" and {empty:.0f} % none" if empty >= 0.5 else ""
    return f"{words}; {single:.0f} % hold exactly one{none}."


def _sizes(material: Material, level: Level) -> list[Estimate]:
    word = "mean width" if material.task == "regression" else "mean size"
    finite = np.isfinite(level.size)
    if not finite.any():
        return []
    weights = None if material.weights is None else material.weights[finite]
    size = mean_estimate(
        level.size[finite], weights=weights, name=f"{word}{level.tag}", confidence=material.confidence
    )
    estimates = [size]
    if material.task == "classification":
        empty = mean_estimate(
            (level.size == 0).astype(float), weights=material.weights, name=f"empty sets{level.tag}",
            confidence=material.confidence,
        )  # fmt: skip
        estimates.append(empty)
    if material.p_values is not None:
        table = efficiency(
            material.y, material.p_values, alpha=level.alpha, classes=np.arange(len(material.classes)),
            sample_weight=material.weights, confidence=material.confidence,
        )  # fmt: skip
        estimates += [replace(found, name=f"efficiency {key}{level.tag}") for key, found in table.items()]
    return estimates


def smaller_exist(material: Material, level: Level) -> Reading:
    """Whether sets by a plain threshold on the same probabilities cover as often and are smaller."""
    P = material.require("probabilities")
    scores = lac(P)
    half = material.generator("CAL302").permutation(material.n) < material.n // 2
    rival = np.empty(material.n)
    for part in (half, ~half):
        if not part.any() or part.all():
            return Reading(
                code="CAL302", title="smaller sets exist", question=QUESTION, not_applicable="Too few rows."
            )
        threshold = matching_threshold(scores[~part], material.y[~part], level.covered[~part])
        rival[part] = (scores[part] <= threshold).sum(axis=1)
    saved = (level.size - rival) / max(1e-12, float(level.size.mean()))
    error = float(saved.std(ddof=1) / np.sqrt(material.n))
    return saving_reading(material, level, float(saved.mean()), error, material.n)


def matching_threshold(scores: np.ndarray, y: np.ndarray, covered: np.ndarray) -> float:
    """The score at which as many rows are covered as by the given sets, on rows kept apart."""
    true = np.sort(scores[np.arange(len(y)), y])
    k = int(covered.sum())
    return float(true[k - 1]) if k else -np.inf


def saving_reading(material: Material, level: Level, saved: float, error: float, n: int) -> Reading:
    """What the share of the size that another rule saves on n rows says."""
    from scipy.special import ndtr

    half = normal_quantile(material.confidence) * error
    low, high = saved - half, saved + half
    p = float(ndtr(-(saved - SAVING) / error)) if error > 0 else float(saved <= SAVING)
    evidence = Estimate(
        name=f"size saved by a threshold on the probabilities{level.tag}", value=saved, std_error=error,
        low=low, high=high, confidence=material.confidence, n=n, p_value=p, alternative="greater",
        method="mean paired difference of set sizes at equal coverage, threshold from the other half of the "
        f"rows, as a share of the mean size; test against {SAVING:g}",
    )  # fmt: skip
    return Reading(
        code="CAL302",
        title="smaller sets exist",
        question=QUESTION,
        evidence=evidence,
        p_value=p,
        effect=saved - SAVING,
        effect_low=low - SAVING,
        cap="note",
        fault=f"A plain threshold on the same probabilities covers as often with sets {100 * saved:.0f} % "
        "smaller on average. Keep larger ones only if they are to be fair to single classes or hard cases.",
        clean="No plain threshold on the same probabilities covers as often with clearly smaller sets.",
        repair=repairs.narrower(level.alpha),
        estimates=(evidence,),
        details={"alpha": level.alpha},
    )


CHECKS = (
    Check(
        code="CAL301",
        title="predictions that say nothing",
        question=QUESTION,
        needs=("prediction",),
        add="Add sets, p_values or intervals.",
        at_level=silent,
    ),
    Check(
        code="CAL302",
        title="smaller sets with the same coverage",
        question=QUESTION,
        needs=("prediction", "probabilities"),
        add="Add probabilities beside the sets, to compare them with sets by a plain threshold.",
        at_level=smaller_exist,
        tasks=("classification",),
    ),
)
