"""What measures: each number with its error bar, its noise floor and the method behind both.

Names are loaded on first use: a metric brings in its own module and what that needs, not all of them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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

# Public name -> the module it lives in.
_MODULES = {
    "MetricEntry": "metrics.entry",
    "average_p_value": "metrics.p_value_laws",
    "brier_decomposition": "metrics.reliability",
    "calibration_error": "metrics.reliability",
    "calibration_slope": "metrics.reliability",
    "calibration_tests": "metrics.reliability",
    "change_over_time": "metrics.over_time",
    "coverage": "metrics.marginal",
    "coverage_gap": "metrics.conditional",
    "crps": "metrics.distributions",
    "cumulative_difference_curve": "metrics.reliability",
    "deficit": "metrics.adaptivity",
    "difficulty_concordance": "metrics.adaptivity",
    "efficiency": "metrics.criteria",
    "efficiency_by_label": "metrics.criteria",
    "efficiency_curve": "metrics.criteria",
    "efficiency_difference": "metrics.criteria",
    "equal_opportunity_gap": "metrics.conditional",
    "ert": "metrics.conditional",
    "ert_table": "metrics.conditional",
    "escv": "metrics.adaptivity",
    "excess": "metrics.adaptivity",
    "expected_calibration_error": "metrics.reliability",
    "failing_regions": "metrics.conditional",
    "feature_stratified_coverage": "metrics.conditional",
    "is_covered": "inputs",
    "label_stratified_coverage": "metrics.conditional",
    "metric_entries": "metrics.registry",
    "metric_entry": "metrics.registry",
    "multicalibration_error": "metrics.multicalibration",
    "p_value_uniformity": "metrics.p_value_laws",
    "pit_uniformity": "metrics.distributions",
    "proper_scores": "metrics.probability_scores",
    "quantile_calibration": "metrics.distributions",
    "rank_cv": "metrics.adaptivity",
    "rank_ss": "metrics.adaptivity",
    "regression_efficiency": "metrics.interval_size",
    "reliability_curve": "metrics.reliability",
    "selective_risk": "metrics.selective",
    "selective_threshold": "metrics.selective",
    "size_coverage_correlation": "metrics.conditional",
    "size_coverage_hsic": "metrics.conditional",
    "size_stratified_coverage": "metrics.conditional",
    "smooth_calibration_error": "metrics.reliability",
    "sscv": "metrics.adaptivity",
    "t_cv": "metrics.adaptivity",
    "t_ss": "metrics.adaptivity",
    "true_rank": "metrics.adaptivity",
    "width_against_error": "metrics.adaptivity",
    "worst_slab_coverage": "metrics.conditional",
}

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
    # PEP 562, as in `calipers` itself.
    if name in _MODULES:
        value = getattr(importlib.import_module(f"calipers.{_MODULES[name]}"), name)
        globals()[name] = value
        return value
    if not name.startswith("_"):
        try:
            return importlib.import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
        return _named_by_registry(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _named_by_registry(name: str) -> Any:
    """Metrics that only the registry names."""
    from calipers.metrics.registry import metric_entries, metric_entry

    if name not in {entry.name for entry in metric_entries()}:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return metric_entry(name).function


def __dir__() -> list[str]:
    return sorted(__all__)
