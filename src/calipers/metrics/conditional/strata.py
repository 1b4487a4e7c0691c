"""Strata of rows: named groups as they are, numbers in bins that never split equal values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError, InputTypeError
from calipers.inference import ShareCounts
from calipers.inputs import Weights, check_count, check_covered, check_groups, check_same_length

MOST_DESCRIBED = 10_000


@dataclass(frozen=True, slots=True, eq=False)
class Strata:
    """Covered and total (weighted) rows of every stratum, with its label."""

    labels: np.ndarray
    counts: ShareCounts

    def name(self, at: int) -> str:
        """The name of one stratum."""
        return str(self.labels[at])

    def describe(self, interest: np.ndarray) -> dict[str, dict[str, float]]:
        """Name -> rows and coverage, for ``details``; of very many strata those of most interest."""
        totals, shares = self.counts.totals, self.counts.shares
        which = np.arange(len(totals))
        if len(which) > MOST_DESCRIBED:
            which = np.sort(np.argsort(-interest, kind="stable")[:MOST_DESCRIBED])
        return {
            self.name(i): {"rows": float(totals[i]), "coverage": float(shares[i])} for i in which.tolist()
        }


def count_strata(
    covered: np.ndarray, labels: np.ndarray, codes: np.ndarray, weights: Weights | None
) -> Strata:
    """Counts per stratum; strata without weight are left out."""
    counts = ShareCounts.of(covered, weights, codes, len(labels))
    kept = counts.totals > 0
    return Strata(labels[kept], counts.take(kept))


def _rows(
    covered: Any, values: Any, sample_weight: Any, name: str
) -> tuple[np.ndarray, np.ndarray, Weights | None]:
    """Checked rows and weights; rows of weight 0 are not there."""
    z, array, weights = _covered(covered, values, name), as_numpy(values, name=name), None
    n = check_same_length(covered=covered, **{name: values}, sample_weight=sample_weight)
    weights = Weights.check(sample_weight, n)
    if weights is None or weights.mass.all():
        return z, array, weights
    there = np.flatnonzero(weights.mass)
    return z[there], array[there], weights.take(there)


def _covered(covered: Any, values: Any, name: str) -> np.ndarray:
    """Whether rows are covered; where only the other argument can say so, the order is named."""
    try:
        return as_numpy(check_covered(covered))
    except (InputError, InputTypeError) as error:
        other = as_numpy(values, name=name)
        if other.ndim != 1 or other.dtype.kind != "b":
            raise
        raise InputError(
            f"covered and {name} seem to be swapped: {name} holds booleans, and {str(error).rstrip('.')}. "
            f"The order is (covered, {name})."
        ) from None


def group_strata(covered: Any, groups: Any, sample_weight: Any, *, name: str = "groups") -> Strata:
    """Strata that have names already."""
    z, array, weights = _rows(covered, groups, sample_weight, name)
    return count_strata(z, *check_groups(array, len(z), name=name), weights)


def binned_strata(covered: Any, values: Any, n_bins: int, sample_weight: Any, *, name: str) -> Strata:
    """Text and few distinct numbers as they are; many numbers in bins of nearly equal mass, ties together."""
    check_count(n_bins, name="n_bins", minimum=2)
    z, array, weights = _rows(covered, values, sample_weight, name)
    if array.ndim == 2 and array.shape[1] > 1:
        raise InputError(f"{name} must have one value per row, got shape {array.shape}. Pass one column.")
    labels, codes = check_groups(array, len(z), name=name)
    if labels.dtype.kind not in "iuf" or len(labels) <= n_bins:
        return count_strata(z, labels, codes, weights)
    if not np.isfinite(labels).all():
        raise InputError(f"{name} must be finite, got {labels[~np.isfinite(labels)][0]}.")
    given = None if weights is None else weights.mass
    mass = np.bincount(codes, weights=given, minlength=len(labels)).astype(float)
    middle = (np.cumsum(mass) - 0.5 * mass) / mass.sum()
    bins = np.minimum((middle * n_bins).astype(np.int64), n_bins - 1)
    used, compact = np.unique(bins, return_inverse=True)
    names = np.array([f"[{labels[bins == b][0]:g}, {labels[bins == b][-1]:g}]" for b in used])
    return count_strata(z, names, compact[codes], weights)
