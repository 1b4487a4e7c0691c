"""Before and after on the untouched rows: in all of them, in every slice, and what it cost in size."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.auditing.comparison_measures import BRIER_SCORE, INTERVAL_SCORE, LOG_LOSS
from calipers.inference import mean_estimate, normal_quantile, paired_difference
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
    old, new = before["covered"], after["covered"]
    changes = [_change("coverage", promised, old, new, before.weights, confidence=confidence)]
    for name, which in slices:
        weights = None if before.weights is None else before.weights[which]
        changes.append(
            _change(f"coverage of {name}", promised, old[which], new[which], weights, confidence=confidence)
        )
    return [*changes, *_price(before, after, confidence)]


def _price(before: Rows, after: Rows, confidence: float) -> list[Change]:
    sizes = before["size"].astype(float), after["size"].astype(float)
    finite = np.isfinite(sizes[0]) & np.isfinite(sizes[1])
    changes = []
    if finite.any():
        name = "mean width" if before.task == "regression" else "mean size"
        weights = None if before.weights is None else before.weights[finite]
        changes.append(
            _change(
                name, None, sizes[0][finite], sizes[1][finite], weights, confidence=confidence, is_size=True
            )
        )
    scores = INTERVAL_SCORE.rows(before), INTERVAL_SCORE.rows(after)
    if scores[0] is not None and scores[1] is not None:
        changes.append(
            _change(INTERVAL_SCORE.name, None, scores[0], scores[1], before.weights, confidence=confidence)
        )
    return changes


def probability_changes(before: Rows, after: Rows, confidence: float) -> list[Change]:
    """Proper scores of the probabilities."""
    changes = []
    for measure in (BRIER_SCORE, LOG_LOSS):
        old, new = measure.rows(before), measure.rows(after)
        if old is not None and new is not None:
            changes.append(
                _change(
                    measure.name, None, old, new, before.weights, confidence=confidence,
                    estimate=measure.estimate,
                )
            )  # fmt: skip
    return changes


def _change(
    name: str,
    target: float | None,
    before: np.ndarray,
    after: np.ndarray,
    weights: np.ndarray | None,
    *,
    confidence: float,
    is_size: bool = False,
    estimate: Callable[..., Estimate] = mean_estimate,
) -> Change:
    old, new = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    options: dict[str, Any] = {"weights": weights, "confidence": confidence}
    return Change(
        measure=name,
        target=target,
        before=estimate(old, name=name, **options),
        after=estimate(new, name=name, **options),
        difference=paired_difference(new, old, name=f"change of {name}", **options),
        is_size=is_size,
    )
