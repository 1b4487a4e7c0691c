"""Scores and outcomes as every reliability measure reads them: checked once, taken in blocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import Array, as_array, as_numpy, is_frame, namespace, on_device_of
from calipers.exceptions import InputError
from calipers.inputs import (
    check_binary,
    check_positive_probabilities,
    check_probabilities,
    check_same_length,
    check_vector,
    check_weights,
    require_column_order,
)
from calipers.inputs.option_checks import check_label
from calipers.inputs.row_checks import one_column
from calipers.inputs.weights import are_whole

# Rows per block: a few arrays of this length stay in the cache of one core.
BLOCK = 1 << 18


@dataclass(frozen=True, slots=True)
class BinaryRows:
    """Checked rows of a binary problem.

    Parameters
    ----------
    scores : array of shape (n,)
        Stated probability of the event, in [0, 1], in a floating dtype.
    outcomes : array of shape (n,)
        Whether the event happened (bool), or its probability when labels are soft (floating).
    weights : float64 array of shape (n,) or None
        Weights, or None when every row counts once.
    """

    scores: Array
    outcomes: Array
    weights: Array | None = None

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.scores.shape[0])

    @property
    def whole(self) -> bool:
        """Whether weights are repetitions of the rows."""
        return self.weights is None or are_whole(as_numpy(self.weights))

    def present(self) -> BinaryRows:
        """The rows with a weight above 0; the others are not there."""
        if self.weights is None or bool(namespace(self.weights).all(self.weights > 0)):
            return self
        there = self.weights > 0
        return BinaryRows(self.scores[there], self.outcomes[there], self.weights[there])

    @property
    def soft(self) -> bool:
        """Whether outcomes are probabilities rather than events."""
        xp = namespace(self.outcomes)
        return not bool(xp.isdtype(self.outcomes.dtype, "bool"))

    @property
    def total(self) -> float:
        """Sum of weights; the number of rows without weights."""
        if self.weights is None:
            return float(self.n)
        return float(namespace(self.weights).sum(self.weights))

    @property
    def on_host(self) -> bool:
        """Whether the rows are numpy arrays."""
        return isinstance(self.scores, np.ndarray)

    def bounded_scores(self) -> Array:
        """float64 scores, at most 1, which a float32 softmax may exceed by a rounding unit."""
        xp = namespace(self.scores)
        f = xp.astype(self.scores, xp.float64, copy=False)
        return f if bool(xp.max(f) <= 1) else xp.clip(f, max=1.0)

    def blocks(self, size: int = BLOCK) -> Iterator[tuple[Array, Array, Array | None]]:
        """float64 scores (at most 1), outcomes and weights; one block off the host.

        Off the host events are float64, because not every library subtracts from booleans.
        """
        xp = namespace(self.scores)
        if not self.on_host:
            yield self.bounded_scores(), xp.astype(self.outcomes, xp.float64), self.weights
            return
        for start in range(0, self.n, size):
            rows = slice(start, start + size)
            f = self.scores[rows].astype(np.float64, copy=False)
            weights = None if self.weights is None else self.weights[rows]
            yield f if f.max() <= 1 else np.minimum(f, 1.0), self.outcomes[rows], weights

    def to_host(self) -> BinaryRows:
        """The same rows as numpy arrays."""
        weights = None if self.weights is None else as_numpy(self.weights)
        return BinaryRows(as_numpy(self.scores), as_numpy(self.outcomes), weights)


def check_binary_rows(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    name: str = "probabilities",
) -> BinaryRows:
    """Rows of a binary problem from labels (or soft labels) and (n,) or (n, 2) probabilities.

    Outcomes in a floating dtype that lie in [0, 1] and are not all 0 or 1 are soft labels. With (n, 2) the
    columns belong to the sorted labels; ``pos_label`` may name either of them.
    """
    labels = one_column(as_array(y_true, name="y_true"))
    scores = as_array(probabilities, name=name)
    check_same_length(y_true=y_true, **{name: probabilities}, sample_weight=sample_weight)
    scores = _positive_column(scores, labels, pos_label, name)
    soft = pos_label is None and is_soft(labels)
    outcomes = check_vector(labels, name="y_true") if soft else check_binary(labels, pos_label=pos_label)
    if is_frame(probabilities) and not soft and len(np.unique(as_numpy(labels))) == 2:
        require_column_order(probabilities, as_numpy(labels), 2)
    if soft:
        refuse_swapped(scores, labels="y_true", order=f"(y_true, {name})")
    weights = check_weights(sample_weight, int(scores.shape[0]))
    return BinaryRows(scores, _beside(outcomes, scores), _beside(weights, scores)).present()


def refuse_swapped(scores: Array, *, labels: str, order: str) -> None:
    """Refuse fractions as labels beside zeros and ones as probabilities: the arguments are swapped."""
    xp = namespace(scores)
    zero, one = scores == 0, scores == 1
    if bool(xp.all(zero | one)) and bool(xp.any(zero)) and bool(xp.any(one)):
        raise InputError(
            f"the arguments seem to be swapped: {labels} holds fractions and the probabilities are all 0 "
            f"or 1. The order is {order}."
        )


def is_soft(labels: Array) -> bool:
    """Whether the labels are probabilities: floating, inside [0, 1], some strictly between."""
    if labels.ndim != 1 or (isinstance(labels, np.ndarray) and labels.dtype.kind != "f"):
        return False
    xp = namespace(labels)
    if not xp.isdtype(labels.dtype, "real floating"):
        return False
    return bool(xp.all((labels >= 0) & (labels <= 1))) and bool(xp.any((labels > 0) & (labels < 1)))


def _positive_column(scores: Array, labels: Array, pos_label: Any, name: str) -> Array:
    """The column of the positive class: the second, unless ``pos_label`` is the smaller of two labels."""
    if pos_label is None or scores.ndim != 2 or scores.shape[1] != 2:
        return check_positive_probabilities(scores, name=name)
    matrix = check_probabilities(scores, name=name)
    distinct = sorted(set(as_numpy(labels).tolist()) | {check_label(pos_label, name="pos_label")})
    if len(distinct) > 2:
        raise InputError(
            f"y_true must hold two labels, got {len(distinct)} with pos_label={pos_label!r}. "
            "For several classes pass (n, K) probabilities."
        )
    if len(distinct) == 1 and pos_label not in (0, 1):
        raise InputError(
            f"y_true holds only {pos_label!r}, so its column of {name} is unknown. "
            f"Pass {name} of the positive class as (n,)."
        )
    return matrix[:, 0 if pos_label == (distinct[0] if len(distinct) == 2 else 0) else 1]


def _beside(values: Any, like: Array) -> Any:
    """The values in the library and on the device of ``like``."""
    if values is None or isinstance(like, np.ndarray):
        return None if values is None else as_numpy(values)
    return on_device_of(values, like) if isinstance(values, np.ndarray) else values
