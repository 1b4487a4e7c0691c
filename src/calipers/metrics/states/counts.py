"""Metrics of discrete columns: a table of distinct rows and how often each occurs is all they need.

The distinct rows with their counts as weights give exactly the answer of all the rows, by the same function,
and tables of counts merge by adding. Importance weights are added up too, with their squares beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np

from calipers.exceptions import InputError
from calipers.inference.state import Result, State
from calipers.inputs import Weights
from calipers.inputs.categorical import Categorical
from calipers.inputs.rows import Column, Rows
from calipers.inputs.weights import are_whole

Row = tuple[Any, ...]

# Beyond this many distinct rows the columns are not discrete and the table is not a summary.
MAX_DISTINCT = 2_000_000


class CountState(State):
    """Counts of distinct rows of some columns, finished by the metric's own public function.

    Parameters
    ----------
    function : callable
        The public metric; takes the columns and ``sample_weight``.
    columns : tuple of str or callable
        Its data arguments, in order, as columns of a block, or functions of a block that give one.
    options : dict
        Its keyword arguments.
    """

    __slots__ = ("columns", "counts", "function", "options", "whole")

    def __init__(
        self, function: Callable[..., Result], columns: tuple[Column, ...], options: dict[str, Any]
    ) -> None:
        self.function, self.columns, self.options = function, columns, options
        # Weight and squared weight of every distinct row, and whether all weights were whole.
        self.counts: dict[Row, tuple[float, float]] = {}
        self.whole = True

    @property
    def needs(self) -> frozenset[str] | None:
        """Its columns; None where one is a function of the rows."""
        names = [column for column in self.columns if isinstance(column, str)]
        return frozenset(names) | {"sample_weight"} if len(names) == len(self.columns) else None

    def absorb(self, block: Rows) -> None:
        """Count the distinct rows of the block."""
        self.add(block, *block.once(("distinct", *self.columns), lambda: self.distinct(block)))

    def distinct(self, block: Rows) -> Distinct:
        """The distinct rows of the block and how often each occurs."""
        return distinct_rows([block.coded(name) for name in self.columns], block.weights, block.kernels)

    def add(self, block: Rows, rows: list[Row], counts: list[float], squares: list[float]) -> None:
        """Add distinct rows of a block and their counts."""
        for row, count, square in zip(rows, counts, squares, strict=True):
            mass, squared = self.counts.get(row, (0.0, 0.0))
            self.counts[row] = mass + count, squared + square
        self.whole = self.whole and are_whole(block.weights)
        if len(self.counts) > MAX_DISTINCT:
            raise InputError(
                f"{', '.join(map(str, self.columns))} take more than {MAX_DISTINCT:,} distinct combinations; "
                f"{self.function.__name__} over many rows needs discrete columns."
            )

    def merge(self, other: Self) -> Self:
        """Add the counts."""
        for row, (count, square) in other.counts.items():
            mass, squared = self.counts.get(row, (0.0, 0.0))
            self.counts[row] = mass + count, squared + square
        self.whole = self.whole and other.whole
        return self

    def finish(self) -> Result:
        """The metric over the distinct rows, each as often as it occurred."""
        rows = sorted(self.counts)
        columns = [np.array(column) for column in zip(*rows, strict=True)]
        mass, squares = (np.array(column) for column in zip(*(self.counts[row] for row in rows), strict=True))
        return self.function(*columns, sample_weight=Weights(mass, squares, self.whole), **self.options)


# Distinct rows, the weight of each and its squared weight.
Distinct = tuple[list[Row], list[float], list[float]]


def distinct_rows(
    columns: Sequence[np.ndarray | Categorical], weights: np.ndarray | None, compiled: Any = None
) -> Distinct:
    """Distinct combinations and their (weighted) counts, by one count over combined codes."""
    column = columns[0]
    if len(columns) == 1 and weights is None and not isinstance(column, Categorical) and column.dtype == bool:
        hits = int(np.count_nonzero(column))
        both = ((False, column.size - hits), (True, hits))
        counts = [float(n) for _, n in both if n]
        return [(value,) for value, n in both if n], counts, counts
    parts = [_factorize(column) for column in columns]
    labels = [values for values, _ in parts]
    found, sums, squares = _count_cells(
        [codes for _, codes in parts], [len(v) for v in labels], weights, compiled
    )
    places = np.unravel_index(found, [len(values) for values in labels])
    named = [values[place].tolist() for values, place in zip(labels, places, strict=True)]
    return list(zip(*named, strict=True)), sums.tolist(), squares.tolist()


def _count_cells(
    codes: list[np.ndarray], widths: list[int], weights: np.ndarray | None, compiled: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The cells of the table over all combinations that occur, the weight and the squared weight in each."""
    cells, n = int(np.prod(widths)), len(codes[0])
    is_small = cells <= 4 * n + 1024
    if compiled is not None and is_small and len(codes) == 2 and weights is None:
        counts: np.ndarray = np.zeros(cells)
        compiled.count_pairs(codes[0], codes[1], widths[1], counts)
        found = np.flatnonzero(counts)
        return found, counts[found], counts[found]
    cell = codes[0].astype(np.int64, copy=False)
    for width, own in zip(widths[1:], codes[1:], strict=True):
        cell = cell * width + own
    found = np.arange(cells)
    if not is_small:
        found, cell = np.unique(cell, return_inverse=True)
    counts = np.bincount(cell, weights=weights, minlength=found.size)
    squares = counts if weights is None else np.bincount(cell, weights=weights**2, minlength=found.size)
    there = np.flatnonzero(counts)
    return found[there], counts[there], squares[there]


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
