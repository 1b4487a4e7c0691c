"""Metrics of discrete columns: a table of distinct rows and how often each occurs is all they need.

Every metric takes weights that mean repetition. So the distinct rows with their counts as weights give
exactly the answer of all the rows, by the same function, and tables of counts merge by adding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from calipers.exceptions import InputError
from calipers.inference.state import Result, State
from calipers.inputs.categorical import Categorical
from calipers.inputs.rows import Rows

# Beyond this many distinct rows the columns are not discrete and the table is no summary.
MAX_DISTINCT = 2_000_000


class CountState(State):
    """Counts of distinct rows of some columns, finished by the metric's own public function.

    Parameters
    ----------
    function : callable
        The public metric; takes the columns and ``sample_weight``.
    columns : tuple of str
        Its data arguments, in order, as columns of a block.
    options : dict
        Its keyword arguments.
    """

    __slots__ = ("columns", "counts", "function", "options")

    def __init__(
        self, function: Callable[..., Result], columns: tuple[str, ...], options: dict[str, Any]
    ) -> None:
        self.function, self.columns, self.options = function, columns, options
        self.counts: dict[tuple[Any, ...], float] = {}

    @property
    def needs(self) -> frozenset[str]:
        """Its columns."""
        return frozenset(self.columns) | {"sample_weight"}

    def absorb(self, block: Rows) -> None:
        """Count the distinct rows of the block."""
        self.add(*block.once(("distinct", *self.columns), lambda: self.distinct(block)))

    def distinct(self, block: Rows) -> tuple[list[tuple[Any, ...]], list[float]]:
        """The distinct rows of the block and how often each occurs."""
        return distinct_rows([block.coded(name) for name in self.columns], block.weights, block.kernels)

    def add(self, rows: list[tuple[Any, ...]], counts: list[float]) -> None:
        """Add to the counts of distinct rows."""
        for row, count in zip(rows, counts, strict=True):
            self.counts[row] = self.counts.get(row, 0.0) + count
        if len(self.counts) > MAX_DISTINCT:
            raise InputError(
                f"{', '.join(self.columns)} take more than {MAX_DISTINCT:,} distinct combinations; "
                f"{self.function.__name__} over many rows needs discrete columns."
            )

    def merge(self, other: Self) -> Self:
        """Add the counts."""
        for row, count in other.counts.items():
            self.counts[row] = self.counts.get(row, 0.0) + count
        return self

    def finish(self) -> Result:
        """The metric over the distinct rows, each as often as it occurred."""
        rows = sorted(self.counts)
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        weights = np.array([self.counts[row] for row in rows], dtype=float)
        return self.function(*columns, sample_weight=weights, **self.options)


def distinct_rows(
    columns: Sequence[np.ndarray | Categorical], weights: np.ndarray | None, compiled: Any = None
) -> tuple[list[tuple[Any, ...]], list[float]]:
    """Distinct combinations and their (weighted) counts, by one count over combined codes."""
    column = columns[0]
    if len(columns) == 1 and weights is None and not isinstance(column, Categorical) and column.dtype == bool:
        hits = int(np.count_nonzero(column))
        both = ((False, column.size - hits), (True, hits))
        return [(value,) for value, n in both if n], [float(n) for _, n in both if n]
    parts = [_factorize(column) for column in columns]
    labels = [values for values, _ in parts]
    found, counts = _count_cells([codes for _, codes in parts], [len(v) for v in labels], weights, compiled)
    places = np.unravel_index(found, [len(values) for values in labels])
    named = [values[place].tolist() for values, place in zip(labels, places, strict=True)]
    return list(zip(*named, strict=True)), counts.tolist()


def _count_cells(
    codes: list[np.ndarray], widths: list[int], weights: np.ndarray | None, compiled: Any
) -> tuple[np.ndarray, np.ndarray]:
    """The cells of the table over all combinations that occur, and what they hold."""
    cells, n = int(np.prod(widths)), len(codes[0])
    is_small = cells <= 4 * n + 1024
    if compiled is not None and is_small and len(codes) == 2 and weights is None:
        counts: np.ndarray = np.zeros(cells)
        compiled.count_pairs(codes[0], codes[1], widths[1], counts)
    else:
        cell = codes[0].astype(np.int64, copy=False)
        for width, own in zip(widths[1:], codes[1:], strict=True):
            cell = cell * width + own
        if not is_small:
            found, inverse = np.unique(cell, return_inverse=True)
            return found, np.bincount(inverse, weights=weights)
        counts = np.bincount(cell, weights=weights, minlength=cells)
    found = np.flatnonzero(counts)
    return found, counts[found]


def _factorize(column: np.ndarray | Categorical) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values and the index of each row's value; small integers and booleans need no sort."""
    if isinstance(column, Categorical):
        return column.labels, column.codes
    if column.dtype.kind == "b":
        return np.array([False, True]), column.view(np.uint8)
    if column.dtype.kind in "iu" and column.size and column.min() >= 0:
        highest = int(column.max())
        if highest < 1 << 16:
            return np.arange(highest + 1), column
    values, inverse = np.unique(column, return_inverse=True)
    return values, inverse.reshape(-1)
