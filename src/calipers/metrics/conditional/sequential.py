"""A test of "coverage does not depend on x" by the classifier's own predictions, valid at any n.

Cross-fit scores of different folds are dependent: every fold trains the models of the others, and the
row-wise test of their mean accuses sound predictors in 9 to 12 % of all cases at the 5 % level. Folds
taken one after the other are not: the model of a fold saw only earlier folds, so given the past its
deviations h - t are fixed and the fold's coverage is fresh. Each step has an exact p-value given the past,
steps are therefore independent under the null, and Fisher's rule combines them without approximation.

Every step is a permutation test given the number covered or, with an alpha per row, a draw from the
conditional law of `null_outcomes`: both test "flat".
"""

from __future__ import annotations

import numpy as np
from scipy import special

from calipers.inference import monte_carlo_p
from calipers.metrics.conditional.cross_fit import Fold
from calipers.metrics.conditional.losses import SIDES, clip_to_side
from calipers.metrics.conditional.null_outcomes import flat_mean, flat_sums

# Beyond this many rows in a step the sum is normal for all purposes.
_MANY_ROWS = 4000


def sequential_p_values(
    steps: tuple[Fold, ...], covered: np.ndarray, target: np.ndarray, rng: np.random.Generator
) -> dict[str, float]:
    """Side -> p-value of "flat"."""
    logs = np.array([_step(step, covered, target, rng) for step in steps])
    return {side: fisher(logs[:, i]) for i, side in enumerate(SIDES)}


def fisher(log_p_values: np.ndarray) -> float:
    """Fisher's combination of independent p-values, given their logarithms; never 0."""
    tail = float(special.chdtrc(2 * len(log_p_values), -2.0 * float(np.sum(log_p_values))))
    return max(tail, float(np.finfo(float).tiny))


def _step(step: Fold, covered: np.ndarray, target: np.ndarray, rng: np.random.Generator) -> list[float]:
    """Per side, log P(sum of (h - t) z at least as large) given h - t, which earlier rows have fixed."""
    z, t = covered[step.rows].astype(float), target[step.rows]
    deviations = np.column_stack([clip_to_side(step.predictions, t, side) - t for side in SIDES])
    if len(z) > _MANY_ROWS:
        return [_normal_log_p(deviation, z, t) for deviation in deviations.T]
    draws = flat_sums(z, t, deviations, rng)
    return [
        float(np.log(monte_carlo_p(float(z @ deviation), draw).p_value)) if deviation.any() else 0.0
        for deviation, draw in zip(deviations.T, draws.T, strict=True)
    ]


def _normal_log_p(deviation: np.ndarray, z: np.ndarray, t: np.ndarray) -> float:
    mean = flat_mean(z, t)
    curvature = mean * (1.0 - mean)
    if not curvature.any():
        return 0.0
    # Given the number covered, what the deviations have in common cannot show.
    deviation = deviation - np.sum(curvature * deviation) / np.sum(curvature)
    excess, variance = np.sum(deviation * (z - mean)), np.sum(deviation**2 * curvature)
    return float(special.log_ndtr(-excess / np.sqrt(variance))) if variance > 0 else 0.0
