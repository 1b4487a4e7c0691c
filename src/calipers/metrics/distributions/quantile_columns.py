"""Predicted quantiles as every measure of them reads them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inputs import check_vector, require_finite
from calipers.inputs.levels import check_fraction
from calipers.inputs.row_checks import LARGEST_VALUE, numeric

_MEANING = "It is the level of a quantile (0.1 for the 10 % quantile)"


def check_quantile_levels(levels: Any, *, least: int = 1) -> tuple[float, ...]:
    """Levels of quantiles, strictly between 0 and 1, each once.

    Examples
    --------
    >>> from calipers.metrics.distributions.quantile_columns import check_quantile_levels
    >>> check_quantile_levels([0.1, 0.9])
    (0.1, 0.9)
    """
    if levels is None:
        raise InputError(
            "levels are needed: the level of every column of quantiles, for instance [0.1, 0.9]."
        )
    given = [levels] if np.ndim(levels) == 0 else list(levels)
    checked = tuple(check_fraction(a, name=f"levels[{i}]", meaning=_MEANING) for i, a in enumerate(given))
    if len(checked) < least:
        raise InputError(f"levels must hold at least {least} levels, got {len(checked)}.")
    if len(set(checked)) < len(checked):
        raise InputError(f"levels must differ, got {list(checked)}.")
    return checked


def check_quantiles(y_true: Any, quantiles: Any, levels: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    """Outcomes (n,) and quantiles (n, L), one column per level in the order of ``levels``."""
    y = as_numpy(check_vector(y_true, name="y_true")).astype(np.float64)
    array = np.asarray(as_numpy(numeric(as_numpy(quantiles, name="quantiles"), "quantiles")), dtype=float)
    table = array[:, None] if array.ndim == 1 else array
    if table.ndim != 2 or table.shape[1] != len(levels):
        raise InputError(
            f"quantiles must be (n, {len(levels)}), one column per level, got shape {array.shape}."
        )
    table = np.asarray(require_finite(table, name="quantiles", infinite=True))
    if np.any((np.abs(table) > LARGEST_VALUE) & np.isfinite(table)):
        raise InputError("quantiles has values beyond 1e150, too large to be squared. Rescale them.")
    return y, table


def crossing_rows(quantiles: np.ndarray, levels: Sequence[float]) -> np.ndarray:
    """Rows where a quantile of a higher level is smaller than one of a lower level.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.distributions.quantile_columns import crossing_rows
    >>> crossing_rows(np.array([[1.0, 2.0], [3.0, 2.0]]), [0.1, 0.9])
    array([False,  True])
    """
    ordered = quantiles[:, np.argsort(levels)]
    return np.asarray(np.any(ordered[:, 1:] < ordered[:, :-1], axis=1))
