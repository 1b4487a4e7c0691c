"""What was predicted: probabilities, p-values, sets, intervals, or only whether it covered."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.arrays import Array, as_array, as_numpy, namespace, smallest_and_largest
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs.labels import encode_labels, require_labels
from calipers.inputs.option_checks import check_label
from calipers.inputs.row_checks import (
    LARGEST_VALUE,
    array_size,
    count_true,
    distinct_objects,
    first_true,
    numeric,
    one_column,
    place,
    require_finite,
)

# Softmax outputs written with four digits still sum to 1 within this; logits and percentages do not.
ROW_SUM_TOLERANCE = 1e-3
_BLOCK = 1 << 17


def check_probabilities(probabilities: Any, *, name: str = "probabilities") -> Array:
    """Probabilities (n, K) in a floating dtype: in [0, 1], rows summing to 1 within 0.001, no NaN.

    Nothing is clipped or renormalised.

    Examples
    --------
    >>> from calipers.inputs import check_probabilities
    >>> check_probabilities([[0.25, 0.75]])
    array([[0.25, 0.75]])
    """
    array = as_array(probabilities, name=name)
    if _are_probabilities(array):
        return array
    array = _matrix(array, name, "one column per class")
    _check_unit(array, name)
    xp = namespace(array)
    sums = xp.sum(array, axis=1)
    off = xp.abs(sums - 1) > ROW_SUM_TOLERANCE
    if bool(xp.any(off)):
        row = first_true(off)[0]
        raise InputError(
            f"each row of {name} must sum to 1, {count_true(off)} of {array.shape[0]} rows do not "
            f"(first at row {row}: {float(sums[row]):.6g}). "
            "Divide by the row sums, or apply a softmax to logits."
        )
    return array


def _are_probabilities(array: Array) -> bool:
    """Whether all rules hold, in a few reductions (NaN fails every comparison); False means: look closer."""
    if array.ndim != 2 or not all(array.shape) or (isinstance(array, np.ndarray) and array.dtype.kind != "f"):
        return False
    xp = namespace(array)
    if not xp.isdtype(array.dtype, "real floating"):
        return False
    slack = 4 * float(xp.finfo(array.dtype).eps)
    # One pass over memory: on the host each block stays in the cache for its reductions.
    n, width = (int(length) for length in array.shape)
    step = max(1, _BLOCK // width) if isinstance(array, np.ndarray) else n
    for block in (array[first : min(first + step, n), ...] for first in range(0, n, step)):
        off, low = xp.max(xp.abs(xp.sum(block, axis=1) - 1)), xp.min(block)
        if not isinstance(array, np.ndarray):  # one answer from a device, not two
            off, low = as_numpy(xp.stack([off, low])).tolist()
        if not (off <= ROW_SUM_TOLERANCE and low >= 0):
            return False
        # No entry of a row exceeds its sum, so the largest matters only where a sum does.
        if off > slack and not bool(xp.max(block) <= 1 + slack):
            return False
    return True


def check_positive_probabilities(probabilities: Any, *, name: str = "probabilities") -> Array:
    """Probabilities of the positive class as a vector; (n, 2) gives its second column.

    Examples
    --------
    >>> from calipers.inputs import check_positive_probabilities
    >>> check_positive_probabilities([[0.25, 0.75]])
    array([0.75])
    """
    array = as_array(probabilities, name=name)
    if array.ndim == 2 and array.shape[1] == 2:
        return check_probabilities(array, name=name)[:, 1]
    array = one_column(array)
    if array.ndim != 1:
        raise InputError(
            f"{name} must be the probability of the positive class, (n,) or (n, 2), "
            f"got shape {tuple(array.shape)}."
        )
    array = numeric(array, name)
    _check_unit(array, name)
    return array


def check_p_values(p_values: Any, *, name: str = "p_values") -> Array:
    """p-values (n, K), one column per label, in [0, 1], no NaN; their rows need not sum to anything.

    Examples
    --------
    >>> from calipers.inputs import check_p_values
    >>> check_p_values([[0.05, 1.0]])
    array([[0.05, 1.  ]])
    """
    array = _matrix(p_values, name, "one column per label")
    _check_unit(array, name)
    return array


def check_sets(sets: Any, *, name: str = "sets") -> Array:
    """Prediction sets as bool (n, K), or (n, K, L) for L levels; integers must be 0 or 1.

    Examples
    --------
    >>> from calipers.inputs import check_sets
    >>> check_sets([[1, 0]])
    array([[ True, False]])
    """
    _refuse_lists_of_labels(sets, name)
    array = as_array(sets, name=name)
    if array.ndim not in (2, 3):
        raise InputError(
            f"{name} must be (n, K), one column per label, or (n, K, L) for L levels, "
            f"got shape {tuple(array.shape)}."
        )
    return _as_bool(array, name)


def _refuse_lists_of_labels(sets: Any, name: str) -> None:
    """Refuse one list of labels per row where they have several lengths; what tells them from a table."""
    if not isinstance(sets, (list, tuple)) and not (isinstance(sets, np.ndarray) and sets.dtype.kind == "O"):
        return
    rows = [row for row in sets if isinstance(row, (list, tuple, set, frozenset))]
    if len({len(row) for row in rows}) > 1 or any(isinstance(row, (set, frozenset)) for row in rows):
        raise InputTypeError(
            f"{name} must be an array with one column per label, got lists of labels. "
            f"Pass calipers.inputs.sets_from_labels({name}, classes)."
        )


def sets_from_labels(label_sets: Any, classes: Any) -> np.ndarray:
    """Prediction sets given as lists of labels, the way crepes and puncc return them, as bool (n, K).

    Parameters
    ----------
    label_sets : sequence of n collections of labels
        The labels in each set; an empty collection is an empty set.
    classes : sequence of K labels
        The label of every column.

    Returns
    -------
    bool array of shape (n, K)

    Raises
    ------
    InputError
        When a set holds a label that is not in ``classes``, or ``classes`` repeats one.

    Notes
    -----
    Labels are compared after ``.item()``, so numpy scalars match the plain ones. Cost: one look-up per
    label listed.

    Examples
    --------
    >>> from calipers.inputs import sets_from_labels
    >>> sets_from_labels([["b"], [], ["a", "c"]], ["a", "b", "c"])
    array([[False,  True, False],
           [False, False, False],
           [ True, False,  True]])
    """
    column = {plain_label(label): index for index, label in enumerate(classes)}
    if len(column) != len(classes):
        raise InputError(f"classes must hold each label once, got {list(column)} from {len(classes)} labels.")
    sets = np.zeros((len(label_sets), len(column)), dtype=bool)
    for row, labels in enumerate(label_sets):
        for label in labels:
            if plain_label(label) not in column:
                raise InputError(
                    f"label_sets must hold labels of classes, got {plain_label(label)!r} in row {row}; "
                    f"known are {', '.join(map(repr, column))}."
                )
            sets[row, column[plain_label(label)]] = True
    return sets


def plain_label(label: Any) -> Any:
    """The label as plain Python has it, so that numpy's scalars compare equal to it."""
    return label.item() if hasattr(label, "item") else label


def check_intervals(intervals: Any, *, name: str = "intervals") -> Array:
    """Intervals (n, 2), or (n, 2, L) for L levels: lower and upper ends, infinite ends allowed.

    Examples
    --------
    >>> from calipers.inputs import check_intervals
    >>> check_intervals([[0.4, 0.1]])
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: lower exceeds upper in 1 of 1 rows of intervals
    (first at row 0: 0.4 > 0.1).
    """
    array = as_array(intervals, name=name)
    if array.ndim not in (2, 3) or array.shape[1] != 2:
        raise InputError(
            f"{name} must be (n, 2), lower and upper ends, or (n, 2, L) for L levels, "
            f"got shape {tuple(array.shape)}."
        )
    array = require_finite(numeric(array, name), name=name, infinite=True)
    _refuse_beyond(array, name)
    crossed = array[:, 0, ...] > array[:, 1, ...]
    if count := count_true(crossed):
        index = first_true(crossed)
        low, high = (float(array[(index[0], side, *index[1:])]) for side in (0, 1))
        total = "rows" if array.ndim == 2 else "rows and levels"
        raise InputError(
            f"lower exceeds upper in {count} of {array_size(crossed)} {total} of {name} "
            f"(first at {place(crossed)}: {low:g} > {high:g})."
        )
    return array


def _refuse_beyond(array: Array, name: str) -> None:
    """Refuse finite ends so large that a squared width overflows; infinite ones say that there is no end."""
    xp = namespace(array)
    reach = max(-float(xp.min(array)), float(xp.max(array))) if array_size(array) else 0.0
    if reach > LARGEST_VALUE:
        beyond = xp.isfinite(array) & (xp.abs(array) > LARGEST_VALUE)
        if bool(xp.any(beyond)):
            raise InputError(
                f"{name} has {count_true(beyond)} value(s) beyond 1e150 (first at {place(beyond)}). "
                "Rescale them, or write inf for an end that does not exist."
            )


def check_prediction(prediction: Any, *, name: str = "prediction") -> tuple[str, Array]:
    """("sets", bool (n, K)) or ("intervals", float (n, 2)), told apart by dtype, never by guessing.

    Booleans are sets and floats are intervals. Integers are sets when they are all 0 or 1 and there
    are not exactly two columns; an integer (n, 2) of zeros and ones could be either and is refused.

    Examples
    --------
    >>> from calipers.inputs import check_prediction
    >>> check_prediction([[True, False]])[0], check_prediction([[0.5, 2.0]])[0]
    ('sets', 'intervals')
    """
    _refuse_lists_of_labels(prediction, name)
    array = as_array(prediction, name=name)
    if array.ndim == 3:
        raise InputError(
            f"{name} holds {array.shape[2]} levels; pass one at a time, for instance {name}[:, :, 0]."
        )
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        # Nullable columns of pandas come as objects.
        is_bool = array.size > 0 and any(isinstance(cell, (bool, np.bool_)) for cell in array.flat)
        array = _as_bool(array, name) if is_bool else numeric(array, name)
    if _are_booleans(array):
        return "sets", check_sets(array, name=name)
    xp = namespace(array)
    if xp.isdtype(array.dtype, "integral") and array.ndim == 2:
        zero_one = bool(xp.all((array == 0) | (array == 1)))
        if zero_one and array.shape[1] == 2:
            raise InputError(
                f"{name} is an integer (n, 2) array of zeros and ones, which could be sets or intervals. "
                f"Pass {name}.astype(bool) for sets or {name}.astype(float) for intervals."
            )
        if zero_one:
            return "sets", check_sets(array, name=name)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(
            f"{name} must be bool (n, K) for sets or numbers (n, 2) for intervals, "
            f"got {array.dtype} of shape {tuple(array.shape)}."
        )
    return "intervals", check_intervals(array, name=name)


def check_covered(covered: Any, *, name: str = "covered") -> Array:
    """Whether each row was covered, as bool (n,); numbers must be 0 or 1.

    Examples
    --------
    >>> from calipers.inputs import check_covered
    >>> check_covered([1, 0, 1])
    array([ True, False,  True])
    """
    array = one_column(as_array(covered, name=name))
    if array.ndim != 1:
        raise InputError(f"{name} must have one entry per row, got shape {tuple(array.shape)}.")
    return _as_bool(array, name)


def check_promised(promised: Any, *, name: str = "promised") -> Array:
    """Promised probabilities of the rows, (n,) in [0, 1], no NaN.

    Examples
    --------
    >>> from calipers.inputs.predictions import check_promised
    >>> check_promised([0.9, 1.0])
    array([0.9, 1. ])
    """
    array = one_column(as_array(promised, name=name))
    if array.ndim != 1:
        raise InputError(f"{name} must have one entry per row, got shape {tuple(array.shape)}.")
    array = numeric(array, name)
    _check_unit(array, name)
    return array


def check_binary(y_true: Any, *, pos_label: Any = None, name: str = "y_true") -> Array:
    """Whether each row's label is the positive one, as bool (n,).

    ``pos_label=None`` takes the larger of two labels; with a single label present it must be given,
    unless the labels are booleans or zeros and ones.

    Examples
    --------
    >>> from calipers.inputs import check_binary
    >>> check_binary(["no", "yes", "no"])
    array([False,  True, False])
    """
    labels = one_column(as_array(y_true, name=name))
    if labels.ndim != 1:
        raise InputError(f"{name} must have one entry per row, got shape {tuple(labels.shape)}.")
    if isinstance(labels, np.ndarray):
        require_labels(labels, name)
    if pos_label is not None:
        return _equals_positive(labels, pos_label, name)
    xp = namespace(labels)
    if not _is_text(labels) and xp.isdtype(labels.dtype, "bool"):
        return labels
    numbers_like = not isinstance(labels, np.ndarray) or labels.dtype.kind in "biuf"
    if numbers_like and bool(xp.all((labels == 0) | (labels == 1))):
        return xp.astype(labels, xp.bool)
    try:
        codes = encode_labels(labels, 2, name=name)
    except InputError as error:
        raise InputError(
            f"{name} must hold two labels, or pos_label must say which one is positive ({error})"
        ) from None
    return codes == 1


def _equals_positive(labels: Array, pos_label: Any, name: str) -> Array:
    if isinstance(labels, np.ndarray) and labels.dtype.kind == "O":
        distinct_objects(labels, name)
    xp, label = namespace(labels), check_label(pos_label, name="pos_label")
    try:
        positive = labels == label
    except OverflowError:  # no label of this type is as large
        positive = xp.zeros(labels.shape, dtype=xp.bool)
    distinct = np.unique(labels.astype(str)) if _is_text(labels) else xp.unique_values(labels)
    if len(distinct) > 2:
        raise InputError(
            f"{name} must hold two labels, got {len(distinct)}. "
            "For several classes pass (n, K) probabilities."
        )
    # With one label present the positive one may be the other, when it is of the same kind.
    if not bool(xp.any(positive)) and (len(distinct) == 2 or isinstance(label, str) != _holds_text(labels)):
        shown = " and ".join(repr(plain_label(value)) for value in distinct)
        raise InputError(f"pos_label={pos_label!r} does not occur in {name}, which holds {shown}.")
    return positive


def _holds_text(labels: Array) -> bool:
    return isinstance(labels, np.ndarray) and bool(labels.size) and isinstance(labels.flat[0], str)


def _is_text(labels: Array) -> bool:
    return isinstance(labels, np.ndarray) and labels.dtype.kind not in "biuf"


def _matrix(values: Any, name: str, meaning: str) -> Array:
    array = as_array(values, name=name)
    if array.ndim != 2:
        raise InputError(f"{name} must be (n, K), {meaning}, got shape {tuple(array.shape)}.")
    return numeric(array, name)


def _check_unit(array: Array, name: str) -> None:
    """Numbers in [0, 1], no NaN: two reductions when all is well, the place when it is not."""
    xp = namespace(array)
    # A float32 softmax can exceed 1 by rounding; four units in the last place are not an error.
    limit = 1 + 4 * float(xp.finfo(array.dtype).eps)
    if not array_size(array):
        return
    low, high = smallest_and_largest(array)
    if low >= 0 and high <= limit:  # NaN fails the comparisons
        return
    require_finite(array, name=name)
    outside = (array < 0) | (array > limit)
    value = float(array[first_true(outside)])
    raise InputError(
        f"{name} must lie in [0, 1], {count_true(outside)} of {array_size(array)} values do not "
        f"(first at {place(outside)}: {value:.9g}). Percentages and logits must be converted first."
    )


def _as_bool(array: Array, name: str) -> Array:
    if isinstance(array, np.ndarray) and array.dtype.kind == "O":
        array = numeric(array, name)
    if isinstance(array, np.ndarray) and array.dtype.kind not in "biuf":
        raise InputTypeError(f"{name} must hold booleans, got {array.dtype}.")
    if _are_booleans(array):
        return array
    other = (array != 0) & (array != 1)  # NaN is neither
    if count := count_true(other):
        value = array[first_true(other)]
        raise InputError(
            f"{name} must hold booleans, or zeros and ones; "
            f"{count} of {array_size(array)} values are neither (first at {place(other)}: {float(value):g})."
        )
    return array == 1


def _are_booleans(array: Array) -> bool:
    if isinstance(array, np.ndarray):
        return bool(array.dtype.kind == "b")
    return bool(namespace(array).isdtype(array.dtype, "bool"))
