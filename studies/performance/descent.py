"""Gradient descent and stochastic gradient descent on many samples at once, section 4.2.

Models are trained side by side: one array holds the weights of all of them and a step updates every
row of it, so a thousand models cost little more than one.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

GD_STEP = 0.1
SGD_STEP = 0.01
PASSES = 5
START = 5.0

# (X (m, models, d), y (m, models), start weights (models, d)) -> weights (models, d)
Descent = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def batch_descent(X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Five steps of size 0.1 along the gradient of the mean squared error of each model's sample.

    Examples
    --------
    >>> import numpy as np
    >>> from studies.performance.descent import batch_descent
    >>> # One feature equal to 1, target 0: each step leaves (1 - 0.2) of the weight.
    >>> batch_descent(np.ones((4, 1, 1)), np.zeros((4, 1)), np.ones((1, 1))).round(5)
    array([[0.32768]])
    """
    found = weights.copy()
    for _ in range(PASSES):
        residual = np.einsum("mkd,kd->mk", X, found) - y
        found -= GD_STEP * 2.0 / len(X) * np.einsum("mkd,mk->kd", X, residual)
    return found


def stochastic_descent(X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Five passes of single-row steps of size 0.01 along the gradient of the squared error.

    Examples
    --------
    >>> import numpy as np
    >>> from studies.performance.descent import stochastic_descent
    >>> # 5 passes over 4 rows: 20 steps that leave (1 - 0.02) of the weight each.
    >>> stochastic_descent(np.ones((4, 1, 1)), np.zeros((4, 1)), np.ones((1, 1))).round(5)
    array([[0.66761]])
    """
    found = weights.copy()
    for _ in range(PASSES):
        for row, target in zip(X, y, strict=True):
            residual = np.einsum("kd,kd->k", row, found) - target
            found -= (2.0 * SGD_STEP * residual)[:, None] * row
    return found


METHODS: dict[str, Descent] = {"GD": batch_descent, "SGD": stochastic_descent}


def draw_rows(
    rng: np.random.Generator, shape: tuple[int, ...], dimension: int, noise: str
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of the linear world: x standard normal, y = <1, x> + noise.

    ``noise``: "normal" with standard deviation 2.2, or "student" with 2.1 degrees of freedom.
    """
    X = rng.standard_normal((*shape, dimension))
    error = 2.2 * rng.standard_normal(shape) if noise == "normal" else rng.standard_t(2.1, shape)
    return X, X.sum(axis=-1) + error


def draw_start(rng: np.random.Generator, models: int, dimension: int) -> np.ndarray:
    """Initial weights, uniform on [-5, 5]."""
    return rng.uniform(-START, START, (models, dimension))


def squared_errors(X: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Squared error of each model on its own rows: X (rows, models, d) to (rows, models)."""
    return np.asarray((np.einsum("mkd,kd->mk", X, weights) - y) ** 2)
