"""Rows with which an audit finds a slice that it has to look for: since when, where, how hard.

These tests take the largest of many departures, so their power has no closed form: data sets with the fault
are drawn and given to the test that an audit runs. On a small interval of rows the power is a normal
probability whose argument is linear in the root of the rows; a line through a few points uses
all draws for one answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from scipy import optimize, stats

from calipers.auditing.checks.adaptive import PARTS, n_parts_of
from calipers.auditing.checks.features import pick_worst
from calipers.auditing.checks.over_time import FEWEST_ROWS
from calipers.auditing.slices import flat_p_values
from calipers.conformal.ranks import conformal_rank
from calipers.exceptions import InputError
from calipers.inference import ShareCounts
from calipers.inputs import check_features
from calipers.metrics.conditional.streamed_excess_risk import FEWEST_MISSES
from calipers.metrics.distributions.anderson_darling import anderson_darling, anderson_darling_p_value
from calipers.metrics.over_time.time_nulls import flat_null
from calipers.metrics.over_time.time_units import MAX_CELLS, TimeUnits

# Rows grow by this factor until the power is reached; the line has so many points around that place.
_GROWTH, _POINTS, _AROUND = 1.5, 6, 1.2
# Draws of the null law of changes over time: in all, and those that must lie beyond the critical value.
_NULL_DRAWS, _BEYOND = 4000, 100
# Outcomes drawn anew for rows that were picked as risky.
_OUTCOMES = 200


class SliceTest(ABC):
    """A test that looks for a slice; its power is simulated.

    Parameters
    ----------
    level : float
        Of the test.
    alpha, effect : float
        The other rows miss alpha, the slice alpha + effect.
    share : float
        Of all rows, in the slice.
    n_calibration : int or None
        Rows the predictor was conformalised on; their luck moves all rows together.
    """

    # Data sets drawn to find the place, and for each point of the line.
    n_draws = 200, 1000
    fewest_rows = FEWEST_ROWS
    # Rows at which the test changes, and so its power jumps.
    jumps: tuple[int, ...] = ()
    most_rows = 10**8

    def __init__(
        self, level: float, alpha: float, effect: float, share: float, n_calibration: int | None
    ) -> None:
        self.level, self.alpha, self.effect, self.share = level, alpha, effect, share
        self.n_calibration = n_calibration

    @abstractmethod
    def found(self, n: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Whether, or with which probability, the slice is found in each of so many data sets of n rows."""

    def rates(self, n_draws: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Coverage of the other rows and of the slice in so many data sets, (b, 1)."""
        others = np.full((n_draws, 1), 1.0 - self.alpha)
        if (n := self.n_calibration) is not None:
            rank = conformal_rank(n, self.alpha)
            others = rng.beta(rank, n + 1 - rank, (n_draws, 1))
        return others, np.clip(others - self.effect, 0.0, 1.0)

    def power(self, n: int, n_draws: int, rng: np.random.Generator) -> float:
        """Share of data sets in which the slice is found."""
        return float(np.mean(self.found(n, n_draws, rng)))

    def rows_for(self, power: float, rng: np.random.Generator) -> int:
        """The number of rows from which on the power stays, to within the noise of the draws."""
        few, many = self.n_draws
        first = max((n for n in self.jumps if self.power(n, many, rng) < power), default=self.fewest_rows)
        last = min((n for n in self.jumps if n > first), default=self.most_rows)
        n = int(np.clip(self._first_guess(power), first, last))
        enough = self.power(n, few, rng) >= power
        while n != (first if enough else last):
            beyond = int(np.clip(n / _GROWTH if enough else np.ceil(n * _GROWTH), first, last))
            if (self.power(beyond, few, rng) >= power) != enough:
                ends = max(first, min(n, beyond) / _AROUND), min(last - 1, max(n, beyond) * _AROUND)
                return int(np.clip(self._crossing(*ends, power, rng), first, last))
            n = beyond
        if n == self.most_rows:
            raise InputError(
                f"no number of rows up to {n} finds effect={self.effect:g} with power {power:g}: with {n} "
                f"rows the power is {self.power(n, many, rng):.2f}. Use a larger effect or less power."
            )
        return n

    def _first_guess(self, power: float) -> float:
        """Rows with which a slice that is known beforehand is found, by the normal law."""
        reach = stats.norm.isf(self.level) + stats.norm.ppf(power)
        noise = self.alpha * (1 - self.alpha) / (self.share * (1 - self.share))
        return float(noise * max(1.0, reach) ** 2 / self.effect**2)

    def _crossing(self, low: float, high: float, power: float, rng: np.random.Generator) -> float:
        """Where the line through points of the power, in normal deviates, crosses what is asked for."""
        rows, n_draws = np.unique(np.rint(np.linspace(low**0.5, high**0.5, _POINTS) ** 2)), self.n_draws[1]
        seen = np.array([self.power(int(n), n_draws, rng) for n in rows])
        seen = np.clip(seen, 0.5 / n_draws, 1.0 - 0.5 / n_draws)
        deviates = stats.norm.ppf(seen)
        weight = stats.norm.pdf(deviates) / np.sqrt(seen * (1 - seen))
        slope, start = np.polyfit(np.sqrt(rows), deviates, 1, w=weight) if len(rows) > 1 else (0.0, 0.0)
        if slope <= 0:
            return high
        root = np.clip((stats.norm.ppf(power) - start) / slope, low**0.5, (high + 1) ** 0.5)
        return float(np.ceil(root**2))


class PitTest(SliceTest):
    """Uniformity of PIT values (CAL507): in some rows outcomes are shifted by a part of their spread."""

    n_draws = 300, 1500
    fewest_rows, most_rows = 5, 10**6

    def found(self, n: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Whether the Anderson-Darling test rejects; at 1 - alpha the shares differ by the effect."""
        critical = float(
            optimize.brentq(lambda x: anderson_darling_p_value(x, float(n)) - self.level, 0.05, 400.0)
        )
        rank = np.arange(n, dtype=float)
        true = np.clip(1 - self.alpha - self.effect, 1e-12, 1 - 1e-12)
        shift = float(stats.norm.ppf(1 - self.alpha) - stats.norm.ppf(true))
        is_found = []
        for _ in range(n_draws):
            off = rng.random(n) < self.share
            pit = np.sort(stats.norm.cdf(rng.normal(size=n) + shift * off))
            is_found.append(anderson_darling(pit, rank, rank + 1) > critical)
        return np.array(is_found)

    def _first_guess(self, power: float) -> float:
        reach = stats.norm.isf(self.level / 2) + stats.norm.ppf(power)
        return float(self.alpha * (1 - self.alpha) * max(1.0, reach) ** 2 / (self.share * self.effect) ** 2)


class TimeTest(SliceTest):
    """Change over time (CAL204): the last share of the rows has the effect."""

    n_draws = 200, 500

    def found(self, n: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Whether the largest charged departure over windows is beyond that of shuffled outcomes."""
        edges = np.ceil(np.linspace(0, n, min(n, MAX_CELLS) + 1) - 1e-9).astype(np.int64)
        rows = np.diff(edges)
        late = np.clip(edges[1:] - (n - round(self.share * n)), 0, rows)
        others, slice_ = self.rates(n_draws, rng)
        hits = rng.binomial(rows - late, others) + rng.binomial(late, slice_)
        n_null = int(np.ceil(max(_NULL_DRAWS, _BEYOND / self.level) / n_draws))
        seen, null = [], []
        for own in hits:
            law = flat_null(self._units(rows.astype(float), own.astype(float)))
            # Without a window that can be judged there is nothing to find.
            seen.append(float(law.windows.largest(law.seen[None])[0]) if len(law.windows) else -np.inf)
            if len(law.windows):
                null.append(law.windows.largest(law.draw(n_null, rng)))
        critical = np.quantile(np.concatenate(null), 1.0 - self.level) if null else np.inf
        return np.array(seen) > critical

    def _units(self, rows: np.ndarray, hits: np.ndarray) -> TimeUnits:
        when, promised = np.arange(float(len(rows))), np.full(len(rows), 1.0 - self.alpha)
        return TimeUnits(when, when, promised, rows, hits, rows, whole=True)


class DifficultyTest(SliceTest):
    """Coverage along difficulty (CAL401): the hardest share of the rows has the effect."""

    n_draws = 500, 2000
    jumps = tuple(sorted(enough for _, enough in PARTS if enough))

    def found(self, n: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Whether the worst of the parts is covered less often than the others; Bonferroni."""
        n_parts = n_parts_of(n)
        edges = np.ceil(np.arange(n_parts + 1) * n / n_parts - 1e-9).astype(np.int64)
        rows = np.diff(edges)
        hard = np.clip(round(self.share * n) - edges[:-1], 0, rows)
        others, slice_ = self.rates(n_draws, rng)
        hits = rng.binomial(rows - hard, others) + rng.binomial(hard, slice_)
        # Parts have equally many rows, but for one: the worst is the one with the lowest share.
        worst = np.argmin(hits / rows, axis=1)
        own, size = hits[np.arange(n_draws), worst].astype(float), rows[worst].astype(float)
        whole = hits.sum(axis=1).astype(float), np.full(n_draws, float(n))
        return n_parts * flat_p_values(ShareCounts(own, size, own, size), whole) <= self.level


class FeatureTest(SliceTest):
    """Coverage by features (CAL202): a region, the lowest share of the first feature, has the effect."""

    n_draws = 8, 24
    most_rows = 20_000

    n_features = 4

    def found(self, n: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Probability that the fifth picked in one of two halves is covered less often than the others.

        Picked rows do not depend on the outcomes of their own half, so these are drawn many times.
        """
        return np.array(
            [self._chance(n, *rates, rng) for rates in zip(*self.rates(n_draws, rng), strict=True)]
        )

    def _chance(self, n: int, others: np.ndarray, slice_: np.ndarray, rng: np.random.Generator) -> float:
        X = rng.random((n, self.n_features))
        inside, half = X[:, 0] < self.share, rng.permutation(n) < n // 2
        covered = rng.random(n) < np.where(inside, slice_, others)
        if n - covered.sum() < 2 * FEWEST_MISSES:
            return 0.0
        missed = 1.0
        for train in (half, ~half):
            picked = pick_worst(check_features(X), covered, train, ~train, rng)
            regions = inside[~train]
            own, rest = (
                rng.binomial((part & regions).sum(), slice_, _OUTCOMES)
                + rng.binomial((part & ~regions).sum(), others, _OUTCOMES)
                for part in (picked, ~picked)
            )
            hits, size = own.astype(float), np.full(_OUTCOMES, float(picked.sum()))
            whole = (own + rest).astype(float), np.full(_OUTCOMES, float(len(picked)))
            p_values = flat_p_values(ShareCounts(hits, size, hits, size), whole)
            missed *= 1.0 - float(np.mean(2.0 * p_values <= self.level))
        return 1.0 - missed
