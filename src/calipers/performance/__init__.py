"""Conformal performance prediction: what this model, or this algorithm retrained, will score next."""

from calipers.performance.algorithm import AlgorithmPerformance
from calipers.performance.candidate import CandidatePerformance
from calipers.performance.comparison import (
    AlgorithmComparison,
    compare_algorithms,
    forecast_learning_curves,
)
from calipers.performance.exchangeability import exchangeability_test
from calipers.performance.forecast import LossForecast, forecast_losses
from calipers.performance.group_monitor import GroupMonitor
from calipers.performance.guarantee import Guarantee
from calipers.performance.label_free import LabelFreePerformance
from calipers.performance.losses import LogLoss, PinballLoss
from calipers.performance.monitoring import LossMonitor
from calipers.performance.outcomes import ConfusionOutcome
from calipers.performance.promise_monitor import PromiseMonitor
from calipers.performance.risk_monitor import RiskMonitor
from calipers.performance.selective_classifier import SelectiveClassifier
from calipers.performance.selective_regressor import SelectiveRegressor
from calipers.performance.shift import effective_sample_size, estimate_shift_weights, shifted_intervals
from calipers.performance.symbolic import SymbolicPerformance

__all__ = [
    "AlgorithmComparison",
    "AlgorithmPerformance",
    "CandidatePerformance",
    "ConfusionOutcome",
    "GroupMonitor",
    "Guarantee",
    "LabelFreePerformance",
    "LogLoss",
    "LossForecast",
    "LossMonitor",
    "PinballLoss",
    "PromiseMonitor",
    "RiskMonitor",
    "SelectiveClassifier",
    "SelectiveRegressor",
    "SymbolicPerformance",
    "compare_algorithms",
    "effective_sample_size",
    "estimate_shift_weights",
    "exchangeability_test",
    "forecast_learning_curves",
    "forecast_losses",
    "shifted_intervals",
]


def __dir__() -> list[str]:
    return sorted(__all__)
