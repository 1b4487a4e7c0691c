"""CAL201 and CAL504: does every promise hold in every group, and in every intersection of groups."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult
from calipers.auditing.checks.coverage import COMMON, rows_for, tolerance_at
from calipers.auditing.checks.part_pictures import deviation_picture, part_picture
from calipers.auditing.measurements import NO_EXACT_TEST, Design, Measurements
from calipers.auditing.parts import DEPTH, Parts, clustered_worst, group_parts, group_rows
from calipers.auditing.promise_rows import FEW_CLUSTERS, PromiseRows, promise_rows, without_a_chance_to_miss
from calipers.auditing.promises import Promise
from calipers.auditing.severity import LEVEL, SERIOUS
from calipers.auditing.table_states import table_of
from calipers.inputs.derived_columns import attribute_names
from calipers.inputs.rows import Rows
from calipers.metrics import calibration_error, multicalibration_error
from calipers.results import Estimate
from calipers.results.formatting import format_share

QUESTION = "everywhere"
# A part may miss the promise by this many tolerances of the whole before anybody should act.
PART_TOLERANCE = 2.5
# Fewer misses than this in a half teach a classifier nothing, nor a search for rules.
FEWEST_MISSES = 10
# The same of probabilities, whose excess is a fault too.
STATED_TOLERANCE = 1.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What a result about parts says besides its numbers; ``phrase`` turns a label into the place."""

    code: str
    title: str
    repair: str
    phrase: Callable[[str], str]
    question: str = QUESTION
    cap: str = "issue"


# Kind of the promise -> code, title and question of its fault in a group.
_FAULTS = {
    "coverage": ("CAL201", "a group is under-covered", QUESTION),
    "stated": ("CAL201", "a group is under-covered", QUESTION),
    "probability": ("CAL504", "probabilities of a group are off", "probabilities"),
    "class": ("CAL504", "probabilities of a group are off", "probabilities"),
    "quantile": ("CAL504", "quantiles of a group are off", "probabilities"),
}


def group_table(design: Design, promise: Promise) -> States:
    """Covered and missed rows of every combination of labels."""
    return {} if promise.per_row else {"groups": table_of("covered", "group_cell")}


def groups(m: Measurements, promise: Promise) -> CheckResult:
    """Every promise in every named group: which one is kept less often than the others."""
    code, title, question = _FAULTS[promise.kind]
    calibrate = question == "probabilities"
    wording = Wording(
        code=code, title=title, question=question, phrase=lambda label: f"In group {label}",
        repair=repair_snippets.calibrate() if calibrate else repair_snippets.by_group(m.task, promise.alpha),
    )  # fmt: skip
    if promise.per_row:
        return calibration_of_parts(m, promise, wording)
    covered, cell, weights = m.result("groups", promise)
    names = attribute_names(m.sample.given["groups"])
    parts = group_parts(covered, cell, weights, names)
    if len(parts.labels) < 2:
        return _nothing_to_compare(wording, "group")
    result = compare_parts(m, promise, parts, wording, codes=lambda rows: group_rows(rows, *parts.labels))
    place = parts.labels[result.details["part"]]
    return replace(result, rows=lambda rows: group_rows(rows, place)[0])


# Kind of the parts -> one of them, all of them, and the title where no part falls short of the promise.
_ONE = {"group": "group", "difficulty": "part along difficulty"}
_DIFFERS = {"group": "coverage differs between groups", "difficulty": "coverage changes with difficulty"}
_OVER = {"group": "a group is over-covered", "difficulty": "coverage changes with difficulty"}


def _nothing_to_compare(wording: Wording, kind: str) -> CheckResult:
    return CheckResult(
        code=wording.code, title=wording.title, question=wording.question,
        not_applicable=f"There is only one {_ONE[kind]}; a comparison needs two.",
    )  # fmt: skip


def compare_parts(
    m: Measurements,
    promise: Promise,
    parts: Parts,
    wording: Wording,
    codes: Callable[[Rows], list[np.ndarray]] | None = None,
) -> CheckResult:
    """The worst of several parts of the rows, for a promise that is one number."""
    base = CheckResult(code=wording.code, title=wording.title, question=wording.question, cap=wording.cap)
    if len(parts.labels) < 2:
        return _nothing_to_compare(wording, parts.kind)
    side = promise_rows(m, promise) if "cluster" in m.design.have and codes is not None else None
    low, high = parts.intervals(m.confidence, 1.0 if side is None else side.design_effect)
    at, p = parts.worst(high, promise)
    if side is not None and codes is not None:
        at, p = clustered_worst(side, codes(side.rows), m.generator(f"{wording.code}{promise.key}"), promise)
    share, rows, promised = float(parts.shares[at]), parts.rows, promise.promised
    effect, effect_low, effect_high = _distance_from_owed(parts, at, promise, low, high)
    tolerance = PART_TOLERANCE * tolerance_at(promise.alpha)
    evidence = _part_evidence(parts, at, p, (low, high), promise, m.confidence, side)
    hits, everything = parts.all_rows
    return replace(
        base,
        evidence=evidence,
        p_value=p,
        effect=effect,
        effect_low=effect_low,
        effect_high=effect_high,
        tolerance=tolerance,
        serious=SERIOUS * PART_TOLERANCE * COMMON if promise.kind == "quantile" else None,
        fault=f"{wording.phrase(parts.labels[at])} "
        + promise.kept_words(share, float(rows[at]), hits / everything),
        title=wording.title if share < promised or promise.two_sided else _DIFFERS[parts.kind],
        clean=f"No {_ONE[parts.kind]} is clearly covered less often than the others.",
        where=f"{parts.place(at)}{promise.tag}",
        repair=wording.repair,
        rows_needed=int(
            np.ceil(everything * rows_for(promise.alpha, tolerance, m.confidence) / max(1.0, rows.min()))
        ),
        estimates=(evidence,),
        pictures=(part_picture(parts, (low, high), promise, m.confidence, base),),
        details={"alpha": promise.alpha, "part": at, "shortfall": promised - share},
    )


def _distance_from_owed(
    parts: Parts, at: int, promise: Promise, low: np.ndarray, high: np.ndarray
) -> tuple[float, float, float]:
    """How far a part falls short of the promise, or of what the others reach, with both ends.

    A wrong level is the first question, so the lower of the two is owed. The upper end is that of all parts.
    """
    share, rest = float(parts.shares[at]), parts.rest(at)
    if promise.two_sided and share > rest:
        owed = max(promise.promised, rest)
        return share - owed, float(low[at] - owed), float(high[at] - owed)
    owed = min(promise.promised, rest)
    return owed - share, float(owed - high[at]), float(np.max(owed - low))


def calibration_of_parts(
    m: Measurements, promise: Promise, wording: Wording, labels: Callable[[Rows], Any] | None = None
) -> CheckResult:
    """The worst part of the rows for a promise with a probability per row: multicalibration.

    Parts are the groups that were given, or those that ``labels`` makes of the rows.
    """
    kind = "group" if labels is None else "difficulty"

    def masks_of(rows: Rows, wanted: Sequence[str]) -> list[np.ndarray]:
        if labels is None:
            return group_rows(rows, *wanted)
        own = np.asarray(labels(rows)).astype(str)
        return [own == label for label in wanted]

    base = CheckResult(code=wording.code, title=wording.title, question=wording.question, cap=wording.cap)
    side = promise_rows(m, promise)
    if side is None:
        return replace(base, not_applicable=f"{NO_EXACT_TEST}.".capitalize())
    if (certain := without_a_chance_to_miss(base, promise, side)) is not None:
        return certain
    table = side.rows.given["groups"] if labels is None else labels(side.rows)
    purpose = f"{wording.code}{promise.key}"
    joint = multicalibration_error(
        side.kept, side.expected, table, depth=DEPTH, pos_label=True, random_state=m.generator(purpose)
    )
    listed = joint.details["groups"]
    if len(listed) < 2:
        return _nothing_to_compare(wording, kind)
    masks = masks_of(side.rows, list(listed))
    at, p = _worst_of(side, listed, masks, kind), joint.p_value
    if side.cluster is not None:
        at, p = clustered_worst(
            side, masks, m.generator(f"{purpose} signs"), replace(promise, two_sided=True)
        )
    worst, mask = list(listed)[at], masks[at]
    numbers = _part_numbers(m, promise, side, mask, p, wording.phrase(worst), joint)
    over = not promise.two_sided and numbers["details"]["shortfall"] < 0
    return replace(
        base,
        **numbers,
        title=_OVER[kind] if over else wording.title,
        clean=f"In no {_ONE[kind]} are the {promise.noun} clearly farther off than in all rows.",
        where=f"group {worst}" if kind == "group" else worst,
        repair=wording.repair,
        pictures=(deviation_picture(m, promise, side, dict(zip(listed, masks, strict=True)), base, kind),),
        rows=lambda rows: masks_of(rows, [worst])[0],
    )


def _worst_of(
    side: PromiseRows, listed: Mapping[str, Mapping[str, Any]], masks: list[np.ndarray], kind: str
) -> int:
    """Of the parts that stand out from all rows the one that is farthest from its own promise.

    Parts along difficulty are one series: where one stands out the farthest of all of them is named.
    """
    outstanding = [k for k, own in enumerate(listed.values()) if (own["p_value"] or 0.0) <= LEVEL]
    largest = max(range(len(masks)), key=lambda k: float(list(listed.values())[k]["value"]))
    if not outstanding:
        return largest
    outstanding = list(range(len(masks))) if kind == "difficulty" else outstanding
    gaps = {k: float(np.sum(side.kept[masks[k]] - side.promised[masks[k]])) for k in outstanding}
    return max(outstanding, key=lambda k: abs(gaps[k]) / np.sqrt(max(1.0, masks[k].sum())))


def _part_numbers(
    m: Measurements,
    promise: Promise,
    side: PromiseRows,
    mask: np.ndarray,
    p: float | None,
    place: str,
    joint: Estimate,
) -> dict[str, Any]:
    """Evidence, effect and sentence of the worst part."""
    inside = side.take(mask)
    error = calibration_error(
        inside.kept, inside.promised, pos_label=True, confidence=m.confidence,
        random_state=m.generator(f"part {promise.key}"),
    )  # fmt: skip
    stated, seen = float(inside.promised.mean()), float(inside.kept.mean())
    evidence = replace(
        error, name=f"calibration error {place[0].lower()}{place[1:].rstrip(',')}{promise.tag}", p_value=p,
        null_low=None, null_high=None, null_level=None,
        method=f"{error.method}; p-value of the worst part: {joint.method}",
        reason=FEW_CLUSTERS if p is None else error.reason,
    )  # fmt: skip
    low = error.details.get("low_bound")
    widest = np.sqrt(side.design_effect)
    value = float(error)
    # Certain promises, such as sets of all labels, have no noise.
    is_certain = not np.any(inside.promised * (1 - inside.promised))
    high = value if is_certain else float(error.details.get("asymptotic_high", error.high) or 1.0)
    mean_low, mean_high = inside.share_interval(m.confidence)
    # How far the mean is off is known better than how far some range of probabilities is.
    beyond = max(stated - mean_high, mean_low - stated)
    tolerances = STATED_TOLERANCE if promise.two_sided else PART_TOLERANCE
    return {
        "evidence": evidence,
        "p_value": p,
        "effect": value,
        "effect_low": beyond if low is None else max(beyond, value - widest * (value - float(low))),
        # With few expected events the law of the calibration error is no guide; that of a share always is.
        "effect_high": max(value + widest * (high - value), stated - mean_low, mean_high - stated),
        "tolerance": tolerances * tolerance_at(stated),
        "serious": SERIOUS * tolerances * COMMON,
        "fault": f"{place} {_stated_words(promise)} {format_share(stated)} on average and "
        f"{format_share(seen)} happened ({int(mask.sum())} rows)"
        + (_range_words(error) if abs(stated - seen) < 0.8 * value else "")
        + ".",
        "estimates": (evidence, replace(joint, name=f"multicalibration error{promise.tag} ({promise.name})")),
        "details": {"alpha": promise.alpha, "shortfall": stated - seen, "stated": stated, "happened": seen},
        "rows_needed": None,
    }


def _stated_words(promise: Promise) -> str:
    return (
        "the sets implied by the probabilities state"
        if promise.kind == "stated"
        else f"the {promise.name.replace('promised ', '')} states"
    )


def _range_words(error: Estimate) -> str:
    span = error.details
    if span.get("stated_in_interval") is None:
        return ""
    return (
        f"; where {format_share(span['stated_in_interval'])} were stated, "
        f"{format_share(span['observed_in_interval'])} happened"
    )


def _part_evidence(
    parts: Parts,
    at: int,
    p: float | None,
    ends: tuple[np.ndarray, np.ndarray],
    promise: Promise,
    confidence: float,
    side: PromiseRows | None,
) -> Estimate:
    kinds = f"{parts.kind}s" if parts.kind == "group" else "parts"
    test = "hypergeometric test against the others" if side is None else "signs of whole clusters"
    return Estimate(
        name=_share_name(promise, parts.place(at)), value=float(parts.shares[at]),
        low=float(ends[0][at]), high=float(ends[1][at]), confidence=confidence,
        n=float(parts.counts.effective[at]),
        p_value=p, alternative="two-sided" if promise.two_sided else "less",
        method=f"share of covered rows; Clopper-Pearson intervals that hold at once for "
        f"{len(parts.labels)} {kinds} (Sidak)"
        + ("" if parts.foremost is None else ", that of the hardest part, named beforehand, by itself")
        + f"; {test}, corrected for the number of {kinds}",
        reason="" if p is not None else NO_EXACT_TEST if side is None else FEW_CLUSTERS,
        details={"hits": parts.hits, "rows": parts.rows, "labels": list(parts.labels)},
    )  # fmt: skip


def _share_name(promise: Promise, place: str) -> str:
    """What the share of a part is called."""
    if promise.kind == "quantile":
        return f"share below {promise.name} in the {place}"
    return f"coverage of the {place}{promise.tag}"


_ADD = "Add groups: a label per row (region, site, age band), or a table of them, whose promise must hold."
CHECKS = (
    Check(
        code="CAL201",
        title="coverage of groups",
        question=QUESTION,
        needs=("groups",),
        add=_ADD,
        kinds=("coverage", "stated"),
        slices="groups",
        states=group_table,
        read=groups,
    ),
    Check(
        code="CAL504",
        title="probabilities of groups",
        question="probabilities",
        needs=("groups",),
        add=_ADD,
        kinds=("probability", "classes", "quantile"),
        slices="groups",
        states=group_table,
        read=groups,
        on_sample=True,
    ),
)
