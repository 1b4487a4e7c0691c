"""True conditional coverage and the true excess risk that comes with it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.special import xlogy

from calipers.arrays import RandomState, generator, short_repr
from calipers.inputs import check_alpha


class RegressionSample(NamedTuple):
    """Features (n, d) and a real outcome per row."""

    X: np.ndarray
    y: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


class CoverageSample(NamedTuple):
    """Features, whether the row was covered, and the probability with which it was.

    ``X`` is an array (n, d), or a polars frame in worlds with a text column.
    """

    X: Any
    covered: np.ndarray
    coverage: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


def draw_covered(coverage: np.ndarray, random_state: RandomState) -> np.ndarray:
    """One independent Bernoulli draw per row: True with the row's own probability."""
    return generator(random_state).random(len(coverage)) < coverage


def true_ert(coverage: Any, weights: Any = None, *, alpha: float) -> dict[str, float]:
    r"""Excess risk of the target coverage (ERT) of a known law of conditional coverage.

    Zero means that the sets cover with probability 1 - alpha at every x; larger is worse. The L1 value
    reads as a mean distance: 0.09 says that conditional coverage is off by nine points on average.

    Parameters
    ----------
    coverage : array-like of shape (m,)
        Values p of the conditional coverage: atoms, quadrature nodes, or one per row.
    weights : array-like of shape (m,), optional
        Their probabilities; equal ones by default. They are divided by their sum.
    alpha : float
        Allowed miscoverage.

    Returns
    -------
    dict of str to float
        Keys ``l1``, ``l2``, ``kl`` and each with ``_over`` (p above 1 - alpha) and ``_under``; the two
        parts sum to the total.

    Notes
    -----
    With t = 1 - alpha: E|p - t|, E(p - t)^2 and E KL(Bernoulli(p) || Bernoulli(t)).

    Examples
    --------
    >>> from calipers.datasets import true_ert
    >>> truth = true_ert([0.95, 0.7], [0.8, 0.2], alpha=0.1)
    >>> round(truth["l1"], 3), round(truth["l1_under"], 3)
    (0.08, 0.04)
    """
    p = np.asarray(coverage, dtype=float)
    target = 1 - check_alpha(alpha)
    mass = np.ones_like(p) if weights is None else np.asarray(weights, dtype=float)
    mass = mass / mass.sum()
    distances = {
        "l1": np.abs(p - target),
        "l2": (p - target) ** 2,
        "kl": xlogy(p, p / target) + xlogy(1 - p, (1 - p) / (1 - target)),
    }
    values: dict[str, float] = {}
    for name, distance in distances.items():
        over = float(np.sum((mass * distance)[p > target]))
        under = float(np.sum((mass * distance)[p < target]))
        values |= {name: over + under, f"{name}_over": over, f"{name}_under": under}
    return values
