"""CAL602 and CAL603: does the mean loss stay within its promised bound, and in every group."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calipers.auditing.check import Check
from calipers.auditing.check_result import CheckResult, Picture
from calipers.auditing.measurements import NO_EXACT_TEST, Measurements
from calipers.auditing.parts import FEWEST_ROWS, group_rows, memberships
from calipers.exceptions import InputError
from calipers.inference import (
    Moments,
    bounded_mean_interval,
    bounded_mean_p_value,
    normal_quantile,
    sidak_confidence,
)
from calipers.inputs.derived_columns import attribute_names
from calipers.inputs.rows import Rows
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_number

QUESTION = "forecast"
# Share of the bound by which the mean loss may exceed it before anybody should act.
TOLERATED = 0.1
PROMISE = "mean loss"


def _checked(m: Measurements) -> tuple[Rows, np.ndarray] | None:
    """Rows and losses, which must lie in their range; None with importance weights."""
    if (rows := m.counted_rows()) is None:
        return None
    loss, (low, high) = rows["loss"].astype(float), m.design.loss_range
    outside = (loss < low) | (loss > high)
    if outside.any():
        at = int(np.argmax(outside))
        raise InputError(
            f"loss must lie in loss_range [{low:g}, {high:g}], {int(outside.sum())} of {len(loss)} values do "
            f"not (first: {loss[at]:g}). Give the range that a loss can have."
        )
    return rows, loss


def mean_loss(m: Measurements, loss: np.ndarray, name: str, confidence: float) -> Estimate:
    """Mean loss with an interval for rows of a known range and the test against the bound, one-sided."""
    low, high = m.design.loss_range
    bound, moments = float(m.design.bound or 0.0), Moments.of(loss)
    ends = bounded_mean_interval(moments, low=low, high=high, confidence=confidence)
    two_sided = bounded_mean_p_value(moments, null=bound, low=low, high=high)
    p = two_sided / 2 if moments.mean > bound else 1.0 - two_sided / 2
    return Estimate(
        name=name, value=moments.mean, low=float(ends.low), high=float(ends.high), confidence=confidence,
        n=len(loss), p_value=float(p), alternative="greater",
        method="mean of losses of a known range; one-sided test against the bound",
    )  # fmt: skip


def within_bound(m: Measurements, promise: None) -> CheckResult:
    """The mean loss of all rows against its bound."""
    base = CheckResult(code="CAL602", title="the risk bound is broken", question=QUESTION, promise=PROMISE)
    if (found := _checked(m)) is None:
        return replace(base, not_applicable=f"{NO_EXACT_TEST}.".capitalize())
    loss = found[1]
    seen = format_number(float(loss.mean()))
    return replace(
        base, **_numbers(m, mean_loss(m, loss, "mean loss", m.confidence), "The mean loss"),
        clean=f"The mean loss is {seen}; at most {m.design.bound:g} was promised.",
        rows=lambda given: given["loss"] > m.design.bound,
    )  # fmt: skip


def _numbers(m: Measurements, estimate: Estimate, what: str) -> dict[str, Any]:
    bound = float(m.design.bound or 0.0)
    low, high = float(estimate.low or 0.0), float(estimate.high or 0.0)
    return {
        "evidence": estimate,
        "p_value": estimate.p_value,
        "effect": float(estimate) - bound,
        "effect_low": low - bound,
        "effect_high": high - bound,
        "tolerance": TOLERATED * abs(bound),
        "rows_needed": _rows_needed(m, bound),
        "fault": f"{what} is {format_number(float(estimate))}; at most {bound:g} was promised.",
        "estimates": (estimate,),
        "details": {"bound": bound},
    }


def _rows_needed(m: Measurements, bound: float) -> int | None:
    """Rows at which a mean loss at the bound is known to within the tolerance, whatever its spread."""
    if not bound:
        return None
    low, high = m.design.loss_range
    # No loss in the range with this mean varies more (Bhatia and Davis 2000).
    variance = (bound - low) * (high - bound)
    return int(np.ceil(normal_quantile(m.confidence) ** 2 * variance / (TOLERATED * bound) ** 2))


def groups_within_bound(m: Measurements, promise: None) -> CheckResult:
    """The mean loss of every group against the bound; the promise is about all rows, so at most a warning."""
    base = CheckResult(
        code="CAL603",
        title="a group exceeds the risk bound",
        question=QUESTION,
        promise=PROMISE,
        cap="warning",
    )
    if (found := _checked(m)) is None:
        return replace(base, not_applicable=f"{NO_EXACT_TEST}.".capitalize())
    rows, loss = found
    named = memberships(rows["group_cell"], attribute_names(rows.given["groups"]))
    named = [entry for entry in named if entry[1].sum() >= FEWEST_ROWS]
    if len(named) < 2:
        return replace(base, not_applicable="There is only one group; a comparison needs two.")
    together = sidak_confidence(m.confidence, len(named))
    means = [
        replace(mean_loss(m, loss[mask], f"mean loss of group {label}", together), confidence=m.confidence)
        for label, mask, _ in named
    ]
    at = int(np.argmin([e.p_value if e.p_value is not None else 1.0 for e in means]))
    label, worst = named[at][0], means[at]
    p = min(1.0, float(worst.p_value or 1.0) * len(named))
    return replace(
        base, **(_numbers(m, replace(worst, p_value=p), f"In group {label} the mean loss") | {"p_value": p}),
        clean="No group exceeds the bound of the mean loss.", where=f"group {label}",
        pictures=(_picture(m, [label for label, _, _ in named], means),),
        rows=lambda given: group_rows(given, label)[0],
    )  # fmt: skip


def _picture(m: Measurements, labels: list[str], means: list[Estimate]) -> Picture:
    order = sorted(range(len(means)), key=lambda k: -float(means[k]))[:40]
    curve = Curve(
        name="mean loss by group", x=np.arange(len(order), dtype=float),
        y=np.array([float(means[k]) for k in order]), low=np.array([means[k].low or 0.0 for k in order]),
        high=np.array([means[k].high or 0.0 for k in order]), confidence=m.confidence, x_label="group",
        y_label="mean loss", method="intervals for rows of a known range that hold at once (Sidak)",
        details={"worse": "above"},
    )  # fmt: skip
    return Picture(
        name="CAL603_loss_by_group", question=QUESTION, title="Mean loss by group", kind="intervals",
        caption="The line is the promised bound.", curves=(curve,), reference=m.design.bound,
        labels=tuple(labels[k] for k in order),
    )  # fmt: skip


_ADD = "Add loss and bound: the loss of every row, and what its mean was promised not to exceed."
CHECKS = (
    Check(
        code="CAL602",
        title="mean loss against its bound",
        question=QUESTION,
        needs=("loss", "bound"),
        add=_ADD,
        once=True,
        slices="all rows",
        read=within_bound,
        on_sample=True,
    ),
    Check(
        code="CAL603",
        title="mean loss of groups against the bound",
        question=QUESTION,
        needs=("loss", "bound", "groups"),
        add=_ADD,
        once=True,
        slices="groups",
        read=groups_within_bound,
        on_sample=True,
    ),
)
