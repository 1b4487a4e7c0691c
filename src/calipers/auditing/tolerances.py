"""Deviations that are not worth acting on, and the rows that it takes to see them."""

from __future__ import annotations

import math

import numpy as np

from calipers.inference import normal_quantile
from calipers.results import Estimate

# Share of the rarer outcome, up to 0.1, by which a promise may be missed before action is called for.
TOLERATED = 0.2
# The tolerance of outcomes that are not rare. What leaves no room for three of it is clean: rare outcomes are
# judged by a smaller one only where a fault was found.
COMMON = TOLERATED * 0.1
# A part may miss the promise by this many tolerances of the whole before action is called for.
PART_TOLERANCE = 2.5
# The same of probabilities, whose excess is a fault too.
STATED_TOLERANCE = 1.5
# More rows than these are never asked for, however small alpha is.
MOST_ROWS = 10**15


def tolerance_at(chance: float) -> float:
    """The deviation from a promised chance that is not worth acting on: 0.02, or a fifth of a rare outcome.

    Examples
    --------
    >>> [round(tolerance_at(chance), 4) for chance in (0.9, 0.5, 0.01)]
    [0.02, 0.02, 0.002]
    """
    return TOLERATED * max(0.0, min(chance, 1.0 - chance, 0.1))


def rows_for(alpha: float, half_width: float, confidence: float) -> int:
    """Rows at which a coverage near the promise is known to within the half-width."""
    deviations = normal_quantile(confidence) * math.sqrt(alpha * (1 - alpha))
    return int(np.ceil((deviations / max(half_width, deviations / math.sqrt(MOST_ROWS))) ** 2))


def rows_with(events: int, chance: float, rows: int, seen: int) -> int:
    """Rows that hold so many events on average, at their promised chance or, where rarer, as often as seen.

    Examples
    --------
    >>> rows_with(20, 0.1, 50, seen=6), rows_with(20, 0.1, 400, seen=10)
    (200, 800)
    """
    return int(np.ceil(max(events / chance, events * rows / max(1, seen)) - 1e-9))


def interval_of(estimate: Estimate) -> tuple[float, float]:
    """Both ends of the interval; infinite where there is none."""
    low, high = estimate.low, estimate.high
    return -np.inf if low is None else low, np.inf if high is None else high
