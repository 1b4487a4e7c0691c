"""Metrics of discrete columns: a table of distinct rows and how often each occurs is all they need.

Every metric takes weights that mean repetition. So the distinct rows with their counts as weights give
exactly the answer of all the rows, by the same function, and tables of counts merge by adding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from calipers.engines.block import Block
from calipers.engines.state import Result, State
from calipers.exceptions import InputError

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

    def absorb(self, block: Block) -> None:
        """Count the distinct rows of the block."""
        rows, counts = distinct_rows([block[name] for name in self.columns], block.weights)
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
    columns: list[np.ndarray], weights: np.ndarray | None
) -> tuple[list[tuple[Any, ...]], list[float]]:
    """Distinct combinations and their (weighted) counts, by one count over combined codes."""
    labels, codes = [], np.zeros(len(columns[0]), dtype=np.int64)
    for column in columns:
        values, inverse = _factorize(column)
        labels.append(values)
        codes = codes * len(values) + inverse
    cells = int(np.prod([len(values) for values in labels]))
    if cells <= 4 * len(codes) + 1024:
        counts = np.bincount(codes, weights=weights, minlength=cells)
        found = np.flatnonzero(counts)
        counts = counts[found]
    else:
        found, inverse = np.unique(codes, return_inverse=True)
        counts = np.bincount(inverse, weights=weights)
    parts = np.unravel_index(found, [len(values) for values in labels])
    named = [values[part].tolist() for values, part in zip(labels, parts, strict=True)]
    return list(zip(*named, strict=True)), counts.tolist()


def _factorize(column: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values and the index of each row's value; small integers and booleans need no sort."""
    if column.dtype.kind == "b":
        return np.array([False, True]), column.astype(np.int64)
    if column.dtype.kind in "iu" and column.size and column.min() >= 0 and column.max() < 1 << 16:
        return np.arange(int(column.max()) + 1), column.astype(np.int64)
    values, inverse = np.unique(column, return_inverse=True)
    return values, inverse.reshape(-1)
