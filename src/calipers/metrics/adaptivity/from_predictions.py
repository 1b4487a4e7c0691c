"""Coverage, difficulty and size of rows from what the model predicted and what happened."""

from __future__ import annotations

from typing import Any

from calipers.arrays import as_array, count_along, namespace
from calipers.exceptions import InputError
from calipers.inputs import check_prediction, check_same_length, check_vector, is_covered
from calipers.metrics.adaptivity.ranks import true_rank


def covered_rows(covered: Any, y_true: Any, classes: Any) -> Any:
    """``covered`` as given, or with outcomes: whether they lie in the sets (n, K) or intervals (n, 2).

    Examples
    --------
    >>> from calipers.metrics.adaptivity.from_predictions import covered_rows
    >>> covered_rows([[True, False], [True, True]], [1, 0], None)
    array([False,  True])
    """
    if y_true is None:
        _refuse_classes(classes)
        return covered
    return is_covered(y_true, covered, classes=classes)


def difficulty_rows(ranks: Any, y_true: Any, classes: Any) -> Any:
    """``ranks`` as given, or with outcomes: the true rank in probabilities, the absolute error of points.

    Examples
    --------
    >>> from calipers.metrics.adaptivity.from_predictions import difficulty_rows
    >>> difficulty_rows([[0.7, 0.3], [0.6, 0.4]], [0, 1], None), difficulty_rows([1.0, 2.0], [1.5, 4.0], None)
    (array([1, 2]), array([0.5, 2. ]))
    """
    if y_true is None:
        _refuse_classes(classes)
        return ranks
    stated = as_array(ranks, name="ranks")
    if stated.ndim == 2:
        return true_rank(y_true, ranks, classes=classes)
    _refuse_classes(classes)
    check_same_length(ranks=ranks, y_true=y_true)
    predicted, outcome = check_vector(ranks, name="ranks"), check_vector(y_true, name="y_true")
    xp = namespace(predicted)
    return xp.abs(xp.asarray(outcome, device=predicted.device) - predicted)


def size_rows(size: Any) -> Any:
    """``size`` as given, or the sizes of sets (n, K), or the widths of intervals (n, 2).

    Examples
    --------
    >>> from calipers.metrics.adaptivity.from_predictions import size_rows
    >>> size_rows([[True, False], [True, True]]).tolist(), size_rows([[0.0, 1.5]]).tolist()
    ([1, 2], [1.5])
    """
    if as_array(size, name="size").ndim != 2:
        return size
    kind, array = check_prediction(size, name="size")
    return count_along(array, axis=1) if kind == "sets" else array[:, 1] - array[:, 0]


def _refuse_classes(classes: Any) -> None:
    if classes is not None:
        raise InputError("classes name the columns of sets or probabilities; give them with y_true.")
