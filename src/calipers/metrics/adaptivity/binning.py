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
from calipers.inference import ShareCounts
from calipers.inputs import Weights
from calipers.inputs.row_checks import numeric
from calipers.metrics.equal_values import EQUAL

# The strata of the RAPS paper, for sizes and for ranks, by their upper ends: [0,1] [2,3] [4,6] ...
STRATA = (1.0, 3.0, 6.0, 10.0, 100.0, float("inf"))

BINS_END_AT_ROWS = "bins of equal mass end at whole rows (eq. 2), and anywhere with importance weights"


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
        Limits, in sorted mass, of the runs of rows that are shared alike; None where none are shared.
    shares : array (R, B) or None
        Part of each run that belongs to each bin; None where each row lies in one.
    squares : array (C + 1, B) or None
        Sums of squared importance weights, and of their products with each column; None for counted rows.
    """

    mass: np.ndarray
    sums: np.ndarray
    runs: np.ndarray | None = None
    shares: np.ndarray | None = None
    squares: np.ndarray | None = None

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
        if self.squares is not None:
            return np.asarray(self.mass**2 / np.where(self.filled, self.squares[0], np.inf))
        if self.runs is None or self.shares is None or not self.ties_cross:
            return self.mass
        squares = np.diff(self.runs) @ self.shares**2
        return np.asarray(self.mass**2 / np.where(squares > 0, squares, np.inf))

    @property
    def n(self) -> float:
        """Rows in all bins: their number, or the effective number of rows."""
        total = float(self.mass.sum())
        return total if self.squares is None else total**2 / float(self.squares[0].sum())

    def shared_runs(self) -> tuple[np.ndarray, np.ndarray]:
        """Mass of the runs of rows that are shared alike, and the part of each that belongs to each bin.

        Runs have rows, and no neighbours that are shared alike: they do not depend on how rows were split.
        """
        if self.runs is None or self.shares is None:
            return self.mass[self.filled], np.eye(self.mass.size)[self.filled]
        mass = np.diff(self.runs)
        mass, shares = mass[mass > 0], self.shares[mass > 0]
        first = np.flatnonzero(np.append(True, np.any(shares[1:] != shares[:-1], axis=1)))
        return np.add.reduceat(mass, first), shares[first]

    def noise_correlation(self) -> np.ndarray | None:
        """Correlation between the means of the bins that have rows; None when no row is shared.

        Bins that share a tie have the same rows behind their means, and the same noise.
        """
        if not self.ties_cross:
            return None
        mass, shares = self.shared_runs()
        shares = shares[:, self.filled]
        common = (shares * mass[:, None]).T @ shares
        scale = np.sqrt(np.diag(common))
        return np.asarray(common / np.outer(scale, scale))

    def counts(self) -> ShareCounts:
        """The first column as counts of rows, of the bins that have rows."""
        there = self.filled
        mass, hits = self.mass[there], np.minimum(self.sums[0], self.mass)[there]
        if self.squares is None:
            return ShareCounts(hits, mass, hits, mass)
        noise, hit_noise = self.squares[:2, there]
        return ShareCounts(hits, mass, np.minimum(hit_noise, noise), noise, whole=False)

    def means(self) -> np.ndarray:
        """Mean of each column over each bin, (C, B); NaN in empty bins."""
        return np.asarray(self.sums / np.where(self.filled, self.mass, np.nan))


def present_rows(columns: Sequence[Array], sample_weight: Any, n: int) -> tuple[list[Array], Weights | None]:
    """Columns of one library and their weights; rows of weight 0 are not there."""
    weights = Weights.check(sample_weight, n)
    if weights is None or weights.mass.all():
        return list(columns), weights
    kept = np.flatnonzero(weights.mass)
    rows, xp = on_device_of(kept, columns[0]), namespace(columns[0])
    return [xp.take(column, rows) for column in columns], weights.take(kept)


def bin_by_ease(
    columns: Sequence[Array],
    ease: Array,
    n_bins: int,
    weights: Weights | None = None,
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
        mass = np.cumsum(weights.mass[as_numpy(order)])
        # A whole total is an integer, so that eq. 2 keeps its floors.
        limits = uniform_mass_limits(int(weights.total) if weights.whole else weights.total, n_bins)
        last = np.minimum(np.searchsorted(mass, limits * (1 - 1e-15)), n - 1)
        mass = np.concatenate([[0.0], mass])
    edges = xp.take(ordered, on_device_of(last.astype(np.int64), ease))
    start, stop = (xp.searchsorted(ordered, edges, side=side) for side in ("left", "right"))
    ends = xp.stack([start, stop])

    def sums_at_ends(columns: Sequence[Array], factor: np.ndarray | None) -> np.ndarray:
        found = running_sums([_weighted(column, order, factor) for column in columns], ends)
        return np.stack([as_numpy(sums) for sums in found])

    at = sums_at_ends(sorted_columns, None if weights is None else weights.mass)
    first, end = as_numpy(ends).astype(np.int64)
    if weights is not None:
        low, high = mass[first], mass[end]
    else:
        low, high = first.astype(float), end.astype(float)
    bins = _between(limits.astype(float), low, high, at)
    if weights is None or weights.whole:
        return bins
    ones = xp.ones_like(sorted_columns[0])
    noise = sums_at_ends([ones, *sorted_columns[: len(columns)]], weights.squares)
    # A row that is shared between bins adds the square of its share to each; its share is on the safe side.
    return replace(bins, squares=_between(limits.astype(float), low, high, noise).sums)


def places_in_order(bins: Binned, ease: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """Of each row its bin, or the run of `Binned.shared_runs` it lies in where ties are shared."""
    order = np.argsort(ease, kind="stable")
    middle = np.cumsum(mass[order]) - 0.5 * mass[order]
    runs = bins.shared_runs()[0] if bins.ties_cross else bins.mass
    places = np.empty(len(ease), dtype=np.int64)
    places[order] = np.minimum(np.searchsorted(np.cumsum(runs), middle), len(runs) - 1)
    return places


def _between(limits: np.ndarray, low: np.ndarray, high: np.ndarray, at: np.ndarray) -> Binned:
    """Bins from the limits, the tie around each limit (low, high] and the column sums (C, 2, B + 1) there."""
    part = np.minimum(np.maximum((limits - low) / (high - low), 0.0), 1.0)
    # A limit at the end of a tie is read off exactly, without a product.
    at_end = part == 1.0
    values = np.where(at_end, at[:, 1], at[:, 0] + part * (at[:, 1] - at[:, 0]))
    values = np.where(limits == 0, 0.0, values)
    sums, mass = values[:, 1:] - values[:, :-1], limits[1:] - limits[:-1]
    if (at_end | (part == 0.0)).all():  # no tie crosses a limit: each row lies in one bin
        return Binned(mass, sums)
    runs = np.unique(np.concatenate([limits, low, high]))
    return Binned(mass, sums, runs, _shares(runs, limits, low, high))


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
    columns: Sequence[Array], values: Array, ends: Sequence[float], weights: Weights | None = None
) -> Binned:
    """Sums of the columns over strata of ``values``."""
    codes = stratum_codes(as_numpy(values), ends)
    host = [np.asarray(as_numpy(column), dtype=float) for column in columns]

    def sums(columns: Sequence[np.ndarray], factor: np.ndarray | None) -> np.ndarray:
        scaled = columns if factor is None else [column * factor for column in columns]
        return np.array([np.bincount(codes, weights=column, minlength=len(ends)) for column in scaled])

    mass, *found = sums([np.ones(codes.size), *host], None if weights is None else weights.mass)
    importance = weights is not None and not weights.whole
    squares = (
        sums([np.ones(codes.size), *host], weights.squares) if weights is not None and importance else None
    )
    return Binned(mass, np.array(found), squares=squares)


def stratum_codes(values: np.ndarray, ends: Sequence[float]) -> np.ndarray:
    """The stratum of every value: k where ends[k-1] < value <= ends[k].

    A value that exceeds an end by rounding alone (`EQUAL`) is at that end.
    """
    return np.asarray(np.searchsorted(np.asarray(ends, dtype=float) * (1 + EQUAL), values, side="left"))


def check_strata(ends: Any, values: np.ndarray, *, name: str) -> tuple[float, ...]:
    """Increasing upper ends that hold every value."""
    array = as_numpy(ends, name="strata").ravel()
    limits = tuple(as_numpy(numeric(array, "strata")).tolist())
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
