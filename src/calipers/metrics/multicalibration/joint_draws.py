"""What the worst of many groups would read under the promise, all groups drawn together.

All groups of one draw come from the same outcomes, so that groups that share rows keep their dependence. The
cost of a draw is one step per unit and set of attributes. Where that is too much, and below the resolution
of the draws, the bound of `RangeTails` takes its place: the sum of the groups' tails.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from calipers.inference.staged_law import StagedLaw, staged_law
from calipers.metrics.multicalibration.group_scores import GroupNoise, RangeTails
from calipers.metrics.multicalibration.group_walks import GroupWalks
from calipers.metrics.multicalibration.units import PromiseUnits

# Walks of the groups of some attributes, their noise, and which of them count.
Family = tuple[GroupWalks, GroupNoise, np.ndarray]


def joint_law(
    units: PromiseUnits,
    families: Sequence[Family],
    observed: float,
    tails: RangeTails,
    generator: np.random.Generator,
    n_draws: int,
) -> StagedLaw:
    """The law of the largest score; ``families`` is empty when draws are not affordable."""
    if not families:
        return StagedLaw(None, tails)
    draw = partial(largest_scores, units, families, generator)
    cost = draw_cost(len(units), len(families))
    return staged_law(draw, observed, cost=cost, bound=tails, n_draws=n_draws)


def draw_cost(n_units: int, n_sets: int) -> int:
    """Steps of one draw of all walks."""
    return n_units * (n_sets + 1)


def largest_scores(
    units: PromiseUnits, families: Sequence[Family], generator: np.random.Generator, n_draws: int
) -> np.ndarray:
    """The largest score over all groups of so many data sets drawn as the promise says."""
    return np.concatenate([_largest(units, families, hits) for hits in units.draws(n_draws, generator)])


def _largest(units: PromiseUnits, families: Sequence[Family], hits: np.ndarray) -> np.ndarray:
    residuals, largest = units.residuals(hits), np.zeros(len(hits))
    for walks, noise, kept in families:
        ranges = walks.ranges(residuals)
        scores = noise.scores(ranges if kept.all() else ranges[:, kept])
        np.maximum(largest, scores.max(axis=1, initial=0.0), out=largest)
    return largest
