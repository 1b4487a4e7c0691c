"""Bins of equal mass along the ease (eq. 2)."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.inputs import check_count, check_vector
from calipers.inputs.option_checks import check_number


def uniform_mass_limits(total: float, n_bins: int) -> np.ndarray:
    """Where bins of equal mass end, eq. 2: 0, floor(N/B), floor(2N/B), ..., N.

    A fractional total mass (weights that are not whole) is divided without rounding down.

    Parameters
    ----------
    total : int or float
        Rows, or their total weight.
    n_bins : int
        Bins wanted.

    Returns
    -------
    array (n_bins + 1,)
        Positions in sorted order, 0 first and the total last.

    Examples
    --------
    >>> from calipers.difficulty import uniform_mass_limits
    >>> uniform_mass_limits(10, 4).tolist(), uniform_mass_limits(2, 4).tolist()
    ([0, 2, 5, 7, 10], [0, 0, 1, 1, 2])
    """
    check_count(n_bins, name="n_bins")
    check_number(total, name="total", low=0.0, high=1e150)
    if isinstance(total, (int, np.integer)):
        if n_bins * int(total) < 1 << 62:
            return np.arange(n_bins + 1) * int(total) // n_bins
        # Python integers: b N does not overflow.
        return np.array([b * int(total) // n_bins for b in range(n_bins + 1)])
    return np.linspace(0.0, float(total), n_bins + 1)


def uniform_mass_bins(ease: Any, n_bins: int) -> np.ndarray:
    """The bin of every row, eq. 2 to the letter: 0 is the hardest, equal values in row order.

    The metrics do not use it where ties cross an edge: they share such rows between bins.

    Parameters
    ----------
    ease : array of shape (n,)
        Ease of every row.
    n_bins : int
        Bins wanted; with more bins than rows some are empty.

    Returns
    -------
    integer array (n,)
        Bin of every row, from 0.

    Examples
    --------
    >>> from calipers.difficulty import uniform_mass_bins
    >>> uniform_mass_bins([0.9, 0.1, 0.5, 0.7], 2).tolist()
    [1, 0, 0, 1]
    """
    values = as_numpy(check_vector(ease, name="ease"))
    limits = uniform_mass_limits(values.size, n_bins)
    bins = np.empty(values.size, dtype=np.int64)
    bins[np.argsort(values, kind="stable")] = np.repeat(np.arange(n_bins), np.diff(limits))
    return bins
