"""A repaired model is a scikit-learn estimator: it clones, scores and stands at the end of a pipeline."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted

import calipers
from calipers.auditing import Repair, RepairedClassifier, RepairedRegressor, SavedRepair
from calipers.conformal import ConformalRegressor
from calipers.exceptions import InputError, InputTypeError


@pytest.fixture(scope="module")
def naive() -> tuple[GaussianNB, Repair, np.ndarray, np.ndarray]:
    X, y = make_classification(6000, n_features=12, n_informative=4, n_redundant=8, random_state=1)
    model = GaussianNB().fit(X[:1000], y[:1000])
    found = calipers.audit(y[1000:5000], probabilities=model.predict_proba(X[1000:5000]), random_state=0)
    return model, found.repair(), X[5000:], y[5000:]


def test_repaired_probabilities_have_a_lower_log_loss(naive) -> None:
    model, repair, X, y = naive
    repaired = RepairedClassifier(model, repair)
    assert log_loss(y, repaired.predict_proba(X)) < log_loss(y, model.predict_proba(X)) - 0.02
    assert (
        repaired.predict_proba(X).tolist()
        == repair.apply({"probabilities": model.predict_proba(X)})["probabilities"].tolist()
    )
    assert repaired.score(X, y) > 0.6


def test_it_stands_in_a_pipeline_and_clones(naive) -> None:
    model, repair, X, y = naive
    scaled = GaussianNB().fit(StandardScaler().fit_transform(X), y)
    chain = make_pipeline(StandardScaler(), RepairedClassifier(scaled, repair)).fit(X, y)
    assert chain.predict_proba(X).shape == (len(X), 2)
    assert clone(chain).get_params()["repairedclassifier__repair"] is not None
    check_is_fitted(RepairedClassifier(model, repair))


def test_it_travels_to_other_processes_and_through_cross_validation(naive) -> None:
    model, repair, X, y = naive
    repaired = RepairedClassifier(model, repair)
    again = pickle.loads(pickle.dumps(repaired))
    assert again.predict_proba(X).tolist() == repaired.predict_proba(X).tolist()
    assert again.n_features_in_ == 12
    assert len(pickle.dumps(repaired)) < 20_000  # without the rows of the audits
    # Copies keep the training of the model: there is nothing to be fitted again.
    scores = cross_val_score(repaired, X, y, cv=4)
    parts = [repaired.score(X[test], y[test]) for _, test in StratifiedKFold(4).split(X, y)]
    assert scores.tolist() == parts


# Checks of scikit-learn that fit a model anew, with columns or labels of their own: the repaired model was
# trained before, and its fit() only checks that repair and model belong together.
ABOUT_FITTING = {
    "check_complex_data", "check_dict_unchanged", "check_dtype_object", "check_estimator_sparse_tag", "check_estimators_dtypes",
    "check_estimators_empty_data_messages", "check_estimators_nan_inf", "check_estimators_pickle",
    "check_estimators_unfitted", "check_f_contiguous_array_estimator", "check_fit1d", "check_fit_check_is_fitted",
    "check_fit_score_takes_y", "check_methods_sample_order_invariance", "check_methods_subset_invariance",
    "check_n_features_in", "check_n_features_in_after_fitting", "check_pipeline_consistency",
    "check_supervised_y_2d", "check_supervised_y_no_nan",
}  # fmt: skip
OF_CLASSIFIERS = {
    "check_classifiers_classes", "check_classifiers_one_label", "check_classifiers_regression_target",
    "check_classifiers_train",
}  # fmt: skip
OF_REGRESSORS = {
    "check_estimator_sparse_array", "check_estimator_sparse_matrix", "check_regressor_data_not_an_array",
    "check_regressors_int", "check_regressors_train",
}  # fmt: skip


def repaired_models() -> list[RepairedClassifier | RepairedRegressor]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 2))
    y, z = (X[:, 0] + rng.normal(size=1200) > 0).astype(int), X[:, 0] + rng.normal(size=1200)
    classifier, regressor = GaussianNB().fit(X[:200], y[:200]), LinearRegression().fit(X[:200], z[:200])
    P, centre = classifier.predict_proba(X[200:]) ** 3, regressor.predict(X[200:])
    about = {"probabilities": P / P.sum(axis=1, keepdims=True)}
    intervals = np.column_stack([centre - 1, centre + 1])
    repairs = [
        calipers.audit(y[200:], **about, random_state=0).repair(),
        calipers.audit(z[200:], intervals=intervals, random_state=0).repair(),
    ]
    rules = [SavedRepair(rule=repair.rule) for repair in repairs]  # as `load_repair` gives them
    return [RepairedClassifier(classifier, rules[0]), RepairedRegressor(regressor, rules[1])]


@pytest.mark.filterwarnings("ignore")
def test_the_checks_of_scikit_learn_hold_but_for_those_that_fit_anew() -> None:
    state = np.random.get_state()  # noqa: NPY002 - one of the checks itself shuffles with the global generator
    for model, further in zip(repaired_models(), (OF_CLASSIFIERS, OF_REGRESSORS), strict=True):
        found = check_estimator(model, on_skip=None, on_fail=None)
        by_status = {
            status: {entry["check_name"] for entry in found if entry["status"] == status}
            for status in ("failed", "passed")
        }
        assert by_status["failed"] - ABOUT_FITTING - further == set()
        # A listed check that holds by now leaves the list.
        assert by_status["passed"] & (ABOUT_FITTING | further) == set()
        assert sum(entry["status"] == "passed" for entry in found) >= 20
    np.random.set_state(state)  # noqa: NPY002


def test_what_is_no_repair_or_no_fitted_model_is_refused(naive) -> None:
    model, repair, X, _ = naive
    with pytest.raises(InputTypeError, match="repair must be what audit.repair"):
        RepairedClassifier(model, "repair.json").fit()
    with pytest.raises(InputError, match="the repair is of classification"):
        RepairedRegressor(model, repair).fit()
    with pytest.raises(NotFittedError):
        RepairedClassifier(GaussianNB(), repair).fit()
    with pytest.raises(InputError, match="audited without sets"):
        RepairedClassifier(model, repair).predict_set(X)
    with pytest.raises(InputError, match="audited without p-values"):
        RepairedClassifier(model, repair).predict_p(X)


def test_a_repaired_regressor_covers_the_group_that_was_missed() -> None:
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(size=4000), rng.random(4000) < 0.3])
    y = X[:, 0] + np.where(X[:, 1] > 0, 2.0, 0.2) * rng.normal(size=4000)
    model = ConformalRegressor(calibration_size=0.5, random_state=0).fit(X[:600], y[:600])
    groups = X[600:3000, 1].astype(int).astype(str)
    intervals = model.predict_interval(X[600:3000], alpha=0.1)
    repair = calipers.audit(y[600:3000], intervals=intervals, groups=groups, random_state=0).repair()
    repaired = RepairedRegressor(model, repair, groups=lambda X: X[:, 1].astype(int).astype(str))
    ends = repaired.predict_interval(X[3000:])
    covered = (ends[:, 0] <= y[3000:]) & (y[3000:] <= ends[:, 1])
    noisy = X[3000:, 1] > 0
    assert abs(covered[noisy].mean() - 0.9) < 0.08  # about 180 calibration and 300 test rows
    assert repaired.predict(X[3000:]).tolist() == model.predict(X[3000:]).tolist()
    with pytest.raises(InputError, match="was made at alpha=0.1, got 0.2"):
        repaired.predict_interval(X[3000:], alpha=0.2)
    with pytest.raises(InputError, match="a threshold per group"):
        RepairedRegressor(model, repair).predict_interval(X[3000:])


def test_a_repaired_conformal_classifier_states_sets_and_p_values() -> None:
    from calipers.conformal import ConformalClassifier

    X, y = make_classification(4000, n_features=8, n_informative=5, n_classes=3, random_state=0)
    site = np.random.default_rng(0).random(4000) < 0.3
    y = np.where(site, np.random.default_rng(1).integers(0, 3, 4000), y)  # one site's labels are noise
    model = ConformalClassifier(calibration_size=0.5, random_state=0).fit(X[:800], y[:800])

    p_values = model.predict_p(X[800:])
    repair = calipers.audit(
        y[800:], p_values=p_values, groups=site[800:], classes=model.classes_, random_state=0
    ).repair()
    assert repair.rule.changes == ("p_values",)
    repaired = RepairedClassifier(model, repair)
    p = repaired.predict_p(X[:100], groups=site[:100])
    assert p.shape == (100, 3)
    assert (repaired.predict_set(X[:100], groups=site[:100]) == (p > 0.1)).all()
