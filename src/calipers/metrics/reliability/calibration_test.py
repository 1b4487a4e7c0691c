"""Is the model calibrated? Exact Monte Carlo by score level, or the Brownian-range law.

Under calibration the outcomes given the scores are independent coins with the stated probabilities, so
the law of any statistic can be drawn from, whatever the scores are. With K levels one draw costs K
binomial numbers, however many rows there are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from calipers.inference import SimulatedLaw
from calipers.inference.binomial_draws import draw_coins
from calipers.inference.null_law import NULL_LEVEL
from calipers.metrics.reliability.distinct_scores import ScoreLevels
from calipers.metrics.reliability.range_law import RANGE_MEAN, range_quantile, range_survival

N_DRAWS = 999
# Largest number of simulated coins; beyond it the asymptotic law is used. A binomial number costs about
# five coins.
MAX_COINS = 100_000_000
# The same for the range alone, whose asymptotic law is close by then: at 10 000 distinct scores a 5 % test
# rejects 4.6 to 4.8 %, while 999 draws place a p-value of 0.05 to within 0.007 only.
MAX_RANGE_COINS = 10_000_000
_BINOMIAL_COST = 5
# Variance of the number of events under calibration, below which its asymptotic laws fail, however many rows
# there are: with 1 expected event the range law gives p <= 0.001 in 0.6 % of samples, with 30 in 0.14 %, with
# 100 in 0.10 %.
FEW_SURPRISES = 100.0
# Cells of neighbouring scores that stand for more of them; for one test, and for one of many.
_CELLS, _CELLS_OF_MANY = 500, 100
# Coins drawn at a time; single ones, which are drawn fastest, so few that they stay near the processor.
_BATCH, _NEAR = 1 << 20, 1 << 18
# What is positive, and no more can be said.
SMALLEST = float(np.finfo(float).tiny)

Statistic = Callable[[np.ndarray], np.ndarray]


def n_coins(levels: ScoreLevels, n_draws: int = N_DRAWS) -> int:
    """Cost of drawing the null ``n_draws`` times, in coins."""
    several = int(np.sum(levels.trials > 1))
    return n_draws * (levels.size + (_BINOMIAL_COST - 1) * several)


def n_cells(n_tests: int = 1) -> int:
    """Cells of the score by which few surprises are drawn, for each of so many tests."""
    return _CELLS if n_tests == 1 else _CELLS_OF_MANY


def levels_to_draw(
    levels: ScoreLevels,
    is_resolved: bool = True,
    *,
    n_draws: int,
    n_tests: int = 1,
    most_coins: int = MAX_RANGE_COINS,
) -> ScoreLevels | None:
    """What the null is drawn from: affordable scores, or cells of them where few surprises are expected.

    None where neither holds: then asymptotic laws hold. Every choice between an exact and an asymptotic test
    of calibration is made here.
    """
    if is_resolved and n_coins(levels, n_draws) <= most_coins // n_tests:
        return levels
    return levels.in_cells(n_cells(n_tests)) if levels.variance < FEW_SURPRISES else None


def simulated_hits(levels: ScoreLevels, n_draws: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches (b, K) of the number of events at every level, drawn under calibration."""
    several = np.flatnonzero(levels.trials > 1)
    single = np.flatnonzero(levels.trials <= 1)
    values, trials = levels.values, levels.trials.astype(np.int64)
    batch = max(1, min(n_draws, (_BATCH if several.size else _NEAR) // levels.size))
    for start in range(0, n_draws, batch):
        size = min(batch, n_draws - start)
        if not several.size:
            yield draw_coins(values, size, generator)
            continue
        hits = np.empty((size, levels.size), dtype=np.int64)
        hits[:, single] = draw_coins(values[single], size, generator)
        hits[:, several] = generator.binomial(trials[several], values[several], (size, several.size))
        yield hits


def range_statistic(levels: ScoreLevels) -> Statistic:
    """Hits (b, K) to the weighted sup-interval discrepancy (b,), total weight times c_emp."""
    weights, ends = levels.weights, levels.block_ends
    expected = np.cumsum(levels.expected)
    count = np.int32 if levels.trials.sum() < 1 << 31 else np.int64

    def statistic(hits: np.ndarray) -> np.ndarray:
        if weights is None and hits.dtype.kind != "f":
            # Whole numbers add up six times as fast as floats, to the same sums.
            walk = np.cumsum(hits, axis=1, dtype=count) - expected
        else:
            walk = np.cumsum(hits if weights is None else hits * weights, axis=1, dtype=np.float64)
            walk -= expected
        if ends.size < levels.size:
            walk = walk[:, ends]
        return walk_range(walk)

    return statistic


def walk_range(walks: np.ndarray) -> np.ndarray:
    """Highest minus lowest reading of each walk (b, K), their start at 0 included."""
    return np.asarray(np.maximum(walks.max(axis=1), 0) - np.minimum(walks.min(axis=1), 0))


def monte_carlo_law(
    levels: ScoreLevels, statistic: Statistic, n_draws: int, generator: np.random.Generator
) -> tuple[float, np.ndarray]:
    """The statistic of the data and its draws, from the same arithmetic."""
    observed = float(statistic(levels.hits[None, :])[0])
    draws = np.concatenate([statistic(hits) for hits in simulated_hits(levels, n_draws, generator)])
    return observed, draws


def exact_test(levels: ScoreLevels, *, n_draws: int, generator: np.random.Generator) -> dict[str, Any]:
    """Fields of an Estimate from the simulated null of c_emp."""
    observed, draws = monte_carlo_law(levels, range_statistic(levels), n_draws, generator)
    # Inside a cell nothing is read: readings that differ by less than two cells can hide are one reading.
    observed = max(0.0, observed - 2 * levels.hidden) / levels.total
    law = SimulatedLaw(draws / levels.total)
    fields = law.estimate_fields(observed, level=NULL_LEVEL)
    return fields | {
        "test": f"exact Monte Carlo by {levels.unit}, {n_draws} draws",
        "null_mean": law.mean,
        "p_std_error": law.monte_carlo_p(observed).std_error,
    }


def asymptotic_test(value: float, variance: float, total: float) -> dict[str, Any]:
    """Fields of an Estimate from the range of Brownian motion; ``variance`` is sum w^2 f (1 - f)."""
    if variance <= 0:
        # Only certainties were stated: under the null c_emp is 0.
        p_value, null_high, mean = (1.0 if value <= 1e-12 else 0.0), 0.0, 0.0
    else:
        scale = math.sqrt(variance) / total
        p_value, null_high = range_survival(value / scale), scale * range_quantile(NULL_LEVEL)
        mean = scale * RANGE_MEAN
    return {
        # What is too small for a float is not 0.
        "p_value": max(p_value, SMALLEST),
        "alternative": "greater",
        "null_low": None,
        "null_high": null_high,
        "null_level": NULL_LEVEL,
        "test": "asymptotic law of the range of Brownian motion",
        "null_mean": mean,
        "p_std_error": None,
    }
