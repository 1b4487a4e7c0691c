"""Nonconformity scores of outcomes, and the sets or intervals of outcomes that score at most a threshold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calipers.auditing.repair.boosted_trees import Trees
from calipers.auditing.repair.feature_codes import FeatureCodes
from calipers.auditing.repair.saved_repair import part
from calipers.conformal import aps, lac
from calipers.inputs.rows import Rows


@part("labels")
@dataclass(frozen=True, slots=True)
class LabelScore:
    """Nonconformity of every label.

    Parameters
    ----------
    kind : {"lac", "aps", "p_values"}
        One minus the probability; the mass of all labels at least as probable; one minus the given p-value.
    """

    kind: str

    @property
    def words(self) -> str:
        """Its name in a report."""
        return {"p_values": "given p-values"}.get(self.kind, self.kind)

    @property
    def needs(self) -> tuple[str, ...]:
        """The column it is made of."""
        return ("p_values",) if self.kind == "p_values" else ("probabilities",)

    def of_labels(self, rows: Rows) -> np.ndarray:
        """The score (n, K) of every label."""
        if self.kind == "p_values":
            return 1.0 - rows["p_values"].astype(float)
        rule = lac if self.kind == "lac" else aps
        return np.asarray(rule(rows["probabilities"].astype(float)))

    def of_outcomes(self, rows: Rows, level: int) -> np.ndarray:
        """The score of what happened."""
        return np.asarray(np.take_along_axis(self.of_labels(rows), rows["y"][:, None], axis=1)[:, 0])


@part("intervals")
@dataclass(frozen=True, slots=True, eq=False)
class IntervalScore:
    """Distance of an outcome outside a base interval, in units of a spread.

    Parameters
    ----------
    kind : {"shift", "scale", "normalised", "quantile"}
        Outside the stated interval; from its middle in half widths; from its middle in units of a fitted
        spread; outside fitted quantiles around its middle.
    codes : FeatureCodes or None
        How features are read.
    lower, upper : Trees or None
        The fitted spread (``upper``), or both quantiles of the distance from the middle.
    floor : float
        Smallest unit.
    """

    kind: str
    codes: FeatureCodes | None = None
    lower: Trees | None = None
    upper: Trees | None = None
    floor: float = 0.0

    @property
    def words(self) -> str:
        """Its name in a report."""
        return {"shift": "ends shifted", "scale": "width scaled", "normalised": "normalised by a fitted "
                "spread", "quantile": "fitted quantiles"}[self.kind]  # fmt: skip

    @property
    def needs(self) -> tuple[str, ...]:
        """Intervals, and features where something was fitted to them."""
        return ("intervals",) if self.codes is None else ("intervals", "X")

    def base(self, rows: Rows, level: int) -> tuple[np.ndarray, np.ndarray, np.ndarray | float]:
        """Both ends of the base interval and the unit."""
        stated = rows.at(level)["interval_at_level"].astype(float)
        low, high = stated[:, 0], stated[:, 1]
        if self.kind == "shift":
            return low, high, 1.0
        middle = _middle(low, high)
        if self.kind == "scale":
            return middle, middle, np.maximum((high - low) / 2, self.floor)
        if self.codes is None or self.upper is None:
            raise RuntimeError("a fitted score has its features and its trees")
        values = self.codes.values(rows)
        if self.lower is None:
            return middle, middle, np.maximum(self.upper.predict(values), self.floor)
        ends = self.lower.predict(values), self.upper.predict(values)
        return middle + np.minimum(*ends), middle + np.maximum(*ends), 1.0

    def of_outcomes(self, rows: Rows, level: int) -> np.ndarray:
        """The score of what happened; an infinite interval holds everything."""
        low, high, unit = self.base(rows, level)
        y = rows["outcomes"]
        with np.errstate(invalid="ignore"):
            scores = np.maximum(low - y, y - high) / unit
        return np.where(np.isnan(scores), -np.inf, scores)

    def intervals(self, rows: Rows, level: int, thresholds: np.ndarray) -> np.ndarray:
        """The outcomes whose score is at most the threshold; ends that would cross become their midpoint."""
        low, high, unit = self.base(rows, level)
        with np.errstate(invalid="ignore"):
            ends = low - thresholds * unit, high + thresholds * unit
            middle = (ends[0] + ends[1]) / 2
        lower = np.where(np.isnan(ends[0]), -np.inf, ends[0])
        upper = np.where(np.isnan(ends[1]), np.inf, ends[1])
        crossed = lower > upper
        return np.column_stack([np.where(crossed, middle, lower), np.where(crossed, middle, upper)])


def _middle(low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """The middle of each interval; infinite ones have none, and stay infinite."""
    with np.errstate(invalid="ignore"):
        return np.asarray((low + high) / 2)
