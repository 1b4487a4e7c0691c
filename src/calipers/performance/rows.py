"""Rows of any table: the data an algorithm is trained on, in whatever container it takes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.utils import _safe_indexing

from calipers.arrays import as_numpy, is_frame
from calipers.exceptions import InputError
from calipers.inputs.row_checks import one_column


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Features and targets of n rows; ``X`` stays a matrix, frame or sparse matrix, ``y`` may be None.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.rows import check_rows
    >>> check_rows([[1.0], [2.0], [3.0]], [0, 1, 0]).take(np.array([2, 0])).y
    array([0, 0])
    """

    X: Any
    y: np.ndarray | None

    def __len__(self) -> int:
        return int(self.X.shape[0])

    def take(self, index: np.ndarray) -> Rows:
        """The rows at these places, in this order; an array of any shape is read row by row."""
        flat = index.reshape(-1)
        X = self.X[flat] if isinstance(self.X, np.ndarray) else _safe_indexing(self.X, flat)
        return Rows(X, None if self.y is None else self.y[flat])


def check_rows(X: Any, y: Any) -> Rows:
    """Features and targets side by side: at least one row, equal lengths.

    A frame or a sparse matrix is kept, so that pipelines find their columns; anything else becomes a
    numpy array. What the values may be is the algorithm's own affair.

    Examples
    --------
    >>> from calipers.performance.rows import check_rows
    >>> check_rows([[1.0], [2.0]], [1])
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: X and y must have the same length, got X: 2, y: 1.
    """
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    elif not is_frame(X):
        X = as_numpy(X, name="X")
    if len(X.shape) == 0 or X.shape[0] == 0:
        raise InputError(f"X must have at least one row, got shape {tuple(X.shape)}.")
    if y is None:
        return Rows(X, None)
    target = one_column(as_numpy(y, name="y"))
    if target.ndim == 0 or target.shape[0] != X.shape[0]:
        length = target.shape[0] if target.ndim else 0
        raise InputError(f"X and y must have the same length, got X: {X.shape[0]}, y: {length}.")
    return Rows(X, target)
