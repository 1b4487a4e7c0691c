"""The walk of w (y - f) over the scores of rows in memory: the passes of a stream, or a shorter way.

Rows on the host go through `CalibrationState` as blocks of a stream do, in expected linear time: on
spread-out scores a few rows in a thousand are sorted. Three shorter ways give the same numbers: scores of
few values are counted by comparison, scores that come sorted are walked as they are, and arrays of other
libraries are sorted and cumulated where they lie.
"""

from __future__ import annotations

import numpy as np

from calipers.arrays import namespace
from calipers.metrics.reliability.binary_rows import BinaryRows
from calipers.metrics.reliability.block_scores import Tally
from calipers.metrics.reliability.calibration_estimate import RowMoments, Walk, row_moments
from calipers.metrics.reliability.calibration_states import (
    CalibrationOptions,
    CalibrationState,
    OpenRowsState,
    walk_of_table,
)
from calipers.metrics.reliability.calibration_test import FEW_SURPRISES, MAX_RANGE_COINS, levels_to_draw
from calipers.metrics.reliability.cumulative_differences import ScoreTable, score_levels
from calipers.metrics.reliability.distinct_scores import ScoreLevels, has_more_levels_than
from calipers.metrics.reliability.ordered_walk import extremes_by_sorting, extremes_of_sorted
from calipers.metrics.reliability.score_buckets import EqualBuckets
from calipers.metrics.reliability.sup_interval import TIE, SupInterval, interval_between

UNTESTED = CalibrationOptions(n_draws=0)
# Rows given to the buckets at a time.
_BLOCK = 1 << 16
# Fewer rows than this are sorted as a whole; the choice between ways looks at a sample of as many.
_SMALL, _SAMPLE = 100_000, 2048
# Buckets, and the width of a range of scores below which they are laid between its ends.
_N_BUCKETS, _NARROW = 1 << 15, 0.5
# Share of the rows that may be kept and sorted, before buckets are rather cut finer.
_OPEN = 0.125
# Up to so many levels, comparing all rows with each level is faster than any sort.
_FEW_LEVELS = 32
_CACHED = 1 << 15


def sup_interval(rows: BinaryRows) -> SupInterval:
    """c_emp, its interval and its sign; ties are pooled, -0.0 equals 0.0, any array library.

    Where several intervals attain the maximum, a narrow one is reported: zero steps at its ends are left out.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.reliability import BinaryRows, sup_interval
    >>> sup_interval(BinaryRows(np.array([0.2, 0.5, 0.5]), np.array([False, True, True])))
    SupInterval(value=0.3333333333333333, low=0.2, high=0.5, sign=1)
    """
    rows = rows.present()
    if (table := _few_levels(rows)) is not None:
        return table.sup_interval()
    found = _ordered(rows)
    return _passed(rows, UNTESTED, 1).found if found is None else found


def walk_of_rows(rows: BinaryRows, options: CalibrationOptions, n_tests: int = 1) -> Walk:
    """What is found over checked rows, for one of ``n_tests`` tests on them."""
    rows = rows.present()
    if (table := _few_levels(rows)) is not None:
        impossible = table.hits[table.high == 0].sum() + (table.mass - table.hits)[table.high == 1].sum()
        return walk_of_table(table, Tally(rows.n, rows.n, rows.n, int(impossible)), options, n_tests)
    found = _ordered(rows)
    if found is None:
        return _passed(rows, options, n_tests)
    moments = row_moments(rows, found)
    levels = _levels(rows, moments, options.n_draws, n_tests)
    highest = min(1.0, float(namespace(rows.scores).max(rows.scores)))
    return Walk(found, moments, levels, highest, rows.n, rows.soft)


def _ordered(rows: BinaryRows) -> SupInterval | None:
    """The error of rows that are in order of score, or sorted best where they lie; None for all others."""
    tie = TIE * rows.total
    if not rows.on_host:
        return interval_between(*extremes_by_sorting(rows, tie), rows.total)
    if rows.n <= _SMALL or not _may_be_sorted(rows.scores):
        return None
    found = extremes_of_sorted(rows, tie)
    return None if found is None else interval_between(*found, rows.total)


def _may_be_sorted(scores: np.ndarray) -> bool:
    sample = scores[:: scores.size // _SAMPLE]
    return bool(np.all(sample[1:] >= sample[:-1]))


def _levels(rows: BinaryRows, moments: RowMoments, n_draws: int, n_tests: int) -> ScoreLevels | None:
    """What the null of ordered rows is drawn from, looked for only where it may be used."""
    if rows.soft or not moments.whole:
        return None
    most = MAX_RANGE_COINS // n_tests // n_draws
    if has_more_levels_than(rows, most) and moments.variance >= FEW_SURPRISES:
        return None
    return levels_to_draw(score_levels(rows), n_draws=n_draws, n_tests=n_tests)


def _passed(rows: BinaryRows, options: CalibrationOptions, n_tests: int) -> Walk:
    """The passes of `CalibrationState` over blocks of the rows, with buckets where the scores are."""
    low, high = float(rows.scores.min()), min(1.0, float(rows.scores.max()))
    place = EqualBuckets(_N_BUCKETS, low, high) if high - low < _NARROW else EqualBuckets(_N_BUCKETS)
    state: CalibrationState | OpenRowsState = CalibrationState(
        options, place, n_tests=n_tests, kept_rows=max(_SMALL, int(_OPEN * rows.n))
    )
    for block in rows.blocks(_BLOCK):
        state.add(block)
    while (following := state.advance()) is not None:
        state = following
        for block in rows.blocks(_BLOCK):
            state.add(block)
    return state.walk()


def _few_levels(rows: BinaryRows) -> ScoreTable | None:
    """Rows that count once and have few scores, counted level by level; None for all others."""
    if rows.n <= _SMALL or rows.weights is not None or rows.soft or not rows.on_host:
        return None
    values = np.unique(rows.scores[:: rows.n // _SAMPLE])
    if values.size > _FEW_LEVELS or values[-1] > 1:
        return None
    counts = _count_levels(rows, values)
    return None if counts is None else ScoreTable.of_levels(values.astype(np.float64) + 0.0, *counts)


def _count_levels(rows: BinaryRows, values: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
    """Rows and events at each value; None as soon as a row has another score."""
    trials, hits = np.zeros(values.size), np.zeros(values.size)
    for start in range(0, rows.n, _CACHED):
        f, y = rows.scores[start : start + _CACHED], rows.outcomes[start : start + _CACHED]
        seen = 0
        for k, value in enumerate(values):
            at = f == value
            count = int(np.count_nonzero(at))
            trials[k] += count
            hits[k] += np.count_nonzero(np.logical_and(at, y, out=at))
            seen += count
        if seen < f.size:
            return None
    return trials, hits
