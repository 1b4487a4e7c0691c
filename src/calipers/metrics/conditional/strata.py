"""Strata of rows: named groups as they are, numbers in bins that never split equal values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inference import repetitions
from calipers.inputs import check_count, check_covered, check_groups, check_same_length, check_weights


@dataclass(frozen=True, slots=True)
class Strata:
    """Covered and total (weighted) rows of every stratum, with its name."""

    names: tuple[str, ...]
    hits: np.ndarray
    totals: np.ndarray
    whole: bool

    @property
    def shares(self) -> np.ndarray:
        """Coverage of every stratum."""
        return np.asarray(self.hits / self.totals)

    def describe(self) -> dict[str, dict[str, float]]:
        """Name -> rows and coverage, for ``details``."""
        return {
            name: {"rows": float(total), "coverage": float(share)}
            for name, total, share in zip(self.names, self.totals, self.shares, strict=True)
        }


def count_strata(covered: Any, labels: np.ndarray, codes: np.ndarray, sample_weight: Any) -> Strata:
    """Counts per stratum; strata without weight are left out."""
    z = as_numpy(check_covered(covered))
    n = check_same_length(covered=z, groups=codes)
    weights = check_weights(sample_weight, n)
    w = np.ones(n) if weights is None else weights
    totals = np.bincount(codes, weights=w, minlength=len(labels))
    hits = np.minimum(np.bincount(codes, weights=w * z, minlength=len(labels)), totals)
    kept = totals > 0
    whole = weights is None or repetitions(weights) is not None
    return Strata(tuple(str(v) for v in labels[kept]), hits[kept], totals[kept], whole)


def group_strata(covered: Any, groups: Any, sample_weight: Any, *, name: str = "groups") -> Strata:
    """Strata that have names already."""
    labels, codes = check_groups(groups, len(as_numpy(check_covered(covered))), name=name)
    return count_strata(covered, labels, codes, sample_weight)


def binned_strata(covered: Any, values: Any, n_bins: int, sample_weight: Any, *, name: str) -> Strata:
    """Text and few distinct numbers as they are; many numbers in bins of nearly equal mass, ties together."""
    check_count(n_bins, name="n_bins", minimum=2)
    z, array = as_numpy(check_covered(covered)), as_numpy(values, name=name)
    if array.ndim == 2 and array.shape[1] > 1:
        raise InputError(f"{name} must have one value per row, got shape {array.shape}. Pass one column.")
    labels, codes = check_groups(array, len(z), name=name)
    if labels.dtype.kind not in "iuf" or len(labels) <= n_bins:
        return count_strata(z, labels, codes, sample_weight)
    if not np.isfinite(labels).all():
        raise InputError(f"{name} must be finite, got {labels[~np.isfinite(labels)][0]}.")
    weights = check_weights(sample_weight, len(z))
    mass = np.bincount(codes, weights=weights, minlength=len(labels)).astype(float)
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    bins = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
    used, compact = np.unique(bins, return_inverse=True)
    names = np.array([f"[{labels[bins == b][0]:g}, {labels[bins == b][-1]:g}]" for b in used])
    return count_strata(z, names, compact[codes], sample_weight)
