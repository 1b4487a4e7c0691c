"""Cumulative differences along the stated probability, inside every group of a family at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from calipers.metrics.multicalibration.units import PromiseUnits

# Up to this many cells codes fit into 16 bits, which numpy sorts by counting.
_FEW_CELLS = 1 << 16


@dataclass(frozen=True, slots=True, eq=False)
class GroupWalks:
    """All groups that some attributes cut the units into, each with its units in order of the promise.

    Parameters
    ----------
    which : tuple of int
        The attributes.
    codes : integer array (C, len(which))
        Labels of every group.
    cell : integer array (m,)
        Group of every unit.
    order : integer array (m,)
        The units, group by group, in each by stated probability.
    first : integer array (C,)
        Where each group begins in that order.
    ends : integer array or None
        Last place of every block of equal promises; None when no block has two units.
    """

    which: tuple[int, ...]
    codes: np.ndarray
    cell: np.ndarray
    order: np.ndarray
    first: np.ndarray
    ends: np.ndarray | None

    def sums(self, column: np.ndarray) -> np.ndarray:
        """The sum of a column (m,) over every group."""
        return np.bincount(self.cell, weights=column, minlength=len(self.first))

    def ranges(self, residuals: np.ndarray) -> np.ndarray:
        """Highest minus lowest point of every group's walk, (b, m) to (b, C); a walk begins at 0."""
        walk = np.take(residuals, self.order, axis=1)
        np.cumsum(walk, axis=1, out=walk)
        begun = walk[:, self.first - 1]
        begun[:, 0] = 0.0
        first = self.first
        if self.ends is not None:  # read only where a block of equal promises ends
            walk, first = walk[:, self.ends], np.searchsorted(self.ends, self.first)
        high = np.maximum(np.maximum.reduceat(walk, first, axis=1), begun)
        return np.asarray(high - np.minimum(np.minimum.reduceat(walk, first, axis=1), begun))


def attribute_sets(n_attributes: int, depth: int) -> list[tuple[int, ...]]:
    """One attribute, then all pairs, up to ``depth`` of them.

    Examples
    --------
    >>> from calipers.metrics.multicalibration.group_walks import attribute_sets
    >>> attribute_sets(3, 2)
    [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2)]
    """
    sizes = range(1, min(depth, n_attributes) + 1)
    return [which for size in sizes for which in combinations(range(n_attributes), size)]


def group_walks(units: PromiseUnits, sets: Sequence[tuple[int, ...]]) -> Iterator[GroupWalks]:
    """The groups of every set of attributes."""
    columns = np.ascontiguousarray(units.attributes.codes.T)
    widths = [len(labels) for labels in units.attributes.labels]
    same_promise = bool(np.any(units.promised[1:] == units.promised[:-1]))
    for which in sets:
        cell = _cells(columns, widths, which)
        sizes = np.bincount(cell)
        order = np.argsort(cell.astype(np.uint16) if len(sizes) <= _FEW_CELLS else cell, kind="stable")
        first = np.append(0, np.cumsum(sizes)[:-1])
        codes = np.stack([columns[j][order[first]] for j in which], axis=1)
        ends = _block_ends(units.promised, order, first) if same_promise else None
        yield GroupWalks(which, codes, cell, order, first, ends)


def _cells(columns: np.ndarray, widths: Sequence[int], which: tuple[int, ...]) -> np.ndarray:
    """The number of every unit's group: 0, 1, ... in the order of the labels of some attributes."""
    cell, width = columns[which[0]].astype(np.int64), widths[which[0]]
    for j in which[1:]:
        cell, width = cell * widths[j] + columns[j], width * widths[j]
        if width > _FEW_CELLS:
            cell, width = _renumbered(cell)
    if width > _FEW_CELLS:
        return _renumbered(cell)[0]
    is_there = np.bincount(cell, minlength=width) > 0
    return cell if is_there.all() else np.asarray((np.cumsum(is_there) - 1)[cell])


def _renumbered(cell: np.ndarray) -> tuple[np.ndarray, int]:
    distinct, cell = np.unique(cell, return_inverse=True)
    return cell, len(distinct)


def _block_ends(promised: np.ndarray, order: np.ndarray, first: np.ndarray) -> np.ndarray | None:
    ordered = promised[order]
    is_end = np.append(ordered[1:] != ordered[:-1], True)
    is_end[first[1:] - 1] = True
    return None if is_end.all() else np.flatnonzero(is_end)
