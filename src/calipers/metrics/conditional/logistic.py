"""Logistic regression around a given logit, with or without a Gaussian prior on its coefficients."""

from __future__ import annotations

import numpy as np

from calipers.inference import fit_logistic, logistic_log_likelihood

# Ridge per unit of weight where no prior is given.
_SPECK = 1e-9


def logistic_gain(
    design: np.ndarray,
    z: np.ndarray,
    base: np.ndarray,
    w: np.ndarray,
    *,
    centre: np.ndarray | float = 0.0,
    precision: np.ndarray | float = 0.0,
) -> tuple[np.ndarray, float]:
    """Coefficients of a logistic regression around ``base``, and its gain in log-likelihood over 0.

    The coefficients maximise the log-likelihood minus ``sum precision (beta - centre)^2 / 2``.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.conditional.logistic import logistic_gain
    >>> z, base, w = np.array([1.0, 1.0, 1.0, 0.0]), np.zeros(4), np.ones(4)
    >>> beta, gain = logistic_gain(np.ones((4, 1)), z, base, w)
    >>> [round(float(v), 4) for v in (beta[0], gain)]                   # log 3, and 3 log 1.5 + log 0.5
    [1.0986, 0.5232]
    """
    total = float(w.sum())
    # A speck of ridge keeps constant columns and separated rows solvable.
    ridge = np.maximum(np.asarray(precision, dtype=float) / total, _SPECK)
    start = np.broadcast_to(np.asarray(centre, dtype=float), design.shape[1:])
    fit = fit_logistic(design, z, weights=w, offset=base, start=start, ridge=ridge)
    return fit.coefficients, fit.log_likelihood - logistic_log_likelihood(base, z, w)
