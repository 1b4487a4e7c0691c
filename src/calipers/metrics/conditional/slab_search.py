"""The search for the worst slab: runs of sorted projections with the least mean."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

_BLOCK_CELLS = 1 << 16
# Projections closer than this, in spreads of a feature, are one value: rounding must not split ties.
_TIE = 1e-9
# A sum of outcomes minus their mean that is this small is 0.
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class Slab:
    """Rows whose projection lies strictly between two ends."""

    direction: np.ndarray
    low: float
    high: float
    coverage: float
    mass: float

    def holds(self, columns: np.ndarray) -> np.ndarray:
        """Whether each row lies in the slab."""
        projection = columns @ self.direction
        return np.asarray((projection > self.low) & (projection < self.high))


def worst_slab(
    columns: np.ndarray,
    z: np.ndarray,
    min_mass: float,
    directions: np.ndarray,
    weights: np.ndarray | None = None,
) -> Slab:
    """Kernel: the slab with enough rows and the least (weighted) mean of z over all directions."""
    n = len(z)
    smallest = max(1, math.ceil(min_mass * n - 1e-9))
    best = Slab(directions[0], -math.inf, math.inf, float(np.average(z, weights=weights)), 1.0)
    step = max(1, _BLOCK_CELLS // n)
    for start in range(0, len(directions), step):
        block = directions[start : start + step]
        if z.dtype == bool and weights is None:
            projected, values = _sorted_outcomes(block @ columns.T, z)
            best = _improve(best, block, projected, values, None, smallest)
            continue
        projected = block @ columns.T
        order = np.argsort(projected, axis=1, kind="stable")
        sorted_weights = None if weights is None else weights[order]
        gains = z[order] if sorted_weights is None else z[order] * sorted_weights
        best = _improve(
            best, block, np.take_along_axis(projected, order, axis=1), gains, sorted_weights, smallest
        )
    return best


def _sorted_outcomes(projected: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sorted projections, and the outcomes in their order.

    The last bit of a projection, which means nothing, carries whether the row is covered through the sort: no
    order has to be kept, and nothing taken by it.
    """
    bits = projected.view(np.int64)
    bits &= ~1
    bits |= z.astype(np.int64)
    projected.sort(axis=1)
    covered = bits & 1
    bits ^= covered
    return projected, covered.astype(float)


def _improve(
    best: Slab,
    block: np.ndarray,
    projected: np.ndarray,
    z: np.ndarray,
    weights: np.ndarray | None,
    smallest: int,
) -> Slab:
    """Lower the best coverage by runs of this block until none covers less (Dinkelbach's iteration)."""
    # A run may start or end only where the projection changes.
    edge = _edges(projected)
    drop = _deepest(z, weights, edge, best.coverage, smallest)
    alive = np.flatnonzero(drop < -1e-9)
    while len(alive):
        row = alive[int(np.argmin(drop[drop < -1e-9]))]
        found = _run(best, block[row], projected[row], z[row], _of(weights, row), _of(edge, row), smallest)
        if found.coverage >= best.coverage:  # the rounding of millions of rows, not a worse run
            break
        best = found
        drop = _deepest(z[alive], _of(weights, alive), _of(edge, alive), best.coverage, smallest)
        alive = alive[drop < -1e-9]
    return best


def _edges(projected: np.ndarray) -> np.ndarray | None:
    """Where runs may start or end; None where they may everywhere."""
    change = np.diff(projected, axis=1) > _TIE
    return None if change.all() else np.pad(change, ((0, 0), (1, 1)), constant_values=True)


def _of(table: np.ndarray | None, rows: Any) -> np.ndarray | None:
    return None if table is None else table[rows]


def _deepest(
    z: np.ndarray, weights: np.ndarray | None, edge: np.ndarray | None, coverage: float, smallest: int
) -> np.ndarray:
    """The lowest sum of z - coverage over runs of enough entries, per row; below 0 a run covers less."""
    starts, ends = _ends(z, weights, edge, coverage, smallest)
    return np.asarray((ends - np.maximum.accumulate(starts, axis=-1)).min(axis=-1))


def _ends(
    z: np.ndarray, weights: np.ndarray | None, edge: np.ndarray | None, coverage: float, smallest: int
) -> tuple[np.ndarray, np.ndarray]:
    """Excess over the coverage before each possible start of a run, and up to each possible end.

    Entry i of the starts is the earliest partner that entry i of the ends may have: all starts up to it
    leave at least ``smallest`` rows between.
    """
    excess = np.zeros((*z.shape[:-1], z.shape[-1] + 1))
    np.cumsum(z, axis=-1, out=excess[..., 1:])  # whole numbers without weights: exact
    if weights is None:
        excess -= coverage * np.arange(excess.shape[-1])
    else:
        excess[..., 1:] -= coverage * np.cumsum(weights, axis=-1)
    last = excess.shape[-1] - smallest
    if edge is None:
        return excess[..., :last], excess[..., smallest:]
    return (
        np.where(edge, excess, -np.inf)[..., :last],
        np.where(edge, excess, np.inf)[..., smallest:],
    )


def _run(
    best: Slab,
    direction: np.ndarray,
    projected: np.ndarray,
    z: np.ndarray,
    weights: np.ndarray | None,
    edge: np.ndarray | None,
    smallest: int,
) -> Slab:
    n = len(projected)
    starts, ends = _ends(z, weights, edge, best.coverage, smallest)
    end = int(np.argmin(ends - np.maximum.accumulate(starts)))
    first = int(np.argmax(starts[: end + 1]))
    last = end + smallest  # rows first .. last - 1
    low = -math.inf if first == 0 else 0.5 * (projected[first - 1] + projected[first])
    high = math.inf if last == n else 0.5 * (projected[last - 1] + projected[last])
    coverage = float(z[first:last].sum() / (last - first if weights is None else weights[first:last].sum()))
    return Slab(direction, float(low), float(high), coverage, (last - first) / n)


def sorted_blocks(
    columns: np.ndarray, directions: np.ndarray
) -> Iterator[tuple[np.ndarray, np.ndarray | None]]:
    """The order of the rows along some directions at a time, and where runs may start or end."""
    step = max(1, _BLOCK_CELLS // len(columns))
    for start in range(0, len(directions), step):
        projected = directions[start : start + step] @ columns.T
        order = np.argsort(projected, axis=1, kind="stable")
        yield order, _edges(np.take_along_axis(projected, order, axis=1))


def any_run_as_low(
    z: np.ndarray, weights: np.ndarray | None, edge: np.ndarray | None, least: float, smallest: int
) -> bool:
    """Whether some run of enough sorted entries has a mean of at most ``least``, up to rounding."""
    gains = z if weights is None else z * weights
    return bool(_deepest(gains, weights, edge, least, smallest).min() <= _ROUNDING)
