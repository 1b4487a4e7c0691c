"""p-values and levels for many tests at once.

Every function works along one axis and keeps the order. A NaN p-value marks a test that could not be
made: it stays NaN and is not counted among the tests.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calipers.exceptions import InputError
from calipers.inference.alternatives import Number
from calipers.inputs import check_confidence, check_count


def bonferroni(p_values: Number, *, axis: int = -1) -> np.ndarray:
    """Bonferroni's adjusted p-values: m p, at most 1. Any dependence; family-wise error.

    Parameters
    ----------
    p_values : array
        NaN marks a test that was not made.
    axis : int
        The axis along which tests form a family.

    Returns
    -------
    array
        Rejecting where it is at most a level keeps the chance of any false rejection below that level.

    Examples
    --------
    >>> from calipers.inference import bonferroni
    >>> bonferroni([0.01, 0.25, 0.5]).tolist()
    [0.03, 0.75, 1.0]
    """
    return _along(p_values, axis, lambda p, m: np.minimum(1.0, m * p))


def sidak(p_values: Number, *, axis: int = -1) -> np.ndarray:
    """Sidak's adjusted p-values: 1 - (1-p)^m. Exact for independent tests; family-wise error.

    Parameters
    ----------
    p_values, axis
        As in `bonferroni`; NaN marks a test that was not made.

    Returns
    -------
    array
        Adjusted p-values, without cancellation for tiny ones.

    Examples
    --------
    >>> from calipers.inference import sidak
    >>> sidak([0.5, 0.75]).tolist()
    [0.75, 0.9375]
    """

    def adjust(p: np.ndarray, m: np.ndarray) -> np.ndarray:
        # At p = 1 the logarithm is -inf and the answer 1.
        certain = p >= 1.0
        return -np.expm1(np.where(certain, -np.inf, m * np.log1p(-np.where(certain, 0.0, p))))

    return _along(p_values, axis, adjust)


def holm(p_values: Number, *, axis: int = -1) -> np.ndarray:
    """Holm's step-down adjusted p-values. Any dependence; family-wise error; never above `bonferroni`.

    Parameters
    ----------
    p_values, axis
        As in `bonferroni`; NaN marks a test that was not made.

    Returns
    -------
    array
        Adjusted p-values.

    Notes
    -----
    The i-th smallest of m becomes the largest of (m - l + 1) p_(l) over l <= i, at most 1 [1]_.

    References
    ----------
    .. [1] Holm (1979), Scandinavian Journal of Statistics 6, 65-70.

    Examples
    --------
    >>> from calipers.inference import holm
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """

    def adjust(p: np.ndarray, m: np.ndarray) -> np.ndarray:
        factors = np.maximum(m - np.arange(p.shape[-1]), 1)
        return np.minimum(1.0, np.maximum.accumulate(factors * p, axis=-1))

    return _along(p_values, axis, adjust, ordered=True)


def benjamini_hochberg(p_values: Number, *, axis: int = -1) -> np.ndarray:
    """Benjamini and Hochberg's step-up adjusted p-values. False discovery rate.

    Parameters
    ----------
    p_values, axis
        As in `bonferroni`; NaN marks a test that was not made.

    Returns
    -------
    array
        Rejecting where it is at most a level keeps the expected share of false rejections below that
        level, for independent and for positively dependent tests.

    Notes
    -----
    The i-th smallest of m becomes the smallest of m p_(l) / l over l >= i [1]_.

    References
    ----------
    .. [1] Benjamini and Hochberg (1995), Journal of the Royal Statistical Society B 57, 289-300.

    Examples
    --------
    >>> from calipers.inference import benjamini_hochberg
    >>> benjamini_hochberg([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.04, 0.04]
    """

    def adjust(p: np.ndarray, m: np.ndarray) -> np.ndarray:
        scaled = m * p / np.arange(1, p.shape[-1] + 1)
        # NaNs come last in sorted order; +inf lets the running minimum from the right pass over them.
        filled = np.where(np.isnan(scaled), np.inf, scaled)
        running = np.minimum.accumulate(filled[..., ::-1], axis=-1)[..., ::-1]
        return np.where(np.isnan(p), np.nan, np.minimum(1.0, running))

    return _along(p_values, axis, adjust, ordered=True)


def sidak_confidence(confidence: float, n_intervals: int) -> float:
    """The level of each of several independent intervals that together hold at ``confidence``.

    Parameters
    ----------
    confidence : float
        Level of all intervals together.
    n_intervals : int
        Their number.

    Returns
    -------
    float
        ``confidence ** (1 / n_intervals)``.

    Examples
    --------
    >>> from calipers.inference import sidak_confidence
    >>> round(sidak_confidence(0.95, 50), 6)
    0.998975
    """
    return float(check_confidence(confidence) ** (1.0 / check_count(n_intervals, name="n_intervals")))


def _along(
    p_values: Number,
    axis: int,
    adjust: Callable[[np.ndarray, np.ndarray], np.ndarray],
    *,
    ordered: bool = False,
) -> np.ndarray:
    p = np.moveaxis(np.asarray(p_values, dtype=float), axis, -1)
    wrong = (p < 0) | (p > 1)
    if np.any(wrong):
        raise InputError(f"p_values must lie in [0, 1] (NaN: not tested), got {p[wrong].flat[0]}.")
    m = np.sum(~np.isnan(p), axis=-1, keepdims=True)
    if not ordered:
        return np.moveaxis(adjust(p, m), -1, axis)
    order = np.argsort(p, axis=-1, kind="stable")
    adjusted = np.empty_like(p)
    np.put_along_axis(adjusted, order, adjust(np.take_along_axis(p, order, axis=-1), m), axis=-1)
    return np.moveaxis(adjusted, -1, axis)
