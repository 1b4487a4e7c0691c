"""The table of promises: what is promised, and the worlds in which it is tried.

One line per metric, forecast, certificate, predictor and calibrator with a promise. A public name that neither
stands here nor in `NO_PROMISE` fails a test. To add one: write its trial, add its line.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tests.grid import coverage_worlds as coverage
from tests.grid import difficulty_worlds as difficulty
from tests.grid import distribution_worlds as distribution
from tests.grid import forecast_worlds as forecast
from tests.grid import p_value_worlds as p_values
from tests.grid import probability_worlds as probability
from tests.grid import repair_worlds as repair
from tests.grid.metric_trials import able
from tests.grid.readings import Reading
from tests.grid.regimes import CALIBRATION, CONSTANT, EVENTS, SINGLE, SIZES, TIES, Regime

Trial = Callable[[np.random.Generator, Regime], list[Reading]]
# Runs of a cell: the first number, and more while its counts do not lie on the safe side.
CHEAP, COSTLY, DEAR = (60, 300), (40, 160), (20, 80)


@dataclass(frozen=True, slots=True)
class Promise:
    """A named promise, how one data set is tried, the regimes, and how often."""

    name: str
    trial: Trial
    regimes: tuple[Regime, ...]
    runs: tuple[int, ...] = CHEAP


def metric(name: str, trial: Trial, *regimes: tuple[Regime, ...], runs: tuple[int, ...] = CHEAP) -> Promise:
    """A registered metric: the regimes named, and those that its entry says that it serves."""
    return Promise(name, trial, able(name, sum(regimes, ())), runs)


def up_to(n: int, regimes: tuple[Regime, ...], *without: str) -> tuple[Regime, ...]:
    """The regimes of at most n rows, without some models."""
    return tuple(r for r in regimes if r.n <= n and r.model not in without)


def without(promise: Promise, *models: str) -> Promise:
    """Without models whose truth is not known for this promise, or about which it promises nothing."""
    return Promise(promise.name, promise.trial, up_to(10**9, promise.regimes, *models), promise.runs)


ROWS = (SIZES, EVENTS, TIES, CONSTANT, SINGLE)
NO_EVENTS = (SIZES, TIES, CONSTANT, SINGLE)
SMALL = (up_to(2000, SIZES), up_to(200, TIES), CONSTANT)
HOPELESS = (Regime(600, "hopeless"),)
LOSSES = (*up_to(200, SIZES, "hopeless"), Regime(2000), TIES[1], *CONSTANT, SINGLE[0])
SCORES = (*up_to(2000, SIZES), *EVENTS, *TIES[1:], *CONSTANT)
SETS = (*up_to(200, SIZES, "uneven"), TIES[1], *CONSTANT, SINGLE[0], Regime(200, n_calibration=19), Regime(5))

STRATIFIED = (
    "coverage", "t_cv", "sscv", "escv", "rank_cv", "coverage_gap", "feature_stratified_coverage",
    "size_stratified_coverage", "label_stratified_coverage", "equal_opportunity_gap",
)  # fmt: skip
SCORED = (
    "proper_scores", "calibration_error", "calibration_slope", "brier_decomposition", "expected_calibration_error",
)  # fmt: skip

METRICS = (
    *(metric(name, coverage.stratified(name), *ROWS) for name in STRATIFIED),
    without(metric("change_over_time", coverage.over_time, up_to(2000, SIZES), EVENTS[2:], TIES[1:], CONSTANT, runs=COSTLY), "uneven"),
    metric("size_coverage_correlation", coverage.size_dependence("size_coverage_correlation"), up_to(2000, SIZES), TIES, CONSTANT, SINGLE),
    without(metric("size_coverage_hsic", coverage.size_dependence("size_coverage_hsic"), up_to(200, SIZES), TIES[1:], CONSTANT, runs=COSTLY), "uneven"),
    without(metric("worst_slab_coverage", coverage.searched("worst_slab_coverage", n_directions=50), up_to(2000, SIZES), EVENTS, CONSTANT, SINGLE[:1], runs=COSTLY), "uneven"),
    without(metric("failing_regions", coverage.searched("failing_regions", keep="all"), SIZES, EVENTS, CONSTANT, SINGLE[:1], runs=COSTLY), "uneven"),
    without(metric("ert", coverage.excess_risk("ert"), up_to(200, SIZES), CONSTANT, runs=DEAR), "uneven"),
    without(metric("ert_table", coverage.excess_risk("ert_table"), (SIZES[0], SIZES[3]), runs=DEAR), "uneven"),
    *(metric(name, probability.scored(name), *ROWS) for name in SCORED),
    without(metric("calibration_tests", probability.scored("calibration_tests"), *ROWS), "hopeless", "uneven"),
    metric("smooth_calibration_error", probability.scored("smooth_calibration_error"), up_to(200, SIZES), EVENTS[1:2], TIES[1:2], CONSTANT, runs=DEAR),
    without(metric("multicalibration_error", probability.scored("multicalibration_error"), up_to(2000, SIZES), EVENTS, TIES, CONSTANT, runs=COSTLY), "hopeless", "uneven"),
    metric("t_ss", difficulty.adaptive_sizes("t_ss"), *NO_EVENTS, HOPELESS),
    metric("rank_ss", difficulty.adaptive_sizes("rank_ss"), *NO_EVENTS, HOPELESS),
    metric("deficit", difficulty.adaptive_sizes("deficit"), *NO_EVENTS),
    metric("excess", difficulty.adaptive_sizes("excess"), *NO_EVENTS),
    metric("difficulty_concordance", difficulty.adaptive_sizes("difficulty_concordance"), *SMALL, runs=COSTLY),
    metric("width_against_error", difficulty.widths, *SMALL, SINGLE[:1], runs=COSTLY),
    metric("pit_uniformity", distribution.pit_values, *NO_EVENTS),
    metric("quantile_calibration", distribution.quantiles("quantile_calibration"), *ROWS),
    metric("crps", distribution.quantiles("crps"), *NO_EVENTS),
    metric("regression_efficiency", distribution.interval_sizes, *NO_EVENTS),
    metric("p_value_uniformity", p_values.uniformity, up_to(10**5, SIZES, "near-perfect", "hopeless"), TIES, SINGLE),
    metric("average_p_value", p_values.criteria("average_p_value"), *NO_EVENTS),
    metric("efficiency", p_values.criteria("efficiency"), *NO_EVENTS),
    metric("efficiency_by_label", p_values.criteria("efficiency_by_label"), *NO_EVENTS),
    metric("efficiency_difference", p_values.criteria("efficiency_difference"), *NO_EVENTS),
    metric("selective_threshold", repair.threshold, *NO_EVENTS),
)  # fmt: skip

OTHERS = (
    Promise("selective_risk", repair.risk_band, sum(SMALL, ())),
    Promise("forecast_losses", forecast.next_loss, LOSSES),
    Promise("CandidatePerformance", forecast.candidate, LOSSES),
    Promise("AlgorithmPerformance", forecast.algorithm, LOSSES[3:], COSTLY),
    Promise("compare_algorithms", forecast.compared, LOSSES[3:6], DEAR),
    Promise("forecast_learning_curves", forecast.learning_curve, LOSSES[3:], COSTLY),
    Promise("SymbolicPerformance", forecast.symbolic, up_to(2000, SIZES[3:], "uneven"), DEAR),
    Promise("LossMonitor", forecast.loss_monitor, LOSSES, COSTLY),
    Promise("PromiseMonitor", forecast.promise_monitor, (SIZES[0], SIZES[3], SIZES[7], *EVENTS, *CALIBRATION), COSTLY),
    Promise("RiskMonitor", forecast.risk_monitor, up_to(2000, LOSSES, "uneven"), COSTLY),
    Promise("GroupMonitor", forecast.group_monitor, (SIZES[0], SIZES[3], SIZES[7], *EVENTS, *CALIBRATION), COSTLY),
    Promise("exchangeability_test", forecast.exchangeable, LOSSES),
    Promise("shifted_intervals", forecast.shifted, LOSSES),
    Promise("LabelFreePerformance", forecast.label_free, (*SIZES[3:7], TIES[1], *CONSTANT), DEAR),
    Promise("conformal_quantile", repair.quantile, (*LOSSES, Regime(5))),
    Promise("conformal_p_values", repair.p_values, (*LOSSES, Regime(5))),
    Promise("pac_quantile", repair.pac, (SIZES[0], SIZES[3], SIZES[7], Regime(5))),
    Promise("ConformalClassifier", repair.classifier, SETS),
    Promise("ConformalRegressor", repair.regressor, (*LOSSES, Regime(5))),
    Promise("TransductiveKNNClassifier", repair.transductive, (*up_to(200, SIZES, "uneven"), TIES[1], *CONSTANT), COSTLY),
    Promise("DifficultyBins", repair.bins, (Regime(90), Regime(200), Regime(200, "near-perfect"), TIES[1]), COSTLY),
    Promise("AdaptiveConformal", repair.adaptive, (*up_to(200, SIZES), TIES[1], *CONSTANT, SINGLE[0]), DEAR),
    Promise("SelectiveClassifier", repair.silent, sum(SMALL, SINGLE)),
    Promise("tune_predictor", repair.tuned, SETS, COSTLY),
    Promise("IsotonicCalibrator", repair.isotonic, SCORES, COSTLY),
    Promise("VennAbersCalibrator", repair.venn_abers, (*up_to(200, SIZES), TIES[1], *CONSTANT), DEAR),
    Promise("ConditionalCalibrator", repair.leaves_alone, up_to(2000, SCORES, "hopeless", "uneven"), DEAR),
    Promise("CalibrationConstrainedClassifier", repair.constrained, (*up_to(2000, SIZES, "uneven"), TIES[1]), DEAR),
    Promise("loss_ratio", repair.ratio, SCORES, COSTLY),
    Promise("cost_curve", repair.costs, (*SCORES, SIZES[-1])),
)  # fmt: skip

PROMISES = {promise.name: promise for promise in (*METRICS, *OTHERS)}

# Public names that promise no probability, and those whose promise is that of another line.
NO_PROMISE = {
    "AlgorithmComparison": "the result of compare_algorithms",
    "Guarantee": "the words of a forecast's promise",
    "LossForecast": "the result of forecast_losses",
    "TunedPredictor": "the result of tune_predictor",
    "calibrate_if_needed": "ConditionalCalibrator in one call",
    "conformal_interval": "tried with conformal_quantile",
    "loss_ratio_curve": "loss_ratio at every threshold",
    "SelectiveRegressor": "selective_threshold of misses and widths",
    "transductive_p_values": "tried with TransductiveKNNClassifier",
} | dict.fromkeys(
    (
        "ConfusionOutcome", "LogLoss", "PinballLoss", "effective_sample_size", "estimate_shift_weights",
        "CalibratedClassifier", "IsotronClassifier", "LinkCalibrator", "OneVsRestCalibrator",
        "TemperatureCalibrator", "bayes_decision", "LikelihoodRatio", "aps", "conformal_rank", "interval_ranks",
        "lac", "load_predictor", "margin", "pac_rank", "raps", "saps", "save_predictor",
        "smallest_calibration_size", "smallest_pac_size", "tangent_distances", "top_k",
    ),
    "no promise of its own",
)  # fmt: skip
