"""What would happen in every cell of time if the promise were kept, or if nothing changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

from calipers.inference.staged_law import is_affordable
from calipers.metrics.over_time.scan_windows import ScanWindows, flat_windows, target_windows
from calipers.metrics.over_time.time_units import TimeUnits
from calipers.metrics.promised_counts import PromisedCounts, order_statistics, threshold_ranks

# A draw gives, for so many data sets, what happened minus what was expected per cell, (b, K).
Draw = Callable[[int, np.random.Generator], np.ndarray]

# Promises are told apart by at most so many levels when rows of one level are shuffled over time.
_PROMISE_LEVELS = 50
# numpy draws exact tables of counts up to this many rows.
_MOST_COUNTED = 999_999_999
# One call that shuffles a few rows costs as much as drawing so many numbers.
_SHUFFLE_COST = 30
_COINS = "coins with the promised probabilities"
_CALIBRATED = "coins with the coverage of one calibration sample"
_NORMAL = "normal law of the sums per cell"


@dataclass(frozen=True, slots=True, eq=False)
class TimeNull:
    """What was seen per cell, the windows it is read in, and how to draw it under the null.

    Parameters
    ----------
    seen : array (K,)
        What happened minus what was expected, per cell.
    windows : ScanWindows
        Windows and their spread under the null.
    draw : callable
        Draws of ``seen``.
    n_drawn : int
        Numbers that are drawn for one data set.
    law : str
        What is drawn, in words.
    n_impossible : float
        Rows whose outcome was promised not to happen.
    is_target : bool
        Whether departures are from the promise, not from other times.
    is_bounded : bool
        Whether Poisson tails bound those of the windows.
    """

    seen: np.ndarray
    windows: ScanWindows
    draw: Draw
    n_drawn: int
    law: str
    n_impossible: float = 0.0
    is_target: bool = False
    is_bounded: bool = True

    @property
    def width(self) -> int:
        """Numbers that one draw holds at a time."""
        return max(self.n_drawn, len(self.windows))

    @property
    def cost(self) -> int:
        """Steps of one draw; a window takes three, a number drawn about ten."""
        return 3 * len(self.windows) + 10 * self.n_drawn


def flat_null(units: TimeUnits) -> TimeNull:
    """z - t has the same mean at all times: outcomes of one promise are shuffled over time."""
    level, n_levels = _promise_levels(units)
    residual = units.hits - units.weight * units.promised
    rows, total = (np.bincount(level, weights=c, minlength=n_levels) for c in (units.weight, residual))
    seen = units.per_cell(residual - (total / rows)[level] * units.weight)
    spread = _residual_variance(units, level, n_levels)
    noise = units.per_cell(spread[level] * (units.weight if units.whole else units.squares))
    windows, n_rows, n_cells = flat_windows(noise), int(units.weight.sum()), units.n_cells
    if np.all(units.promised == units.promised[0]) and n_rows <= _MOST_COUNTED:
        law = "outcomes shuffled over time"
        return TimeNull(seen, windows, _shuffled_counts(units), 2 * n_cells, law)
    if is_affordable(n_rows):
        draw, law = _shuffled_rows(units, level, total / rows), "outcomes shuffled among like promises"
        return TimeNull(seen, windows, draw, n_rows + _SHUFFLE_COST * n_levels, law)
    return TimeNull(seen, windows, _normal_bridge(noise), n_cells, _NORMAL)


def target_null(units: TimeUnits, n_calibration: int | None) -> TimeNull:
    """The promise is kept: coins with the promised chances, or with the coverage of a calibration sample."""
    levels, level = np.unique(units.promised, return_inverse=True)
    ranks = None if n_calibration is None else threshold_ranks(levels, n_calibration)
    t = (levels if ranks is None or n_calibration is None else ranks / (n_calibration + 1))[level]
    spread = t * (1.0 - t)
    noise = units.per_cell(spread * (units.weight if units.whole else units.squares))
    shared = np.zeros(units.n_cells)
    if n_calibration is not None:
        shared = units.per_cell(np.sqrt(spread) * units.weight) / np.sqrt(n_calibration + 2)
    windows, seen = target_windows(noise, shared), units.per_cell(units.hits - units.weight * t)
    n_impossible = float(np.sum(units.hits[t == 0]) + np.sum((units.weight - units.hits)[t == 1]))
    coins = PromisedCounts.of(units.cell, units.n_cells, level.reshape(-1), t, units.weight)
    n_coins = len(coins)
    if ranks is not None and n_calibration is not None:
        draw, law = partial(_tossed_calibrated, coins, ranks, n_calibration), _CALIBRATED
        return TimeNull(seen, windows, draw, n_coins, law, n_impossible, True, is_bounded=False)
    if is_affordable(n_coins):
        return TimeNull(seen, windows, partial(_tossed, coins), n_coins, _COINS, n_impossible, True)
    return TimeNull(seen, windows, _normal_cells(noise), units.n_cells, _NORMAL, n_impossible, True)


def _promise_levels(units: TimeUnits) -> tuple[np.ndarray, int]:
    """Level of every unit: its promise where these are few, else a bin of promises of equal rows."""
    distinct, level = np.unique(units.promised, return_inverse=True)
    if len(distinct) > _PROMISE_LEVELS:
        rows = np.bincount(level, weights=units.weight)
        middle = (np.cumsum(rows) - 0.5 * rows) / rows.sum()
        bins = np.unique((middle * _PROMISE_LEVELS).astype(np.int64), return_inverse=True)[1]
        level = bins[level]
    return level.reshape(-1), int(level.max()) + 1


def _residual_variance(units: TimeUnits, level: np.ndarray, n_levels: int) -> np.ndarray:
    """Variance of z - t among the rows of each level (that of drawing without replacement)."""
    t, misses = units.promised, units.weight - units.hits
    columns = (units.weight, units.hits * (1 - t) - misses * t, units.hits * (1 - t) ** 2 + misses * t**2)
    rows, total, squares = (np.bincount(level, weights=c, minlength=n_levels) for c in columns)
    scale = np.maximum(rows - 1, 1.0) if units.whole else rows
    return np.asarray(np.maximum(squares - total**2 / rows, 0.0) / scale)


def _shuffled_counts(units: TimeUnits) -> Draw:
    """Covered rows per cell when all rows are shuffled: one table with given margins."""
    rows = units.per_cell(units.weight).astype(np.int64)
    hits = round(float(units.hits.sum()))
    expected = rows * (hits / rows.sum())

    def draw(n_draws: int, generator: np.random.Generator) -> np.ndarray:
        counts = generator.multivariate_hypergeometric(rows, hits, size=n_draws, method="marginals")
        return np.asarray(counts - expected)

    return draw


def _shuffled_rows(units: TimeUnits, level: np.ndarray, means: np.ndarray) -> Draw:
    """Residuals of every level shuffled among the rows of that level."""
    order = np.argsort(level, kind="stable")
    hits, misses = units.hits[order].astype(np.int64), (units.weight - units.hits)[order].astype(np.int64)
    t, mean = units.promised[order], means[level[order]]
    residual = np.concatenate([np.repeat(1 - t - mean, hits), np.repeat(-t - mean, misses)])
    at = np.concatenate([np.repeat(units.cell[order], hits), np.repeat(units.cell[order], misses)])
    of_level = np.concatenate([np.repeat(level[order], hits), np.repeat(level[order], misses)])
    by_level = np.argsort(of_level, kind="stable")
    residual, at, bounds = residual[by_level], at[by_level], np.cumsum(np.bincount(of_level))[:-1]

    def draw(n_draws: int, generator: np.random.Generator) -> np.ndarray:
        sums, column = np.empty((n_draws, units.n_cells)), residual.copy()
        parts = np.split(column, bounds)
        for row in sums:
            for part in parts:
                generator.shuffle(part)
            row[:] = np.bincount(at, weights=column, minlength=units.n_cells)
        return sums

    return draw


def _tossed(coins: PromisedCounts, n_draws: int, generator: np.random.Generator) -> np.ndarray:
    """Covered minus expected rows per cell."""
    return np.asarray(coins.draw(n_draws, generator) - coins.expected)


def _tossed_calibrated(
    coins: PromisedCounts,
    ranks: np.ndarray,
    n_calibration: int,
    n_draws: int,
    generator: np.random.Generator,
) -> np.ndarray:
    """The same when all rows share the coverage that one calibration sample gives."""
    coverage = order_statistics(ranks, n_calibration, n_draws, generator)
    return np.asarray(coins.toss(coverage[:, coins.level], n_draws, generator) - coins.expected)


def _normal_cells(noise: np.ndarray) -> Draw:
    def draw(n_draws: int, generator: np.random.Generator) -> np.ndarray:
        return np.asarray(generator.normal(size=(n_draws, len(noise))) * np.sqrt(noise))

    return draw


def _normal_bridge(noise: np.ndarray) -> Draw:
    """Normal sums per cell that add up to 0."""
    free = _normal_cells(noise)

    def draw(n_draws: int, generator: np.random.Generator) -> np.ndarray:
        sums = free(n_draws, generator)
        return np.asarray(sums - sums.sum(axis=1, keepdims=True) * (noise / noise.sum()))

    return draw
