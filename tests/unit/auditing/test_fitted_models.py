"""A fitted model as the arguments of an audit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.ensemble import GradientBoostingRegressor, HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import BayesianRidge, LinearRegression, LogisticRegression, QuantileRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import calipers
from calipers.auditing.fitted_models import stated_by
from calipers.auditing.quantile_models import quantile_levels_of
from calipers.conformal import ConformalClassifier, ConformalRegressor
from calipers.exceptions import InputError, InputTypeError
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


def test_scores_of_a_margin_are_no_probabilities():
    with pytest.raises(InputTypeError, match=r"scores of LinearSVC are not probabilities\. Calibrate it"):
        audit_model(LinearSVC(random_state=0).fit(X, Y), X, Y)


def test_the_origin_says_what_the_model_was_asked_for():
    model = LogisticRegression(max_iter=500).fit(X[:80], Y[:80])
    assert (
        audit_model(model, X[80:], Y[80:], random_state=0).origin
        == "LogisticRegression asked for predict_proba"
    )


def test_a_standard_deviation_is_read_as_a_normal_distribution():
    model = make_pipeline(StandardScaler(), BayesianRidge()).fit(X[:90], V[:90])
    mean, deviation = model.predict(X[90:], return_std=True)
    stated = stated_by(model, X[90:], V[90:], alpha=0.2)
    # 1.281552 is the 90 % quantile of the standard normal law, 0.674490 its upper quartile.
    np.testing.assert_allclose(stated["intervals"][:, 1], mean + 1.281552 * deviation, rtol=1e-5)
    np.testing.assert_allclose(stated["intervals"][:, 0], mean - 1.281552 * deviation, rtol=1e-5)
    assert stated["quantile_levels"] == [0.1, 0.25, 0.5, 0.75, 0.9]
    np.testing.assert_allclose(stated["quantiles"][:, 3], mean + 0.674490 * deviation, rtol=1e-5)
    below = V[90:] < stated["quantiles"][:, 1]
    np.testing.assert_array_equal(stated["pit"] < 0.25, below)
    found = audit_model(model, X[90:], V[90:], random_state=0)
    assert found.origin == "Pipeline asked for predict(return_std=True), read as a normal distribution"


def test_a_deviation_of_zero_is_refused():
    class Sure:
        def predict(self, X, return_std=False):
            return np.zeros(len(X)), np.zeros(len(X))

    with pytest.raises(InputError, match=r"one positive standard deviation per row.* WhiteKernel"):
        audit_model(Sure(), X, V)


@pytest.mark.parametrize(
    "model",
    [
        HistGradientBoostingRegressor(loss="quantile", quantile=0.8, max_iter=5, random_state=0),
        GradientBoostingRegressor(loss="quantile", alpha=0.8, n_estimators=5, random_state=0),
        make_pipeline(StandardScaler(), QuantileRegressor(quantile=0.8)),
        GridSearchCV(QuantileRegressor(quantile=0.8), {"alpha": [0.0, 1.0]}, cv=2),
    ],
    ids=["histogram", "boosting", "pipeline", "search"],
)
def test_a_quantile_regressor_states_the_quantile_it_was_fitted_to(model):
    stated = stated_by(model.fit(X[:90], V[:90]), X[90:], alpha=0.1)
    assert stated["quantile_levels"] == [0.8]
    np.testing.assert_array_equal(stated["quantiles"][:, 0], model.predict(X[90:]))
    assert "intervals" not in stated


def test_two_quantile_regressors_are_an_interval_in_whatever_order_they_come():
    models = [QuantileRegressor(quantile=q, alpha=0).fit(X[:90], V[:90]) for q in (0.95, 0.05)]
    stated = stated_by(models, X[90:], alpha=0.1)
    assert stated["quantile_levels"] == [0.05, 0.95]
    np.testing.assert_array_equal(stated["intervals"][:, 0], models[1].predict(X[90:]))
    np.testing.assert_array_equal(stated["intervals"][:, 1], models[0].predict(X[90:]))
    assert "intervals" not in stated_by(models, X[90:], alpha=0.2)


@pytest.mark.parametrize(
    ("settings", "levels"),
    [
        ({"objective": "quantile", "alpha": 0.7}, [0.7]),
        ({"objective": "reg:quantileerror", "quantile_alpha": [0.05, 0.95]}, [0.05, 0.95]),
        ({"loss_function": "Quantile:alpha=0.7"}, [0.7]),
        ({"loss_function": "MultiQuantile:alpha=0.1, 0.9"}, [0.1, 0.9]),
        ({"loss_function": "Quantile"}, [0.5]),
        ({"loss_function": "RMSE", "alpha": 0.7}, []),
        ({"objective": "regression", "alpha": 0.7}, []),
        ({"loss": "huber", "alpha": 0.9}, []),
    ],
    ids=str,
)
def test_settings_of_other_libraries_state_their_quantile(settings, levels):
    class Booster:
        def get_params(self, deep=True):
            return settings

    assert quantile_levels_of(Booster()) == levels


def test_a_function_returns_probabilities_logits_or_arguments_by_name():
    model = LogisticRegression(max_iter=500).fit(X[:80], Y[:80])
    expected = stated_by(model, X[80:], alpha=0.1)["probabilities"]
    for function in (model.predict_proba, model.decision_function):
        np.testing.assert_allclose(stated_by(function, X[80:], alpha=0.1)["probabilities"], expected)
    found = audit_model(model.decision_function, X[80:], Y[80:], random_state=0)
    assert found.origin == "decision_function asked for its value, read as logits"

    def intervals(X):
        return {"intervals": np.tile([3.0, 9.0], (len(X), 1))}

    assert audit_model(intervals, X, V, random_state=0).estimates["coverage"].value > 0.9


def test_a_function_of_one_number_states_the_positive_class():
    model = LogisticRegression(max_iter=500).fit(X[:80], Y[:80] == 2)
    expected = model.predict_proba(X[80:])[:, 1]
    given = stated_by(lambda X: model.predict_proba(X)[:, [1]], X[80:], alpha=0.1)["probabilities"]
    np.testing.assert_array_equal(given, expected)
    logits = stated_by(model.decision_function, X[80:], alpha=0.1)["probabilities"]
    np.testing.assert_allclose(logits, expected)


def test_outputs_that_are_not_finite_are_refused():
    with pytest.raises(InputError, match="a finite number per row"):
        stated_by(lambda X: np.full(len(X), np.nan), X, alpha=0.1)


TEXTS = [f"row {i}: {'good' if i % 3 else 'bad'}" for i in range(300)]
FEELINGS = np.where(np.arange(300) % 3 > 0, "POSITIVE", "NEGATIVE")
FEELINGS[::10] = "NEGATIVE"


def text_classifier(texts: list[str]) -> list[list[dict[str, Any]]]:
    """What a text-classification pipeline of Hugging Face returns with top_k=None: the likeliest first."""
    rows = []
    for text in texts:
        positive = 0.9 if "good" in text else 0.2
        scores = {"POSITIVE": positive, "NEGATIVE": 1 - positive}
        order = sorted(scores, key=scores.__getitem__, reverse=True)
        rows.append([{"label": label, "score": scores[label]} for label in order])
    return rows


def test_a_pipeline_of_hugging_face_is_asked_for_all_scores() -> None:
    class Pipeline:
        def __call__(self, inputs: list[str]) -> list[list[dict[str, Any]]]:
            assert isinstance(inputs, list)
            return text_classifier(inputs)

        def predict(self, X: list[str]) -> Any:
            return self(X)

    Pipeline.__module__ = "transformers.pipelines.text_classification"
    by_hand = calipers.audit(
        FEELINGS,
        probabilities=[0.9 if "good" in text else 0.2 for text in TEXTS],
        classes=["NEGATIVE", "POSITIVE"],
        random_state=0,
    )
    for model, said in (
        (Pipeline(), "Pipeline asked for all scores by label"),
        (text_classifier, "text_classifier asked for its value, read as scores by label"),
    ):
        found = calipers.audit_model(model, np.array(TEXTS), FEELINGS, random_state=0)
        assert found.origin == said
        assert found.design.classes == ("NEGATIVE", "POSITIVE")
        assert [f.sentence for f in found.faults] == [f.sentence for f in by_hand.faults]


def test_a_pipeline_that_tells_only_the_likeliest_is_refused_with_the_remedy() -> None:
    with pytest.raises(InputError, match="top_k=None"):
        calipers.audit_model(lambda texts: [row[0] for row in text_classifier(texts)], TEXTS, FEELINGS)
    with pytest.raises(InputTypeError, match="label and score per class"):
        calipers.audit_model(lambda texts: [[{"good": 1}] for _ in texts], TEXTS, FEELINGS)
    # Rows of plain numbers are probabilities, as before.
    found = calipers.audit_model(lambda texts: [[0.3, 0.7] for _ in texts], TEXTS, FEELINGS, random_state=0)
    assert found.origin.endswith("read as probabilities")


def test_texts_that_all_differ_are_no_evidence_and_no_crash() -> None:
    y = np.random.default_rng(0).normal(size=400)
    names = np.array([f"house {i}" for i in range(400)], dtype=object)
    found = calipers.audit(y, intervals=np.tile([-1.645, 1.645], (400, 1)), X=names, random_state=0)
    assert found.severity in {"none", "note"}
