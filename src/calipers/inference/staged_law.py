"""A simulated law that gets more draws where its tail matters, and a bound beyond its last draw."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from calipers.inference.monte_carlo import tie_tolerance
from calipers.inference.null_law import SimulatedLaw

# Draws are added in these stages while fewer than _ENOUGH of them reach the observed value.
STAGES = (999, 9_999, 99_999)
_ENOUGH = 10
# Steps of all draws together that are worth waiting for: one or two seconds.
WORK = 300_000_000
_PRECISION = 1e-9


# An upper bound of P(reading >= x) that falls as x grows, in (0, 1].
TailBound = Callable[[float], float]


@dataclass(frozen=True, slots=True, eq=False)
class StagedLaw:
    """What a measure reads under its null, by draws and by a bound.

    Parameters
    ----------
    draws : SimulatedLaw or None
        Simulated readings; None where they cost too much.
    bound : callable or None
        Upper bound of P(reading >= x), used without draws and where no draw reaches the reading.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import SimulatedLaw
    >>> from calipers.inference.staged_law import StagedLaw
    >>> law = StagedLaw(SimulatedLaw(np.arange(99.0)), lambda x: 2.0**-x)
    >>> law.p_value(90.0), law.p_value(200.0)
    (0.1, 6.223015277861142e-61)
    """

    draws: SimulatedLaw | None
    bound: TailBound | None = None

    @property
    def n_draws(self) -> int:
        """Number of draws."""
        return 0 if self.draws is None else self.draws.n_draws

    @property
    def resolution(self) -> float | None:
        """The smallest p-value that the draws can show."""
        return 1.0 / (self.n_draws + 1) if self.n_draws else None

    def p_value(self, observed: float) -> float:
        """P(reading >= observed); valid, because the bound can only lower what no draw reached."""
        if self.draws is None:
            return self._bound(observed)
        simulated = self.draws.p_value(observed)
        is_beyond = simulated * (self.n_draws + 1) < 1.5
        return min(simulated, self._bound(observed)) if is_beyond else simulated

    def point(self, level: float) -> float:
        """The reading that a share ``level`` of the law stays below, or at least that much by the bound."""
        if self.draws is not None:
            return float(self.draws.band(level).high)
        low, high = 0.0, 1.0
        while self._bound(high) > 1.0 - level:
            low, high = high, 2.0 * high
        while high - low > _PRECISION * high:
            middle = (low + high) / 2
            low, high = (middle, high) if self._bound(middle) > 1.0 - level else (low, middle)
        return high

    def _bound(self, observed: float) -> float:
        return 1.0 if self.bound is None else self.bound(observed)


def staged_law(
    draw: Callable[[int], np.ndarray],
    observed: float,
    *,
    cost: float,
    bound: TailBound | None = None,
    n_draws: int = STAGES[0],
) -> StagedLaw:
    """The law from as many draws as its tail at the observed reading needs and the work allows.

    Parameters
    ----------
    draw : callable
        ``draw(k)`` gives k independent readings under the null.
    observed : float
        The reading whose p-value is wanted.
    cost : float
        Steps of one draw.
    bound : callable or None
        Upper bound of P(reading >= x), never 0.
    n_draws : int
        Draws of the first stage.

    Returns
    -------
    StagedLaw

    Notes
    -----
    999 draws (or ``n_draws``); 9 999 and 99 999 while fewer than ten reach the observed value. The p-value
    stays exactly valid: where a later stage is asked for, that of the one before, itself valid, was below
    ten in its number of draws already.
    """
    stages = (n_draws, *(stage for stage in STAGES if stage > n_draws))
    return StagedLaw(staged_draws(draw, observed, cost=cost, bound=bound, stages=stages), bound)


def staged_draws(
    draw: Callable[[int], np.ndarray],
    observed: float,
    *,
    cost: float,
    bound: TailBound | None = None,
    stages: Sequence[int] = STAGES,
) -> SimulatedLaw:
    """The draws of `staged_law`, in other stages if asked for."""
    draws = np.empty(0)
    for stage in stages:
        if draws.size and _is_enough(draws, observed, stage, cost, bound):
            break
        draws = np.concatenate([draws, draw(stage - draws.size)])
    return SimulatedLaw(draws)


def is_affordable(cost: float) -> bool:
    """Whether the first stage is worth its work.

    Examples
    --------
    >>> from calipers.inference.staged_law import is_affordable
    >>> is_affordable(1e5), is_affordable(1e6)
    (True, False)
    """
    return STAGES[0] * cost <= WORK


def _is_enough(draws: np.ndarray, observed: float, stage: int, cost: float, bound: TailBound | None) -> bool:
    """Whether more draws would not change much, cost too much, or show less than the bound does."""
    n_extreme = int(np.sum(draws >= observed - tie_tolerance(observed, draws)))
    is_bounded = bound is not None and n_extreme == 0 and bound(observed) * (stage + 1) <= 1
    return n_extreme >= _ENOUGH or stage * cost > WORK or is_bounded
