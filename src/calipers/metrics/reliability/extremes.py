"""The highest or lowest reading of a walk that is seen in pieces."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

# Readings closer than this share of the total weight are one reading, so that the order of rows (the
# order of rounding) does not decide which of them gives the end of the interval.
TIE = 1e-14


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
