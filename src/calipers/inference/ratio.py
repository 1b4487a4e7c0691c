"""The ratio of two means of the same rows: Fieller's set with an interval for bounded means."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calipers.inference.bounded import bounded_mean_interval
from calipers.inference.means import Moments
from calipers.inference.proportions import Interval

# Ratios beyond this are reported as infinite.
_LARGEST = 1e12


def bounded_ratio_interval(
    pairs: np.ndarray, masses: np.ndarray, *, limit: float, confidence: float = 0.95
) -> Interval:
    """Interval for E(b) / E(a) of pairs (a, b) of rows between 0 and ``limit``, from counts of equal pairs.

    Parameters
    ----------
    pairs : array (k, 2)
        Distinct pairs (a, b), each number between 0 and ``limit``.
    masses : array (k,)
        Rows (weight) of each pair.
    limit : float
        The largest either number can be, in any row.
    confidence : float
        Level of the interval.

    Returns
    -------
    Interval
        Between 0 and infinity; [0, inf) when every row is (0, 0).

    Notes
    -----
    A ratio r is in the interval when 0 is in `bounded_mean_interval` of b - r a, whose mean is 0 at the true
    ratio and whose rows lie in [-r limit, limit] (Fieller's argument [1]_). Rows (0, 0) say nothing about
    any r and are left out. The mean falls as r grows, so the ends are two roots.

    References
    ----------
    .. [1] Fieller (1954), Some problems in interval estimation, Journal of the Royal Statistical Society B
       16, 175-185.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import bounded_ratio_interval
    >>> pairs, masses = np.array([[0, 0], [1, 1], [1, 0], [0, 1]]), np.array([900, 60, 30, 10])
    >>> [round(end, 2) for end in bounded_ratio_interval(pairs, masses, limit=1)]
    [0.65, 0.93]
    """
    kept = (pairs > 0).any(axis=1) & (masses > 0)
    a, b, w = pairs[kept, 0].astype(float), pairs[kept, 1].astype(float), masses[kept].astype(float)
    if not w.size:
        return Interval(0.0, float("inf"))

    def ends(ratio: float) -> Interval:
        scale = max(1.0, ratio)  # keeps the numbers finite for large ratios
        moments = Moments.of((b - ratio * a) / scale, w)
        low, high = -ratio * limit / scale, limit / scale
        return bounded_mean_interval(moments, low=low, high=high, confidence=confidence)

    return Interval(
        _root(lambda ratio: ends(ratio).low, start=0.0),
        _root(lambda ratio: ends(ratio).high, start=0.0),
    )


def _root(falling: Callable[[float], float], start: float) -> float:
    """Where a falling function of the ratio turns negative; infinity when it does not."""
    from scipy import optimize

    if falling(start) <= 0:
        return start
    high = 1.0
    while falling(high) > 0:
        if high > _LARGEST:
            return float("inf")
        high *= 2
    return float(optimize.brentq(falling, start, high, xtol=1e-12, rtol=1e-12))
