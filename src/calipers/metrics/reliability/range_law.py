"""The range (highest minus lowest point) of Brownian motion on [0, 1]: the law of c_emp under calibration.

For a calibrated model with continuous scores, n c_emp / sqrt(sum f (1 - f)) tends to this range.
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from calipers.exceptions import InputError

# Feller (1951).
RANGE_MEAN = 2 * math.sqrt(2 / math.pi)

_SWITCH = 1.5
_K = np.arange(1, 41, dtype=float)
_ODD_SQUARED = (2 * np.arange(8, dtype=float) + 1) ** 2


def range_survival(x: float) -> float:
    """P(range > x), with relative precision far into the tail.

    Notes
    -----
    Above 1.5 Feller's tail series 8 sum_k (-1)^(k-1) k Phi(-k x), which never forms 1 - cdf; below, one
    minus the theta series of `range_cdf`. Each series needs a handful of terms on its side.

    References
    ----------
    Feller (1951), The asymptotic distribution of the range of sums of independent random variables.

    Examples
    --------
    >>> from calipers.metrics.reliability import range_survival
    >>> round(range_survival(2.4977), 5), f"{range_survival(30.0):.1e}"
    (0.05, '3.9e-197')
    """
    if math.isnan(x):
        return math.nan
    if x <= _SWITCH:
        return 1.0 - range_cdf(x)
    return float(-8 * np.sum((-1.0) ** _K * _K * special.ndtr(-_K * x)))


def range_cdf(x: float) -> float:
    """P(range <= x).

    Notes
    -----
    Below 1.5 the Poisson transform of Feller's density, integrated term by term:
    sum over odd j of (8 / x^2 + 8 / (pi j)^2) exp(-(pi j)^2 / (2 x^2)).

    Examples
    --------
    >>> from calipers.metrics.reliability import range_cdf
    >>> round(range_cdf(1.5145), 4)
    0.5
    """
    if math.isnan(x):
        return math.nan
    if x <= 0:
        return 0.0
    if x > _SWITCH:
        return 1.0 - range_survival(x)
    a = math.pi**2 * _ODD_SQUARED
    with np.errstate(over="ignore", under="ignore"):
        terms = np.exp(-a / (2 * x * x)) * (8 / (x * x) + 8 / a) if x > 1e-3 else np.zeros(1)
    return float(np.sum(terms))


def range_quantile(level: float) -> float:
    """The point that the range stays below with probability ``level``.

    Examples
    --------
    >>> from calipers.metrics.reliability import range_quantile
    >>> [round(range_quantile(level), 4) for level in (0.5, 0.9, 0.95, 0.99)]
    [1.5145, 2.2412, 2.4977, 3.0233]
    """
    from scipy import optimize

    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1, got {level!r}.")
    if level < 0.5:
        return float(optimize.brentq(lambda x: range_cdf(x) - level, 1e-2, 2.0, xtol=1e-13))
    tail = math.log1p(-level)
    return float(optimize.brentq(lambda x: math.log(range_survival(x)) - tail, 1.0, 12.0, xtol=1e-13))


def absolute_supremum_quantile(level: float) -> float:
    """The point that the largest absolute value of Brownian motion on [0, 1] stays below, at ``level``.

    P(sup |B| > x) = 4 sum_k (-1)^(k-1) Phi(-(2 k - 1) x), k = 1, 2, ...

    Examples
    --------
    >>> from calipers.metrics.reliability import absolute_supremum_quantile
    >>> round(absolute_supremum_quantile(0.95), 4)
    2.2414
    """
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1, got {level!r}.")

    def survival(x: float) -> float:
        return float(-4 * np.sum((-1.0) ** _K * special.ndtr(-(2 * _K - 1) * x)))

    from scipy import optimize

    return float(optimize.brentq(lambda x: survival(x) - (1 - level), 0.1, 12.0, xtol=1e-13))
