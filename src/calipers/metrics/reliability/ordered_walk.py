"""Extremes of the walk of w (y - f) over rows that are in order of score, or are sorted where they lie."""

from __future__ import annotations

import math

import numpy as np

from calipers.arrays import Array, namespace, sort_with_order, take_at
from calipers.arrays.device_rows import walk_ends
from calipers.inputs.row_checks import first_true
from calipers.metrics.reliability.binary_rows import BinaryRows
from calipers.metrics.reliability.sup_interval import Extreme

_CACHED = 1 << 15
_RUN = 64

Extremes = tuple[Extreme, Extreme]


def extremes_of_sorted(rows: BinaryRows, tie: float) -> Extremes | None:
    """Walk over scores on the host that are in order already; None at the first one that is not."""
    top, bottom = Extreme(1, tie), Extreme(-1, tie)
    level, largest = 0.0, 1.0 if rows.weights is None else float(rows.weights.max())
    if rows.scores[-1] > 1:
        return None
    for start in range(0, rows.n, _CACHED):
        here = rows.scores[start : start + _CACHED]
        after = rows.scores[start + 1 : start + _CACHED + 1]
        is_end = np.less(here[: after.size], after)
        if not is_end.all() and np.greater(here[: after.size], after).any():
            return None
        part = slice(start, start + here.size)
        steps = np.subtract(rows.outcomes[part], here, dtype=np.float64)
        if rows.weights is not None:
            steps *= rows.weights[part]
        # The last row of all has none after it, and ends its block.
        is_end = is_end if after.size == here.size else np.append(is_end, True)
        level = _walk_block((top, bottom), level, largest, steps, here, is_end)
    return top, bottom


def _walk_block(
    extremes: Extremes,
    level: float,
    largest: float,
    steps: np.ndarray,
    scores: np.ndarray,
    is_end: np.ndarray,
) -> float:
    """Walk over one sorted block unless it cannot reach an extreme; the level after it.

    ``largest`` bounds the size of a step.
    """
    top, bottom = extremes
    if steps.size % _RUN == 0:
        # A running sum is slow (each addition waits for the one before), sums of short runs are not.
        ends = level + np.cumsum(steps.reshape(-1, _RUN).sum(axis=1))
        reach = _RUN * largest + top.tie
        if ends.max() + reach < top.level and reach - ends.min() < bottom.level:
            return float(ends[-1])
    steps[0] += level
    walk = np.cumsum(steps, out=steps)
    last = float(walk[-1])
    if not is_end.all():
        walk, scores = walk[is_end], scores[is_end]
    if walk.size:
        top.update(walk, scores)
        bottom.update(walk, scores)
    return last


def extremes_by_sorting(rows: BinaryRows, tie: float) -> Extremes:
    """Sort and cumulate where the rows lie; only the extremes come to the host."""
    if rows.weights is None and (ends := walk_ends(rows.scores, rows.outcomes, tie)) is not None:
        top, bottom = (_extreme(side, tie, *end) for side, end in zip((1, -1), ends, strict=True))
        return top, bottom
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
    return _extreme(direction, tie, level, first, last)


def _extreme(direction: int, tie: float, level: float, first: float | None, last: float | None) -> Extreme:
    """The extreme of a walk by the first and last score that read it; without them nothing did."""
    if first is None or last is None:
        return Extreme(direction, tie)
    return Extreme(direction, tie, level, first if level > tie else -math.inf, last)
