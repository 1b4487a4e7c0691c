"""Score, outcome and weight of rows: what a calibration error looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from calipers.arrays.ordered_bits import pack_outcomes, unpack_outcomes, unpack_scores
from calipers.inputs.rows import Rows
from calipers.inputs.weights import are_whole, effective_size

# Score, whether it happened, weight (None when every row counts once).
ScoredRows = tuple[np.ndarray, np.ndarray, np.ndarray | None]
Column = int | Literal["top"] | None


def _is_top(P: np.ndarray, column: Column) -> bool:
    return column == "top" or (column is None and P.shape[1] > 2)


def scores(block: Rows, column: Column) -> np.ndarray:
    """Stated probability of the column; of the second of two, else of the most probable label."""
    return unit_scores(stated(block, column))


def stated(block: Rows, column: Column) -> np.ndarray:
    """The same as it was given."""
    P = block["probabilities"]
    if _is_top(P, column):
        return block["top_probability"]
    return np.asarray(P[:, column if isinstance(column, int) else 1])


def unit_scores(f: np.ndarray) -> np.ndarray:
    """Scores in double precision, at most 1, without a negative zero."""
    return np.minimum(f.astype(np.float64) + 0.0, 1.0)


def outcomes(block: Rows, column: Column, rows: np.ndarray | None = None) -> np.ndarray:
    """Whether that label happened; of some rows, or of all."""
    P, codes = block["probabilities"], block["codes"]
    if _is_top(P, column):
        # All rows through the column that other states share; few one by one, unless their label is known.
        if rows is None:
            return block["top_is_right"]
        label = block.get("top_label")
        top = P[rows].argmax(axis=1) if label is None else label[rows]
        return np.asarray(top == codes[rows])
    wanted = codes if rows is None else codes[rows]
    return np.asarray(wanted == (column if isinstance(column, int) else 1))


def binary_rows(block: Rows, column: Column = None) -> ScoredRows:
    """Score, outcome and weight of every row that has one above 0."""
    f, y, w = scores(block, column), outcomes(block, column), block.weights
    if w is None or (w > 0).all():
        return f, y, w
    there = w > 0
    return f[there], y[there], w[there]


def unpacked(keys: np.ndarray) -> ScoredRows:
    """The scores and outcomes of packed rows."""
    return unpack_scores(keys), unpack_outcomes(keys).astype(bool), None


def sorted_rows(parts: list[ScoredRows]) -> ScoredRows:
    """Rows of several blocks in order of score; rows of one score in an order that their content decides."""
    f, y, w = joined(parts)
    if w is None and y.dtype == bool:
        keys = pack_outcomes(f, y)
        keys.sort()
        return unpacked(keys)
    order = np.lexsort((y, f)) if w is None else np.lexsort((w, y, f))
    return f[order], y[order], None if w is None else w[order]


def joined(parts: list[ScoredRows]) -> ScoredRows:
    """Rows of several blocks one after the other; blocks with and without weights mix."""
    if len(parts) == 1:
        return parts[0]
    f, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    if all(part[2] is None for part in parts):
        return f, y, None
    return f, y, np.concatenate([np.ones(len(p[0])) if p[2] is None else p[2] for p in parts])


@dataclass(slots=True)
class Tally:
    """What is counted of all rows, whatever their scores.

    Parameters
    ----------
    n_rows : int
        Rows with a weight above 0.
    total, squares : float
        Sums of their weights and of their squared weights.
    impossible : int
        Rows whose outcome was stated to have probability 0.
    whole, soft : bool
        Whether all weights are repetitions, and whether some outcome is a probability rather than an event.
    """

    n_rows: int = 0
    total: float = 0.0
    squares: float = 0.0
    impossible: int = 0
    whole: bool = True
    soft: bool = False

    def add(self, rows: ScoredRows) -> None:
        """Count rows, each with a weight above 0."""
        f, y, w = rows
        self.n_rows += f.size
        self.total += f.size if w is None else float(np.sum(w))
        self.squares += f.size if w is None else float(np.sum(w * w))
        self.impossible += impossible_rows(f, y)
        self.whole, self.soft = self.whole and are_whole(w), self.soft or y.dtype != bool

    def merge(self, other: Tally) -> None:
        """Count the other's rows too."""
        self.n_rows, self.impossible = self.n_rows + other.n_rows, self.impossible + other.impossible
        self.total, self.squares = self.total + other.total, self.squares + other.squares
        self.whole, self.soft = self.whole and other.whole, self.soft or other.soft

    @property
    def rows(self) -> float:
        """Rows behind a number: the total weight of repetitions, else the effective number of rows."""
        return effective_size(self.total, self.squares, whole=self.whole)

    @property
    def testable(self) -> bool:
        """Whether outcomes have a Bernoulli law under calibration."""
        return self.whole and not self.soft


def impossible_rows(f: np.ndarray, happened: np.ndarray) -> int:
    """Rows whose outcome was stated to have probability 0."""
    if not f.size or (f.min() > 0 and f.max() < 1):  # most often; and the ends are found fast
        return 0
    if happened.dtype == bool:
        return int(np.count_nonzero(f == ~happened))
    return int(np.count_nonzero(((f == 0) | (f == 1)) & (happened != f)))
