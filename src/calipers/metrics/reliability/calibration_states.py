"""The exact sup-interval calibration error over any number of rows, in constant memory.

The walk of w (y - f) over sorted scores is known at the ends of buckets from sums alone, and inside a
bucket it cannot leave [start - falls, start + rises]. A first pass adds up buckets; only those whose box
reaches beyond the extremes at bucket ends are opened: cut finer in a further pass while they hold too many
rows, kept row by row once they do not. A bucket whose rows all have one score never needs opening.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calipers.arrays.compiled import kernels
from calipers.arrays.ordered_bits import pack_outcomes
from calipers.inference.state import Result, State
from calipers.inputs.rows import Rows
from calipers.metrics.entry import MetricEntry, known_options
from calipers.metrics.reliability.bucket_walk import estimate_from_buckets
from calipers.metrics.reliability.calibration_measure import calibration_error
from calipers.metrics.reliability.calibration_test import N_DRAWS
from calipers.metrics.reliability.extremes import TIE
from calipers.metrics.reliability.score_buckets import BucketSums, Grid, equal_bucket
from calipers.metrics.reliability.score_columns import (
    Column,
    ScoredRows,
    binary_rows,
    joined,
    outcomes,
    stated,
    totals_of,
    unit_scores,
    unpacked,
)

_N_BUCKETS = 1 << 16
# Few enough rows to keep, in all open buckets (eight bytes each) or in all.
_KEPT_ROWS = 10_000_000
_SMALL = 100_000
# Rows that wait for their buckets, at most: they keep the tables of their blocks.
_PUT_OFF = 1 << 19


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """Keyword arguments of `calibration_error` that make sense over many rows."""

    confidence: float = 0.95
    n_models: int = 1
    n_draws: int = N_DRAWS
    random_state: Any = None


class CalibrationState(State):
    """One counting pass over buckets; the first has equal widths on [0, 1], later ones the given edges.

    Parameters
    ----------
    options : CalibrationOptions
        Of the metric.
    edges : array or None
        Inner edges of the buckets; None means ``n_buckets`` of equal width, a power of two, so that the
        bucket of a score is found without rounding.
    column : int, "top" or None
        The class that is told from the rest, or the most probable label; None means the second of two
        columns, the most probable label of more.
    n_buckets : int
        Buckets of the first pass.
    n_states : int
        States that share the memory for rows that are kept.
    base : (CalibrationState, bool array) or None
        The pass before, and which of its buckets are cut finer here; the others are taken over as they are.
    """

    __slots__ = (
        "base",
        "buckets",
        "column",
        "edges",
        "grid",
        "kept",
        "n_buckets",
        "n_rows",
        "n_states",
        "near",
        "options",
        "put_off",
        "totals",
    )
    SHARED = ("base", "edges", "grid", "near")

    def __init__(
        self,
        options: CalibrationOptions,
        edges: np.ndarray | None = None,
        *,
        column: Column = None,
        n_buckets: int = _N_BUCKETS,
        n_states: int = 1,
        base: tuple[CalibrationState, np.ndarray] | None = None,
    ) -> None:
        self.options, self.edges, self.column, self.n_buckets = options, edges, column, n_buckets
        self.n_states = n_states
        self.base, self.grid = base, None if edges is None else Grid(edges, n_buckets)
        self.buckets = BucketSums(n_buckets if edges is None else edges.size + 1)
        # weight, squared weight, squared residual, variance under calibration, impossible outcomes
        self.totals, self.n_rows = np.zeros(5), 0
        self.kept: list[ScoredRows] | None = [] if base is None else None
        self.near: np.ndarray | None = None
        # Score and outcome of rows that wait for their buckets.
        self.put_off: list[tuple[np.ndarray, np.ndarray]] = []

    @property
    def needs(self) -> frozenset[str]:
        """Probabilities and outcomes."""
        return frozenset({"probabilities", "codes", "sample_weight"})

    def fresh(self) -> Self:
        """An empty state of the same pass; what the pass before found is shared, not copied."""
        other = type(self)(
            self.options,
            column=self.column,
            n_buckets=self.n_buckets,
            n_states=self.n_states,
            base=self.base,
        )
        other.edges, other.grid = self.edges, self.grid
        other.buckets = BucketSums(self.buckets.low.size)
        return other

    def bucket_of(self, f: np.ndarray) -> np.ndarray:
        """The bucket of every score; an edge belongs to the bucket above it."""
        return equal_bucket(f, self.n_buckets) if self.grid is None else self.grid.bucket_of(f)

    def absorb(self, block: Rows) -> None:
        """Add the block to its buckets; keep the rows as long as there are few."""
        if self.base is not None:
            self._absorb_open(block, *self.base)
            return
        if block.fused and block.kernels and block.weights is None and self.n_rows + block.n > _SMALL:
            self.put_off.append((stated(block, self.column), outcomes(block, self.column)))
            self.n_rows += block.n
            self._keep(None)
            if sum(f.size for f, _ in self.put_off) >= _PUT_OFF:
                self.settle()
            return
        rows = binary_rows(block, self.column)
        self.buckets.add(self.bucket_of(rows[0]), rows)
        self.totals += totals_of(rows)
        self.n_rows += rows[0].size
        self._keep([rows])

    def settle(self) -> None:
        """Add the rows that were put off: together, while the buckets are near the processor."""
        for f, happened in self.put_off:
            kernels().add_to_buckets(f, happened, self.buckets.table, self.totals)
        self.put_off = []

    def _absorb_open(self, block: Rows, before: CalibrationState, is_open: np.ndarray) -> None:
        """Only rows of open buckets are looked at again."""
        if self.near is None:
            self.near = before.near_open(is_open)
        found = before.open_rows(block, is_open, self.near)
        self.buckets.add(self.bucket_of(found[0]), found, block.kernels)

    def near_open(self, is_open: np.ndarray) -> np.ndarray:
        """Which equal buckets hold an open bucket."""
        return is_open if self.grid is None else self.grid.touched(is_open)

    def open_rows(self, block: Rows, is_open: np.ndarray, near: np.ndarray) -> ScoredRows:
        """The rows of the block that lie in open buckets: first by equal buckets, then by their own."""
        given, w = stated(block, self.column), block.weights
        if (compiled := block.kernels) is None:
            rows = np.flatnonzero(near[equal_bucket(unit_scores(given), self.n_buckets)])
        else:
            room = np.empty(block.n + 1, dtype=np.int64)
            rows = room[: compiled.rows_near(given, near, room)]
        f = unit_scores(given[rows])
        if self.grid is not None:
            kept = is_open[self.bucket_of(f)]
            rows, f = rows[kept], f[kept]
        return f, outcomes(block, self.column, rows), None if w is None else w[rows]

    def _take_over(self, before: CalibrationState, is_open: np.ndarray) -> None:
        """The closed buckets of the pass before, each inside one bucket of this one."""
        filled = np.flatnonzero(~is_open & (before.buckets.sums[2] > 0))
        at = self.bucket_of(before.buckets.low[filled])
        for mine, theirs in zip(self.buckets.sums, before.buckets.sums, strict=True):
            np.add.at(mine, at, theirs[filled])
        np.minimum.at(self.buckets.low, at, before.buckets.low[filled])
        np.maximum.at(self.buckets.high, at, before.buckets.high[filled])
        self.totals, self.n_rows, self.base = before.totals, before.n_rows, None

    def merge(self, other: Self) -> Self:
        """Add the other's buckets and sums."""
        self.settle()
        other.settle()
        self.buckets.merge(other.buckets)
        self.totals += other.totals
        self.n_rows += other.n_rows
        self._keep(other.kept)
        return self

    def _keep(self, rows: list[ScoredRows] | None) -> None:
        small = self.kept is not None and rows is not None and self.n_rows <= _SMALL
        self.kept = [*(self.kept or ()), *(rows or ())] if small else None

    @property
    def tie(self) -> float:
        """Readings closer than this are one reading."""
        return TIE * float(self.totals[0])

    def advance(self) -> State | None:
        """Finer buckets where too many rows are open, the open rows themselves, or nothing more."""
        self.settle()
        if self.base is not None:
            self._take_over(*self.base)
        if self.kept is not None:
            return None
        is_open = self.buckets.open_buckets(self.tie)
        if not is_open.any():
            return None
        weights = self.buckets.sums[2][is_open].sum() / self.totals[0]
        if weights * self.n_rows > _KEPT_ROWS / self.n_states:
            return CalibrationState(
                self.options,
                self._finer(is_open),
                column=self.column,
                n_buckets=self.n_buckets,
                n_states=self.n_states,
                base=(self, is_open),
            )
        return OpenRowsState(self, is_open)

    def _finer(self, is_open: np.ndarray) -> np.ndarray:
        """Edges that cut every open bucket into many, and leave the others whole."""
        share = max(2, _N_BUCKETS // int(is_open.sum()))
        low, high = self.buckets.low[is_open], self.buckets.high[is_open]
        cuts = low[:, None] + (high - low)[:, None] * (np.arange(1, share + 1) / share)
        # A cut at the smallest score itself splits off what lies below; nextafter keeps cuts inside.
        edges = np.arange(1, self.n_buckets) / self.n_buckets if self.edges is None else self.edges
        return np.unique(np.concatenate([edges, low, cuts.ravel(), np.nextafter(high, 2.0)]))

    def finish(self) -> Result:
        """The estimate: from the rows when few were seen, from the buckets otherwise."""
        self.settle()
        if self.kept is not None:
            f, y, w = joined(self.kept)
            chosen = {key: getattr(self.options, key) for key in CalibrationOptions.__slots__}
            return calibration_error(y, f, sample_weight=w, **chosen)
        return estimate_from_buckets(self, None)


class OpenRowsState(State):
    """Last pass: the rows of the open buckets, kept."""

    __slots__ = ("counted", "is_open", "near", "packed", "parts")
    SHARED = ("counted", "is_open", "near")

    def __init__(self, counted: CalibrationState, is_open: np.ndarray) -> None:
        self.counted, self.is_open = counted, is_open
        self.near = counted.near_open(is_open)
        # Rows that count once, packed into one number each; and rows with weights.
        self.packed: list[np.ndarray] = []
        self.parts: list[ScoredRows] = []

    @property
    def needs(self) -> frozenset[str]:
        """Probabilities and outcomes."""
        return self.counted.needs

    def fresh(self) -> Self:
        """An empty state of the same pass; the buckets are shared, not copied."""
        return type(self)(self.counted, self.is_open)

    def absorb(self, block: Rows) -> None:
        """Keep the block's rows in open buckets."""
        rows = self.counted.open_rows(block, self.is_open, self.near)
        if rows[2] is None:
            self.packed.append(pack_outcomes(*rows[:2]))
        else:
            self.parts.append(rows)

    def merge(self, other: Self) -> Self:
        """Keep the other's rows too."""
        self.packed += other.packed
        self.parts += other.parts
        return self

    def finish(self) -> Result:
        """The estimate, the walk read row by row inside open buckets."""
        return estimate_from_buckets(self.counted, self.sorted_rows())

    def sorted_rows(self) -> ScoredRows:
        """The rows of the open buckets in the order of their scores."""
        if not self.parts:
            rows = np.concatenate(self.packed)
            rows.sort()
            return unpacked(rows)
        f, y, w = joined([*(unpacked(part) for part in self.packed), *self.parts])
        order = np.lexsort((y, f)) if w is None else np.lexsort((w, y, f))
        return f[order], y[order], None if w is None else w[order]


def calibration_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """The first pass for the top label, or for every class."""
    from calipers.metrics.reliability.classwise_states import ClasswiseState

    known = (*CalibrationOptions.__slots__, "multiclass")
    chosen = dict(known_options(entry, options, known))
    multiclass = chosen.pop("multiclass", "top_label")
    if multiclass == "top_label":
        return CalibrationState(CalibrationOptions(**chosen))
    return ClasswiseState(CalibrationOptions(**chosen), multiclass)
