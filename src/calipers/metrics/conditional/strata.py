"""Strata of rows: named groups as they are, numbers in bins that never split equal values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, short_repr
from calipers.exceptions import InputError
from calipers.inference import ShareCounts
from calipers.inputs import check_count, check_groups
from calipers.metrics.promised_rows import PromisedRows, check_promised_rows, check_thresholds
from calipers.metrics.strata_null import StrataNull


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """Covered and total (weighted) rows of every stratum, with its name and its null."""

    names: tuple[str, ...]
    counts: ShareCounts
    null: StrataNull

    __repr__ = short_repr

    def describe(self) -> dict[str, dict[str, float]]:
        """Name -> rows and coverage (and what was promised, where rows differ), for ``details``."""
        counts, promised = self.counts, self.null.rows.promised is not None
        return {
            name: {"rows": float(total), "coverage": float(share)}
            | ({"promised": float(self.null.target[k])} if promised else {})
            for k, (name, total, share) in enumerate(
                zip(self.names, counts.totals, counts.shares, strict=True)
            )
        }


def count_strata(
    rows: PromisedRows, labels: np.ndarray, codes: np.ndarray, n_calibration: Any, *, name: str
) -> Strata:
    """Counts per stratum."""
    names = tuple(str(v) for v in labels)
    counts = ShareCounts.of(rows.covered, rows.weights, codes, len(labels))
    thresholds = check_thresholds(n_calibration, len(labels), name=name)
    null = StrataNull(rows, codes, counts.totals, names, thresholds)
    if null.clusters is not None:
        counts = replace(counts, independent=null.clusters.independent_rows(counts.shares))
    return Strata(names, counts, null)


def group_strata(
    covered: Any, groups: Any, *, n_calibration: Any = None, name: str = "groups", **promise: Any
) -> Strata:
    """Strata that have names already."""
    rows, columns = check_promised_rows(covered, groups=as_numpy(groups, name=name), **promise)
    labels, codes = check_groups(columns["groups"], len(rows), name=name)
    return count_strata(rows, labels, codes, n_calibration, name=name)


def binned_strata(
    covered: Any, values: Any, n_bins: int, *, name: str, n_calibration: Any = None, **promise: Any
) -> Strata:
    """Text and few distinct numbers as they are; many numbers in bins of nearly equal mass, ties together."""
    check_count(n_bins, name="n_bins", minimum=2)
    rows, columns = check_promised_rows(covered, groups=as_numpy(values, name=name), **promise)
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
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    bins = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
    used, compact = np.unique(bins, return_inverse=True)
    names = np.array([f"[{labels[bins == b][0]:g}, {labels[bins == b][-1]:g}]" for b in used])
    return count_strata(rows, names, compact[codes], n_calibration, name=name)
