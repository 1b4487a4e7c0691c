"""Intervals of the normal law: how many standard errors a confidence is worth."""

from __future__ import annotations

import math

from scipy import special


def normal_radius(confidence: float) -> float:
    """Standard errors on either side of a normal interval that holds the truth with that confidence.

    Examples
    --------
    >>> from calipers.inference import normal_radius
    >>> round(normal_radius(0.95), 6), round(normal_radius(0.9), 6)
    (1.959964, 1.644854)
    """
    return -float(special.ndtri((1.0 - confidence) / 2.0))


def correlation_interval(correlation: float, std_error: float, confidence: float) -> tuple[float, float]:
    """Interval of a correlation below 1 in size, normal on Fisher's scale ``z = atanh(r)``.

    Examples
    --------
    >>> from calipers.inference import correlation_interval
    >>> low, high = correlation_interval(0.8, 0.05, 0.95)
    >>> print(f"{low:.3f} {high:.3f}")
    0.679 0.879
    """
    half = normal_radius(confidence) * std_error / (1.0 - correlation * correlation)
    centre = math.atanh(correlation)
    return math.tanh(centre - half), math.tanh(centre + half)
