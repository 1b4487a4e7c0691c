"""Binomial and hypergeometric probabilities to full precision at any size.

Differences of log-gamma functions lose ten digits at counts of 1e9. The saddle-point form [1]_ writes the
same logarithm as small corrections of Stirling's formula plus deviances, each computed without cancellation.

References
----------
.. [1] Loader (2000), Fast and accurate computation of binomial probabilities.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from calipers.inference.alternatives import Number

_HALF_LOG_TWO_PI = 0.5 * np.log(2.0 * np.pi)
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)


def log_binomial_mass(x: Number, n: Number, p: Number, q: Number) -> np.ndarray:
    """Logarithm of P(K = x) for K ~ Binomial(n, p), q = 1 - p, both positive; -inf outside 0..n."""
    x, n, p, q = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (x, n, p, q)))
    inside = (x > 0) & (x < n)
    # Stand-ins for the ends keep every logarithm finite; the ends are written last.
    y, m = np.where(inside, x, 1.0), np.where(inside, n, 2.0)
    corrections = stirling_error(m) - stirling_error(y) - stirling_error(m - y)
    deviances = deviance(y, m * p) + deviance(m - y, m * q)
    interior = corrections - deviances - _HALF_LOG_TWO_PI - 0.5 * np.log(y * ((m - y) / m))
    # The logarithm of the larger of p and q is taken from the smaller, which carries the digits.
    log_p = np.where(p > 0.5, np.log1p(-np.minimum(q, 0.5)), np.log(p))
    log_q = np.where(q > 0.5, np.log1p(-np.minimum(p, 0.5)), np.log(q))
    ends = np.where(x == 0, n * log_q, np.where(x == n, n * log_p, -np.inf))
    return np.where(inside, interior, ends)


def log_hypergeometric_mass(x: Number, marked: Number, unmarked: Number, draws: Number) -> np.ndarray:
    """Logarithm of P(H = x): x marked among ``draws`` taken without replacement.

    A ratio of three binomial masses that holds for any common p; p = draws / total puts all three
    near their modes.
    """
    x, r, b, d = np.broadcast_arrays(*(np.asarray(v, dtype=float) for v in (x, marked, unmarked, draws)))
    total = r + b
    inner = (d > 0) & (d < total)
    p = np.where(inner, d / total, 0.5)
    q = np.where(inner, (total - d) / total, 0.5)
    first, second, third = log_binomial_mass(np.stack([x, d - x, d]), np.stack([r, b, total]), p, q)
    return np.asarray(first + second - third)


def stirling_error(n: np.ndarray) -> np.ndarray:
    """log(n!) minus Stirling's formula (n + 1/2) log n - n + log(2 pi)/2, for n >= 1."""
    n = np.asarray(n, dtype=float)
    square = 1.0 / (n * n)
    series = np.zeros_like(n)
    for coefficient in reversed(_STIRLING):
        series = series * square + coefficient
    small = np.minimum(n, 16.0)
    direct = special.gammaln(small + 1.0) - (small + 0.5) * np.log(small) + small - _HALF_LOG_TWO_PI
    # Five terms of the series are exact to rounding from 16 on.
    return np.asarray(np.where(n < 16.0, direct, series / n))


def deviance(x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Half a Poisson deviance, x log(x / mean) + mean - x, without cancellation where they are close."""
    x, mean = np.asarray(x, dtype=float), np.asarray(mean, dtype=float)
    gap = x - mean
    v = gap / (x + mean)
    close = np.abs(v) < 0.1
    # log(x / mean) = 2 atanh(v) = 2 (v + v^3/3 + v^5/5 + ...).
    square = np.where(close, v * v, 0.0)
    series = np.zeros_like(square)
    for k in range(9, 0, -1):
        series = (series + 1.0 / (2 * k + 1)) * square
    near = gap * v + 2.0 * x * v * series
    far = x * np.log(x / mean) - gap
    return np.asarray(np.where(close, near, far))
