"""A model and a calibrator as one classifier."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.model_selection import cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

from calipers.calibration import (
    CalibratedClassifier,
    IsotonicCalibrator,
    LinkCalibrator,
    TemperatureCalibrator,
    calibrate_if_needed,
)
from calipers.exceptions import DegradedResultWarning, InputError

X, Y = make_classification(1200, 8, random_state=0)


def test_a_fitted_model_is_calibrated_as_its_probabilities_would_be() -> None:
    model = GaussianNB().fit(X[:600], Y[:600])
    wrapped = CalibratedClassifier(model).fit(X[600:], Y[600:])
    alone = IsotonicCalibrator().fit(model.predict_proba(X[600:])[:, 1], Y[600:])
    assert np.array_equal(wrapped.predict_proba(X)[:, 1], alone.predict(model.predict_proba(X)[:, 1]))
    assert wrapped.estimator_ is model


def test_scores_of_a_margin_model_are_used() -> None:
    model = LinearSVC(random_state=0).fit(X[:600], Y[:600])
    wrapped = CalibratedClassifier(model, LinkCalibrator()).fit(X[600:], Y[600:])
    alone = LinkCalibrator(inputs="scores").fit(model.decision_function(X[600:]), Y[600:])
    np.testing.assert_allclose(
        wrapped.predict_proba(X)[:, 1], alone.predict(model.decision_function(X)), rtol=1e-12
    )


def test_three_classes_get_a_calibrator_each_or_one_temperature() -> None:
    X3, y3 = make_classification(900, 8, n_informative=5, n_classes=3, random_state=0)
    names = np.array(["low", "mid", "top"])[y3]
    model = GaussianNB().fit(X3[:450], names[:450])
    for calibrator in (None, TemperatureCalibrator()):
        wrapped = CalibratedClassifier(model, calibrator).fit(X3[450:], names[450:])
        np.testing.assert_allclose(wrapped.predict_proba(X3).sum(axis=1), 1)
        assert wrapped.score(X3, names) > 0.6


def test_split_and_cross_validation_work() -> None:
    wrapped = CalibratedClassifier(GaussianNB(), LinkCalibrator("beta"), calibration_size=0.3, random_state=0)
    assert cross_val_score(wrapped, X, Y, scoring="neg_brier_score").mean() > -0.2


def test_a_frozen_model_survives_cloning() -> None:
    frozen = FrozenEstimator(GaussianNB().fit(X[:600], Y[:600]))
    assert cross_val_score(CalibratedClassifier(frozen), X[600:], Y[600:], cv=3).mean() > 0.7


def test_frames_are_passed_on_to_the_model() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X).add_prefix("x")
    wrapped = CalibratedClassifier(GaussianNB(), calibration_size=0.3, random_state=0).fit(frame, Y)
    assert wrapped.predict_proba(frame).shape == (1200, 2)


def test_what_was_decided_by_a_test_is_a_calibrator_like_any_other() -> None:
    model = GaussianNB().fit(X[:600], Y[:600])
    p = model.predict_proba(X[600:])[:, 1]
    chosen = calibrate_if_needed(p, Y[600:], random_state=0)
    wrapped = CalibratedClassifier(model, chosen).fit(X[600:], Y[600:])
    np.testing.assert_allclose(wrapped.predict_proba(X[600:])[:, 1], chosen.predict(p))


def test_bad_use_is_named() -> None:
    with pytest.raises(InputError, match="estimator must be a fitted model when calibration_size is None"):
        CalibratedClassifier().fit(X, Y)
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        CalibratedClassifier(GaussianNB()).fit(X, Y)
    with pytest.raises(InputError, match="calibration_size must be None or lie strictly between 0 and 1"):
        CalibratedClassifier(calibration_size=2.0).fit(X, Y)


def test_weights_reach_the_calibrator_and_the_model() -> None:
    weights = np.random.default_rng(0).integers(0, 4, 600)
    model = GaussianNB().fit(X[:600], Y[:600])
    wrapped = CalibratedClassifier(model).fit(X[600:], Y[600:], sample_weight=weights)
    repeated = CalibratedClassifier(model).fit(
        np.repeat(X[600:], weights, axis=0), np.repeat(Y[600:], weights)
    )
    np.testing.assert_allclose(wrapped.predict_proba(X), repeated.predict_proba(X), atol=1e-12)
    trained = CalibratedClassifier(GaussianNB(), calibration_size=0.5, random_state=0)
    uniform = trained.fit(X, Y, sample_weight=np.full(1200, 3.0)).predict_proba(X)
    np.testing.assert_allclose(uniform, trained.fit(X, Y).predict_proba(X), atol=1e-9)
    positive = trained.fit(X, Y, sample_weight=np.where(Y == 1, 5.0, 1.0))
    assert positive.estimator_.class_prior_[1] > 0.8  # 600 rows of each, five times the weight


def test_a_model_in_a_pipeline_gets_the_weights_where_a_step_takes_them() -> None:
    model = make_pipeline(StandardScaler(), GaussianNB())
    wrapped = CalibratedClassifier(model, calibration_size=0.5, random_state=0)
    wrapped.fit(X, Y, sample_weight=np.where(Y == 1, 5.0, 1.0))
    assert wrapped.estimator_[-1].class_prior_[1] > 0.8
    deaf = CalibratedClassifier(KNeighborsClassifier(), calibration_size=0.5, random_state=0)
    with pytest.warns(DegradedResultWarning, match="calibration only"):
        deaf.fit(X, Y, sample_weight=np.where(Y == 1, 5.0, 1.0))
    weighted = deaf.predict_proba(X)[:, 1].mean()
    assert weighted > deaf.fit(X, Y).predict_proba(X)[:, 1].mean() + 0.1


def test_weights_reach_the_calibrators_of_several_classes() -> None:
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, 1200)
    model = GaussianNB().fit(X[:600], labels[:600])
    wrapped = CalibratedClassifier(model).fit(X[600:], labels[600:], np.where(labels[600:] == 2, 8.0, 1.0))
    assert wrapped.predict_proba(X)[:, 2].mean() > 0.6
