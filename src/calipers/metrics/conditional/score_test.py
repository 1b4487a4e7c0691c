"""An exact test of all features at once, without any split of the rows.

The steps of `sequential` hold rows back to choose a direction. Smooth dependence needs none: the outcomes are
set against standardised features, and against these and their squared ranks, by two quadratic forms. The
smaller of their two p-values is compared with what it would be under the null, drawn as in `null_outcomes`,
so the test is exact at any n. It finds what a straight line or a parabola along a feature describes.
"""

from __future__ import annotations

import numpy as np

from calipers.inputs import Features
from calipers.metrics.conditional.ensemble_members import Standardised
from calipers.metrics.conditional.learners import with_target
from calipers.metrics.conditional.null_outcomes import flat_mean, flat_sums

# Curvature a direction must have before it counts fully, in rows of standardised features.
_RIDGE = 33.0
_DIGITS = 9
# Draws; the second stage is for p-values that would be lost in a correction for many tests.
_STAGES = (999, 9_999)
_ENOUGH = 10
_BATCH = 999


def score_p_value(
    features: Features, covered: np.ndarray, target: np.ndarray, rng: np.random.Generator
) -> float:
    """P-value of "flat" given the number covered; a target that differs by row is one more feature."""
    z = covered.astype(float)
    straight, curved = (_whitened(table) for table in _tables(features, target))
    both = np.column_stack([straight, curved])
    if both.shape[1] == 0:  # texts that all differ: there is nothing to set the outcomes against
        return 1.0
    sums, centre, k, p = (z @ both)[None, :], flat_mean(z, target) @ both, straight.shape[1], 1.0
    for stage in _STAGES:
        # Some hundred draws at a time: one holds a number per row.
        while len(sums) <= stage:
            few = min(_BATCH, stage + 1 - len(sums))
            sums = np.vstack([sums, flat_sums(z, target, both, rng, few)])
        parts = (sums[:, :k] - centre[:k], sums[:, k:] - centre[k:])
        p = smallest_p_value(np.stack([np.sum(part**2, axis=1) for part in parts]))
        if p * len(sums) > _ENOUGH:
            break
    return p


def smallest_p_value(statistics: np.ndarray) -> float:
    """P-value of the most significant of several statistics (k, 1 + draws); the first column is observed."""
    largest = np.abs(statistics).max(axis=1, keepdims=True)
    # Sums in another order differ in their last digits; such readings are ties.
    rounded = np.round(statistics / np.where(largest > 0, largest, 1.0), _DIGITS)
    from scipy.stats import rankdata

    each = np.array([rankdata(-row, method="max") for row in rounded])
    smallest = each.min(axis=0)
    return float(np.mean(smallest <= smallest[0]))


def _tables(features: Features, target: np.ndarray) -> list[np.ndarray]:
    """Standardised columns, and the same beside the squared ranks of the numeric ones."""
    if (target != target[0]).any():
        features = with_target(features, target)
    columns = Standardised.of(features)
    straight = columns.design(features.values)[:, 1:]
    numeric = features.values[:, columns.numeric]
    return [straight, np.column_stack([straight, *(_squared_rank(x) for x in numeric.T)])]


def _squared_rank(x: np.ndarray) -> np.ndarray:
    """Squared distance of a value's rank from the middle, of mean 0 and spread 1; 0 where it is missing."""
    known = ~np.isnan(x)
    squared = np.zeros(len(x))
    from scipy.stats import rankdata

    squared[known] = (rankdata(x[known]) / known.sum() - 0.5) ** 2
    spread = squared[known].std()
    squared[known] -= squared[known].mean()
    return squared / spread if spread > 0 else np.zeros(len(x))


def _whitened(table: np.ndarray) -> np.ndarray:
    """Columns whose squared sums make a ridge score statistic."""
    gram = table.T @ table + _RIDGE * np.eye(table.shape[1])
    return np.asarray(np.linalg.solve(np.linalg.cholesky(gram), table.T).T)
