"""A classifier with calibrated probabilities: any model, any calibrator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.utils import assert_all_finite, get_tags
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from calipers.arrays import RandomState, generator
from calipers.calibration.calibrator import BinaryCalibrator
from calipers.calibration.isotonic import IsotonicCalibrator
from calipers.calibration.isotron import drop_weightless
from calipers.calibration.multiclass import OneVsRestCalibrator
from calipers.calibration.weighted_fit import fit_weighted
from calipers.exceptions import InputError


class CalibratedClassifier(ClassifierMixin, BaseEstimator):
    """A model whose probabilities pass through a calibrator.

    Parameters
    ----------
    estimator : classifier or None
        The model; logistic regression by default. Without ``predict_proba`` its ``decision_function`` is used
        (two classes).
    calibrator : calibrator or None
        `IsotonicCalibrator` by default; a binary one is used per class when there are more than two.
    calibration_size : float or None
        None: the model is fitted already and every row given to ``fit`` calibrates it (wrap the model in
        scikit-learn's ``FrozenEstimator`` where this object will be cloned). A share in (0, 1): ``fit``
        trains on the others and calibrates on that share.
    random_state : int, Generator or None
        Source of the split.

    Attributes
    ----------
    classes_ : array (K,)
        The labels, in column order.
    estimator_ : classifier
        The fitted model.
    calibrator_ : calibrator
        The fitted calibrator.

    Examples
    --------
    >>> from sklearn.datasets import make_classification
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from calipers.calibration import CalibratedClassifier
    >>> X, y = make_classification(2000, random_state=0)
    >>> model = GaussianNB().fit(X[:1000], y[:1000])
    >>> CalibratedClassifier(model).fit(X[1000:], y[1000:]).predict_proba(X[:3]).shape
    (3, 2)
    """

    def __init__(
        self,
        estimator: Any = None,
        calibrator: Any = None,
        *,
        calibration_size: float | None = None,
        random_state: RandomState = None,
    ) -> None:
        self.estimator = estimator
        self.calibrator = calibrator
        self.calibration_size = calibration_size
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Calibrate the fitted model on (X, y), or train and calibrate on two parts of it.

        Parameters
        ----------
        X : table
            What the model takes.
        y : array (n,)
            Labels.
        sample_weight : array (n,), optional
            Repetitions of the rows, or importance weights, for the calibrator and for a model that is trained
            here; a model whose ``fit`` takes none is trained without them, with a warning. A row of weight 0
            is not there.

        Returns
        -------
        CalibratedClassifier
            Itself.
        """
        if y is None:
            raise InputError("CalibratedClassifier requires y to be passed, but the target y is None.")
        labels = np.asarray(y)
        assert_all_finite(labels, input_name="y")
        X, labels, weights = drop_weightless(X, labels, sample_weight)
        if self.calibration_size is None:
            self._use_fitted_model()
            X_part, y_part = X, labels
        else:
            X_part, y_part, weights = self._train(X, labels, weights)
        self.classes_ = np.asarray(self.estimator_.classes_)
        if hasattr(self.estimator_, "n_features_in_"):
            self.n_features_in_ = self.estimator_.n_features_in_
        stated, from_scores = self._stated(X_part)
        self.calibrator_ = self._make_calibrator(from_scores)
        if self.classes_.size == 2:
            self.calibrator_.fit(stated, (y_part == self.classes_[1]).astype(np.int64), weights)
        else:
            self.calibrator_.set_params(classes=self.classes_).fit(stated, y_part, weights)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, K): calibrated probability of each class."""
        check_is_fitted(self)
        after = np.asarray(self.calibrator_.predict(self._stated(X)[0]))
        return after if after.ndim == 2 else np.stack([1 - after, after], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the largest calibrated probability; the first one of equals."""
        columns = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[columns])

    def _use_fitted_model(self) -> None:
        if self.estimator is None:
            raise InputError(
                "estimator must be a fitted model when calibration_size is None. "
                "Pass one, or set calibration_size (0.25, say) to train and calibrate at once."
            )
        check_is_fitted(self.estimator)
        self.estimator_ = self.estimator

    def _train(
        self, X: Any, labels: np.ndarray, weights: np.ndarray | None
    ) -> tuple[Any, np.ndarray, np.ndarray | None]:
        check_classification_targets(labels)
        if not (isinstance(self.calibration_size, float) and 0 < self.calibration_size < 1):
            raise InputError(
                "calibration_size must be None or lie strictly between 0 and 1, "
                f"got {self.calibration_size!r}."
            )
        model = LogisticRegression(max_iter=1000) if self.estimator is None else clone(self.estimator)
        seed = int(generator(self.random_state).integers(2**31 - 1))
        smallest = np.unique(labels, return_counts=True)[1].min(initial=len(labels))
        X_train, X_part, y_train, y_part, *own = train_test_split(
            X,
            labels,
            *([] if weights is None else [weights]),
            test_size=self.calibration_size,
            random_state=seed,
            stratify=labels if smallest > 1 else None,
        )
        w_train, w_part = own or (None, None)
        self.estimator_ = fit_weighted(model, X_train, y_train, w_train)
        return X_part, y_part, w_part

    def _stated(self, X: Any) -> tuple[np.ndarray, bool]:
        """(n,) or (n, K) of the model, and whether they are scores rather than probabilities."""
        model = self.estimator_
        if hasattr(model, "predict_proba"):
            stated = np.asarray(model.predict_proba(X), dtype=np.float64)
            return (stated[:, 1] if stated.shape[1] == 2 else stated), False
        if not hasattr(model, "decision_function"):
            raise InputError(
                f"estimator must have predict_proba or decision_function, {type(model).__name__} has neither."
            )
        scores = np.asarray(model.decision_function(X), dtype=np.float64)
        if scores.ndim > 1:
            raise InputError("a model without predict_proba can only be calibrated for two classes.")
        return scores, True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # What the model takes; the default one takes sparse matrices too.
        model = LogisticRegression() if self.estimator is None else self.estimator
        tags.input_tags.sparse = get_tags(model).input_tags.sparse
        return tags

    def _make_calibrator(self, from_scores: bool) -> Any:
        calibrator = IsotonicCalibrator() if self.calibrator is None else clone(self.calibrator)
        if from_scores:
            calibrator.set_params(inputs="scores")
        if self.classes_.size > 2 and isinstance(calibrator, BinaryCalibrator):
            return OneVsRestCalibrator(calibrator)
        return calibrator
