"""What measures: each number with its error bar, its noise floor and the method behind both."""

from typing import Any

from calipers.inputs import is_covered
from calipers.metrics.adaptivity import (
    deficit,
    difficulty_concordance,
    escv,
    excess,
    rank_cv,
    rank_ss,
    sscv,
    t_cv,
    t_ss,
    true_rank,
    width_against_error,
)
from calipers.metrics.conditional import (
    coverage_gap,
    equal_opportunity_gap,
    ert,
    ert_table,
    failing_regions,
    feature_stratified_coverage,
    label_stratified_coverage,
    size_coverage_correlation,
    size_coverage_hsic,
    size_stratified_coverage,
    worst_slab_coverage,
)
from calipers.metrics.criteria import (
    efficiency,
    efficiency_by_label,
    efficiency_curve,
    efficiency_difference,
)
from calipers.metrics.distributions import crps, pit_uniformity, quantile_calibration
from calipers.metrics.entry import MetricEntry
from calipers.metrics.interval_size import regression_efficiency
from calipers.metrics.marginal import coverage
from calipers.metrics.multicalibration import multicalibration_error
from calipers.metrics.over_time import change_over_time
from calipers.metrics.p_value_laws import average_p_value, p_value_uniformity
from calipers.metrics.probability_scores import proper_scores
from calipers.metrics.registry import metric_entries, metric_entry
from calipers.metrics.reliability import (
    brier_decomposition,
    calibration_error,
    calibration_slope,
    calibration_tests,
    cumulative_difference_curve,
    expected_calibration_error,
    reliability_curve,
    smooth_calibration_error,
)
from calipers.metrics.selective import selective_risk, selective_threshold

__all__ = [
    "MetricEntry",
    "average_p_value",
    "brier_decomposition",
    "calibration_error",
    "calibration_slope",
    "calibration_tests",
    "change_over_time",
    "coverage",
    "coverage_gap",
    "crps",
    "cumulative_difference_curve",
    "deficit",
    "difficulty_concordance",
    "efficiency",
    "efficiency_by_label",
    "efficiency_curve",
    "efficiency_difference",
    "equal_opportunity_gap",
    "ert",
    "ert_table",
    "escv",
    "excess",
    "expected_calibration_error",
    "failing_regions",
    "feature_stratified_coverage",
    "is_covered",
    "label_stratified_coverage",
    "metric_entries",
    "metric_entry",
    "multicalibration_error",
    "p_value_uniformity",
    "pit_uniformity",
    "proper_scores",
    "quantile_calibration",
    "rank_cv",
    "rank_ss",
    "regression_efficiency",
    "reliability_curve",
    "selective_risk",
    "selective_threshold",
    "size_coverage_correlation",
    "size_coverage_hsic",
    "size_stratified_coverage",
    "smooth_calibration_error",
    "sscv",
    "t_cv",
    "t_ss",
    "true_rank",
    "width_against_error",
    "worst_slab_coverage",
]


def __getattr__(name: str) -> Any:
    """Metrics that only the registry names."""
    if name.startswith("_") or name not in {entry.name for entry in metric_entries()}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return metric_entry(name).function


def __dir__() -> list[str]:
    return sorted(__all__)
