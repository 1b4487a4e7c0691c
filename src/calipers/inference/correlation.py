"""Intervals of correlations."""

from __future__ import annotations

import math

from calipers.inference.effective_number import effective_quantile


def correlation_interval(
    correlation: float, std_error: float, confidence: float, *, rows: float = math.inf
) -> tuple[float, float]:
    """Interval of a correlation, normal on Fisher's scale ``z = atanh(r)``.

    Parameters
    ----------
    correlation : float
        Strictly between -1 and 1.
    std_error : float
        Its standard error.
    confidence : float
        Level of the interval.
    rows : float
        Rows that carry the standard error (`effective_rows`).

    Returns
    -------
    (low, high) : tuple of float
        Inside (-1, 1).

    Examples
    --------
    >>> from calipers.inference import correlation_interval
    >>> low, high = correlation_interval(0.8, 0.05, 0.95)
    >>> print(f"{low:.3f} {high:.3f}")
    0.679 0.879
    """
    half = effective_quantile(confidence, rows) * std_error / (1.0 - correlation * correlation)
    centre = math.atanh(correlation)
    return math.tanh(centre - half), math.tanh(centre + half)
