"""Scorers for cross_val_score and GridSearchCV: coverage gap, mean size, calibration error."""

from calipers.scorers.scorer_functions import calibration_scorer, coverage_scorer, size_scorer

__all__ = ["calibration_scorer", "coverage_scorer", "size_scorer"]


def __dir__() -> list[str]:
    return sorted(__all__)
