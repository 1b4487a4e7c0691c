"""Tests of "covers 1 - alpha at every x" and "coverage does not depend on x", valid at any n.

Cross-fit scores of different folds are dependent: every fold trains the judges of the others, and the
row-wise test of their mean accuses sound predictors in 9 to 12 % of all cases at the 5 % level. Folds
taken one after the other are not: the judge of a fold saw only earlier folds, so given the past its
pulls h - t are fixed and the fold's coverage is fresh. Each step has an exact p-value given the past, steps
are therefore independent under the null, and Fisher's rule combines them without approximation.

Folds are stratified by coverage, so the *number* covered in a fold says nothing new: with one alpha for all
rows every step is a permutation test given that number, which tests "flat", and the level enters as one
more independent p-value, the binomial one of the total, which makes it a test of "target". With an alpha
per row the folds are not stratified and the steps redraw each row at its own target.
"""

from __future__ import annotations

import numpy as np
from scipy import special

from calipers.inference import binomial_p_value, monte_carlo_p
from calipers.metrics.conditional.cross_fit import Fold
from calipers.metrics.conditional.losses import SIDES, clip_to_side

NULLS = ("target", "flat")
_DRAWS = 999
# Beyond this many rows in a step the sum is normal for all purposes.
_MANY_ROWS = 4000


def sequential_p_values(
    steps: tuple[Fold, ...],
    covered: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    rng: np.random.Generator,
) -> dict[str, dict[str, float | None]]:
    """Side -> {"p_target": ..., "p_flat": ...}; None without steps."""
    if not steps:
        return {side: dict.fromkeys(("p_target", "p_flat")) for side in SIDES}
    flat = np.array([_step(step, covered, target, weights, "flat", rng) for step in steps])
    if (target == target[0]).all():
        level = _log_level_p_values(covered, float(target[0]), weights)
        full = np.vstack([flat, level])
    else:
        full = np.array([_step(step, covered, target, weights, "target", rng) for step in steps])
    return {
        side: {"p_target": _fisher(full[:, i]), "p_flat": _fisher(flat[:, i])} for i, side in enumerate(SIDES)
    }


def _log_level_p_values(covered: np.ndarray, target: float, weights: np.ndarray | None) -> list[float]:
    """Per side, the exact test of the total; weights that are not whole interpolate the binomial law."""
    w = np.ones(len(covered)) if weights is None else weights
    hits, total = float(w[covered].sum()), float(w.sum())
    tails = [binomial_p_value(hits, total, target, alternative=a) for a in ("two-sided", "greater", "less")]
    return [float(np.log(max(float(p), np.finfo(float).tiny))) for p in tails]


def _fisher(log_p_values: np.ndarray) -> float:
    return float(special.chdtrc(2 * len(log_p_values), -2.0 * float(log_p_values.sum())))


def _step(
    step: Fold,
    covered: np.ndarray,
    target: np.ndarray,
    weights: np.ndarray | None,
    null: str,
    rng: np.random.Generator,
) -> list[float]:
    """Per side, log P(sum of (h - t) z at least as large), given the pulls h - t fixed by earlier rows."""
    z, t = covered[step.rows].astype(float), target[step.rows]
    pulls = np.column_stack([clip_to_side(step.predictions, t, side) - t for side in SIDES])
    if null == "flat":
        pulls[:, 0] = step.predictions - t.mean()  # the same up to a constant, unless alpha varies by row
    if weights is not None or len(z) > _MANY_ROWS:
        w = np.ones(len(z)) if weights is None else weights[step.rows]
        return [_normal_log_p(pull, z, t, w, null) for pull in pulls.T]
    draws = _redrawn(pulls, t, rng) if null == "target" else _shuffled(pulls, z, rng)
    return [
        float(np.log(monte_carlo_p(float(z @ pull), draw).p_value)) if pull.any() else 0.0
        for pull, draw in zip(pulls.T, draws.T, strict=True)
    ]


def _redrawn(pulls: np.ndarray, t: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    z = rng.random((_DRAWS, len(t)), dtype=np.float32) < t.astype(np.float32)
    return np.asarray(z.astype(float) @ pulls)


def _shuffled(pulls: np.ndarray, z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Sums over a random subset of as many rows as were covered; the rarer outcome is drawn."""
    misses = int(len(z) - z.sum())
    rare = min(misses, len(z) - misses)
    if rare == 0:
        return np.tile(z @ pulls, (_DRAWS, 1))
    keys = rng.random((_DRAWS, len(z)), dtype=np.float32)
    chosen = pulls[np.argpartition(keys, rare - 1, axis=1)[:, :rare]].sum(axis=1)
    return np.asarray(pulls.sum(axis=0) - chosen if rare == misses else chosen)


def _normal_log_p(pull: np.ndarray, z: np.ndarray, t: np.ndarray, w: np.ndarray, null: str) -> float:
    if null == "target":
        excess, variance = np.sum(w * pull * (z - t)), np.sum(w * pull**2 * t * (1.0 - t))
    else:
        total = w.sum()
        rate, centred = np.sum(w * z) / total, pull - np.sum(w * pull) / total
        excess = np.sum(w * centred * z)
        variance = np.sum(w * centred**2) * rate * (1.0 - rate) * total / max(total - 1.0, 1.0)
    return float(special.log_ndtr(-excess / np.sqrt(variance))) if variance > 0 else 0.0
