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
    # Parts along difficulty have an order of their own; groups are shown worst first.
    by_share = np.argsort(parts.shares, kind="stable")
    shown = (np.arange(len(by_share)) if parts.kind == ALONG else by_share)[:_SHOWN_GROUPS]
    quantile = promise.kind == "quantile"
    measured = "share of outcomes at or below" if quantile else "coverage"
    curve = Curve(
        name=f"{measured} by {parts.kind}{promise.tag}", x=np.arange(len(shown), dtype=float),
        y=parts.shares[shown], low=ends[0][shown], high=ends[1][shown], confidence=confidence,
        x_label=parts.kind, y_label=measured, method="Clopper-Pearson, Sidak-corrected",
        details={"rows": parts.rows[shown], "two_sided": quantile},
    )  # fmt: skip
    left_out = len(by_share) - len(shown)
    return Picture(
        name=f"{base.code}_coverage_by_{parts.kind}{promise.tag}".replace(" ", "_"), question=base.question,
        title=f"{'Outcomes at or below' if quantile else 'Coverage'} by {parts.kind}{promise.tag}",
        caption=f"Intervals hold simultaneously with probability {format_percent(confidence)}; the line is "
        "the promise." + (f" The {left_out} best covered {parts.kind}s are left out." if left_out else ""),
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
    """What happened minus what was stated, per part, the largest differences first."""
    confidence, residuals = m.confidence, side.kept - side.promised
    gap = {name: float(residuals[mask].mean()) if mask.any() else 0.0 for name, mask in masks.items()}
    # Parts along difficulty have an order of their own.
    ease = side.rows.get("ease_or_size") if kind == ALONG else None
    order = gap if ease is None else {name: float(ease[mask].mean()) for name, mask in masks.items()}
    shown = sorted(gap, key=lambda name: -abs(gap[name]) if ease is None else order[name])[:_SHOWN_GROUPS]
    rows = np.array([max(1.0, float(masks[name].sum())) for name in shown])
    share = np.array([float(side.kept[masks[name]].mean()) if masks[name].any() else 0.5 for name in shown])
    y = np.array([gap[name] for name in shown])
    half = normal_quantile(sidak_confidence(confidence, len(masks))) * np.sqrt(
        np.maximum(share * (1 - share), 1 / rows) / rows
    )
    curve = Curve(
        name=f"observed minus stated by {kind}", x=np.arange(len(shown), dtype=float), y=y, low=y - half,
        high=y + half, confidence=confidence, x_label=kind, y_label="observed minus stated",
        method="normal intervals, simultaneous for all parts (Sidak)",
        details={"rows": rows, "two_sided": True},
    )  # fmt: skip
    return Picture(
        name=f"{base.code}_by_{kind}_{promise.key}", question=base.question,
        title=f"Observed minus stated by {kind}", kind="intervals", curves=(curve,), reference=0.0,
        caption=f"Intervals hold simultaneously with probability {format_percent(confidence)}; at the line "
        "as much happens as was stated.",
        labels=tuple(shown),
    )  # fmt: skip
