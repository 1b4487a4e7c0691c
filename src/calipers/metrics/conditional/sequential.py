"""Tests of "covers 1 - alpha at every x" and "coverage does not depend on x", valid at any n.

Cross-fit scores of different folds are dependent: every fold trains the models of the others, and the
row-wise test of their mean accuses sound predictors in 9 to 12 % of all cases at the 5 % level. Folds
taken one after the other are not: the model of a fold saw only earlier folds, so given the past its
pulls h - t are fixed and the fold's coverage is fresh. Each step has an exact p-value given the past, steps
are therefore independent under the null, and Fisher's rule combines them without approximation.

With one alpha for all rows every step is a permutation test given the number covered, which tests "flat", and
the level enters as one more independent p-value, the exact one of the total, which makes it a test of
"target". With an alpha per row the steps redraw each row at its own target, and "flat" is the conditional
law of `null_outcomes`.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from calipers.inference import monte_carlo_p
from calipers.metrics.conditional.cross_fit import Fold
from calipers.metrics.conditional.losses import SIDES, clip_to_side
from calipers.metrics.conditional.null_outcomes import flat_mean, flat_outcomes, redrawn

# Beyond this many rows in a step the sum is normal for all purposes.
_MANY_ROWS = 4000


def sequential_p_values(
    steps: tuple[Fold, ...],
    covered: np.ndarray,
    target: np.ndarray,
    level: dict[str, float] | None,
    rng: np.random.Generator,
) -> dict[str, dict[str, float]]:
    """Side -> {"p_target": ..., "p_flat": ...}.

    ``level`` holds, per side, the p-value of the number covered; None when the targets differ by row.
    """
    flat = np.array([_step(step, covered, target, "flat", rng) for step in steps])
    if level is None:
        full = np.array([_step(step, covered, target, "target", rng) for step in steps])
    else:
        full = np.vstack([flat, [log_p(level[side]) for side in SIDES]])
    return {
        side: {"p_target": fisher(full[:, i]), "p_flat": fisher(flat[:, i])} for i, side in enumerate(SIDES)
    }


def log_p(p: float) -> float:
    """Logarithm of a p-value, which is never 0."""
    return float(np.log(max(p, np.finfo(float).tiny)))


def fisher(log_p_values: np.ndarray) -> float:
    """Fisher's combination of independent p-values, given their logarithms; never 0."""
    tail = float(special.chdtrc(2 * len(log_p_values), -2.0 * float(np.sum(log_p_values))))
    return max(tail, float(np.finfo(float).tiny))


def _step(
    step: Fold, covered: np.ndarray, target: np.ndarray, null: str, rng: np.random.Generator
) -> list[float]:
    """Per side, log P(sum of (h - t) z at least as large), given the pulls h - t fixed by earlier rows."""
    z, t = covered[step.rows].astype(float), target[step.rows]
    pulls = np.column_stack([clip_to_side(step.predictions, t, side) - t for side in SIDES])
    if len(z) > _MANY_ROWS:
        return [_normal_log_p(pull, z, t, null) for pull in pulls.T]
    draws = (redrawn(t, rng) if null == "target" else flat_outcomes(z, t, rng)) @ pulls
    return [
        float(np.log(monte_carlo_p(float(z @ pull), draw).p_value)) if pull.any() else 0.0
        for pull, draw in zip(pulls.T, draws.T, strict=True)
    ]


def _normal_log_p(pull: np.ndarray, z: np.ndarray, t: np.ndarray, null: str) -> float:
    mean = t if null == "target" else flat_mean(z, t)
    curvature = mean * (1.0 - mean)
    if null == "flat" and curvature.any():
        # Given the number covered, what the pulls have in common cannot show.
        pull = pull - np.sum(curvature * pull) / np.sum(curvature)
    excess, variance = np.sum(pull * (z - mean)), np.sum(pull**2 * curvature)
    return float(special.log_ndtr(-excess / np.sqrt(variance))) if variance > 0 else 0.0
