"""Scorers: numbers by hand, and inside scikit-learn's own tools."""

from __future__ import annotations

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.naive_bayes import GaussianNB

from calipers.conformal import ConformalClassifier, ConformalRegressor
from calipers.exceptions import InputError, InputTypeError
from calipers.metrics import calibration_error
from calipers.scorers import calibration_scorer, coverage_scorer, size_scorer

SETS = np.array([[1, 1, 0], [0, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=bool)
CLASSIFIER = SimpleNamespace(predict_set=lambda X, alpha: SETS, classes_=np.array(["a", "b", "c"]))
INTERVALS = np.array([[0.0, 1.0], [0.0, 3.0], [2.0, 2.5]])
REGRESSOR = SimpleNamespace(predict_interval=lambda X, alpha: INTERVALS)


def test_the_coverage_of_sets_counts_its_distance_in_both_directions():
    # Labels b, a, c, c: rows 0 and 2 are covered, 0.5 against the promised 0.9 and 0.4.
    y = ["b", "a", "c", "c"]
    assert coverage_scorer(alpha=0.1)(CLASSIFIER, None, y) == pytest.approx(-0.4)
    assert coverage_scorer(alpha=0.6)(CLASSIFIER, None, y) == pytest.approx(-0.1)


def test_the_coverage_of_intervals_counts_closed_ends():
    assert coverage_scorer(alpha=0.2)(REGRESSOR, None, [1.0, 4.0, 2.0]) == pytest.approx(-abs(2 / 3 - 0.8))


def test_the_size_is_labels_per_set_or_width():
    assert size_scorer()(CLASSIFIER, None, None) == pytest.approx(-6 / 4)
    assert size_scorer()(REGRESSOR, None) == pytest.approx(-(1 + 3 + 0.5) / 3)


def test_the_calibration_scorer_reads_what_the_metric_reads():
    X, y = load_breast_cancer(return_X_y=True)
    labels = np.array(["no", "yes"])[y]
    model = GaussianNB().fit(X[::2], labels[::2])
    read = calibration_error(y[1::2], model.predict_proba(X[1::2])[:, 1], random_state=0)
    assert calibration_scorer()(model, X[1::2], labels[1::2]) == pytest.approx(-float(read))


def test_the_calibration_of_three_classes_is_that_of_the_top_label():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X[::2], y[::2])
    read = calibration_error(y[1::2], model.predict_proba(X[1::2]), multiclass="top_label", random_state=0)
    assert calibration_scorer()(model, X[1::2], y[1::2]) == pytest.approx(-float(read))


def test_a_grid_search_chooses_the_narrower_predictor():
    X, y = load_diabetes(return_X_y=True)
    predictor = ConformalRegressor(Ridge(), calibration_size=0.4, random_state=0)
    search = GridSearchCV(predictor, {"estimator__alpha": [0.1, 1e6]}, scoring=size_scorer(alpha=0.1), cv=3)
    assert search.fit(X, y).best_params_ == {"estimator__alpha": 0.1}


def test_cross_validation_takes_several_at_once():
    X, y = load_iris(return_X_y=True)
    predictor = ConformalClassifier(LogisticRegression(max_iter=500), calibration_size=0.4, random_state=0)
    scores = cross_validate(predictor, X, y, scoring={"gap": coverage_scorer(), "size": size_scorer()}, cv=3)
    assert (scores["test_gap"] > -0.15).all()
    assert (scores["test_size"] > -1.6).all()


def test_scorers_travel_to_other_processes_and_read_well():
    scorer = pickle.loads(pickle.dumps(coverage_scorer(alpha=0.2)))
    assert scorer == coverage_scorer(alpha=0.2)
    assert repr(scorer) == "coverage_scorer(alpha=0.2)"


@pytest.mark.parametrize("scorer", [coverage_scorer, size_scorer])
def test_an_impossible_alpha_is_refused_when_the_scorer_is_made(scorer):
    with pytest.raises(InputError, match="alpha must lie strictly between 0 and 1, got 90"):
        scorer(alpha=90)


def test_a_model_without_sets_is_told_to_be_wrapped():
    with pytest.raises(InputTypeError, match="Ridge does not have. Wrap the model"):
        coverage_scorer()(Ridge(), None, None)


def test_a_model_without_probabilities_is_refused_by_name():
    with pytest.raises(InputTypeError, match="needs predict_proba, which Ridge does not have"):
        calibration_scorer()(Ridge(), None, None)
