"""Draws under a null: rows shuffled, or redrawn at their targets, freely or given the number covered."""

from __future__ import annotations

import numpy as np
from scipy.special import expit, logit

# Draws behind every Monte-Carlo p-value of this subpackage.
N_DRAWS = 999
# Few columns are gathered at the rows drawn, many are multiplied by a matrix of marks.
_FEW_COLUMNS = 32


def redrawn(target: np.ndarray, rng: np.random.Generator, n_draws: int = N_DRAWS) -> np.ndarray:
    """Outcomes (n_draws, n), each row covered with the probability of its target."""
    return (rng.random((n_draws, len(target))) < target).astype(float)


def flat_sums(
    z: np.ndarray, target: np.ndarray, columns: np.ndarray, rng: np.random.Generator, n_draws: int = N_DRAWS
) -> np.ndarray:
    """Sums of the columns over covered rows, (n_draws, k), with outcomes drawn under "flat".

    "Flat" says that the logit of every row's coverage is the logit of its target plus one number c. Given
    the number covered, the law of the outcomes does not depend on c: with one target for all rows it is a
    shuffle, otherwise the conditional Bernoulli law with odds t / (1 - t). Rows with a target of 0 or 1
    are fixed.
    """
    free = np.flatnonzero((target > 0) & (target < 1))
    covered, t, table = int(np.count_nonzero(z[free])), target[free], columns[free]
    fixed = columns[target == 1].sum(axis=0)
    # The rarer outcome is drawn: it needs fewer numbers.
    missed = 2 * covered >= len(free)
    rare = len(free) - covered if missed else covered
    if rare == 0:
        drawn = np.zeros((n_draws, columns.shape[1]))
    elif (t == t[0]).all():
        drawn = _shuffled_sums(rare, table, rng, n_draws)
    else:
        drawn = _conditional_marks((-1.0 if missed else 1.0) * logit(t), rare, n_draws, rng) @ table
    return np.asarray(fixed + (table.sum(axis=0) - drawn if missed else drawn))


def _shuffled_sums(rare: int, columns: np.ndarray, rng: np.random.Generator, n_draws: int) -> np.ndarray:
    """Sums of the columns over ``rare`` rows drawn without replacement."""
    keys = rng.random((n_draws, len(columns)), dtype=np.float32)
    chosen = np.argpartition(keys, rare - 1, axis=1)[:, :rare]
    if columns.shape[1] <= _FEW_COLUMNS:
        return np.stack([column[chosen].sum(axis=1) for column in columns.T], axis=1)
    marked = np.zeros(keys.shape)
    np.put_along_axis(marked, chosen, 1.0, axis=1)
    return np.asarray(marked @ columns)


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
    left, marked = np.full(n_draws, rare), np.zeros((n_draws, n))
    for i in range(n):
        due = np.exp(log_odds[i] + logs[i + 1, np.maximum(left - 1, 0)] - logs[i, left])
        hit = (left > 0) & (rng.random(n_draws) < due)
        marked[:, i] = hit
        left = left - hit
    return marked


def flat_mean(z: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Per row the probability under "flat" whose sum is the number covered; targets of 0 and 1 stay."""
    from scipy.optimize import brentq

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
