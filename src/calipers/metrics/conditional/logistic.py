"""Logistic regression around a given logit, with or without a Gaussian prior on its coefficients."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

_LONGEST_STEP = 2.0
_NEWTON_STEPS = 50


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
    centre = np.broadcast_to(np.asarray(centre, dtype=float), design.shape[1:])
    precision = np.broadcast_to(np.asarray(precision, dtype=float), design.shape[1:])

    def penalised(beta: np.ndarray) -> float:
        return log_likelihood(base + design @ beta, z, w) - 0.5 * float(precision @ (beta - centre) ** 2)

    beta = np.zeros(design.shape[1])
    reached = penalised(beta)
    for _ in range(_NEWTON_STEPS):
        step = _newton_step(design, z, base, w, beta, precision, centre)
        # Newton's step may overshoot far from the optimum: halve it until the objective rises.
        while (value := penalised(beta + step)) < reached - 1e-12 and np.abs(step).max() >= 1e-9:
            step *= 0.5
        if value < reached - 1e-12:
            break
        beta, reached = beta + step, value
        if np.abs(step).max() < 1e-8:
            break
    return beta, log_likelihood(base + design @ beta, z, w) - log_likelihood(base, z, w)


def _newton_step(
    design: np.ndarray,
    z: np.ndarray,
    base: np.ndarray,
    w: np.ndarray,
    beta: np.ndarray,
    precision: np.ndarray,
    centre: np.ndarray,
) -> np.ndarray:
    mean = expit(base + design @ beta)
    curvature = (design * (w * mean * (1.0 - mean))[:, None]).T @ design
    # A speck of ridge keeps constant columns and separated rows solvable.
    ridge = 1e-9 * (1.0 + np.trace(curvature))
    slope = design.T @ (w * (z - mean)) - ridge * beta - precision * (beta - centre)
    step = np.linalg.solve(curvature + np.diag(ridge + precision), slope)
    return np.asarray(step * min(1.0, _LONGEST_STEP / max(np.abs(step).max(), 1e-300)))


def log_likelihood(margin: np.ndarray, z: np.ndarray, w: np.ndarray) -> float:
    """Weighted log-likelihood of the outcomes z at the given logits."""
    return float(np.sum(w * (z * margin - np.logaddexp(0.0, margin))))
