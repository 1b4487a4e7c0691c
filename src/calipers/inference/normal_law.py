"""The quantile of the normal law that intervals of estimates with a standard error take."""

from __future__ import annotations

from scipy import special


def normal_quantile(confidence: float) -> float:
    """Standard errors to either side of a normal mean that hold it with this confidence.

    Parameters
    ----------
    confidence : float
        Level of the interval.

    Returns
    -------
    float

    Examples
    --------
    >>> from calipers.inference import normal_quantile
    >>> round(normal_quantile(0.95), 6)
    1.959964
    """
    return float(special.ndtri((1.0 + confidence) / 2.0))
