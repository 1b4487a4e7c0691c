"""Rows summed up in order of score: all that the calibration error and its test look at.

An entry is one score, or a bucket of neighbouring scores inside which the walk of w (y - f) cannot reach an
extreme. Over entries in order of score let C be the running sum of their steps, with a leading 0. Every
interval (p1, p2] of scores that can attain the error is a difference of two readings of C, so

    c_emp = (max C - min C) / sum w

and the scores at the two extremes are the ends of the maximising interval.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from calipers.metrics.reliability.binary_rows import BinaryRows
from calipers.metrics.reliability.block_scores import ScoredRows, Tally, sorted_rows
from calipers.metrics.reliability.calibration_estimate import RowMoments
from calipers.metrics.reliability.distinct_scores import ScoreLevels, device_levels
from calipers.metrics.reliability.score_buckets import BucketSums
from calipers.metrics.reliability.sup_interval import TIE, Extreme, SupInterval, interval_between


@dataclass(frozen=True, slots=True, eq=False)
class ScoreTable:
    """Sums over entries in order of score, (k,) each.

    Parameters
    ----------
    low, high : array
        Smallest and largest score of each entry, equal where it is one score.
    step : array
        Sum of w (y - f): what the walk gains.
    mass, score, hits : array
        Sums of w, w f and w y.
    square, noise : array
        Sums of w (y - f)^2 and of w^2 (y - f)^2.
    variance : array
        Sum of w f (1 - f).
    """

    low: np.ndarray
    high: np.ndarray
    step: np.ndarray
    mass: np.ndarray
    score: np.ndarray
    hits: np.ndarray
    square: np.ndarray
    noise: np.ndarray
    variance: np.ndarray

    @classmethod
    def of_levels(cls, values: np.ndarray, mass: np.ndarray, hits: np.ndarray) -> Self:
        """Entries of one score each, of rows that count once and either happened or did not."""
        # Counts are whole, so a score that is right on average steps by exactly 0 where arithmetic allows.
        square = hits * (1 - values) ** 2 + (mass - hits) * values**2
        spread = mass * values * (1 - values)
        return cls(values, values, hits - mass * values, mass, mass * values, hits, square, square, spread)

    @classmethod
    def of_sorted_rows(cls, rows: ScoredRows) -> Self:
        """Entries of one score each, from rows in order of score."""
        f, y, w = rows
        first = np.flatnonzero(np.append(True, f[1:] != f[:-1]))
        values = f[first] + 0.0
        if w is None and y.dtype == bool:
            hits = np.add.reduceat(y, first, dtype=np.int64).astype(float)
            return cls.of_levels(values, np.diff(first, append=f.size).astype(float), hits)
        w = np.ones(f.size) if w is None else w
        residual = (y - f) ** 2
        columns = (w, w * y, w * residual, w * w * residual)
        mass, hits, square, noise = (np.add.reduceat(column, first) for column in columns)
        spread = mass * values * (1 - values)
        return cls(values, values, hits - mass * values, mass, mass * values, hits, square, noise, spread)

    @classmethod
    def of_buckets(cls, buckets: BucketSums, which: np.ndarray) -> Self:
        """Entries that are whole buckets."""
        at = np.flatnonzero(which & (buckets.mass > 0))
        _, _, mass, score, hits, square = buckets.sums[:, at]
        return cls(
            buckets.low[at], buckets.high[at], buckets.steps[at], mass, score, hits, square,
            buckets.noise[at], buckets.variance[at],
        )  # fmt: skip

    def merged(self, other: Self) -> Self:
        """The entries of both, in order of score."""
        order = np.argsort(np.concatenate([self.high, other.high]), kind="stable")
        names = [field.name for field in fields(self)]
        return type(self)(*(np.concatenate([getattr(self, k), getattr(other, k)])[order] for k in names))

    @property
    def total(self) -> float:
        """Weight of all rows."""
        return float(self.mass.sum())

    def sup_interval(self) -> SupInterval:
        """The calibration error, its interval and its sign."""
        tie = TIE * self.total
        top, bottom, readings = Extreme(1, tie), Extreme(-1, tie), np.cumsum(self.step)
        top.update(readings, self.high)
        bottom.update(readings, self.high)
        return interval_between(top, bottom, self.total)

    def moments(self, found: SupInterval, tally: Tally) -> RowMoments:
        """What bounds and words need."""
        # NaN ends (no interval) compare false: nothing is inside. An entry lies inside or outside as a whole.
        inside = (self.low > found.low) & (self.high <= found.high)
        weight, noise = float(self.mass[inside].sum()), self.square if tally.whole else self.noise
        return RowMoments(
            total=self.total,
            rows=tally.rows,
            second_moment=float(self.square.sum()) / self.total,
            noise=float(noise.sum()) / (self.total if tally.whole else tally.squares),
            variance=float(self.variance.sum()),
            inside=weight,
            stated=float(self.score[inside].sum()) / weight if weight else math.nan,
            happened=float(self.hits[inside].sum()) / weight if weight else math.nan,
            inside_square=float(noise[inside].sum()),
            impossible=tally.impossible,
            whole=tally.whole,
        )

    def levels(self) -> ScoreLevels:
        """Every entry as one score, the mean of its scores, with the rows that state it."""
        values = np.where(self.low == self.high, self.high, self.score / self.mass)
        return ScoreLevels(values, self.mass, self.hits)

    @property
    def is_resolved(self) -> bool:
        """Whether every entry is one score."""
        return bool(np.all(self.low == self.high))


def table_of_rows(rows: BinaryRows) -> ScoreTable:
    """One entry per distinct score of rows on the host."""
    return ScoreTable.of_sorted_rows(sorted_rows(list(rows.blocks())))


def pooled_scores(rows: BinaryRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Distinct scores, the weight at each and the weighted sum of outcomes there."""
    table = table_of_rows(rows)
    return table.high, table.mass, table.hits


def score_levels(rows: BinaryRows) -> ScoreLevels:
    """Levels of hard outcomes: one unit per score, or per row with importance weights."""
    if not rows.on_host and rows.weights is None:
        return device_levels(rows)
    host = rows.to_host()
    if host.whole:
        return table_of_rows(host).levels()
    f, y, w = sorted_rows(list(host.blocks()))
    return ScoreLevels(f, np.ones(f.size), y.astype(float), w)
