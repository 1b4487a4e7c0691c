"""The PAC threshold: coverage of at least 1 - alpha, with probability 1 - delta over the calibration rows."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.conformal.ranks import order_statistic
from calipers.inference.proportions import binomial_lower_tail
from calipers.inputs import check_count, check_fraction, check_vector, exact_level

# Relative error of a binomial tail in floating point, with room to spare.
_TAIL_ERROR = 1e-10
# Whole-number arithmetic of a second or two.
_MOST_BITS = 2 * 10**10
_DELTA = "It is the probability of an unlucky calibration set"


def pac_rank(n: int, alpha: Any, *, delta: float = 0.05) -> int:
    """Rank of the smallest calibration score that covers ``1 - alpha`` with probability ``1 - delta``.

    `conformal_rank` promises the average over calibration sets; about half of them cover less. This
    rank promises that at most a share delta of calibration sets do.

    Parameters
    ----------
    n : int
        Calibration rows.
    alpha : float, Fraction or Decimal
        Allowed miscoverage.
    delta : float
        Allowed probability of an unlucky calibration set.

    Returns
    -------
    int
        ``n - k`` with k the largest count for which ``P(Binomial(n, alpha) <= k) <= delta``; ``n + 1``
        (no finite threshold) when not even k = 0 is allowed, that is when ``(1 - alpha)^n > delta``.

    Notes
    -----
    The coverage of the threshold at rank r is Beta(r, n + 1 - r) for continuous scores, and larger in
    law with ties, so ``P(coverage < 1 - alpha) = P(Binomial(n, alpha) <= n - r)``. A tail that floating point
    cannot tell from delta is compared in whole numbers: P(Binomial(115, 1/2) <= 57) is 1/2.

    References
    ----------
    Vovk (2012), Conditional validity of inductive conformal predictors.
    Park, Bastani, Matni, Lee (2020), PAC confidence sets for deep neural networks.

    Examples
    --------
    >>> from calipers.conformal import pac_rank, conformal_rank
    >>> pac_rank(500, 0.1), conformal_rank(500, 0.1)
    (462, 451)
    >>> pac_rank(100, 0.3, delta=1e-5), pac_rank(32, 0.3, delta=1e-5)
    (89, 33)
    >>> pac_rank(115, 0.5, delta=0.5)
    58
    """
    count, level = check_count(n, name="n", minimum=0), exact_level(alpha)
    check_fraction(delta, name="delta", meaning=_DELTA)
    limit = exact_level(delta, name="delta")
    low, high = -1, count  # P(Bin <= low) <= delta < P(Bin <= high) = 1
    while high - low > 1:
        middle = (low + high) // 2
        below = _tail_within(middle, count, level, limit)
        low, high = (middle, high) if below else (low, middle)
    return count - low


def _tail_within(k: int, n: int, level: Fraction, limit: Fraction) -> bool:
    """Whether P(Binomial(n, level) <= k) <= limit, exactly; False, the safe side, if that takes too long."""
    # Not special.bdtr, which is off by a thousandth at ten million rows.
    tail = float(binomial_lower_tail(*np.array([k, n, level, 1 - level], dtype=float)))
    if abs(tail - limit) > _TAIL_ERROR * limit:
        return tail < limit
    if k * n * level.denominator.bit_length() > _MOST_BITS:
        return False
    p, q = level.numerator, level.denominator - level.numerator
    # sum over j <= k of C(n, j) p^j q^(k - j), and q^(n - k) left out, over (p + q)^n.
    total, binomial = 0, 1
    for j in range(k + 1):
        total = total * q + binomial * p**j
        binomial = binomial * (n - j) // (j + 1)
    return bool(total * q ** (n - k) * limit.denominator <= limit.numerator * level.denominator**n)


def pac_quantile(scores: Any, alpha: Any, *, delta: float = 0.05) -> float:
    """The calibration score of `pac_rank`, or infinity.

    Parameters
    ----------
    scores : array of shape (n,)
        Nonconformity scores of the calibration rows.
    alpha : float, Fraction or Decimal
        Allowed miscoverage.
    delta : float
        Allowed probability that the calibration rows are so unlucky that coverage falls below 1 - alpha.

    Returns
    -------
    float
        The threshold; infinity when there are fewer rows than `smallest_pac_size`.

    Examples
    --------
    >>> from calipers.conformal import pac_quantile
    >>> pac_quantile(range(1, 101), 0.1), pac_quantile(range(1, 21), 0.1)
    (96.0, inf)
    """
    values = np.asarray(as_numpy(check_vector(scores, name="scores", finite=False)))
    return order_statistic(values, pac_rank(values.shape[0], alpha, delta=delta))


def smallest_pac_size(alpha: Any, *, delta: float = 0.05) -> int:
    """Fewest calibration rows for which the PAC threshold is finite: ``(1 - alpha)^n <= delta``.

    Parameters
    ----------
    alpha : float, Fraction or Decimal
        Allowed miscoverage.
    delta : float
        Allowed probability of an unlucky calibration set.

    Returns
    -------
    int
        The smallest such n.

    Examples
    --------
    >>> from calipers.conformal import smallest_pac_size
    >>> [smallest_pac_size(a, delta=1e-5) for a in (0.2, 0.3, 0.4)]
    [52, 33, 23]
    """
    level = float(exact_level(alpha))
    limit = check_fraction(delta, name="delta", meaning=_DELTA)
    n = max(1, math.floor(math.log(limit) / math.log1p(-level)) - 1)
    while pac_rank(n, alpha, delta=delta) > n:
        n += 1
    return n
