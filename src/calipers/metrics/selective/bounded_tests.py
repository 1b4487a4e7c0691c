"""Exact tests and bounds for the mean of losses in [0, 1]."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calipers.inference.proportions import binomial_lower_tail, clopper_pearson

_ROUNDS = 60


# Rates of the mixed exponential bets on a smaller mean. Up to 1/2 a bet loses more the larger a loss is, so
# that its evidence against a mean falls with the mean.
_RATES = 0.5 ** np.arange(1, 13)
_COSTS = -np.log1p(-_RATES) - _RATES


@dataclass(frozen=True, slots=True)
class LossSums:
    """Sums over rows of losses in [0, 1], one entry per set of rows.

    Parameters
    ----------
    rows : array (B,)
        How many rows.
    loss, squares : array (B,)
        Sums of their losses and of the squares of these.
    is_binary : bool
        Whether losses are 0 or 1.
    """

    rows: np.ndarray
    loss: np.ndarray
    squares: np.ndarray
    is_binary: bool

    def opposite(self) -> LossSums:
        """The same for one minus the loss."""
        squares = self.rows - 2.0 * self.loss + self.squares
        return LossSums(self.rows, self.rows - self.loss, squares, self.is_binary)

    @property
    def method(self) -> str:
        """Which tests and bounds hold for them."""
        return "Clopper-Pearson" if self.is_binary else "Hoeffding-Bentkus and empirical Bernstein"


def mean_p_value(sums: LossSums, mean: Any) -> np.ndarray:
    """p-value of the null that the expected loss is at least ``mean``.

    Parameters
    ----------
    sums : LossSums
        Of B sets of rows.
    mean : float or array (B,)
        The mean under the null.

    Returns
    -------
    array (B,)
        Binary: P(Binomial(rows, mean) <= loss), exact. Otherwise twice the smallest of three bounds that hold
        for any losses in [0, 1]: Hoeffding's exp(-n kl(loss / n, mean)) and Bentkus' e P(Binomial(n, mean) <=
        ceil(loss)), which are the better ones for losses near 0 and 1, and the empirical Bernstein bound,
        which knows how little the losses vary: the inverse of the mean over rates r of exp(r sum(mean - x) -
        (-log(1 - r) - r) sum(x - mean)^2), whose expectation is at most 1. The
        smaller one of the first two needs no correction: both bound the tail of the same sum.

    References
    ----------
    Bates, Angelopoulos, Lei, Malik and Jordan (2021), Distribution-free, risk-controlling prediction sets.
    Howard, Ramdas, McAuliffe and Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
    sequences, Theorem 4.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.selective.bounded_tests import LossSums, mean_p_value
    >>> none = LossSums(np.array([20]), np.zeros(1), np.zeros(1), is_binary=True)
    >>> round(float(mean_p_value(none, 0.1)[0]), 4)   # 0.9^20
    0.1216
    """
    rows = np.asarray(sums.rows, dtype=float)
    mean = np.broadcast_to(np.asarray(mean, dtype=float), rows.shape)
    # A sum of losses that is whole but for rounding counts as whole.
    count = np.clip(np.ceil(sums.loss - 1e-9 * np.maximum(rows, 1.0)), 0.0, rows)
    tail = binomial_lower_tail(count, rows, mean, 1.0 - mean)
    if sums.is_binary:
        return np.asarray(tail)
    blind = np.minimum(np.e * tail, _hoeffding(sums.loss / rows, rows, mean))
    return np.asarray(np.minimum(1.0, 2.0 * np.minimum(blind, _bernstein(sums, rows, mean))))


def _hoeffding(share: np.ndarray, rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """exp(-n kl(share, mean)) below the mean, 1 above it."""
    divergence = special.rel_entr(share, mean) + special.rel_entr(1.0 - share, 1.0 - mean)
    return np.where(share < mean, np.exp(-rows * divergence), 1.0)


def _bernstein(sums: LossSums, rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """The inverse of mixed exponential bets on a mean below ``mean``."""
    gap = rows * mean - sums.loss
    spread = np.maximum(sums.squares - 2.0 * mean * sums.loss + rows * mean**2, 0.0)
    capital = np.full(rows.shape, -np.inf)
    for rate, cost in zip(_RATES, _COSTS, strict=True):
        capital = np.logaddexp(capital, rate * gap - cost * spread)
    return np.asarray(np.exp(np.log(_RATES.size) - capital))


def upper_bounds(sums: LossSums, error: float) -> np.ndarray:
    """The largest mean that `mean_p_value` does not reject at ``error``, for every set of rows.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.selective.bounded_tests import LossSums, upper_bounds
    >>> none = LossSums(np.array([20]), np.zeros(1), np.zeros(1), is_binary=True)
    >>> upper_bounds(none, 0.05).round(4)   # 1 - 0.05^(1/20)
    array([0.1391])
    """
    if sums.is_binary:
        counts = np.minimum(np.rint(sums.loss), sums.rows)
        found = clopper_pearson(counts, sums.rows, confidence=1.0 - error, alternative="less")
        return np.asarray(found.high)
    low, high = np.minimum(sums.loss / sums.rows, 1.0), np.ones(len(sums.rows))
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        is_kept = mean_p_value(sums, middle) > error
        low, high = np.where(is_kept, middle, low), np.where(is_kept, high, middle)
    return np.asarray(high)
