"""Expected losses before the outcomes are known: from calibrated probabilities, or from a model of the loss.

Every model is fitted fold by fold, so that a reference row's expected loss comes from rows other than itself:
the mean of realised minus expected loss is then an honest correction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.calibration import IsotonicCalibrator, OneVsRestCalibrator
from calipers.performance.label_losses import LabelTable, class_log_odds

FOLDS = 5
_PENALTIES = np.geomspace(0.01, 10_000.0, 13)
# Features of the reference and of the new rows, as numbers with common codes.
Tables = tuple[np.ndarray, np.ndarray] | None
# Statements and features of some rows -> what a fitted function takes.
Joins = Callable[[np.ndarray, np.ndarray | None], np.ndarray]
# Statements and features of new rows -> expected losses (N, T) by the reference as it is.
Pilot = Callable[[np.ndarray, np.ndarray | None], np.ndarray]


@dataclass(frozen=True, slots=True)
class ExpectedLoss:
    """Expected losses of reference rows (out of fold) and of new rows.

    Parameters
    ----------
    reference : array (n,)
        Expected loss of each reference row.
    new : array (N,)
        Expected loss of each new row.
    variance : array (N,)
        Variance of each new row's loss around it.
    reference_variance : array (n,)
        The same for the reference rows.
    """

    reference: np.ndarray
    new: np.ndarray
    variance: np.ndarray
    reference_variance: np.ndarray


@dataclass(frozen=True, slots=True)
class Fitted:
    """Functions fitted fold by fold.

    Parameters
    ----------
    reference : array
        Their values at the reference rows, each by the function of the other folds.
    maps : tuple of functions
        One per fold; other rows get their mean.
    joins : function
        Makes their input from statements and features.
    """

    reference: np.ndarray
    maps: tuple[Callable[[np.ndarray], np.ndarray], ...]
    joins: Joins

    def of(self, new: np.ndarray, X: np.ndarray | None) -> np.ndarray:
        """Values at new rows."""
        inputs = self.joins(new, X)
        total = self.maps[0](inputs)
        for one in self.maps[1:]:
            total = total + one(inputs)
        return np.asarray(total / len(self.maps))


def _statements_alone(statements: np.ndarray, X: np.ndarray | None) -> np.ndarray:
    return statements


def _odds_and_features(statements: np.ndarray, X: np.ndarray | None) -> np.ndarray:
    return _side_by_side(class_log_odds(statements), X)


def _side_by_side(statements: np.ndarray, X: np.ndarray | None) -> np.ndarray:
    """Statements, one column at least, and features where there are some."""
    own = statements[:, None] if statements.ndim == 1 else statements
    return own if X is None else np.column_stack([own, X])


def folds_of(n: int, generator: np.random.Generator) -> np.ndarray:
    """The fold of every row; fewer folds when there are few rows."""
    return generator.permutation(np.arange(n) % min(FOLDS, n))


class LabelModel:
    """Calibrated probabilities of the labels, and the expected loss under them.

    Parameters
    ----------
    probabilities : array (n, K)
        Stated probabilities of the reference.
    codes : integer array (n,)
        True labels as columns.
    table : function
        Losses (n, K) of stated probabilities, one column per label that may come true.
    folds : integer array (n,)
        Fold of each row.
    """

    def __init__(
        self, probabilities: np.ndarray, codes: np.ndarray, table: LabelTable, folds: np.ndarray
    ) -> None:
        self.statements, self.codes, self.table, self.folds = probabilities, codes, table, folds
        self.realised = table(probabilities)[np.arange(codes.size), codes]
        # Weights, new rows and what they were calibrated to last: several losses ask for the same.
        self._last: list[Any] = []

    def with_table(self, table: LabelTable) -> LabelModel:
        """The same reference with another loss."""
        other = LabelModel(self.statements, self.codes, table, self.folds)
        other._last = self._last
        return other

    def calibrated(
        self, weights: np.ndarray, new: np.ndarray, tables: Tables = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated probabilities of reference rows, each by the other folds, and of new rows.

        With features of a shifted sample (unequal weights) a classifier of statements and features competes
        with the isotonic map; the one with the smaller weighted Brier score out of fold is taken.
        """
        if not self._last or self._last[0] is not weights or self._last[1] is not new:
            self._last[:] = [weights, new, self._calibrate(weights, new, tables)]
        calibrated: tuple[np.ndarray, np.ndarray] = self._last[2]
        return calibrated

    def _calibrate(
        self, weights: np.ndarray, new: np.ndarray, tables: Tables
    ) -> tuple[np.ndarray, np.ndarray]:
        fitted = self.fitted(weights, None if tables is None else tables[0])
        return fitted.reference, fitted.of(new, None if tables is None else tables[1])

    def fitted(self, weights: np.ndarray, X: np.ndarray | None = None) -> Fitted:
        """The calibrated probabilities as a function of statements and features."""
        isotonic = self._out_of_fold(fit_map, weights, self.statements)
        if X is None or np.ptp(weights) == 0.0:
            return isotonic
        inputs = _side_by_side(class_log_odds(self.statements), X)
        learned = self._out_of_fold(_fit_classifier, weights, inputs, joins=_odds_and_features)
        return min(isotonic, learned, key=lambda found: self._brier(found.reference, weights))

    def _out_of_fold(
        self, fit: Any, weights: np.ndarray, inputs: np.ndarray, joins: Joins | None = None
    ) -> Fitted:
        reference, maps = np.empty(self.statements.shape), []
        for inside in _each_fold(self.folds):
            maps.append(fit(inputs[~inside], self.codes[~inside], weights[~inside], self.statements.shape[1]))
            reference[inside] = maps[-1](inputs[inside])
        return Fitted(reference, tuple(maps), joins or _statements_alone)

    def pilot(self, tables: Sequence[LabelTable], X: np.ndarray | None) -> Pilot:
        """Expected losses by the unweighted reference, a column per table of losses, for any rows."""
        fitted = self.fitted(np.ones(self.codes.size))

        def losses(new: np.ndarray, X_new: np.ndarray | None) -> np.ndarray:
            chances, found = fitted.of(new, None), np.empty((len(new), len(tables)))
            for column, table in enumerate(tables):
                found[:, column] = (chances * table(new)).sum(axis=1)
            return found

        return losses

    def _brier(self, chances: np.ndarray, weights: np.ndarray) -> float:
        happened = self.codes[:, None] == np.arange(chances.shape[1])
        return float(weights @ ((chances - happened) ** 2).sum(axis=1))

    def expected(self, weights: np.ndarray, new: np.ndarray, tables: Tables = None) -> ExpectedLoss:
        """Expected losses under the calibrated probabilities."""
        old, fresh = self.calibrated(weights, new, tables)
        reference, reference_variance = _moments(old, self.table(self.statements))
        mean, variance = _moments(fresh, self.table(new))
        return ExpectedLoss(reference, mean, variance, reference_variance)

    def extremes(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest possible loss of each new row."""
        losses = self.table(new)
        return losses.min(axis=1), losses.max(axis=1)


def _moments(chances: np.ndarray, losses: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and variance of each row's loss."""
    mean = (chances * losses).sum(axis=1)
    return mean, (chances * (losses - mean[:, None]) ** 2).sum(axis=1)


def fit_map(probabilities: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_classes: int) -> Any:
    """A function from stated to calibrated probabilities: isotonic, class by class."""
    kept = weights > 0
    P, y, w = probabilities[kept], codes[kept], weights[kept]
    if n_classes == 2:
        binary = IsotonicCalibrator(inputs="scores").fit(P[:, 1], y == 1, w)

        def both(stated: np.ndarray) -> np.ndarray:
            p = np.asarray(binary.predict(stated[:, 1]))
            return np.column_stack([1.0 - p, p])

        return both
    several = OneVsRestCalibrator(classes=np.arange(n_classes)).fit(P, y, w)
    return lambda stated: np.asarray(several.predict(stated))


def _fit_classifier(inputs: np.ndarray, codes: np.ndarray, weights: np.ndarray, n_classes: int) -> Any:
    """A function from statements and features to probabilities of the labels, by boosted trees."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    present = np.unique(codes)
    if present.size == 1:
        return lambda rows: np.tile(np.arange(n_classes) == present[0], (len(rows), 1)).astype(np.float64)
    model = HistGradientBoostingClassifier(
        max_iter=40, max_leaf_nodes=8, l2_regularization=1.0, early_stopping=False, random_state=0
    ).fit(inputs, codes, sample_weight=weights)

    def chances(rows: np.ndarray) -> np.ndarray:
        table = np.zeros((len(rows), n_classes))
        table[:, model.classes_] = model.predict_proba(rows)
        return table

    return chances


class LossModel:
    """A regression of the loss on prediction and features (direct loss estimation).

    Parameters
    ----------
    prediction : array (n,)
        Point predictions of the reference.
    realised : array (n,)
        Their losses.
    folds : integer array (n,)
        Fold of each row.
    seed : int
        Seed of the learner.
    """

    def __init__(self, prediction: np.ndarray, realised: np.ndarray, folds: np.ndarray, seed: int) -> None:
        self.statements, self.realised, self.folds, self.seed = prediction, realised, folds, seed

    def expected(self, weights: np.ndarray, new: np.ndarray, tables: Tables = None) -> ExpectedLoss:
        """Expected losses; the variance of a new row is the mean one of the weighted reference."""
        old, fresh = (None, None) if tables is None else tables
        # Under covariate shift a regression needs no weights, only the correction by its residuals does (it
        # is doubly robust): few effective rows would make for a poor fit.
        fitted = self.fitted(old)
        spread = np.average((self.realised - fitted.reference) ** 2, weights=weights)
        expected = fitted.of(new, fresh)
        return ExpectedLoss(
            fitted.reference,
            expected,
            np.full(expected.size, spread),
            np.full(self.realised.size, spread),
        )

    def fitted(self, X: np.ndarray | None = None) -> Fitted:
        """The expected loss as a function of prediction and features."""
        inputs, reference, maps = _side_by_side(self.statements, X), np.empty(self.realised.size), []
        for inside in _each_fold(self.folds):
            maps.append(_fit_loss(inputs[~inside], self.realised[~inside], self.seed))
            reference[inside] = maps[-1](inputs[inside])
        return Fitted(reference, tuple(maps), _side_by_side)

    def pilot(self, tables: Sequence[LabelTable], X: np.ndarray | None) -> Pilot:
        """Expected losses by the unweighted reference, for any rows; there is one loss only."""
        fitted = self.fitted(X)
        return lambda new, X_new: fitted.of(new, X_new)[:, None]

    def extremes(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses of point predictions are at least 0 where all seen ones are, and have no upper end."""
        low = 0.0 if self.realised.min(initial=0.0) >= 0.0 else -np.inf
        return np.full(len(new), low), np.full(len(new), np.inf)


def _fit_loss(inputs: np.ndarray, losses: np.ndarray, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """The mean of boosted trees and of a linear model, a better forecast of losses than either of them.

    Trees stay at the level of the nearest rows where inputs move to the edge of what was seen; a scale of
    errors that grows with the inputs goes on in the linear model.
    """
    from sklearn.ensemble import HistGradientBoostingRegressor

    trees = HistGradientBoostingRegressor(
        max_iter=60, max_leaf_nodes=15, early_stopping=False, random_state=seed
    ).fit(inputs, losses)
    line = _fit_line(inputs, losses)
    return lambda rows: np.asarray((trees.predict(rows) + line(rows)) / 2.0)


def _fit_line(inputs: np.ndarray, losses: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """A ridge regression of the losses; of their roots, squared again, where none is negative.

    Inputs beyond those seen count as the nearest seen, missing ones as the mean.
    """
    from sklearn.linear_model import RidgeCV

    seen = ~np.isnan(inputs).all(axis=0)
    values = inputs[:, seen]
    low, high, centre = np.nanmin(values, axis=0), np.nanmax(values, axis=0), np.nanmean(values, axis=0)
    spread = np.nanstd(values, axis=0)
    spread[spread == 0.0] = 1.0

    def scaled(rows: np.ndarray) -> np.ndarray:
        return np.asarray(np.nan_to_num((np.clip(rows[:, seen], low, high) - centre) / spread))

    power = 2.0 if losses.min(initial=0.0) >= 0.0 else 1.0
    line = RidgeCV(_PENALTIES).fit(scaled(inputs), losses ** (1.0 / power))

    def shape(rows: np.ndarray) -> np.ndarray:
        found = np.asarray(line.predict(scaled(rows)))
        return found if power == 1.0 else np.maximum(found, 0.0) ** power

    # A squared mean of roots is smaller than the mean: both are to agree over the rows seen.
    ratio = 1.0 if power == 1.0 else losses.sum() / max(shape(inputs).sum(), np.finfo(float).tiny)
    return lambda rows: ratio * shape(rows)


def _each_fold(folds: np.ndarray) -> Iterator[np.ndarray]:
    for fold in range(int(folds.max()) + 1):
        yield folds == fold
