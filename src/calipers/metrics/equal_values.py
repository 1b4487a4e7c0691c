"""Widths that are equal but for rounding: (f + q) - (f - q) is not 2q in the last digits."""

from __future__ import annotations

import numpy as np

# Values this close to each other, relative to their size, are one value.
EQUAL = 1e-9


def pool_equal(values: np.ndarray) -> np.ndarray:
    """The values, those within a part in 10^9 of each other made equal to the smallest of them.

    Parameters
    ----------
    values : array (n,)
        Finite numbers, such as widths of intervals.

    Returns
    -------
    float array (n,)
        A run of values that are close one by one, but not all to its first, is cut where they are not.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.equal_values import pool_equal
    >>> pool_equal(np.array([0.1 + 0.2, 0.3, 0.31])).tolist()
    [0.3, 0.3, 0.31]
    """
    levels, codes = np.unique(np.asarray(values, dtype=float), return_inverse=True)
    starts = np.flatnonzero(np.append(True, np.diff(levels) > EQUAL * np.abs(levels[1:])))
    first = levels[np.repeat(starts, np.diff(np.append(starts, levels.size)))]
    pooled = np.where(levels - first <= EQUAL * np.abs(levels), first, np.nan)
    for i in np.flatnonzero(np.isnan(pooled)):  # rare: values as dense as rounding
        near = levels[i] - pooled[i - 1] <= EQUAL * abs(levels[i])
        pooled[i] = pooled[i - 1] if near else levels[i]
    return np.asarray(pooled[codes.reshape(-1)])


# Rounding of the ends that is larger than this share of the width is no longer rounding.
_COARSEST = 0.01
_MOST_DECIMALS = 9


def is_one_width(lower: np.ndarray, upper: np.ndarray) -> bool:
    """Whether intervals have one width, up to the precision at which their ends are stated.

    Parameters
    ----------
    lower, upper : array (n,)
        Finite ends.

    Returns
    -------
    bool
        Whether the widths differ by no more than the rounding of the ends: one unit of the last decimal that
        any of them has (ends in a file), of single precision where all of them have it, or of double. Units
        above a hundredth of the mean width are not rounding: whole numbers 2 and 3 apart are two widths.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.equal_values import is_one_width
    >>> middle = np.random.default_rng(0).normal(size=100)
    >>> is_one_width((middle - 1.645).round(3), (middle + 1.645).round(3))
    True
    >>> is_one_width(middle - 1.645, middle + 1.645 + 0.001 * (middle > 0))
    False
    """
    ends = np.concatenate([lower, upper]).astype(float)
    width = np.asarray(upper, dtype=float) - np.asarray(lower, dtype=float)
    spread, mean = float(np.ptp(width)), float(width.mean())
    unit = min(_unit_of(ends), _COARSEST * mean)
    return spread <= max(unit, EQUAL * mean) * (1 + 1e-6)


def _unit_of(ends: np.ndarray) -> float:
    """How finely numbers are stated: their last decimal, or the spacing of floating-point numbers."""
    with np.errstate(over="ignore", invalid="ignore"):  # what is too large for it is not stated so coarsely
        single = np.array_equal(ends.astype(np.float32).astype(float), ends)
        exact = (d for d in range(_MOST_DECIMALS + 1) if np.array_equal(np.round(ends, d), ends))
        last = next(exact, None)
    spacing = float(np.abs(ends).max(initial=0.0)) * float(np.finfo(np.float32 if single else np.float64).eps)
    return max(2.0 * spacing, 0.0 if last is None else 10.0**-last)
