"""Rows into bins: equal mass along the ease (eq. 2), or strata by set size or rank.

Eq. 2 puts sorted positions into bins, so where equal ease values cross an edge the bin of a row would hang on
the order of the rows. Here every row of such a tie belongs to each bin by the same share, the
overlap of the tie with the bin, and no number depends on the order of rows.

In cumulative form that is one line: with C(m) the sum of a column over the first m sorted rows, read
linearly inside a tie, the sum of bin b is C(end of b) - C(start of b).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from calipers.arrays import (
    Array,
    as_numpy,
    namespace,
    on_device_of,
    running_sums,
    sort_with_order,
    take_at,
)
from calipers.difficulty import uniform_mass_limits
from calipers.exceptions import InputError
from calipers.inference import repetitions
from calipers.metrics.equal_values import EQUAL

# The strata of the RAPS paper, for sizes and for ranks, by their upper ends: [0,1] [2,3] [4,6] ...
STRATA = (1.0, 3.0, 6.0, 10.0, 100.0, float("inf"))


@dataclass(frozen=True, slots=True, eq=False)
class Binned:
    """Sums of columns over bins.

    Parameters
    ----------
    mass : array (B,)
        Rows (weight) in each bin; 0 marks an empty bin.
    sums : array (C, B)
        Sum of each column over each bin.
    runs : array (R + 1,) or None
        Limits, in sorted mass, of the runs of rows that are shared alike; None for strata.
    shares : array (R, B) or None
        Part of each run that belongs to each bin; None for strata (each row in one).
    order : array (n,) or None
        The rows in the order of the ease, hardest first; None for strata.
    """

    mass: np.ndarray
    sums: np.ndarray
    runs: np.ndarray | None = None
    shares: np.ndarray | None = None
    order: Array | None = None

    @property
    def filled(self) -> np.ndarray:
        """Which bins have rows."""
        return self.mass > 0

    @property
    def ties_cross(self) -> bool:
        """Whether some rows are shared between bins."""
        return self.shares is not None and bool(np.any((self.shares > 0) & (self.shares < 1)))

    @property
    def effective_mass(self) -> np.ndarray:
        """Rows that would give each bin's mean the same variance: (sum of shares)^2 / sum of squares."""
        if self.runs is None or self.shares is None or not self.ties_cross:
            return self.mass
        squares = np.diff(self.runs) @ self.shares**2
        return np.asarray(self.mass**2 / np.where(squares > 0, squares, np.inf))

    def means(self) -> np.ndarray:
        """Mean of each column over each bin, (C, B); NaN in empty bins."""
        return np.asarray(self.sums / np.where(self.filled, self.mass, np.nan))


def bin_by_ease(
    columns: Sequence[Array],
    ease: Array,
    n_bins: int,
    weights: np.ndarray | None = None,
    *,
    products: Sequence[tuple[int, int]] = (),
) -> Binned:
    """Sums of the columns over uniform-mass bins of the ease, hardest first; ties are shared.

    ``products`` names pairs of columns whose products are summed too, after the columns. One sort and one
    cumulative sum per column where the arrays lie; only numbers per bin and the order are kept.
    """
    xp = namespace(ease)
    ordered, order = sort_with_order(ease)
    sorted_columns = [xp.astype(take_at(column, order), xp.float64) for column in columns]
    sorted_columns += [sorted_columns[i] * sorted_columns[j] for i, j in products]
    n = int(ease.shape[0])
    if weights is None:
        limits = uniform_mass_limits(n, n_bins)
        last = np.maximum(limits - 1, 0)
    else:
        mass = np.cumsum(weights[as_numpy(order)])
        limits = uniform_mass_limits(_total(weights), n_bins)
        last = np.minimum(np.searchsorted(mass, limits * (1 - 1e-15)), n - 1)
        mass = np.concatenate([[0.0], mass])
    edges = xp.take(ordered, on_device_of(last.astype(np.int64), ease))
    start, stop = (xp.searchsorted(ordered, edges, side=side) for side in ("left", "right"))
    ends = xp.stack([start, stop])
    at = [as_numpy(running_sums(_weighted(column, order, weights), ends)) for column in sorted_columns]
    first, end = as_numpy(ends).astype(np.int64)
    if weights is not None:
        low, high = mass[first], mass[end]
    else:
        low, high = first.astype(float), end.astype(float)
    return replace(_between(limits.astype(float), low, high, at), order=order)


def _between(limits: np.ndarray, low: np.ndarray, high: np.ndarray, at: list[np.ndarray]) -> Binned:
    """Bins from the limits, the tie around each limit (low, high] and the column sums at both its ends."""
    part = np.clip((limits - low) / (high - low), 0.0, 1.0)
    values = [ends[0] + part * (ends[1] - ends[0]) for ends in at]
    # A limit at the end of a tie is read off exactly, without a product.
    exact = [np.where(part == 1.0, ends[1], v) for ends, v in zip(at, values, strict=True)]
    sums = np.array([np.diff(np.where(limits == 0, 0.0, v)) for v in exact])
    runs = np.unique(np.concatenate([limits, low, high]))
    return Binned(np.diff(limits), sums, runs, _shares(runs, limits, low, high))


def _shares(runs: np.ndarray, limits: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Part of each run in each bin. A run inside a tie takes the shares of the whole tie."""
    start, stop = runs[:-1], runs[1:]
    # The ties come in order, and the one that can hold a run is the last that does not begin after it.
    tie = np.searchsorted(low, start, side="right") - 1
    inside = (tie >= 0) & (stop <= high[tie])
    start, stop = np.where(inside, low[tie], start), np.where(inside, high[tie], stop)
    overlap = np.minimum(stop[:, None], limits[None, 1:]) - np.maximum(start[:, None], limits[None, :-1])
    return np.asarray(np.clip(overlap, 0.0, None) / (stop - start)[:, None])


def bin_by_strata(
    columns: Sequence[Array], values: Array, ends: Sequence[float], weights: np.ndarray | None = None
) -> Binned:
    """Sums of the columns over strata of ``values``."""
    codes = stratum_codes(as_numpy(values), ends)
    mass = np.bincount(codes, weights=weights, minlength=len(ends)).astype(float)
    host = [np.asarray(as_numpy(column), dtype=float) for column in columns]
    scaled = host if weights is None else [column * weights for column in host]
    sums = np.array([np.bincount(codes, weights=column, minlength=len(ends)) for column in scaled])
    return Binned(mass, sums)


def stratum_codes(values: np.ndarray, ends: Sequence[float]) -> np.ndarray:
    """The stratum of every value: k where ends[k-1] < value <= ends[k].

    A value that exceeds an end by rounding alone (`EQUAL`) is at that end.
    """
    return np.asarray(np.searchsorted(np.asarray(ends, dtype=float) * (1 + EQUAL), values, side="left"))


def check_strata(ends: Any, values: np.ndarray, *, name: str) -> tuple[float, ...]:
    """Increasing upper ends that hold every value."""
    limits = tuple(float(end) for end in as_numpy(ends, name="strata").ravel())
    if not limits or any(not a < b for a, b in pairwise(limits)):
        raise InputError(f"strata must be increasing upper ends, such as {STRATA}, got {list(limits)}.")
    if (largest := float(np.max(values))) > limits[-1] * (1 + EQUAL):
        row = int(np.argmax(values))
        raise InputError(
            f"{name} reaches {largest:g} at row {row}, above the last of the strata ({limits[-1]:g}). "
            "End the strata with float('inf')."
        )
    return limits


def stratum_name(ends: Sequence[float], k: int) -> str:
    """The k-th stratum in words, for whole numbers: "4-6", "101 or more"."""
    low = 0 if k == 0 else int(ends[k - 1]) + 1
    if ends[k] == float("inf"):
        return f"{low} or more"
    return f"{low}-{ends[k]:g}" if ends[k] != low else f"{low}"


def _weighted(column: Array, order: Array, weights: np.ndarray | None) -> Array:
    """A sorted column times the weights of its rows."""
    return column if weights is None else column * on_device_of(weights[as_numpy(order)], column)


def _total(weights: np.ndarray) -> int | float:
    """Total mass: an integer when every weight is whole, so that eq. 2 keeps its floors."""
    whole = repetitions(weights)
    return float(weights.sum()) if whole is None else int(whole.sum())
