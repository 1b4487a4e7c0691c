"""What other libraries return, brought into our layout; what could be read in two ways is refused.

============  ==================================================  =======================================
library       sets                                                intervals
============  ==================================================  =======================================
MAPIE         (point prediction, bool (n, K, L))                  (point prediction, float (n, 2, L))
crepes        lists of labels, or integers (n, K)                 float (n, 2)
puncc         (probabilities, lists of labels)                    (point prediction, lower, upper)
TorchCP       integer tensor (n, K)                               tensor (n, 1, 2)
============  ==================================================  =======================================
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import narwhals as nw
import numpy as np
from narwhals.dependencies import is_into_series

from calipers.arrays import Array, as_array, as_numpy, is_array
from calipers.exceptions import InputError
from calipers.inputs.labels import check_classes
from calipers.inputs.predictions import plain_label, sets_from_labels

_COLLECTIONS = (list, tuple, set, frozenset, np.ndarray)


def unpack_sets(
    sets: Any, y_true: Any, *, classes: Any = None, n_classes: int | None = None
) -> tuple[Any, Any]:
    """Sets as one array, and the label of every column.

    A point prediction that comes with the sets is left aside; lists of labels become columns, in the order of
    ``classes``, else of the sorted labels that occur. ``n_classes`` is the number of columns of the
    probabilities or p-values given beside them.

    Examples
    --------
    >>> from calipers.inputs import unpack_sets
    >>> unpack_sets([["b"], [], ["a", "b"]], ["b", "a", "a"])
    (array([[False,  True],
           [False, False],
           [ True,  True]]), ['a', 'b'])
    """
    sets = _without_point_prediction(sets, len(as_numpy(y_true, name="y_true")))
    labels = as_numpy(y_true, name="y_true").reshape(-1)
    lists = _label_lists(sets, boolean_labels=labels.dtype.kind == "b")
    if lists is None:
        return sets, classes
    columns = _columns(lists, labels, classes, n_classes)
    return sets_from_labels(lists, columns), columns


def unpack_intervals(intervals: Any, n: int) -> Any:
    """Intervals as one array (n, 2) or (n, 2, L), from what came with them or in two vectors.

    Examples
    --------
    >>> from calipers.inputs import unpack_intervals
    >>> point, lower, upper = [1.0, 2.0, 3.0], [0.0, 1.0, 2.0], [2.0, 3.0, 4.0]
    >>> unpack_intervals((point, lower, upper), 3)
    array([[0., 2.],
           [1., 3.],
           [2., 4.]])
    """
    if isinstance(intervals, tuple):
        parts = [as_array(part, name="intervals") for part in intervals]
        vectors = all(part.ndim == 1 and part.shape[0] == n for part in parts)
        if vectors and len(parts) in (2, 3):
            if n == 2 and len(parts) == 2:
                raise InputError(
                    "intervals is a pair of pairs: two rows, or all lower and all upper ends? "
                    "Pass an array with one row (lower, upper) per outcome."
                )
            return np.column_stack([as_numpy(part) for part in parts[-2:]])
        if len(parts) == 2 and parts[1].ndim > 1:
            return _single_output(parts[1])
        return intervals
    return _single_output(intervals) if is_array(intervals) else intervals


def _single_output(intervals: Array) -> Array:
    """(n, 1, 2), one output with its two ends, as (n, 2)."""
    one = intervals.ndim == 3 and tuple(intervals.shape[1:]) == (1, 2)
    return intervals[:, 0, :] if one else intervals


def _without_point_prediction(sets: Any, n: int) -> Any:
    if not isinstance(sets, tuple) or len(sets) != 2:
        return sets
    first, second = (len(part) if hasattr(part, "__len__") else -1 for part in sets)
    if n == 2 and first == second == 2:
        raise InputError(
            "sets is a pair of pairs: two rows, or a point prediction and its sets? "
            "Pass the sets alone, as an array."
        )
    return sets[1] if first == second == n else sets


def _label_lists(sets: Any, *, boolean_labels: bool) -> Sequence[Any] | None:
    """The rows when they list labels; None when they are rows of a matrix."""
    rows = _rows(sets)
    if rows is None:
        return None
    values = [plain_label(value) for row in rows for value in row]
    widths = {len(row) for row in rows}
    if not values or any(isinstance(value, str) for value in values):
        return rows
    if not all(map(_is_whole, values)):
        return None
    if len(widths) > 1 or widths == {1} or not set(values) <= {0, 1}:
        return rows
    columns = all(isinstance(value, bool) for value in values) and not boolean_labels
    if widths == {2} and not columns and all(set(map(plain_label, row)) == {0, 1} for row in rows):
        raise InputError(
            "sets holds 0 and 1 once in every row: all labels of two, or one column that is true? "
            "Pass numpy.array(sets, dtype=bool) for columns, "
            "or calipers.inputs.sets_from_labels(sets, classes) for lists of labels."
        )
    return None  # a row that repeats a value is not a list of labels


def _rows(sets: Any) -> list[Any] | None:
    if is_into_series(sets):
        sets = nw.from_native(sets, series_only=True).to_list()
    elif isinstance(sets, np.ndarray):
        sets = list(sets) if sets.dtype.kind == "O" and sets.ndim == 1 else None
    if not isinstance(sets, (list, tuple)) or not len(sets):
        return None
    return list(sets) if all(map(_is_flat, sets)) else None


def _is_flat(row: Any) -> bool:
    """Whether a row is a collection of single values."""
    return isinstance(row, _COLLECTIONS) and not any(isinstance(value, _COLLECTIONS) for value in row)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _columns(lists: Sequence[Any], labels: np.ndarray, classes: Any, n_classes: int | None) -> list[Any]:
    if classes is not None:
        return [plain_label(label) for label in classes]
    if n_classes is not None:
        known = check_classes(None, labels, n_classes)
        return list(range(n_classes)) if known is None else list(known.tolist())
    found = {plain_label(value) for row in lists for value in row} | set(labels.tolist())
    kinds = {isinstance(label, str) for label in found}
    if len(kinds) > 1:
        text, number = (next(v for v in found if isinstance(v, str) is kind) for kind in (True, False))
        raise InputError(
            f"sets and y_true must name the labels alike, one holds {text!r} and the other {number!r}. "
            "Translate one of them, for instance with model.classes_."
        )
    return sorted(found)
