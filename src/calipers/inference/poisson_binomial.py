"""The law of a number of events, each with a stated probability of its own.

This is what a promise with a probability per row says about the number of rows on which it is kept. Rows with
the same probability are pooled. Up to `EXACT_ROWS` uncertain rows the law is exact, by convolution; beyond,
its tails come from a saddlepoint approximation, whose relative error is far below one per cent there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np
from scipy import special

from calipers.inference.alternatives import check_alternative
from calipers.inference.point_masses import log_binomial_mass
from calipers.inference.proportions import Interval, combine_tails
from calipers.inputs import check_confidence

# Rows with a probability strictly between 0 and 1 up to which the law is exact.
EXACT_ROWS = 2000
# Below this distance from the mean, in standard deviations, the saddlepoint formula divides 0 by 0.
_NEAR_MEAN = 1e-4


@dataclass(frozen=True, eq=False)
class PoissonBinomialLaw:
    """Law of the number of events among independent trials with these probabilities.

    Parameters
    ----------
    probabilities : array of shape (k,)
        Distinct probabilities strictly between 0 and 1.
    counts : array of shape (k,)
        Trials with each of them.
    certain, impossible : int
        Trials whose event was stated to be certain, and to be impossible.

    Notes
    -----
    Tails beyond `EXACT_ROWS` trials: the formula of Lugannani and Rice with the second continuity correction
    of Daniels [1]_.

    References
    ----------
    .. [1] Daniels (1987), Tail probability approximations, International Statistical Review 55.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import PoissonBinomialLaw
    >>> law = PoissonBinomialLaw.of(np.array([0.5, 0.25, 1.0]))
    >>> law.mean, float(law.cdf(1)), float(law.sf(2))
    (1.75, 0.375, 0.125)
    """

    probabilities: np.ndarray
    counts: np.ndarray
    certain: int = 0
    impossible: int = 0

    @classmethod
    def of(cls, probabilities: np.ndarray, counts: np.ndarray | None = None) -> Self:
        """The law of trials with any probabilities in [0, 1], each repeated as often as the counts say."""
        p = np.asarray(probabilities, dtype=float)
        n = np.ones(p.size) if counts is None else np.asarray(counts, dtype=float)
        inner = (p > 0) & (p < 1)
        values, place = np.unique(p[inner], return_inverse=True)
        pooled = np.bincount(place.reshape(-1), weights=n[inner], minlength=values.size)
        return cls(values, pooled, int(n[p >= 1].sum()), int(n[p <= 0].sum()))

    def __repr__(self) -> str:
        return f"PoissonBinomialLaw({self.n} trials, mean {self.mean:.6g})"

    @property
    def n(self) -> int:
        """Number of trials."""
        return self._uncertain + self.certain + self.impossible

    @property
    def mean(self) -> float:
        """Expected number of events."""
        return float(self.counts @ self.probabilities) + self.certain

    @property
    def variance(self) -> float:
        """Variance of the number of events."""
        return float(self.counts @ (self.probabilities * (1 - self.probabilities)))

    @property
    def _uncertain(self) -> int:
        return int(self.counts.sum())

    def pmf(self, events: np.ndarray) -> np.ndarray:
        """P(K = events), up to `EXACT_ROWS` uncertain trials."""
        k = np.asarray(events) - self.certain
        inside = (k >= 0) & (k <= self._uncertain)
        return np.where(inside, self._masses[np.where(inside, k, 0)], 0.0)

    def cdf(self, events: float) -> float:
        """P(K <= events)."""
        return self._lower(math.floor(events) - self.certain)

    def sf(self, events: float) -> float:
        """P(K > events), to full precision where it is small."""
        return self._upper(math.floor(events) - self.certain + 1)

    def p_value(self, events: float, alternative: str = "two-sided") -> float:
        """P-value of a number of events: one tail, or twice the smaller one (at most 1)."""
        check_alternative(alternative)
        return float(combine_tails(self.cdf(events), self.sf(events - 1), alternative))

    def interval(self, level: float = 0.95, alternative: str = "two-sided") -> Interval:
        """The numbers of events with p-value above 1 - level; one-sided towards the alternative."""
        error = 1.0 - check_confidence(level, name="level")
        error = error / 2 if check_alternative(alternative) == "two-sided" else error
        low = 0 if alternative == "greater" else self._first(lambda k: self.cdf(k) > error)
        top = self._uncertain + self.certain
        high = top if alternative == "less" else self._first(lambda k: self.sf(k) <= error)
        return Interval(float(low), float(high))

    def _first(self, holds: Callable[[int], bool]) -> int:
        """The smallest number of events at which a condition that stays true holds."""
        low, high = self.certain, self.certain + self._uncertain
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if holds(middle) else (middle + 1, high)
        return low

    @cached_property
    def _masses(self) -> np.ndarray:
        """P(K = k) of the uncertain trials, by convolving the binomial laws of equal probabilities."""
        masses = np.ones(1)
        for p, n in zip(self.probabilities.tolist(), self.counts.tolist(), strict=True):
            own = np.exp(log_binomial_mass(np.arange(n + 1), n, p, 1 - p))
            masses = np.convolve(masses, own)
        return masses

    def _lower(self, k: int) -> float:
        if k < 0:
            return 0.0
        if k >= self._uncertain:
            return 1.0
        if self._uncertain <= EXACT_ROWS:
            return float(min(1.0, np.sum(self._masses[: k + 1])))
        return 1.0 - self._saddlepoint(k + 1) if k + 1 > self.mean - self.certain else self._mirrored(k)

    def _upper(self, k: int) -> float:
        if k <= 0:
            return 1.0
        if k > self._uncertain:
            return 0.0
        if self._uncertain <= EXACT_ROWS:
            return float(min(1.0, np.sum(self._masses[k:])))
        return self._saddlepoint(k) if k > self.mean - self.certain else 1.0 - self._mirrored(k - 1)

    def _mirrored(self, k: int) -> float:
        """P(K <= k) below the mean: the events that do not happen are many."""
        other = PoissonBinomialLaw(1 - self.probabilities, self.counts)
        return other._saddlepoint(self._uncertain - k)

    def _saddlepoint(self, k: int) -> float:
        """P(K >= k) of the uncertain trials for k above the mean."""
        p, n, at = self.probabilities, self.counts, k - 0.5
        if k == self._uncertain:
            return float(np.exp(n @ np.log(p)))
        s = self._tilt(at)
        shifted = _tilted(p, s)
        variance = float(n @ (shifted * (1 - shifted)))
        deviance = 2 * (s * at - float(n @ np.log1p(p * math.expm1(s))))
        if deviance < _NEAR_MEAN**2:
            return float(special.ndtr(-(at - float(n @ p)) / math.sqrt(self.variance)))
        w, u = math.sqrt(deviance), 2 * math.sinh(s / 2) * math.sqrt(variance)
        density = math.exp(-deviance / 2) / math.sqrt(2 * math.pi)
        return float(np.clip(special.ndtr(-w) + density * (1 / u - 1 / w), 0.0, 1.0))

    def _tilt(self, at: float) -> float:
        """The exponential tilt under which so many events are expected: a guarded Newton iteration."""
        p, n = self.probabilities, self.counts
        low, high, s = 0.0, 1.0, 0.0
        while float(n @ _tilted(p, high)) < at:
            high *= 2
        for _ in range(200):
            chance = _tilted(p, s)
            gap = float(n @ chance) - at
            low, high = (s, high) if gap < 0 else (low, s)
            if abs(gap) < 1e-10 * max(1.0, at):
                break
            s -= gap / float(n @ (chance * (1 - chance)))
            s = s if low < s < high else (low + high) / 2
        return s


def _tilted(p: np.ndarray, s: float) -> np.ndarray:
    """Probabilities with s added to their log-odds."""
    return np.asarray(special.expit(special.logit(p) + s))
