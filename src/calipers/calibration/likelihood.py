"""Maximum likelihood of log-odds that are linear in few features, under lower bounds: exact Newton steps."""

from __future__ import annotations

import numpy as np
from scipy.linalg import cholesky, solve_triangular
from scipy.optimize import lsq_linear
from scipy.special import expit

# Pulls the coefficients to their start with the force of a millionth of a row: invisible on ordinary
# data, and a finite answer where the classes are separated and the likelihood has no maximum.
_RIDGE = 1e-6
_MAX_STEPS = 100
_TOLERANCE = 1e-11


def maximum_likelihood(
    features: np.ndarray, means: np.ndarray, weights: np.ndarray, start: np.ndarray, lower: np.ndarray
) -> np.ndarray:
    """Coefficients that maximise the weighted Bernoulli likelihood with ``coefficients >= lower``.

    ``means`` are the mean outcomes of the rows (or levels) and ``weights`` their sizes. The problem is
    convex; each Newton step solves its quadratic model under the bounds exactly (an active-set method in
    as many dimensions as there are features), then halves the step until the likelihood rises.
    """
    theta = np.maximum(start, lower)
    value = _loss(features @ theta, means, weights, theta - start)
    for _ in range(_MAX_STEPS):
        odds = features @ theta
        fitted = expit(odds)
        gradient = features.T @ (weights * (fitted - means)) + _RIDGE * (theta - start)
        curvature = features.T @ (features * (weights * fitted * (1 - fitted))[:, None])
        curvature[np.diag_indices_from(curvature)] += _RIDGE
        step = _bounded_newton(curvature, gradient, lower - theta)
        decrease = -float(gradient @ step)
        if decrease <= _TOLERANCE * max(1.0, abs(value)):
            break
        theta, value = _line_search(features, means, weights, start, theta, value, step, decrease)
    return np.asarray(np.maximum(theta, lower))


def _loss(odds: np.ndarray, means: np.ndarray, weights: np.ndarray, away: np.ndarray) -> float:
    return float(weights @ (np.logaddexp(0.0, odds) - means * odds)) + 0.5 * _RIDGE * float(away @ away)


def _bounded_newton(curvature: np.ndarray, gradient: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """The minimiser of gradient . d + d' curvature d / 2 with d >= lower."""
    scale = np.sqrt(np.diag(curvature))
    root = cholesky(curvature / np.outer(scale, scale) + 1e-14 * np.eye(scale.size))
    plain = -solve_triangular(root, solve_triangular(root, gradient / scale, trans="T"))
    if not (plain >= lower * scale).all():
        target = -solve_triangular(root, gradient / scale, trans="T")
        bounds = (np.minimum(lower * scale, 0.0), np.full(scale.size, np.inf))
        plain = lsq_linear(root, target, bounds=bounds, method="bvls", tol=1e-14).x
    return np.asarray(plain / scale)


def _line_search(
    features: np.ndarray,
    means: np.ndarray,
    weights: np.ndarray,
    start: np.ndarray,
    theta: np.ndarray,
    value: float,
    step: np.ndarray,
    decrease: float,
) -> tuple[np.ndarray, float]:
    size = 1.0
    for _ in range(40):
        trial = theta + size * step
        found = _loss(features @ trial, means, weights, trial - start)
        if found <= value - 1e-4 * size * decrease:
            return trial, found
        size /= 2
    return theta, value
