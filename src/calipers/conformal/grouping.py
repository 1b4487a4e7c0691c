"""Which group each row belongs to: a column, a function of the rows, a grouping estimator, or an array."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from typing import Any

from sklearn.base import clone

from calipers.arrays import as_array, frame_columns, is_frame
from calipers.exceptions import InputError, InputTypeError


def is_grouping_estimator(groups: Any) -> bool:
    """Whether it has the two methods of a grouping estimator: ``fit(X, predict)`` and ``assign(X)``."""
    return hasattr(groups, "fit") and hasattr(groups, "assign")


def fit_grouping(groups: Any, X: Any, predict: Callable[[Any], Any]) -> Any:
    """A fitted copy of a grouping estimator; everything else as it is."""
    if not is_grouping_estimator(groups):
        return groups
    fitted = clone(groups, safe=False)
    fitted.fit(X, predict)
    return fitted


def group_rows(grouping: Any, X: Any, given: Any) -> Any:
    """The group of every row, or None: the array given at call time, or what the grouping says."""
    if grouping is None:
        return given
    if given is not None:
        raise InputError(
            "groups were given twice, to the constructor and to the call. "
            "Leave out one: the constructor's are worked out from X."
        )
    if is_grouping_estimator(grouping):
        return grouping.assign(X)
    if callable(grouping):
        return grouping(X)
    if isinstance(grouping, str):
        return _named_column(X, grouping)
    if isinstance(grouping, numbers.Integral) and not isinstance(grouping, bool):
        return _numbered_column(X, int(grouping))
    raise InputTypeError(
        "groups must be None, a column name or index, a callable, or a grouping estimator with fit and "
        f"assign, got {type(grouping).__name__}. Arrays of groups are given to conformalize and predict_*."
    )


def calibration_groups(grouping: Any, X: Any, given: Any) -> Any:
    """As `group_rows` for the rows a grouping estimator was fitted on.

    An estimator that sets rows aside to place its groups says so in ``assign_calibration``: such rows get a
    group of their own that no test row has, and take part in no threshold.
    """
    if given is None and is_grouping_estimator(grouping) and hasattr(grouping, "assign_calibration"):
        return grouping.assign_calibration(X)
    return group_rows(grouping, X, given)


def _named_column(X: Any, name: str) -> Any:
    if not is_frame(X):
        raise InputError(
            f"groups={name!r} names a column, but X is not a dataframe. Give the column's index."
        )
    columns = frame_columns(X)
    if name not in columns:
        raise InputError(f"groups={name!r} is not a column of X; it has {', '.join(list(columns)[:8])}.")
    return columns[name].to_native()


def _numbered_column(X: Any, index: int) -> Any:
    if is_frame(X):
        columns = list(frame_columns(X).values())
        width = len(columns)
    else:
        array = as_array(X, name="X")
        width = int(array.shape[1]) if array.ndim == 2 else 1
    if not -width <= index < width:
        raise InputError(f"groups={index} is not a column of X, which has {width}.")
    return columns[index].to_native() if is_frame(X) else array[:, index]
