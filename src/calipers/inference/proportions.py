"""Intervals and exact tests for a share of rows.

Counts may be weighted. Weights mean repetition, so a whole weight gives exactly what the repeated
rows give; between whole counts the Beta law of the ends interpolates smoothly, and what is exact at
whole counts is then an approximation.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy import special

from calipers.exceptions import InputError
from calipers.inference.alternatives import Number, check_alternative
from calipers.inputs import check_confidence

# Sums of weights reach their total only up to rounding.
_ROUNDING = 1e-12


class Interval(NamedTuple):
    """Two ends: floats for scalar input, arrays for array input."""

    low: Number
    high: Number


def clopper_pearson(
    successes: Number, n: Number, *, confidence: float = 0.95, alternative: str = "two-sided"
) -> Interval:
    """Exact interval for a probability: it holds the truth in at least ``confidence`` of all samples.

    Parameters
    ----------
    successes, n : float or array
        Count of successes and of trials (or their weights), broadcast against each other.
    confidence : float
        Level. For m intervals that must hold together pass ``sidak_confidence(confidence, m)``.
    alternative : {"two-sided", "greater", "less"}
        Both ends at half the error each, or all the error at the low end ("greater": the high end
        is 1) or at the high end ("less": the low end is 0).

    Returns
    -------
    Interval
        ``low`` is exactly 0 without successes and ``high`` exactly 1 without failures. Without
        trials the interval is [0, 1].

    Raises
    ------
    InputError
        When a count is negative, exceeds n, or is not finite.

    Notes
    -----
    The ends are quantiles of Beta(s, n-s+1) and Beta(s+1, n-s) [1]_. The interval holds exactly the
    probabilities that `binomial_p_value` does not reject. It never undercovers and pays for that in
    width; `wilson` is shorter and right on average only.

    References
    ----------
    .. [1] Clopper and Pearson (1934), Biometrika 26, 404-413.

    Examples
    --------
    >>> from calipers.inference import clopper_pearson
    >>> low, high = clopper_pearson(682, 925)
    >>> print(f"{low:.7f} {high:.7f}")
    0.7076683 0.7654066
    """
    error = _error_per_end(confidence, alternative)
    if isinstance(successes, float) and isinstance(n, float) and 0 <= successes <= n < np.inf:
        return _interval_of_one(successes, n, error, alternative)
    s, n = _counts(successes, n)
    low, high = np.zeros(s.shape), np.ones(s.shape)
    if alternative != "less":
        inner = s > 0
        low[inner] = special.betaincinv(s[inner], n[inner] - s[inner] + 1, error)
    if alternative != "greater":
        inner = s < n
        # The complement keeps its digits when the error is tiny, as after a Sidak adjustment.
        high[inner] = special.betainccinv(s[inner] + 1, n[inner] - s[inner], error)
    return Interval(low[()], high[()])


def _interval_of_one(s: float, n: float, error: float, alternative: str) -> Interval:
    """The interval of one count, as most callers have: the same quantiles without the arrays around them."""
    low = high = None
    if alternative != "less" and s > 0:
        low = special.betaincinv(s, n - s + 1, error)
    if alternative != "greater" and s < n:
        high = special.betainccinv(s + 1, n - s, error)
    return Interval(np.float64(0.0 if low is None else low), np.float64(1.0 if high is None else high))


def wilson(
    successes: Number, n: Number, *, confidence: float = 0.95, alternative: str = "two-sided"
) -> Interval:
    """Score interval for a probability: close to ``confidence`` on average, not at every truth.

    Parameters
    ----------
    successes, n, confidence, alternative
        As in `clopper_pearson`.

    Returns
    -------
    Interval
        Inside [0, 1]; exactly 0 without successes, exactly 1 without failures.

    Notes
    -----
    The probabilities p with ``|s/n - p| <= z sqrt(p (1-p) / n)`` [1]_.

    References
    ----------
    .. [1] Wilson (1927), Journal of the American Statistical Association 22, 209-212.

    Examples
    --------
    >>> from calipers.inference import wilson
    >>> low, high = wilson(81, 263)
    >>> print(f"{low:.4f} {high:.4f}")
    0.2553 0.3662
    """
    s, n = _counts(successes, n)
    z = -special.ndtri(_error_per_end(confidence, alternative))
    safe = np.where(n > 0, n, 1.0)
    centre = (s + z * z / 2) / (safe + z * z)
    half = z * np.sqrt(s * (safe - s) / safe + z * z / 4) / (safe + z * z)
    low = np.where((s > 0) & (alternative != "less"), np.maximum(centre - half, 0.0), 0.0)
    high = np.where((s < n) & (alternative != "greater"), np.minimum(centre + half, 1.0), 1.0)
    return Interval(low[()], high[()])


def binomial_p_value(
    successes: Number, n: Number, probability: Number, *, alternative: str = "two-sided"
) -> Number:
    """Exact p-value of a count against Binomial(n, probability).

    Parameters
    ----------
    successes, n, probability : float or array
        Counts and the probability under the null, broadcast against each other.
    alternative : {"two-sided", "greater", "less"}
        "greater": P(K >= s); "less": P(K <= s).

    Returns
    -------
    float or array
        In (0, 1]; 1 without trials.

    Notes
    -----
    Two-sided is **twice the smaller tail**, at most 1. The rival rule, the mass of all counts no
    likelier than the one seen, is a little more powerful on skewed laws, but its p-value is not
    monotone in the probability, does not match any interval, and costs a search. Doubling matches
    `clopper_pearson` exactly (p > 1 - confidence exactly inside the interval) and costs two incomplete
    Beta functions.

    Examples
    --------
    >>> from calipers.inference import binomial_p_value
    >>> float(binomial_p_value(0, 10, 0.5))     # 2 / 1024
    0.001953125
    """
    check_alternative(alternative)
    s, n = _counts(successes, n)
    p = np.asarray(probability, dtype=float)
    if not np.all((p >= 0) & (p <= 1)):
        raise InputError(f"probability must lie in [0, 1], got {p[~((p >= 0) & (p <= 1))].flat[0]}.")
    s, n, p = np.broadcast_arrays(s, n, p)
    tails = binomial_tails(s, n, p, 1.0 - p)
    return combine_tails(*tails, alternative)[()]


def binomial_tails(
    s: np.ndarray, n: np.ndarray, p: np.ndarray, q: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """P(K <= s) and P(K >= s) for K binomial with success p and failure q = 1 - p, 0 <= s <= n.

    Both p and q are taken so that neither loses digits when the other is close to 1.
    """
    return binomial_lower_tail(s, n, p, q), binomial_upper_tail(s, n, p, q)


def binomial_lower_tail(s: np.ndarray, n: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """P(K <= s) = I_q(n-s, s+1), as in `binomial_tails`; 1 at s = n, where the first argument is 0."""
    a, b = np.where(s < n, n - s, 1.0), s + 1.0
    tail = _by_smaller(special.betainc, a, b, special.betaincc, p, q)
    return np.where(s < n, tail, 1.0)


def binomial_upper_tail(s: np.ndarray, n: np.ndarray, p: np.ndarray, q: np.ndarray) -> np.ndarray:
    """P(K >= s) = I_p(s, n-s+1), as in `binomial_tails`; 1 at s = 0, where the first argument is 0."""
    a, b = n - s + 1.0, np.where(s > 0, s, 1.0)
    tail = _by_smaller(special.betaincc, a, b, special.betainc, p, q)
    return np.where(s > 0, tail, 1.0)


def _by_smaller(
    of_q: np.ufunc, a: np.ndarray, b: np.ndarray, of_p: np.ufunc, p: np.ndarray, q: np.ndarray
) -> np.ndarray:
    """``of_q(a, b, q)``, or the same number as ``of_p(b, a, p)`` where p is the smaller of the two."""
    small = np.asarray(q <= p)
    # An incomplete Beta function is the whole cost: a branch that is not read is not computed.
    if small.all():
        return np.asarray(of_q(a, b, q))
    if not small.any():
        return np.asarray(of_p(b, a, p))
    x = np.where(small, q, p)
    return np.asarray(np.where(small, of_q(a, b, x), of_p(b, a, x)))


def tails_of_one(s: float, n: float, p: float, q: float) -> tuple[float, float]:
    """`binomial_tails` of a single count, without arrays: the same numbers in a tenth of the time.

    Examples
    --------
    >>> from calipers.inference.proportions import tails_of_one
    >>> [float(tail) for tail in tails_of_one(0.0, 2.0, 0.5, 0.5)]
    [0.25, 1.0]
    """
    lower: Number = 1.0
    upper: Number = 1.0
    by_q = q <= p
    if s < n:
        lower = special.betainc(n - s, s + 1.0, q) if by_q else special.betaincc(s + 1.0, n - s, p)
    if s > 0:
        upper = special.betaincc(n - s + 1.0, s, q) if by_q else special.betainc(s, n - s + 1.0, p)
    return lower, upper


def combine_tails(lower: Number, upper: Number, alternative: str) -> np.ndarray:
    """The p-value from P(K <= s) and P(K >= s): one tail, or twice the smaller one."""
    if alternative == "greater":
        return np.asarray(upper)
    if alternative == "less":
        return np.asarray(lower)
    return np.asarray(np.minimum(1.0, 2.0 * np.minimum(lower, upper)))


def _error_per_end(confidence: float, alternative: str) -> float:
    error = 1.0 - check_confidence(confidence)
    return error / 2 if check_alternative(alternative) == "two-sided" else error


def _counts(successes: Number, n: Number) -> tuple[np.ndarray, np.ndarray]:
    s, n = np.broadcast_arrays(np.asarray(successes, dtype=float), np.asarray(n, dtype=float))
    wrong = ~((s >= 0) & (s <= n * (1 + _ROUNDING)) & np.isfinite(n))
    if np.any(wrong):
        raise InputError(
            "successes must lie between 0 and n, "
            f"got {s[wrong].flat[0]:g} of {n[wrong].flat[0]:g}. Pass counts, not shares."
        )
    return np.minimum(s, n), n
