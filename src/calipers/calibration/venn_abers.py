"""Inductive Venn-Abers prediction: two probabilities per row, one of which is calibrated."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.arrays import Array, as_numpy
from calipers.calibration.calibrator import BinaryCalibrator, CalibrationRows, beside
from calipers.calibration.isotonic import Levels, pool_ties


class VennAbersCalibrator(BinaryCalibrator):
    """Isotonic regression with the new row in it, once as a negative and once as a positive.

    The pair (p0, p1) is a multiprobability: whichever label the new row has, the p of that label is
    calibrated in expectation over calibration and new row together, for every sample size [1]_. The
    distance between the two says how little the calibration rows know there.

    Parameters
    ----------
    inputs : {"probabilities", "scores"}
        "scores" accepts any finite numbers; only their order matters.
    pos_label : label or None
        The positive label; None takes the larger of two.

    Attributes
    ----------
    scores_ : array
        Distinct scores of the calibration rows.
    p0_, p1_ : array
        Lower and upper probability of a new row at each of them.

    Notes
    -----
    Guarantee: for exchangeable rows, E[Y | p_Y] = p_Y where p_Y is the one of p0, p1 that belongs to the
    true label. It concerns the selected p, not the merged one that `predict` returns. Both tables are made
    in one pass over the distinct scores after a sort (two stacks, linear); a prediction is one search. The
    new row weighs 1.

    References
    ----------
    .. [1] Vovk, Petej and Fedorova (2015), Large-scale probabilistic predictors with and without
       guarantees of validity. NeurIPS.

    Examples
    --------
    >>> from calipers.calibration import VennAbersCalibrator
    >>> venn = VennAbersCalibrator().fit([0.1, 0.3, 0.5, 0.7, 0.9], [0, 0, 1, 0, 1])
    >>> venn.predict_interval([0.2, 0.6]).round(3)
    array([[0.   , 0.5  ],
           [0.333, 0.667]])
    """

    def __init__(self, *, inputs: str = "probabilities", pos_label: Any = None) -> None:
        self.inputs = inputs
        self.pos_label = pos_label

    def _fit(self, rows: CalibrationRows) -> None:
        levels = pool_ties(*rows)
        self.scores_ = levels.scores
        self.p1_ = upper_probabilities(levels)
        # A negative row at s is a positive row at -s among flipped labels.
        mirrored = Levels(-levels.scores[::-1], 1 - levels.means[::-1], levels.weights[::-1])
        self.p0_ = 1 - upper_probabilities(mirrored)[::-1]

    def predict_interval(self, probabilities: Any) -> Array:
        """(n, 2): the probability if the row is a negative, and if it is a positive; the first is smaller."""
        scores = self._check_scores(probabilities)
        values = as_numpy(scores).astype(np.float64)
        # A positive row joins the first level at or above it, a negative row the last at or below.
        above = np.searchsorted(self.scores_, values, side="left")
        below = np.searchsorted(self.scores_, values, side="right") - 1
        p1 = np.append(self.p1_, 1.0)[above]
        p0 = np.append(self.p0_, 0.0)[below]  # index -1 is the appended 0
        return beside(np.stack([p0, p1], axis=1), scores)

    def _map(self, scores: Array) -> Array:
        """p1 / (1 - p0 + p1): the choice that loses least log loss in the worst case."""
        p0, p1 = as_numpy(self.predict_interval(scores)).T
        return beside(p1 / (1 - p0 + p1), scores)


def upper_probabilities(levels: Levels) -> np.ndarray:
    """Value at each level of the isotonic fit with one more positive row there.

    The extra row starts to the left of all levels and is moved past one level at a time; the convex minorant
    of the cumulative diagram changes only at its left end, which is the top of the stack.
    """
    weights, hits = levels.weights.tolist(), (levels.weights * levels.means).tolist()
    m = len(weights)
    stack = _corners(weights, hits)
    values = np.empty(m)
    # The corner in front of the extra row while that row stands before level i.
    before = (-1.0, -1.0)
    for i in range(m):
        (x0, y0), (x1, y1) = stack[-1], stack[-2]
        values[i] = (y1 - y0) / (x1 - x0)
        moved = (before[0] + weights[i], before[1] + hits[i])
        # Above the first edge the moved corner does not show.
        if (moved[0] - x0) * (y1 - y0) > (moved[1] - y0) * (x1 - x0):
            stack.pop()
            while len(stack) > 1 and not _turns_left(moved, stack[-1], stack[-2]):
                stack.pop()
            stack.append(moved)
        before = moved
    return np.clip(values, 0.0, 1.0)


def _corners(weights: list[float], hits: list[float]) -> list[tuple[float, float]]:
    """Corners of the greatest convex minorant with the extra positive row first; the left end on top."""
    corners = [(-1.0, -1.0)]
    point = (0.0, 0.0)
    for w, h in [(0.0, 0.0), *zip(weights, hits, strict=True)]:
        point = (point[0] + w, point[1] + h)
        while len(corners) > 1 and not _turns_left(corners[-2], corners[-1], point):
            corners.pop()
        corners.append(point)
    return corners[::-1]


def _turns_left(a: tuple[float, float], b: tuple[float, float], c: tuple[float, float]) -> bool:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0]) > 0
