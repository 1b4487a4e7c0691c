"""Minimum calibration error over a link family, by a sequence of linear programs.

With levels in increasing order of the score, S_k the cumulative outcomes and Z_k(theta) the cumulative
predictions, the objective of Section 3.2.3 of the paper is

    max over a < b of |(S_b - Z_b) - (S_a - Z_a)| = u - l,    l <= S_k - Z_k(theta) <= u,  l <= 0 <= u.

For Z linear in theta that is one linear program. Here Z is smooth: it is linearised at the current
point, the program is solved inside a box (a trust region), and the step is kept when the true objective
falls. The program sees a few hundred of the k; the most violated others are added until none is left.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit

_N_POINTS = 400
_MAX_STEPS = 60
_SMALLEST_RADIUS = 1e-7


class Walk(NamedTuple):
    """S_k - Z_k at every level, as shares of the total weight, and its derivative in theta."""

    gaps: np.ndarray
    slopes: np.ndarray


def index_error(gaps: np.ndarray) -> float:
    """The largest absolute difference of two readings, the leading 0 among them."""
    return float(max(gaps.max(), 0.0) - min(gaps.min(), 0.0))


def minimum_error(
    features: np.ndarray, means: np.ndarray, weights: np.ndarray, start: np.ndarray, lower: np.ndarray
) -> np.ndarray:
    """Coefficients that locally minimise the index-wise calibration error, never worse than ``start``."""
    theta = np.maximum(start, lower)
    walk = _walk(features, means, weights, theta)
    error, radius = index_error(walk.gaps), 0.5
    active = np.unique(np.linspace(0, means.size - 1, _N_POINTS).astype(np.int64))
    for _ in range(_MAX_STEPS):
        step, predicted, active = _solve(walk, active, radius, lower - theta)
        if error - predicted <= 1e-10 or radius < _SMALLEST_RADIUS:
            break
        trial = np.maximum(theta + step, lower)
        there = _walk(features, means, weights, trial)
        gain = (error - index_error(there.gaps)) / (error - predicted)
        if gain > 0:
            theta, walk, error = trial, there, index_error(there.gaps)
        radius *= 2.0 if gain > 0.75 else (0.25 if gain < 0.25 else 1.0)
    return np.asarray(theta)


def _walk(features: np.ndarray, means: np.ndarray, weights: np.ndarray, theta: np.ndarray) -> Walk:
    share = weights / weights.sum()
    fitted = expit(features @ theta)
    gaps = np.cumsum(share * (means - fitted))
    slopes = np.cumsum(features * (share * fitted * (1 - fitted))[:, None], axis=0)
    return Walk(gaps, slopes)


def _solve(
    walk: Walk, active: np.ndarray, radius: float, lower: np.ndarray
) -> tuple[np.ndarray, float, np.ndarray]:
    """The best step of the linearised problem in the box, its value, and the points that decided it."""
    while True:
        step, high, low = _program(walk, active, radius, lower)
        line = walk.gaps - walk.slopes @ step
        worst = [int(np.argmax(line)), int(np.argmin(line))]
        missing = [
            k for k, off in zip(worst, (line.max() - high, low - line.min()), strict=True) if off > 1e-10
        ]
        if not missing or set(missing) <= set(active.tolist()):
            return step, index_error(line), active
        active = np.union1d(active, missing)


def _program(
    walk: Walk, active: np.ndarray, radius: float, lower: np.ndarray
) -> tuple[np.ndarray, float, float]:
    gaps, slopes = walk.gaps[active], walk.slopes[active]
    ones, zeros = np.ones((active.size, 1)), np.zeros((active.size, 1))
    d = slopes.shape[1]
    # gap - slope . step <= high and >= low; minimise high - low.
    matrix = np.block([[-slopes, -ones, zeros], [slopes, zeros, ones]])
    bounds = [(max(float(b), -radius), radius) for b in lower] + [(0.0, None), (None, 0.0)]
    cost = np.concatenate([np.zeros(d), [1.0, -1.0]])
    solved = linprog(cost, A_ub=matrix, b_ub=np.concatenate([-gaps, gaps]), bounds=bounds, method="highs")
    if solved.x is None:  # the box always holds the zero step, so only a numerical fault ends here
        return np.zeros(d), max(float(gaps.max()), 0.0), min(float(gaps.min()), 0.0)
    return np.asarray(solved.x[:d]), float(solved.x[d]), float(solved.x[d + 1])
