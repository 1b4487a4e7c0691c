"""What measures: each number with its error bar, its noise floor and the method behind both."""

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
from calipers.metrics.entry import MetricEntry
from calipers.metrics.marginal import coverage, is_covered
from calipers.metrics.registry import metric_entries, metric_entry
from calipers.metrics.reliability import calibration_error

__all__ = [
    "MetricEntry",
    "calibration_error",
    "coverage",
    "deficit",
    "difficulty_concordance",
    "escv",
    "excess",
    "is_covered",
    "metric_entries",
    "metric_entry",
    "rank_cv",
    "rank_ss",
    "sscv",
    "t_cv",
    "t_ss",
    "true_rank",
    "width_against_error",
]
