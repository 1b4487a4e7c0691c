"""A band for the running mean of numbers in [0, 1] that holds at all times at once."""

from __future__ import annotations

import numpy as np
from scipy import special

# Rates of the mixed exponential supermartingales: each is tight at its own age of the stream.
_RATES = np.geomspace(1e-4, 0.8, 40)
_COST = -np.log1p(-_RATES) - _RATES
_BISECTIONS = 60


def running_mean_radius(surprise: np.ndarray, rows: np.ndarray, error: float) -> np.ndarray:
    """Half-width of a confidence sequence for the running mean.

    Parameters
    ----------
    surprise : array (k,)
        Sum of (x_i - xhat_i)^2 so far, xhat_i in [0, 1] computed from the rows before i only.
    rows : array (k,)
        Rows so far.
    error : float
        Probability that the band, to either side, ever misses the running mean of the conditional means.

    Returns
    -------
    array (k,)
        At most 1.

    Notes
    -----
    For every rate r in (0, 1), exp(r sum(x_i - mu_i) - psi(r) V) with psi(r) = -log(1 - r) - r and V the sum
    of squared surprises is a supermartingale, whatever the means mu_i [1]_; so is their mixture over rates.
    The half-width is where it reaches 2 / error, divided by the rows.

    References
    ----------
    .. [1] Howard, Ramdas, McAuliffe and Sekhon (2021), Time-uniform, nonparametric, nonasymptotic confidence
       sequences, Annals of Statistics 49, Theorem 4.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.confidence_sequence import running_mean_radius
    >>> running_mean_radius(np.array([9.0, 900.0]), np.array([100, 10_000]), 0.05).round(3)
    array([0.155, 0.011])
    """
    target = np.log(2.0 / error) + np.log(_RATES.size)
    low, high = np.zeros(surprise.shape), np.asarray(rows, dtype=np.float64)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        above = special.logsumexp(np.outer(middle, _RATES) - np.outer(surprise, _COST), axis=1) > target
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return np.asarray(np.minimum(high / rows, 1.0))
