"""The exact sup-interval calibration error over any number of rows, in constant memory.

The walk of w (y - f) over sorted scores is known at the ends of buckets from sums alone, and inside a
bucket it cannot leave [start - falls, start + rises]. A first pass adds up buckets; only those whose box
reaches beyond the extremes at bucket ends are opened: cut finer in a further pass while they hold too many
rows, kept row by row once they do not. A bucket whose rows all have one score never needs opening. Few rows
are kept as they are, and never see a bucket.

Rows in memory take the same passes (`calipers.metrics.reliability.bucket_walk`).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Self

import numpy as np

from calipers.arrays.compiled import kernels
from calipers.arrays.ordered_bits import pack_outcomes
from calipers.inference.state import Result, State
from calipers.inputs.rows import Rows
from calipers.metrics.entry import MetricEntry, known_options
from calipers.metrics.reliability.block_scores import (
    Column,
    ScoredRows,
    Tally,
    binary_rows,
    joined,
    outcomes,
    sorted_rows,
    stated,
    unit_scores,
    unpacked,
)
from calipers.metrics.reliability.calibration_estimate import Walk, error_from_walk
from calipers.metrics.reliability.calibration_test import (
    FEW_SURPRISES,
    MAX_RANGE_COINS,
    N_DRAWS,
    levels_to_draw,
    n_cells,
)
from calipers.metrics.reliability.cumulative_differences import ScoreTable
from calipers.metrics.reliability.score_buckets import BucketSums, EqualBuckets, Grid
from calipers.metrics.reliability.sup_interval import TIE

_N_BUCKETS = 1 << 16
_EQUAL = EqualBuckets(_N_BUCKETS)
# Few enough rows to keep, in all open buckets (eight bytes each) or in all.
_KEPT_ROWS = 4_000_000
# Rows of a whole run that are kept the same way, so that open buckets need no second pass.
_PACKED_ROWS = 4_000_000
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


@dataclass(eq=False)
class CalibrationState(State):
    """One counting pass over buckets; those of the first are equal, later ones cut some of them finer.

    Parameters
    ----------
    options : CalibrationOptions
        Of the metric.
    place : EqualBuckets or Grid
        The bucket of every score.
    column : int, "top" or None
        The class that is told from the rest, or the most probable label; None means the second of two
        columns, the most probable label of more.
    n_states : int
        States that share the memory for rows that are kept.
    n_tests : int
        Tests that share the draws.
    kept_rows : int or None
        Rows of open buckets that may be kept, in all those states.
    base : (CalibrationState, bool array) or None
        The pass before, and which of its buckets are cut finer here; the others are taken over as they are.
    """

    SHARED: ClassVar = ("base", "near", "place")
    options: CalibrationOptions
    place: EqualBuckets | Grid = _EQUAL
    column: Column = None
    n_states: int = 1
    n_tests: int = 1
    kept_rows: int | None = None
    base: tuple[CalibrationState, np.ndarray] | None = None
    tally: Tally = field(init=False, default_factory=Tally)
    has_many_scores: bool = field(init=False, default=False)
    kept: list[ScoredRows] | None = field(init=False, default=None)
    buckets: BucketSums | None = field(init=False, default=None)
    near: np.ndarray | None = field(init=False, default=None)
    # Score and outcome of rows that wait for their buckets.
    put_off: list[tuple[np.ndarray, np.ndarray]] = field(init=False, default_factory=list)
    # Score and outcome of all rows of a small run, in one number each: its open buckets need no second pass.
    packed: list[np.ndarray] | None = field(init=False, default=None)
    opened: np.ndarray | None = field(init=False, default=None)

    def __post_init__(self) -> None:
        self.kept = [] if self.base is None else None
        self.packed = [] if self.base is None else None

    @property
    def needs(self) -> frozenset[str]:
        """Probabilities and outcomes."""
        return frozenset({"probabilities", "codes", "sample_weight"})

    def fresh(self) -> Self:
        """An empty state of the same pass; what the pass before found is shared, not copied."""
        return replace(self)

    @property
    def sums(self) -> BucketSums:
        """The buckets, made when the first row comes."""
        if self.buckets is None:
            self.buckets = BucketSums(self.place.n)
        return self.buckets

    def absorb(self, block: Rows) -> None:
        """Add the block to its buckets; keep the rows as long as there are few."""
        if self.base is not None:
            self._absorb_open(block, *self.base)
        elif block.fused and block.kernels and block.weights is None and self._is_many(block.n):
            self.packed = None
            self._put_off(stated(block, self.column), outcomes(block, self.column))
        else:
            rows = binary_rows(block, self.column)
            is_packable = not block.fused and rows[2] is None and rows[1].dtype == bool
            self._pack([pack_outcomes(*rows[:2])] if is_packable and self.packed is not None else None)
            self.add(rows)

    def add(self, rows: ScoredRows) -> None:
        """Add rows, each with a weight above 0; of a later pass those that lie in buckets cut finer."""
        if self.base is not None:
            before, is_open = self.base
            self.sums.add(self.place, before.among_open(rows, is_open))
            return
        self.tally.add(rows)
        if self.kept is not None and not self._is_many():
            self.kept.append(rows)
            return
        self._spill()
        self._look_at(rows[0])
        self.sums.add(self.place, rows)

    def _pack(self, more: list[np.ndarray] | None) -> None:
        """Keep further rows as numbers, unless all of them are too many by now."""
        packed, self.packed = self.packed, None
        if packed is not None and more is not None:
            packed = packed + more
            if sum(part.size for part in packed) <= _PACKED_ROWS / self.n_states:
                self.packed = packed

    def _is_many(self, more: int = 0) -> bool:
        """Whether there are too many rows to keep them as they are."""
        return self.tally.n_rows + more > _SMALL // self.n_states

    def _put_off(self, f: np.ndarray, happened: np.ndarray) -> None:
        """Let rows that count once wait: together they are added while the buckets are near the processor."""
        self._spill()
        if not self.put_off:
            self._look_at(f)
        self.put_off.append((f, happened))
        self.tally.merge(Tally(f.size, f.size, f.size))
        if sum(part.size for part, _ in self.put_off) >= _PUT_OFF:
            self.settle()

    def settle(self) -> None:
        """Add the rows that were deferred."""
        if self.buckets is not None:
            self.buckets.settle()
        for f, happened in self.put_off:  # by the equal buckets of [0, 1], which the kernel knows
            self.tally.impossible += kernels().add_to_buckets(f, happened, self.sums.table)
        self.put_off = []

    def _spill(self) -> None:
        """Rows that were kept as few go to their buckets."""
        kept, self.kept = self.kept, None
        if kept:
            rows = joined(kept)
            self._look_at(rows[0])
            self.sums.add(self.place, rows)

    @property
    def most_levels(self) -> int:
        """Distinct scores for which the exact test can be afforded; 0 without a test."""
        return MAX_RANGE_COINS // self.n_tests // self.options.n_draws if self.options.n_draws else 0

    def _look_at(self, f: np.ndarray) -> None:
        """Whether some rows alone show more distinct scores than can be drawn: then nothing decides more."""
        if not self.has_many_scores:
            sample = f[: 2 * self.most_levels + 1]
            self.has_many_scores = np.unique(sample).size > self.most_levels

    def _absorb_open(self, block: Rows, before: CalibrationState, is_open: np.ndarray) -> None:
        """Only rows of open buckets are looked at again."""
        if self.near is None:
            self.near = before.place.touched(is_open)
        self.sums.add(self.place, before.open_rows(block, is_open, self.near), block.kernels)

    def among_open(self, rows: ScoredRows, is_open: np.ndarray) -> ScoredRows:
        """Those of the rows that lie in open buckets."""
        f, y, w = rows
        at = np.flatnonzero(is_open[self.place(f)])
        return f[at], y[at], None if w is None else w[at]

    def open_rows(self, block: Rows, is_open: np.ndarray, near: np.ndarray) -> ScoredRows:
        """The rows of the block that lie in open buckets: first by equal buckets, then by their own."""
        given, w = stated(block, self.column), block.weights
        if (compiled := block.kernels) is None:
            rows = np.flatnonzero(near[self.place.equal(unit_scores(given))])
        else:
            room = np.empty(block.n + 1, dtype=np.int64)
            rows = room[: compiled.rows_near(given, near, room)]
        if w is not None:
            rows = rows[w[rows] > 0]
        f = unit_scores(given[rows])
        if self.place.edges.size:
            kept = is_open[self.place(f)]
            rows, f = rows[kept], f[kept]
        return f, outcomes(block, self.column, rows), None if w is None else w[rows]

    def _take_over(self, before: CalibrationState, is_open: np.ndarray) -> None:
        """The closed buckets of the pass before, each inside one bucket of this one."""
        closed = np.flatnonzero(~is_open & (before.sums.mass > 0))
        self.sums.take_over(before.sums, closed, self.place(before.sums.low[closed]))
        self.tally, self.has_many_scores, self.base = before.tally, before.has_many_scores, None

    def merge(self, other: Self) -> Self:
        """Add the other's buckets and sums."""
        self.settle()
        other.settle()
        self._pack(other.packed)
        self.tally.merge(other.tally)
        self.has_many_scores = self.has_many_scores or other.has_many_scores
        if self.kept is not None and other.kept is not None and not self._is_many():
            self.kept += other.kept
            return self
        self._spill()
        other._spill()
        if self.buckets is None:
            self.buckets = other.buckets
        elif other.buckets is not None:
            self.buckets.merge(other.buckets)
        return self

    def shed(self) -> None:
        """Drop what every worker was given; equal buckets are small, and rows kept may yet need them."""
        place = self.place
        super().shed()
        self.place = place if isinstance(place, EqualBuckets) else self.place

    def advance(self) -> CalibrationState | OpenRowsState | None:
        """Finer buckets where too many rows are open, the open rows themselves, or nothing more."""
        self.settle()
        if self.base is not None:
            self._take_over(*self.base)
        if self.kept is not None:
            return None
        is_open = self.sums.open_buckets(TIE * float(self.sums.mass.sum())) | self._undecided()
        if not is_open.any():
            return None
        if self.packed is not None and sum(part.size for part in self.packed) == self.tally.n_rows:
            self.opened = is_open
            return None
        share = float(self.sums.mass[is_open].sum() / self.sums.mass.sum())
        if share * self.tally.n_rows > (self.kept_rows or _KEPT_ROWS) / self.n_states:
            return replace(self, place=self._finer(is_open), base=(self, is_open))
        return OpenRowsState(self, is_open)

    def _undecided(self) -> np.ndarray:
        """Buckets of several scores that the test must tell apart.

        All of them while the scores may be few enough to be drawn one by one; where few outcomes can
        surprise, those that hold more of the variance than a cell of the test.
        """
        mixed, variance = self.sums.is_mixed, self.sums.variance
        tested, total = self.tally.testable and self.options.n_draws > 0, float(variance.sum())
        if tested and not self.has_many_scores and np.count_nonzero(self.sums.mass) <= self.most_levels:
            return mixed
        return mixed & (tested and total < FEW_SURPRISES) & (variance > total / n_cells(self.n_tests))

    def _finer(self, is_open: np.ndarray) -> Grid:
        """Every open bucket cut into many, the others left whole."""
        share = max(2, _N_BUCKETS // int(is_open.sum()))
        low, high = self.sums.low[is_open], self.sums.high[is_open]
        cuts = low[:, None] + (high - low)[:, None] * (np.arange(1, share + 1) / share)
        # A cut at the smallest score itself splits off what lies below; nextafter keeps cuts inside.
        edges = np.concatenate([self.place.edges, low, cuts.ravel(), np.nextafter(high, 2.0)])
        return Grid(self.place.equal, np.unique(edges))

    def table(self, is_open: np.ndarray | None = None, rows: ScoredRows | None = None) -> ScoreTable:
        """The rows summed up: few as they are, many by closed buckets and the sorted rows of open ones."""
        if self.kept is not None:
            return ScoreTable.of_sorted_rows(sorted_rows(self.kept))
        if is_open is None or rows is None:
            return ScoreTable.of_buckets(self.sums, self.sums.mass > 0)
        return ScoreTable.of_buckets(self.sums, ~is_open).merged(ScoreTable.of_sorted_rows(rows))

    def walk(self, is_open: np.ndarray | None = None, rows: ScoredRows | None = None) -> Walk:
        """What was found over all rows."""
        self.settle()
        if self.opened is not None and self.packed is not None:
            is_open = self.opened
            rows = sorted_open([part[is_open[self.place(unpacked(part)[0])]] for part in self.packed])
        return walk_of_table(self.table(is_open, rows), self.tally, self.options, self.n_tests)

    def finish(self) -> Result:
        """The estimate."""
        return error_from_walk(self.walk(), self.options)


def sorted_open(packed: list[np.ndarray]) -> ScoredRows:
    """Rows that were packed into one number each, by score."""
    keys = np.concatenate(packed)
    keys.sort()
    return unpacked(keys)


def walk_of_table(table: ScoreTable, tally: Tally, options: CalibrationOptions, n_tests: int) -> Walk:
    """What is found in rows that are summed up by score, for one of ``n_tests`` tests on them."""
    found, levels = table.sup_interval(), None
    if tally.testable and options.n_draws:
        levels = levels_to_draw(table.levels(), table.is_resolved, n_draws=options.n_draws, n_tests=n_tests)
    highest = float(table.high[-1])
    return Walk(found, table.moments(found, tally), levels, highest, tally.n_rows, tally.soft)


class OpenRowsState(State):
    """Last pass: the rows of the open buckets, kept."""

    __slots__ = ("counted", "is_open", "near", "packed", "parts")
    SHARED = ("counted", "is_open", "near")

    def __init__(self, counted: CalibrationState, is_open: np.ndarray) -> None:
        self.counted, self.is_open = counted, is_open
        self.near = counted.place.touched(is_open)
        # Rows that count once, packed into one number each; and rows with weights or soft outcomes.
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
        self._keep(self.counted.open_rows(block, self.is_open, self.near))

    def add(self, rows: ScoredRows) -> None:
        """Keep those of the rows that lie in open buckets."""
        self._keep(self.counted.among_open(rows, self.is_open))

    def _keep(self, rows: ScoredRows) -> None:
        if rows[2] is None and rows[1].dtype == bool:
            self.packed.append(pack_outcomes(*rows[:2]))
        else:
            self.parts.append(rows)

    def advance(self) -> None:
        """Nothing more is needed."""

    def merge(self, other: Self) -> Self:
        """Keep the other's rows too."""
        self.packed += other.packed
        self.parts += other.parts
        return self

    def walk(self) -> Walk:
        """What was found over all rows, the walk read at every score inside open buckets."""
        if self.parts:
            rows = sorted_rows([*(unpacked(part) for part in self.packed), *self.parts])
        else:
            rows = sorted_open(self.packed)
        return self.counted.walk(self.is_open, rows)

    def finish(self) -> Result:
        """The estimate."""
        return error_from_walk(self.walk(), self.counted.options)


def calibration_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """The first pass for the top label, or for every class."""
    from calipers.metrics.reliability.classwise_states import ClasswiseState

    known = (*CalibrationOptions.__slots__, "multiclass")
    chosen = dict(known_options(entry, options, known))
    multiclass = chosen.pop("multiclass", "top_label")
    if multiclass == "top_label":
        return CalibrationState(CalibrationOptions(**chosen))
    return ClasswiseState(CalibrationOptions(**chosen), multiclass)
