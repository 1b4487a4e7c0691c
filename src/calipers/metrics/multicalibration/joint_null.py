"""What the worst of many groups would read under the promise: drawn jointly, or bounded.

All groups of one draw come from the same outcomes, so that groups that share rows keep their dependence. The
cost of a draw is one step per unit and set of attributes. Where that is too much, and below the resolution
of the draws, the bound of `RangeTails` takes its place: the sum of the groups' tails.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calipers.inference import SimulatedLaw
from calipers.inference.monte_carlo import tie_tolerance
from calipers.metrics.multicalibration.group_scores import GroupNoise, RangeTails
from calipers.metrics.multicalibration.group_walks import GroupWalks
from calipers.metrics.multicalibration.units import PromiseUnits

# Draws are added while fewer than _ENOUGH of them reach the observed value, in these stages.
_STAGES = (999, 9_999, 99_999)
_ENOUGH = 10
# Steps of all walks in all draws that are worth waiting for: one or two seconds.
WORK = 300_000_000


@dataclass(frozen=True, slots=True, eq=False)
class JointNull:
    """The largest score under the promise.

    Parameters
    ----------
    tails : RangeTails
        The bound.
    draws : SimulatedLaw or None
        Simulated largest scores, where they were affordable.
    """

    tails: RangeTails
    draws: SimulatedLaw | None

    @property
    def n_draws(self) -> int:
        """Simulated data sets."""
        return 0 if self.draws is None else self.draws.n_draws

    def p_value(self, score: float) -> float:
        """P(largest score of all groups >= score); below the resolution of the draws the bound."""
        if self.draws is None:
            return self.tails(score)
        simulated = self.draws.p_value(score)
        # Valid: the bound speaks only where no draw came near, so that it can only lower 1 / (draws + 1).
        is_beyond = simulated * (self.n_draws + 1) < 1.5
        return min(simulated, self.tails(score)) if is_beyond else simulated

    def point(self, level: float) -> float:
        """The score that a calibrated model stays below with probability ``level``."""
        if self.draws is None:
            return self.tails.point(1.0 - level)
        return float(self.draws.band(level).high)


def joint_null(
    units: PromiseUnits,
    families: Sequence[tuple[GroupWalks, GroupNoise, np.ndarray]],
    observed: float,
    tails: RangeTails,
    generator: np.random.Generator,
) -> JointNull:
    """The null of the largest score; ``families`` is empty when draws are not affordable."""
    if not families:
        return JointNull(tails, None)
    cost = len(units) * (len(families) + 1)
    draws = np.empty(0)
    for stage in _STAGES:
        n_extreme = int(np.sum(draws >= observed - tie_tolerance(observed, draws)))
        if draws.size and _is_enough(n_extreme, stage, stage * cost, tails(observed)):
            break
        more = [_largest(units, families, hits) for hits in units.draws(stage - draws.size, generator)]
        draws = np.concatenate([draws, *more])
    return JointNull(tails, SimulatedLaw(draws))


def _is_enough(n_extreme: int, next_stage: int, work: int, bound: float) -> bool:
    """Whether more draws would not change much, cost too much, or show less than the bound does."""
    return n_extreme >= _ENOUGH or work > WORK or (n_extreme == 0 and bound * (next_stage + 1) <= 1)


def _largest(
    units: PromiseUnits, families: Sequence[tuple[GroupWalks, GroupNoise, np.ndarray]], hits: np.ndarray
) -> np.ndarray:
    """The largest score over all groups, for hits (b, m)."""
    residuals, largest = units.residuals(hits), np.zeros(len(hits))
    for walks, noise, kept in families:
        ranges = walks.ranges(residuals)
        scores = noise.scores(ranges if kept.all() else ranges[:, kept])
        np.maximum(largest, scores.max(axis=1, initial=0.0), out=largest)
    return largest
