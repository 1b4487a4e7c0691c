"""Expected losses before the outcomes are known: from calibrated probabilities, or from a model of the loss.

Every model is fitted on all reference rows for new rows, and fold by fold for the reference, so that a
reference row's expected loss comes from rows other than itself: the mean of realised minus expected loss is
then an honest correction.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy import optimize
from scipy.special import expit

from calipers.calibration import IsotonicCalibrator, OneVsRestCalibrator
from calipers.inference.logistic import clipped_log_odds, fit_logistic
from calipers.performance.covariate_shift import Comparison
from calipers.performance.label_losses import LabelTable

FOLDS = 5
# Prior precision of a standardised feature's effect on the log-odds: what the statement misses is little.
_FEATURE_PRECISION = 10.0
_PENALTIES = np.geomspace(0.01, 10_000.0, 13)
# Features of the reference and of the new rows, as numbers with common codes.
Tables = tuple[np.ndarray, np.ndarray] | None
# Statements and features of some rows -> what a fitted function takes.
Joins = Callable[[np.ndarray, np.ndarray | None], np.ndarray]
# Inputs and targets of some rows -> the function learned from them.
Learner = Callable[[np.ndarray, np.ndarray], Callable[[np.ndarray], np.ndarray]]
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
    """A function of statements and features, and what it would be at rows it has not seen.

    Parameters
    ----------
    reference : array
        Values at the reference rows, each by a function of the other folds.
    function : function
        Fitted on all of them, for other rows.
    joins : function
        Makes its input from statements and features.
    """

    reference: np.ndarray
    function: Callable[[np.ndarray], np.ndarray]
    joins: Joins

    def of(self, new: np.ndarray, X: np.ndarray | None) -> np.ndarray:
        """Values at new rows."""
        return self.function(self.joins(new, X))


def cross_fitted(
    fit: Learner, inputs: np.ndarray, target: np.ndarray, folds: np.ndarray, joins: Joins
) -> Fitted:
    """What is learned from all rows, and from all but those of each fold."""
    function = fit(inputs, target)
    reference = np.empty_like(function(inputs))
    for fold in range(int(folds.max()) + 1):
        inside = folds == fold
        reference[inside] = fit(inputs[~inside], target[~inside])(inputs[inside])
    return Fitted(reference, function, joins)


@dataclass(frozen=True, slots=True)
class Mixture:
    """Several fitted functions, mixed.

    Parameters
    ----------
    reference : array
        Values at the reference rows.
    parts : tuple of (share, Fitted)
        Shares add up to 1.
    """

    reference: np.ndarray
    parts: tuple[tuple[float, Fitted], ...]

    def of(self, new: np.ndarray, X: np.ndarray | None) -> np.ndarray:
        """Values at new rows."""
        total = np.zeros(1)
        for share, fitted in self.parts:
            total = total + share * fitted.of(new, X)
        return total


def mixture(found: Sequence[Fitted], truth: np.ndarray) -> Mixture:
    """The convex mixture with the smallest mean squared error at the reference rows, out of fold."""
    errors = np.column_stack([np.ravel(fitted.reference - truth) for fitted in found])
    triangle = np.linalg.qr(errors / (np.abs(errors).max() or 1.0), mode="r")
    # The error grows with the shares, so that their sum is settled by one more equation and then set to 1.
    shares, _ = optimize.nnls(np.vstack([triangle, np.ones(len(found))]), np.r_[np.zeros(len(triangle)), 1.0])
    shares = shares / shares.sum()
    parts = tuple((float(share), fitted) for share, fitted in zip(shares, found, strict=True) if share > 0.0)
    return Mixture(sum((share * fitted.reference for share, fitted in parts), np.zeros(1)), parts)


def _statements_alone(statements: np.ndarray, X: np.ndarray | None) -> np.ndarray:
    return statements


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

    def calibrated(self, new: np.ndarray, designs: Tables = None) -> tuple[np.ndarray, np.ndarray]:
        """Calibrated probabilities of reference rows, each by the other folds, and of new rows."""
        if not self._last or self._last[0] is not new:
            fitted = self.fitted(None if designs is None else designs[0])
            made = fitted.reference, fitted.of(new, None if designs is None else designs[1])
            self._last[:] = [new, made]
        calibrated: tuple[np.ndarray, np.ndarray] = self._last[1]
        return calibrated

    def fitted(self, X: np.ndarray | None = None) -> Mixture:
        """The calibrated probabilities as a function of statements and features.

        An isotonic map and a logistic one of the statements, with features also a logistic one of both, are
        mixed so that the Brier score out of fold is smallest. None is weighted: the law of the label given
        statement and features is the same before and after a covariate shift, and weights would leave few
        effective rows to learn it from. Stronger learners estimate each row better and their mean worse: what
        they miss of the spread of the probabilities is a bias of every loss.
        """
        n_classes = self.statements.shape[1]
        kinds: list[tuple[Any, Joins]] = [(fit_map, _statements_alone), (fit_log_odds, _statements_alone)]
        if X is not None:
            kinds.append((fit_log_odds, _side_by_side))
        found = [
            cross_fitted(
                partial(fit, n_classes=n_classes), joins(self.statements, X), self.codes, self.folds, joins
            )
            for fit, joins in kinds
        ]
        return mixture(found, self.codes[:, None] == np.arange(n_classes))

    def pilot(self, tables: Sequence[LabelTable], X: np.ndarray | None) -> Pilot:
        """Expected losses by the statements alone, a column per table of losses, for any rows."""
        fitted = self.fitted()

        def losses(new: np.ndarray, X_new: np.ndarray | None) -> np.ndarray:
            chances, found = fitted.of(new, None), np.empty((len(new), len(tables)))
            for column, table in enumerate(tables):
                found[:, column] = (chances * table(new)).sum(axis=1)
            return found

        return losses

    def expected(self, compared: Comparison, new: np.ndarray) -> ExpectedLoss:
        """Expected losses under the calibrated probabilities."""
        old, fresh = self.calibrated(new, compared.designs())
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


def fit_map(probabilities: np.ndarray, codes: np.ndarray, n_classes: int) -> Any:
    """A function from stated to calibrated probabilities: isotonic, class by class."""
    if n_classes == 2:
        binary = IsotonicCalibrator(inputs="scores").fit(probabilities[:, 1], codes == 1)

        def both(stated: np.ndarray) -> np.ndarray:
            p = np.asarray(binary.predict(stated[:, 1]))
            return np.column_stack([1.0 - p, p])

        return both
    several = OneVsRestCalibrator(classes=np.arange(n_classes)).fit(probabilities, codes)
    return lambda stated: np.asarray(several.predict(stated))


def fit_log_odds(inputs: np.ndarray, codes: np.ndarray, n_classes: int) -> Any:
    """A function from statements, and features where there are some, to probabilities: linear log-odds.

    Class by class, with a Gaussian prior around what is stated: intercept 0, slope 1, features 0.
    """
    first = 1 if n_classes == 2 else 0
    n, d = inputs.shape[0], inputs.shape[1] - n_classes
    centre, ridge = np.r_[0.0, 1.0, np.zeros(d)], np.r_[1.0, 1.0, np.full(d, _FEATURE_PRECISION)] / n

    def design(rows: np.ndarray, k: int) -> np.ndarray:
        return np.column_stack([np.ones(len(rows)), clipped_log_odds(rows[:, k], 1e-6), rows[:, n_classes:]])

    fits = [
        fit_logistic(design(inputs, k), (codes == k).astype(float), start=centre, ridge=ridge).coefficients
        for k in range(first, n_classes)
    ]

    def chances(rows: np.ndarray) -> np.ndarray:
        p = expit(np.column_stack([design(rows, first + at) @ fit for at, fit in enumerate(fits)]))
        return np.column_stack([1.0 - p, p]) if first else p / p.sum(axis=1, keepdims=True)

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

    def expected(self, compared: Comparison, new: np.ndarray) -> ExpectedLoss:
        """Expected losses; the variance of a new row is the mean one of the weighted reference."""
        old, fresh = compared.tables() or (None, None)
        # Under covariate shift a regression needs no weights, only the correction by its residuals does (it
        # is doubly robust): few effective rows would make for a poor fit.
        fitted = self.fitted(old)
        spread = np.average((self.realised - fitted.reference) ** 2, weights=compared.weights)
        expected = fitted.of(new, fresh)
        return ExpectedLoss(
            fitted.reference,
            expected,
            np.full(expected.size, spread),
            np.full(self.realised.size, spread),
        )

    def fitted(self, X: np.ndarray | None = None) -> Mixture:
        """The expected loss as a function of prediction and features: boosted trees and a line, mixed.

        Trees stay at the level of the nearest rows where inputs move to the edge of what was seen; a scale of
        errors that grows with the inputs goes on in the line.
        """
        inputs = _side_by_side(self.statements, X)
        learners = (partial(_fit_trees, seed=self.seed), _fit_line)
        found = [cross_fitted(fit, inputs, self.realised, self.folds, _side_by_side) for fit in learners]
        return mixture(found, self.realised)

    def pilot(self, tables: Sequence[LabelTable], X: np.ndarray | None) -> Pilot:
        """Expected losses by the unweighted reference, for any rows; there is one loss only."""
        fitted = self.fitted(X)
        return lambda new, X_new: fitted.of(new, X_new)[:, None]

    def extremes(self, new: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Losses of point predictions are at least 0 where all seen ones are, and have no upper end."""
        low = 0.0 if self.realised.min(initial=0.0) >= 0.0 else -np.inf
        return np.full(len(new), low), np.full(len(new), np.inf)


def _fit_trees(inputs: np.ndarray, losses: np.ndarray, seed: int) -> Callable[[np.ndarray], np.ndarray]:
    """Boosted trees of the losses."""
    from sklearn.ensemble import HistGradientBoostingRegressor

    model = HistGradientBoostingRegressor(early_stopping=False, random_state=seed).fit(inputs, losses)
    return lambda rows: np.asarray(model.predict(rows))


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
