"""`audit_model` asks the models of other libraries for what they state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calipers
from calipers.auditing.fitted_models import stated_by
from calipers.exceptions import InputError
from tests.interop.peers import (
    CALIBRATE,
    TEST,
    TRAIN,
    classes,
    classifier,
    foreign,
    linear_network,
    numbers,
    pretend_installed,
    regressor,
    require,
)

NAMES = np.array(["setosa", "versicolor", "virginica"])


def named_classifier() -> Any:
    from sklearn.linear_model import LogisticRegression

    X, y = classes()
    return LogisticRegression(max_iter=500).fit(X[TRAIN], NAMES[y[TRAIN]])


def audited(model: Any, X: Any, y: Any, **options: Any) -> Any:
    with foreign():
        return calipers.audit_model(model, X, y, random_state=0, **options)


def test_mapie_is_asked_at_the_level_of_the_audit_and_for_its_calibration_rows():
    require("mapie")
    from mapie.classification import SplitConformalClassifier
    from mapie.regression import SplitConformalRegressor

    (X, y), (Z, v) = classes(), numbers()
    levels = {"confidence_level": [0.8, 0.9], "prefit": True}
    with foreign():
        sets = SplitConformalClassifier(named_classifier(), **levels)
        sets.conformalize(X[CALIBRATE], NAMES[y[CALIBRATE]])
        intervals = SplitConformalRegressor(regressor(), **levels).conformalize(Z[CALIBRATE], v[CALIBRATE])
        ends = intervals.predict_interval(Z[TEST])[1]
        stated = stated_by(intervals, Z[TEST], alpha=0.2)
    np.testing.assert_array_equal(stated["intervals"], ends[:, :, 0])
    assert stated["n_calibration"] == 40
    found = audited(sets, X[TEST], NAMES[y[TEST]], alpha=0.1)
    assert found.design.classes == tuple(NAMES.tolist())
    assert found.design.n_calibration == 40
    assert found.origin == "SplitConformalClassifier asked for predict_set at confidence_level 0.9"
    with pytest.raises(InputError, match=r"at alpha 0\.2, 0\.1, not at 0\.3"):
        audited(intervals, Z[TEST], v[TEST], alpha=0.3)


def test_crepes_is_asked_for_p_values_and_intervals():
    require("crepes")
    from crepes import WrapClassifier, WrapRegressor

    (X, y), (Z, v) = classes(), numbers()
    with foreign():
        p_values = WrapClassifier(named_classifier()).calibrate(X[CALIBRATE], NAMES[y[CALIBRATE]])
        intervals = WrapRegressor(regressor()).calibrate(Z[CALIBRATE], v[CALIBRATE])
        mondrian = WrapRegressor(regressor()).calibrate(Z[CALIBRATE], v[CALIBRATE], mc=lambda X: X[:, 0] > 0)
        stated = stated_by(intervals, Z[TEST], alpha=0.2)
        np.testing.assert_array_equal(stated["intervals"], intervals.predict_int(Z[TEST], confidence=0.8))
        assert "n_calibration" not in stated_by(mondrian, Z[TEST], alpha=0.2)
    found = audited(p_values, X[TEST], NAMES[y[TEST]])
    assert found.origin == "WrapClassifier asked for predict_p, predict_proba"
    assert found.design.n_calibration == 40


def test_puncc_is_asked_for_sets_and_intervals():
    require("puncc", "deel")
    from deel.puncc.api.prediction import BasePredictor
    from deel.puncc.classification import LAC
    from deel.puncc.regression import SplitCP

    class Probabilities(BasePredictor):
        def predict(self, X: Any, **options: Any) -> Any:
            return self.model.predict_proba(X)

    (X, y), (Z, v) = classes(), numbers()
    with foreign():
        sets = LAC(Probabilities(classifier(), is_trained=True), train=False)
        sets.fit(X_calib=X[CALIBRATE], y_calib=y[CALIBRATE])
        intervals = SplitCP(BasePredictor(regressor(), is_trained=True), train=False)
        intervals.fit(X_calib=Z[CALIBRATE], y_calib=v[CALIBRATE])
        stated = stated_by(sets, X[TEST], alpha=0.1)
        told = sets.predict(X[TEST], alpha=0.1)[1]
    assert [np.flatnonzero(row).tolist() for row in stated["sets"]] == [sorted(map(int, row)) for row in told]
    by_hand = calipers.audit(v[TEST], intervals=intervals.predict(Z[TEST], alpha=0.1), random_state=0)
    found = audited(intervals, Z[TEST], v[TEST])
    assert float(found.estimates["coverage"]) == float(by_hand.estimates["coverage"])


@pytest.mark.parametrize("package", ["lightgbm", "xgboost", "catboost"])
def test_boosters_state_probabilities_and_quantiles(package):
    require(package)
    import importlib

    library = importlib.import_module(package)
    (X, y), (Z, v) = classes(), numbers()
    quiet = {"lightgbm": {"verbose": -1}, "catboost": {"verbose": 0, "allow_writing_files": False}}.get(
        package, {}
    )
    kinds = {
        "lightgbm": ("LGBM", {"objective": "quantile", "alpha": 0.8}),
        "xgboost": ("XGB", {"objective": "reg:quantileerror", "quantile_alpha": 0.8}),
        "catboost": ("CatBoost", {"loss_function": "Quantile:alpha=0.8"}),
    }
    prefix, quantile = kinds[package]
    with foreign():
        model = getattr(library, f"{prefix}Classifier")(n_estimators=5, **quiet).fit(X[TRAIN], y[TRAIN])
        line = getattr(library, f"{prefix}Regressor")(n_estimators=5, **quantile, **quiet).fit(
            Z[TRAIN], v[TRAIN]
        )
        stated = stated_by(line, Z[TEST], alpha=0.1)
        np.testing.assert_allclose(stated["quantiles"][:, 0], line.predict(Z[TEST]))
    assert stated["quantile_levels"] == [0.8]
    assert audited(model, X[TEST], y[TEST]).origin == f"{prefix}Classifier asked for predict_proba"


def test_networks_of_torch_state_logits_or_probabilities_and_keep_their_mode():
    require("torch")
    import torch

    X, y = classes()
    layer = linear_network(torch, classifier().coef_, classifier().intercept_)
    expected = classifier().predict_proba(X[TEST])
    for network, reading in (
        (layer, "logits"),
        (torch.nn.Sequential(layer, torch.nn.Softmax(1)), "probabilities"),
    ):
        network.train()
        np.testing.assert_allclose(stated_by(network, X[TEST], alpha=0.1)["probabilities"], expected)
        assert network.training
        assert audited(network, X[TEST], y[TEST]).origin.endswith(f"read as {reading}")


def test_torchcp_is_asked_for_p_values_and_intervals():
    require("torch")
    require("torchcp")
    pretend_installed("torchsort", "torch_geometric", "transformers")
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from torchcp.classification.predictor import SplitPredictor as SplitClassifier
    from torchcp.classification.score import LAC
    from torchcp.regression.predictor import SplitPredictor as SplitRegressor
    from torchcp.regression.score import ABS

    def rows(*arrays: Any) -> Any:
        return DataLoader(TensorDataset(*map(torch.as_tensor, arrays)), batch_size=20)

    (X, y), (Z, v) = classes(), numbers()
    with foreign():
        network = linear_network(torch, classifier().coef_, classifier().intercept_)
        sets = SplitClassifier(LAC(), network, alpha=0.1, device=torch.device("cpu"))
        sets.calibrate(rows(X[CALIBRATE], y[CALIBRATE]))
        line = linear_network(torch, regressor().coef_[None, :], np.array([regressor().intercept_]))
        intervals = SplitRegressor(ABS(), line, device=torch.device("cpu"))
        intervals.calibrate(rows(Z[CALIBRATE], v[CALIBRATE]), 0.1)
        expected = intervals.predict(torch.as_tensor(Z[TEST])).numpy().reshape(-1, 2)
        np.testing.assert_allclose(stated_by(intervals, Z[TEST], alpha=0.1)["intervals"], expected)
    assert audited(sets, X[TEST], y[TEST]).origin == "SplitPredictor asked for predict_p"
