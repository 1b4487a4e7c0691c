"""Interval predictors that stay silent where they are not sure enough, with certified misses elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.exceptions import NotFittedError

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inputs import check_intervals, check_same_length, check_vector
from calipers.metrics.selective import selective_risk, selective_threshold
from calipers.results import Curve

IntervalFunction = Callable[[np.ndarray], Any]


class SelectiveRegressor(MetaEstimatorMixin, BaseEstimator):
    """Intervals only where they are certified to miss with probability at most ``risk``.

    Rows that neither trained nor calibrated the predictor decide up to which width it may answer. With
    probability 1 - ``delta`` over them, answered new rows are missed with probability at most ``risk``.

    Parameters
    ----------
    predictor : object with predict_interval
        Fitted, such as a conformalised `calipers.conformal.ConformalRegressor`.
    risk : float
        Allowed share of missed outcomes, or allowed mean of ``loss``.
    delta : float
        Allowed probability that the certificate is wrong.
    alpha : float
        Level of the intervals that are asked for.
    certainty : callable or None
        Intervals (n, 2) -> certainty (n,), larger is more certain. None: minus the width.
    loss : callable or None
        ``loss(y, intervals)`` -> values (n,) inside ``loss_range``. None: 1 for a missed outcome.
    loss_range : (float, float)
        Smallest and largest possible loss.

    Attributes
    ----------
    certificate_ : Estimate
        What `calipers.metrics.selective_threshold` found: the certified share and its details.
    threshold_ : float
        Rows of at least this certainty are answered; inf when nothing could be certified.
    curve_ : Curve
        Risk against the share answered, with its band.

    See Also
    --------
    SelectiveClassifier : The same for labels.
    calipers.metrics.selective_threshold : The same for any loss and any certainty.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance import SelectiveRegressor
    >>> class Stated:  # half-widths that are too small where they are large
    ...     def predict_interval(self, X, alpha): return np.column_stack([-X[:, 0], X[:, 0]])
    >>> rng = np.random.default_rng(0)
    >>> X = rng.uniform(1, 3, (4000, 1))
    >>> y = rng.normal(0, X[:, 0] ** 2 / 2.5)
    >>> model = SelectiveRegressor(Stated(), risk=0.1).certify(X[:2000], y[:2000])
    >>> print(model.certificate_.details["sentence"])
    26.2 % of the rows, from certainty -3.04297 on, have an expected loss of at most 0.1 (seen: 0.0669)
    >>> found = model.predict_interval_or_abstain(X[2000:])
    >>> missed = np.abs(y[2000:]) > found[:, 1]
    >>> f"{1 - found.mask[:, 0].mean():.2f} answered, {missed.mean():.3f} of them missed"
    '0.26 answered, 0.063 of them missed'
    """

    def __init__(
        self,
        predictor: Any = None,
        *,
        risk: float = 0.05,
        delta: float = 0.05,
        alpha: float = 0.1,
        certainty: IntervalFunction | None = None,
        loss: Callable[[np.ndarray, np.ndarray], Any] | None = None,
        loss_range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.predictor = predictor
        self.risk = risk
        self.delta = delta
        self.alpha = alpha
        self.certainty = certainty
        self.loss = loss
        self.loss_range = loss_range

    def certify(self, X: Any, y: Any) -> Self:
        """Find the certainty from which intervals may be given, on rows the predictor has not seen.

        Parameters
        ----------
        X : table
            Features.
        y : array (n,)
            Outcomes.
        """
        intervals = self.predict_interval(X)
        outcome = np.asarray(as_numpy(check_vector(y, name="y")), dtype=np.float64)
        check_same_length(X=intervals, y=outcome)
        loss = _missed(outcome, intervals) if self.loss is None else self.loss(outcome, intervals)
        given = (loss, self._certainty_of(intervals))
        self.certificate_ = selective_threshold(
            *given, risk=self.risk, delta=self.delta, loss_range=self.loss_range
        )
        self.threshold_ = float(self.certificate_.details["threshold"])
        self.curve_: Curve = selective_risk(*given, loss_range=self.loss_range)
        return self

    def predict_interval(self, X: Any) -> np.ndarray:
        """The predictor's own intervals (n, 2), of all rows."""
        if not hasattr(self.predictor, "predict_interval"):
            raise InputError(
                f"predictor must have predict_interval, got {type(self.predictor).__name__}. "
                "Conformalise a regressor with calipers.conformal.ConformalRegressor."
            )
        found = self.predictor.predict_interval(X, alpha=self.alpha)
        return np.asarray(as_numpy(check_intervals(found)), dtype=np.float64)

    def is_answered(self, X: Any) -> np.ndarray:
        """Whether the interval of each row is certain enough to be given, bool (n,)."""
        return self._answered(self.predict_interval(X))

    def predict_interval_or_abstain(self, X: Any) -> np.ma.MaskedArray[Any, Any]:
        """Intervals (n, 2), both ends masked where the predictor stays silent."""
        intervals = self.predict_interval(X)
        silent = ~self._answered(intervals)
        return np.ma.MaskedArray(intervals, mask=np.column_stack([silent, silent]))

    def _answered(self, intervals: np.ndarray) -> np.ndarray:
        if not hasattr(self, "threshold_"):
            raise NotFittedError("This SelectiveRegressor is not certified: call certify.")
        return np.asarray(self._certainty_of(intervals) >= self.threshold_)

    def _certainty_of(self, intervals: np.ndarray) -> np.ndarray:
        if self.certainty is None:
            # Infinite intervals are the least certain ones.
            return np.asarray(-np.minimum(intervals[:, 1] - intervals[:, 0], np.finfo(np.float64).max))
        certainty = np.asarray(self.certainty(intervals), dtype=np.float64)
        if certainty.shape != (len(intervals),):
            raise InputError(
                f"certainty must give one number per row ({len(intervals)}), got {certainty.shape}."
            )
        return certainty


def _missed(y: np.ndarray, intervals: np.ndarray) -> np.ndarray:
    return np.asarray((y < intervals[:, 0]) | (y > intervals[:, 1]))
