"""CAL201 and CAL504: does every promise hold in every group, and in every intersection of groups.

Every test here asks whether a promise is kept *less well in one part* than in all rows together. The level
itself is the first question, so luck of the calibration sample and a wrong level do not count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from calipers.auditing import repairs
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.checks.coverage import rows_for, tolerance_at
from calipers.auditing.measurements import NO_EXACT_TEST, Design, Measurements
from calipers.auditing.promise_rows import FEW_CLUSTERS, PromiseRows, promise_rows, without_a_chance_to_miss
from calipers.auditing.promises import Promise
from calipers.auditing.severity import LEVEL
from calipers.auditing.table_states import table_of
from calipers.inference import ShareCounts, sidak_confidence
from calipers.inputs import Weights
from calipers.inputs.rows import CELL_JOINT, Rows, attribute_names
from calipers.metrics import calibration_error, multicalibration_error
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_percent

QUESTION = "everywhere"
# A part may miss the promise by this many tolerances of the whole before anybody should act.
PART_TOLERANCE = 2.5
# Fewer misses than this in a half teach a classifier nothing, nor a search for rules.
FEWEST_MISSES = 10
# Share of a part's rows by which stated and observed counts of a probability may differ there.
STATED_TOLERANCE = 0.03
# Most attributes that are intersected, and rows from which on an intersection is looked at.
DEPTH = 2
FEWEST_ROWS = 20
_SHOWN_GROUPS = 40


def flat_p_values(
    counts: ShareCounts, whole: tuple[float, float] | None = None, *, two_sided: bool = False
) -> np.ndarray:
    """P-value of each part against "kept no less often than by the others", exact given the totals.

    Under the null the covered rows of a part are a hypergeometric draw from all covered rows; neither the
    level of coverage nor the luck of a calibration sample enters. NaN with importance weights. ``whole``:
    covered and all rows, where parts overlap.
    """
    if not counts.whole:
        return np.full(len(counts.hits), np.nan)
    hits, rows = (counts.hits.sum(), counts.totals.sum()) if whole is None else whole
    law = stats.hypergeom(rows, hits, counts.totals)
    below = np.asarray(law.cdf(counts.hits))
    if not two_sided:
        return below
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, np.asarray(law.sf(counts.hits - 1)))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """Parts of the rows in which a promise is compared; they may overlap.

    Parameters
    ----------
    counts : ShareCounts
        Covered and all rows of every part.
    labels : tuple of str
        The parts in words.
    kind : {"group", "difficulty"}
        What divides the rows.
    foremost : int or None
        The part that was named before the data were seen. Its interval stands for itself; those of the
        others are corrected for their number.
    whole : (float, float) or None
        Covered and all rows, where parts overlap.
    """

    counts: ShareCounts
    labels: tuple[str, ...]
    kind: str
    foremost: int | None = None
    whole: tuple[float, float] | None = None

    @property
    def shares(self) -> np.ndarray:
        """Coverage of every part."""
        return self.counts.shares

    @property
    def hits(self) -> np.ndarray:
        """Covered rows of every part, or their weight."""
        return self.counts.hits

    @property
    def rows(self) -> np.ndarray:
        """Rows of every part, or their weight."""
        return self.counts.totals

    @property
    def all_rows(self) -> tuple[float, float]:
        """Covered and all rows."""
        return self.whole or (float(self.hits.sum()), float(self.rows.sum()))

    def rest(self, at: int) -> float:
        """Coverage of all rows outside a part."""
        hits, rows = self.all_rows
        return float((hits - self.hits[at]) / max(1e-300, rows - self.rows[at]))

    def intervals(self, confidence: float, effect: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Clopper-Pearson intervals that hold together (Sidak), but for the part named beforehand.

        ``effect`` is the design effect of clusters: so many rows count as one.
        """
        together = np.full(len(self.labels), sidak_confidence(confidence, len(self.labels)))
        if self.foremost is not None:
            together[self.foremost] = confidence
        counts = self.counts if effect == 1.0 else _thinned(self.counts, effect)
        each = [counts.take(np.array([at])).interval(float(level)) for at, level in enumerate(together)]
        return np.array([float(low[0]) for low, _ in each]), np.array([float(high[0]) for _, high in each])

    def worst(self, high: np.ndarray, promise: Promise) -> tuple[int, float | None]:
        """The part with most evidence against it, and the smallest p-value corrected for their number.

        Where more than promised is a fault too, what one part lacks the others have to spare: of the parts
        that stand out the one farthest from the promise is named.
        """
        p_values = flat_p_values(self.counts, self.whole, two_sided=promise.two_sided)
        if np.isnan(p_values).all():
            return int(np.argmin(high)), None
        corrected = np.minimum(1.0, p_values * len(self.labels))
        at = int(np.nanargmin(p_values))
        outstanding = np.flatnonzero(corrected <= LEVEL)
        if promise.two_sided and len(outstanding):
            gaps = np.abs(self.hits - promise.promised * self.rows) / np.sqrt(np.maximum(self.rows, 1.0))
            at = int(outstanding[np.argmax(gaps[outstanding])])
        return at, float(np.nanmin(corrected))


def _thinned(counts: ShareCounts, effect: float) -> ShareCounts:
    return ShareCounts(counts.hits / effect, counts.totals / effect, counts.hit_noise, counts.noise)


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
        repair=repairs.calibrate() if calibrate else repairs.by_group(m.task, promise.alpha),
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


def group_parts(covered: np.ndarray, cell: np.ndarray, weights: Weights, names: Sequence[str]) -> Parts:
    """Groups of one attribute, and intersections of several with enough rows."""
    everything = ShareCounts.of(covered, weights)
    found: list[tuple[str, ShareCounts]] = []
    for label, mask, n_attributes in memberships(cell, names):
        counts = ShareCounts.of(covered[mask], weights.take(mask))
        if n_attributes == 1 or float(counts.totals[0]) >= FEWEST_ROWS:
            found.append((label, counts))
    own = [counts for _, counts in found]
    hits, totals, hit_noise, noise = (
        np.concatenate([getattr(c, key) for c in own]) for key in ("hits", "totals", "hit_noise", "noise")
    )
    joined = ShareCounts(hits, totals, hit_noise, noise, everything.whole)
    overlap = None if not names else (float(everything.hits[0]), float(everything.totals[0]))
    return Parts(counts=joined, labels=tuple(label for label, _ in found), kind="group", whole=overlap)


def memberships(cell: np.ndarray, names: Sequence[str]) -> list[tuple[str, np.ndarray, int]]:
    """Name, rows and number of attributes of every group; a group equal to a simpler one is left out."""
    found: dict[bytes, tuple[str, np.ndarray, int]] = {}
    for label, mask, size in _named_groups(cell, names):
        found.setdefault(np.packbits(mask).tobytes(), (label, mask, size))
    return [entry for entry in found.values() if not entry[1].all() or len(found) == 1]


def _named_groups(cell: np.ndarray, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray, int]]:
    """Name, rows and number of attributes of every group and intersection."""
    labels = np.asarray(cell).astype(str)
    if not names:
        yield from ((str(label), labels == label, 1) for label in np.unique(labels))
        return
    columns = np.array([text.split(CELL_JOINT) for text in labels])
    for size in range(1, min(DEPTH, len(names)) + 1):
        for chosen in combinations(range(len(names)), size):
            keys, codes = np.unique(columns[:, chosen], axis=0, return_inverse=True)
            for number, key in enumerate(keys):
                label = " and ".join(f"{names[j]}={word}" for j, word in zip(chosen, key, strict=True))
                yield label, codes.reshape(-1) == number, size


def group_rows(rows: Rows, *labels: str) -> list[np.ndarray]:
    """Which rows belong to the groups of these names; none where there is no such group."""
    names = attribute_names(rows.given["groups"])
    found = {label: mask for label, mask, _ in _named_groups(rows["group_cell"], names) if label in labels}
    return [found.get(label, np.zeros(rows.n, dtype=bool)) for label in labels]


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
    # A wrong level is the first question: a part falls short of the promise, or of what the others reach.
    over = promise.two_sided and share > parts.rest(at)
    owed = max(promised, parts.rest(at)) if over else min(promised, parts.rest(at))
    tolerance = PART_TOLERANCE * tolerance_at(promise.alpha)
    evidence = _part_evidence(
        parts, at, p, (low, high), promise.tag, m.confidence, side, two_sided=promise.two_sided
    )
    ends = (
        (share - owed, low[at] - owed, high[at] - owed)
        if over
        else (owed - share, owed - high[at], owed - low[at])
    )
    hits, everything = parts.all_rows
    return replace(
        base,
        evidence=evidence,
        p_value=p,
        effect=float(ends[0]),
        effect_low=float(ends[1]),
        effect_high=float(max(ends[2], np.max(owed - low)) if not over else ends[2]),
        tolerance=tolerance,
        fault=f"{wording.phrase(parts.labels[at])} "
        + promise.kept_words(share, float(rows[at]), hits / everything),
        title=wording.title if share < promised or promise.two_sided else _DIFFERS[parts.kind],
        clean=f"No {_ONE[parts.kind]} is covered less often than the others.",
        where=f"{_place(parts, at)}{promise.tag}",
        repair=wording.repair,
        rows_needed=int(
            np.ceil(everything * rows_for(promise.alpha, tolerance, m.confidence) / max(1.0, rows.min()))
        ),
        estimates=(evidence,),
        pictures=(_part_picture(parts, (low, high), promise, m.confidence, base),),
        details={"alpha": promise.alpha, "part": at, "shortfall": promised - share},
    )


def clustered_worst(
    side: PromiseRows, masks: list[np.ndarray], generator: np.random.Generator, promise: Promise
) -> tuple[int, float | None]:
    """The part whose sum of residuals stands out most, and its p-value by signs of clusters."""
    sign = 1.0 if promise.two_sided else -1.0
    scale = [np.sqrt(max(1.0, float(np.sum(side.residuals[mask] ** 2)))) for mask in masks]

    def scores(residuals: np.ndarray) -> np.ndarray:
        sums = np.stack([residuals[:, mask].sum(axis=1) / s for mask, s in zip(masks, scale, strict=True)])
        return np.abs(sums) if promise.two_sided else sign * sums

    at = int(np.argmax(scores(side.residuals[None, :])[:, 0]))
    return at, side.sign_test(lambda r: scores(r).max(axis=0), generator)


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
        clean=f"In no {_ONE[kind]} do the {promise.noun} differ from what happened more than in all rows.",
        where=f"group {worst}" if kind == "group" else worst,
        repair=wording.repair,
        pictures=(_deviation_picture(m, promise, side, dict(zip(listed, masks, strict=True)), base, kind),),
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
    return {
        "evidence": evidence,
        "p_value": p,
        "effect": value,
        "effect_low": beyond if low is None else max(beyond, value - widest * (value - float(low))),
        # With few expected events the law of the calibration error is no guide; that of a share always is.
        "effect_high": max(value + widest * (high - value), stated - mean_low, mean_high - stated),
        "tolerance": STATED_TOLERANCE if promise.two_sided else PART_TOLERANCE * tolerance_at(0.1),
        "fault": f"{place} {_stated_words(promise)} {100 * stated:.1f} % on average and {100 * seen:.1f} % "
        f"happened ({int(mask.sum())} rows)"
        + (_range_words(error) if abs(stated - seen) < 0.8 * value else "")
        + ".",
        "estimates": (evidence, replace(joint, name=f"multicalibration error{promise.tag} ({promise.name})")),
        "details": {"alpha": promise.alpha, "shortfall": stated - seen, "stated": stated, "happened": seen},
        "rows_needed": None,
    }


def _stated_words(promise: Promise) -> str:
    return (
        "implied sets state"
        if promise.kind == "stated"
        else f"the {promise.name.replace('promised ', '')} states"
    )


def _range_words(error: Estimate) -> str:
    span = error.details
    if span.get("stated_in_interval") is None:
        return ""
    return (
        f"; where {100 * span['stated_in_interval']:.1f} % were stated, "
        f"{100 * span['observed_in_interval']:.1f} % happened"
    )


def _place(parts: Parts, at: int) -> str:
    return f"group {parts.labels[at]}" if parts.kind == "group" else parts.labels[at]


def _part_evidence(
    parts: Parts,
    at: int,
    p: float | None,
    ends: tuple[np.ndarray, np.ndarray],
    tag: str,
    confidence: float,
    side: PromiseRows | None,
    *,
    two_sided: bool,
) -> Estimate:
    kinds = f"{parts.kind}s" if parts.kind == "group" else "parts"
    test = "hypergeometric test against the others" if side is None else "signs of whole clusters"
    return Estimate(
        name=f"coverage of the {_place(parts, at)}{tag}", value=float(parts.shares[at]),
        low=float(ends[0][at]), high=float(ends[1][at]), confidence=confidence,
        n=float(parts.counts.effective[at]),
        p_value=p, alternative="two-sided" if two_sided else "less",
        method=f"share of covered rows; Clopper-Pearson intervals that hold at once for "
        f"{len(parts.labels)} {kinds} (Sidak)"
        + ("" if parts.foremost is None else ", that of the hardest part, named beforehand, by itself")
        + f"; {test}, corrected for the number of {kinds}",
        reason="" if p is not None else NO_EXACT_TEST if side is None else FEW_CLUSTERS,
        details={"hits": parts.hits, "rows": parts.rows, "labels": list(parts.labels)},
    )  # fmt: skip


def _part_picture(
    parts: Parts, ends: tuple[np.ndarray, np.ndarray], promise: Promise, confidence: float, base: CheckResult
) -> Picture:
    # Parts along difficulty have an order of their own; groups are shown worst first.
    by_share = np.argsort(parts.shares, kind="stable")
    shown = (by_share if parts.kind == "group" else np.arange(len(by_share)))[:_SHOWN_GROUPS]
    curve = Curve(
        name=f"coverage by {parts.kind}{promise.tag}", x=np.arange(len(shown), dtype=float),
        y=parts.shares[shown], low=ends[0][shown], high=ends[1][shown], confidence=confidence,
        x_label=parts.kind, y_label="coverage", method="Clopper-Pearson, Sidak-corrected",
        details={"rows": parts.rows[shown]},
    )  # fmt: skip
    left_out = len(by_share) - len(shown)
    return Picture(
        name=f"{base.code}_coverage_by_{parts.kind}{promise.tag}".replace(" ", "_"), question=base.question,
        title=f"Coverage by {parts.kind}{promise.tag}",
        caption=f"All intervals hold at once with probability {format_percent(confidence)}; the line is the "
        "promise." + (f" The {left_out} groups covered most often are left out." if left_out else ""),
        kind="intervals", curves=(curve,), reference=promise.promised,
        labels=tuple(parts.labels[i] for i in shown),
    )  # fmt: skip


def _deviation_picture(
    m: Measurements,
    promise: Promise,
    side: PromiseRows,
    masks: dict[str, np.ndarray],
    base: CheckResult,
    kind: str,
) -> Picture:
    """What happened minus what was stated, per part, the largest differences first."""
    confidence, residuals = m.confidence, side.kept - side.promised
    gap = {name: float(residuals[mask].mean()) if mask.any() else 0.0 for name, mask in masks.items()}
    # Parts along difficulty have an order of their own.
    ease = side.rows.get("ease_or_size") if kind == "difficulty" else None
    order = gap if ease is None else {name: float(ease[mask].mean()) for name, mask in masks.items()}
    shown = sorted(gap, key=lambda name: -abs(gap[name]) if ease is None else order[name])[:_SHOWN_GROUPS]
    rows = np.array([max(1.0, float(masks[name].sum())) for name in shown])
    share = np.array([float(side.kept[masks[name]].mean()) if masks[name].any() else 0.5 for name in shown])
    y = np.array([gap[name] for name in shown])
    half = stats.norm.ppf(0.5 + sidak_confidence(confidence, len(masks)) / 2) * np.sqrt(
        np.maximum(share * (1 - share), 1 / rows) / rows
    )
    curve = Curve(
        name=f"happened minus stated by {kind}", x=np.arange(len(shown), dtype=float), y=y, low=y - half,
        high=y + half, confidence=confidence, x_label=kind, y_label="happened minus stated",
        method="normal intervals that hold for all parts at once (Sidak)",
        details={"rows": rows, "two_sided": True},
    )  # fmt: skip
    return Picture(
        name=f"{base.code}_by_{kind}_{promise.key}", question=base.question,
        title=f"Happened minus stated by {kind}", kind="intervals", curves=(curve,), reference=0.0,
        caption=f"All intervals hold at once with probability {format_percent(confidence)}; at the line as "
        "much happens as was stated.",
        labels=tuple(shown),
    )  # fmt: skip


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
        kinds=("probability", "quantile"),
        slices="groups",
        states=group_table,
        read=groups,
        on_sample=True,
    ),
)
