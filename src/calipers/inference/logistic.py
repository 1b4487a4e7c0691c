"""Logistic regression on few features by Newton steps: offset, weights, bounds, separated outcomes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.linalg import LinAlgError
from scipy.special import expit

from calipers.arrays import short_repr

_MOST_STEPS = 100
_MOST_HALVINGS = 40
# The last step moves the coefficients by at most this share of their standard error (were all weights one);
# Newton steps converge quadratically, so what is left after it is about the square.
_LAST_STEP = 1e-4
# Log-likelihood per unit of weight that is rounding.
_ROUNDING = 1e-14
# Where no maximum exists every step moves some log-odds by about 1, however little likelihood is gained.
_SMALL_MOVE = 1e-3


@dataclass(frozen=True, slots=True, eq=False)
class LogisticFit:
    """Coefficients of a logistic regression and what was left.

    Parameters
    ----------
    coefficients : array of shape (k,)
        The estimates.
    log_odds : array of shape (n,)
        Fitted, per row, the offset included.
    log_likelihood : float
        Of the rows, without the ridge.
    converged : bool
        False when the likelihood has no single maximum: the outcomes are separated by the features, or the
        features depend on each other. Coefficients are then finite and mean nothing.
    design : array of shape (n, k)
        The features.
    weights : array of shape (n,)
        The weights.
    """

    coefficients: np.ndarray
    log_odds: np.ndarray
    log_likelihood: float
    converged: bool
    design: np.ndarray
    weights: np.ndarray

    __repr__ = short_repr

    @property
    def fitted(self) -> np.ndarray:
        """Probability of the event, per row."""
        return np.asarray(expit(self.log_odds))

    @property
    def information(self) -> np.ndarray:
        """Fisher information without the ridge; its inverse is the covariance when weights repeat rows."""
        return _information(self.design, self.weights, expit(-np.abs(self.log_odds)))


def fit_logistic(
    design: np.ndarray,
    outcomes: np.ndarray,
    *,
    weights: np.ndarray | None = None,
    offset: np.ndarray | None = None,
    start: np.ndarray | None = None,
    lower: np.ndarray | None = None,
    ridge: float | np.ndarray = 0.0,
) -> LogisticFit:
    """Coefficients that maximise the Bernoulli likelihood of ``logit P(event) = offset + design @ b``.

    Parameters
    ----------
    design : array of shape (n, k)
        Features; a column of ones for an intercept.
    outcomes : array of shape (n,)
        Whether the event happened, or the share of a row's weight in which it did.
    weights : array of shape (n,) or None
        Weight of every row.
    offset : array of shape (n,) or None
        Log-odds that are given.
    start : array of shape (k,) or None
        First coefficients, 0 by default.
    lower : array of shape (k,) or None
        Lower bounds of the coefficients; -inf for none.
    ridge : float or array of shape (k,)
        Adds ``sum ridge (b - start)^2 / 2`` times the total weight to the loss, a Gaussian prior around
        ``start``: 1e-9 weighs a billionth of the rows, and gives separated outcomes a finite answer.

    Returns
    -------
    LogisticFit
        Coefficients, fitted probabilities, information, and whether there was a maximum.

    Notes
    -----
    The problem is convex. Each Newton step minimises its quadratic model, under the bounds by an active-set
    method, and is halved until the likelihood rises. Cost: O(n k^2) per step, about six steps.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import fit_logistic
    >>> x = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])
    >>> y = np.array([0.0, 0.0, 1.0, 0.0, 1.0, 1.0])
    >>> fit_logistic(np.column_stack([np.ones(6), x]), y).coefficients.round(4)
    array([-0.6931,  1.3863])
    """
    n, k = design.shape
    w = np.ones(n) if weights is None else weights
    base = np.zeros(n) if offset is None else offset
    centre = np.zeros(k) if start is None else np.asarray(start, dtype=float)
    precision = np.broadcast_to(np.asarray(ridge, dtype=float), (k,)) * float(w.sum())
    problem = _Problem(design, outcomes, w, base, centre, lower, precision)
    point, converged = problem.solve()
    fit = LogisticFit(point.theta, point.log_odds, point.likelihood, converged, design, w)
    # Features that depend on each other have no errors; the ridge settles what the rows leave open.
    is_regular = precision.all() or _is_regular(fit.information)
    return fit if is_regular else replace(fit, converged=False)


def clipped_log_odds(probabilities: np.ndarray, clip: float) -> np.ndarray:
    """Log-odds of probabilities kept within [clip, 1 - clip].

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference.logistic import clipped_log_odds
    >>> clipped_log_odds(np.array([0.0, 0.5]), 1e-6).round(2).tolist()
    [-13.82, 0.0]
    """
    p = np.clip(probabilities, clip, 1.0 - clip)
    return np.asarray(np.log(p) - np.log1p(-p))


def logistic_log_likelihood(log_odds: np.ndarray, outcomes: np.ndarray, weights: np.ndarray) -> float:
    """Weighted Bernoulli log-likelihood of outcomes.

    Parameters
    ----------
    log_odds : array of shape (n,)
        Stated or fitted, per row.
    outcomes : array of shape (n,)
        In [0, 1].
    weights : array of shape (n,)
        Weight of every row.

    Returns
    -------
    float
        At most 0.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import logistic_log_likelihood
    >>> round(logistic_log_likelihood(np.zeros(2), np.array([0.0, 1.0]), np.ones(2)), 4)
    -1.3863
    """
    # log(1 + exp(x)) = max(x, 0) + log(1 + exp(-|x|)) does not overflow.
    small = np.abs(log_odds)
    np.log1p(np.exp(np.negative(small, out=small), out=small), out=small)
    small += np.maximum(log_odds, 0.0)
    return float(np.sum(weights * (outcomes * log_odds - small)))


class _Point(NamedTuple):
    """Coefficients, and what the rows say there."""

    theta: np.ndarray
    log_odds: np.ndarray
    likelihood: float
    loss: float


@dataclass(frozen=True, slots=True, eq=False)
class _Problem:
    design: np.ndarray
    outcomes: np.ndarray
    weights: np.ndarray
    offset: np.ndarray
    start: np.ndarray
    lower: np.ndarray | None
    precision: np.ndarray

    def solve(self) -> tuple[_Point, bool]:
        """The minimiser of the loss, and whether there is one."""
        total = float(self.weights.sum())
        point = self.at(self.start)
        for _ in range(_MOST_STEPS):
            try:
                step, decrease = self.newton_step(point)
            except LinAlgError:
                return point, False
            point = self.descend(point, step, decrease, _ROUNDING * total)
            is_last = decrease * len(self.weights) <= _LAST_STEP**2 * total
            if is_last and np.abs(self.design @ step).max(initial=0.0) <= _SMALL_MOVE:
                return point, True
        return point, False

    def at(self, theta: np.ndarray) -> _Point:
        """The point of some coefficients, moved inside the bounds."""
        if self.lower is not None:
            theta = np.maximum(theta, self.lower)
        log_odds = self.design @ theta
        log_odds += self.offset
        likelihood = logistic_log_likelihood(log_odds, self.outcomes, self.weights)
        with np.errstate(over="ignore", invalid="ignore"):  # a step that far is not taken
            penalty = 0.5 * float(self.precision @ (theta - self.start) ** 2)
        return _Point(theta, log_odds, likelihood, penalty - likelihood)

    def slopes(self, point: _Point) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and curvature of the loss."""
        tail = expit(-np.abs(point.log_odds))  # the smaller of p and 1 - p, without loss of digits
        error = np.where(point.log_odds >= 0, (1.0 - self.outcomes) - tail, tail - self.outcomes)
        gradient = self.design.T @ (self.weights * error) + self.precision * (point.theta - self.start)
        curvature = _information(self.design, self.weights, tail)
        return gradient, curvature + np.diag(self.precision)

    def newton_step(self, point: _Point) -> tuple[np.ndarray, float]:
        """The step, and by how much the linear model says that it lowers the loss."""
        gradient, curvature = self.slopes(point)
        room = None if self.lower is None else self.lower - point.theta
        step = _newton_step(curvature, gradient, room)
        return step, -float(gradient @ step)

    def descend(self, point: _Point, step: np.ndarray, decrease: float, rounding: float) -> _Point:
        """The step, halved until the loss falls; less by rounding is not less."""
        size = 1.0
        for _ in range(_MOST_HALVINGS):
            trial = self.at(point.theta + size * step)
            if trial.loss <= point.loss - 1e-4 * size * decrease + rounding:
                return trial
            size /= 2
        return point


def _information(design: np.ndarray, weights: np.ndarray, tail: np.ndarray) -> np.ndarray:
    spread = weights * tail
    spread *= 1.0 - tail
    return np.asarray(design.T @ (design * spread[:, None]))


def _is_regular(information: np.ndarray) -> bool:
    """Whether every coefficient is determined: no feature is a combination of the others, to rounding."""
    scale = np.sqrt(np.diag(information))
    return bool((scale > 0).all() and np.linalg.eigvalsh(information / np.outer(scale, scale))[0] > 1e-13)


def _newton_step(curvature: np.ndarray, gradient: np.ndarray, lower: np.ndarray | None) -> np.ndarray:
    """The minimiser of ``gradient . d + d' curvature d / 2`` with ``d >= lower``."""
    scale = np.sqrt(np.diag(curvature))
    if not (scale > 0).all():
        raise LinAlgError("the curvature is singular")
    # In units of each coefficient's own error; a rounding unit on the diagonal keeps it regular.
    scaled = curvature / np.outer(scale, scale) + 1e-14 * np.eye(len(scale))
    step = -np.linalg.solve(scaled, gradient / scale)
    if lower is not None and not (step >= lower * scale).all():
        step = _bounded_step(scaled, gradient / scale, lower * scale)
    return np.asarray(step / scale)


def _bounded_step(curvature: np.ndarray, gradient: np.ndarray, lower: np.ndarray) -> np.ndarray:
    """The same under bounds that bind, by an active-set method."""
    from scipy.linalg import cholesky, solve_triangular
    from scipy.optimize import lsq_linear

    root = cholesky(curvature)
    target = -solve_triangular(root, gradient, trans="T")
    bounds = (np.minimum(lower, 0.0), np.full(lower.size, np.inf))
    return np.asarray(lsq_linear(root, target, bounds=bounds, method="bvls", tol=1e-14).x)
