"""A classifier that stays silent where it is not sure enough, with a certified error where it answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.utils import _safe_indexing
from sklearn.utils.validation import _num_samples, check_is_fitted

from calipers.arrays import RandomState, as_numpy, generator
from calipers.exceptions import InputError
from calipers.inputs import check_fraction
from calipers.metrics.selective import selective_risk, selective_threshold
from calipers.results import Curve

CERTAINTIES: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "top_probability": lambda P: P.max(axis=1),
    "margin": lambda P: np.diff(np.partition(P, -2, axis=1)[:, -2:], axis=1)[:, 0],
    "negative_entropy": lambda P: np.where(P > 0, P * np.log(np.where(P > 0, P, 1.0)), 0.0).sum(axis=1),
}


class SelectiveClassifier(ClassifierMixin, MetaEstimatorMixin, BaseEstimator):
    """A classifier that answers only where its error is certified to be at most ``risk``.

    Rows the model was not trained on decide from which certainty on it may answer. With probability
    1 - ``delta`` over them, answered new rows are wrong with probability at most ``risk``.

    Parameters
    ----------
    estimator : classifier with predict_proba
        Trained by `fit`; a fitted one is wrapped in ``sklearn.frozen.FrozenEstimator``.
    risk : float
        Allowed share of wrong answers.
    delta : float
        Allowed probability that the certificate is wrong.
    certainty : {"top_probability", "margin", "negative_entropy"} or callable
        What decides which rows are answered; a function takes probabilities (n, K) and gives (n,).
    calibration_size : float or None
        Share of the rows that `fit` keeps back for the certificate. None: `certify` is called with rows of
        its own.
    random_state : RandomState
        The split.

    Attributes
    ----------
    certificate_ : Estimate
        What `calipers.metrics.selective_threshold` found: the certified share and its details.
    threshold_ : float
        Rows of at least this certainty are answered; inf when nothing could be certified.
    curve_ : Curve
        Error against the share answered, with its band.
    classes_ : array (K,)
        Labels.

    See Also
    --------
    calipers.metrics.selective_threshold : The same for any loss and any certainty.
    calipers.conformal.ConformalClassifier : Answers with several labels instead of none.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.linear_model import LogisticRegression
    >>> from calipers.performance import SelectiveClassifier
    >>> X, y = make_classification(4000, flip_y=0.05, random_state=6)
    >>> model = SelectiveClassifier(LogisticRegression(), risk=0.1, calibration_size=0.5, random_state=1)
    >>> answers = model.fit(X[:3000], y[:3000]).predict_or_abstain(X[3000:])
    >>> f"{1 - answers.mask.mean():.2f} answered, {(answers != y[3000:]).mean():.3f} of them wrong"
    '0.92 answered, 0.081 of them wrong'
    """

    def __init__(
        self,
        estimator: Any = None,
        *,
        risk: float = 0.05,
        delta: float = 0.05,
        certainty: Any = "top_probability",
        calibration_size: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.risk = risk
        self.delta = delta
        self.certainty = certainty
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train the model; with a ``calibration_size`` on part of the rows, and certify on the rest."""
        check_fraction(self.risk, name="risk")
        self._certainty_of()
        if self.calibration_size is None:
            self._train(X, y)
            return self
        n = _num_samples(X)
        count = round(n * check_fraction(self.calibration_size, name="calibration_size"))
        if not 0 < count < n:
            raise InputError(f"calibration_size={self.calibration_size} leaves {count} of {n} rows.")
        order = generator(self.random_state).permutation(n)
        train, held_out = np.sort(order[count:]), np.sort(order[:count])
        self._train(_safe_indexing(X, train), _safe_indexing(y, train))
        return self.certify(_safe_indexing(X, held_out), _safe_indexing(y, held_out))

    def certify(self, X: Any, y: Any) -> Self:
        """Find the certainty from which the model may answer, on rows it was not trained on.

        Parameters
        ----------
        X : table
            Features.
        y : array (n,)
            Labels.
        """
        wrong = np.asarray(self._model().predict(X)) != as_numpy(y, name="y")
        certainty = self.predict_certainty(X)
        self.certificate_ = selective_threshold(wrong, certainty, risk=self.risk, delta=self.delta)
        self.threshold_ = float(self.certificate_.details["threshold"])
        self.curve_: Curve = selective_risk(wrong, certainty)
        return self

    def predict(self, X: Any) -> Any:
        """The model's own labels, of all rows."""
        return self._model().predict(X)

    def predict_proba(self, X: Any) -> Any:
        """The model's own probabilities."""
        return self._model().predict_proba(X)

    def predict_certainty(self, X: Any) -> np.ndarray:
        """Certainty of every row; larger is more certain."""
        P = np.asarray(as_numpy(self._model().predict_proba(X)), dtype=np.float64)
        certainty = np.asarray(self._certainty_of()(P), dtype=np.float64)
        if certainty.shape != (len(P),):
            raise InputError(f"certainty must give one number per row ({len(P)}), got {certainty.shape}.")
        return certainty

    def is_answered(self, X: Any) -> np.ndarray:
        """Whether each row is certain enough to be answered, bool (n,)."""
        check_is_fitted(self, "threshold_", msg="This SelectiveClassifier is not certified: call certify.")
        return np.asarray(self.predict_certainty(X) >= self.threshold_)

    def predict_or_abstain(self, X: Any) -> np.ma.MaskedArray[Any, Any]:
        """Labels, masked where the model stays silent.

        Returns
        -------
        masked array (n,)
            ``.mask`` tells the rows without an answer, ``.compressed()`` gives the answers alone and
            ``.filled(label)`` puts a label of your own in place of silence.
        """
        return np.ma.MaskedArray(self.predict(X), mask=~self.is_answered(X))

    def _train(self, X: Any, y: Any) -> None:
        if self.estimator is None:
            raise InputError("estimator must be a classifier with predict_proba, got None.")
        for name in ("certificate_", "threshold_", "curve_"):
            if hasattr(self, name):
                delattr(self, name)
        self.estimator_ = clone(self.estimator).fit(X, y)
        self.classes_ = self.estimator_.classes_

    def _model(self) -> Any:
        if hasattr(self, "estimator_"):
            return self.estimator_
        if isinstance(self.estimator, FrozenEstimator):
            self.classes_ = self.estimator.classes_
            return self.estimator
        raise NotFittedError(
            "This SelectiveClassifier is not fitted yet: call fit first, "
            "or wrap a fitted model in sklearn.frozen.FrozenEstimator."
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "estimator_") or isinstance(self.estimator, FrozenEstimator)

    def _certainty_of(self) -> Callable[[np.ndarray], np.ndarray]:
        if callable(self.certainty):
            return self.certainty  # type: ignore[no-any-return]
        if self.certainty not in CERTAINTIES:
            told = ", ".join(CERTAINTIES)
            raise InputError(f"certainty must be one of {told} or a function, got {self.certainty!r}.")
        return CERTAINTIES[self.certainty]
