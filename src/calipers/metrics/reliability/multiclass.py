"""Rows of a problem with several classes: the top label, and every class for itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import Array, as_array, as_numpy, namespace, on_device_of
from calipers.exceptions import InputError
from calipers.inputs import check_probabilities, check_same_length, check_weights, encode_labels
from calipers.inputs.labels import class_labels, column_names
from calipers.inputs.option_checks import check_label
from calipers.metrics.reliability.binary_rows import BinaryRows, check_binary_rows


@dataclass(frozen=True, slots=True)
class ClassRows:
    """Checked rows of a problem with K classes.

    Parameters
    ----------
    codes : integer array of shape (n,)
        Column of the true class.
    probabilities : array of shape (n, K)
        Stated probabilities.
    names : list
        The label of every column.
    weights : float64 array of shape (n,) or None
        Weights.
    """

    codes: Array
    probabilities: Array
    names: list[Any]
    weights: Array | None = None

    @property
    def n_classes(self) -> int:
        """Number of columns."""
        return int(self.probabilities.shape[1])

    def present(self) -> ClassRows:
        """The rows with a weight above 0; the others are not there."""
        if self.weights is None or bool(namespace(self.weights).all(self.weights > 0)):
            return self
        there = self.weights > 0
        return ClassRows(self.codes[there], self.probabilities[there], self.names, self.weights[there])

    def of_class(self, k: int) -> BinaryRows:
        """Class k against the rest."""
        return BinaryRows(self.probabilities[:, k], self.codes == k, self.weights)

    def top_label(self) -> BinaryRows:
        """The largest probability as a statement that its label is right; ties go to the first column."""
        xp = namespace(self.probabilities)
        top = xp.astype(xp.argmax(self.probabilities, axis=1), self.codes.dtype)
        return BinaryRows(xp.max(self.probabilities, axis=1), top == self.codes, self.weights)


def check_class_rows(
    y_true: Any, probabilities: Any, *, classes: Any = None, sample_weight: Any = None
) -> ClassRows:
    """Rows of a problem with several classes from labels and (n, K) probabilities."""
    P = check_probabilities(probabilities)
    check_same_length(y_true=y_true, probabilities=probabilities, sample_weight=sample_weight)
    codes = encode_labels(y_true, int(P.shape[1]), classes=classes, table=probabilities)
    weights = check_weights(sample_weight, int(P.shape[0]))
    if isinstance(P, np.ndarray):
        codes = as_numpy(codes)
    else:
        codes = on_device_of(codes, P) if isinstance(codes, np.ndarray) else codes
        weights = None if weights is None else on_device_of(weights, P)
    return ClassRows(codes, P, column_names(y_true, int(P.shape[1]), classes), weights).present()


def check_reliability_rows(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
) -> BinaryRows:
    """Binary rows; with more than two columns, those of the top label."""
    scores = as_array(probabilities, name="probabilities")
    if scores.ndim == 2 and scores.shape[1] > 2:
        return check_class_rows(
            y_true, probabilities, classes=classes, sample_weight=sample_weight
        ).top_label()
    if classes is None:
        return check_binary_rows(y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight)
    known = class_labels(classes).tolist()
    pos_label = None if pos_label is None else check_label(pos_label, name="pos_label")
    pos_label = known[-1] if pos_label is None else pos_label
    if pos_label not in known:
        raise InputError(f"pos_label={pos_label!r} is not in classes.")
    if scores.ndim == 2 and scores.shape[1] == len(known) == 2:
        # Columns are in the order of classes, which need not be sorted.
        scores = check_probabilities(scores)[:, known.index(pos_label)]
    return check_binary_rows(y_true, scores, pos_label=pos_label, sample_weight=sample_weight)
