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
