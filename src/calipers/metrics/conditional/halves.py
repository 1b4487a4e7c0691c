"""A random order of rows that depends on what they hold and on the seed, not on how they were sorted."""

from __future__ import annotations

import numpy as np

from calipers.inputs import Features

_MOST_COLUMNS = 64


def random_order(features: Features, covered: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Row numbers shuffled from a canonical order, so that the same table always splits the same way."""
    columns = features.values[:, :_MOST_COLUMNS]
    canonical = np.lexsort((covered, *columns.T))
    return np.asarray(canonical[rng.permutation(len(covered))])
