"""Rows in order of certainty, the most certain first; rows of equal certainty are kept together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inputs import check_same_length, check_vector
from calipers.inputs.option_checks import check_range
from calipers.metrics.selective.bounded_tests import LossSums


@dataclass(frozen=True, slots=True, eq=False)
class KeptRows:
    """What is kept from every certainty on.

    Parameters
    ----------
    certainty : array (B,)
        Distinct certainties, falling.
    rows : integer array (B,)
        Rows with at least that certainty.
    loss, squares : float arrays (B,)
        Sums of their losses, scaled to [0, 1], and of the squares of these.
    low, high : float
        The range of a loss.
    is_binary : bool
        Whether every loss lies at an end of its range.
    dtype : dtype
        Of the certainties as they were given.
    """

    certainty: np.ndarray
    rows: np.ndarray
    loss: np.ndarray
    squares: np.ndarray
    low: float
    high: float
    is_binary: bool
    dtype: np.dtype[Any]

    @property
    def n(self) -> int:
        """All rows."""
        return int(self.rows[-1])

    def sums(self, at: Any = slice(None)) -> LossSums:
        """Rows, losses and their squares of some blocks."""
        return LossSums(self.rows[at], self.loss[at], self.squares[at], self.is_binary)

    @property
    def means(self) -> np.ndarray:
        """Mean loss of what is kept, scaled."""
        return np.asarray(self.loss / self.rows)

    def in_units(self, scaled: Any) -> np.ndarray:
        """A scaled loss in the units it was given in."""
        return np.asarray(self.low + (self.high - self.low) * np.asarray(scaled))

    def area(self) -> float:
        """Mean over all numbers of kept rows of their mean loss; ties in the mean over their orders."""
        rows, loss = np.append(0, self.rows), np.append(0.0, self.loss)
        inside = np.diff(loss) / np.diff(rows)
        # Inside a block the sum is S + (k - k0) m: its share of k adds (S - k0 m) / k + m.
        harmonic = special.digamma(rows[1:] + 1.0) - special.digamma(rows[:-1] + 1.0)
        total = np.sum((loss[:-1] - rows[:-1] * inside) * harmonic + np.diff(loss))
        return float(total / self.n)

    def threshold(self, at: int) -> float:
        """The smallest number above the next certainty, so that no row but those kept so far reaches it.

        What is known about the rows kept holds for all that are more certain than the next row; a threshold
        at the last row kept would leave out what may lie between the two.
        """
        if at == len(self.certainty) - 1:
            return -np.inf
        following = self.certainty[at + 1]
        if self.dtype.kind != "f":
            return float(following + 1.0)
        # In the precision that the certainties came in: a double would be rounded back on comparison.
        return float(np.nextafter(following.astype(self.dtype), self.dtype.type(np.inf)))

    def last_within(self, ranks: np.ndarray) -> np.ndarray:
        """Number of the last block that ends at or before each rank; -1 where the first is longer.

        Which block that is depends on the rows beyond it only, so that the rows kept are independent draws
        from those more certain than the next row.
        """
        return np.asarray(np.searchsorted(self.rows, ranks, side="right") - 1)


def check_kept_rows(loss: Any, certainty: Any, loss_range: Any) -> KeptRows:
    """Rows from losses and certainties; losses outside their range are refused."""
    low, high = check_range(loss_range, name="loss_range")
    losses = as_numpy(check_vector(loss, name="loss")).astype(np.float64)
    given = as_numpy(check_vector(certainty, name="certainty", finite=False))
    sure = given.astype(np.float64)
    check_same_length(loss=loss, certainty=certainty)
    outside = (losses < low) | (losses > high)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            f"loss must lie in loss_range [{low:g}, {high:g}], {int(outside.sum())} of {len(losses)} values "
            f"do not (first at row {row}: {losses[row]:g}). Give the range that a loss can have."
        )
    scaled = (losses - low) / (high - low)
    return _kept(scaled, sure, low, high, given.dtype)


def _kept(scaled: np.ndarray, sure: np.ndarray, low: float, high: float, dtype: np.dtype[Any]) -> KeptRows:
    order = np.lexsort((scaled, -sure))
    ordered = sure[order]
    ends = np.flatnonzero(np.append(ordered[1:] != ordered[:-1], True))
    is_binary = bool(np.all((scaled == 0) | (scaled == 1)))
    losses = scaled[order]
    sums, squares = (np.cumsum(part)[ends] for part in (losses, losses**2))
    return KeptRows(ordered[ends], ends + 1, sums, squares, low, high, is_binary, dtype)


def best_order(loss: Any, kept: KeptRows) -> KeptRows:
    """The same losses in the order that a perfect certainty would give them."""
    scaled = (as_numpy(loss).astype(np.float64).reshape(-1) - kept.low) / (kept.high - kept.low)
    return _kept(scaled, -scaled, kept.low, kept.high, kept.dtype)
