"""Conformal predictors, scores, ranks and p-values."""

from calipers.conformal.ranks import (
    conformal_interval,
    conformal_quantile,
    conformal_rank,
    interval_ranks,
    smallest_calibration_size,
)

__all__ = [
    "conformal_interval",
    "conformal_quantile",
    "conformal_rank",
    "interval_ranks",
    "smallest_calibration_size",
]
