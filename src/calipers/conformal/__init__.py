"""Conformal predictors, scores, ranks and p-values."""

from calipers.conformal.classifier import ConformalClassifier
from calipers.conformal.neighbours import TransductiveKNNClassifier
from calipers.conformal.p_values import conformal_p_values
from calipers.conformal.pac import pac_quantile, pac_rank, smallest_pac_size
from calipers.conformal.persistence import load_predictor, save_predictor
from calipers.conformal.ranks import (
    conformal_interval,
    conformal_quantile,
    conformal_rank,
    interval_ranks,
    smallest_calibration_size,
)
from calipers.conformal.regressor import ConformalRegressor
from calipers.conformal.scores import aps, lac, margin, raps, saps, top_k
from calipers.conformal.tangent import tangent_distances
from calipers.conformal.transduction import transductive_p_values
from calipers.conformal.tuning import TunedPredictor, tune_predictor
from calipers.conformal.weighted import LikelihoodRatio

__all__ = [
    "ConformalClassifier",
    "ConformalRegressor",
    "LikelihoodRatio",
    "TransductiveKNNClassifier",
    "TunedPredictor",
    "aps",
    "conformal_interval",
    "conformal_p_values",
    "conformal_quantile",
    "conformal_rank",
    "interval_ranks",
    "lac",
    "load_predictor",
    "margin",
    "pac_quantile",
    "pac_rank",
    "raps",
    "saps",
    "save_predictor",
    "smallest_calibration_size",
    "smallest_pac_size",
    "tangent_distances",
    "top_k",
    "transductive_p_values",
    "tune_predictor",
]


def __dir__() -> list[str]:
    return sorted(__all__)
