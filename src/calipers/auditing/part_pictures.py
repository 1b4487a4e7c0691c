"""Pictures of a promise in every part of the rows."""

from __future__ import annotations

import numpy as np

from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.measurements import Measurements
from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import PromiseRows
from calipers.auditing.slices import ALONG, Parts
from calipers.inference import normal_quantile, sidak_confidence
from calipers.results import Curve
from calipers.results.formatting import format_percent

_SHOWN_GROUPS = 40


def part_picture(
    parts: Parts, ends: tuple[np.ndarray, np.ndarray], promise: Promise, confidence: float, base: CheckResult
) -> Picture:
    """Coverage of every part with its interval."""
    # Parts along difficulty have an order of their own; groups most surely off the promise are first.
    quantile = promise.kind == "quantile"
    beyond = ends[1] - promise.promised
    by_end = np.argsort(np.minimum(beyond, promise.promised - ends[0]) if quantile else beyond, kind="stable")
    shown = (np.arange(len(by_end)) if parts.kind == ALONG else by_end)[:_SHOWN_GROUPS]
    measured = "share of outcomes at or below" if quantile else "coverage"
    curve = Curve(
        name=f"{measured} by {parts.kind}{promise.tag}", x=np.arange(len(shown), dtype=float),
        y=parts.shares[shown], low=ends[0][shown], high=ends[1][shown], confidence=confidence,
        x_label=parts.kind, y_label=measured, method="Clopper-Pearson, Sidak-corrected",
        details={"rows": parts.rows[shown], "two_sided": quantile},
    )  # fmt: skip
    left_out = len(by_end) - len(shown)
    return Picture(
        name=f"{base.code}_coverage_by_{parts.kind}{promise.tag}".replace(" ", "_"), question=base.question,
        title=f"{'Outcomes at or below' if quantile else 'Coverage'} by {parts.kind}{promise.tag}",
        caption=f"Intervals hold simultaneously with probability {format_percent(confidence)}; the line is "
        "the promise." + (f" {left_out} more {parts.kind}s are left out." if left_out else ""),
        kind="intervals", curves=(curve,), reference=promise.promised,
        labels=tuple(parts.labels[i] for i in shown),
    )  # fmt: skip


def deviation_picture(
    m: Measurements,
    promise: Promise,
    side: PromiseRows,
    masks: dict[str, np.ndarray],
    base: CheckResult,
    kind: str,
) -> Picture:
    """What happened minus what was stated, per part, the surest differences first."""
    confidence, residuals = m.confidence, side.kept - side.promised
    gap = {name: float(residuals[mask].mean()) if mask.any() else 0.0 for name, mask in masks.items()}
    share = {name: float(side.kept[mask].mean()) if mask.any() else 0.5 for name, mask in masks.items()}
    rows = {name: max(1.0, float(mask.sum())) for name, mask in masks.items()}
    wide = normal_quantile(sidak_confidence(confidence, len(masks)))
    half = {n: wide * np.sqrt(max(share[n] * (1 - share[n]), 1 / rows[n]) / rows[n]) for n in masks}
    # Parts along difficulty have an order of their own.
    ease = side.rows.get("ease_or_size") if kind == ALONG else None
    place = {n: half[n] - abs(gap[n]) if ease is None else float(ease[masks[n]].mean()) for n in masks}
    shown = sorted(gap, key=lambda name: place[name])[:_SHOWN_GROUPS]
    y, room = (np.array([column[name] for name in shown]) for column in (gap, half))
    curve = Curve(
        name=f"observed minus stated by {kind}", x=np.arange(len(shown), dtype=float), y=y, low=y - room,
        high=y + room, confidence=confidence, x_label=kind, y_label="observed minus stated",
        method="normal intervals, simultaneous for all parts (Sidak)",
        details={"rows": np.array([rows[name] for name in shown]), "two_sided": True},
    )  # fmt: skip
    return Picture(
        name=f"{base.code}_by_{kind}_{promise.key}", question=base.question,
        title=f"Observed minus stated by {kind}: {promise.name}", kind="intervals", curves=(curve,),
        reference=0.0,
        caption=f"Intervals hold simultaneously with probability {format_percent(confidence)}; at the line "
        "as much happens as was stated.",
        labels=tuple(shown),
    )  # fmt: skip
