"""CAL602: does the mean loss stay within its promised bound; and what the checks of parts share."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from calipers.auditing.check import ADD_LOSS, Check
from calipers.auditing.check_result import CheckResult
from calipers.auditing.measurements import NO_EXACT_TEST_SENTENCE, Measurements
from calipers.auditing.promise_rows import FEW_CLUSTERS
from calipers.exceptions import InputError
from calipers.inference import (
    FEWEST_CLUSTERS,
    Moments,
    bounded_mean_interval,
    bounded_mean_p_value,
    design_effect,
    normal_quantile,
)
from calipers.inputs.rows import Rows
from calipers.results import Estimate
from calipers.results.formatting import format_number

QUESTION = "forecast"
# Share of the bound by which the mean loss may exceed it before action is called for.
TOLERATED = 0.1
PROMISE = "mean loss"
_METHOD = "mean of losses of a known range; one-sided test against the bound"
_CLUSTERED = f"{_METHOD}; rows of one cluster count as fewer, by the design effect"


def checked_losses(m: Measurements) -> tuple[Rows, np.ndarray] | None:
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


def mean_loss(
    m: Measurements, loss: np.ndarray, cluster: Any, *, name: str, confidence: float, null: float
) -> Estimate:
    """Mean loss with an interval for rows of a known range and the test against the null, one-sided.

    Rows of one cluster count as fewer, by the design effect.
    """
    low, high = m.design.loss_range
    moments, n_clusters = Moments.of(loss), None if cluster is None else len(np.unique(cluster))
    if cluster is not None:
        effect = design_effect(loss - moments.mean, cluster)
        moments = Moments(moments.n / effect, moments.mean, moments.squares / effect)
    ends = bounded_mean_interval(moments, low=low, high=high, confidence=confidence)
    two_sided = bounded_mean_p_value(moments, null=null, low=low, high=high)
    p = two_sided / 2 if moments.mean > null else 1.0 - two_sided / 2
    few = n_clusters is not None and n_clusters < FEWEST_CLUSTERS
    return Estimate(
        name=name, value=moments.mean, low=float(ends.low), high=float(ends.high), confidence=confidence,
        n=len(loss), p_value=None if few else float(p), alternative="greater",
        reason=FEW_CLUSTERS if few else "", method=_METHOD if cluster is None else _CLUSTERED,
        details={"null_subject": f"a mean loss of at most {_plainly(null)}"},
    )  # fmt: skip


def _plainly(bound: float) -> str:
    """A bound as it was given, or a mean, without zeros that say nothing."""
    shown = format_number(bound)
    return shown.rstrip("0").rstrip(".") if "." in shown and "e" not in shown else shown


def within_bound(m: Measurements, promise: None) -> CheckResult:
    """The mean loss of all rows against its bound."""
    base = CheckResult(
        code="CAL602", title="the mean loss exceeds its bound", question=QUESTION, promise=PROMISE
    )
    if (found := checked_losses(m)) is None:
        return replace(base, not_applicable=NO_EXACT_TEST_SENTENCE)
    rows, loss = found
    bound, seen = float(m.design.bound or 0.0), format_number(float(loss.mean()))
    estimate = mean_loss(
        m, loss, rows.get("cluster"), name="mean loss", confidence=m.confidence, null=bound
    )  # fmt: skip
    return replace(
        base, **risk_numbers(m, estimate, "The mean loss"),
        clean=f"The mean loss is {seen}; at most {m.design.bound:g} was promised.",
        rows=lambda given: given["loss"] > m.design.bound,
    )  # fmt: skip


def risk_numbers(m: Measurements, estimate: Estimate, what: str, null: float | None = None) -> dict[str, Any]:
    """Fields of the result: how far a mean loss lies above the null, the bound, in numbers and in words."""
    bound = float(m.design.bound or 0.0)
    null = bound if null is None else null
    low, high = float(estimate.low or 0.0), float(estimate.high or 0.0)
    return {
        "evidence": estimate,
        "p_value": estimate.p_value,
        "effect": float(estimate) - null,
        "effect_low": low - null,
        "effect_high": high - null,
        "tolerance": TOLERATED * abs(bound),
        "rows_needed": _rows_needed(m, bound),
        "fault": f"{what} is {format_number(float(estimate))}; at most {bound:g} was promised.",
        "estimates": (estimate,),
        "details": {"bound": bound} | ({"reason": estimate.reason} if estimate.reason else {}),
    }


def _rows_needed(m: Measurements, bound: float) -> int | None:
    """Rows at which a mean loss at the bound is known to within the tolerance, whatever its spread."""
    if not bound:
        return None
    low, high = m.design.loss_range
    # No loss in the range with this mean varies more (Bhatia and Davis 2000).
    variance = (bound - low) * (high - bound)
    return int(np.ceil(normal_quantile(m.confidence) ** 2 * variance / (TOLERATED * bound) ** 2))


CHECKS = (
    Check(
        code="CAL602",
        title="mean loss against its bound",
        question=QUESTION,
        needs=("loss", "bound"),
        add=ADD_LOSS,
        once=True,
        slices="all rows",
        read=within_bound,
        on_sample=True,
    ),
)
