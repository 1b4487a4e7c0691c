"""Many values looked up in a sorted column."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from calipers.arrays.library import Array, namespace

Side = Literal["left", "right"]
# Values looked up at once, so that what is made on the way stays in the cache.
_BLOCK = 1 << 14
# A table of cells pays from so many sorted values on; more cells than this no longer fit into a cache.
_FEWEST, _MOST_CELLS = 16, 1 << 22


def search_sorted(ordered: Array, values: Array, *, side: Side = "left") -> Array:
    """For each value, how many entries of an ascending column lie below it ("right": at or below it).

    As `searchsorted` of the array standard, in an eighth of its time for many numpy values among distinct
    ones; `SortedColumn` says how.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import search_sorted
    >>> search_sorted(np.array([0.1, 0.2, 0.2]), np.array([0.2, 0.3]), side="right")
    array([3, 3])
    """
    return SortedColumn(ordered).search(values, side=side)


class SortedColumn:
    """An ascending column in which many values are looked up, all at once or block by block.

    Parameters
    ----------
    ordered : array (n,)
        The column.

    Notes
    -----
    The range of a numpy column is cut into three to six cells of equal width per entry. Rounding cannot
    put a larger number into a lower cell, so all entries in lower cells lie below a value: a table gives
    their number, and one comparison decides where the cell holds one entry. Values in a cell with more are
    searched for as usual, and so are all where most fall into such cells (ties, crowds). The table is made
    when as many values were asked for as the column has entries.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import SortedColumn
    >>> SortedColumn(np.array([0.1, 0.2, 0.2])).search(np.array([0.2, 0.3]))
    array([1, 3])
    """

    def __init__(self, ordered: Array) -> None:
        self.ordered = ordered
        self._asked = 0
        self._cells: _Cells | None = None

    def __repr__(self) -> str:
        return f"SortedColumn({int(self.ordered.shape[0])} values)"

    def search(self, values: Array, *, side: Side = "left") -> Array:
        """How many entries lie below each of the values ("right": at or below it), as integers."""
        if not isinstance(self.ordered, np.ndarray):
            return namespace(self.ordered).searchsorted(self.ordered, values, side=side)
        if values.dtype == self.ordered.dtype and self.ordered.dtype.kind == "f":
            before, self._asked = self._asked, self._asked + values.size
            if before < self.ordered.size <= self._asked:
                self._cells = _Cells.of(self.ordered)
            if self._cells is not None:
                return self._cells.search(values, side)
        return np.searchsorted(self.ordered, values, side=side)


class _Cells:
    """Cells of equal width over a column: how many entries lie before each; -1 where it holds several."""

    def __init__(self, ordered: np.ndarray, scale: Any, count: int) -> None:
        self.ordered, self.low, self.scale, self.count = ordered, ordered[0], scale, count
        cells = self.of_values(ordered)
        self.before = np.zeros(count + 2, dtype=np.int32)
        np.add.at(self.before[1:], cells, np.int32(1))  # a plain 1 takes thirty times as long
        np.cumsum(self.before, dtype=np.int32, out=self.before)
        self.before[cells[1:][cells[1:] == cells[:-1]]] = -1
        # The last cell also takes what lies beyond the column, and NaN. The largest entry lies in it or just
        # before it, so that every other cell has an entry in it or after it to compare with.
        self.before[count] = -1

    @classmethod
    def of(cls, ordered: np.ndarray) -> _Cells | None:
        """The cells, where the column is long, not too long, and its range is a finite number."""
        count = 1 << int(3 * ordered.size - 1).bit_length()  # a power of two is exact in every float
        if ordered.size < _FEWEST or count > _MOST_CELLS:
            return None
        with np.errstate(all="ignore"):
            scale = ordered.dtype.type(count) / (ordered[-1] - ordered[0])
            return cls(ordered, scale, count) if 0 < scale < np.inf else None

    def of_values(self, values: np.ndarray) -> np.ndarray:
        """The cell of each value: non-decreasing, because every step of it is; a product may overflow."""
        place: np.ndarray = values - self.low
        place *= self.scale
        np.fmin(place, self.count, out=place)  # NaN becomes the last cell
        np.maximum(place, 0, out=place)
        return place.astype(np.intp)

    def search(self, values: np.ndarray, side: Side) -> np.ndarray:
        """Positions of the values, block by block."""
        with np.errstate(over="ignore"):
            return self._search(values, side)

    def _search(self, values: np.ndarray, side: Side) -> np.ndarray:
        below = np.less if side == "left" else np.less_equal
        found = np.empty(values.size, dtype=np.int64)
        for start in range(0, values.size, _BLOCK):
            block = values[start : start + _BLOCK]
            at = self.before.take(self.of_values(block))
            crowded = np.flatnonzero(at < 0)
            if 2 * crowded.size > block.size:
                found[start:] = np.searchsorted(self.ordered, values[start:], side=side)
                break
            at += below(self.ordered.take(at, mode="wrap"), block)
            at[crowded] = np.searchsorted(self.ordered, block[crowded], side=side)
            found[start : start + _BLOCK] = at
        return found
