"""Regression whose noise grows away from the centre: one width cannot fit every x."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri

from calipers.arrays import RandomState, generator
from calipers.datasets.worlds.coverage import RegressionSample, true_ert
from calipers.datasets.worlds.quadrature import cut_points, nodes_and_weights
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import check_alpha, check_count

Function = Callable[[np.ndarray], np.ndarray]

_SCALES: Mapping[str, Function] = MappingProxyType(
    {
        "steep": lambda x: 0.5 + np.abs(2 * x) + x**2,
        "gentle": lambda x: 0.5 + np.abs(x) + x**2,
        "flat": np.ones_like,
    }
)
_MEANS: Mapping[str, Function] = MappingProxyType({"zero": np.zeros_like, "sine": lambda x: np.sin(3 * x)})


@dataclass(frozen=True)
class HeteroscedasticWorld:
    r"""Y is normal around mean(x_1) with standard deviation scale(x_1); X is uniform on [-1, 1]^d.

    Only the first feature matters, the others are there to be searched in vain. Intervals of one
    width cover too often near x_1 = 0 and too rarely at the ends.

    Parameters
    ----------
    n_features : int, default=8
        Number of features d.
    scale : {"steep", "gentle", "flat"} or callable, default="steep"
        Standard deviation as a function of x_1: 0.5 + |2x| + x^2, 0.5 + |x| + x^2, or 1. A callable
        takes and returns an array and must be positive.
    mean : {"zero", "sine"} or callable, default="zero"
        Mean as a function of x_1: 0 or sin(3x).
    corners : tuple of float, default=(0.0,)
        Points where scale or mean bends; quadrature is cut there.

    Notes
    -----
    All truths are one-dimensional integrals over x_1, computed to about 1e-12.

    Examples
    --------
    >>> from calipers.datasets import HeteroscedasticWorld
    >>> world = HeteroscedasticWorld()
    >>> X, y = world.sample(1000, random_state=0)
    >>> intervals = world.constant_intervals(X, alpha=0.1)
    >>> round(world.ert(alpha=0.1)["l1"], 5)
    0.09474
    >>> world.coverage_at(X, world.oracle_intervals(X, alpha=0.1)).round(6)[:3]
    array([0.9, 0.9, 0.9])
    """

    n_features: int = 8
    scale: str | Function = "steep"
    mean: str | Function = "zero"
    corners: tuple[float, ...] = (0.0,)

    def __post_init__(self) -> None:
        check_count(self.n_features, name="n_features")
        _choice(self.scale, _SCALES, "scale")
        _choice(self.mean, _MEANS, "mean")

    def sample(self, n: int, random_state: RandomState = None) -> RegressionSample:
        """Draw n independent rows (X, y)."""
        rng = generator(random_state)
        X = rng.uniform(-1, 1, size=(check_count(n, name="n"), self.n_features))
        y = self.mean_at(X) + self.scale_at(X) * rng.standard_normal(n)
        return RegressionSample(X, y)

    def mean_at(self, X: Any) -> np.ndarray:
        """Return the true mean of Y at each row of X."""
        return np.asarray(_choice(self.mean, _MEANS, "mean")(_first_feature(X)), dtype=float)

    def scale_at(self, X: Any) -> np.ndarray:
        """Return the true standard deviation of Y at each row of X."""
        return np.asarray(_choice(self.scale, _SCALES, "scale")(_first_feature(X)), dtype=float)

    def quantile_at(self, X: Any, level: float) -> np.ndarray:
        """Return the true quantile of Y at each row of X."""
        return self.mean_at(X) + self.scale_at(X) * ndtri(level)

    def constant_radius(self, alpha: float) -> float:
        """Return the half-width r for which mean(x) +/- r covers exactly 1 - alpha over all x."""
        target = 1 - check_alpha(alpha)
        widest = float(self.scale_at(_column(np.linspace(-1, 1, 4001))).max())
        ceiling = 2 * widest * float(ndtri(1 - alpha / 2))
        root = brentq(lambda r: self.marginal_coverage(r) - target, 0.0, ceiling, xtol=1e-13)
        return float(root)

    def constant_intervals(self, X: Any, *, alpha: float, radius: float | None = None) -> np.ndarray:
        """mean(x) +/- radius, shape (n, 2); by default the radius with exact marginal coverage."""
        half = self.constant_radius(alpha) if radius is None else radius
        return np.asarray(self.mean_at(X)[:, None] + np.array([-half, half]))

    def oracle_intervals(self, X: Any, *, alpha: float) -> np.ndarray:
        """Return the central 1 - alpha interval of Y at each x, shape (n, 2): nothing to find."""
        half = self.scale_at(X) * ndtri(1 - check_alpha(alpha) / 2)
        return np.asarray(self.mean_at(X)[:, None] + half[:, None] * np.array([-1.0, 1.0]))

    def coverage_at(self, X: Any, intervals: Any) -> np.ndarray:
        """P(low <= Y <= high | x) of any intervals (n, 2) that do not depend on Y."""
        ends = np.asarray(intervals, dtype=float)
        standard = (ends - self.mean_at(X)[:, None]) / self.scale_at(X)[:, None]
        return np.asarray(ndtr(standard[:, 1]) - ndtr(standard[:, 0]))

    def constant_coverage(self, x: Any, radius: float) -> np.ndarray:
        """Coverage of mean(x) +/- radius at values x of the first feature: 2 Phi(r / scale) - 1."""
        scaled = radius / self.scale_at(_column(x))
        return np.asarray(ndtr(scaled) - ndtr(-scaled))

    def marginal_coverage(self, radius: float) -> float:
        """Coverage of mean(x) +/- radius over all x."""
        nodes, weights = nodes_and_weights(self._edges())
        return float(np.sum(weights / 2 * self.constant_coverage(nodes.ravel(), radius).reshape(nodes.shape)))

    def ert(
        self, *, alpha: float, radius: float | None = None, coverage: Function | None = None
    ) -> dict[str, float]:
        """Return the true L1, L2 and KL ERT with their over and under parts, keys as in `true_ert`.

        Parameters
        ----------
        alpha : float
            Allowed miscoverage.
        radius : float, optional
            Half-width of the constant intervals, for instance a conformal one; by default the one with
            exact marginal coverage.
        coverage : callable, optional
            Conditional coverage of any other sets as a function of x_1; then radius is not used.
        """
        if coverage is None:
            half = self.constant_radius(alpha) if radius is None else radius
            return self.ert(alpha=alpha, coverage=lambda x: self.constant_coverage(x, half))
        target = 1 - check_alpha(alpha)
        cuts = cut_points(lambda x: coverage(x) - target, -1.0, 1.0, known=self.corners)
        nodes, weights = nodes_and_weights(cuts)
        return true_ert(coverage(nodes.ravel()), weights.ravel(), alpha=alpha)

    def _edges(self) -> np.ndarray:
        return np.unique([-1.0, 1.0, *(c for c in self.corners if -1 < c < 1)])


def _choice(value: str | Function, table: Mapping[str, Function], name: str) -> Function:
    if callable(value):
        return value
    if not isinstance(value, str):
        raise InputTypeError(f"{name} must be a name or a callable, got {type(value).__name__}.")
    if value not in table:
        raise InputError(f"{name} must be one of {', '.join(table)} or a callable, got {value!r}.")
    return table[value]


def _first_feature(X: Any) -> np.ndarray:
    array = np.asarray(X, dtype=float)
    if array.ndim != 2:
        raise InputError(f"X must have two dimensions, got shape {array.shape}.")
    return np.asarray(array[:, 0])


def _column(x: Any) -> np.ndarray:
    return np.asarray(x, dtype=float).reshape(-1, 1)
