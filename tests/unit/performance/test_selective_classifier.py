"""A classifier that abstains: what it answers, what it refuses, and that its certificate is the function's."""

import numpy as np
import pytest
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from calipers.exceptions import InputError
from calipers.metrics import selective_threshold
from calipers.performance import SelectiveClassifier

X, y = make_classification(3000, flip_y=0.05, class_sep=0.8, random_state=1)
NAMES = np.array(["no", "yes"])[y]


def test_the_certificate_is_that_of_the_function_on_the_held_out_rows():
    model = SelectiveClassifier(LogisticRegression(), risk=0.1).fit(X[:1000], NAMES[:1000])
    model.certify(X[1000:2000], NAMES[1000:2000])
    P = LogisticRegression().fit(X[:1000], NAMES[:1000]).predict_proba(X[1000:2000])
    wrong = model.classes_[P.argmax(axis=1)] != NAMES[1000:2000]
    expected = selective_threshold(wrong, P.max(axis=1), risk=0.1)
    assert model.certificate_.value == expected.value > 0.3
    assert model.threshold_ == expected.details["threshold"]
    assert model.curve_.y[-1] == pytest.approx(wrong.mean())


def test_answers_are_the_models_where_it_is_sure_and_masked_elsewhere():
    model = SelectiveClassifier(LogisticRegression(), risk=0.1, calibration_size=0.5, random_state=0)
    answers = model.fit(X[:2000], NAMES[:2000]).predict_or_abstain(X[2000:])
    sure = model.predict_proba(X[2000:]).max(axis=1) >= model.threshold_
    assert 0 < sure.sum() < 1000
    assert np.array_equal(answers.mask, ~sure)
    assert np.array_equal(answers.compressed(), model.predict(X[2000:])[sure])
    assert np.array_equal(answers.filled("?") == "?", ~sure)


def test_a_frozen_model_needs_only_the_certificate():
    fitted = LogisticRegression().fit(X[:1000], y[:1000])
    model = SelectiveClassifier(FrozenEstimator(fitted), risk=0.1).certify(X[1000:], y[1000:])
    assert model.is_answered(X[1000:]).sum() == model.certificate_.details["rows"]
    assert model.score(X, y) == fitted.score(X, y)


@pytest.mark.parametrize("certainty", ["top_probability", "margin", "negative_entropy"])
def test_of_two_classes_every_certainty_keeps_the_same_rows(certainty):
    fitted = FrozenEstimator(LogisticRegression().fit(X[:1000], y[:1000]))
    found = SelectiveClassifier(fitted, risk=0.1, certainty=certainty).certify(X[1000:], y[1000:])
    plain = SelectiveClassifier(fitted, risk=0.1).certify(X[1000:], y[1000:])
    assert np.array_equal(found.is_answered(X[1000:]), plain.is_answered(X[1000:]))


def test_an_impossible_risk_answers_nothing():
    model = SelectiveClassifier(LogisticRegression(), risk=1e-4, calibration_size=0.5, random_state=0)
    assert model.fit(X, y).predict_or_abstain(X).mask.all()
    assert model.threshold_ == np.inf


def test_a_second_fit_forgets_the_certificate():
    model = SelectiveClassifier(LogisticRegression(), risk=0.1).fit(X, y).certify(X, y)
    with pytest.raises(NotFittedError, match="call certify"):
        model.fit(X, y).is_answered(X)


def test_refusals():
    with pytest.raises(NotFittedError, match="call fit first"):
        SelectiveClassifier(LogisticRegression()).predict(X)
    with pytest.raises(InputError, match="estimator must be a classifier"):
        SelectiveClassifier().fit(X, y)
    with pytest.raises(InputError, match="certainty must be one of"):
        SelectiveClassifier(LogisticRegression(), certainty="loud").fit(X, y)
    with pytest.raises(InputError, match="one number per row"):
        SelectiveClassifier(LogisticRegression(), certainty=lambda P: P).fit(X, y).certify(X, y)
    with pytest.raises(InputError, match="leaves 0 of 3000 rows"):
        SelectiveClassifier(LogisticRegression(), calibration_size=1e-5).fit(X, y)
