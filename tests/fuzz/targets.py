"""What is called: every registered metric, and every other public function and estimator."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression, Ridge

import calipers
from calipers import auditing, calibration, conformal, difficulty, metrics, performance
from tests.contract.examples import EXAMPLES

ROWS = 24
# Objects of the user, which are called as they are; and what only changes the work, not the answer.
NOT_MUTATED = {"classifier", "cv", "estimator", "progress", "n_jobs", "cache"}
# Public names that are no call with arguments of their own, or are covered by tests of their own.
LEFT_OUT = {
    "MetricEntry": "a description", "metric_entries": "takes nothing", "metric_entry": "takes a name",
    "load_predictor": "tests/unit/conformal/test_persistence.py", "save_predictor": "tests/unit/conformal/test_persistence.py",
    "LikelihoodRatio": "an interface", "TunedPredictor": "a result", "tune_predictor": "minutes of fits",
    "ert": "seconds a call; its rows are those of worst_slab_coverage",
    "ert_table": "as ert", "failing_regions": "as ert",
    "AlgorithmComparison": "a result", "Guarantee": "a result", "LossForecast": "a result",
    "AlgorithmPerformance": "seconds of fits", "CandidatePerformance": "seconds of fits",
    "SymbolicPerformance": "seconds of fits", "compare_algorithms": "seconds of fits",
    "forecast_learning_curves": "seconds of fits", "LossMonitor": "an old name",
    "LabelFreePerformance": "seconds of fits",
    "ConfusionOutcome": "a loss", "LogLoss": "a loss", "PinballLoss": "a loss",
    "PromiseMonitor": "a stream", "RiskMonitor": "a stream", "GroupMonitor": "a stream",
    "AdaptiveConformal": "a stream", "SelectiveClassifier": "seconds of fits",
    "exchangeability_test": "seconds of fits", "SelectiveRegressor": "calls a model of the user",
    "CalibrationConstrainedClassifier": "check_estimator", "ConditionalCalibrator": "check_estimator",
    "IsotronClassifier": "check_estimator", "CalibratedClassifier": "check_estimator",
    "ease": "calls a model of the user", "tangent_distances": "images",
}  # fmt: skip
ROOMS = (metrics, conformal, calibration, performance, difficulty)


@dataclass(frozen=True, slots=True)
class Target:
    """A call with arguments that work."""

    name: str
    call: Callable[..., Any]
    make: Callable[[np.random.Generator], dict[str, Any]]

    def options(self) -> dict[str, Any]:
        """Keyword arguments that the signature has beyond those of the example, with their defaults."""
        try:
            found = inspect.signature(self.call).parameters.values()
        except (TypeError, ValueError):
            return {}
        kinds = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        return {
            p.name: p.default
            for p in found
            if p.kind in kinds and p.default is not p.empty and p.name not in NOT_MUTATED
        }


def _metric(name: str) -> Target:
    def make(rng: np.random.Generator) -> dict[str, Any]:
        data, options = EXAMPLES[name](rng, ROWS)
        return data | options

    return Target(name, getattr(metrics, name), make)


def _curve_rows(rng: np.random.Generator) -> dict[str, Any]:
    return EXAMPLES["calibration_error"](rng, ROWS)[0]


def _p_rows(rng: np.random.Generator) -> dict[str, Any]:
    return EXAMPLES["efficiency"](rng, ROWS)[0]


def _matrix(rng: np.random.Generator) -> dict[str, Any]:
    return {"P": rng.dirichlet(np.ones(3), ROWS)}


def _scores(rng: np.random.Generator) -> dict[str, Any]:
    return {"scores": rng.normal(size=ROWS), "alpha": 0.1}


def _fitted(predictor: Any, classes: int, method: str) -> Callable[..., Any]:
    def call(X: Any, y: Any, X_new: Any, alpha: Any = 0.1) -> Any:
        made = predictor().fit(X, y)
        return getattr(made, method)(X_new, **({"alpha": alpha} if method == "predict_set" else {}))

    return call


def _labelled(classes: int) -> Callable[[np.random.Generator], dict[str, Any]]:
    def make(rng: np.random.Generator) -> dict[str, Any]:
        X = rng.normal(size=(ROWS, 2))
        y = np.arange(ROWS) % classes if classes else X[:, 0] + rng.normal(size=ROWS)
        return {"X": X, "y": y, "X_new": rng.normal(size=(3, 2))}

    return make


def _calibrated(kind: Any) -> Callable[..., Any]:
    def call(probabilities: Any, y: Any, new: Any, sample_weight: Any = None) -> Any:
        return kind().fit(probabilities, y, sample_weight).predict(new)

    return call


def _binary(rng: np.random.Generator) -> dict[str, Any]:
    p = rng.random(ROWS)
    return {"probabilities": p, "y": (rng.random(ROWS) < p).astype(int), "new": rng.random(4)}


def _several(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "probabilities": rng.dirichlet(np.ones(3), ROWS), "y": np.arange(ROWS) % 3, "new": rng.dirichlet(np.ones(3), 4),
    }  # fmt: skip


def _audited(rng: np.random.Generator) -> dict[str, Any]:
    y = rng.normal(size=ROWS)
    return {
        "y_true": y, "intervals": np.tile([-1.0, 1.0], (ROWS, 1)), "X": rng.normal(size=(ROWS, 2)),
        "groups": np.array(["a", "b"])[np.arange(ROWS) % 2], "ease": rng.random(ROWS), "time": np.arange(ROWS),
        "sample_weight": np.ones(ROWS), "random_state": 0,
    }  # fmt: skip


def _audited_classes(rng: np.random.Generator) -> dict[str, Any]:
    P = rng.dirichlet(np.ones(3), ROWS)
    return {
        "y_true": np.arange(ROWS) % 3,
        "probabilities": P,
        "p_values": rng.random((ROWS, 3)),
        "random_state": 0,
    }


def _pair(rng: np.random.Generator) -> dict[str, Any]:
    p = rng.random(ROWS)
    return {"y_true": (rng.random(ROWS) < p).astype(int), "before": p, "after": p**1.2}


def _distances(rng: np.random.Generator) -> dict[str, Any]:
    points, new = rng.normal(size=(ROWS, 2)), rng.normal(size=(3, 2))
    between = [np.linalg.norm(a[:, None] - points[None], axis=2) for a in (points, new)]
    return {"train_distances": between[0], "y": np.arange(ROWS) % 2, "test_distances": between[1]}


_LOGISTIC = {"estimator": LogisticRegression(), "calibration_size": 0.5, "random_state": 0}
OTHERS: tuple[tuple[str, Callable[..., Any], Callable[[np.random.Generator], dict[str, Any]]], ...] = (
    ("is_covered", metrics.is_covered, lambda rng: EXAMPLES["coverage"](rng, ROWS)[0]),
    ("true_rank", metrics.true_rank, lambda rng: EXAMPLES["proper_scores"](rng, ROWS)[0]),
    ("reliability_curve", metrics.reliability_curve, _curve_rows),
    ("cumulative_difference_curve", metrics.cumulative_difference_curve, _curve_rows),
    ("efficiency_curve", metrics.efficiency_curve, _p_rows),
    ("selective_risk", metrics.selective_risk, lambda rng: EXAMPLES["selective_threshold"](rng, ROWS)[0]),
    *((name, getattr(conformal, name), _matrix) for name in ("lac", "aps", "raps", "saps", "margin", "top_k")),
    ("conformal_rank", conformal.conformal_rank, lambda rng: {"n": 99, "alpha": 0.1}),
    ("interval_ranks", conformal.interval_ranks, lambda rng: {"n": 99, "alpha": 0.1}),
    ("pac_rank", conformal.pac_rank, lambda rng: {"n": 99, "alpha": 0.1, "delta": 0.1}),
    ("smallest_calibration_size", conformal.smallest_calibration_size, lambda rng: {"alpha": 0.1}),
    ("smallest_pac_size", conformal.smallest_pac_size, lambda rng: {"alpha": 0.1, "delta": 0.1}),
    ("conformal_quantile", conformal.conformal_quantile, _scores),
    ("pac_quantile", conformal.pac_quantile, _scores),
    ("conformal_interval", conformal.conformal_interval, lambda rng: {"values": rng.normal(size=ROWS), "alpha": 0.1}),
    ("conformal_p_values", conformal.conformal_p_values,
     lambda rng: {"calibration_scores": rng.normal(size=ROWS), "test_scores": rng.normal(size=5)}),
    ("transductive_p_values", conformal.transductive_p_values, _distances),
    ("ConformalClassifier", _fitted(lambda: conformal.ConformalClassifier(**_LOGISTIC), 2, "predict_set"), _labelled(2)),
    ("ConformalRegressor",
     _fitted(lambda: conformal.ConformalRegressor(Ridge(), calibration_size=0.5, random_state=0), 0, "predict_interval"),
     _labelled(0)),
    ("TransductiveKNNClassifier", _fitted(conformal.TransductiveKNNClassifier, 2, "predict_set"), _labelled(2)),
    *((kind, _calibrated(getattr(calibration, kind)), _binary)
      for kind in ("IsotonicCalibrator", "LinkCalibrator", "VennAbersCalibrator")),
    *((kind, _calibrated(getattr(calibration, kind)), _several) for kind in ("OneVsRestCalibrator", "TemperatureCalibrator")),
    ("calibrate_if_needed", calibration.calibrate_if_needed,
     lambda rng: {"probabilities": _binary(rng)["probabilities"], "y": _binary(rng)["y"]}),
    ("bayes_decision", calibration.bayes_decision,
     lambda rng: {"probabilities": rng.random(ROWS), "false_positive_cost": 1.0, "false_negative_cost": 3.0}),
    ("loss_ratio", calibration.loss_ratio, lambda rng: _pair(rng) | {"false_positive_cost": 1.0, "false_negative_cost": 3.0}),
    ("loss_ratio_curve", calibration.loss_ratio_curve, _pair),
    ("cost_curve", calibration.cost_curve, _curve_rows),
    ("effective_sample_size", performance.effective_sample_size, lambda rng: {"weights": rng.random(ROWS)}),
    ("estimate_shift_weights", performance.estimate_shift_weights,
     lambda rng: {"X_old": rng.normal(size=(ROWS, 2)), "X_new": rng.normal(size=(ROWS, 2))}),
    ("forecast_losses", performance.forecast_losses, lambda rng: {"losses": rng.random(ROWS), "alpha": 0.1}),
    ("shifted_intervals", performance.shifted_intervals,
     lambda rng: {"losses": rng.random(ROWS), "weights": rng.random(ROWS), "new_weights": rng.random(3), "alpha": 0.1}),
    ("DifficultyBins", lambda ease, n_bins=3: difficulty.DifficultyBins(n_bins=n_bins), lambda rng: {"ease": rng.random(ROWS)}),
    ("ease_from_outputs", difficulty.ease_from_outputs,
     lambda rng: {"clean": rng.dirichlet(np.ones(3), ROWS), "transformed": rng.dirichlet(np.ones(3), (4, ROWS))}),
    ("uniform_mass_bins", difficulty.uniform_mass_bins, lambda rng: {"ease": rng.random(ROWS), "n_bins": 4}),
    ("uniform_mass_limits", difficulty.uniform_mass_limits, lambda rng: {"total": 24.0, "n_bins": 4}),
    ("rows_needed", auditing.rows_needed, lambda rng: {"effect": 0.05}),
    ("audit", calipers.audit, _audited),
    ("audit of classes", calipers.audit, _audited_classes),
)  # fmt: skip
SLOW = {"audit", "audit of classes", "worst_slab_coverage", "estimate_shift_weights", "calibrate_if_needed"}


def targets() -> Iterator[Target]:
    """Every call that is mutated."""
    for entry in metrics.metric_entries():
        if entry.name not in LEFT_OUT:
            yield _metric(entry.name)
    for name, call, make in OTHERS:
        yield Target(name, call, make)


def public_callables() -> set[str]:
    """Names that the rooms export and that can be called."""
    return {name for room in ROOMS for name in dir(room) if callable(getattr(room, name))}
