"""Isotonic regression with ties pooled first: the calibrator with c_emp = 0 on its own data.

Algorithm 1 of Gao, Parameswaran and Peng runs over rows. With tied scores that gives equal scores
different values, so it is not a function of the score; here equal scores become one point, the mean of
their outcomes with their total weight, before the pool-adjacent-violators pass (scipy's, linear time).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import isotonic_regression

from calipers.arrays import (
    Array,
    SortedColumn,
    as_numpy,
    floating,
    namespace,
    on_device_of,
    search_sorted,
    take_at,
)
from calipers.arrays.ordered_bits import pack_outcomes, unpack_outcomes, unpack_scores
from calipers.calibration.calibrator import BinaryCalibrator, CalibrationRows
from calipers.exceptions import InputError

PREDICTIONS = ("interpolate", "step")
# Scores mapped at once, so that what is made on the way stays in the cache.
_BLOCK = 1 << 14


class Levels(NamedTuple):
    """Distinct scores in increasing order, the mean outcome of each and its total weight."""

    scores: np.ndarray
    means: np.ndarray
    weights: np.ndarray


class Blocks(NamedTuple):
    """Blocks of the isotonic fit: lowest and highest score in each, and their increasing values."""

    lower: np.ndarray
    upper: np.ndarray
    values: np.ndarray


def pool_ties(scores: Array, outcomes: Array, weights: Array | None = None) -> Levels:
    """One point per distinct score; sorting and sums happen where the arrays live."""
    if not isinstance(scores, np.ndarray):
        return _pool_on_device(scores, outcomes, weights)
    scores = np.add(scores, 0.0, dtype=np.float64)  # a copy, in which -0.0 is 0.0
    if weights is None and outcomes.dtype == bool and scores.size and scores.min() >= 0 and scores.max() <= 1:
        return _pool_packed(scores, outcomes)
    order = np.argsort(scores)
    scores, outcomes = scores[order], outcomes[order].astype(np.float64)
    starts = _starts(scores)
    if weights is None:
        counts = np.diff(starts, append=scores.size).astype(np.float64)
        return Levels(scores[starts], np.add.reduceat(outcomes, starts) / counts, counts)
    weights = weights[order]
    totals = np.add.reduceat(weights, starts)
    return Levels(scores[starts], np.add.reduceat(weights * outcomes, starts) / totals, totals)


def _pool_packed(scores: np.ndarray, outcomes: np.ndarray) -> Levels:
    """Hard labels and scores in [0, 1]: one sort of 64-bit keys, without an argsort and its gathers.

    The keys are made in the place of the scores.
    """
    keys = pack_outcomes(scores, outcomes, overwrite=True)
    keys.sort()
    levels = unpack_scores(keys)
    keys = unpack_outcomes(keys, out=keys)
    if not np.any(levels[1:] == levels[:-1]):
        return Levels(levels, keys.astype(np.float64), np.ones(levels.size))
    starts = _starts(levels)
    counts = np.diff(starts, append=levels.size).astype(np.float64)
    return Levels(levels[starts], np.add.reduceat(keys, starts) / counts, counts)


def _starts(ordered: np.ndarray) -> np.ndarray:
    is_new = np.empty(ordered.size, dtype=bool)
    is_new[:1] = True
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    return np.flatnonzero(is_new)


def _pool_on_device(scores: Array, outcomes: Array, weights: Array | None) -> Levels:
    xp = namespace(scores)
    order = xp.argsort(scores)
    f = xp.take(xp.astype(scores, xp.float64), order) + 0.0
    y = xp.take(xp.astype(outcomes, xp.float64), order)
    w = xp.ones_like(f) if weights is None else xp.take(xp.astype(weights, xp.float64), order)
    last = xp.ones((1,), dtype=xp.bool, device=f.device)
    ends = xp.nonzero(xp.concat([f[1:] != f[:-1], last]))[0]
    # Sums of a level are differences of cumulative sums; whole counts stay exact below 2^53.
    total, hits = (as_numpy(xp.take(xp.cumulative_sum(column), ends)) for column in (w, w * y))
    weight = np.diff(total, prepend=0.0)
    return Levels(as_numpy(xp.take(f, ends)), np.diff(hits, prepend=0.0) / weight, weight)


def fit_blocks(levels: Levels) -> Blocks:
    """Pool adjacent violators; every row of a block gets the very same float."""
    fit = isotonic_regression(levels.means, weights=levels.weights)
    first, last = fit.blocks[:-1], fit.blocks[1:] - 1
    # A mean of outcomes in [0, 1] may leave the unit interval by a rounding unit.
    values = np.clip(fit.x[first], 0.0, 1.0)
    return Blocks(levels.scores[first], levels.scores[last], values)


def step_values(blocks: Blocks, scores: Array) -> Array:
    """The value of the block that starts at or below each score; constant beyond both ends."""
    xp = namespace(scores)
    lower, values = (on_device_of(column, scores) for column in (blocks.lower, blocks.values))
    index = search_sorted(lower, xp.astype(scores, xp.float64), side="right") - 1
    return xp.take(values, xp.clip(index, 0, None))


def interpolated_values(blocks: Blocks, scores: Array) -> Array:
    """Constant inside each block, linear in the gaps between blocks, constant beyond both ends."""
    knots = np.stack([blocks.lower, blocks.upper], axis=1).ravel()
    heights = np.repeat(blocks.values, 2)
    kept = np.concatenate([[True], knots[1:] > knots[:-1]])
    return _interpolate(knots[kept], heights[kept], scores)


def _interpolate(knots: np.ndarray, heights: np.ndarray, scores: Array) -> Array:
    """numpy's interp on any array library; between equal heights the value is that height exactly."""
    xp = namespace(scores)
    # Beyond the last knot lies a gap without a rise.
    widths, rises = np.append(np.diff(knots), 1.0), np.append(np.diff(heights), 0.0)
    x, y, width, rise = (on_device_of(column, scores) for column in (knots, heights, widths, rises))
    column = SortedColumn(x)

    def one(block: Array) -> Array:
        f = xp.clip(xp.astype(block, xp.float64), float(knots[0]), float(knots[-1]))
        left = column.search(f, side="right") - 1
        share = (f - take_at(x, left)) / take_at(width, left)
        return take_at(y, left) + share * take_at(rise, left)

    if not isinstance(scores, np.ndarray):
        return one(scores)
    values = np.empty(scores.shape)
    for start in range(0, scores.size, _BLOCK):
        values[start : start + _BLOCK] = one(scores[start : start + _BLOCK])
    return values


class IsotonicCalibrator(BinaryCalibrator):
    """Isotonic regression: the non-decreasing map closest to the outcomes.

    On the rows it was fitted to, its calibration error c_emp is 0 (up to rounding, about 1e-17), its Brier
    score is the smallest any non-decreasing map can have, and no threshold decision costs more than before
    (Claims 3 and 5 of [1]_). Off them it needs rows: on 2000 it makes a calibrated model worse, so test
    first (`calibrate_if_needed`).

    Parameters
    ----------
    prediction : {"interpolate", "step"}
        Between blocks: a straight line (continuous, as Algorithm 1 asks and scikit-learn does, and it keeps
        more of the ranking), or the block to the left. Rows of the fit get the same value either way.
    inputs : {"probabilities", "scores"}
        "scores" accepts any finite numbers; only their order matters. Probabilities outside [0, 1] are
        refused.
    pos_label : label or None
        The positive label; None takes the larger of two.

    Attributes
    ----------
    blocks_ : Blocks
        ``lower``, ``upper`` and ``values`` of each block of the fit.
    n_samples_ : float
        Total weight of the rows of the fit.

    Notes
    -----
    Equal scores are pooled into one point first. Cost: one sort of n 64-bit keys (hard labels without
    weights) and a linear pass. torch and other device arrays are sorted and summed where they live; the
    linear pass runs on the host. The population error of the fitted map is at most
    ``4 sqrt(ln(2 / delta) / (2 n))`` with probability 1 - delta, if the scores were fixed before the rows
    (`calipers.metrics.reliability.in_sample_isotonic_bound`).

    References
    ----------
    .. [1] Gao, Parameswaran and Peng (2017), On the interpretability of conditional probability estimates
       in the agnostic setting. AISTATS.

    Examples
    --------
    >>> from calipers.calibration import IsotonicCalibrator
    >>> p, y = [0.1, 0.3, 0.3, 0.6, 0.8, 0.9], [0, 1, 0, 0, 1, 1]
    >>> IsotonicCalibrator().fit(p, y).predict([0.1, 0.3, 0.6, 0.7, 0.95]).round(4)
    array([0.    , 0.3333, 0.3333, 0.6667, 1.    ])
    """

    def __init__(
        self, *, prediction: str = "interpolate", inputs: str = "probabilities", pos_label: Any = None
    ) -> None:
        self.prediction = prediction
        self.inputs = inputs
        self.pos_label = pos_label

    def _fit(self, rows: CalibrationRows) -> None:
        if self.prediction not in PREDICTIONS:
            raise InputError(f'prediction must be "interpolate" or "step", got {self.prediction!r}.')
        levels = pool_ties(*rows)
        self.n_samples_ = float(levels.weights.sum())
        self.blocks_ = fit_blocks(levels)

    def _map(self, scores: Array) -> Array:
        rule = step_values if self.prediction == "step" else interpolated_values
        return rule(self.blocks_, floating(scores))
