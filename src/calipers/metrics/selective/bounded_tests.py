"""Exact tests and bounds for the mean of losses in [0, 1]."""

from __future__ import annotations

import numpy as np
from scipy import special

from calipers.inference.proportions import binomial_lower_tail, clopper_pearson

_ROUNDS = 60


def mean_p_value(loss: np.ndarray, rows: np.ndarray, mean: np.ndarray, *, is_binary: bool) -> np.ndarray:
    """p-value of the null that the expected loss is at least ``mean``, from sums of losses over rows.

    Parameters
    ----------
    loss : array (B,)
        Sums of losses in [0, 1].
    rows : array (B,)
        How many.
    mean : float or array (B,)
        The mean under the null.
    is_binary : bool
        Whether losses are 0 or 1.

    Returns
    -------
    array (B,)
        Binary: P(Binomial(rows, mean) <= loss), exact. Otherwise the smaller of the bounds of Hoeffding,
        exp(-n kl(loss / n, mean)), and Bentkus, e P(Binomial(n, mean) <= ceil(loss)), both of which hold
        for any losses in [0, 1].

    References
    ----------
    Bates, Angelopoulos, Lei, Malik and Jordan (2021), Distribution-free, risk-controlling prediction sets.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.selective.bounded_tests import mean_p_value
    >>> round(float(mean_p_value(np.array([0.0]), np.array([20]), 0.1, is_binary=True)[0]), 4)   # 0.9^20
    0.1216
    """
    rows, mean = np.asarray(rows, dtype=float), np.broadcast_to(np.asarray(mean, dtype=float), np.shape(rows))
    # A sum of losses that is whole but for rounding counts as whole.
    count = np.clip(np.ceil(loss - 1e-9 * np.maximum(rows, 1.0)), 0.0, rows)
    tail = binomial_lower_tail(count, rows, mean, 1.0 - mean)
    if is_binary:
        return np.asarray(tail)
    return np.asarray(np.minimum(1.0, np.minimum(np.e * tail, _hoeffding(loss / rows, rows, mean))))


def _hoeffding(share: np.ndarray, rows: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """exp(-n kl(share, mean)) below the mean, 1 above it."""
    divergence = special.rel_entr(share, mean) + special.rel_entr(1.0 - share, 1.0 - mean)
    return np.where(share < mean, np.exp(-rows * divergence), 1.0)


def upper_bounds(loss: np.ndarray, rows: np.ndarray, error: float, *, is_binary: bool) -> np.ndarray:
    """The largest mean that `mean_p_value` does not reject at ``error``, for every sum.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.selective.bounded_tests import upper_bounds
    >>> upper_bounds(np.array([0.0]), np.array([20]), 0.05, is_binary=True).round(4)   # 1 - 0.05^(1/20)
    array([0.1391])
    """
    if is_binary:
        counts = np.minimum(np.rint(loss), rows)
        return np.asarray(clopper_pearson(counts, rows, confidence=1.0 - error, alternative="less").high)
    low, high = np.minimum(loss / rows, 1.0), np.ones(len(rows))
    for _ in range(_ROUNDS):
        middle = (low + high) / 2
        is_kept = mean_p_value(loss, rows, middle, is_binary=False) > error
        low, high = np.where(is_kept, middle, low), np.where(is_kept, high, middle)
    return np.asarray(high)
