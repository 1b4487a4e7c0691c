"""Outcomes drawn under a null: rows shuffled, or redrawn at their targets, freely or given their number."""

from __future__ import annotations

import numpy as np
from scipy.optimize import brentq
from scipy.special import expit, logit

# Draws behind every Monte-Carlo p-value of this room.
N_DRAWS = 999


def redrawn(target: np.ndarray, rng: np.random.Generator, n_draws: int = N_DRAWS) -> np.ndarray:
    """Outcomes (n_draws, n), each row covered with the probability of its target."""
    return (rng.random((n_draws, len(target))) < target).astype(float)


def flat_outcomes(
    z: np.ndarray, target: np.ndarray, rng: np.random.Generator, n_draws: int = N_DRAWS
) -> np.ndarray:
    """Outcomes (n_draws, n) under "flat", given how many rows are covered.

    "Flat" says that the logit of every row's coverage is the logit of its target plus one number c. Given
    the number covered, the law of the outcomes does not depend on c: with one target for all rows it is a
    shuffle, otherwise the conditional Bernoulli law with odds t / (1 - t). Rows with a target of 0 or 1
    are fixed.
    """
    free = np.flatnonzero((target > 0) & (target < 1))
    outcomes = np.tile((target > 0.5).astype(float), (n_draws, 1))
    covered = int(np.count_nonzero(z[free]))
    if len(free):
        # The rarer outcome is drawn: it needs fewer numbers.
        rare_is_missed = 2 * covered >= len(free)
        rare = len(free) - covered if rare_is_missed else covered
        t = target[free]
        marked = (
            _shuffled_marks(len(free), rare, n_draws, rng)
            if (t == t[0]).all()
            else _conditional_marks((-1.0 if rare_is_missed else 1.0) * logit(t), rare, n_draws, rng)
        )
        outcomes[:, free] = ~marked if rare_is_missed else marked
    return outcomes


def _shuffled_marks(n: int, rare: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    marked = np.zeros((n_draws, n), dtype=bool)
    if rare:
        keys = rng.random((n_draws, n), dtype=np.float32)
        np.put_along_axis(marked, np.argpartition(keys, rare - 1, axis=1)[:, :rare], True, axis=1)
    return marked


def _conditional_marks(log_odds: np.ndarray, rare: int, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Independent Bernoulli draws given that ``rare`` of them are 1, row after row.

    With e(i, j) the elementary symmetric polynomial of degree j in the odds of rows i, i + 1, ..., a row is
    marked with probability ``odds_i e(i + 1, j - 1) / e(i, j)`` when j marks are left (Chen and Liu, 1997).
    """
    n = len(log_odds)
    logs = np.full((n + 1, rare + 1), -np.inf)
    logs[:, 0] = 0.0
    for i in range(n - 1, -1, -1):
        logs[i, 1:] = np.logaddexp(logs[i + 1, 1:], log_odds[i] + logs[i + 1, :-1])
    left, marked = np.full(n_draws, rare), np.zeros((n_draws, n), dtype=bool)
    for i in range(n):
        due = np.exp(log_odds[i] + logs[i + 1, np.maximum(left - 1, 0)] - logs[i, left])
        marked[:, i] = (left > 0) & (rng.random(n_draws) < due)
        left = left - marked[:, i]
    return marked


def flat_mean(z: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Per row the probability under "flat" whose sum is the number covered; targets of 0 and 1 stay."""
    free = np.flatnonzero((target > 0) & (target < 1))
    mean, covered, t = target.astype(float), float(z[free].sum()), target[free]
    if len(free) == 0:
        return mean
    if (t == t[0]).all() or covered in (0.0, float(len(free))):
        mean[free] = covered / len(free)
    else:
        base = logit(t)
        mean[free] = expit(base + brentq(lambda c: float(expit(base + c).sum()) - covered, -60.0, 60.0))
    return mean
