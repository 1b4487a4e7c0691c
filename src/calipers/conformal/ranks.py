"""Which order statistic a conformal threshold is, in exact integer arithmetic."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.inputs import check_count, check_vector, exact_level
from calipers.inputs.option_checks import check_flag


def conformal_rank(n: int, alpha: Any) -> int:
    """Rank of the calibration score that serves as threshold: ``ceil((n + 1)(1 - alpha))``, exact.

    The smallest valid choice: with it a new exchangeable score lies at or below the threshold with
    probability at least ``1 - alpha``. A rank of ``n + 1`` means that no finite threshold is valid.

    Parameters
    ----------
    n : int
        Number of calibration scores, 0 or more.
    alpha : float, Fraction or Decimal
        Allowed miscoverage, strictly between 0 and 1. A float is snapped to the fraction with
        denominator at most 10^6 that lies within 1e-12 of it (never to 0 or 1), so that 0.1 and
        ``1 - 0.9`` mean 1/10; Fraction and Decimal are taken as they are.

    Returns
    -------
    int
        Between 1 and ``n + 1``.

    Raises
    ------
    InputError
        When alpha is not strictly between 0 and 1, or n is negative.

    Notes
    -----
    The product is a fraction and its ceiling an integer: nothing is rounded. Floating-point versions
    are one rank off in hundreds of (n, alpha) pairs, n = 99 with alpha = 0.1 among them.

    Examples
    --------
    >>> from calipers.conformal import conformal_rank
    >>> conformal_rank(99, 0.1), conformal_rank(9, 0.1), conformal_rank(8, 0.1)
    (90, 9, 9)
    """
    count, level = check_count(n, name="n", minimum=0), exact_level(alpha)
    # ceil((n + 1)(q - p) / q) for alpha = p / q, in integers.
    return -((count + 1) * (level.numerator - level.denominator) // level.denominator)


def conformal_quantile(scores: Any, alpha: Any) -> float:
    """The conformal threshold: the order statistic of `conformal_rank`, or infinity.

    Parameters
    ----------
    scores : array of shape (n,)
        Nonconformity scores of the calibration rows; higher is stranger. Infinite scores are kept.
    alpha : float, Fraction or Decimal
        Allowed miscoverage.

    Returns
    -------
    float
        ``inf`` exactly when the rank exceeds n; never a clipped maximum.

    Notes
    -----
    A set ``{score <= threshold}`` covers with probability at least ``1 - alpha``, and at most
    ``1 - alpha + 1/(n + 1)`` when scores are almost surely distinct. One partition, O(n).

    Examples
    --------
    >>> from calipers.conformal import conformal_quantile
    >>> conformal_quantile([3.0, 1.0, 2.0, 5.0, 4.0, 9.0, 7.0, 8.0, 6.0], 0.1)
    9.0
    >>> conformal_quantile([3.0, 1.0, 2.0], 0.1)
    inf
    """
    values = np.asarray(as_numpy(check_vector(scores, name="scores", finite=False)))
    rank = conformal_rank(values.shape[0], alpha)
    return order_statistic(values, rank)


def conformal_interval(values: Any, alpha: Any, *, tight: bool = False) -> tuple[float, float]:
    """Two-sided conformal interval for the next exchangeable value, Holland (2020), eq. 15-16.

    Parameters
    ----------
    values : array of shape (n,)
        Exchangeable values, for instance losses.
    alpha : float, Fraction or Decimal
        Allowed miscoverage, half of it on each side.
    tight : bool
        Where ``(n + 1) alpha / 2`` is an integer, the paper's lower rank is one lower than validity
        needs; True takes the tighter rank, False (default) the paper's.

    Returns
    -------
    (low, high) : tuple of float
        ``-inf`` when the lower rank is 0, ``inf`` when the upper rank exceeds n.

    Notes
    -----
    Lower rank ``ceil((n + 1) alpha / 2) - 1`` (tight: ``floor((n + 1) alpha / 2)``), upper rank
    ``ceil((n + 1)(1 - alpha / 2))``. With distinct values the next one lies in [low, high] with
    probability (upper rank - lower rank) / (n + 1), which is at least ``1 - alpha``.

    Examples
    --------
    >>> from calipers.conformal import conformal_interval
    >>> conformal_interval(range(1, 40), 0.1)
    (1.0, 38.0)
    >>> conformal_interval(range(1, 40), 0.1, tight=True)
    (2.0, 38.0)
    """
    array = np.asarray(as_numpy(check_vector(values, name="values", finite=False)))
    lower, upper = interval_ranks(array.shape[0], alpha, tight=tight)
    return order_statistic(array, lower), order_statistic(array, upper)


def interval_ranks(n: int, alpha: Any, *, tight: bool = False) -> tuple[int, int]:
    """Lower and upper rank of `conformal_interval`; 0 and ``n + 1`` stand for the infinite ends.

    Parameters
    ----------
    n : int
        Number of values, 0 or more.
    alpha : float, Fraction or Decimal
        Allowed miscoverage.
    tight : bool
        As in `conformal_interval`.

    Returns
    -------
    (lower, upper) : tuple of int
        ``0 <= lower < upper <= n + 1``.

    Examples
    --------
    >>> from calipers.conformal import interval_ranks
    >>> interval_ranks(39, 0.1), interval_ranks(5, 0.1)
    ((1, 38), (0, 6))
    """
    half = exact_level(alpha) / 2
    count = check_count(n, name="n", minimum=0)
    tail = (count + 1) * half
    lower = tail.numerator // tail.denominator if check_flag(tight, name="tight") else _ceil(tail) - 1
    return lower, _ceil((count + 1) * (1 - half))


def smallest_calibration_size(alpha: Any) -> int:
    """Fewest calibration rows for which the one-sided threshold is finite.

    Parameters
    ----------
    alpha : float, Fraction or Decimal
        Allowed miscoverage.

    Returns
    -------
    int
        The smallest n with ``conformal_rank(n, alpha) <= n``.

    Examples
    --------
    >>> from calipers.conformal import smallest_calibration_size
    >>> smallest_calibration_size(0.05), smallest_calibration_size(0.1)
    (19, 9)
    """
    # ceil((n+1)(1-alpha)) <= n  <=>  n + 1 >= 1/alpha.
    return max(1, _ceil(1 / exact_level(alpha)) - 1)


def order_statistic(values: np.ndarray, rank: int) -> float:
    """The rank-th smallest value; -inf below rank 1, inf above rank n."""
    if rank < 1:
        return -np.inf
    if rank > values.shape[0]:
        return np.inf
    return float(np.partition(values, rank - 1)[rank - 1])


def _ceil(fraction: Fraction) -> int:
    return -(-fraction.numerator // fraction.denominator)
