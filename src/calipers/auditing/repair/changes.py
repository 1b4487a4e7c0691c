"""Before and after on the untouched rows: in all of them, in every slice, and what it cost in size."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calipers.auditing.comparison_measures import (
    BRIER_SCORE,
    COVERAGE,
    INTERVAL_SCORE,
    LOG_LOSS,
    SIZE,
    Measure,
)
from calipers.inference import normal_quantile, paired_difference
from calipers.inputs.rows import Rows
from calipers.results import Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One measure before and after, on the untouched rows.

    Parameters
    ----------
    measure : str
        What was measured.
    target : float or None
        The value it should have; None when less is better.
    before, after : Estimate
        On the same rows.
    difference : Estimate
        after - before, paired.
    is_size : bool
        Whether it is a size, which is neither good nor bad by itself.
    """

    measure: str
    target: float | None
    before: Estimate
    after: Estimate
    difference: Estimate
    is_size: bool = False

    @property
    def verdict(self) -> str:
        """better, worse, or "no change beyond noise"; never better inside the noise.

        A size by itself is neither: too small covers too little. It is "larger" or "smaller". A change
        across the target that ends about as far from it as before is "past the target".
        """
        d = self.difference
        if self.is_size and d.std_error == 0 and float(d) != 0:
            # By the same amount in every row: there is no noise.
            return "larger" if float(d) > 0 else "smaller"
        if d.low is None or d.high is None or d.low <= 0 <= d.high:
            return "no change beyond noise"
        if self.is_size:
            return "larger" if float(d) > 0 else "smaller"
        if self.target is None:
            return "better" if float(d) < 0 else "worse"
        before, after = float(self.before) - self.target, float(self.after) - self.target
        if before * after < 0 and abs(before + after) <= self._noise_of_sum():
            return "past the target"
        return "better" if abs(after) < abs(before) else "worse"

    def _noise_of_sum(self) -> float:
        """Radius of the interval of before + after, whose variance is 2 (var + var) - var(difference)."""
        errors = [e.std_error or 0.0 for e in (self.before, self.after, self.difference)]
        spread = math.sqrt(max(0.0, 2 * (errors[0] ** 2 + errors[1] ** 2) - errors[2] ** 2))
        return normal_quantile(self.difference.confidence or 0.95) * spread

    def to_dict(self) -> dict[str, Any]:
        """Plain values for the report."""
        return {
            "measure": self.measure,
            "target": self.target,
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "difference": self.difference.to_dict(),
            "verdict": self.verdict,
        }


def coverage_changes(
    before: Rows, after: Rows, slices: Sequence[tuple[str, np.ndarray]], confidence: float
) -> list[Change]:
    """Coverage of all rows and of every slice, the mean size, and the interval score."""
    promised = 1 - float(before.alpha)
    changes = [_change(COVERAGE, before, after, confidence, target=promised)]
    for name, which in slices:
        parts = before.take(which), after.take(which)
        changes.append(_change(COVERAGE, *parts, confidence, target=promised, name=f"coverage of {name}"))
    return [*changes, *_price(before, after, confidence)]


def _price(before: Rows, after: Rows, confidence: float) -> list[Change]:
    finite = np.isfinite(before["size"]) & np.isfinite(after["size"])
    changes = []
    if finite.any():
        name = "mean width" if before.task == "regression" else "mean size"
        changes.append(
            _change(SIZE, before.take(finite), after.take(finite), confidence, name=name, is_size=True)
        )
    return [*changes, *_changes((INTERVAL_SCORE,), before, after, confidence)]


def probability_changes(before: Rows, after: Rows, confidence: float) -> list[Change]:
    """Proper scores of the probabilities."""
    return _changes((BRIER_SCORE, LOG_LOSS), before, after, confidence)


def _changes(measures: Sequence[Measure], before: Rows, after: Rows, confidence: float) -> list[Change]:
    """The measures that both have."""
    have = [m for m in measures if m.rows(before) is not None and m.rows(after) is not None]
    return [_change(measure, before, after, confidence) for measure in have]


def _change(
    measure: Measure,
    before: Rows,
    after: Rows,
    confidence: float,
    *,
    target: float | None = None,
    name: str | None = None,
    is_size: bool = False,
) -> Change:
    name = name or measure.name
    old, new = (np.asarray(measure.rows(rows), dtype=float) for rows in (before, after))
    return Change(
        measure=name,
        target=target,
        before=replace(measure.of(before, confidence), name=name),
        after=replace(measure.of(after, confidence), name=name),
        difference=paired_difference(
            new, old, name=f"change of {name}", weights=before.weights, confidence=confidence
        ),
        is_size=is_size,
    )
