"""Labels: which column of (n, K) belongs to which class."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calipers.arrays import (
    Array,
    as_array,
    as_numpy,
    frame_columns,
    is_frame,
    namespace,
    on_device_of,
    smallest_and_largest,
)
from calipers.exceptions import InputError
from calipers.inputs.row_checks import distinct_objects, missing_mask, named_zero, one_column


def encode_labels(
    y_true: Any, n_classes: int, *, classes: Any = None, name: str = "y_true", table: Any = None
) -> Array:
    """The column index of every row's label.

    ``classes=None`` means: the sorted labels of ``y_true`` if their number is ``n_classes``, else the
    integers 0..K-1 if ``y_true`` holds only those and a 0 (or K is 2), else an error: without a 0 the columns
    could as well be counted from 1. ``table`` is what was given with the K columns: the column names of a
    dataframe are the classes when labels are among them; all of them in another order are refused.

    Examples
    --------
    >>> from calipers.inputs import encode_labels
    >>> encode_labels(["cat", "dog", "cat"], 2)
    array([0, 1, 0])
    >>> encode_labels([3, 0], 5)
    array([3, 0])
    """
    labels = one_column(as_array(y_true, name=name))
    if labels.ndim != 1:
        raise InputError(f"{name} must have one dimension, got shape {tuple(labels.shape)}.")
    if classes is None and is_frame(table):
        classes = named_classes(table, as_numpy(labels))
    if classes is None and is_frame(table):
        require_column_order(table, as_numpy(labels), n_classes, name=name)
    if isinstance(labels, np.ndarray):
        return _encode_host(labels, n_classes, classes, name)
    return _encode_device(labels, n_classes, classes, name)


def named_classes(table: Any, labels: np.ndarray) -> list[Any] | None:
    """The classes that a dataframe names its columns after, where labels do not show all of them.

    None when the names are not those of the labels, when all of them occur (`require_column_order` then
    compares their order), and for names that count from 0, which a dataframe without names has too.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from calipers.inputs.labels import named_classes
    >>> named_classes(pl.DataFrame({"1": [0.2], "2": [0.5], "3": [0.3]}), np.array([1, 2, 2]))
    [1, 2, 3]
    """
    names = list(frame_columns(table))
    if labels.dtype.kind not in "iuUSO" or names == [str(i) for i in range(len(names))]:
        return None
    kinds = {type(label) for label in labels.tolist()}
    if len(kinds) != 1 or not kinds <= {int, str}:
        return None
    kind = kinds.pop()
    try:
        classes = [kind(name) for name in names]
    except ValueError:
        return None
    present = set(labels.tolist())
    return classes if present < set(classes) and [str(c) for c in classes] == names else None


def named_classes_of(stated: Mapping[str, Any], y_true: Any) -> list[Any] | None:
    """The classes that the first dataframe among probabilities, p_values and sets names; None when none does.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.inputs.labels import named_classes_of
    >>> named_classes_of({"sets": pl.DataFrame({"a": [True], "b": [False]})}, ["b"])
    ['a', 'b']
    """
    tables = [stated.get(role) for role in ("probabilities", "p_values", "sets")]
    tables = [table for table in tables if is_frame(table)]
    if not tables or y_true is None:
        return None
    labels = as_numpy(y_true, name="y_true").reshape(-1)
    return next((found for table in tables if (found := named_classes(table, labels)) is not None), None)


def require_column_order(table: Any, labels: np.ndarray, n_classes: int, *, name: str = "y_true") -> None:
    """Refuse a dataframe whose columns bear the names of the labels in another order than theirs.

    Examples
    --------
    >>> import numpy as np
    >>> import polars as pl
    >>> from calipers.inputs import require_column_order
    >>> require_column_order(pl.DataFrame({"no": [0.2], "yes": [0.8]}), np.array(["yes", "no"]), 2)
    """
    known = check_classes(None, labels[~missing_mask(labels)], n_classes, name=name)
    expected = [str(label) for label in (range(n_classes) if known is None else known.tolist())]
    found = list(frame_columns(table))
    if found != expected and sorted(found) == sorted(expected):
        raise InputError(
            f"the columns are named {', '.join(found[:5])} but the labels of {name} in order are "
            f"{', '.join(expected[:5])}. Pass classes=[...] in column order, or sort the columns."
        )


def require_labels(labels: np.ndarray, name: str) -> None:
    """Refuse missing labels, which are neither one class nor the other."""
    missing = missing_mask(labels)
    if missing.any():
        raise InputError(
            f"{name} has {int(missing.sum())} missing of {labels.size} labels "
            f"(first at row {int(np.argmax(missing))})."
        )


def _encode_host(labels: np.ndarray, n_classes: int, classes: Any, name: str) -> np.ndarray:
    require_labels(labels, name)
    plain = classes is None or _are_plain(classes, n_classes)
    if plain and labels.dtype.kind in "iu" and _are_indices(labels, n_classes):
        # K distinct integers inside 0..K-1 are 0..K-1, so both readings of None agree: no sort needed. The
        # caller's own array may come back: codes are read, never written.
        if classes is None:
            _refuse_two_readings(labels, n_classes, name)
        return labels.astype(np.int64, copy=False)
    known = check_classes(classes, labels, n_classes, name=name)
    if known is None:
        return labels.astype(np.int64)
    return _match(labels, known, name)


def _are_plain(classes: Any, n_classes: int) -> bool:
    """Whether the classes are 0, 1, ..., K - 1 in this order, so that a label is its own column."""
    given = class_labels(classes)
    return given.dtype.kind in "iu" and np.array_equal(given, np.arange(n_classes))


def _are_indices(labels: np.ndarray, n_classes: int) -> bool:
    return bool(labels.size) and int(labels.min()) >= 0 and int(labels.max()) < n_classes


def class_labels(classes: Any) -> np.ndarray:
    """The labels of the columns as an array (K,).

    Examples
    --------
    >>> from calipers.inputs.labels import class_labels
    >>> class_labels(["no", "yes"])
    array(['no', 'yes'], dtype='<U3')
    """
    given = as_numpy(classes, name="classes")
    if given.ndim != 1 or not given.size:
        raise InputError(f"classes must name the columns, one label each, got {repr(classes)[:60]}.")
    if given.dtype.kind == "O":
        distinct_objects(given, "classes")
    return given


def check_classes(
    classes: Any, labels: np.ndarray, n_classes: int, *, name: str = "y_true"
) -> np.ndarray | None:
    """The class of every column, or None when the labels are column indices already.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs import check_classes
    >>> check_classes(None, np.array(["no", "yes"]), 2)
    array(['no', 'yes'], dtype='<U3')
    """
    if classes is not None:
        given = class_labels(classes)
        if given.shape != (n_classes,):
            raise InputError(
                f"classes must name the {n_classes} columns, got shape {given.shape}. "
                "Give one label per column, in column order."
            )
        if len(set(given.tolist())) != n_classes:
            raise InputError("classes must differ from each other, got a repeated label.")
        return given
    distinct = named_zero(np.unique(labels)) if labels.dtype.kind != "O" else _sorted_objects(labels, name)
    if len(distinct) == n_classes:
        return distinct
    if _are_whole(distinct) and _are_indices(distinct, n_classes):
        _refuse_two_readings(distinct, n_classes, name)
        return None
    raise InputError(
        f"{name} has {len(distinct)} distinct labels ({_shown(distinct)}) but there are {n_classes} columns. "
        "Pass classes=[...] with the label of every column, in column order."
    )


def column_names(y_true: Any, n_columns: int, classes: Any) -> list[Any]:
    """The label of every column, of labels that have been encoded.

    Examples
    --------
    >>> from calipers.inputs.labels import column_names
    >>> column_names([-0.0, 1.5], 2, None), column_names([0, 2], 3, None)
    ([0.0, 1.5], [0, 1, 2])
    """
    found = check_classes(classes, as_numpy(y_true), n_columns)
    return list(range(n_columns)) if found is None else list(found.tolist())


def _are_whole(labels: np.ndarray) -> bool:
    if labels.dtype.kind != "f":
        return labels.dtype.kind in "iu"
    return bool(np.isfinite(labels).all() and (labels == np.floor(labels)).all())


def _refuse_two_readings(labels: np.ndarray, n_classes: int, name: str) -> None:
    """Refuse numbers that could be columns counted from 0 or from 1; of two classes, 1 is the second."""
    if n_classes == 2 or int(labels.min()) == 0:
        return
    raise InputError(
        f"{name} holds {_shown(np.unique(labels))} and no 0 beside {n_classes} columns, which could be the "
        f"classes 0 to {n_classes - 1} or 1 to {n_classes}. Pass classes=range({n_classes}) or "
        f"classes=range(1, {n_classes + 1}), or the label of every column."
    )


def _shown(distinct: np.ndarray) -> str:
    return ", ".join(repr(v) for v in distinct[:5].tolist()) + (", ..." if len(distinct) > 5 else "")


def _sorted_objects(labels: np.ndarray, name: str) -> np.ndarray:
    distinct = distinct_objects(labels, name)
    return as_numpy(distinct) if len({type(v) for v in distinct}) == 1 else np.asarray(distinct, dtype=object)


def _match(labels: np.ndarray, known: np.ndarray, name: str) -> np.ndarray:
    if labels.dtype.kind == "O" or known.dtype.kind == "O":
        return _match_objects(labels, known, name)
    order = np.argsort(known, kind="stable")
    at = np.minimum(np.searchsorted(known, labels, sorter=order), len(known) - 1)
    codes = order[at]
    unknown = known[codes] != labels
    if unknown.any():
        raise _unknown_label(labels[int(np.argmax(unknown))], int(np.argmax(unknown)), name)
    return codes


def _match_objects(labels: np.ndarray, known: np.ndarray, name: str) -> np.ndarray:
    position = {label: i for i, label in enumerate(known.tolist())}
    codes = np.array([position.get(v, -1) for v in labels.tolist()], dtype=np.int64)
    if (codes < 0).any():
        row = int(np.argmax(codes < 0))
        raise _unknown_label(labels[row], row, name)
    return codes


def _unknown_label(label: object, row: int, name: str) -> InputError:
    shown = label.item() if isinstance(label, np.generic) else label
    return InputError(
        f"{name} holds {shown!r} at row {row}, which is not in classes. "
        "Give every label a column, or leave out the rows that have none."
    )


def _encode_device(labels: Array, n_classes: int, classes: Any, name: str) -> Array:
    """Integer labels on their device: the same rule, without a copy of the rows to the host."""
    xp = namespace(labels)
    if not xp.isdtype(labels.dtype, ("integral", "bool")):
        return on_device_of(_encode_host(as_numpy(labels), n_classes, classes, name), labels)
    labels = xp.astype(labels, xp.int64, copy=False)
    if _are_device_indices(labels, n_classes, classes):
        return labels
    distinct = as_numpy(xp.unique_values(labels))
    known = check_classes(classes, np.sort(distinct), n_classes, name=name)
    if known is None:
        return labels
    if not set(distinct.tolist()) <= set(known.tolist()):
        _match(as_numpy(labels), known, name)  # raises, naming the row
    codes = _match(np.sort(distinct), known, name)
    positions = xp.searchsorted(on_device_of(np.sort(distinct), labels), labels)
    return xp.take(on_device_of(codes.astype(np.int64), labels), positions)


def _are_device_indices(labels: Array, n_classes: int, classes: Any) -> bool:
    """Whether every label is its own column beyond doubt, by two reductions instead of a sort."""
    if not labels.shape[0] or not may_be_columns(labels, n_classes, classes):
        return False
    low, high = smallest_and_largest(labels)
    return low >= 0 and high < n_classes and (low == 0 or not needs_zero(n_classes, classes))


def may_be_columns(labels: Any, n_classes: int, classes: Any) -> bool:
    """Whether labels are whole numbers on a device, and the classes, if given, those from 0 on."""
    if isinstance(labels, np.ndarray) or not hasattr(labels, "device") or labels.ndim != 1:
        return False
    is_whole = bool(namespace(labels).isdtype(labels.dtype, "integral"))
    return is_whole and (classes is None or _are_plain(classes, n_classes))


def needs_zero(n_classes: int, classes: Any) -> bool:
    """Whether a label 0 has to say that columns are counted from 0: without classes, if more than two."""
    return classes is None and n_classes != 2
