"""Losses of batches (section 3.3): k groups of b rows, one number each."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.inputs.row_checks import one_column
from calipers.performance.losses import Loss, is_scorer
from calipers.performance.rows import Rows


def batch_losses(loss: Loss, estimator: Any, rows: Rows, points_per_loss: int) -> np.ndarray:
    """One loss per group of ``points_per_loss`` consecutive rows, float64 (k,).

    A loss with one value per row is computed in one call and averaged over each group. A loss that
    returns one number (a scikit-learn scorer, say) is called once per group.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.batches import batch_losses
    >>> from calipers.performance.rows import check_rows
    >>> rows = check_rows(np.arange(6.0)[:, None], np.zeros(6))
    >>> batch_losses(lambda model, X, y: X[:, 0], None, rows, 3)
    array([1., 4.])
    """
    n, b = len(rows), points_per_loss
    if not is_scorer(loss):
        values = _numbers(loss(estimator, rows.X, rows.y))
        if values.shape == (n,):
            return _refuse_nan(values.reshape(-1, b).mean(axis=1) if b > 1 else values)
        if values.shape != ():
            raise InputError(
                f"loss must return one value per row ({n}) or a single number, got shape {values.shape}."
            )
        if n == b:
            return _refuse_nan(values.reshape(1))
    groups = np.arange(n).reshape(-1, b)
    return _refuse_nan(np.array([_batch_value(loss, estimator, rows.take(group)) for group in groups]))


def _batch_value(loss: Loss, estimator: Any, rows: Rows) -> float:
    value = _numbers(loss(estimator, rows.X, rows.y))
    if value.size != 1:
        raise InputError(f"a batch loss must return a single number, got shape {value.shape}.")
    return float(value.reshape(()))


def _numbers(value: Any) -> np.ndarray:
    return np.asarray(one_column(np.asarray(value, dtype=np.float64)))


def _refuse_nan(values: np.ndarray) -> np.ndarray:
    missing = np.isnan(values)
    if missing.any():
        raise InputError(
            f"the loss is NaN for {int(missing.sum())} of {values.size} evaluations "
            f"(first: {int(np.argmax(missing))}). Return a number or infinity for every case."
        )
    return values
