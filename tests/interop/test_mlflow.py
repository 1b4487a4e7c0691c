"""The evaluator "calipers" in real MLflow runs with an SQLite store."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import calipers
from calipers.conformal import ConformalRegressor
from calipers.exceptions import InputError
from calipers.integrations import CalipersEvaluator, flat_numbers
from tests.interop.peers import foreign, require


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One data base for all tests: making it takes MLflow seconds."""
    return tmp_path_factory.mktemp("store") / "runs.db"


@pytest.fixture
def mlflow(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    require("mlflow")
    monkeypatch.setenv("MLFLOW_DISABLE_TELEMETRY", "true")
    monkeypatch.setenv("DO_NOT_TRACK", "true")
    monkeypatch.chdir(tmp_path)
    with foreign():
        import mlflow

        mlflow.set_tracking_uri(f"sqlite:///{store}")
        mlflow.set_experiment("audits")
        yield mlflow


def evaluated(mlflow: Any, **arguments: Any) -> tuple[Any, Any]:
    """The result, and the run as the store has it."""
    with foreign(), mlflow.start_run() as run:
        result = mlflow.models.evaluate(evaluators="calipers", **arguments)
    return result, mlflow.MlflowClient().get_run(run.info.run_id)


def logs_every_number(run: Any, found: calipers.auditing.Audit, name: str) -> None:
    """The run has the estimate of this name, and all others under the names that MLflow takes."""
    logged = run.data.metrics
    assert logged[f"calipers/{name}"] == pytest.approx(float(found.estimates[name]))
    for key, number in flat_numbers(found.estimates, prefix="calipers/").items():
        assert logged[key] == pytest.approx(number)


def rows(n: int = 600) -> Any:
    import pandas as pd

    rng = np.random.default_rng(0)
    x = rng.uniform(size=n)
    v = x + rng.normal(size=n)
    return pd.DataFrame({"x": x, "outcome": v, "lower": x - 1.0, "upper": x + 1.0})


def test_the_entry_point_is_registered(mlflow):
    from mlflow.models.evaluation.base import list_evaluators

    assert "calipers" in list_evaluators()


def test_metrics_findings_and_report_are_logged(mlflow):
    data = rows()
    result, run = evaluated(
        mlflow, data=data, targets="outcome", model_type="regressor", evaluator_config={"alpha": 0.1}
    )
    found = calipers.audit(
        data["outcome"], intervals=data[["lower", "upper"]], X=data[["x"]], alpha=0.1, random_state=0
    )
    coverage = found.estimates["coverage"]
    logged = run.data.metrics
    assert logged["calipers/coverage"] == pytest.approx(float(coverage))
    assert logged["calipers/coverage.low"] == pytest.approx(coverage.low)
    assert logged["calipers/coverage.high"] == pytest.approx(coverage.high)
    assert logged["calipers/severity"] == 3.0
    assert logged["calipers/issues"] == sum(f.severity == "issue" for f in found.faults)
    assert run.data.tags["calipers.severity"] == "issue"
    assert result.metrics == pytest.approx(logged)

    folder = Path(mlflow.artifacts.download_artifacts(run_id=run.info.run_id, artifact_path="calipers"))
    assert sorted(path.name for path in folder.iterdir()) == ["audit.json", "findings.json", "report.html"]
    faults = json.loads((folder / "findings.json").read_text(encoding="utf-8"))
    assert [fault["code"] for fault in faults] == [finding.code for finding in found.faults]
    assert (folder / "report.html").read_text(encoding="utf-8").startswith("<!doctype html>")
    assert result.artifacts["calipers/findings.json"].content == faults
    result.save(folder.parent / "saved")
    assert type(result).load(folder.parent / "saved").metrics == pytest.approx(result.metrics)


def test_a_logged_model_is_asked_for_its_probabilities(mlflow):
    from sklearn.datasets import load_breast_cancer
    from sklearn.naive_bayes import GaussianNB

    X, y = load_breast_cancer(return_X_y=True, as_frame=True)
    model = GaussianNB().fit(X[::2], y[::2])
    with foreign():
        logged = mlflow.sklearn.log_model(
            model, name="model", serialization_format="cloudpickle", pip_requirements=["scikit-learn"]
        )
    data = X[1::2].assign(label=y[1::2])
    result, run = evaluated(
        mlflow, model=logged.model_uri, data=data, targets="label", model_type="classifier",
        evaluator_config={"features": False},
    )  # fmt: skip
    found = calipers.audit(
        y[1::2], probabilities=model.predict_proba(X[1::2]), classes=[0, 1], random_state=0
    )
    logs_every_number(run, found, "calibration error of class 1")
    assert run.data.tags["calipers.severity"] == found.severity
    assert result.metrics["calipers/severity"] == run.data.metrics["calipers/severity"]


def test_a_conformal_predictor_brings_its_calibration_rows(mlflow):
    import pandas as pd

    rng = np.random.default_rng(0)
    X = pd.DataFrame({"x": rng.normal(size=600)})
    v = X["x"] + rng.normal(size=600)
    model = ConformalRegressor(calibration_size=100, random_state=0).fit(X[:300], v[:300])
    data = X[300:].assign(v=v[300:])

    class Wrapped:
        @staticmethod
        def get_raw_model() -> Any:
            return model

    from calipers.integrations.mlflow_evaluator import audit_arguments

    dataset = mlflow.data.from_pandas(data, targets="v")
    from mlflow.data.evaluation_dataset import EvaluationDataset

    held = EvaluationDataset(dataset.df, targets="v")
    arguments = audit_arguments({"alpha": 0.2}, held, Wrapped(), "regressor")
    assert arguments["n_calibration"] == 100
    np.testing.assert_allclose(arguments["intervals"], model.predict_interval(X[300:], alpha=0.2))


def test_a_function_may_return_named_columns(mlflow):
    data = rows()[["x", "outcome"]]
    _, run = evaluated(
        mlflow, model=lambda X: X.assign(lower=X["x"] - 3.0, upper=X["x"] + 3.0)[["lower", "upper"]],
        data=data, targets="outcome", model_type="regressor",
    )  # fmt: skip
    inside = np.abs(data["outcome"] - data["x"]) <= 3.0
    assert run.data.metrics["calipers/coverage"] == pytest.approx(inside.mean())


def test_a_column_of_probabilities_is_read_as_the_positive_class(mlflow):
    import pandas as pd

    rng = np.random.default_rng(0)
    p = rng.uniform(size=500)
    data = pd.DataFrame({"p": p, "label": (rng.uniform(size=500) < p).astype(int)})
    _, run = evaluated(mlflow, data=data, targets="label", predictions="p", model_type="classifier")
    found = calipers.audit(data["label"], probabilities=p, random_state=0)
    logs_every_number(run, found, "calibration error of class 1")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"evaluator_config": {"aplha": 0.1}}, "options it knows, got 'aplha'; known are alpha, classes"),
        ({"evaluator_config": {"predicts": "widths"}, "predictions": "x"}, "predicts must be one of"),
        ({"predictions": "x"}, r"predictions of shape \(600,\) and type float64 state no uncertainty"),
        (
            {"evaluator_config": {"groups": "city"}},
            "groups must name a column of the data, got 'city'; it has x",
        ),
    ],
)
def test_bad_options_are_refused_in_one_sentence(mlflow, arguments, sentence):
    given = {"data": rows(), "targets": "outcome", "model_type": "regressor"}
    with pytest.raises(InputError, match=sentence):
        evaluated(mlflow, **(given | arguments))


def test_data_without_predictions_say_which_columns_are_missing(mlflow):
    with pytest.raises(InputError, match="the data holds no predictions: name columns p_<class>"):
        evaluated(mlflow, data=rows()[["x", "outcome"]], targets="outcome", model_type="regressor")


def test_language_models_are_left_to_others():
    assert not CalipersEvaluator.can_evaluate(model_type="question-answering", evaluator_config={})
