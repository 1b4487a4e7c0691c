"""CAL2xx, does it cover everywhere, and if not, where does it fail: groups and regions.

Every test here asks whether coverage *depends* on something, given how much there is of it in all. The
level itself is the first question, so luck of the calibration sample and a wrong level do not count twice.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import stats

from calipers.auditing import repairs
from calipers.auditing.checks.coverage import rows_for, tolerance_at
from calipers.auditing.material import Level, Material
from calipers.auditing.reading import Check, Picture, Reading
from calipers.inference import clopper_pearson, sidak_confidence
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_percent

QUESTION = "everywhere"
# A part may miss the promise by this many tolerances of the whole before anybody should act.
PART_TOLERANCE = 2.5
_SHOWN_GROUPS = 40


def group_counts(
    covered: np.ndarray, codes: np.ndarray, n_groups: int, weights: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray]:
    """Covered and all rows of every group."""
    hits = np.bincount(codes, weights=covered if weights is None else covered * weights, minlength=n_groups)
    rows = np.bincount(codes, weights=weights, minlength=n_groups)
    return hits, rows.astype(float)


def flat_p_values(hits: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """P-value of each group against "covered no less often than the others", exact given the totals.

    Under the null the covered rows of a group are a hypergeometric draw from all covered rows; neither the
    level of coverage nor the luck of a calibration sample enters. NaN with weights that are not whole.
    """
    if np.any(hits != np.round(hits)) or np.any(rows != np.round(rows)):
        return np.full(len(hits), np.nan)
    return np.asarray(stats.hypergeom.cdf(hits, rows.sum(), hits.sum(), rows))


def groups(material: Material, level: Level) -> Reading:
    """Coverage of every named group: which one is covered less often than the others."""
    hits, rows = group_counts(
        level.covered, material.require("groups"), len(material.group_labels), material.weights
    )
    return part_reading(
        material, level, hits, rows, material.group_labels, code="CAL201", title="a group is under-covered",
        kind="group", repair=repairs.by_group(material.task, level.alpha),
    )  # fmt: skip


def part_reading(
    material: Material,
    level: Level,
    hits: np.ndarray,
    rows: np.ndarray,
    labels: tuple[str, ...],
    *,
    code: str,
    title: str,
    kind: str,
    repair: str,
    phrase: Callable[[str], str] | None = None,
    question: str = QUESTION,
    cap: str = "issue",
) -> Reading:
    """The worst of several disjoint parts of the rows, with all intervals valid together."""
    if len(labels) < 2:
        reason = f"There is only one {kind}; a comparison needs two."
        return Reading(code=code, title=title, question=question, not_applicable=reason)
    p_values = flat_p_values(hits, rows)
    shares = hits / rows
    confidence = sidak_confidence(material.confidence, len(labels))
    low, high = (np.asarray(end) for end in clopper_pearson(hits, rows, confidence=confidence))
    at = int(np.nanargmin(p_values)) if not np.isnan(p_values).all() else int(np.argmin(high))
    # The groups are tested one by one: the smallest p-value is corrected for their number.
    p = None if np.isnan(p_values[at]) else float(min(1.0, p_values[at] * len(labels)))
    place = phrase(labels[at]) if phrase else f"In {kind} {labels[at]}"
    promised, tolerance = level.promised, PART_TOLERANCE * tolerance_at(level.alpha)
    evidence = Estimate(
        name=f"coverage of {kind} {labels[at]}{level.tag}", value=float(shares[at]), low=float(low[at]),
        high=float(high[at]), confidence=material.confidence, n=float(rows[at]), p_value=p,
        alternative="less",
        method=f"share of covered rows; intervals hold together for {len(labels)} {kind}s (Sidak, "
        f"Clopper-Pearson); hypergeometric test against the others, corrected for the number of {kind}s",
        reason="" if p is not None else "no exact test with weights that are not whole numbers",
        details={"hits": hits, "rows": rows, "labels": list(labels)},
    )  # fmt: skip
    return Reading(
        code=code,
        title=title,
        question=question,
        evidence=evidence,
        p_value=p,
        effect=float(promised - shares[at]),
        effect_low=float(promised - high[at]),
        effect_high=float(np.max(promised - low)),
        tolerance=tolerance,
        fault=f"{place} the {material.noun} cover {100 * shares[at]:.1f} % of {rows[at]:.0f} rows; "
        f"{format_percent(promised)} was promised, and all rows together reach "
        f"{100 * hits.sum() / rows.sum():.1f} %.",
        clean=f"No {kind} is covered less often than the others.",
        where=f"{labels[at] if phrase else f'{kind} {labels[at]}'}{level.tag}",
        repair=repair,
        cap=cap,
        rows_needed=int(np.ceil(rows.sum() * rows_for(level.alpha, tolerance) / max(1.0, rows.min()))),
        estimates=(evidence,),
        pictures=(
            _part_picture(shares, low, high, rows, labels, level, kind, material.confidence, code, question),
        ),
        details={"alpha": level.alpha},
    )


def _part_picture(
    shares: np.ndarray, low: np.ndarray, high: np.ndarray, rows: np.ndarray, labels: tuple[str, ...],
    level: Level, kind: str, confidence: float, code: str, question: str,
) -> Picture:  # fmt: skip
    # Parts along difficulty have an order of their own; groups are shown worst first.
    worst_first = np.argsort(shares, kind="stable") if kind == "group" else np.arange(len(shares))
    shown = worst_first[:_SHOWN_GROUPS]
    curve = Curve(
        name=f"coverage by {kind}{level.tag}", x=np.arange(len(shown), dtype=float), y=shares[shown],
        low=low[shown], high=high[shown], confidence=confidence, x_label=kind, y_label="coverage",
        method="Clopper-Pearson, Sidak-corrected", details={"rows": rows[shown]},
    )  # fmt: skip
    return Picture(
        name=f"{code}_coverage_by_{kind}{level.tag}".replace(" ", "_"), question=question,
        title=f"Coverage by {kind}{level.tag}",
        caption=f"Intervals of all parts hold together at {format_percent(confidence)}; the line is the "
        "promise.", kind="intervals", curves=(curve,), reference=level.promised,
        labels=tuple(labels[i] for i in shown),
    )  # fmt: skip


CHECKS = (
    Check(
        code="CAL201",
        title="coverage of groups",
        question=QUESTION,
        needs=("prediction", "groups"),
        add="Add groups: a label per row (region, site, age band) whose coverage matters on its own.",
        at_level=groups,
    ),
)
