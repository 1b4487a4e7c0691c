"""CAL3xx, is it as narrow as it could be: predictions that say nothing, and rivals that cover as often."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import ndtr

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult
from calipers.auditing.checks.coverage import coverage_counts
from calipers.auditing.measurements import NO_EXACT_TEST, Design, Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.rivals import Saving, rivals_of, saving_of
from calipers.auditing.severity import LEVEL
from calipers.auditing.slice_coverage import FEWEST_ROWS, feature_slices, stated_slices
from calipers.auditing.table_states import WidthState
from calipers.inference import ShareCounts, binomial_p_value, mean_estimate, normal_quantile
from calipers.metrics.marginal import share_fields
from calipers.metrics.registry import state_of
from calipers.results import Estimate
from calipers.results.formatting import format_number, format_percent, format_share

QUESTION = "narrow"
# Rivals, others than what was predicted scaled, that a "yes" is earned by.
ENOUGH_RIVALS = 2
# Share of predictions that may say nothing before it is worth a note.
SILENT = 0.05
# Share of the mean size that a rival must save before it counts.
SAVING = 0.1
_TINY = float(np.finfo(float).tiny)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """Sizes of all predictions: how many say nothing, in words and as estimates."""

    silent: ShareCounts
    words: str
    advice: str = ""
    numbers: Sequence[Estimate] = ()


def size_states(design: Design, promise: Promise) -> States:
    """Sizes of all predictions, and the ten criteria where there are p-values."""
    states: States = (
        {"widths": WidthState()} if design.task == "regression" else coverage_counts(design, promise)
    )
    if "p_values" in design.have:
        states["efficiency"] = state_of("efficiency", alpha=promise.alpha, confidence=design.confidence)
    return states


def silent(m: Measurements, promise: Promise) -> CheckResult:
    """Predictions that say nothing: every label, none, or an infinite interval."""
    sizes = _sizes(m, promise)
    counts = sizes.silent
    fields = share_fields(counts, m.confidence)
    share, low = fields["value"], fields["low"]
    kind = "infinite intervals" if m.task == "regression" else "sets that hold every label or none"
    p, reason = None, NO_EXACT_TEST
    if counts.whole:
        hits, rows = counts.hits[0], counts.totals[0]
        p, reason = float(binomial_p_value(hits, rows, SILENT, alternative="greater")), ""
    evidence = Estimate(
        name=f"share of {kind}{promise.tag}", **fields, p_value=p, alternative="greater", reason=reason,
        method=f"share of rows, Clopper-Pearson interval, binomial test against {SILENT:g}",
        details={"null_subject": f"a share of at most {format_percent(SILENT)}"},
    )  # fmt: skip
    return CheckResult(
        code="CAL301",
        title="predictions that say nothing",
        question=QUESTION,
        evidence=evidence,
        p_value=p,
        effect=share - SILENT,
        effect_low=low - SILENT,
        fault=f"{format_share(share)} of the predictions say nothing ({kind}). {sizes.words}{sizes.advice}",
        clean=sizes.words,
        repair=repair_snippets.reconformalise(m.task, promise.alpha),
        cap="warning" if m.task == "regression" else "note",
        estimates=(evidence, *sizes.numbers),
        # Sizes alone do not say whether smaller ones would do: that is earned by a comparison.
        details={"alpha": promise.alpha, "descriptive": True},
    )


def _sizes(m: Measurements, promise: Promise) -> Sizes:
    return _widths(m, promise) if m.task == "regression" else _set_sizes(m, promise)


def _widths(m: Measurements, promise: Promise) -> Sizes:
    widths: WidthState = m.result("widths", promise)
    if not widths.width.n:
        return Sizes(silent=widths.infinite, words="Every interval is infinite.")
    spread = float(np.sqrt(widths.outcome.squares / widths.outcome.n))
    words = (
        f"The intervals are {format_number(widths.width.mean)} wide on average; "
        f"the outcomes have a standard deviation of {format_number(spread, spread / 10)}."
    )
    mean = mean_estimate(widths.width, name=f"mean width{promise.tag}", confidence=m.confidence)
    return Sizes(silent=widths.infinite, words=words, numbers=[mean])


def _set_sizes(m: Measurements, promise: Promise) -> Sizes:
    _, size, weights = m.result("counts", promise)
    n_classes = len(m.classes)
    silent = ShareCounts.of((size == n_classes) | (size == 0), weights)
    limits = {"mean size": (0.0, float(n_classes)), "empty sets": (0.0, 1.0)}
    named = {"mean size": size.astype(float), "empty sets": (size == 0).astype(float)}
    numbers = [
        mean_estimate(
            x, weights=weights, name=f"{name}{promise.tag}", confidence=m.confidence, limits=limits[name]
        )
        for name, x in named.items()
    ]
    if (table := m.result("efficiency", promise)) is not None:
        numbers += [replace(found, name=f"efficiency {key}{promise.tag}") for key, found in table.items()]
    empty, single = (float(weights.mass[size == k].sum()) / weights.total for k in (0, 1))
    none = f" and {format_share(empty, 0)} none" if empty >= 0.005 else ""
    words = (
        f"The sets hold {float(numbers[0]):.2f} of {n_classes} labels on average; "
        f"{format_share(single, 0)} hold exactly one{none}."
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


def smaller_exist(m: Measurements, promise: Promise) -> CheckResult:
    """Whether another way to predict covers as often with smaller sets or intervals."""
    title = f"{'narrower' if m.task == 'regression' else 'smaller'} {m.noun} exist"
    base = CheckResult(code="CAL302", title=title, question=QUESTION, cap="warning")
    rows = m.rows_at(promise)
    finite = np.isfinite(rows["size"])
    if np.count_nonzero(finite) < FEWEST_ROWS:
        return replace(
            base,
            not_applicable=f"Fewer than {FEWEST_ROWS} {m.noun} of finite size: too few to compare.",
            rows_needed=FEWEST_ROWS if rows.n < FEWEST_ROWS else None,
        )
    rows = rows.take(finite)
    rivals = rivals_of(m, promise, rows)
    slices = stated_slices(rows) | feature_slices(rows)
    found = [s for rival in rivals if (s := saving_of(rival, rows, promise.promised, slices)) is not None]
    counting = [saving for saving in found if not saving.is_worse]
    if not counting and not any(saving.is_worse for saving in found):
        return replace(base, not_applicable=nothing_to_compare(m))
    best = max(counting, key=_surely_saved, default=None)
    result = _read_saving(m, promise, base, best, len(found))
    if not _is_clear(result) and all(saving.rival.is_itself for saving in found):
        return replace(base, not_applicable=nothing_to_compare(m))
    numbers = tuple(_estimate(saving, m, promise, len(found)) for saving in found)
    traded = max((saving for saving in found if saving.is_worse), key=_surely_saved, default=None)
    return replace(
        result,
        clean=_sizes(m, promise).words + _tried(m, found) + _trade_off(m, traded),
        estimates=numbers,
        details={
            "alpha": promise.alpha,
            "rivals": {s.rival.name: {"saved": s.share, "worse_in_worst_slice": s.is_worse} for s in found},
            # A yes needs others than these sets or intervals themselves, at another level.
            "few_rivals": sum(not saving.rival.is_itself for saving in found) < ENOUGH_RIVALS,
        },
    )


def nothing_to_compare(m: Measurements) -> str:
    """Why there is no rival, and what to add."""
    if m.task == "regression":
        return "There is nothing to compare the intervals with. Add X, the features, to fit others."
    return "There is nothing to compare the sets with. Add probabilities to them."


def _surely_saved(saving: Saving) -> float:
    """The saving less its error: what a rival is chosen by."""
    return saving.share - 2 * saving.std_error


def _is_clear(result: CheckResult) -> bool:
    return result.p_value is not None and result.p_value <= LEVEL


def _estimate(saving: Saving, m: Measurements, promise: Promise, rivals: int) -> Estimate:
    half = normal_quantile(m.confidence) * saving.std_error
    error, share = saving.std_error, saving.share
    p = float(ndtr(-(share - SAVING) / error)) if error > 0 else float(share <= SAVING)
    return Estimate(
        name=f"size saved by {saving.rival.name}{promise.tag}", value=share, std_error=error,
        low=share - half, high=share + half, confidence=m.confidence, n=saving.n,
        p_value=max(min(1.0, p * rivals), _TINY), alternative="greater",
        method="mean paired difference of sizes at equal coverage over the mean size, with the error of "
        f"the rival's threshold; test against {SAVING:g}"
        + (f", corrected for {rivals} rivals" if rivals > 1 else ""),
        details={
            "coverage": saving.wanted, "worst_slice": saving.worst.where, "worst_mass": saving.worst.mass,
            "worst_coverage": saving.worst.share, "own_worst_coverage": saving.own_worst,
            "own_coverage_there": saving.own_there, "worse_in_worst_slice": saving.is_worse,
            "null_subject": f"a rival that saves at most {format_percent(SAVING)}",
        },
    )  # fmt: skip


def _read_saving(
    m: Measurements, promise: Promise, base: CheckResult, best: Saving | None, rivals: int
) -> CheckResult:
    """What the largest saving of a rival that is no worse in its worst slice says."""
    if best is None:
        return replace(base, p_value=1.0)
    evidence = _estimate(best, m, promise, rivals)
    narrower = "narrower" if m.task == "regression" else "smaller"
    reached = "as promised" if best.wanted == promise.promised else "as often"
    return replace(
        base,
        evidence=evidence,
        p_value=evidence.p_value,
        effect=best.share,
        effect_low=evidence.low,
        effect_high=evidence.high,
        tolerance=SAVING,
        fault=f"{best.rival.words} would cover {reached} ({format_share(best.wanted)}) with {m.noun} "
        f"{format_share(best.share, 0)} {narrower} on average, and would be no worse in the worst slice.",
        repair=_narrower_repair(m, promise, best),
        rows_needed=int(np.ceil(m.n * (2 * best.std_error / SAVING) ** 2)),
    )


def _narrower_repair(m: Measurements, promise: Promise, best: Saving) -> str:
    if best.rival.is_itself:
        return repair_snippets.reconformalise(m.task, promise.alpha)
    return repair_snippets.narrower(m.task, promise.alpha)


def _tried(m: Measurements, found: Sequence[Saving]) -> str:
    names = [saving.rival.name for saving in found]
    listed = names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
    return f" No rival covers as often with clearly smaller {m.noun} and no worse slice: tried {listed}."


def _trade_off(m: Measurements, traded: Saving | None) -> str:
    """A rival that is smaller on average and worse somewhere, named."""
    if traded is None or _surely_saved(traded) <= SAVING:
        return ""
    worst = traded.worst
    return (
        f" A trade-off: {traded.rival.name} would save {format_share(traded.share, 0)} of the size, and "
        f"cover {format_share(worst.share)} of a slice along {worst.where} ({format_share(worst.mass)} of "
        f"the rows) where these {m.noun} cover {format_share(traded.own_there)}."
    )


CHECKS = (
    Check(
        code="CAL301",
        title="sizes of the predictions",
        question=QUESTION,
        needs=("prediction",),
        add="Add sets, p_values or intervals.",
        states=size_states,
        read=silent,
        tasks=("classification", "regression"),
    ),
    Check(
        code="CAL302",
        title="smaller predictions with the same coverage",
        question=QUESTION,
        needs=("prediction",),
        add="Add sets, p_values or intervals.",
        states=size_states,
        read=smaller_exist,
        on_sample=True,
        tasks=("classification", "regression"),
    ),
)
