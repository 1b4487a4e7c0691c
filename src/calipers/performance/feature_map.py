"""Inputs of the auxiliary learners: Z = (x, y) as a row of numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import Features, check_features
from calipers.inputs.feature_alignment import recode
from calipers.performance.rows import Rows

FeatureFunction = Callable[[Any, Any], Any]

# A numeric target with at most this many values, all whole, is a label and not a quantity.
_MOST_LABELS = 50


class FeatureMap:
    """The default map (columns of X, then y one-hot or as a number) or the user's own function.

    Parameters
    ----------
    function : callable or None
        ``features(X, y) -> (n, d)`` table of numbers per row; None takes X and y as they are.
    points_per_loss : int
        Rows per batch: the features of a batch are the means over its rows.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.feature_map import FeatureMap
    >>> from calipers.performance.rows import check_rows
    >>> rows = check_rows([[0.5], [0.7]], ["a", "b"])
    >>> FeatureMap(None, 1).fit(rows).transform(rows)
    array([[0.5, 1. , 0. ],
           [0.7, 0. , 1. ]])
    """

    def __init__(self, function: FeatureFunction | None, points_per_loss: int) -> None:
        self._function, self._batch = function, points_per_loss
        self._columns: Features | None = None
        self._labels: np.ndarray | None = None

    def fit(self, rows: Rows) -> FeatureMap:
        """Remember the columns, categories and labels of these rows; a function needs nothing."""
        if self._function is None:
            self._columns = _read_columns(rows.X)
            self._labels = _labels(rows.y)
        return self

    def transform(self, rows: Rows) -> np.ndarray:
        """One row of numbers per batch, (k, d)."""
        if len(rows) % self._batch:
            raise InputError(
                f"X must hold whole batches of points_per_loss={self._batch} rows, got {len(rows)} rows."
            )
        table = self._own(rows) if self._function is None else self._users(rows)
        return table.reshape(-1, self._batch, table.shape[1]).mean(axis=1) if self._batch > 1 else table

    def _users(self, rows: Rows) -> np.ndarray:
        assert self._function is not None  # noqa: S101 - for the type checker; transform has checked
        table = np.asarray(self._function(rows.X, rows.y), dtype=np.float64)
        table = table[:, None] if table.ndim == 1 else table
        if table.ndim != 2 or table.shape[0] != len(rows):
            raise InputError(f"features must return one row per case ({len(rows)}), got shape {table.shape}.")
        return table

    def _own(self, rows: Rows) -> np.ndarray:
        X = _aligned(_read_columns(rows.X), self._columns)
        if rows.y is None:
            if self._labels is not None:
                raise InputError("y must be given: it was part of the features when fitted.")
            return X
        if self._labels is None:
            return np.column_stack([X, np.asarray(rows.y, dtype=np.float64)])
        # A label not seen when fitted is a row of zeros.
        return np.column_stack([X, rows.y[:, None] == self._labels[None, :]]).astype(np.float64)


def _read_columns(X: Any) -> Features:
    if hasattr(X, "tocsr"):
        raise InputTypeError(
            "the auxiliary learner needs a dense table and X is sparse; "
            "pass features=..., a function (X, y) -> (n, d) with the columns that matter."
        )
    return check_features(X.reshape(X.shape[0], -1) if isinstance(X, np.ndarray) else X)


def _labels(y: np.ndarray | None) -> np.ndarray | None:
    if y is None or y.ndim != 1:
        return None
    distinct = np.unique(y)
    if y.dtype.kind == "f" and not (distinct == np.floor(distinct)).all():
        return None
    return distinct if y.dtype.kind not in "iuf" or distinct.size <= _MOST_LABELS else None


def _aligned(found: Features, known: Features | None) -> np.ndarray:
    """The columns with the category codes of the rows the map was fitted on; new categories are NaN."""
    if known is None or found.names != known.names:
        expected = None if known is None else list(known.names)
        raise InputError(f"X must have the columns it was fitted with, {expected}, got {list(found.names)}.")
    columns = zip(found.values.T, found.categories, known.categories, strict=True)
    return np.column_stack([recode(values, now, then) for values, now, then in columns])
