"""Two random parts of the rows that depend on what rows hold and on the seed, not on how they were sorted."""

from __future__ import annotations

import numpy as np

from calipers.exceptions import InputError
from calipers.inputs import Features
from calipers.metrics.promised_rows import PromisedRows

_MOST_COLUMNS = 64


def random_split(
    features: Features, rows: PromisedRows, cut: int, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of a first part of about ``cut`` rows and of the others; clusters are not torn apart."""
    if rows.clusters is None:
        order = _canonical(features, rows)[rng.permutation(len(rows))]
        return order[:cut], order[cut:]
    sizes = np.bincount(rows.clusters)
    if len(sizes) < 2:
        raise InputError("cluster must hold at least 2 clusters, one for each part of the rows, got 1.")
    place = rng.permutation(len(sizes))
    order = _canonical(features, rows)
    order = order[np.argsort(place[rows.clusters[order]], kind="stable")]
    # The end of a cluster nearest to the cut; neither part is empty.
    ends = np.cumsum(sizes[np.argsort(place)])[:-1]
    end = int(ends[np.argmin(np.abs(ends - cut))])
    return order[:end], order[end:]


def _canonical(features: Features, rows: PromisedRows) -> np.ndarray:
    """An order of the rows by their content."""
    extra = [rows.promised, None if rows.weights is None else rows.weights.mass]
    columns = features.values[:, :_MOST_COLUMNS]
    return np.lexsort((*(column for column in extra if column is not None), rows.covered, *columns.T))
