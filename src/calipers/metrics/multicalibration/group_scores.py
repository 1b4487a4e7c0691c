"""How far the walk of a group goes, on one scale for all groups, and how unlikely that is.

The scale is the range over its standard deviation sqrt(V), V = sum t (1 - t). For many events it has the
law of the range of Brownian motion, whatever the group. With few expected events it has a far heavier tail:
one event where 0.01 were expected lies ten standard deviations off and happens in every hundredth such
group. There the square root of the Poisson deviance, sqrt(2 V h(r / V)) with h(u) = (1 + u) log(1 + u) - u,
takes its place; both agree for r small beside V.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from calipers.metrics.multicalibration.group_walks import GroupWalks
from calipers.metrics.multicalibration.units import PromiseUnits
from calipers.metrics.reliability.range_law import range_survival

# Squared skewness or excess kurtosis from which a group is measured by its deviance: about six rare events.
RARE = 1.0 / 6.0
# Noise of a probability that was stated as exactly 0 or 1: the rounding of a double.
_CERTAIN = 2.0**-53
# Groups of like skewness share a tail; so many different ones are told apart.
_SKEWNESS_LEVELS = 64
# Beyond this score doubles no longer tell tails from 0; a p-value never is.
_HIGHEST_SCORE = 35.0


@dataclass(frozen=True, slots=True, eq=False)
class GroupNoise:
    """What every group of a family would do under the promise.

    Parameters
    ----------
    variance : array (C,)
        V, in units of ``step`` squared.
    step : array (C,)
        Size of one typical step of the walk; 1 without importance weights.
    skewness : array (C,)
        Of the walk's end.
    rare : bool array (C,)
        Whether the deviance is taken.
    rows : array (C,)
        (Weighted) rows.
    stated : array (C,)
        (Weighted) number of events that was promised.
    """

    variance: np.ndarray
    step: np.ndarray
    skewness: np.ndarray
    rare: np.ndarray
    rows: np.ndarray
    stated: np.ndarray

    @property
    def reach(self) -> np.ndarray:
        """The largest range that is possible: the longest way up or down."""
        return np.asarray(np.maximum(self.rows - self.stated, self.stated))

    def scores(self, ranges: np.ndarray) -> np.ndarray:
        """Ranges (..., C) on the common scale."""
        steps, variance = ranges / self.step, np.maximum(self.variance, _CERTAIN)
        scores = np.asarray(steps / np.sqrt(variance))
        if self.rare.any():
            scores[..., self.rare] = deviance_root(steps[..., self.rare], variance[self.rare])
        return scores

    def take(self, kept: np.ndarray) -> GroupNoise:
        """The same for some groups."""
        return GroupNoise(*(getattr(self, name)[kept] for name in self.__slots__))

    @classmethod
    def joined(cls, parts: Sequence[GroupNoise]) -> GroupNoise:
        """Several families as one."""
        return cls(*(np.concatenate([getattr(p, name) for p in parts]) for name in cls.__slots__))


def deviance_root(steps: np.ndarray, variance: np.ndarray) -> np.ndarray:
    """Square root of twice the Poisson deviance of so many more events than expected.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.multicalibration.group_scores import deviance_root
    >>> deviance_root(np.array([1.0, 10.0]), np.array([1e-4, 1e6])).round(3)
    array([4.052, 0.01 ])
    """
    # (V + r) log(1 + r / V) - r, without loss of digits for small r / V.
    excess = (variance + steps) * np.log1p(steps / variance) - steps
    return np.asarray(np.sqrt(2.0 * np.maximum(excess, 0.0)))


@dataclass(frozen=True, slots=True, eq=False)
class UnitNoise:
    """What every unit adds to the cumulants of a walk under the promise, to rows and to stated events."""

    first: np.ndarray | None
    variance: np.ndarray
    third: np.ndarray
    fourth: np.ndarray
    rows: np.ndarray
    stated: np.ndarray

    @classmethod
    def of(cls, units: PromiseUnits) -> UnitNoise:
        """Of pooled rows: w^k times the k-th cumulant of a coin, times the number of coins."""
        w, v, t, trials = units.importance, units.noise, units.promised, units.trials
        variance = trials * w**2 * v
        third, fourth = variance * w * (1 - 2 * t), variance * w**2 * (1 - 6 * v)
        first = None if units.weights is None else trials * w * v
        return cls(first, variance, third, fourth, trials * w, trials * w * t)

    def of_groups(self, walks: GroupWalks) -> GroupNoise:
        """Summed over every group."""
        variance, third, fourth = (walks.sums(c) for c in (self.variance, self.third, self.fourth))
        first = variance if self.first is None else walks.sums(self.first)
        with np.errstate(divide="ignore", invalid="ignore"):
            step = np.where(first > 0, variance / first, 1.0)
            skewness = np.where(variance > 0, third / variance**1.5, np.inf)
            kurtosis = np.where(variance > 0, fourth / variance**2, np.inf)
        return GroupNoise(
            variance / step**2,
            step,
            np.abs(skewness),
            (skewness**2 > RARE) | (kurtosis > RARE),
            walks.sums(self.rows),
            walks.sums(self.stated),
        )


def certainty_scores(impossible: np.ndarray) -> np.ndarray:
    """Scores of so many outcomes that were promised not to happen; 0 for none."""
    return deviance_root(impossible, np.array(_CERTAIN))


class RangeTails:
    """An upper bound of the chance that any of many groups reaches a score: the sum of their tails.

    Parameters
    ----------
    noise : GroupNoise
        All groups.

    Notes
    -----
    The tail of one group is Feller's law of the range of Brownian motion, times the factor by which a
    Poisson law of the group's skewness exceeds the normal tail, both sides together. A group that cannot
    reach the score does not count (Tarone).
    """

    __slots__ = ("_counts", "_reach", "_skewness")

    def __init__(self, noise: GroupNoise) -> None:
        self._reach = noise.scores(noise.reach)
        skewness = np.where(noise.rare, 0.0, noise.skewness)
        n_levels = min(_SKEWNESS_LEVELS, len(skewness))
        self._skewness = np.array([part[-1] for part in np.array_split(np.sort(skewness), n_levels)])
        self._counts = np.searchsorted(self._skewness, skewness)

    def __call__(self, score: float) -> float:
        """The bound at one score, at most 1 and never 0."""
        score = min(score, _HIGHEST_SCORE)
        within = np.bincount(self._counts[self._reach >= score * (1 - 1e-9)], minlength=len(self._skewness))
        tails = range_survival(score) * skew_factor(score, self._skewness)
        return float(np.clip(np.sum(within * tails), range_survival(_HIGHEST_SCORE), 1.0))


def skew_factor(score: float, skewness: np.ndarray) -> np.ndarray:
    """How much heavier both tails of a Poisson law of this skewness are than normal ones, beyond a score.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.multicalibration.group_scores import skew_factor
    >>> skew_factor(4.0, np.array([0.0, 0.01, 0.4])).round(2)
    array([1.  , 1.02, 9.55])
    """
    factor = np.ones(len(skewness))
    skewed = skewness > 1e-3
    events = 1.0 / skewness[skewed] ** 2
    spread = score * np.sqrt(events)
    upper = special.gammainc(events + spread, events)
    lower = np.where(events > spread, special.gammaincc(np.maximum(events - spread, 0) + 1, events), 0.0)
    factor[skewed] = (upper + lower) / (2 * special.ndtr(-score))
    return factor
