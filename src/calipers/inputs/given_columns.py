"""Columns of rows as they were given: each is checked when it is first read."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.arrays import as_numpy, is_frame
from calipers.arrays.compiled import are_in_unit, are_probabilities
from calipers.inputs import (
    check_covered,
    check_intervals,
    check_p_values,
    check_positive_probabilities,
    check_probabilities,
    check_sets,
    check_vector,
    check_weights,
)
from calipers.inputs.categorical import Categorical
from calipers.inputs.column_matrix import ColumnMatrix
from calipers.inputs.features import Features
from calipers.inputs.predictions import ROW_SUM_TOLERANCE, check_promised
from calipers.inputs.row_checks import check_time, refuse_missing_labels

if TYPE_CHECKING:
    from calipers.inputs.rows import Rows

# What stays a frame with named columns: features, attributes of groups, quantiles by their level.
TABLES = ("X", "groups", "quantiles")


def given_column(block: Rows, name: str) -> Any:
    """The column as it was given, checked; None when it was not given."""
    if name not in block.given:
        return None
    value = block.given[name]
    if isinstance(value, Categorical):
        return value
    if isinstance(value, ColumnMatrix):
        value = np.asarray(value)
    if name in TABLES and (is_frame(value) or isinstance(value, Features)):
        return value
    check = _CHECKS.get(name)
    if block.trusted and isinstance(value, np.ndarray) and value.ndim > 1 and value.shape[1] > 1:
        return value
    return as_numpy(value if check is None else check(value, block), name=name)


_CHECKS: dict[str, Callable[[Any, Rows], Any]] = {
    "covered": lambda v, _: check_covered(v),
    "promised": lambda v, _: check_promised(v),
    "size": lambda v, _: check_vector(v, name="size", finite=False),
    "probabilities": lambda v, block: _probabilities(v, block.kernels),
    "p_values": lambda v, block: _given_p_values(v, block.kernels),
    "sets": lambda v, _: check_sets(v),
    "intervals": lambda v, _: check_intervals(v),
    "ease": lambda v, _: check_vector(v, name="ease"),
    "loss": lambda v, _: check_vector(v, name="loss"),
    "y_pred": lambda v, _: check_vector(v, name="y_pred"),
    "pit": lambda v, _: check_promised(v, name="pit"),
    "cluster": lambda v, _: known_labels(v, "cluster"),
    "groups": lambda v, _: known_labels(v, "groups"),
    "time": lambda v, _: check_time(v),
    "sample_weight": lambda v, block: check_weights(v, block.n, part=True),
}


def _given_p_values(value: Any, compiled: Any) -> Any:
    """p-values (n, K), or one per row."""
    array = value if hasattr(value, "ndim") or is_frame(value) else as_numpy(value, name="p_values")
    return array if np.ndim(array) == 1 or are_in_unit(array, compiled) else check_p_values(array)


def _probabilities(value: Any, compiled: Any) -> Any:
    """Probabilities (n, K); a vector is the positive class of two."""
    if are_probabilities(value, compiled, ROW_SUM_TOLERANCE):
        return value
    array = value if is_frame(value) else as_numpy(value, name="probabilities")
    if np.ndim(array) == 1 or np.shape(array)[1] == 1:
        positive = as_numpy(check_positive_probabilities(array)).astype(np.float64)
        return np.stack([1.0 - positive, positive]).T
    return as_numpy(check_probabilities(array))


def known_labels(value: Any, name: str) -> np.ndarray:
    """Labels without a missing one."""
    groups = np.asarray(as_numpy(value, name=name))
    refuse_missing_labels(groups, name)
    return groups
