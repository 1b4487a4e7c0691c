"""The largest discrepancy over all score intervals, exactly.

Over sorted scores let C be the running sum of w (y - f), read only at the last row of each block of
equal scores, with a leading 0. Every interval (p1, p2] is a difference of two such readings, so

    c_emp = (max C - min C) / sum w

and the scores at the two extremes are the ends of the maximising interval. On the host
`calipers.metrics.reliability.host_walk` finds the extremes without sorting everything; arrays of other
libraries are sorted and cumulated where they lie.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from calipers.arrays import Array, namespace, sort_with_order, take_at
from calipers.inputs.row_checks import first_true
from calipers.metrics.reliability.extremes import TIE, Extreme
from calipers.metrics.reliability.host_walk import extremes_on_host
from calipers.metrics.reliability.rows import BinaryRows


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


def sup_interval(rows: BinaryRows) -> SupInterval:
    """c_emp, its interval and its sign; ties are pooled, -0.0 equals 0.0, any array library.

    Where several intervals attain the maximum, a narrow one is reported: zero steps at its ends are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.reliability import BinaryRows, sup_interval
    >>> sup_interval(BinaryRows(np.array([0.2, 0.5, 0.5]), np.array([False, True, True])))
    SupInterval(value=0.3333333333333333, low=0.2, high=0.5, sign=1)
    """
    total = rows.total
    tie = TIE * total
    top, bottom = extremes_on_host(rows, tie) if rows.on_host else _extremes_by_sorting(rows, tie)
    return interval_between(top, bottom, total)


def interval_between(top: Extreme, bottom: Extreme, total: float) -> SupInterval:
    """The error and its interval from the extremes of the walk over rows of that total weight."""
    height = top.level + bottom.level
    if height <= 4 * top.tie:
        return SupInterval(height / total, math.nan, math.nan, 0)
    return SupInterval(height / total, *_between(top, bottom))


def _between(top: Extreme, bottom: Extreme) -> tuple[float, float, int]:
    """Ends and sign of the interval between the lowest and the highest reading."""
    if top.last < bottom.first:
        return top.last, bottom.first, -1
    if bottom.last < top.first:
        return bottom.last, top.first, 1
    low, high = sorted((top.first, bottom.first))
    return low, high, 1 if top.first == high else -1


def _extremes_by_sorting(rows: BinaryRows, tie: float) -> tuple[Extreme, Extreme]:
    """Sort and cumulate where the rows lie; only the extremes come to the host."""
    xp = namespace(rows.scores)
    f, order = sort_with_order(rows.bounded_scores())
    # Outcomes are taken as they are, one byte each when they are events; the difference widens them.
    steps = xp.astype(take_at(rows.outcomes, order), xp.float64) - f
    steps = steps if rows.weights is None else steps * take_at(rows.weights, order)
    walk, is_end, goes_on = xp.cumulative_sum(steps), None, f[1:] == f[:-1]
    if bool(xp.any(goes_on)):
        # Inside a block of equal scores nothing is read; 0, the reading before the first row, stands in.
        is_end = xp.concat([~goes_on, xp.ones((1,), dtype=xp.bool, device=f.device)])
        walk = xp.where(is_end, walk, xp.zeros_like(walk[:1]))
    return _device_extreme(f, walk, is_end, 1, tie), _device_extreme(f, walk, is_end, -1, tie)


def _device_extreme(f: Array, walk: Array, is_end: Array | None, direction: int, tie: float) -> Extreme:
    """Highest reading of the walk (lowest for direction -1) and the first and last score that read it."""
    xp = namespace(f)
    level = max(0.0, float(xp.max(walk)) if direction > 0 else -float(xp.min(walk)))
    reached = walk >= level - tie if direction > 0 else walk <= tie - level
    reached = reached if is_end is None else reached & is_end
    if not bool(xp.any(reached)):
        return Extreme(direction, tie)
    n = int(f.shape[0])
    ends = first_true(reached)[0], n - 1 - first_true(xp.flip(reached))[0]
    first, last = (float(f[end]) + 0.0 for end in ends)
    return Extreme(direction, tie, level, first if level > tie else -math.inf, last)
