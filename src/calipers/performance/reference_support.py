"""Which rows have their like in the reference: known categories, and a reference row in reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.inputs import Features, align_features
from calipers.inputs.feature_alignment import recode
from calipers.performance.indicator_table import Indicators

TABLE_NAMES = ("X of the reference", "X")
# A new row lies outside the reference when its nearest reference row is this many times further than any
# reference row lies from its own nearest one.
_FAR = 1.5
# Most reference rows that neighbours are searched among, and fewest.
_MOST_NEIGHBOURS = 5000
_FEWEST_NEIGHBOURS = 3


class ReferenceSupport:
    """What the reference knows about the space of features; any block of new rows is held against it.

    Parameters
    ----------
    reference : Features
        Features of the labelled rows.
    generator : numpy Generator
        Draws the reference rows among which neighbours are searched, where there are very many.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs import check_features
    >>> from calipers.performance.reference_support import ReferenceSupport
    >>> support = ReferenceSupport(check_features(np.arange(10.0)), np.random.default_rng(0))
    >>> support.of(check_features(np.array([4.5, 60.0]))).tolist()
    [True, False]
    """

    def __init__(self, reference: Features, generator: np.random.Generator) -> None:
        self.reference, self.indicators = reference, Indicators(reference)
        table = self.indicators.table(reference.values)
        self.middle, spread = table.mean(axis=0), table.std(axis=0)
        self.spread = np.where(spread > 0, spread, 1.0)
        self._search, self._reach = _search((table - self.middle) / self.spread, generator)

    def coded(self, new: Features) -> np.ndarray:
        """Values of new rows (N, d), columns and codes as in the reference; unknown categories are NaN."""
        ordered = align_features(self.reference, new, names=TABLE_NAMES)[1]
        columns = zip(ordered.values.T, ordered.categories, self.reference.categories, strict=True)
        return np.column_stack([recode(values, own, known) for values, own, known in columns])

    def of(self, new: Features) -> np.ndarray:
        """Which new rows have their like, bool (N,)."""
        old, fresh = align_features(self.reference, new, names=TABLE_NAMES)
        known = np.ones(len(fresh), dtype=bool)
        for j, categories in enumerate(old.categories):
            missing = np.isnan(fresh.values[:, j])
            known &= ~missing | np.isnan(old.values[:, j]).any()
            if categories is not None:
                known &= missing | np.isin(fresh.values[:, j], np.unique(old.values[:, j]))
        rows = np.flatnonzero(known)
        if self._search is not None and rows.size:
            places = self.indicators.table(self.coded(new.take(rows)))
            distance = self._search.kneighbors((places - self.middle) / self.spread, n_neighbors=1)[0]
            known[rows] = distance[:, 0] <= _FAR * self._reach
        return known


def _search(places: np.ndarray, generator: np.random.Generator) -> tuple[Any, float]:
    """A search for the nearest reference row, and how far reference rows lie from each other at most."""
    from sklearn.neighbors import NearestNeighbors

    if len(places) < _FEWEST_NEIGHBOURS:
        return None, np.inf
    if len(places) > _MOST_NEIGHBOURS:
        places = places[generator.choice(len(places), _MOST_NEIGHBOURS, replace=False)]
    search = NearestNeighbors(n_neighbors=2).fit(places)
    return search, float(search.kneighbors(places)[0][:, 1].max())
