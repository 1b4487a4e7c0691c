"""Distances by name: prepared once for the training rows, then taken block by block."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from calipers.conformal.tangent import SIDES, TangentImages
from calipers.exceptions import InputError

# Taken coordinate by coordinate: exact zeros between equal rows and exact symmetry, which the usual
# expansion of the square into inner products does not give.
_DIRECT: dict[Any, Any] = {"euclidean": "euclidean", "l2": "euclidean", "sqeuclidean": "sqeuclidean"}


class Distances:
    """A metric between rows, by name.

    Parameters
    ----------
    metric : str or callable
        "tangent", or any metric of scikit-learn's ``pairwise_distances``.
    options : mapping or None
        Keyword arguments of the metric. For "tangent": ``image_shape`` and ``sides``.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.conformal.distances import Distances
    >>> metric = Distances("manhattan", None)
    >>> rows = metric.prepare(np.array([[0.0, 0.0], [1.0, 2.0]]))
    >>> metric.between(rows, rows).tolist()
    [[0.0, 3.0], [3.0, 0.0]]
    """

    def __init__(self, metric: str | Callable[..., float], options: Mapping[str, Any] | None) -> None:
        self.metric, self.options = metric, dict(options or {})
        self.sides = self.options.pop("sides", "two") if metric == "tangent" else "two"
        if self.sides not in SIDES:
            raise InputError(f"sides must be one of {', '.join(SIDES)}, got {self.sides!r}.")

    def prepare(self, X: np.ndarray) -> Any:
        """Whatever is worth computing once per row: the tangent vectors, or nothing."""
        return TangentImages.of(X, **self.options) if self.metric == "tangent" else X

    def between(self, a: Any, b: Any) -> np.ndarray:
        """Distances (rows of a, rows of b) of prepared rows."""
        if isinstance(a, TangentImages):
            return self._tangent(a, b)
        if self.metric in _DIRECT and not self.options:
            return np.asarray(cdist(a, b, _DIRECT[self.metric]))
        return np.asarray(pairwise_distances(a, b, metric=self.metric, **self.options))

    def _tangent(self, a: TangentImages, b: TangentImages) -> np.ndarray:
        if self.sides == "two":
            return a.distances_to(b)
        # The bag has no first and second image: whichever is better moved towards the other moves.
        return np.asarray(np.minimum(a.distances_to(b, sides="one"), b.distances_to(a, sides="one").T))


def take_rows(prepared: Any, rows: slice) -> Any:
    """Some of the prepared rows."""
    return prepared.rows(rows) if isinstance(prepared, TangentImages) else prepared[rows]
