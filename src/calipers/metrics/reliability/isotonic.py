"""Isotonic frequencies over pooled scores: what the outcomes say when only the order of scores is trusted."""

from __future__ import annotations

import numpy as np
from scipy.optimize import isotonic_regression

from calipers.metrics.reliability.levels import packed_levels
from calipers.metrics.reliability.rows import BinaryRows


def pooled_scores(rows: BinaryRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct scores, the weight at each and the weighted sum of outcomes there."""
    if rows.weights is None and not rows.soft:
        levels = packed_levels(rows)
        return levels.values, levels.trials, levels.hits
    f = np.concatenate([block[0] for block in rows.blocks()]) + 0.0
    order = np.argsort(f, kind="stable")
    f, y = f[order], rows.outcomes[order].astype(np.float64)
    w = np.ones(f.size) if rows.weights is None else rows.weights[order]
    first = np.flatnonzero(np.append(True, f[1:] != f[:-1]))
    mass, sums = np.add.reduceat(w, first), np.add.reduceat(w * y, first)
    kept = mass > 0
    return f[first][kept], mass[kept], sums[kept]


def isotonic_frequencies(mass: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Non-decreasing frequencies closest to sums / mass in weighted squares (pool adjacent violators)."""
    return np.asarray(isotonic_regression(sums / mass, weights=mass).x)
