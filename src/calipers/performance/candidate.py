"""One trained model: what will it lose on the next case? Section 3.1, Algorithm 1."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin

from calipers.arrays import RandomState, generator
from calipers.inputs import check_alpha
from calipers.performance.batches import batch_losses
from calipers.performance.fitting import seeded_clone
from calipers.performance.forecast import LossForecast
from calipers.performance.forecast_methods import LossAnswers
from calipers.performance.losses import Loss, loss_limits, resolve_loss
from calipers.performance.rows import check_rows
from calipers.performance.splitting import group_rows, split_candidate


class CandidatePerformance(LossAnswers, MetaEstimatorMixin, BaseEstimator):
    """Forecast of the loss that one trained model incurs on a new case.

    Splits the rows, trains once, and turns the losses on the other rows into an interval that holds the
    loss of the next case with probability at least 1 - alpha. Short and low is good; an end that is infinite,
    or the least or most the loss can be, means that there are too few calibration rows for this alpha, and
    ``guarantee_`` says how many it takes.

    Parameters
    ----------
    estimator : estimator
        Trained on the training rows. A ``FrozenEstimator`` (a model already trained elsewhere) is left
        as it is, and every row calibrates.
    loss : str or callable
        A name (squared, absolute, absolute_percentage, pinball, poisson, log, brier, zero_one, hinge), a
        callable ``loss(estimator, X, y)`` with one value per row or one per batch, or a scikit-learn scorer.
    alpha : float
        Allowed miscoverage.
    calibration_size : float or int
        Share or number of rows kept for calibration.
    points_per_loss : int
        Rows per loss: the forecast is then for a new batch of that many rows (section 3.3), for a loss per
        row its mean.
    tight : bool
        Use the tighter lower rank where ``(n + 1) alpha / 2`` is an integer (see `conformal_interval`).
    random_state : RandomState
        Order of the rows, and the estimator's own random state where that is None.

    Attributes
    ----------
    losses_ : ndarray of shape (n,)
        Calibration losses.
    guarantee_ : str
        What holds, with which n, exactly how often, in one sentence.
    estimator_ : estimator
        The trained model the forecast is about.
    train_rows_, evaluation_rows_ : int arrays (m,) and (n, points_per_loss)
        Rows used for either.

    Notes
    -----
    Theorem 5: coverage is (upper rank - lower rank)/(n + 1) for distinct losses, at most 1 - alpha + 2/(n+1),
    for any algorithm and loss; only the calibration rows and the new case need be exchangeable. One fit.

    References
    ----------
    .. [1] Holland (2020), Making learning more transparent using conformalized performance prediction.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.linear_model import Ridge
    >>> from calipers.performance import CandidatePerformance
    >>> X, y = load_diabetes(return_X_y=True)
    >>> forecast = CandidatePerformance(Ridge(), loss="absolute", random_state=0).fit(X, y)
    >>> low, high = forecast.interval()
    >>> print(f"[{low:.0f}, {high:.0f}] from {forecast.losses_.size} losses")
    [4, 109] from 221 losses
    """

    def __init__(
        self,
        estimator: Any,
        *,
        loss: str | Loss,
        alpha: Any = 0.1,
        calibration_size: float | int = 0.5,
        points_per_loss: int = 1,
        tight: bool = False,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.loss = loss
        self.alpha = alpha
        self.calibration_size = calibration_size
        self.points_per_loss = points_per_loss
        self.tight = tight
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> CandidatePerformance:
        """Train on one part of the rows, calibrate on the other.

        Raises
        ------
        InputError
            When lengths differ, alpha is not in (0, 1), either part would be empty, or a loss is NaN.
        """
        check_alpha(self.alpha)
        loss, rows = resolve_loss(self.loss), check_rows(X, y)
        draws = generator(self.random_state)
        if is_frozen(self.estimator):
            order = draws.permutation(len(rows))
            self.train_rows_, self.evaluation_rows_ = order[:0], group_rows(order, self.points_per_loss)
            self.estimator_ = self.estimator
        else:
            self.train_rows_, self.evaluation_rows_ = split_candidate(
                len(rows), self.calibration_size, self.points_per_loss, draws
            )
            train = rows.take(self.train_rows_)
            model = seeded_clone(self.estimator, int(draws.integers(2**31 - 1)))
            fitted = model.fit(train.X) if train.y is None else model.fit(train.X, train.y)
            self.estimator_ = model if fitted is None else fitted
        calibration = rows.take(self.evaluation_rows_)
        losses = batch_losses(loss, self.estimator_, calibration, self.points_per_loss)
        self.forecast_ = self._forecast(losses, loss_limits(loss, self.estimator))
        return self

    def _forecast(self, losses: np.ndarray, limits: tuple[float, float]) -> LossForecast:
        b = self.points_per_loss
        case = "one new row" if b == 1 else f"a new batch of {b} rows"
        return LossForecast(
            losses,
            self.alpha,
            tight=self.tight,
            target=f"the loss of this trained model on {case}",
            condition="the condition is that new rows are exchangeable with the calibration rows",
            rows_per_loss=b,
            limits=limits,
        )


def is_frozen(estimator: Any) -> bool:
    """Whether the estimator is a model trained elsewhere, wrapped in scikit-learn's FrozenEstimator."""
    from sklearn.frozen import FrozenEstimator

    return isinstance(estimator, FrozenEstimator)
