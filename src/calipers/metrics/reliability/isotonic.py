"""Isotonic frequencies over pooled scores: what the outcomes say when only the order of scores is trusted."""

from __future__ import annotations

import numpy as np


def isotonic_frequencies(mass: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """Non-decreasing frequencies closest to sums / mass in weighted squares (pool adjacent violators)."""
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(sums / mass, weights=mass).x)
