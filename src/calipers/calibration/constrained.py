"""Learning under the constraint of calibration: min L(f) subject to c_emp(f) = 0."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.validation import check_is_fitted, validate_data

from calipers.arrays import RandomState, generator
from calipers.calibration.isotonic import IsotonicCalibrator
from calipers.calibration.isotron import check_two_classes, drop_weightless
from calipers.calibration.weighted_fit import fit_weighted
from calipers.exceptions import InputError
from calipers.inputs import check_confidence
from calipers.metrics.reliability import (
    in_sample_isotonic_bound,
    uniform_convergence_width,
    warn_if_unverifiable_in_sample,
)
from calipers.results import Estimate

LOSSES = ("hinge", "squared_hinge", "log", "squared")


class CalibrationConstrainedClassifier(ClassifierMixin, BaseEstimator):
    """Any loss for the order, isotonic regression for the probabilities: min L(f) s.t. c_emp(f) = 0.

    Large-margin losses rank well and say nothing about probabilities. Here a score is learned under the loss,
    and isotonic regression on the same rows maps it to probabilities with calibration error 0 there.

    Parameters
    ----------
    loss : {"hinge", "squared_hinge", "log", "squared"}
        Loss of the linear score, on features scaled to unit spread.
    estimator : estimator or None
        Another score learner (with ``decision_function`` or ``predict_proba``); ``loss`` and ``C`` are then
        unused.
    C : float
        Inverse strength of the ridge penalty, as in scikit-learn.
    calibration_size : float or None
        None: isotonic regression sees the rows the score was learned on. A share in (0, 1): that share is
        kept for it, and the certificate no longer depends on what the score could have been.
    confidence : float
        Level of the certificate.
    random_state : int, Generator or None
        Source of the split and of the solver's order.

    Attributes
    ----------
    classes_ : array (2,)
        The labels; the second is the positive one.
    estimator_ : estimator
        The fitted score learner.
    calibrator_ : IsotonicCalibrator
        The map from scores to probabilities.
    certificate_ : Estimate
        ``value``: c_emp on the calibration rows, 0. ``high``: bound on the population error at
        ``confidence``.

    Notes
    -----
    c_emp(f) = 0 exactly when every level set of f has its value as mean label. So a feasible f is a partition
    with its cell means; the constant and the memorised labels are both feasible, and the constraint is only
    useful with an order of low complexity. That is why the order is learned under the loss first.

    Certificate with ``calibration_size``: 4 sqrt(ln(2 / delta) / (2 n)) over the kept rows, for any
    learner. Without it: Theorem 2 of [1]_ with the corrected constant over all monotone functions of linear
    scores; a slab of d features cuts n rows in at most (e n / (d + 1))^(2 (d + 1)) ways. That bound exceeds
    1, and says nothing, until n is some hundreds of times d. With fewer rows than features nothing can be
    verified on them (Claim 2), and a warning says so. The measured population error is usually far below
    both.

    References
    ----------
    .. [1] Gao, Parameswaran and Peng (2017), On the interpretability of conditional probability estimates
       in the agnostic setting, Section 3.2.2. AISTATS.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.calibration import CalibrationConstrainedClassifier
    >>> from calipers.metrics import calibration_error
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3))
    >>> y = rng.random(1000) < 1 / (1 + np.exp(-X[:, 0]))
    >>> model = CalibrationConstrainedClassifier("hinge", random_state=0).fit(X, y)
    >>> float(calibration_error(y, model.predict_proba(X)[:, 1], random_state=0)) < 1e-12
    True
    """

    def __init__(
        self,
        loss: str = "hinge",
        *,
        estimator: Any = None,
        C: float = 1.0,
        calibration_size: float | None = None,
        confidence: float = 0.95,
        random_state: RandomState = None,
    ) -> None:
        self.loss = loss
        self.estimator = estimator
        self.C = C
        self.calibration_size = calibration_size
        self.confidence = confidence
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn the score, then map it to probabilities.

        Parameters
        ----------
        X : array (n, d), or what ``estimator`` takes
            Features.
        y : array (n,)
            Two labels.
        sample_weight : array (n,), optional
            Repetitions of the rows, or importance weights, for the loss and for c_emp = 0; a row of weight 0
            is not there. With unequal weights there is no certificate. An ``estimator`` whose ``fit`` takes
            no weights is trained without them, with a warning.

        Returns
        -------
        CalibrationConstrainedClassifier
            Itself.
        """
        check_confidence(self.confidence)
        if self.estimator is None:
            X, y = validate_data(self, X, y, dtype=np.float64)
        else:  # the learner checks its own features, which may be a frame
            y = np.asarray(y)
        X, y, weights = drop_weightless(X, y, sample_weight)
        self.classes_, positive = check_two_classes(y)
        rng = generator(self.random_state)
        learn, calibrate = self._split(positive, rng)
        seed = int(rng.integers(2**31 - 1))
        model = score_learner(self.loss, self.C, seed) if self.estimator is None else clone(self.estimator)
        own = None if weights is None else (weights[learn], weights[calibrate])
        self.estimator_ = fit_weighted(model, _rows(X, learn), y[learn], None if own is None else own[0])
        scores = linear_scores(self.estimator_, _rows(X, calibrate))
        self.calibrator_ = IsotonicCalibrator(inputs="scores").fit(
            scores, positive[calibrate] == 1, None if own is None else own[1]
        )
        self.certificate_ = self._certificate(len(calibrate), np.shape(X)[1], None if own is None else own[1])
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """(n, 2): probability of each class."""
        check_is_fitted(self)
        if self.estimator is None:
            X = validate_data(self, X, dtype=np.float64, reset=False)
        positive = np.asarray(self.calibrator_.predict(linear_scores(self.estimator_, X)))
        return np.stack([1 - positive, positive], axis=1)

    def predict(self, X: Any) -> np.ndarray:
        """The class of the larger probability; the first one when both are one half."""
        columns = np.argmax(self.predict_proba(X), axis=1)
        return np.asarray(self.classes_[columns])

    def _split(self, positive: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        rows = np.arange(positive.size)
        if self.calibration_size is None:
            return rows, rows
        if not 0 < self.calibration_size < 1:
            raise InputError(
                "calibration_size must be None or lie strictly between 0 and 1, "
                f"got {self.calibration_size!r}."
            )
        parts = train_test_split(
            rows,
            test_size=self.calibration_size,
            stratify=positive,
            random_state=int(rng.integers(2**31 - 1)),
        )
        return parts[0], parts[1]

    def _certificate(self, n: int, n_features: int, weights: np.ndarray | None) -> Estimate:
        name = "population calibration error"
        if weights is not None and not (weights == weights[0]).all():
            reason = "unequal weights: the bounds are for rows that count alike"
            return Estimate(name=name, value=0.0, n=n, reason=reason)
        if self.calibration_size is not None:
            high = in_sample_isotonic_bound(n, confidence=self.confidence)
            return _bound(name, high, n, self.confidence, "in-sample bound of isotonic regression")
        if self.estimator is not None:
            reason = (
                "the learner saw the calibration rows and its class is unknown; set calibration_size "
                "for a bound that holds for any learner"
            )
            return Estimate(name=name, value=0.0, n=n, reason=reason)
        warn_if_unverifiable_in_sample(n, n_features)
        width = uniform_convergence_width(n, slab_rademacher(n, n_features), confidence=self.confidence)
        return _bound(name, width, n, self.confidence, "Theorem 2, corrected, over linear slabs")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags


def _bound(name: str, high: float, n: int, confidence: float, method: str) -> Estimate:
    reason = (
        "" if high < 1 else "the bound exceeds 1 and says nothing: more rows or calibration_size are needed"
    )
    return Estimate(
        name=name,
        value=0.0,
        low=0.0,
        high=min(high, 1.0),
        confidence=confidence,
        n=n,
        method=method,
        reason=reason,
    )


def slab_rademacher(n: int, n_features: int) -> float:
    """Bound on the Rademacher complexity of {p1 < w . x <= p2} by Massart's lemma and Sauer's twice."""
    d = n_features + 1
    if n <= d:
        return 0.5
    return min(0.5, math.sqrt(4 * d * (1 + math.log(n / d)) / n))


def score_learner(loss: str, C: float, seed: int) -> Any:
    """A linear score under the named loss, on features scaled to unit spread."""
    if loss not in LOSSES:
        raise InputError(f"loss must be one of {', '.join(LOSSES)}, got {loss!r}.")
    if not C > 0:
        raise InputError(f"C must be positive, got {C!r}.")
    learners = {
        "hinge": lambda: LinearSVC(
            loss="hinge", C=C, dual=True, max_iter=10_000, tol=1e-3, random_state=seed
        ),
        "squared_hinge": lambda: LinearSVC(C=C, dual=False, max_iter=10_000, random_state=seed),
        "log": lambda: LogisticRegression(C=C, max_iter=10_000),
        "squared": lambda: RidgeClassifier(alpha=1 / C),
    }
    return make_pipeline(StandardScaler(), learners[loss]())


def linear_scores(estimator: Any, X: Any) -> np.ndarray:
    """One score per row: the decision function, or the probability of the positive class."""
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X), dtype=np.float64)
    if hasattr(estimator, "predict_proba"):
        return np.asarray(estimator.predict_proba(X)[:, 1], dtype=np.float64)
    raise InputError(
        f"estimator must have decision_function or predict_proba, {type(estimator).__name__} has neither."
    )


def _rows(X: Any, index: np.ndarray) -> Any:
    """Rows of a matrix or a frame, by position."""
    if index.size == np.shape(X)[0] and np.array_equal(index, np.arange(index.size)):
        return X
    return X.iloc[index] if hasattr(X, "iloc") else X[index]
