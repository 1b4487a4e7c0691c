"""What a measure would read if nothing were wrong: an exact or a simulated law.

Both kinds answer the same questions: how surprising is this reading (p-value), and up to where would a
sound predictor read (the band). A reading lies outside the band exactly when its p-value is at most one
minus the band's level.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.inference.alternatives import check_alternative
from calipers.inference.monte_carlo import MonteCarloP, monte_carlo_p, tie_tolerance
from calipers.inference.proportions import Interval, combine_tails
from calipers.inputs import check_confidence

# Null bands hold this share of what a sound predictor reads.
NULL_LEVEL = 0.95
_ROUNDING = 1.0 + 1e-12


class NullLaw(ABC):
    """What a measure reads under its null: an `ExactLaw` or a `SimulatedLaw`.

    Examples
    --------
    >>> from calipers.inference import ExactLaw, NullLaw
    >>> coin = ExactLaw([0, 1, 2], [0.25, 0.5, 0.25])
    >>> isinstance(coin, NullLaw), coin.p_value(2), coin.p_value(2, "two-sided")
    (True, 0.25, 0.5)
    """

    __slots__ = ()

    @abstractmethod
    def _tail(self, observed: float, *, upper: bool, share: float) -> float:
        """Mass beyond the observed value towards one side, plus ``share`` of the mass tied with it."""

    @abstractmethod
    def _point(self, tail: float, *, upper: bool) -> float:
        """The value nearest the centre beyond which at most ``tail`` of the law lies."""

    def p_value(self, observed: float, alternative: str = "greater") -> float:
        """P(reading at least as far towards the alternative); two-sided is twice the smaller tail.

        Valid, P(p <= u) <= u, whatever the ties. NaN for a NaN reading.
        """
        return self._combined(observed, alternative, 1.0, 1.0)

    def randomized_p_value(
        self, observed: float, generator: np.random.Generator, alternative: str = "greater"
    ) -> float:
        """The p-value with its ties broken by a uniform draw: exactly uniform under the null."""
        u = float(generator.random())
        return self._combined(observed, alternative, u, 1.0 - u)

    def band(self, level: float = NULL_LEVEL, alternative: str = "greater") -> Interval:
        """The band that holds at least ``level`` of the law, one-sided towards the alternative.

        "greater" bounds it above only (the other end is -inf), "less" below only. With too few
        simulated draws for the level the end is infinite.
        """
        tail = 1.0 - check_confidence(level, name="level")
        if check_alternative(alternative) == "two-sided":
            tail /= 2
        low = -math.inf if alternative == "greater" else self._point(tail, upper=False)
        high = math.inf if alternative == "less" else self._point(tail, upper=True)
        return Interval(low, high)

    def estimate_fields(
        self, observed: float, *, alternative: str = "greater", level: float = NULL_LEVEL
    ) -> dict[str, Any]:
        """p_value, alternative, null_low, null_high and null_level, ready for an `Estimate`."""
        p_value = self.p_value(observed, alternative)
        low, high = self.band(level, alternative)
        return {
            "p_value": None if math.isnan(p_value) else p_value,
            "alternative": alternative,
            "null_low": None if alternative == "greater" else low,
            "null_high": None if alternative == "less" else high,
            "null_level": level,
        }

    def _combined(self, observed: float, alternative: str, share_up: float, share_down: float) -> float:
        check_alternative(alternative)
        if math.isnan(observed):
            return math.nan
        # A tail can be the whole cost of a test: a tail that is not read is not computed.
        if alternative == "greater":
            return float(self._tail(observed, upper=True, share=share_up))
        lower = self._tail(observed, upper=False, share=share_down)
        upper = 1.0 if alternative == "less" else self._tail(observed, upper=True, share=share_up)
        return float(combine_tails(lower, upper, alternative))


class ExactLaw(NullLaw):
    """A discrete law known exactly.

    Parameters
    ----------
    values : array
        Its atoms, in any order; atoms that are equal up to rounding are one.
    masses : array
        Their probabilities, summing to 1.

    Examples
    --------
    >>> from calipers.inference import ExactLaw
    >>> die = ExactLaw([1, 2, 3, 4, 5, 6], [1 / 6] * 6)
    >>> round(die.p_value(5), 4), die.band(0.8).high
    (0.3333, 5.0)
    """

    __slots__ = ("_above", "_below", "_masses", "_values")

    def __init__(self, values: Any, masses: Any) -> None:
        values, masses = np.asarray(values, dtype=float), np.asarray(masses, dtype=float)
        total = float(np.sum(masses))
        if values.shape != masses.shape or values.ndim != 1 or not values.size:
            raise InputError(
                f"values and masses must be vectors of one length, got {values.shape} and {masses.shape}."
            )
        if np.any(np.isnan(values)) or not np.all(masses >= 0) or abs(total - 1.0) > 1e-9:
            raise InputError(f"masses must be non-negative and sum to 1 over known values, got {total!r}.")
        order = np.argsort(values, kind="stable")
        self._values, self._masses = values[order], masses[order] / total
        # Summed from each end, so that small tails keep their digits.
        self._below = np.concatenate([[0.0], np.cumsum(self._masses)])
        self._above = np.concatenate([np.cumsum(self._masses[::-1])[::-1], [0.0]])

    def __repr__(self) -> str:
        return f"ExactLaw({self._values.size} atoms in [{self._values[0]:g}, {self._values[-1]:g}])"

    @property
    def mean(self) -> float:
        """Expectation."""
        return float(np.sum(self._values * self._masses))

    @property
    def std(self) -> float:
        """Standard deviation."""
        return float(np.sqrt(np.sum(self._masses * (self._values - self.mean) ** 2)))

    def _tail(self, observed: float, *, upper: bool, share: float) -> float:
        tolerance = tie_tolerance(observed, self._values)
        first = int(np.searchsorted(self._values, observed - tolerance, side="left"))
        last = int(np.searchsorted(self._values, observed + tolerance, side="right"))
        beyond = self._above[last] if upper else self._below[first]
        return min(1.0, float(beyond + share * np.sum(self._masses[first:last])))

    def _point(self, tail: float, *, upper: bool) -> float:
        if upper:  # smallest atom with P(> atom) <= tail
            return float(self._values[np.argmax(self._above[1:] <= tail * _ROUNDING)])
        kept = np.flatnonzero(self._below[:-1] <= tail * _ROUNDING)
        return float(self._values[kept[-1]])


class SimulatedLaw(NullLaw):
    """A law known through draws.

    Parameters
    ----------
    draws : array
        Independent (or exchangeable with the reading) draws of the measure under the null. Integers are
        compared exactly, floats with a tolerance far below the spread of the draws. NaN marks a
        draw where the measure was undefined; it counts as at least as far as any reading.

    Notes
    -----
    p = (1 + #{draws at least as far}) / (draws + 1), valid at any number of draws. The band's end is the
    matching order statistic, number ceil(level (draws + 1)): infinite when there are too few draws.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import SimulatedLaw
    >>> law = SimulatedLaw(np.arange(1, 100))
    >>> law.p_value(96), law.band(0.95).high
    (0.05, 95.0)
    """

    __slots__ = ("_draws", "_n_undefined")

    def __init__(self, draws: Any) -> None:
        draws = np.sort(np.asarray(draws).ravel())  # NaN last
        if not draws.size:
            raise InputError("draws must hold at least one draw, got 0.")
        self._n_undefined = int(np.sum(np.isnan(draws))) if draws.dtype.kind == "f" else 0
        self._draws = draws[: draws.size - self._n_undefined]
        self._draws.flags.writeable = False

    def __repr__(self) -> str:
        return f"SimulatedLaw({self.n_draws} draws)"

    def mirrored(self) -> SimulatedLaw:
        """The law of minus the measure."""
        draws = np.concatenate([-self._draws, np.full(self._n_undefined, np.nan)])
        return SimulatedLaw(draws)

    @property
    def n_draws(self) -> int:
        """Number of draws, undefined ones included."""
        return int(self._draws.size) + self._n_undefined

    @property
    def n_undefined(self) -> int:
        """Draws where the measure was NaN."""
        return self._n_undefined

    @property
    def mean(self) -> float:
        """Mean of the defined draws; NaN without any."""
        return float(np.mean(self._draws)) if self._draws.size else math.nan

    @property
    def std(self) -> float:
        """Standard deviation of the defined draws; NaN below two."""
        return float(np.std(self._draws, ddof=1)) if self._draws.size > 1 else math.nan

    def monte_carlo_p(
        self, observed: float, alternative: str = "greater", *, confidence: float = 0.95
    ) -> MonteCarloP:
        """The p-value with its Monte-Carlo error."""
        draws = self._draws
        if self._n_undefined:
            draws = np.concatenate([draws, np.full(self._n_undefined, np.nan)])
        return monte_carlo_p(observed, draws, alternative=alternative, confidence=confidence)

    def _tail(self, observed: float, *, upper: bool, share: float) -> float:
        tolerance = tie_tolerance(observed, self._draws)
        first = int(np.searchsorted(self._draws, observed - tolerance, side="left"))
        last = int(np.searchsorted(self._draws, observed + tolerance, side="right"))
        beyond = self._draws.size - last if upper else first
        # The reading itself is one more draw, tied with itself.
        return (beyond + self._n_undefined + share * (last - first + 1)) / (self.n_draws + 1)

    def _point(self, tail: float, *, upper: bool) -> float:
        # Beyond the j-th smallest draw the p-value is (draws + 1 - j) / (draws + 1).
        rank = math.ceil((1.0 - tail) * (self.n_draws + 1) - 1e-9)
        if rank > self._draws.size:
            return math.inf if upper else -math.inf
        return float(self._draws[rank - 1] if upper else self._draws[self._draws.size - rank])
