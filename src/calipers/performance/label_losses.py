"""The loss of every row for every label it might turn out to have.

Losses are those the model will incur with the probabilities it states; how likely each label is comes from
elsewhere. That is what makes a loss computable before the labels arrive.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from calipers.calibration.decisions import decision_threshold
from calipers.exceptions import InputError, InputTypeError
from calipers.inference.logistic import clipped_log_odds
from calipers.performance.losses import LogLoss

LabelTable = Callable[[np.ndarray], np.ndarray]
NAMES = ("zero_one", "log", "brier")
# Losses of point predictions, which have no finite table of outcomes.
POINT_LOSSES: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "squared": lambda y, prediction: (y - prediction) ** 2,
    "absolute": lambda y, prediction: np.abs(y - prediction),
}


def label_losses(loss: Any, classes: np.ndarray) -> LabelTable:
    """A function from stated probabilities (n, K) to losses (n, K), column k if the label is ``classes[k]``.

    Parameters
    ----------
    loss : str, pair of costs or callable
        "zero_one", "log", "brier"; costs (false positive, false negative) of two classes; or a function
        ``loss(y, probabilities)`` with one value per row, called once per label.
    classes : array (K,)
        Label of every column.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.label_losses import label_losses
    >>> P = np.array([[0.75, 0.25], [0.4, 0.6]])
    >>> label_losses("zero_one", np.array([0, 1]))(P)
    array([[0., 1.],
           [1., 0.]])
    >>> label_losses((1.0, 9.0), np.array([0, 1]))(P)
    array([[1., 0.],
           [1., 0.]])
    """
    if isinstance(loss, str):
        if loss not in _TABLES:
            raise InputError(
                f"loss must be one of {', '.join(NAMES)}, a pair of costs or a function, got {loss!r}."
            )
        return _TABLES[loss]
    if callable(loss):
        return lambda P: _called(loss, P, classes)
    if isinstance(loss, (tuple, list)) and len(loss) == 2:
        if classes.size != 2:
            raise InputError(f"a pair of costs needs two classes, got {classes.size}.")
        return _costs(*loss)
    raise InputTypeError(f"loss must be a name, a pair of costs or a function, got {type(loss).__name__}.")


def _zero_one(P: np.ndarray) -> np.ndarray:
    return np.asarray(np.arange(P.shape[1]) != P.argmax(axis=1)[:, None], dtype=np.float64)


def _log(P: np.ndarray) -> np.ndarray:
    return np.asarray(-np.log(np.clip(P, LogLoss().floor, 1.0)))


def _brier(P: np.ndarray) -> np.ndarray:
    return np.asarray((P**2).sum(axis=1, keepdims=True) - 2.0 * P + 1.0)


def _costs(false_positive: float, false_negative: float) -> LabelTable:
    threshold = decision_threshold(false_positive, false_negative)

    def table(P: np.ndarray) -> np.ndarray:
        act = P[:, 1] >= threshold
        return np.column_stack([np.where(act, false_positive, 0.0), np.where(act, 0.0, false_negative)])

    return table


def _called(loss: Callable[..., Any], P: np.ndarray, classes: np.ndarray) -> np.ndarray:
    columns = [np.asarray(loss(np.full(len(P), label), P), dtype=np.float64) for label in classes]
    table = np.column_stack(columns)
    if table.shape != P.shape or np.isnan(table).any():
        raise InputError(
            f"loss must return one number per row ({len(P)}), without NaN, got shape {columns[0].shape}."
        )
    return table


_TABLES: dict[str, LabelTable] = {"zero_one": _zero_one, "log": _log, "brier": _brier}


def class_log_odds(P: np.ndarray) -> np.ndarray:
    """Log-odds of every class but the first, cut at one in a million."""
    return clipped_log_odds(P[:, 1:], 1e-6)


def variation(table: np.ndarray, probability: np.ndarray) -> float:
    """How strongly the loss of two classes depends on the label, along the stated probability.

    Half of the total variation of g = loss if 1 - loss if 0 over the stated probability, counted from 0 to 0.
    The mean of (y - f) g(f) is at most this number times the calibration error of f, because every level set
    of g is a union of intervals.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance.label_losses import label_losses, variation
    >>> p = np.linspace(0, 1, 11)
    >>> P = np.column_stack([1 - p, p])
    >>> variation(label_losses("zero_one", np.array([0, 1]))(P), p)
    2.0
    """
    g = (table[:, 1] - table[:, 0])[np.argsort(probability, kind="stable")]
    return float(np.abs(np.diff(np.concatenate([[0.0], g, [0.0]]))).sum() / 2.0)
