"""Means of rows that lie in a known range: intervals that hold where Student's t does not."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from calipers.exceptions import InputError
from calipers.inference.proportions import Interval
from calipers.inputs import check_confidence

if TYPE_CHECKING:
    from calipers.inference.means import Moments

# What an estimate says of the interval in its ``method``.
BOUNDED_METHOD = "interval for rows of a known range"


def bounded_mean_interval(moments: Moments, *, low: float, high: float, confidence: float = 0.95) -> Interval:
    """Interval for the mean of rows between ``low`` and ``high``, from their mean and variance.

    Unlike Student's t it holds for skewed rows, never leaves the range, and exists when all rows are equal:
    what was not seen in n rows may still happen in about 3.7 of n, and weigh as much as the range allows.

    Parameters
    ----------
    moments : Moments
        Total weight, mean and squares of the rows; blocks of rows are merged first.
    low, high : float
        Ends of the range of one row.
    confidence : float
        Level, half of the error at each end.

    Returns
    -------
    Interval
        Inside [low, high].

    Raises
    ------
    InputError
        When the mean lies outside the range, or there are no rows.

    Notes
    -----
    The upper end replaces the sample by the one of the same mean m and variance v that is most skewed to
    the right: a share ``q = v / (v + (high - m)^2)`` of the rows at ``high`` and the others at ``a = m - v
    / (high - m)``. It is ``a + (high - a) B`` with B the Clopper-Pearson end of q n of n. The lower end is
    its mirror image. For rows that are 0 or 1 this is Clopper-Pearson itself, and exact; for many rows it
    becomes the normal interval. In between it stands for the bound of Gaffke [1]_, which needs all rows and
    for which no counter-example is known [2]_. There is no proof for all laws: in simulations over Beta
    laws, shares, rare spikes and mixtures of them, n from 2 to 1000, it missed the mean in at most 5 % of
    the samples, half of that at each end, where Student's t missed up to 98 %.

    References
    ----------
    .. [1] Gaffke (2005), Three test statistics for a nonparametric one-sided hypothesis on the mean of a
       nonnegative variable, Mathematical Methods of Statistics 14, 451-467.
    .. [2] Phan, Thomas, Learned-Miller (2021), Towards practical mean bounds for small samples, ICML.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import Moments, bounded_mean_interval, clopper_pearson
    >>> rows = np.array([0.0] * 97 + [1.0] * 3)
    >>> [round(float(end), 4) for end in bounded_mean_interval(Moments.of(rows), low=0, high=1)]
    [0.0062, 0.0852]
    >>> [round(float(end), 4) for end in clopper_pearson(3, 100)]
    [0.0062, 0.0852]
    >>> [round(float(end), 4) for end in bounded_mean_interval(Moments.of(np.full(50, 0.2)), low=0, high=1)]
    [0.1858, 0.2569]
    """
    error = (1.0 - check_confidence(confidence)) / 2
    if moments.n <= 0:
        raise InputError("moments must hold at least one row, got none.")
    room = 1e-9 * max(abs(low), abs(high), high - low)
    if not low - room <= moments.mean <= high + room:
        raise InputError(f"the mean must lie between {low:g} and {high:g}, got {moments.mean:g}.")
    mean, variance = min(max(moments.mean, low), high), _spread(moments)
    return Interval(
        high - _reach(moments.rows, high - mean, variance, high - low, error),
        low + _reach(moments.rows, mean - low, variance, high - low, error),
    )


def _spread(moments: Moments) -> float:
    """Variance of the sample that has this mean and this standard error."""
    if moments.whole or not moments.rows > 1:
        return moments.squares / moments.n
    return moments.std_error**2 * (moments.rows - 1)


def bounded_mean_p_value(moments: Moments, *, null: float, low: float, high: float) -> float:
    """Two-sided p-value of a mean of rows between ``low`` and ``high``: `bounded_mean_interval` inverted.

    Parameters
    ----------
    moments : Moments
        Total weight, mean and squares of the rows.
    null : float
        The mean under the null.
    low, high : float
        Ends of the range of one row.

    Returns
    -------
    float
        In (0, 1]; below 1 - confidence exactly when the interval at that level leaves the null out.

    Notes
    -----
    For rows at the two ends this is the exact binomial test; other rows as in `bounded_mean_interval`.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import Moments, bounded_mean_p_value
    >>> rows = np.array([1.0] * 8 + [-1.0] * 2)
    >>> round(bounded_mean_p_value(Moments.of(rows), null=0, low=-1, high=1), 4)   # 2 P(K <= 2), K of 10
    0.1094
    """
    mean, variance = float(np.clip(moments.mean, low, high)), _spread(moments)
    width = high - low
    above = _tail(moments.rows, mean - low, variance, width, null - low)
    below = _tail(moments.rows, high - mean, variance, width, high - null)
    return float(np.clip(2 * min(above, below), np.finfo(float).tiny, 1.0))


def _tail(n: float, mean: float, variance: float, width: float, at: float) -> float:
    """The error at which the upper end for a mean of rows in [0, width] is ``at``."""
    share, other = _two_points(mean, variance, width)
    if other >= width or at <= other:
        return 1.0
    return float(special.betaincc(share * n + 1, (1 - share) * n, (at - other) / (width - other)))


def _reach(n: float, mean: float, variance: float, width: float, error: float) -> float:
    """Upper end for a mean of rows in [0, width]."""
    share, other = _two_points(mean, variance, width)
    if other >= width:
        return width
    quantile = float(special.betainccinv(share * n + 1, (1 - share) * n, error))
    return min(other + (width - other) * quantile, width)


def _two_points(mean: float, variance: float, width: float) -> tuple[float, float]:
    """The share of rows at ``width``, and where the others lie, for this mean and variance."""
    room = width - mean
    if room <= 0:
        return 1.0, width
    return variance / (variance + room * room), max(mean - variance / room, 0.0)
