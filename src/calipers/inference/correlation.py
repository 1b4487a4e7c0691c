"""Correlations of rows: their error and their intervals."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from calipers.inference.effective_number import effective_quantile, effective_rows


@dataclass(frozen=True, slots=True)
class RowCorrelation:
    """Pearson's correlation of two columns, its standard error, and the rows that carry that.

    Examples
    --------
    >>> from calipers.inference import RowCorrelation
    >>> x, y = np.array([1.0, 2.0, 3.0, 5.0]), np.array([1.0, 3.0, 2.0, 4.0])
    >>> round(RowCorrelation.of(x, y).value, 3)
    0.832
    """

    value: float
    std_error: float
    rows: float

    @classmethod
    def of(cls, x: np.ndarray, y: np.ndarray) -> Self:
        """The correlation; 0 without error where one column is constant."""
        if min(np.ptp(x), np.ptp(y)) == 0:
            return cls(0.0, 0.0, 0.0)
        u, v = ((z - z.mean()) / z.std() for z in (x, y))
        r = float(np.mean(u * v))
        # Influence of a row on the correlation: u v - r (u^2 + v^2) / 2.
        influence = u * v - r * (u * u + v * v) / 2
        square = influence**2
        squares, fourths = float(np.sum(square)), float(np.sum(square**2))
        return cls(r, math.sqrt(squares) / x.size, effective_rows(squares, fourths))


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
