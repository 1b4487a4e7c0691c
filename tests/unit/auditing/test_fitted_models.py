"""A fitted model as the arguments of an audit."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression

import calipers
from calipers.auditing.fitted_models import stated_by
from calipers.conformal import ConformalClassifier, ConformalRegressor
from calipers.exceptions import InputTypeError
from calipers.integrations import audit_model

X, Y = load_iris(return_X_y=True)
ORDER = np.random.default_rng(0).permutation(150)
X, Y = X[ORDER], Y[ORDER]
V = X[:, 0] + np.random.default_rng(1).normal(size=150)


def test_a_classifier_gives_probabilities_and_its_classes():
    names = np.array(["setosa", "versicolor", "virginica"])
    model = LogisticRegression(max_iter=500).fit(X[:80], names[Y[:80]])
    found = audit_model(model, X[80:], names[Y[80:]], random_state=0)
    by_hand = calipers.audit(
        names[Y[80:]],
        probabilities=model.predict_proba(X[80:]),
        classes=model.classes_,
        X=X[80:],
        random_state=0,
    )
    assert found.estimates.to_dict() == by_hand.estimates.to_dict()
    assert found.design.classes == tuple(names.tolist())
    assert found.name == "LogisticRegression"


def test_a_conformal_classifier_gives_p_values_and_its_calibration_rows():
    model = ConformalClassifier(calibration_size=40, random_state=0).fit(X[:90], Y[:90])
    stated = stated_by(model, X[90:], alpha=0.1)
    np.testing.assert_array_equal(stated["p_values"], model.predict_p(X[90:]))
    assert stated["n_calibration"] == 40


def test_a_conformal_regressor_gives_intervals_at_the_level_asked_for():
    model = ConformalRegressor(calibration_size=50, random_state=0).fit(X[:90], V[:90])
    stated = stated_by(model, X[90:], alpha=0.3)
    np.testing.assert_array_equal(stated["intervals"], model.predict_interval(X[90:], alpha=0.3))
    assert stated["n_calibration"] == 50


@pytest.mark.parametrize(
    "model",
    [
        ConformalClassifier(calibration_size=40, label_conditional=True, random_state=0),
        ConformalRegressor(calibration_size=40, guarantee="pac", random_state=0),
    ],
    ids=["label-conditional", "pac"],
)
def test_calibration_rows_are_left_out_where_coverage_has_another_law(model):
    y = Y if isinstance(model, ConformalClassifier) else V
    assert "n_calibration" not in stated_by(model.fit(X[:90], y[:90]), X[90:], alpha=0.1)


def test_options_of_the_audit_win_over_what_the_model_says():
    inner = FrozenEstimator(LinearRegression().fit(X[:40], V[:40]))
    model = ConformalRegressor(inner).fit(X[:40], V[:40]).conformalize(X[40:90], V[40:90])
    found = audit_model(model, X[90:], V[90:], n_calibration=None, name="mine", random_state=0)
    assert found.design.n_calibration is None
    assert found.name == "mine"


def test_a_plain_regressor_is_refused_with_the_remedy():
    model = LinearRegression().fit(X, V)
    with pytest.raises(InputTypeError, match=r"LinearRegression has none of predict_proba, .* Wrap it"):
        audit_model(model, X, V)
