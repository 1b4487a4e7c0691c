"""Precision, recall, F1 and the area under the ROC curve before the labels have come.

Each is a smooth function of means over rows, so its error is, to first order, that of one mean: of its
derivative by the label of every row. That mean is a loss like any other, and gets the same correction by the
reference and the same interval.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from calipers.performance.covariate_shift import Comparison
from calipers.performance.expected_loss import LabelModel
from calipers.performance.expected_loss_interval import MeanInterval, Population, mean_interval
from calipers.performance.label_losses import LabelTable

RATIOS = ("precision", "recall", "f1", "auroc")


def metric_interval(
    name: str,
    model: LabelModel,
    new: np.ndarray,
    compared: Comparison,
    confidence: float,
    population: Population | None = None,
) -> MeanInterval:
    """The metric that new rows will turn out to have, as `mean_interval` gives a mean.

    Parameters
    ----------
    name : str
        "precision", "recall", "f1" or "auroc".
    model : LabelModel
        The labelled reference, two classes.
    new : array (N, 2)
        Stated probabilities of the new rows; the decision is the larger one.
    compared : Comparison
        Weights of the reference.
    confidence : float
        Level of the interval.
    population : Population or None
        All rows, when the new rows here are a sample of them; its pilot is that of `pilot_tables`.

    Returns
    -------
    MeanInterval
        With NaN where the metric is undefined, such as the recall without any expected event.
    """
    if name == "auroc":
        (value, derivative), mix = _area(model, new, compared), np.zeros(0)
    else:
        value, derivative, mix = _ratio(name, model, new, compared, confidence, population)
    if np.isnan(value):
        return MeanInterval(np.nan, np.nan, np.nan, {"sampling": 0.0, "weights": 0.0})
    found = mean_interval(model.with_table(derivative), new, compared, confidence, population, mix)
    # A ratio of corrected means has no correction left, and the value takes back what does not stand out.
    middle, shrunk = (float(np.clip(value + part, 0.0, 1.0)) for part in (found.centre, found.value))
    return replace(found, value=shrunk, centre=middle)


def pilot_tables(name: str) -> tuple[LabelTable, ...]:
    """The losses whose means make up the metric; none for the area, which is not a ratio of means."""
    return () if name == "auroc" else (_TOPS[name], _BOTTOMS[name])


def _ratio(
    name: str,
    model: LabelModel,
    new: np.ndarray,
    compared: Comparison,
    confidence: float,
    population: Population | None,
) -> tuple[float, LabelTable, np.ndarray]:
    """The ratio top / bottom of two means, its derivative (top - ratio bottom) / bottom, and its mix."""
    top, bottom = pilot_tables(name)
    above, below = (
        mean_interval(model.with_table(table), new, compared, confidence, population, mix).centre
        for table, mix in zip((top, bottom), np.eye(2), strict=True)
    )
    if below <= 0.0:
        return np.nan, top, np.zeros(2)
    value = above / below
    mix = np.array([1.0, -value]) / below
    return value, lambda P: mix[0] * top(P) + mix[1] * bottom(P), mix


def _area(model: LabelModel, new: np.ndarray, compared: Comparison) -> tuple[float, LabelTable]:
    """The area expected under calibrated probabilities, and its derivative by the labels."""
    _, chances = model.calibrated(new, compared.designs())
    order = np.argsort(new[:, 1], kind="stable")
    scores, positive = new[order, 1], chances[order, 1]
    n, ones, zeros = len(new), positive.mean(), 1.0 - positive.mean()
    if min(ones, zeros) * n < 1.0:
        return np.nan, _TOPS["recall"]
    sums = [np.concatenate([[0.0], np.cumsum(part)]) / n for part in (1.0 - positive, positive)]

    def half_ties(cumulative: np.ndarray, at: np.ndarray) -> np.ndarray:
        left, right = (np.searchsorted(scores, at, side=side) for side in ("left", "right"))
        return np.asarray((cumulative[left] + cumulative[right]) / 2.0)

    own = (positive * (1.0 - positive)).sum() / n**2
    area = (positive @ half_ties(sums[0], scores) / n - own / 2.0) / (ones * zeros - own)

    def derivative(P: np.ndarray) -> np.ndarray:
        below, above = half_ties(sums[0], P[:, 1]), ones - half_ties(sums[1], P[:, 1])
        # What a row adds with either label: its share of the pairs, less its share of the denominator.
        added = np.column_stack([above - area * ones, below - area * zeros])
        return np.asarray(added / (ones * zeros))

    # The mean of the derivative under the expected labels comes with the correction; only departures count.
    centre = float((chances * derivative(new)).sum(axis=1).mean())
    return area - centre, derivative


def _acts(P: np.ndarray) -> np.ndarray:
    return np.asarray(P.argmax(axis=1) == 1, dtype=np.float64)


def _columns(if_zero: np.ndarray, if_one: np.ndarray) -> np.ndarray:
    return np.column_stack([if_zero, if_one])


_TOPS: dict[str, LabelTable] = {
    "precision": lambda P: _columns(0.0 * _acts(P), _acts(P)),
    "recall": lambda P: _columns(0.0 * _acts(P), _acts(P)),
    "f1": lambda P: _columns(0.0 * _acts(P), 2.0 * _acts(P)),
}
_BOTTOMS: dict[str, LabelTable] = {
    "precision": lambda P: _columns(_acts(P), _acts(P)),
    "recall": lambda P: _columns(np.zeros(len(P)), np.ones(len(P))),
    "f1": lambda P: _columns(_acts(P), 1.0 + _acts(P)),
}
