"""Is a mean of paired differences 0? A test that needs no more than that either sign is equally likely."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from calipers.inference.means import Moments
from calipers.inference.null_law import NULL_LEVEL

# P(S >= x) <= c P(Z >= x) for sums S of signs with squared weights adding to 1, Z standard normal: c in [1].
_NORMAL_FACTOR = 1 / (4 * special.ndtr(-np.sqrt(2)))
_TINY = float(np.finfo(float).tiny)


class SymmetryTest(NamedTuple):
    """The p-value, and the largest mean either way that equal predictors give 95 % of the time."""

    p_value: float
    null_high: float


def symmetry_test(moments: Moments, *, null_level: float = NULL_LEVEL) -> SymmetryTest:
    """Two-sided test that paired differences are as likely positive as negative, from mean and squares.

    It is valid for any law of their sizes: few differences that are not 0, heavy tails, all of one size.

    Parameters
    ----------
    moments : Moments
        Total weight, mean and squares of the differences, of independent rows.
    null_level : float
        Share of the null law that the band holds at least.

    Returns
    -------
    SymmetryTest
        ``p_value`` in (0, 1], and ``null_high``: the band is ``[-null_high, null_high]``.

    Notes
    -----
    Given their sizes the differences have random signs, so ``r = |sum d| / sqrt(sum d^2)`` is a sum of
    signs with weights whose squares add to 1. Its tail is at most ``c = 1 / (4 P(Z >= sqrt 2)) = 3.18``
    times the normal one [1]_, and at most ``exp(-r^2 / 2)``. When all but four of many differences are 0
    and these four are equal, Student's t reads 0.046, which happens in 12.5 % of all cases; this reads
    0.145.

    References
    ----------
    .. [1] Bentkus and Dzindzalieta (2015), A tight Gaussian bound for weighted sums of Rademacher random
       variables, Bernoulli 21, 1231-1237.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import Moments, symmetry_test
    >>> test = symmetry_test(Moments.of(np.array([0.2, 0.1, 0.4, 0.3, 0.2, 0.3, 0.1, 0.2, 0.1, 0.4])))
    >>> round(test.p_value, 4), round(test.null_high, 3)
    (0.0138, 0.195)
    """
    total = moments.squares + moments.n * moments.mean**2
    if moments.n <= 0 or total == 0:
        return SymmetryTest(1.0, 0.0)
    ratio = moments.n * abs(moments.mean) / np.sqrt(total)
    tail = min(np.exp(-ratio * ratio / 2), _NORMAL_FACTOR * special.ndtr(-ratio))
    limit = -special.ndtri((1 - null_level) / 2 / _NORMAL_FACTOR)
    limit = min(limit, np.sqrt(-2 * np.log((1 - null_level) / 2)))
    return SymmetryTest(float(np.clip(2 * tail, _TINY, 1.0)), float(limit * np.sqrt(total) / moments.n))
