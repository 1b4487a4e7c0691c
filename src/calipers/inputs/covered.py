"""Whether each outcome lies in its prediction set or interval."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.arrays import Array, namespace, pick_columns
from calipers.exceptions import InputError
from calipers.inputs.labels import encode_labels
from calipers.inputs.predictions import check_prediction
from calipers.inputs.row_checks import check_same_length, check_vector


def is_covered(y_true: Any, prediction: Any, *, classes: Any = None) -> Array:
    """Whether each row's outcome lies in its prediction set or interval; both ends belong to it.

    Parameters
    ----------
    y_true : array of shape (n,)
        Labels (with sets) or numbers (with intervals).
    prediction : array
        Sets as bool (n, K), or intervals as float (n, 2).
    classes : sequence of K labels, optional
        The label of every column; needed only when it cannot be read off ``y_true``.

    Returns
    -------
    bool array of shape (n,)
        In the array library and on the device of ``prediction``.

    Examples
    --------
    >>> from calipers.metrics import is_covered
    >>> is_covered([1.0, 2.0], [[0.0, 1.0], [2.5, 3.0]])
    array([ True, False])
    """
    kind, array = check_prediction(prediction)
    check_same_length(y_true=y_true, prediction=prediction)
    if kind == "sets":
        codes = encode_labels(y_true, array.shape[1], classes=classes, table=prediction)
        return covered_by_sets(codes, array)
    if classes is not None:
        raise InputError("classes belong to sets; prediction holds intervals (a float array of two columns).")
    return covered_by_intervals(check_vector(y_true, name="y_true"), array)


def covered_by_sets(codes: Array, sets: Array) -> Array:
    """Kernel: the entry of each row at its label's column.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs import covered_by_sets
    >>> covered_by_sets(np.array([1, 0]), np.array([[True, False], [True, True]]))
    array([False,  True])
    """
    xp = namespace(sets)
    codes = xp.asarray(codes, device=sets.device) if isinstance(codes, np.ndarray) else codes
    return pick_columns(sets, codes)


def covered_by_intervals(y: Array, intervals: Array) -> Array:
    """Kernel: lower <= y <= upper.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs import covered_by_intervals
    >>> covered_by_intervals(np.array([1.0, 3.0]), np.array([[0.0, 1.0], [0.0, 1.0]]))
    array([ True, False])
    """
    xp = namespace(intervals)
    y = xp.asarray(y, device=intervals.device) if isinstance(y, np.ndarray) else y
    return (intervals[:, 0] <= y) & (y <= intervals[:, 1])
