"""The exact sup-interval calibration error over any number of rows, in constant memory.

The walk of w (y - f) over sorted scores is known at the ends of buckets from sums alone, and inside a
bucket it cannot leave [start - falls, start + rises]. A first pass adds up buckets; only those whose box
reaches beyond the extremes at bucket ends are opened: cut finer in a further pass while they hold too many
rows, kept row by row once they do not. A bucket whose rows all have one score never needs opening.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from calipers.arrays import generator
from calipers.engines.block import Block
from calipers.engines.fusing import kernels
from calipers.engines.state import Result, State
from calipers.metrics import calibration_error
from calipers.metrics.reliability.calibration_measure import error_from_parts
from calipers.metrics.reliability.calibration_test import (
    MAX_RANGE_COINS,
    N_DRAWS,
    asymptotic_test,
    exact_test,
    n_coins,
)
from calipers.metrics.reliability.extremes import TIE, Extreme
from calipers.metrics.reliability.levels import ScoreLevels
from calipers.metrics.reliability.multiclass import ClassPart
from calipers.metrics.reliability.range_law import range_survival
from calipers.metrics.reliability.summary import RowMoments, bound_fields
from calipers.metrics.reliability.worst_interval import SupInterval, interval_between

_N_BUCKETS = 1 << 16
# Few enough rows to keep, in all open buckets (eight bytes each) or in all.
_KEPT_ROWS = 10_000_000
_SMALL = 100_000
# Rows that wait for their buckets, at most: they keep the tables of their blocks.
_PUT_OFF = 1 << 19

# Score, whether it happened, weight (None when every row counts once).
Rows = tuple[np.ndarray, np.ndarray, np.ndarray | None]
Column = int | Literal["top"] | None


@dataclass(frozen=True, slots=True)
class CalibrationOptions:
    """Keyword arguments of `calibration_error` that make sense over many rows."""

    confidence: float = 0.95
    n_models: int = 1
    n_draws: int = N_DRAWS
    random_state: Any = None


def _is_top(P: np.ndarray, column: Column) -> bool:
    return column == "top" or (column is None and P.shape[1] > 2)


def scores(block: Block, column: Column) -> np.ndarray:
    """Stated probability of the column; of the second of two, else of the most probable label."""
    return unit_scores(stated(block, column))


def stated(block: Block, column: Column) -> np.ndarray:
    """The same as it was given."""
    P = block["probabilities"]
    if _is_top(P, column):
        return block["top_probability"]
    return np.asarray(P[:, column if isinstance(column, int) else 1])


def unit_scores(f: np.ndarray) -> np.ndarray:
    """Scores in double precision, at most 1, without a negative zero."""
    return np.minimum(f.astype(np.float64) + 0.0, 1.0)


def outcomes(block: Block, column: Column, rows: np.ndarray | None = None) -> np.ndarray:
    """Whether that label happened; of some rows, or of all."""
    P, codes = block["probabilities"], block["codes"]
    if _is_top(P, column):
        # All rows through the column that other states share; few one by one, unless their label is known.
        if rows is None:
            return block["top_is_right"]
        label = block.get("top_label")
        top = P[rows].argmax(axis=1) if label is None else label[rows]
        return np.asarray(top == codes[rows])
    wanted = codes if rows is None else codes[rows]
    return np.asarray(wanted == (column if isinstance(column, int) else 1))


def binary_rows(block: Block, column: Column = None) -> Rows:
    """Score, outcome and weight of every row that has one above 0."""
    f, y, w = scores(block, column), outcomes(block, column), block.weights
    if w is None or (w > 0).all():
        return f, y, w
    there = w > 0
    return f[there], y[there], w[there]


class BucketSums:
    """Sums over the rows of every bucket, and its smallest and largest score.

    What belongs to a bucket lies together, eight numbers of one line of the processor's memory.
    """

    # rises, falls, weight, weighted score, weighted outcome, squared weighted residual
    N_SUMS = 6

    def __init__(self, n: int) -> None:
        self.table = np.zeros((n, self.N_SUMS + 2))
        self.low[:], self.high[:] = np.inf, -np.inf

    @property
    def sums(self) -> np.ndarray:
        """The six sums, (6, n)."""
        return np.asarray(self.table[:, : self.N_SUMS].T)

    @property
    def low(self) -> np.ndarray:
        """Smallest score of every bucket; infinite where there is none."""
        return np.asarray(self.table[:, self.N_SUMS])

    @property
    def high(self) -> np.ndarray:
        """Largest score of every bucket; minus infinity where there is none."""
        return np.asarray(self.table[:, self.N_SUMS + 1])

    def add(self, bucket: np.ndarray, rows: Rows, compiled: Any = None) -> None:
        """Add rows that fall into the given buckets."""
        f, y, w = rows
        if compiled is not None and w is None:
            compiled.add_at_buckets(bucket, f, y, self.table)
            return
        if w is None and bucket.size > self.low.size:
            self._add_single_rows(bucket, f, y)
        else:
            step = (y - f) if w is None else w * (y - f)
            mass = np.ones(f.size) if w is None else w
            columns = (np.maximum(step, 0.0), np.maximum(-step, 0.0), mass, mass * f, mass * y, step * step)
            for k, column in enumerate(columns):
                np.add.at(self.table[:, k], bucket, column)
        np.minimum.at(self.low, bucket, f)
        np.maximum.at(self.high, bucket, f)

    def _add_single_rows(self, bucket: np.ndarray, f: np.ndarray, y: np.ndarray) -> None:
        """Three counts over (bucket, outcome) hold all six sums when every row counts once."""
        n, cell = self.low.size, 2 * bucket + y
        count = np.bincount(cell, minlength=2 * n).reshape(n, 2).T
        score = np.bincount(cell, weights=f, minlength=2 * n).reshape(n, 2).T
        square = np.bincount(cell, weights=f * f, minlength=2 * n).reshape(n, 2).T
        found = (
            count[1] - score[1],
            score[0],
            count[0] + count[1],
            score[0] + score[1],
            count[1],
            square[0] + (count[1] - 2 * score[1] + square[1]),
        )
        for k, column in enumerate(found):
            self.table[:, k] += column

    def merge(self, other: BucketSums) -> None:
        """Add the sums of other rows."""
        low, high = np.minimum(self.low, other.low), np.maximum(self.high, other.high)
        self.table += other.table  # whole, which is faster than six of eight columns
        self.low[:], self.high[:] = low, high

    @property
    def rises(self) -> np.ndarray:
        """Upward steps of the walk in every bucket."""
        return np.asarray(self.sums[0])

    @property
    def falls(self) -> np.ndarray:
        """Downward steps, as positive numbers."""
        return np.asarray(self.sums[1])

    def open_buckets(self, tie: float) -> np.ndarray:
        """Buckets of several scores inside which the walk could pass its extremes at bucket ends."""
        ends = np.cumsum(self.rises - self.falls)
        starts = np.concatenate([[0.0], ends[:-1]])
        over = starts + self.rises >= max(0.0, float(ends.max())) - tie
        under = starts - self.falls <= min(0.0, float(ends.min())) + tie
        return np.asarray((over | under) & (self.high > self.low))


def _equal_bucket(f: np.ndarray, n_buckets: int) -> np.ndarray:
    """The bucket of every score among equal ones, a power of two of them, so that nothing is rounded."""
    return np.minimum((f * n_buckets).astype(np.int64), n_buckets - 1)


class Grid:
    """Buckets with any edges, found by way of equal ones: only scores in a cut bucket are searched for.

    Parameters
    ----------
    edges : array
        Inner edges, increasing; those of the equal buckets are among them.
    n_buckets : int
        Equal buckets on [0, 1], a power of two.
    """

    __slots__ = ("edges", "first", "is_cut", "n_buckets")

    def __init__(self, edges: np.ndarray, n_buckets: int) -> None:
        self.edges, self.n_buckets = edges, n_buckets
        ends = np.arange(n_buckets + 1) / n_buckets
        self.first = np.searchsorted(edges, ends[:-1], side="right")
        self.is_cut = np.searchsorted(edges, ends[1:], side="left") > self.first

    def touched(self, marked: np.ndarray) -> np.ndarray:
        """Which equal buckets hold one of the marked buckets."""
        before = np.concatenate([[0], np.cumsum(marked)])
        return np.asarray(before[np.append(self.first[1:], marked.size)] > before[self.first])

    def bucket_of(self, f: np.ndarray) -> np.ndarray:
        """The bucket of every score; an edge belongs to the bucket above it."""
        equal = _equal_bucket(f, self.n_buckets)
        bucket = self.first[equal]
        cut = np.flatnonzero(self.is_cut[equal])
        bucket[cut] = np.searchsorted(self.edges, f[cut], side="right")
        return np.asarray(bucket)


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
        self.kept: list[Rows] | None = [] if base is None else None
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
        return _equal_bucket(f, self.n_buckets) if self.grid is None else self.grid.bucket_of(f)

    def absorb(self, block: Block) -> None:
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
        self.totals += _totals(rows)
        self.n_rows += rows[0].size
        self._keep([rows])

    def settle(self) -> None:
        """Add the rows that were put off: together, while the buckets are near the processor."""
        for f, happened in self.put_off:
            kernels().add_to_buckets(f, happened, self.buckets.table, self.totals)
        self.put_off = []

    def _absorb_open(self, block: Block, before: CalibrationState, is_open: np.ndarray) -> None:
        """Only rows of open buckets are looked at again."""
        if self.near is None:
            self.near = before.near_open(is_open)
        found = before.open_rows(block, is_open, self.near)
        self.buckets.add(self.bucket_of(found[0]), found, block.kernels)

    def near_open(self, is_open: np.ndarray) -> np.ndarray:
        """Which equal buckets hold an open bucket."""
        return is_open if self.grid is None else self.grid.touched(is_open)

    def open_rows(self, block: Block, is_open: np.ndarray, near: np.ndarray) -> Rows:
        """The rows of the block that lie in open buckets: first by equal buckets, then by their own."""
        given, w = stated(block, self.column), block.weights
        if (compiled := block.kernels) is None:
            rows = np.flatnonzero(near[_equal_bucket(unit_scores(given), self.n_buckets)])
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

    def _keep(self, rows: list[Rows] | None) -> None:
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
        self.parts: list[Rows] = []

    @property
    def needs(self) -> frozenset[str]:
        """Probabilities and outcomes."""
        return self.counted.needs

    def fresh(self) -> Self:
        """An empty state of the same pass; the buckets are shared, not copied."""
        return type(self)(self.counted, self.is_open)

    def absorb(self, block: Block) -> None:
        """Keep the block's rows in open buckets."""
        rows = self.counted.open_rows(block, self.is_open, self.near)
        if rows[2] is None:
            self.packed.append(packed(*rows[:2]))
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

    def sorted_rows(self) -> Rows:
        """The rows of the open buckets in the order of their scores."""
        if not self.parts:
            rows = np.concatenate(self.packed)
            rows.sort()
            return unpacked(rows)
        f, y, w = joined([*(unpacked(part) for part in self.packed), *self.parts])
        order = np.lexsort((y, f)) if w is None else np.lexsort((w, y, f))
        return f[order], y[order], None if w is None else w[order]


def packed(f: np.ndarray, happened: np.ndarray) -> np.ndarray:
    """Score and outcome of every row as one number, which sorts by both: the bits of f, then one bit."""
    return np.asarray((f.view(np.uint64) << np.uint64(1)) | happened.astype(np.uint64))


def unpacked(rows: np.ndarray) -> Rows:
    """The scores and outcomes of packed rows."""
    return (rows >> np.uint64(1)).view(np.float64), (rows & np.uint64(1)).astype(bool), None


def joined(parts: list[Rows]) -> Rows:
    """Rows of several blocks one after the other; blocks with and without weights mix."""
    f, y = (np.concatenate([part[k] for part in parts]) for k in (0, 1))
    if all(part[2] is None for part in parts):
        return f, y, None
    return f, y, np.concatenate([np.ones(len(p[0])) if p[2] is None else p[2] for p in parts])


def _totals(rows: Rows) -> np.ndarray:
    f, y, w = rows
    wrong = ((f == 0) & y) | ((f == 1) & ~y)
    if w is not None:
        step = y - f
        parts = (w, w * w, w * step * step, w * w * f * (1 - f), wrong & (w > 0))
        return np.array([float(np.sum(part)) for part in parts])
    square, right = float(np.sum(f * f)), float(np.sum(f * y))
    n, hits, stated = float(f.size), float(np.count_nonzero(y)), float(np.sum(f))
    return np.array([n, n, square + (hits - 2 * right), stated - square, float(np.count_nonzero(wrong))])


def estimate_from_buckets(state: CalibrationState, rows: Rows | None) -> Result:
    """The calibration estimate from bucket sums and the sorted rows of open buckets."""
    found, moments, bounds = class_part(state, rows, n_statements=state.options.n_models)
    highest = float(state.buckets.high.max())
    null = null_of(state, found, moments)
    return error_from_parts(
        found, moments, bounds, null, highest=highest, confidence=state.options.confidence
    )


def class_part(state: CalibrationState, rows: Rows | None, *, n_statements: int) -> ClassPart:
    """The worst interval, the moments of the rows and the bounds when so many statements are made."""
    total, squared, square_sum, variance, impossible = state.totals.tolist()
    found = interval_between(*walk_extremes(state, rows), total)
    inside = inside_sums(state, rows, found)
    weight = float(inside[2])
    moments = RowMoments(
        total=total,
        squared_total=squared,
        second_moment=square_sum / total,
        variance=variance,
        inside=weight,
        stated=float(inside[3]) / weight if weight else math.nan,
        happened=float(inside[4]) / weight if weight else math.nan,
        inside_square=float(inside[5]),
        impossible=int(impossible),
    )
    confidence = state.options.confidence
    bounds = bound_fields(state.n_rows, found, moments, confidence=confidence, n_models=n_statements)
    return found, moments, bounds


def walk_extremes(state: CalibrationState, rows: Rows | None) -> tuple[Extreme, Extreme]:
    """Highest and lowest reading, over bucket ends and, in open buckets, over every score."""
    top, bottom = Extreme(1, state.tie), Extreme(-1, state.tie)
    ends = np.cumsum(state.buckets.rises - state.buckets.falls)
    starts = np.concatenate([[0.0], ends[:-1]])
    filled = np.flatnonzero(state.buckets.sums[2] > 0)
    readings, scores = ends[filled], state.buckets.high[filled]
    if rows is not None:
        inner, at = _inner_readings(state, rows, starts)
        # Scores in order; a bucket's end is also the last inner reading of an open bucket.
        place = np.searchsorted(at, scores, side="right")
        readings, scores = np.insert(inner, place, readings), np.insert(at, place, scores)
    top.update(readings, scores)
    bottom.update(readings, scores)
    return top, bottom


def _inner_readings(state: CalibrationState, rows: Rows, starts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Readings at the ends of blocks of equal scores inside open buckets."""
    f, y, w = rows
    running = np.cumsum((y - f) if w is None else w * (y - f))
    bucket = state.bucket_of(f)
    first = np.flatnonzero(np.diff(bucket, prepend=-1))
    before = np.where(first > 0, running[first - 1], 0.0)
    running += np.repeat(starts[bucket[first]] - before, np.diff(first, append=f.size))
    is_end = np.append(f[1:] != f[:-1], True)
    return running[is_end], f[is_end]


def inside_sums(state: CalibrationState, rows: Rows | None, found: SupInterval) -> np.ndarray:
    """Bucket sums over the rows with a score in (low, high]; a closed bucket lies inside or outside."""
    buckets = state.buckets
    with np.errstate(invalid="ignore"):
        whole = (buckets.low > found.low) & (buckets.high <= found.high)
        touched = ~whole & (buckets.high > found.low) & (buckets.low <= found.high)
    sums = buckets.sums[:, whole].sum(axis=1)
    if rows is None or not touched.any():
        return np.asarray(sums)
    f, y, w = rows
    cut = touched[state.bucket_of(f)] & (f > found.low) & (f <= found.high)
    part = BucketSums(1)
    part.add(np.zeros(int(cut.sum()), dtype=np.int64), (f[cut], y[cut], None if w is None else w[cut]))
    return np.asarray(sums + part.sums[:, 0])


def null_of(state: CalibrationState, found: SupInterval, moments: RowMoments) -> dict[str, Any]:
    """The test of calibration: exact where every bucket holds one score, else the Brownian range."""
    scale = math.sqrt(moments.variance)
    extra = {"asymptotic_p_value": range_survival(found.value * moments.total / scale) if scale else None}
    filled = state.buckets.sums[2] > 0
    if (
        state.buckets.low[filled] == state.buckets.high[filled]
    ).all() and moments.squared_total == moments.total:
        values, trials, hits = (
            x[filled] for x in (state.buckets.high, state.buckets.sums[2], state.buckets.sums[4])
        )
        levels = ScoreLevels(values, trials, hits)
        if n_coins(levels, state.options.n_draws) <= MAX_RANGE_COINS:
            draws = generator(state.options.random_state)
            return exact_test(levels, n_draws=state.options.n_draws, generator=draws) | extra
    return asymptotic_test(found.value, moments.variance, moments.total) | extra
