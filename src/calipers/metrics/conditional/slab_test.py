"""The test of the worst slab over all rows: outcomes are redrawn as promised and searched alike."""

from __future__ import annotations

import math

import numpy as np

from calipers.metrics.conditional.slab_search import any_run_as_low, sorted_blocks, worst_slab
from calipers.metrics.promised_counts import order_statistics, threshold_ranks
from calipers.metrics.promised_rows import PromisedRows

# Outcomes drawn at a time.
_CELLS = 1 << 24


def least_covered_p_value(
    columns: np.ndarray,
    rows: PromisedRows,
    min_mass: float,
    directions: np.ndarray,
    n_draws: int,
    n_calibration: int | None,
    rng: np.random.Generator,
) -> float:
    """P-value of the worst slab of all rows among those of redrawn outcomes, exact for any search.

    The draws and the rows are searched along the same directions, so that the rank of the rows among the
    draws is uniform, up to ties, when every promise is kept (Barnard 1963). Asked is only whether a draw has
    a slab as low: one pass over its sums.
    """
    if rows.n_impossible:  # an outcome that was promised not to happen rejects by itself
        return 1 / (1 + n_draws)
    weights = None if rows.weights is None else rows.weights.mass
    least = worst_slab(columns, departures(rows, rows.covered), min_mass, directions, weights).coverage
    smallest, batch = max(1, math.ceil(min_mass * len(rows) - 1e-9)), max(1, _CELLS // len(rows))
    reached = 0
    for start in range(0, n_draws, batch):
        drawn = redrawn_rows(rows, min(batch, n_draws - start), n_calibration, rng)
        waiting = np.arange(len(drawn))
        for order, edge in sorted_blocks(columns, directions):
            mass = None if weights is None else weights[order]
            lower = [any_run_as_low(departures(rows, drawn[k])[order], mass, edge, least, smallest)
                     for k in waiting]  # fmt: skip
            waiting = waiting[~np.array(lower, dtype=bool)]
            if not len(waiting):
                break
        reached += len(drawn) - len(waiting)
    return (1 + reached) / (1 + n_draws)


def departures(rows: PromisedRows, outcomes: np.ndarray) -> np.ndarray:
    """What is least in the worst slab: coverage, or coverage minus promise where promises differ."""
    return outcomes if rows.promised is None else outcomes - rows.promised


def redrawn_rows(
    rows: PromisedRows, n_draws: int, n_calibration: int | None, rng: np.random.Generator
) -> np.ndarray:
    """Outcomes (n_draws, n) of kept promises; a row that counts several times has its share of covered ones.

    One threshold of ``n_calibration`` rows shifts the coverage of all rows of a draw together.
    """
    chances = np.broadcast_to(rows.target, (n_draws, len(rows)))
    if n_calibration is not None:
        levels, place = np.unique(rows.target, return_inverse=True)
        chances = order_statistics(threshold_ranks(levels, n_calibration), n_calibration, n_draws, rng)[
            :, place
        ]
    if rows.weights is None:
        return (rng.random(chances.shape) < chances).astype(float)
    counts = np.rint(rows.mass).astype(np.int64)
    return np.asarray(rng.binomial(counts, chances) / counts)
