"""Is a promise kept in every part of the rows: families of slices, and the comparison of their parts.

To add a family of slices: write a file in ``checks`` with a `SliceFamily`, and name its checks in the table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calipers.auditing import repair_snippets
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult
from calipers.auditing.measurements import NO_EXACT_TEST, NO_EXACT_TEST_SENTENCE, Design, Measurements
from calipers.auditing.part_pictures import deviation_picture, part_picture
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import (
    FEW_CLUSTERS,
    PromiseRows,
    is_fault_of_one_part,
    promise_rows,
    without_a_chance_to_miss,
)
from calipers.auditing.severity import LEVEL, SERIOUS
from calipers.auditing.slices import (
    ALONG,
    DEPTH,
    Parts,
    clustered_worst,
    labelled_parts,
    labelled_rows,
    no_attributes,
)
from calipers.auditing.table_states import table_of
from calipers.auditing.tolerances import COMMON, PART_TOLERANCE, STATED_TOLERANCE, rows_for, tolerance_at
from calipers.inputs.rows import Column, Rows
from calipers.metrics import calibration_error, multicalibration_error
from calipers.results import Estimate
from calipers.results.formatting import format_rows, format_share

QUESTION = "everywhere"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What a result about parts says besides its numbers.

    ``kind`` is one of the parts in a word, "difficulty" where they are an ordered series; ``phrase`` turns a
    label into the place.
    """

    code: str
    title: str
    repair: str
    phrase: Callable[[str], str]
    question: str = QUESTION
    cap: str = "issue"
    kind: str = "group"

    @property
    def one(self) -> str:
        """One of the parts."""
        return f"part along {ALONG}" if self.kind == ALONG else self.kind

    @property
    def differs(self) -> str:
        """The title where no part falls short of the promise."""
        along = self.kind == ALONG
        return f"coverage changes with {ALONG}" if along else f"coverage differs between {self.kind}s"

    @property
    def over(self) -> str:
        """The title where a part is covered more often than promised."""
        return self.differs if self.kind == ALONG else f"a {self.kind} is over-covered"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceFamily:
    """Slices that a row belongs to by its own columns, asked of every promise.

    Parameters
    ----------
    name, word : str
        All of them and one of them, as people say: "groups" and "group".
    codes : (str, str)
        Codes of the findings about coverage, and about probabilities and quantiles.
    column : str or callable
        A column of the rows, or what makes one of them: ``column(rows)`` gives a label per row. A function
        stands at the top of its file and looks at one row at a time.
    needs, add
        As in `Check`.
    attributes : callable
        ``attributes(rows)`` names the attributes that a label joins; their intersections are slices too.
    """

    name: str
    word: str
    codes: tuple[str, str]
    column: Column
    needs: tuple[str, ...]
    add: str
    attributes: Callable[[Rows], Sequence[str]] = no_attributes

    def checks(self) -> tuple[Check, Check]:
        """Its lines in the table of checks: for coverage, and for probabilities and quantiles."""
        shared: dict[str, Any] = {
            "needs": self.needs, "add": self.add, "slices": self.name, "states": self.states,
            "read": self.read,
        }  # fmt: skip
        return (
            Check(
                code=self.codes[0], title=f"coverage of {self.name}", question=QUESTION,
                kinds=("coverage", "stated"), **shared,
            ),
            Check(
                code=self.codes[1], title=f"probabilities of {self.name}", question="probabilities",
                kinds=("probability", "classes", "quantile"), on_sample=True, **shared,
            ),
        )  # fmt: skip

    def states(self, design: Design, promise: Promise) -> States:
        """Covered and missed rows of every label."""
        return {} if promise.per_row else {self.name: table_of("covered", self.column)}

    def read(self, m: Measurements, promise: Promise) -> CheckResult:
        """The promise in every slice: in which one it is kept less often than in the others."""
        wording = self._wording(m, promise)
        if promise.per_row:
            return calibration_of_parts(m, promise, wording, self.table, self.masks)
        covered, cell, weights = m.result(self.name, promise)
        parts = labelled_parts(covered, cell, weights, self.attributes(m.sample), kind=self.word)
        if len(parts.labels) < 2:
            return _nothing_to_compare(wording)
        result = compare_parts(m, promise, parts, wording, codes=lambda rows: self.masks(rows, parts.labels))
        place = parts.labels[result.details["part"]]
        return replace(result, rows=lambda rows: self.masks(rows, [place])[0])

    def table(self, rows: Rows) -> Any:
        """Labels of the rows, or a table of their attributes."""
        return rows.given[self.name] if self.name in rows.given else rows[self.column]

    def masks(self, rows: Rows, labels: Sequence[str]) -> list[np.ndarray]:
        """Which rows belong to the slices of these names."""
        return labelled_rows(rows[self.column], self.attributes(rows), *labels)

    def _wording(self, m: Measurements, promise: Promise) -> Wording:
        calibrate = promise.kind in ("probability", "quantile")
        off = "quantiles" if promise.kind == "quantile" else "probabilities"
        return Wording(
            kind=self.word,
            code=self.codes[calibrate],
            title=f"{off} of a {self.word} are off" if calibrate else f"a {self.word} is under-covered",
            question="probabilities" if calibrate else QUESTION,
            repair=repair_snippets.calibrate()
            if calibrate
            else repair_snippets.by_group(m.task, promise.alpha),
            phrase=lambda label: f"In {self.word} {label}",
        )


def stated_inside(rows: Rows) -> float | None:
    """Mean probability stated for the labels inside the sets; None where there are no such sets."""
    P, sets = rows.get("probabilities"), rows.derived_sets()
    if P is None or sets is None:
        return None
    return float(np.average(np.sum(P * sets, axis=1), weights=rows.weights))


def is_foreseen(stated: float | None, promise: Promise, high: float) -> bool:
    """Whether the stated probabilities of the labels inside the sets say that these rows are missed so often.

    A set holds a label or does not, so sets of labels cannot cover exactly 1 - alpha in every part. Where the
    probabilities foresee what happens, the predictor is coarse, not wrong: at most a warning.
    """
    return stated is not None and stated <= high + tolerance_at(promise.alpha)


def _nothing_to_compare(wording: Wording) -> CheckResult:
    return CheckResult(
        code=wording.code, title=wording.title, question=wording.question,
        not_applicable=f"There is only one {wording.one}; a comparison needs two.",
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
        return _nothing_to_compare(wording)
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
        title=wording.title if share < promised or promise.two_sided else wording.differs,
        clean=f"No {wording.one} is clearly covered less often than the others.",
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

    A wrong level over all rows is a finding of its own, so a part is held to the nearer of the two. The upper
    end is the largest over all parts.
    """
    share, rest = float(parts.shares[at]), parts.rest(at)
    if promise.two_sided and share > rest:
        owed = max(promise.promised, rest)
        return share - owed, float(low[at] - owed), float(high[at] - owed)
    owed = min(promise.promised, rest)
    return owed - share, float(owed - high[at]), float(np.max(owed - low))


def calibration_of_parts(
    m: Measurements,
    promise: Promise,
    wording: Wording,
    table: Callable[[Rows], Any],
    masks_of: Callable[[Rows, Sequence[str]], list[np.ndarray]],
) -> CheckResult:
    """The worst part of the rows for a promise with a probability per row: multicalibration.

    ``table`` gives the labels of the rows, or several for each; ``masks_of`` the rows of labels.
    """
    kind = wording.kind
    base = CheckResult(code=wording.code, title=wording.title, question=wording.question, cap=wording.cap)
    side = promise_rows(m, promise)
    if side is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
    if (certain := without_a_chance_to_miss(base, promise, side)) is not None:
        return certain
    purpose = f"{wording.code}{promise.key}"

    def measured(side: PromiseRows) -> Estimate:
        return multicalibration_error(
            side.kept, side.expected, table(side.rows), depth=DEPTH, pos_label=True,
            n_draws=promise.n_draws, random_state=m.generator(purpose),
        )  # fmt: skip

    joint = measured(side)
    if len(joint.details["groups"]) < 2:
        return _nothing_to_compare(wording)
    masks = masks_of(side.rows, list(joint.details["groups"]))
    if kind != ALONG and is_fault_of_one_part(side, masks):
        side = replace(side, expected=side.promised)
        joint = measured(side)
    listed = joint.details["groups"]
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
        title=wording.over if over else wording.title,
        clean=f"In no {wording.one} are the {promise.noun} clearly farther off than in all rows.",
        where=worst if kind == ALONG else f"{kind} {worst}",
        repair=_repair_of_part(wording, promise, worst if kind == ALONG else f"{kind} {worst}"),
        pictures=(deviation_picture(m, promise, side, dict(zip(listed, masks, strict=True)), base, kind),),
        rows=lambda rows: masks_of(rows, [worst])[0],
    )


def _repair_of_part(wording: Wording, promise: Promise, where: str) -> str:
    """What to do about the part that is named; coverage is mended in all parts together."""
    if wording.question != "probabilities":
        return wording.repair
    return repair_snippets.calibrate("quantiles" if promise.kind == "quantile" else "probabilities", where)


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
    outstanding = list(range(len(masks))) if kind == ALONG else outstanding
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
    measure = "calibration error" + (" of the implied sets" if promise.kind == "stated" else "")
    evidence = replace(
        error, name=f"{measure} {place[0].lower()}{place[1:].rstrip(',')}{promise.tag}", p_value=p,
        null_low=None, null_high=None, null_level=None,
        method=f"{error.method}; p-value of the worst part: {joint.method}",
        reason=FEW_CLUSTERS if p is None else error.reason,
        details=dict(error.details) | {"null_subject": f"{promise.noun} as right there as elsewhere"},
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
        # With few expected events the asymptotic law of the calibration error is unreliable; the interval of
        # a share is valid at any n, so it bounds the effect too.
        "effect_high": max(value + widest * (high - value), stated - mean_low, mean_high - stated),
        "tolerance": tolerances * tolerance_at(stated),
        "serious": SERIOUS * tolerances * COMMON,
        "fault": f"{place} {_stated_words(promise)} {format_share(stated)} on average and "
        f"{format_share(seen)} happened ({format_rows(mask.sum())})"
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
    kinds = "parts" if parts.kind == ALONG else f"{parts.kind}s"
    test = "hypergeometric test against the others" if side is None else "signs of whole clusters"
    return Estimate(
        name=_share_name(promise, parts.place(at)), value=float(parts.shares[at]),
        low=float(ends[0][at]), high=float(ends[1][at]), confidence=confidence,
        n=float(parts.counts.effective[at]),
        p_value=p, alternative="two-sided" if promise.two_sided else "less",
        method=f"share of covered rows; Clopper-Pearson simultaneous intervals for "
        f"{len(parts.labels)} {kinds} (Sidak)"
        + ("" if parts.foremost is None else ", that of the hardest part, named beforehand, by itself")
        + f"; {test}, corrected for the number of {kinds}",
        reason="" if p is not None else NO_EXACT_TEST if side is None else FEW_CLUSTERS,
        details={
            "hits": parts.hits, "rows": parts.rows, "labels": list(parts.labels),
            "null_subject": f"quantiles as right in all {kinds}"
            if promise.kind == "quantile"
            else f"a predictor that covers all {kinds} alike",
        },
    )  # fmt: skip


def _share_name(promise: Promise, place: str) -> str:
    """What the share of a part is called."""
    if promise.kind == "quantile":
        return f"share below {promise.name} in the {place}"
    return f"coverage of the {place}{promise.tag}"
