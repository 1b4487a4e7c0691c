"""Rows with which an audit finds a group that is covered less often, or loses more, than the others.

The audit compares the misses of a group with those of all other rows, given their total: Fisher's test. The
level of coverage, and the luck of a calibration set, which moves all rows together, do not enter the test;
they only say how many misses there are.
"""

from __future__ import annotations

import numpy as np
from scipy import special, stats

from calipers.conformal.ranks import conformal_rank
from calipers.exceptions import InputError
from calipers.inference import CalibrationLaw, Moments, bounded_mean_p_value

# No plan asks for more rows than this.
MOST_ROWS = 10**10
# Nodes of equal probability: misses of the other rows, sizes of the group, coverages of calibration sets.
_NODES, _SIZES, _SETS = 21, 9, 5
# Misses of the group from which on their law is normal to within a hundredth of the rows.
_MANY = 5000
# The power falls a little where one miss more is needed: so far beyond the first rows that do is looked.
_BEYOND, _STEPS = 1.05, 5


class GroupTest:
    """Fisher's one-sided test of the misses of a group against those of all other rows (CAL201).

    Parameters
    ----------
    level : float
        Of the test of this group, corrected for the number of groups.
    alpha, effect : float
        The other rows miss alpha, the group alpha + effect.
    share : float
        Of all rows, in the group.
    n_calibration : int or None
        Rows the predictor was conformalised on.
    """

    def __init__(
        self, level: float, alpha: float, effect: float, share: float, n_calibration: int | None
    ) -> None:
        self.level, self.effect, self.share = level, effect, share
        self.misses = np.array([alpha])
        if n_calibration is not None:
            law = CalibrationLaw(n_calibration, conformal_rank(n_calibration, alpha))
            self.misses = 1.0 - np.asarray(law.quantile((np.arange(_SETS) + 0.5) / _SETS))

    def power(self, n: int) -> float:
        """Probability to find the group among n rows."""
        if n * self.share * float(self.misses.mean()) > _MANY:
            return float(np.mean([self._normal(n, float(alpha)) for alpha in self.misses]))
        # Each row is in the group with this probability: half of all samples hold fewer than expected.
        sizes = np.clip(stats.binom.ppf((np.arange(_SIZES) + 0.5) / _SIZES, n, self.share), 1, n - 1)
        inside, times = np.unique(sizes.astype(int), return_counts=True)
        powers = [[self._exact(int(k), n - int(k), float(alpha)) for k in inside] for alpha in self.misses]
        return float(np.mean(powers @ times) / _SIZES)

    def _exact(self, inside: int, outside: int, alpha: float) -> float:
        """Over the misses of the other rows, the chance of as many in the group as the test needs."""
        other = stats.binom.ppf((np.arange(_NODES) + 0.5) / _NODES, outside, alpha)
        values, times = np.unique(other, return_counts=True)
        needed = self._needed(inside, outside, values)
        return float(stats.binom.sf(needed - 1, inside, min(1.0, alpha + self.effect)) @ times / _NODES)

    def _needed(self, inside: int, outside: int, other: np.ndarray) -> np.ndarray:
        """Smallest misses of the group that are too many beside those of the other rows."""
        low, high = np.full(len(other), -1.0), np.full(len(other), inside + 1.0)
        while np.any(high - low > 1):
            middle = np.floor((low + high) / 2)
            rejects = hypergeometric_tail(middle, middle + other, inside, outside) <= self.level
            low, high = np.where(rejects, low, middle), np.where(rejects, middle, high)
        return high

    def _normal(self, n: int, alpha: float) -> float:
        inside, outside = self.share * n, (1 - self.share) * n
        true = min(1.0, alpha + self.effect)
        pooled = (inside * true + outside * alpha) / (inside + outside)
        spread = np.sqrt(pooled * (1 - pooled) * (1 / inside + 1 / outside))
        own = np.sqrt(true * (1 - true) / inside + alpha * (1 - alpha) / outside)
        return float(stats.norm.sf((stats.norm.isf(self.level) * spread - (true - alpha)) / max(own, 1e-300)))

    def rows_for(self, power: float) -> int:
        """The smallest number of rows from which on the power stays, to within one in a thousand."""
        low, high = 1, 4
        while self.power(high) < power:
            low, high = high, 2 * high
            if high > MOST_ROWS:
                raise InputError(
                    f"effect={self.effect:g} needs more than {MOST_ROWS:.0e} rows for power {power:g}."
                )
        while high - low > max(1, high // 1000):
            middle = (low + high) // 2
            low, high = (middle, high) if self.power(middle) < power else (low, middle)
        further = np.unique(np.rint(high * np.linspace(1.0, _BEYOND, _STEPS + 1)).astype(int))
        below = [int(n) for n in further if self.power(int(n)) < power]
        return 1 + below[-1] if below else high


class GroupLossTest(GroupTest):
    """The test of the mean loss of a group against the bound, or the mean of all rows, if larger (CAL603).

    Parameters
    ----------
    level : float
        Of the test of this group, corrected for the number of groups.
    bound, mean : float
        Mean loss of the other rows, and of the group, as shares of the range.
    size : float
        Losses are 0 or this.
    share : float
        Of all rows, in the group.
    """

    def __init__(self, level: float, bound: float, mean: float, size: float, share: float) -> None:
        super().__init__(level, bound, mean - bound, share, None)
        self.bound, self.size, self.true = bound, size, min(mean / size, 1.0)

    def power(self, n: int) -> float:
        """Probability to find the group among n rows."""
        sizes = stats.binom.ppf((np.arange(_SIZES) + 0.5) / _SIZES, n, self.share)
        inside, times = np.unique(np.clip(sizes, 1, n - 1).astype(int), return_counts=True)
        return float(np.array([self._found(int(k), n - int(k)) for k in inside]) @ times / _SIZES)

    def _found(self, inside: int, outside: int) -> float:
        """Over the mean of the other rows, the chance of as many losses in the group as the test needs."""
        chances = (np.arange(_NODES) + 0.5) / _NODES
        other = stats.binom.ppf(chances, outside, self.bound / self.size) * self.size
        found = 0.0
        for total in other:
            low, high = -1, inside + 1
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (low, middle) if self._rejects(middle, inside, total, outside) else (middle, high)
            found += float(stats.binom.sf(high - 1, inside, self.true)) / _NODES
        return found

    def _rejects(self, events: int, inside: int, total: float, outside: int) -> bool:
        share = events / inside
        mean, squares = share * self.size, inside * share * (1 - share) * self.size**2
        null = max(self.bound, (events * self.size + total) / (inside + outside))
        if mean <= null:
            return False
        two_sided = bounded_mean_p_value(Moments(float(inside), mean, squares), null=null, low=0.0, high=1.0)
        return two_sided / 2 <= self.level


def hypergeometric_tail(misses: np.ndarray, total: np.ndarray, inside: int, outside: int) -> np.ndarray:
    """P(at least so many of the total misses lie among the rows inside), each by a sum of its largest terms.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.auditing.group_power import hypergeometric_tail
    >>> hypergeometric_tail(np.array([2.0]), np.array([3.0]), 4, 6).round(4)  # (36 + 4) / 120
    array([0.3333])
    """
    reach = int(8 * np.sqrt(1.0 + float(np.max(total)) * inside / (inside + outside))) + 60
    upwards = misses > total * inside / (inside + outside)
    j = np.arange(reach)[:, None]
    k = np.where(upwards, misses + j, misses - 1.0 - j)
    lowest = np.maximum(0.0, total - outside)
    possible = (k >= lowest) & (k <= np.minimum(inside, total))
    k = np.where(possible, k, lowest)
    log_chance = (
        _log_choose(inside, k) + _log_choose(outside, total - k) - _log_choose(inside + outside, total)
    )
    found = np.where(possible, np.exp(log_chance), 0.0).sum(axis=0)
    return np.asarray(np.clip(np.where(upwards, found, 1.0 - found), 0.0, 1.0))


def _log_choose(n: int, k: np.ndarray) -> np.ndarray:
    return np.asarray(special.gammaln(n + 1.0) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1.0))
