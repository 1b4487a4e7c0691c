"""What a loss may be: a name, a callable per row, a callable or scikit-learn scorer per batch.

Every named loss is an object ``loss(estimator, X, y) -> one value per row``. A callable may instead
return one number for the rows it is given (a batch loss); scikit-learn's scorers do, and are used as
they are: a score stays a score, higher is better.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier, is_outlier_detector

from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import check_fraction
from calipers.metrics.row_scores import (
    LOG_LOSS_FLOOR,
    absolute_error_rows,
    brier_rows,
    log_loss_rows,
    pinball_rows,
    squared_error_rows,
    stated_probability,
    zero_one_rows,
)

Loss = Callable[[Any, Any, Any], Any]


@dataclass(frozen=True)
class LogLoss:
    """Negative log-probability of the true label, or of the value itself for a density model.

    Parameters
    ----------
    floor : float
        Smallest probability counted. A label the model has not seen in training has probability 0
        and therefore costs ``-log(floor)``; the default is that of every log loss of the package, the
        rounding unit of float64: 36.04 in nats. Densities have no floor: they may exceed 1, and their
        logarithm is taken as the model gives it.

    Notes
    -----
    A model with ``score_samples`` that is neither a classifier nor an outlier detector is a density of X
    (``KernelDensity``, ``GaussianMixture``, ``PCA``): its loss is ``-score_samples(X)``, and y is not read.
    The ``predict_proba`` of a mixture states components, not labels, and is not read either.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from calipers.performance import LogLoss
    >>> model = DummyClassifier(strategy="prior").fit([[0], [0], [0], [0]], [0, 0, 0, 1])
    >>> LogLoss(floor=1e-3)(model, [[0], [0], [0]], [0, 1, 2]).round(3)
    array([0.288, 1.386, 6.908])
    """

    floor: float = LOG_LOSS_FLOOR

    def __post_init__(self) -> None:
        check_fraction(self.floor, name="floor", meaning="It is the smallest probability counted")

    def __call__(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """One value per row."""
        if is_density(estimator):
            return -np.asarray(estimator.score_samples(X), dtype=np.float64)
        return np.asarray(log_loss_rows(true_label_probability(estimator, X, y), floor=self.floor))


@dataclass(frozen=True)
class PinballLoss:
    """Loss of a predicted quantile: ``level`` times a shortfall, ``1 - level`` times an excess.

    Parameters
    ----------
    level : float
        Quantile that the model predicts; 0.5 gives half the absolute error.

    Examples
    --------
    >>> from sklearn.dummy import DummyRegressor
    >>> from calipers.performance import PinballLoss
    >>> model = DummyRegressor(strategy="constant", constant=2.0).fit([[0]], [0.0])
    >>> PinballLoss(0.9)(model, [[0], [0]], [3.0, 1.0])
    array([0.9, 0.1])
    """

    level: float = 0.5

    def __post_init__(self) -> None:
        check_fraction(self.level, name="level", meaning="It is the level of the predicted quantile")

    def __call__(self, estimator: Any, X: Any, y: Any) -> np.ndarray:
        """One value per row."""
        return np.asarray(pinball_rows(*_outcome_and_prediction(estimator, X, y), self.level))


def is_density(estimator: Any) -> bool:
    """Whether a model, fitted or not, states a log-density of rows and no probabilities of labels."""
    if not hasattr(estimator, "score_samples") or hasattr(estimator, "classes_"):
        return False
    try:
        return not is_classifier(estimator) and not is_outlier_detector(estimator)
    except AttributeError:  # no tags: not an estimator of scikit-learn
        return True


def true_label_probability(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Probability the model gives to each row's label; 0 for a label it has not seen."""
    if not hasattr(estimator, "predict_proba"):
        raise InputTypeError(
            "the log loss needs predict_proba, or score_samples with log-densities; "
            f"{type(estimator).__name__} has neither."
        )
    return _stated(estimator, np.asarray(estimator.predict_proba(X), dtype=np.float64), y)


def _stated(estimator: Any, probabilities: np.ndarray, y: Any) -> np.ndarray:
    column, known = _class_columns(estimator, y)
    return np.where(known, stated_probability(probabilities, column), 0.0)


def _class_columns(estimator: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    classes, labels = np.asarray(estimator.classes_), np.asarray(y)
    order = np.argsort(classes)
    at = order[np.minimum(np.searchsorted(classes, labels, sorter=order), classes.size - 1)]
    return at, np.asarray(classes[at] == labels)


def _outcome_and_prediction(estimator: Any, X: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
    target, predicted = np.asarray(y, dtype=np.float64), np.asarray(estimator.predict(X), dtype=np.float64)
    if target.shape != predicted.shape:
        raise InputError(
            f"predict must return an array shaped like y, got {predicted.shape} for {target.shape}."
        )
    return target, predicted


def _squared(estimator: Any, X: Any, y: Any) -> np.ndarray:
    return np.asarray(squared_error_rows(*_outcome_and_prediction(estimator, X, y)))


def _absolute(estimator: Any, X: Any, y: Any) -> np.ndarray:
    return np.asarray(absolute_error_rows(*_outcome_and_prediction(estimator, X, y)))


def _zero_one(estimator: Any, X: Any, y: Any) -> np.ndarray:
    return np.asarray(zero_one_rows(np.asarray(y), np.asarray(estimator.predict(X))))


def _brier(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """The Brier score of scikit-learn; a label the model has not seen was stated with probability 0."""
    table = np.asarray(estimator.predict_proba(X), dtype=np.float64)
    return np.asarray(brier_rows(table, _stated(estimator, table, y)))


def _hinge(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """``max(0, 1 - margin)``; the margin is that of Crammer and Singer with three or more classes."""
    decision = np.asarray(estimator.decision_function(X), dtype=np.float64)
    column, known = _class_columns(estimator, y)
    if decision.ndim == 1:
        margin = np.where(column == 1, decision, -decision)
    else:
        rows = np.arange(len(column))
        own = decision[rows, column]
        others = decision.copy()
        others[rows, column] = -np.inf
        margin = own - others.max(axis=1)
    # A label never seen in training has no decision value: no margin is small enough.
    return np.maximum(0.0, 1.0 - np.where(known, margin, -np.inf))


def _poisson(estimator: Any, X: Any, y: Any) -> np.ndarray:
    """Poisson deviance of a predicted mean."""
    from scipy.special import xlogy

    target, mean = _outcome_and_prediction(estimator, X, y)
    return np.asarray(2.0 * (xlogy(target, target / mean) - target + mean))


def _absolute_percentage(estimator: Any, X: Any, y: Any) -> np.ndarray:
    target, predicted = _outcome_and_prediction(estimator, X, y)
    return np.asarray(np.abs(target - predicted) / np.abs(target))


NAMED_LOSSES: dict[str, Loss] = {
    "squared": _squared,
    "absolute": _absolute,
    "absolute_percentage": _absolute_percentage,
    "pinball": PinballLoss(),
    "poisson": _poisson,
    "log": LogLoss(),
    "brier": _brier,
    "zero_one": _zero_one,
    "hinge": _hinge,
}


# What one row can lose at least and at most; a mean over a batch lies there too.
_NOT_NEGATIVE = (0.0, float("inf"))
_LIMITS: dict[Loss, tuple[float, float]] = {
    _squared: _NOT_NEGATIVE,
    _absolute: _NOT_NEGATIVE,
    _absolute_percentage: _NOT_NEGATIVE,
    _poisson: _NOT_NEGATIVE,
    _hinge: _NOT_NEGATIVE,
    _brier: (0.0, 2.0),
    _zero_one: (0.0, 1.0),
}


def loss_limits(loss: Loss, estimator: Any = None) -> tuple[float, float]:
    """The least and the most a loss of ours can be; infinite for callables, scorers and log-densities.

    Examples
    --------
    >>> from calipers.performance.losses import loss_limits, resolve_loss
    >>> loss_limits(resolve_loss("zero_one")), loss_limits(resolve_loss("absolute"))
    ((0.0, 1.0), (0.0, inf))
    """
    if isinstance(loss, LogLoss) and is_density(estimator):
        return -float("inf"), float("inf")
    if isinstance(loss, LogLoss):
        return 0.0, float(-np.log(loss.floor))
    if isinstance(loss, PinballLoss):
        return _NOT_NEGATIVE
    known = loss in _LIMITS if isinstance(loss, Hashable) else False
    return _LIMITS[loss] if known else (-float("inf"), float("inf"))


def resolve_loss(loss: str | Loss) -> Loss:
    """The callable behind a name of ours, of a scikit-learn scorer, or the callable itself.

    Examples
    --------
    >>> from calipers.performance.losses import resolve_loss
    >>> resolve_loss("pinball")
    PinballLoss(level=0.5)
    """
    if callable(loss):
        return loss
    if not isinstance(loss, str):
        raise InputTypeError(
            f"loss must be a name or a callable loss(estimator, X, y), got {type(loss).__name__}."
        )
    if loss in NAMED_LOSSES:
        return NAMED_LOSSES[loss]
    from sklearn.metrics import get_scorer, get_scorer_names

    if loss in get_scorer_names():
        scorer: Loss = get_scorer(loss)
        return scorer
    raise InputError(
        f"loss must be one of {', '.join(NAMED_LOSSES)}, a scikit-learn scorer's name (for batches), "
        f"or a callable, got {loss!r}."
    )


def is_scorer(loss: Loss) -> bool:
    """Whether the loss is a scikit-learn scorer: one number per batch, higher is better."""
    return hasattr(loss, "_score_func") and hasattr(loss, "_sign")
