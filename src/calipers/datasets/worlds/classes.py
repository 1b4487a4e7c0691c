"""Classes that are Gaussian clouds: the true P(y | x) is known at every point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy.special import expit, log_softmax, softmax

from calipers.arrays import RandomState, generator, short_repr
from calipers.datasets.worlds.quadrature import cut_points, integrate_pieces, prefix_range
from calipers.exceptions import InputError
from calipers.inputs import check_count

_REACH = 12.0  # standard deviations of the log-odds that quadrature covers; the mass beyond is 1e-32


class ClassSample(NamedTuple):
    """Features (n, d) and a class index per row."""

    X: np.ndarray
    y: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True)
class MixtureWorld:
    r"""K classes, each a spherical normal cloud of standard deviation ``spread`` in d dimensions.

    The class centres lie on a circle in the first two features (on a line when d = 1), neighbours
    ``separation`` apart; the other features are noise. The posterior is softmax of a linear function of
    x, so a well-specified learner can reach it, and any distortion of it is a known fault.

    Parameters
    ----------
    n_classes : int, default=3
        Number of classes K, at least 2.
    n_features : int, default=2
        Number of features d.
    separation : float, default=2.0
        Distance between the centres of neighbouring classes.
    spread : float, default=1.0
        Standard deviation of each cloud.
    priors : tuple of float, optional
        Class probabilities; equal ones by default. They must sum to 1.

    Examples
    --------
    >>> from calipers.datasets import MixtureWorld
    >>> world = MixtureWorld(n_classes=2, separation=2.0)
    >>> X, y = world.sample(1000, random_state=0)
    >>> world.posterior(X).shape
    (1000, 2)
    >>> round(world.bayes_accuracy(), 5), round(world.calibration_error(temperature=0.5), 5)
    (0.84134, 0.0377)
    """

    n_classes: int = 3
    n_features: int = 2
    separation: float = 2.0
    spread: float = 1.0
    priors: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_count(self.n_classes, name="n_classes", minimum=2)
        check_count(self.n_features, name="n_features")
        for name, value in (("separation", self.separation), ("spread", self.spread)):
            if not value > 0:
                raise InputError(f"{name} must be positive, got {value}.")
        if self.priors is not None:
            _check_simplex(self.priors, self.n_classes, "priors")

    @property
    def centres(self) -> np.ndarray:
        """The class centres, shape (K, d)."""
        centres = np.zeros((self.n_classes, self.n_features))
        if self.n_features == 1 or self.n_classes == 2:
            centres[:, 0] = self.separation * (np.arange(self.n_classes) - (self.n_classes - 1) / 2)
            return centres
        angle = 2 * np.pi * np.arange(self.n_classes) / self.n_classes
        radius = self.separation / (2 * np.sin(np.pi / self.n_classes))
        centres[:, 0], centres[:, 1] = radius * np.cos(angle), radius * np.sin(angle)
        return centres

    @property
    def class_priors(self) -> np.ndarray:
        """The class probabilities, shape (K,)."""
        equal = np.full(self.n_classes, 1 / self.n_classes)
        return equal if self.priors is None else np.array(self.priors, dtype=float)

    def sample(
        self, n: int, random_state: RandomState = None, *, priors: tuple[float, ...] | None = None
    ) -> ClassSample:
        """Draw n independent rows (X, y); ``priors`` other than the world's own make a label shift."""
        rng = generator(random_state)
        mix = self.class_priors if priors is None else _check_simplex(priors, self.n_classes, "priors")
        y = rng.choice(self.n_classes, size=check_count(n, name="n"), p=mix)
        X = self.centres[y] + self.spread * rng.standard_normal((n, self.n_features))
        return ClassSample(X, y)

    def log_posterior(self, X: Any) -> np.ndarray:
        """Return log P(y | x), shape (n, K), without overflow."""
        squared = ((np.asarray(X, dtype=float)[:, None, :] - self.centres) ** 2).sum(axis=2)
        with np.errstate(divide="ignore"):  # a class of prior 0 has log-probability -inf
            logits = np.log(self.class_priors) - squared / (2 * self.spread**2)
        return np.asarray(log_softmax(logits, axis=1))

    def posterior(self, X: Any) -> np.ndarray:
        """P(y | x), shape (n, K): calibrated in every sense."""
        return np.asarray(np.exp(self.log_posterior(X)))

    def distorted(self, X: Any, *, temperature: float = 1.0, bias: Any = None) -> np.ndarray:
        """softmax(log P / temperature + bias): what a miscalibrated model would state.

        Parameters
        ----------
        X : array-like of shape (n, d)
            Rows.
        temperature : float, default=1.0
            Below 1 over-confident, above 1 under-confident.
        bias : array-like of shape (K,), optional
            Added to the log-probabilities: classes that are favoured or neglected.
        """
        shift = np.zeros(self.n_classes) if bias is None else np.asarray(bias, dtype=float)
        if shift.shape != (self.n_classes,):
            raise InputError(
                f"bias must have one entry per class ({self.n_classes}), got shape {shift.shape}."
            )
        return np.asarray(softmax(self.log_posterior(X) / _check_temperature(temperature) + shift, axis=1))

    def coverage_at(self, X: Any, sets: Any) -> np.ndarray:
        """P(y in set | x) of any boolean sets (n, K) that do not depend on y."""
        return np.asarray((self.posterior(X) * np.asarray(sets, dtype=bool)).sum(axis=1))

    def bayes_accuracy(self) -> float:
        """Accuracy of the best possible classifier of a two-class world: E max(eta, 1 - eta)."""
        cuts = self._log_odds_cuts(lambda s: s)
        return float(integrate_pieces(lambda s: expit(np.abs(s)) * self._log_odds_density(s), cuts).sum())

    def calibration_error(self, *, temperature: float = 1.0, bias: float = 0.0) -> float:
        """Return the sup over intervals I of |E[(Y - f) 1{f in I}]| of a two-class world, by quadrature.

        f = sigmoid(s / temperature + bias) where s is the true log-odds of class 1, so f is
        ``distorted(X, temperature=temperature, bias=(0, bias))[:, 1]``. f increases with s: intervals
        of f are intervals of s, and s is a mixture of two normal laws.
        """
        return prefix_range(self._gap_pieces(temperature, bias))[0]

    def mean_absolute_error(self, *, temperature: float = 1.0, bias: float = 0.0) -> float:
        """E|P(Y = 1 | f) - f| of the same two-class distortion: what binned ECE aims at."""
        return float(np.abs(self._gap_pieces(temperature, bias)).sum())

    def _gap_pieces(self, temperature: float, bias: float) -> np.ndarray:
        """E[(eta - f) 1{piece}] between the zeros of eta - f."""
        scale = _check_temperature(temperature)

        def stated_log_odds(s: np.ndarray) -> np.ndarray:
            return s / scale + bias

        cuts = self._log_odds_cuts(lambda s: s - stated_log_odds(s))
        return integrate_pieces(
            lambda s: (expit(s) - expit(stated_log_odds(s))) * self._log_odds_density(s), cuts
        )

    def _log_odds_law(self) -> tuple[np.ndarray, float]:
        """Means (given class 0, 1) and standard deviation of the true log-odds of class 1."""
        if self.n_classes != 2:
            raise InputError(f"this truth is known for two classes, got n_classes {self.n_classes}.")
        if not np.all(self.class_priors > 0):
            raise InputError(f"both priors must be positive, got {self.priors}.")
        distance = self.separation / self.spread
        offset = np.log(self.class_priors[1] / self.class_priors[0])
        return offset + np.array([-1.0, 1.0]) * distance**2 / 2, distance

    def _log_odds_density(self, s: np.ndarray) -> np.ndarray:
        means, deviation = self._log_odds_law()
        standard = (s[:, None] - means) / deviation
        density = np.exp(-(standard**2) / 2) / (deviation * np.sqrt(2 * np.pi))
        return np.asarray(density @ self.class_priors)

    def _log_odds_cuts(self, gap: Any) -> np.ndarray:
        means, deviation = self._log_odds_law()
        low, high = means[0] - _REACH * deviation, means[1] + _REACH * deviation
        return cut_points(gap, float(low), float(high), known=(0.0, *means.tolist()))


def _check_simplex(values: Any, k: int, name: str) -> np.ndarray:
    array = np.asarray(values, dtype=float)
    if array.shape != (k,) or (array < 0).any() or abs(array.sum() - 1) > 1e-9:
        raise InputError(f"{name} must be {k} non-negative numbers that sum to 1, got {values}.")
    return array


def _check_temperature(temperature: float) -> float:
    if not temperature > 0:
        raise InputError(f"temperature must be positive, got {temperature}.")
    return float(temperature)
