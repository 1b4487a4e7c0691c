"""Strata of rows: named groups as they are, numbers in bins that never split equal values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, short_repr
from calipers.exceptions import InputError, InputTypeError
from calipers.inference import ShareCounts
from calipers.inputs import check_count, check_covered, check_groups, check_same_length
from calipers.metrics.promised_rows import PromisedRows, check_promised_rows, check_thresholds
from calipers.metrics.strata_null import StrataNull

# Strata listed in ``details``.
MOST_DESCRIBED = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """Covered and total (weighted) rows of every stratum, with its name and its null."""

    names: tuple[str, ...]
    counts: ShareCounts
    null: StrataNull

    __repr__ = short_repr

    def describe(self, interest: np.ndarray) -> dict[str, dict[str, float]]:
        """Name -> rows and coverage (and what was promised, where rows differ), for ``details``.

        Of very many strata those of most interest.
        """
        counts, promised = self.counts, self.null.rows.promised is not None
        which = np.arange(len(counts.totals))
        if len(which) > MOST_DESCRIBED:
            which = np.sort(np.argsort(-interest, kind="stable")[:MOST_DESCRIBED])
        columns = {"rows": counts.totals[which], "coverage": counts.shares[which]}
        if promised:
            columns["promised"] = self.null.target[which]
        values = zip(*(column.astype(float).tolist() for column in columns.values()), strict=True)
        return {
            self.names[k]: dict(zip(columns, row, strict=True))
            for k, row in zip(which.tolist(), values, strict=True)
        }


def count_strata(
    rows: PromisedRows, labels: np.ndarray, codes: np.ndarray, n_calibration: Any, *, name: str
) -> Strata:
    """Counts per stratum."""
    # Plain Python values are written several times faster and read the same.
    plain = labels.tolist() if labels.dtype.kind in "biuU" else labels
    names = tuple(map(str, plain))
    counts = ShareCounts.of(rows.covered, rows.weights, codes, len(labels))
    thresholds = check_thresholds(n_calibration, len(labels), name=name)
    null = StrataNull(rows, codes, counts.totals, names, thresholds)
    if null.clusters is not None:
        counts = replace(counts, independent=null.clusters.independent_rows(counts.shares))
    return Strata(names, counts, null)


def _checked_rows(
    covered: Any, values: Any, name: str, promise: dict[str, Any]
) -> tuple[PromisedRows, dict[str, np.ndarray]]:
    """Checked rows; where only the other argument can say what is covered, the order is named."""
    # As they were given: what has an index must have the same one.
    check_same_length(covered=covered, **{name: values}, sample_weight=promise.get("sample_weight"))
    groups = as_numpy(values, name=name)
    try:
        check_covered(covered)
    except (InputError, InputTypeError) as error:
        if groups.ndim != 1 or groups.dtype.kind != "b":
            raise
        raise InputError(
            f"covered and {name} seem to be swapped: {name} holds booleans, and {str(error).rstrip('.')}. "
            f"The order is (covered, {name})."
        ) from None
    return check_promised_rows(covered, groups=groups, **promise)


def group_strata(
    covered: Any, groups: Any, *, n_calibration: Any = None, name: str = "groups", **promise: Any
) -> Strata:
    """Strata that have names already."""
    rows, columns = _checked_rows(covered, groups, name, promise)
    labels, codes = check_groups(columns["groups"], len(rows), name=name)
    return count_strata(rows, labels, codes, n_calibration, name=name)


def binned_strata(
    covered: Any, values: Any, n_bins: int, *, name: str, n_calibration: Any = None, **promise: Any
) -> Strata:
    """Text and few distinct numbers as they are; many numbers in bins of nearly equal mass, ties together."""
    check_count(n_bins, name="n_bins", minimum=2)
    rows, columns = _checked_rows(covered, values, name, promise)
    array = columns["groups"]
    if array.ndim == 2 and array.shape[1] > 1:
        raise InputError(f"{name} must have one value per row, got shape {array.shape}. Pass one column.")
    labels, codes = check_groups(array, len(rows), name=name)
    if labels.dtype.kind not in "iuf" or len(labels) <= n_bins:
        return count_strata(rows, labels, codes, n_calibration, name=name)
    if not np.isfinite(labels).all():
        raise InputError(f"{name} must be finite, got {labels[~np.isfinite(labels)][0]}.")
    given = None if rows.weights is None else rows.weights.mass
    mass = np.bincount(codes, weights=given, minlength=len(labels)).astype(float)
    bins = equal_mass_bins(mass, n_bins)
    used, compact = np.unique(bins, return_inverse=True)
    names = np.array([f"[{labels[bins == b][0]:g}, {labels[bins == b][-1]:g}]" for b in used])
    return count_strata(rows, names, compact[codes], n_calibration, name=name)


def equal_mass_bins(mass: np.ndarray, n_bins: int) -> np.ndarray:
    """Bin of every distinct value in ascending order, by where the middle of its mass lies; some are empty.

    Examples
    --------
    >>> import numpy as np
    >>> equal_mass_bins(np.array([1.0, 1.0, 2.0, 4.0]), 2).tolist()
    [0, 0, 0, 1]
    """
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    return np.asarray(np.minimum((middle * n_bins).astype(np.int64), n_bins - 1))
