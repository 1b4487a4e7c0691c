"""``mlflow.models.evaluate(..., evaluators="calipers")``: an audit in an MLflow run.

MLflow finds the class through the entry point ``mlflow.model_evaluator`` and calls two methods of it; it asks
for no base class, so that this module loads without MLflow.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, import_optional, is_frame
from calipers.auditing import Audit, audit
from calipers.auditing.fitted_models import stated_by, states_uncertainty
from calipers.exceptions import InputError
from calipers.integrations.numbers import flat_numbers
from calipers.results import severity_rank

FOLDER = "calipers"
PREDICTED = ("probabilities", "p_values", "sets", "intervals")
# Options of an audit that have no meaning here, or come from the data set.
OPTIONS = ("alpha", "classes", "confidence", "mute", "n_calibration", "name", "random_state")
OWN_OPTIONS = ("ease", "features", "groups", "predicts", "sample_weight")


class CalipersEvaluator:
    """The evaluator "calipers" of MLflow: metrics with their error bars, findings, and the report.

    Examples
    --------
    >>> from calipers.integrations import CalipersEvaluator
    >>> CalipersEvaluator.can_evaluate(model_type="classifier", evaluator_config={})
    True
    >>> CalipersEvaluator.can_evaluate(model_type="text-summarization", evaluator_config={})
    False
    """

    name = "calipers"

    def __repr__(self) -> str:
        return "CalipersEvaluator()"

    @classmethod
    def can_evaluate(cls, *, model_type: Any, evaluator_config: Any, **_: Any) -> bool:
        """Whether the model is a classifier, a regressor, or of no stated type.

        Parameters
        ----------
        model_type : str or None
            As given to ``mlflow.models.evaluate``.
        evaluator_config : dict or None
            Options; they are looked at when the evaluation starts.
        **_
            What later versions of MLflow may add.

        Returns
        -------
        bool
        """
        return model_type in {None, "classifier", "regressor"}

    def evaluate(
        self,
        *,
        model_type: Any,
        dataset: Any,
        run_id: str,
        evaluator_config: Mapping[str, Any] | None,
        model: Any = None,
        model_id: str | None = None,
        **_: Any,
    ) -> Any:
        """Audit the predictions for a data set and log everything to the run.

        Parameters
        ----------
        model_type : str or None
            "classifier" or "regressor"; None leaves it to the predictions.
        dataset : mlflow EvaluationDataset
            Features, targets and, without a model, predictions.
        run_id : str
            Where to log.
        evaluator_config : dict or None
            ``alpha``, ``n_calibration``, ``classes``, ``confidence``, ``mute``, ``name`` and
            ``random_state`` (0 unless given) as in `calipers.audit`; ``groups``, ``ease`` and
            ``sample_weight`` name columns of the data; ``predicts`` says what an array of predictions
            holds; ``features=False`` leaves X out.
        model : mlflow PyFuncModel, optional
            Asked for p-values, sets, intervals or probabilities when the model inside has them, else for
            ``predict``.
        model_id : str, optional
            The logged model that the metrics belong to.
        **_
            Further arguments of MLflow, which an audit has no use for.

        Returns
        -------
        mlflow.models.EvaluationResult
            Metrics ``calipers/<name>``, ``.low``, ``.high``, ``.p_value``, named as by `flat_numbers` (MLflow
            takes no parentheses), ``calipers/severity`` (0 none to 3 issue) and ``calipers/issues``;
            artifacts report.html, audit.json and findings.json.

        Raises
        ------
        InputError
            For an option that is not known, data without targets, or predictions without uncertainty.
        """
        arguments = audit_arguments(dict(evaluator_config or {}), dataset, model, model_type)
        return log_audit(audit(**arguments), run_id=run_id, model_id=model_id)


def audit_arguments(options: dict[str, Any], dataset: Any, model: Any, model_type: Any) -> dict[str, Any]:
    """Everything ``calipers.audit`` needs, from what MLflow holds."""
    unknown = sorted(set(options) - {*OPTIONS, *OWN_OPTIONS})
    if unknown:
        raise InputError(
            f"evaluator_config of calipers must hold options it knows, got {unknown[0]!r}; "
            f"known are {', '.join(sorted((*OPTIONS, *OWN_OPTIONS)))}."
        )
    if dataset.labels_data is None:
        raise InputError("an audit needs what happened: name the column with targets=... .")
    arguments: dict[str, Any] = {"y_true": dataset.labels_data, "random_state": 0}
    features = dataset.features_data
    predicted = _predicted(options, dataset, model, model_type)
    if model is not None and options.get("features", True):
        arguments["X"] = features
    for role in ("groups", "ease", "sample_weight"):
        if role in options:
            arguments[role] = _column(features, options[role], role)
    return arguments | predicted | {key: options[key] for key in OPTIONS if key in options}


def _predicted(options: dict[str, Any], dataset: Any, model: Any, model_type: Any) -> dict[str, Any]:
    if model is None and dataset.predictions_data is None:
        return _by_column_name(dataset.features_data, dataset.labels_data, options)
    if model is None:
        return _by_shape(dataset.predictions_data, options.get("predicts"), model_type)
    raw = _inside(model)
    if states_uncertainty(raw):
        alpha = options.get("alpha", 0.1)
        return stated_by(raw, dataset.features_data, dataset.labels_data, alpha=alpha) | {
            "name": type(raw).__name__
        }
    output = model.predict(dataset.features_data)
    if is_frame(output):
        return _by_column_name(output, dataset.labels_data, options | {"features": False})
    return _by_shape(output, options.get("predicts"), model_type)


def _inside(model: Any) -> Any:
    """The model that was logged, when its flavour gives it away."""
    try:
        return model.get_raw_model()
    except (AttributeError, NotImplementedError):
        return None


def _by_column_name(frame: Any, labels: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Columns p_<class>, pvalue_<class>, set_<class>, lower and upper; the rest are features."""
    import polars as pl

    from calipers.arrays import frame_columns
    from calipers.inputs.files import arguments_of_frame

    columns = {str(name): column.to_numpy() for name, column in frame_columns(frame).items()}
    table = pl.DataFrame({"y_true": np.asarray(labels), **columns})
    found = arguments_of_frame(table, place="the data of this evaluation")
    if not set(found) & set(PREDICTED):
        raise InputError(
            "the data holds no predictions: name columns p_<class>, pvalue_<class>, set_<class>, "
            f"or lower and upper, or pass predictions=... ; it has {', '.join(list(columns)[:8])}."
        )
    kept = {key: value for key, value in found.items() if key != "y_true"}
    return kept if options.get("features", True) else {k: v for k, v in kept.items() if k != "X"}


def _by_shape(output: Any, predicts: str | None, model_type: Any) -> dict[str, Any]:
    if predicts is not None and predicts not in PREDICTED:
        raise InputError(f"predicts must be one of {', '.join(PREDICTED)}, got {predicts!r}.")
    values = as_numpy(output, name="predictions")
    if values.dtype == object and values.ndim == 1 and len(values) and np.ndim(values[0]) == 1:
        lengths = {len(row) for row in values}
        values = np.array(values.tolist()) if len(lengths) == 1 and predicts != "sets" else values
    if predicts is not None:
        return {predicts: values}
    if model_type == "regressor" and values.ndim in (2, 3):
        return {"intervals": values}
    if model_type == "classifier" and values.dtype.kind == "b":
        return {"sets": values}
    if model_type == "classifier" and values.dtype.kind == "f":
        return {"probabilities": values}
    raise InputError(
        f"predictions of shape {values.shape} and type {values.dtype} state no uncertainty that an audit "
        f"could read for model_type={model_type!r}. Let the model return probabilities or intervals, or say "
        f"what they are with evaluator_config={{'predicts': ...}}: one of {', '.join(PREDICTED)}."
    )


def _column(features: Any, name: str, role: str) -> Any:
    from calipers.arrays import frame_columns

    columns = frame_columns(features) if is_frame(features) else {}
    if name not in columns:
        raise InputError(
            f"{role} must name a column of the data, got {name!r}; it has {', '.join(list(columns)[:8])}."
        )
    return columns[name].to_numpy()


def log_audit(found: Audit, *, run_id: str, model_id: str | None = None) -> Any:
    """Metrics, findings and the report of an audit in one run."""
    mlflow = import_optional("mlflow", purpose="the evaluator", install="calipers[mlflow]")
    kinds = import_optional("mlflow.models.evaluation.artifacts", purpose="the evaluator", install="mlflow")
    client = mlflow.MlflowClient()
    numbers = flat_numbers(found.estimates, prefix=f"{FOLDER}/") | {
        f"{FOLDER}/severity": float(severity_rank(found.severity)),
        f"{FOLDER}/issues": float(sum(finding.severity == "issue" for finding in found.faults)),
        f"{FOLDER}/warnings": float(sum(finding.severity == "warning" for finding in found.faults)),
    }
    mlflow.log_metrics(numbers, run_id=run_id, model_id=model_id)
    client.set_tag(run_id, f"{FOLDER}.severity", found.severity)
    texts = {
        "report.html": found.to_html(),
        "audit.json": found.to_json(),
        "findings.json": findings_json(found),
    }
    place = client.get_run(run_id).info.artifact_uri
    artifacts = {}
    for file, text in texts.items():
        client.log_text(run_id, text, f"{FOLDER}/{file}")
        kind, content = (
            (kinds.JsonEvaluationArtifact, json.loads(text))
            if file.endswith(".json")
            else (kinds.TextEvaluationArtifact, text)
        )
        artifacts[f"{FOLDER}/{file}"] = kind(uri=f"{place}/{FOLDER}/{file}", content=content)
    return mlflow.models.EvaluationResult(metrics=numbers, artifacts=artifacts, run_id=run_id)


def findings_json(found: Audit) -> str:
    """The faults alone, the most serious first."""
    findings = json.loads(found.to_json())["findings"]
    return json.dumps([finding for finding in findings if finding["outcome"] == "fault"], indent=2)
