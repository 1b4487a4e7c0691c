"""Calibration-constrained learning: feasible, certified, any loss."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import expit
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.neighbors import KNeighborsClassifier

from calipers.calibration import CalibrationConstrainedClassifier
from calipers.calibration.constrained import LOSSES, slab_rademacher
from calipers.exceptions import DegradedResultWarning, InputError
from calipers.metrics import calibration_error
from calipers.metrics.reliability import in_sample_isotonic_bound, uniform_convergence_width


def rows(n: int = 600, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(rng.random(n) < expit(2 * X[:, 0]), "yes", "no")


@pytest.mark.parametrize("loss", LOSSES)
def test_the_constraint_holds_for_every_loss(loss: str) -> None:
    X, y = rows()
    model = CalibrationConstrainedClassifier(loss, random_state=0).fit(X, y)
    p = model.predict_proba(X)[:, 1]
    assert float(calibration_error(y, p, random_state=0)) < 1e-12
    assert model.classes_.tolist() == ["no", "yes"]
    assert model.score(X, y) > 0.7


def test_feasible_means_every_level_has_its_value_as_mean_label() -> None:
    X, y = rows()
    p = CalibrationConstrainedClassifier(random_state=0).fit(X, y).predict_proba(X)[:, 1]
    for value in np.unique(p):
        assert np.mean((y == "yes")[p == value]) == pytest.approx(value)


def test_the_order_is_the_one_the_loss_learned() -> None:
    X, y = rows()
    model = CalibrationConstrainedClassifier("log", random_state=0).fit(X, y)
    order = np.argsort(model.estimator_.decision_function(X))
    assert (np.diff(model.predict_proba(X)[order, 1]) >= 0).all()


def test_certificate_of_linear_scores_is_theorem_2_over_slabs() -> None:
    X, y = rows(20_000, 2)
    model = CalibrationConstrainedClassifier("log", random_state=0).fit(X, y)
    # 2 (2 R + sqrt(2 ln(8 / 0.05) / n)), R = sqrt(4 * 3 (1 + ln(n / 3)) / n)
    R = math.sqrt(12 * (1 + math.log(20_000 / 3)) / 20_000)
    expected = 2 * (2 * R + math.sqrt(2 * math.log(160) / 20_000))
    assert model.certificate_.high == pytest.approx(expected)
    assert model.certificate_.high == pytest.approx(
        uniform_convergence_width(20_000, slab_rademacher(20_000, 2))
    )
    assert model.certificate_.value == 0


def test_an_empty_certificate_says_so() -> None:
    certificate = CalibrationConstrainedClassifier(random_state=0).fit(*rows(200, 5)).certificate_
    assert certificate.high == 1
    assert "says nothing" in certificate.reason


def test_kept_rows_give_a_certificate_for_any_learner() -> None:
    X, y = rows(4000)
    learner = GradientBoostingClassifier(n_estimators=5, random_state=0)
    model = CalibrationConstrainedClassifier(estimator=learner, calibration_size=0.5, random_state=0)
    certificate = model.fit(X, y).certificate_
    assert certificate.n == 2000
    assert certificate.high == pytest.approx(in_sample_isotonic_bound(2000))


def test_an_unknown_class_on_its_own_rows_has_no_certificate() -> None:
    learner = GradientBoostingClassifier(n_estimators=5, random_state=0)
    certificate = CalibrationConstrainedClassifier(estimator=learner).fit(*rows()).certificate_
    assert certificate.high is None
    assert "set calibration_size" in certificate.reason


def test_claim_2_fewer_rows_than_features_is_warned_about() -> None:
    with pytest.warns(DegradedResultWarning, match="20 training rows are fewer than 30 features"):
        CalibrationConstrainedClassifier("log", random_state=0).fit(*rows(20, 30))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"loss": "zero-one"}, "loss must be one of hinge, squared_hinge, log, squared, got 'zero-one'"),
        ({"C": 0}, "C must be positive, got 0"),
        ({"calibration_size": 1.5}, "calibration_size must be None or lie strictly between 0 and 1, got 1.5"),
        ({"confidence": 95}, "confidence must lie strictly between 0 and 1"),
    ],
)
def test_bad_options_are_named(options: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        CalibrationConstrainedClassifier(**options).fit(*rows(50))


@pytest.mark.parametrize("loss", LOSSES)
def test_whole_weights_are_repeated_rows(loss: str) -> None:
    X, y = rows(200)
    weights = np.random.default_rng(1).integers(0, 4, 200)
    weighted = CalibrationConstrainedClassifier(loss, random_state=0).fit(X, y, sample_weight=weights)
    repeated = CalibrationConstrainedClassifier(loss, random_state=0).fit(
        np.repeat(X, weights, axis=0), np.repeat(y, weights)
    )
    p, q = (model.predict_proba(X)[:, 1] for model in (weighted, repeated))
    # liblinear's hinge is solved to a tolerance, in an order of its own: its score may swap close rows
    assert np.mean(np.abs(p - q)) < (0.02 if loss == "hinge" else 1e-3)
    assert float(calibration_error(y, p, sample_weight=weights, random_state=0)) < 1e-12


def test_unequal_weights_leave_no_certificate() -> None:
    X, y = rows()
    weights = np.random.default_rng(2).random(len(y))
    model = CalibrationConstrainedClassifier("log", calibration_size=0.5, random_state=0)
    certificate = model.fit(X, y, sample_weight=weights).certificate_
    assert certificate.high is None
    assert "unequal weights" in certificate.reason
    assert model.fit(X, y, sample_weight=np.full(len(y), 2.0)).certificate_.high is not None


def test_a_learner_without_weights_is_trained_without_them_and_says_so() -> None:
    X, y = rows()
    learner = CalibrationConstrainedClassifier(estimator=KNeighborsClassifier(), random_state=0)
    with pytest.warns(DegradedResultWarning, match="KNeighborsClassifier takes no sample_weight"):
        learner.fit(X, y, sample_weight=np.arange(len(y)) % 3)
