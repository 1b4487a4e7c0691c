"""Permutation test of the independence of one column from the others."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inference.alternatives import check_alternative
from calipers.inference.monte_carlo import MonteCarloP
from calipers.inference.null_law import SimulatedLaw
from calipers.inputs import check_count

# Numbers made at once; of shuffled rows so few that they stay near the processor.
_CELLS, _NEAR = 1 << 20, 1 << 14
# Numbers worth a stream and a thread of their own, and the most of these.
_STREAM, _MOST_STREAMS = 1 << 17, 4
# Up to so many rows random numbers are sorted faster than rows are exchanged.
_FEW_ROWS = 256
# One cell of a random table costs as much as shuffling this many rows (measured: 0.17 us against 11 ns).
_ROWS_PER_CELL = 15
_SHORT_RUN = 8


@dataclass(frozen=True, slots=True)
class PermutationResult:
    """The statistic, its simulated null law, and the side on which readings are far."""

    value: float
    law: SimulatedLaw
    alternative: str

    @property
    def test(self) -> MonteCarloP:
        """The p-value with its Monte-Carlo error."""
        return self.law.monte_carlo_p(self.value, self.alternative)

    @property
    def p_value(self) -> float:
        """The p-value, valid at any number of draws."""
        return self.test.p_value


def permutation_test(
    statistic: Callable[..., Any],
    permuted: np.ndarray,
    *fixed: np.ndarray,
    n_draws: int = 999,
    alternative: str = "greater",
    strata: np.ndarray | None = None,
    vectorized: bool = False,
    random_state: RandomState = None,
) -> PermutationResult:
    """Test of the null that the order of ``permuted`` carries no information about the fixed columns.

    Parameters
    ----------
    statistic : callable
        ``statistic(permuted, *fixed)`` gives one number. With ``vectorized=True`` it gets (draws, n)
        permutations and the (n,) fixed columns, and gives one number per draw along the last axis.
    permuted : array (n,)
        The column to shuffle.
    *fixed : array (n,)
        The columns that stay.
    n_draws : int
        Shuffles.
    alternative : {"greater", "less", "two-sided"}
        Which readings count against the null.
    strata : array (n,) or None
        Shuffle within equal values only (independence given the stratum).
    vectorized : bool
        Whether the statistic takes many shuffles at once.
    random_state : int, Generator or None
        Source of the shuffles.

    Returns
    -------
    PermutationResult
        A NaN statistic gives a NaN p-value.

    Notes
    -----
    Exact at any n: under the null all orders are equally likely, and the one seen is counted with them.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import permutation_test
    >>> x = np.arange(8)
    >>> permutation_test(lambda p, f: p @ f, x, x, vectorized=True, n_draws=99, random_state=0).p_value
    0.01
    """
    check_alternative(alternative)
    n_draws, column = check_count(n_draws, name="n_draws"), np.asarray(permuted)
    others = tuple(np.asarray(c) for c in fixed)
    lengths = [len(c) for c in (column, *others, *(() if strata is None else (strata,)))]
    if len(set(lengths)) != 1:
        raise InputError(f"permuted, fixed and strata must have the same length, got {lengths}.")
    rng = generator(random_state)
    value = _evaluate(statistic, column[None], others, vectorized)[0]
    draws = [
        _evaluate(statistic, _shuffles(column, strata, size, rng), others, vectorized)
        for size in _batches(n_draws, len(column))
    ]
    return PermutationResult(float(value), SimulatedLaw(np.concatenate(draws)), alternative)


def run_sum_permutation_test(
    statistic: Callable[[np.ndarray], Any],
    permuted: np.ndarray,
    lengths: np.ndarray,
    *,
    n_draws: int = 999,
    alternative: str = "greater",
    random_state: RandomState = None,
) -> PermutationResult:
    """`permutation_test` of a statistic that reads the column through the sums of its consecutive runs.

    Parameters
    ----------
    statistic : callable
        Gets the sums of the runs, (draws, R), and gives one number per draw.
    permuted : array (n,)
        The column to shuffle, in the order of the runs.
    lengths : array of int (R,)
        Rows of each run; they add up to n.
    n_draws, alternative, random_state
        As in `permutation_test`.

    Returns
    -------
    PermutationResult
        The same law as by shuffling rows.

    Notes
    -----
    Shuffling V distinct values over the runs is drawing a random V x R table with given margins: V R
    hypergeometric draws, whose cost does not grow with n. Rows are shuffled where the values are too many.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import run_sum_permutation_test
    >>> column, runs = np.repeat([0.0, 1.0], 500), [500, 500]
    >>> run_sum_permutation_test(lambda s: s[:, 1], column, runs, n_draws=99, random_state=0).p_value
    0.01
    """
    check_alternative(alternative)
    n_draws, column = check_count(n_draws, name="n_draws"), np.asarray(permuted)
    runs = np.asarray(lengths, dtype=np.int64)
    if np.any(runs < 1) or runs.sum() != len(column):
        raise InputError(
            f"lengths must be whole numbers from 1 that add up to the {len(column)} rows, "
            f"got {runs.tolist()[:10]}."
        )
    rng, starts = generator(random_state), np.cumsum(runs) - runs
    value = np.asarray(statistic(np.add.reduceat(column, starts)[None]))[0]
    levels, counts = np.unique(column, return_counts=True)
    is_table = levels.size * runs.size * _ROWS_PER_CELL < len(column)
    cells = 2 * levels.size * runs.size if is_table else len(column)

    def draw(draws: int, source: np.random.Generator) -> np.ndarray:
        parts = (
            _table_sums(levels, counts, runs, size, source)
            if is_table
            else _run_sums(_shuffles(column, None, size, source), runs, starts)
            for size in _batches(draws, cells, _CELLS if is_table else _NEAR)
        )
        return np.concatenate([np.asarray(statistic(sums)) for sums in parts])

    law = SimulatedLaw(_in_threads(draw, n_draws, cells, rng))
    return PermutationResult(float(value), law, alternative)


def _in_threads(
    draw: Callable[[int, np.random.Generator], np.ndarray], n_draws: int, cells: int, rng: np.random.Generator
) -> np.ndarray:
    """All draws, where they are much work each part by a thread and from a stream of its own.

    How many streams depends on the work alone: the same seed gives the same draws on every machine.
    """
    streams = min(n_draws, n_draws * cells // _STREAM, _MOST_STREAMS)
    if streams <= 1:
        return draw(n_draws, rng)
    from concurrent.futures import ThreadPoolExecutor

    sizes = np.diff(np.linspace(0, n_draws, streams + 1).astype(int)).tolist()
    with ThreadPoolExecutor(min(streams, os.cpu_count() or 1)) as pool:
        return np.concatenate(list(pool.map(draw, sizes, rng.spawn(streams))))


def _run_sums(table: np.ndarray, runs: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """Sums of the runs of every row, (draws, R); short runs of one length are added place by place."""
    length = int(runs[0])
    if not 1 < length <= _SHORT_RUN or np.any(runs != length):
        return np.asarray(np.add.reduceat(table, starts, axis=1))
    # In the order of `reduceat`: the first entry, plus the sum of the others.
    others = table[:, 1::length]
    for place in range(2, length):
        others = others + table[:, place::length]
    return np.asarray(table[:, ::length] + others)


def _batches(n_draws: int, n: int, cells: int = _CELLS) -> list[int]:
    """Draws at once, so that they fit in memory."""
    step = max(1, cells // max(n, 1))
    return [min(step, n_draws - start) for start in range(0, n_draws, step)]


def _table_sums(
    levels: np.ndarray, counts: np.ndarray, lengths: np.ndarray, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Sums of the runs, (draws, R), from random tables of how many rows of each level lie in each run.

    The runs are halved again and again: which rows of a block go to its first half is one draw without
    replacement, and all blocks of all tables draw at once.
    """
    depth = int(lengths.size - 1).bit_length()
    padded = np.zeros(1 << depth, dtype=np.int64)  # runs without rows at the end
    padded[: lengths.size] = lengths
    below = np.append(0, np.cumsum(counts)).astype(np.int64)  # rows of the levels before each level
    tables = np.tile(below[:, None, None], (1, n_draws, 1))  # levels and their end, draws, blocks
    for halvings in range(1, depth + 1):
        rows = padded.reshape(1 << halvings, -1).sum(axis=1)[::2]
        taken = _take_rows(tables, rows[: tables.shape[2]], rng)
        halves = np.empty((*tables.shape, 2), dtype=np.int64)
        halves[..., 0] = taken
        np.subtract(tables, taken, out=halves[..., 1])
        # Blocks without runs are left out.
        tables = halves.reshape(*tables.shape[:2], -1)[..., : -(-lengths.size >> (depth - halvings))]
    # Not by the threads of a library of matrices: they wait for each other.
    return np.asarray(np.einsum("v,vdr->dr", levels, np.diff(tables, axis=0)))


def _take_rows(tables: np.ndarray, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Rows before each level among so many rows drawn from each block; levels are halved, too."""
    taken = np.empty_like(tables)
    taken[0], taken[-1] = 0, rows
    bounds = np.array([0, len(tables) - 1])
    while np.any(wide := np.diff(bounds) > 1):
        low, high = bounds[:-1][wide], bounds[1:][wide]
        middle = (low + high) // 2
        first, last, split = tables[low], tables[high], tables[middle]
        drawn = rng.hypergeometric(split - first, last - split, taken[high] - taken[low])
        taken[middle] = taken[low] + drawn
        bounds = np.sort(np.append(bounds, middle))
    return taken


def _shuffles(
    column: np.ndarray, strata: np.ndarray | None, size: int, rng: np.random.Generator
) -> np.ndarray:
    if strata is None and len(column) <= _FEW_ROWS:
        # The position of a row in the last bits of a random number, whose other bits give the order.
        last = np.uint64(_FEW_ROWS - 1)
        keys = rng.integers(0, 1 << 64, (size, len(column)), dtype=np.uint64)
        keys &= ~last
        keys |= np.arange(len(column), dtype=np.uint64)
        keys.sort(axis=1)
        keys &= last
        return np.asarray(column.take(keys.view(np.int64)))
    if strata is None:
        shuffled = np.tile(column, (size, 1))
        return rng.permuted(shuffled, axis=1, out=shuffled)
    order = np.argsort(rng.random((size, len(column))), axis=1)
    codes = np.unique(strata, return_inverse=True)[1]
    # Sorting a shuffled order by stratum leaves a random order inside each stratum.
    within = np.take_along_axis(order, np.argsort(codes[order], axis=1, kind="stable"), axis=1)
    shuffled = np.empty((size, len(column)), dtype=column.dtype)
    shuffled[:, np.argsort(codes, kind="stable")] = column[within]
    return shuffled


def _evaluate(
    statistic: Callable[..., Any], columns: np.ndarray, fixed: tuple[np.ndarray, ...], vectorized: bool
) -> np.ndarray:
    if vectorized:
        return np.asarray(statistic(columns, *fixed))
    return np.asarray([statistic(column, *fixed) for column in columns])
