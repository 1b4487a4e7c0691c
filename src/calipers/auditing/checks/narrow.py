"""CAL3xx, is it as narrow as it could be: sets that say nothing, and smaller ones with the same coverage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from calipers.auditing import repairs
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult
from calipers.auditing.checks.coverage import coverage_counts
from calipers.auditing.measurements import NO_EXACT_TEST, Design, Level, Measurements
from calipers.auditing.table_states import RivalState, WidthState
from calipers.conformal import lac
from calipers.inference import Moments, ShareCounts, binomial_p_value, mean_estimate, normal_quantile
from calipers.metrics.marginal import share_fields
from calipers.metrics.registry import state_of
from calipers.results import Estimate
from calipers.results.formatting import format_number

QUESTION = "narrow"
# Share of predictions that may say nothing before it is worth a note.
SILENT = 0.05
# Share of the mean size that another rule must save before it is worth a note.
SAVING = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of all predictions: how many say nothing, in words and as estimates."""

    silent: ShareCounts
    words: str
    advice: str = ""
    numbers: Sequence[Estimate] = ()


def size_states(design: Design, level: Level) -> States:
    """Sizes of all predictions, and the ten criteria where there are p-values."""
    states: States = (
        {"widths": WidthState()} if design.task == "regression" else coverage_counts(design, level)
    )
    if "p_values" in design.have:
        states["efficiency"] = state_of("efficiency", alpha=level.alpha, confidence=design.confidence)
    return states


def silent(m: Measurements, level: Level) -> CheckResult:
    """Predictions that say nothing: every label, none, or an infinite interval."""
    sizes = _widths(m, level) if m.task == "regression" else _set_sizes(m, level)
    counts = sizes.silent
    fields = share_fields(counts, m.confidence)
    share, low = fields["value"], fields["low"]
    kind = "infinite intervals" if m.task == "regression" else "sets that hold every label or none"
    p, reason = None, NO_EXACT_TEST
    if counts.whole:
        hits, rows = counts.hits[0], counts.totals[0]
        p, reason = float(binomial_p_value(hits, rows, SILENT, alternative="greater")), ""
    evidence = Estimate(
        name=f"share of {kind}{level.tag}", **fields, p_value=p, alternative="greater", reason=reason,
        method=f"share of rows, Clopper-Pearson interval, binomial test against {SILENT:g}",
    )  # fmt: skip
    return CheckResult(
        code="CAL301",
        title="predictions that say nothing",
        question=QUESTION,
        evidence=evidence,
        p_value=p,
        effect=share - SILENT,
        effect_low=low - SILENT,
        fault=f"{100 * share:.1f} % of the predictions say nothing ({kind}). {sizes.words}{sizes.advice}",
        clean=sizes.words,
        repair=repairs.reconformalise(m.task, level.alpha),
        cap="warning" if m.task == "regression" else "note",
        estimates=(evidence, *sizes.numbers),
        details={"alpha": level.alpha},
    )


def _widths(m: Measurements, level: Level) -> Sizes:
    widths: WidthState = m.result("widths", level)
    if not widths.width.n:
        return Sizes(silent=widths.infinite, words="Every interval is infinite.")
    spread = float(np.sqrt(widths.outcome.squares / widths.outcome.n))
    words = (
        f"The intervals are {format_number(widths.width.mean)} wide on average; "
        f"the outcomes have a standard deviation of {format_number(spread, spread / 10)}."
    )
    mean = mean_estimate(widths.width, name=f"mean width{level.tag}", confidence=m.confidence)
    return Sizes(silent=widths.infinite, words=words, numbers=[mean])


def _set_sizes(m: Measurements, level: Level) -> Sizes:
    _, size, weights = m.result("counts", level)
    n_classes = len(m.classes)
    silent = ShareCounts.of((size == n_classes) | (size == 0), weights)
    limits = {"mean size": (0.0, float(n_classes)), "empty sets": (0.0, 1.0)}
    named = {"mean size": size.astype(float), "empty sets": (size == 0).astype(float)}
    numbers = [
        mean_estimate(
            x, weights=weights, name=f"{name}{level.tag}", confidence=m.confidence, limits=limits[name]
        )
        for name, x in named.items()
    ]
    if (table := m.result("efficiency", level)) is not None:
        numbers += [replace(found, name=f"efficiency {key}{level.tag}") for key, found in table.items()]
    empty, single = (float(weights.mass[size == k].sum()) / weights.total for k in (0, 1))
    none = f" and {100 * empty:.0f} % none" if empty >= 0.005 else ""
    words = (
        f"The sets hold {float(numbers[0]):.2f} of {n_classes} labels on average; "
        f"{100 * single:.0f} % hold exactly one{none}."
    )
    advice = _empty_advice(empty, float(numbers[0]))
    return Sizes(silent=silent, words=words, advice=advice, numbers=numbers)


def _empty_advice(empty_share: float, mean_size: float) -> str:
    """What empty sets mean, where randomised scores do not explain them; nothing when there are few."""
    if empty_share < SILENT or mean_size >= 1.0:
        return ""
    return (
        " Empty sets mean that the model errs less often than alpha allows: a smaller alpha fits it, or a "
        "score that keeps the top label."
    )


def rival_states(m: Measurements, level: Level) -> States:
    """Sizes by a threshold found on the sample, on all rows outside it."""
    if m.design.is_whole:
        return {}
    rows = m.rows_at(level)
    return {"rival": _rival(m, level, np.ones(rows.n, dtype=bool), np.sort(rows.keys()))}


def _rival(m: Measurements, level: Level, learn: np.ndarray, keys: np.ndarray) -> RivalState:
    """The sizes by the threshold that covers as many of some rows of the sample as the given sets."""
    rows = m.rows_at(level).take(learn)
    threshold = matching_threshold(lac(rows["probabilities"]), rows["y"], rows["covered"], rows.weights)
    return RivalState(threshold, keys, m.threshold, m.design.seed)


def smaller_exist(m: Measurements, level: Level) -> CheckResult:
    """Whether sets by a plain threshold on the same probabilities cover as often and are smaller."""
    if (rival := m.result("rival", level)) is not None:
        return _saving(level, rival.saved, rival.size, m.confidence, "threshold from a sample of other rows")
    half, rows = m.half("CAL302"), m.rows_at(level)
    if not half.any() or half.all():
        return CheckResult(
            code="CAL302", title="smaller sets exist", question=QUESTION, not_applicable="Too few rows."
        )
    saved, size = Moments(), Moments()
    for part in (half, ~half):
        compared = _rival(m, level, ~part, np.empty(0, dtype=np.uint64))
        compared.absorb(rows.take(part))
        saved, size = saved.merge(compared.saved), size.merge(compared.size)
    return _saving(level, saved, size, m.confidence, "threshold from the other half of the rows")


def matching_threshold(
    scores: np.ndarray, y: np.ndarray, covered: np.ndarray, weights: np.ndarray | None
) -> float:
    """The score at which as much weight is covered as by the given sets, on rows kept apart."""
    true = scores[np.arange(len(y)), y]
    mass = np.ones(len(y)) if weights is None else weights
    wanted = float(mass[covered].sum())
    if wanted <= 0:
        return -np.inf
    order = np.argsort(true, kind="stable")
    place = int(np.searchsorted(np.cumsum(mass[order]), wanted * (1 - 1e-12), side="left"))
    return float(true[order][min(place, len(y) - 1)])


def _saving(level: Level, saved: Moments, size: Moments, confidence: float, how: str) -> CheckResult:
    """What the share of the size that another rule saves says."""
    mean = max(1e-12, size.mean)
    share, error = saved.mean / mean, saved.std_error / mean
    half = normal_quantile(confidence) * error
    p = float(ndtr(-(share - SAVING) / error)) if error > 0 else float(share <= SAVING)
    evidence = Estimate(
        name=f"size saved by a threshold on the probabilities{level.tag}", value=share, std_error=error,
        low=share - half, high=share + half, confidence=confidence, n=saved.n, p_value=p,
        alternative="greater", method=f"mean paired difference of set sizes at equal coverage, {how}, as a "
        f"share of the mean size; test against {SAVING:g}",
    )  # fmt: skip
    return CheckResult(
        code="CAL302",
        title="smaller sets exist",
        question=QUESTION,
        evidence=evidence,
        p_value=p,
        effect=share - SAVING,
        effect_low=share - half - SAVING,
        cap="note",
        fault=f"A plain threshold on the same probabilities covers as often with sets {100 * share:.0f} % "
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
        states=size_states,
        read=silent,
    ),
    Check(
        code="CAL302",
        title="smaller sets with the same coverage",
        question=QUESTION,
        needs=("prediction", "probabilities"),
        add="Add probabilities beside the sets, to compare them with sets by a plain threshold.",
        from_sample=rival_states,
        read=smaller_exist,
        tasks=("classification",),
    ),
)
