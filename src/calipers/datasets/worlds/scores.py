"""Binary scores with a known law and a known link to the outcome: exact calibration error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.special import betaln, expit, logit, xlog1py, xlogy

from calipers.arrays import RandomState, generator, short_repr
from calipers.datasets.worlds.quadrature import cut_points, prefix_range
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import check_count

Link = Callable[[np.ndarray], np.ndarray]


class ScoreSample(NamedTuple):
    """Stated probabilities of the positive class, shape (n,), and the outcome 0 or 1."""

    probabilities: np.ndarray
    y: np.ndarray

    def __repr__(self) -> str:
        return short_repr(self)


@dataclass(frozen=True)
class BetaScores:
    """Scores with a Beta(a, b) law on (0, 1).

    Parameters
    ----------
    a, b : float, default=1.0
        Shape of the law; (1, 1) is uniform, a below 1 piles scores up at 0. Its mean is a / (a + b).

    Examples
    --------
    >>> from calipers.datasets import BetaScores, ScoreWorld
    >>> round(ScoreWorld(BetaScores(2, 6)).base_rate(), 6)
    0.25
    """

    a: float = 1.0
    b: float = 1.0

    def __post_init__(self) -> None:
        if not (self.a > 0 and self.b > 0):
            raise InputError(f"a and b must be positive, got {self.a} and {self.b}.")

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n independent scores."""
        return rng.beta(self.a, self.b, size=n)

    def piece_means(self, function: Link, cuts: np.ndarray) -> np.ndarray:
        """E[function(f) 1{piece}] between neighbouring cuts, by adaptive quadrature."""

        def integrand(x: float) -> float:
            return float(function(np.array([x]))[0]) * self.density(x)

        pairs = pairwise(cuts)
        return np.array(
            [quad(integrand, lo, hi, epsabs=1e-13, epsrel=1e-11, limit=200)[0] for lo, hi in pairs]
        )

    def density(self, x: float) -> float:
        """Density at x in (0, 1)."""
        log_density = xlogy(self.a - 1, x) + xlog1py(self.b - 1, -x) - betaln(self.a, self.b)
        return float(np.exp(log_density))


@dataclass(frozen=True)
class LevelScores:
    """Scores that take few values, as a tree or a rounded model gives.

    Parameters
    ----------
    values : tuple of float
        The values, increasing, in [0, 1].
    shares : tuple of float, optional
        Their probabilities; equal ones by default.

    Examples
    --------
    >>> from calipers.datasets import LevelScores, ScoreWorld
    >>> world = ScoreWorld(LevelScores((0.2, 0.7), (0.75, 0.25)), "square")
    >>> round(world.calibration_error(), 6)  # 0.75 * 0.16 + 0.25 * 0.21
    0.1725
    """

    values: tuple[float, ...]
    shares: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        if (
            not self.values
            or not all(0 <= v <= 1 for v in self.values)
            or list(self.values) != sorted(set(self.values))
        ):
            raise InputError(f"values must increase strictly and lie in [0, 1], got {self.values}.")
        shares = self.level_shares
        if shares.shape != (len(self.values),) or (shares < 0).any() or abs(shares.sum() - 1) > 1e-9:
            raise InputError(
                f"shares must be {len(self.values)} non-negative numbers that sum to 1, got {self.shares}."
            )

    @property
    def level_shares(self) -> np.ndarray:
        """Probability of each value; equal ones by default."""
        k = len(self.values)
        return np.full(k, 1 / k) if self.shares is None else np.array(self.shares, dtype=float)

    def sample(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Draw n independent scores."""
        return rng.choice(np.array(self.values, dtype=float), size=n, p=self.level_shares)

    def level_means(self, function: Link) -> np.ndarray:
        """E[function(f) 1{f = value}] of each value."""
        return np.asarray(self.level_shares * function(np.array(self.values, dtype=float)))


_LAWS: Mapping[str, BetaScores | LevelScores] = MappingProxyType(
    {
        "uniform": BetaScores(1, 1),
        "beta": BetaScores(2, 5),
        "rare": BetaScores(0.5, 20),
        "levels": LevelScores((0.1, 0.3, 0.6, 0.9)),
    }
)
_BUMP = (0.4, 0.6)
_DEFAULT_STRENGTH = MappingProxyType(
    {"identity": 0.0, "shift": 0.5, "slope": 0.7, "bump": 0.1, "square": 2.0}
)


@dataclass(frozen=True)
class ScoreWorld:
    r"""Scores f with a known law; the outcome is 1 with probability eta(f).

    Parameters
    ----------
    scores : {"uniform", "beta", "rare", "levels"} or BetaScores or LevelScores, default="uniform"
        Law of the scores: Beta(1, 1), Beta(2, 5), Beta(0.5, 20) with mean 0.024, or the four equally
        likely values 0.1, 0.3, 0.6, 0.9.
    link : {"identity", "shift", "slope", "bump", "square"} or callable, default="identity"
        eta: f itself (calibrated), sigmoid(logit f + strength), sigmoid(strength logit f),
        f + strength on (0.4, 0.6], f^strength. A callable takes and returns an array in [0, 1].
    strength : float, optional
        By default 0.5, 0.7, 0.1 and 2 for shift, slope, bump and square.
    corners : tuple of float, default=()
        Jumps and bends of a callable link, where quadrature is cut.

    Examples
    --------
    >>> from calipers.datasets import ScoreWorld
    >>> world = ScoreWorld("uniform", "square")  # E(f - f^2) = 1/6, all of one sign
    >>> round(world.calibration_error(), 6), world.worst_interval()
    (0.166667, (0.0, 1.0))
    >>> f, y = world.sample(1000, random_state=0)
    >>> round(ScoreWorld().brier(), 6)
    0.166667
    """

    scores: str | BetaScores | LevelScores = "uniform"
    link: str | Link = "identity"
    strength: float | None = None
    corners: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if isinstance(self.scores, str) and self.scores not in _LAWS:
            raise InputError(f"scores must be one of {', '.join(_LAWS)} or a law, got {self.scores!r}.")
        if not isinstance(self.scores, (str, BetaScores, LevelScores)):
            raise InputTypeError(
                f"scores must be a name, BetaScores or LevelScores, got {type(self.scores).__name__}."
            )
        if not callable(self.link) and self.link not in _DEFAULT_STRENGTH:
            raise InputError(
                f"link must be one of {', '.join(_DEFAULT_STRENGTH)} or a callable, got {self.link!r}."
            )
        probe = self.link_at(np.linspace(0.0, 1.0, 1001))
        if not ((probe >= 0) & (probe <= 1)).all():
            raise InputError(
                f"link must stay in [0, 1], got values from {probe.min():.3f} to {probe.max():.3f}."
            )

    @property
    def law(self) -> BetaScores | LevelScores:
        """The law of the scores."""
        return _LAWS[self.scores] if isinstance(self.scores, str) else self.scores

    def link_at(self, f: Any) -> np.ndarray:
        """eta(f) = P(Y = 1 | f)."""
        f = np.asarray(f, dtype=float)
        if callable(self.link):
            return np.asarray(self.link(f), dtype=float)
        amount = _DEFAULT_STRENGTH[self.link] if self.strength is None else self.strength
        if self.link == "shift":
            return np.asarray(expit(logit(f) + amount))
        if self.link == "slope":
            return np.asarray(expit(amount * logit(f)))
        if self.link == "bump":
            return np.asarray(f + amount * ((f > _BUMP[0]) & (f <= _BUMP[1])))
        return np.asarray(f**amount) if self.link == "square" else f

    def sample(self, n: int, random_state: RandomState = None) -> ScoreSample:
        """Draw n independent rows (probabilities, y)."""
        rng = generator(random_state)
        f = self.law.sample(check_count(n, name="n"), rng)
        y = (rng.random(n) < self.link_at(f)).astype(np.int64)
        return ScoreSample(f, y)

    def calibration_error(self) -> float:
        """Return c = sup over intervals I of |E[(Y - f) 1{f in I}]|, to about 1e-10; 0 when calibrated.

        E[(Y - f) 1{f <= t}] turns only where eta(f) - f changes sign, so its range is read at those
        points (Definition 2 of Gao et al. 2017).
        """
        return prefix_range(self._gaps()[1])[0]

    def worst_interval(self) -> tuple[float, float]:
        """Return the interval of scores that reaches `calibration_error`; (0, 0) when nothing is wrong.

        For scores of few levels, the first and last level of it (both included).
        """
        places, gaps = self._gaps()
        error, first, last = prefix_range(gaps)
        if error == 0:
            return 0.0, 0.0
        return float(places[first]), float(places[last - 1 if isinstance(self.law, LevelScores) else last])

    def mean_absolute_error(self) -> float:
        """E|eta(f) - f|: what a binned calibration error (ECE) aims at."""
        return float(np.abs(self._gaps()[1]).sum())

    def brier(self) -> float:
        """E(Y - f)^2 = E[(eta - f)^2 + eta (1 - eta)]."""

        def squared(f: np.ndarray) -> np.ndarray:
            eta = self.link_at(f)
            return np.asarray((eta - f) ** 2 + eta * (1 - eta))

        return self._expect(squared)

    def base_rate(self) -> float:
        """P(Y = 1)."""
        return self._expect(self.link_at)

    def _expect(self, function: Link) -> float:
        law = self.law
        if isinstance(law, LevelScores):
            return float(law.level_means(function).sum())
        return float(law.piece_means(function, self._cuts()).sum())

    def _gaps(self) -> tuple[np.ndarray, np.ndarray]:
        """Where the sign of eta - f may change, and E[(eta - f) 1{piece}] of each piece or level."""
        law = self.law
        if isinstance(law, LevelScores):
            return np.array(law.values, dtype=float), law.level_means(self._gap)
        cuts = self._cuts()
        return cuts, law.piece_means(self._gap, cuts)

    def _gap(self, f: np.ndarray) -> np.ndarray:
        return np.asarray(self.link_at(f) - f)

    def _cuts(self) -> np.ndarray:
        known = (*self.corners, *(_BUMP if self.link == "bump" else ()))
        return cut_points(self._gap, 0.0, 1.0, known=known)
