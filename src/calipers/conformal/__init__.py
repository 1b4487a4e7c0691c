"""Conformal predictors, scores, ranks and p-values.

Names are loaded on first use: ranks, scores and p-values need numpy alone, the estimators scikit-learn too.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calipers.conformal.adaptive import AdaptiveConformal
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

# Public name -> the module of this package that defines it.
_MODULES = {
    "AdaptiveConformal": "adaptive",
    "ConformalClassifier": "classifier",
    "ConformalRegressor": "regressor",
    "LikelihoodRatio": "weighted",
    "TransductiveKNNClassifier": "neighbours",
    "TunedPredictor": "tuning",
    "aps": "scores",
    "conformal_interval": "ranks",
    "conformal_p_values": "p_values",
    "conformal_quantile": "ranks",
    "conformal_rank": "ranks",
    "interval_ranks": "ranks",
    "lac": "scores",
    "load_predictor": "persistence",
    "margin": "scores",
    "pac_quantile": "pac",
    "pac_rank": "pac",
    "raps": "scores",
    "saps": "scores",
    "save_predictor": "persistence",
    "smallest_calibration_size": "ranks",
    "smallest_pac_size": "pac",
    "tangent_distances": "tangent",
    "top_k": "scores",
    "transductive_p_values": "transduction",
    "tune_predictor": "tuning",
}

__all__ = [
    "AdaptiveConformal",
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


def __getattr__(name: str) -> Any:
    # PEP 562, as in `calipers` itself; modules can be reached without importing them, too.
    if name in _MODULES.values():
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
