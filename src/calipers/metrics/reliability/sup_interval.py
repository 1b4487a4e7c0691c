"""The highest and the lowest reading of a walk over sorted scores, and the interval between them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# Readings closer than this share of the total weight are one reading, so that the order of rows (the
# order of rounding) does not decide which of them gives the end of the interval.
TIE = 1e-14


@dataclass(frozen=True, slots=True)
class SupInterval:
    """The sup-interval error and where it is.

    Parameters
    ----------
    value : float
        c_emp, in [0, 1].
    low, high : float
        The interval (low, high] of scores; low is -inf when it starts below every score. NaN when no
        interval stands out (value 0 up to rounding).
    sign : int
        1 when the event happens more often there than stated, -1 when less often, 0 when value is 0.
    """

    value: float
    low: float
    high: float
    sign: int


@dataclass(slots=True)
class Extreme:
    """Highest reading so far of ``direction`` times the walk, and the first and last score that read it."""

    direction: int
    tie: float
    level: float = 0.0
    first: float = -math.inf
    last: float = -math.inf

    def update(self, levels: np.ndarray, scores: np.ndarray) -> None:
        """Take in the next readings, in order of score."""
        best = float(levels.max() if self.direction > 0 else -levels.min())
        if best < self.level - self.tie:
            return
        is_new = best > self.level + self.tie
        self.level = max(self.level, best)
        reached = np.flatnonzero(self.direction * levels >= self.level - self.tie)
        if is_new:
            self.first = float(scores[reached[0]])
        self.last = float(scores[reached[-1]]) if reached.size else self.last


def interval_between(top: Extreme, bottom: Extreme, total: float) -> SupInterval:
    """The error and its interval from the extremes of the walk over rows of that total weight."""
    height = top.level + bottom.level
    if height <= 4 * top.tie:
        return SupInterval(height / total, math.nan, math.nan, 0)
    return SupInterval(height / total, *_between(top, bottom))


def _between(top: Extreme, bottom: Extreme) -> tuple[float, float, int]:
    """Ends and sign of the interval between the lowest and the highest reading."""
    if top.last < bottom.first:
        low, high, sign = top.last, bottom.first, -1
    elif bottom.last < top.first:
        low, high, sign = bottom.last, top.first, 1
    else:
        low, high = sorted((top.first, bottom.first))
        sign = 1 if top.first == high else -1
    return low + 0.0, high + 0.0, sign  # without a negative zero
