"""Losses with heavy tails, independent or only exchangeable."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.special import stdtr, stdtrit

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inputs import check_count, check_fraction


@dataclass(frozen=True)
class HeavyTailedWorld:
    """Losses |t| or Pareto, times a scale that a whole series shares.

    With one scale the losses are independent. With several, each series draws one of them (equally
    likely) and all its losses are multiplied by it: exchangeable, with the marginal law known, but far
    from independent. Rank-based bounds must hold in both; averages with a normal approximation need not.

    Parameters
    ----------
    family : {"student", "pareto"}, default="student"
        |t| with ``shape`` degrees of freedom, or Pareto on [1, inf) with tail index ``shape``.
    shape : float, default=2.5
        Tail index: moments of that order and above are infinite.
    scales : tuple of float, default=(1.0,)
        Scales a series may have.

    Examples
    --------
    >>> from calipers.datasets import HeavyTailedWorld
    >>> world = HeavyTailedWorld("pareto", shape=2.0, scales=(0.5, 2.0))
    >>> world.sample_series(3, 100, random_state=0).shape
    (3, 100)
    >>> round(world.quantile(0.9), 4), round(float(world.cdf(world.quantile(0.9))), 4)
    (4.6098, 0.9)
    """

    family: str = "student"
    shape: float = 2.5
    scales: tuple[float, ...] = (1.0,)

    def __post_init__(self) -> None:
        if self.family not in {"student", "pareto"}:
            raise InputError(f'family must be "student" or "pareto", got {self.family!r}.')
        if not self.shape > 0:
            raise InputError(f"shape must be positive, got {self.shape}.")
        if not self.scales or not all(s > 0 for s in self.scales):
            raise InputError(f"scales must be positive and not empty, got {self.scales}.")

    @property
    def independent(self) -> bool:
        """Whether losses of one series are independent."""
        return len(set(self.scales)) == 1

    def sample(self, n: int, random_state: RandomState = None) -> np.ndarray:
        """One series of n losses."""
        return np.asarray(self.sample_series(1, n, random_state)[0])

    def sample_series(self, n_series: int, n: int, random_state: RandomState = None) -> np.ndarray:
        """Independent series, shape (n_series, n); each row shares one scale."""
        rng = generator(random_state)
        shape = check_count(n_series, name="n_series"), check_count(n, name="n")
        scale = rng.choice(np.array(self.scales, dtype=float), size=(shape[0], 1))
        if self.family == "student":
            return scale * np.abs(rng.standard_t(self.shape, size=shape))
        return scale * (1 + rng.pareto(self.shape, size=shape))

    def cdf(self, x: Any) -> np.ndarray:
        """P(loss <= x) of one loss: the mean of the scaled laws."""
        values = np.asarray(x, dtype=float)[..., None] / np.array(self.scales)
        return np.asarray(self._unit_cdf(values).mean(axis=-1))

    def quantile(self, level: float) -> float:
        """Return the smallest x with P(loss <= x) at least ``level``."""
        unit = self._unit_quantile(check_fraction(level, name="level", meaning="It is a probability"))
        low, high = unit * min(self.scales), unit * max(self.scales)
        if low == high:
            return low
        return float(brentq(lambda x: float(self.cdf(x)) - level, low, high, xtol=1e-13, rtol=1e-14))

    def mean(self) -> float:
        """Return the mean loss; infinite when ``shape`` is at most 1."""
        if self.shape <= 1:
            return float("inf")
        unit = self.shape / (self.shape - 1) if self.family == "pareto" else _mean_absolute_t(self.shape)
        return unit * float(np.mean(self.scales))

    def _unit_cdf(self, x: np.ndarray) -> np.ndarray:
        if self.family == "student":
            return np.where(x > 0, 2 * stdtr(self.shape, np.maximum(x, 0)) - 1, 0.0)
        return np.asarray(1 - np.maximum(x, 1.0) ** -self.shape)

    def _unit_quantile(self, level: float) -> float:
        if self.family == "student":
            return float(stdtrit(self.shape, (1 + level) / 2))
        return float((1 - level) ** (-1 / self.shape))


def _mean_absolute_t(df: float) -> float:
    """E|t| = 2 sqrt(df / pi) Gamma((df + 1) / 2) / (Gamma(df / 2) (df - 1))."""
    from scipy.special import gammaln

    log_ratio = gammaln((df + 1) / 2) - gammaln(df / 2)
    return float(2 * np.sqrt(df / np.pi) * np.exp(log_ratio) / (df - 1))
