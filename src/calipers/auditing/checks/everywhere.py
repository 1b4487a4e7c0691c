"""CAL2xx, does it cover everywhere, and if not, where does it fail: groups and regions.

Every test here asks whether coverage *depends* on something, given how much there is of it in all. The
level itself is the first question, so luck of the calibration sample and a wrong level do not count twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from scipy import stats

from calipers.auditing import repairs
from calipers.auditing.check import Check, States
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.checks.coverage import rows_for, tolerance_at
from calipers.auditing.measurements import NO_EXACT_TEST, Design, Level, Measurements
from calipers.auditing.table_states import table_of
from calipers.inference import ShareCounts, sidak_confidence
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_percent

QUESTION = "everywhere"
# A part may miss the promise by this many tolerances of the whole before anybody should act.
PART_TOLERANCE = 2.5
# Fewer misses than this in a half teach a classifier nothing, nor a search for rules.
FEWEST_MISSES = 10
_SHOWN_GROUPS = 40


def flat_p_values(counts: ShareCounts) -> np.ndarray:
    """P-value of each part against "covered no less often than the others", exact given the totals.

    Under the null the covered rows of a part are a hypergeometric draw from all covered rows; neither the
    level of coverage nor the luck of a calibration sample enters. NaN with importance weights.
    """
    if not counts.whole:
        return np.full(len(counts.hits), np.nan)
    return np.asarray(stats.hypergeom.cdf(counts.hits, counts.totals.sum(), counts.hits.sum(), counts.totals))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """Disjoint parts of the rows whose coverage is compared.

    Parameters
    ----------
    counts : ShareCounts
        Covered and all rows of every part.
    labels : tuple of str
        The parts in words.
    kind : str
        What one of them is called: "group", "difficulty".
    foremost : int or None
        The part that was named before the data were seen. Its interval stands for itself; those of the
        others are corrected for their number.
    """

    counts: ShareCounts
    labels: tuple[str, ...]
    kind: str
    foremost: int | None = None

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

    def rest(self, at: int) -> float:
        """Coverage of all rows outside a part."""
        return float((self.hits.sum() - self.hits[at]) / (self.rows.sum() - self.rows[at]))

    def intervals(self, confidence: float) -> tuple[np.ndarray, np.ndarray]:
        """Clopper-Pearson intervals that hold together (Sidak), but for the part named beforehand."""
        together = np.full(len(self.labels), sidak_confidence(confidence, len(self.labels)))
        if self.foremost is not None:
            together[self.foremost] = confidence
        each = [self.counts.take(np.array([at])).interval(float(level)) for at, level in enumerate(together)]
        return np.array([float(low[0]) for low, _ in each]), np.array([float(high[0]) for _, high in each])

    def worst(self, high: np.ndarray) -> tuple[int, float | None]:
        """The part with most evidence against it, and its p-value corrected for the number of parts."""
        p_values = flat_p_values(self.counts)
        if np.isnan(p_values).all():
            return int(np.argmin(high)), None
        at = int(np.nanargmin(p_values))
        return at, float(min(1.0, p_values[at] * len(self.labels)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """What a result about parts says besides its numbers; ``phrase`` turns a label into the place."""

    code: str
    title: str
    repair: str
    phrase: Callable[[str], str]
    question: str = QUESTION
    cap: str = "issue"


def group_table(design: Design, level: Level) -> States:
    """Covered and missed rows of every group."""
    return {"groups": table_of("covered", "groups")}


def groups(m: Measurements, level: Level) -> CheckResult:
    """Coverage of every named group: which one is covered less often than the others."""
    covered, group, weights = m.result("groups", level)
    labels, codes = np.unique(group, return_inverse=True)
    counts = ShareCounts.of(covered, weights, codes.reshape(-1), len(labels))
    parts = Parts(counts=counts, labels=tuple(str(label) for label in labels), kind="group")
    wording = Wording(
        code="CAL201", title="a group is under-covered", phrase=lambda label: f"In group {label}",
        repair=repairs.by_group(m.task, level.alpha),
    )  # fmt: skip
    return compare_parts(m, level, parts, wording)


def compare_parts(m: Measurements, level: Level, parts: Parts, wording: Wording) -> CheckResult:
    """The worst of several disjoint parts of the rows."""
    base = CheckResult(code=wording.code, title=wording.title, question=wording.question, cap=wording.cap)
    if len(parts.labels) < 2:
        return replace(base, not_applicable=f"There is only one {parts.kind}; a comparison needs two.")
    low, high = parts.intervals(m.confidence)
    at, p = parts.worst(high)
    share, rows, promised = float(parts.shares[at]), parts.rows, level.promised
    # A wrong level is the first question: a part falls short of the promise, or of what the others reach.
    owed = min(promised, parts.rest(at))
    tolerance = PART_TOLERANCE * tolerance_at(level.alpha)
    evidence = _part_evidence(parts, at, p, (low, high), f"{level.tag}", m.confidence)
    return replace(
        base,
        evidence=evidence,
        p_value=p,
        effect=owed - share,
        effect_low=float(owed - high[at]),
        effect_high=float(np.max(owed - low)),
        tolerance=tolerance,
        fault=f"{wording.phrase(parts.labels[at])} the {m.noun} cover {100 * share:.1f} % of "
        f"{rows[at]:.0f} rows; {format_percent(promised)} was promised, and all rows together reach "
        f"{100 * parts.hits.sum() / rows.sum():.1f} %.",
        clean=f"No {parts.kind} is covered less often than the others.",
        where=f"{_place(parts, at)}{level.tag}",
        repair=wording.repair,
        rows_needed=int(
            np.ceil(rows.sum() * rows_for(level.alpha, tolerance, m.confidence) / max(1.0, rows.min()))
        ),
        estimates=(evidence,),
        pictures=(_part_picture(parts, (low, high), level, m.confidence, base),),
        details={"alpha": level.alpha, "part": at, "shortfall": promised - share},
    )


def _place(parts: Parts, at: int) -> str:
    return f"group {parts.labels[at]}" if parts.kind == "group" else parts.labels[at]


def _part_evidence(
    parts: Parts, at: int, p: float | None, ends: tuple[np.ndarray, np.ndarray], tag: str, confidence: float
) -> Estimate:
    kinds = f"{parts.kind}s" if parts.kind == "group" else "parts"
    return Estimate(
        name=f"coverage of the {_place(parts, at)}{tag}", value=float(parts.shares[at]),
        low=float(ends[0][at]), high=float(ends[1][at]), confidence=confidence,
        n=float(parts.counts.effective[at]),
        p_value=p, alternative="less",
        method=f"share of covered rows; Clopper-Pearson intervals that hold together for "
        f"{len(parts.labels)} {kinds} (Sidak)"
        + ("" if parts.foremost is None else ", that of the hardest part, named beforehand, by itself")
        + f"; hypergeometric test against the others, corrected for the number of {kinds}",
        reason="" if p is not None else NO_EXACT_TEST,
        details={"hits": parts.hits, "rows": parts.rows, "labels": list(parts.labels)},
    )  # fmt: skip


def _part_picture(
    parts: Parts, ends: tuple[np.ndarray, np.ndarray], level: Level, confidence: float, base: CheckResult
) -> Picture:
    # Parts along difficulty have an order of their own; groups are shown worst first.
    by_share = np.argsort(parts.shares, kind="stable")
    shown = (by_share if parts.kind == "group" else np.arange(len(by_share)))[:_SHOWN_GROUPS]
    curve = Curve(
        name=f"coverage by {parts.kind}{level.tag}", x=np.arange(len(shown), dtype=float),
        y=parts.shares[shown], low=ends[0][shown], high=ends[1][shown], confidence=confidence,
        x_label=parts.kind, y_label="coverage", method="Clopper-Pearson, Sidak-corrected",
        details={"rows": parts.rows[shown]},
    )  # fmt: skip
    left_out = len(by_share) - len(shown)
    return Picture(
        name=f"{base.code}_coverage_by_{parts.kind}{level.tag}".replace(" ", "_"), question=base.question,
        title=f"Coverage by {parts.kind}{level.tag}",
        caption=f"Intervals of all parts hold together at {format_percent(confidence)}; the line is the "
        "promise." + (f" The {left_out} groups covered most often are left out." if left_out else ""),
        kind="intervals", curves=(curve,), reference=level.promised,
        labels=tuple(parts.labels[i] for i in shown),
    )  # fmt: skip


CHECKS = (
    Check(
        code="CAL201",
        title="coverage of groups",
        question=QUESTION,
        needs=("prediction", "groups"),
        add="Add groups: a label per row (region, site, age band) whose coverage matters on its own.",
        states=group_table,
        read=groups,
    ),
)
