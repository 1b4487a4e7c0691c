"""What each library makes of a model's outputs; runs in that library's own environment.

``python -m benchmarks.acceptance.producers LIBRARY IN.npz OUT.npz``. IN holds what a trained model states
about the calibration rows and the rows to predict; OUT gets one array per method.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin

ALPHA = 0.1
Stated = dict[str, np.ndarray]


class StatedClassifier(ClassifierMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted classifier whose rows are the probabilities that the real model stated."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_classes = n_classes

    def fit(self, X: Any = None, y: Any = None) -> StatedClassifier:
        self.classes_ = np.arange(self.n_classes)
        self.n_features_in_ = self.n_classes
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        return np.asarray(X, dtype=float)

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(np.argmax(X, axis=1))


class StatedRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A fitted regressor whose prediction is one column of its rows."""

    def __init__(self, column: int = 0) -> None:
        self.column = column

    def fit(self, X: Any = None, y: Any = None) -> StatedRegressor:
        self.n_features_in_ = 3
        self.fitted_ = True
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.asarray(X, dtype=float)[:, self.column]


def of_mapie(stated: Stated) -> Stated:
    """Split-conformal sets by three scores; absolute residuals and conformalised quantiles."""
    if "calibration_probabilities" in stated:
        from mapie.classification import SplitConformalClassifier

        made, n_classes = {}, stated["calibration_probabilities"].shape[1]
        # It takes no other score for two classes.
        for score in ("lac", "aps", "top_k") if n_classes > 2 else ("lac",):
            model = StatedClassifier(n_classes).fit()
            predictor = SplitConformalClassifier(
                model, confidence_level=1 - ALPHA, conformity_score=score, prefit=True, random_state=0
            )
            predictor.conformalize(stated["calibration_probabilities"], stated["calibration_y"])
            made[f"sets {score}"] = predictor.predict_set(stated["probabilities"])[1][:, :, 0]
        return made
    from mapie.regression import ConformalizedQuantileRegressor, SplitConformalRegressor

    known, rows = _three_columns(stated, "calibration_"), _three_columns(stated, "")
    plain = SplitConformalRegressor(StatedRegressor(0).fit(), confidence_level=1 - ALPHA, prefit=True)
    plain.conformalize(known, stated["calibration_y"])
    ends = [StatedRegressor(1).fit(), StatedRegressor(2).fit(), StatedRegressor(0).fit()]
    quantiles = ConformalizedQuantileRegressor(ends, confidence_level=1 - ALPHA, prefit=True)
    quantiles.conformalize(known, stated["calibration_y"])
    return {
        "intervals absolute": plain.predict_interval(rows)[1][:, :, 0],
        "intervals quantile": quantiles.predict_interval(rows)[1][:, :, 0],
    }


def of_crepes(stated: Stated) -> Stated:
    """Smoothed p-values, plain and per class; residuals plain, normalised and in bins of the prediction."""
    if "calibration_probabilities" in stated:
        from crepes import WrapClassifier

        made = {}
        for name, options in (("hinge", {}), ("class-conditional", {"class_cond": True})):
            model = StatedClassifier(stated["calibration_probabilities"].shape[1]).fit()
            predictor = WrapClassifier(model)
            predictor.calibrate(
                stated["calibration_probabilities"], stated["calibration_y"], seed=0, **options
            )
            made[f"p_values {name}"] = predictor.predict_p(stated["probabilities"], seed=1)
        return made
    from crepes import ConformalRegressor
    from crepes.extras import binning

    residuals = stated["calibration_y"] - stated["calibration_prediction"]
    known, edges = binning(stated["calibration_prediction"], bins=5)
    bins = binning(stated["prediction"], bins=edges)
    sigmas, new_sigmas = stated["calibration_sigma"], stated["sigma"]
    return {
        "intervals absolute": ConformalRegressor()
        .fit(residuals)
        .predict_int(stated["prediction"], confidence=1 - ALPHA),
        "intervals normalised": ConformalRegressor()
        .fit(residuals, sigmas=sigmas)
        .predict_int(stated["prediction"], sigmas=new_sigmas, confidence=1 - ALPHA),
        "intervals Mondrian": ConformalRegressor()
        .fit(residuals, bins=known)
        .predict_int(stated["prediction"], bins=bins, confidence=1 - ALPHA),
    }


def of_torchcp(stated: Stated) -> Stated:
    """Sets by four scores with the library's own defaults; absolute residuals and quantiles."""
    from benchmarks.torchcp_parts import torchcp_rooms

    predictors, scores, _ = torchcp_rooms()
    import torch

    torch.manual_seed(0)
    cpu = torch.device("cpu")
    known_y = torch.from_numpy(np.ascontiguousarray(stated["calibration_y"]))
    if "calibration_probabilities" in stated:
        known, rows = (
            torch.from_numpy(np.log(np.maximum(stated[key], 1e-12)))
            for key in ("calibration_probabilities", "probabilities")
        )
        made = {}
        for name, options in (("lac", {}), ("aps", {}), ("raps", {"penalty": 0.01}), ("saps", {})):
            score = getattr(scores, name.upper())(**options)
            predictor = predictors.SplitPredictor(score, alpha=ALPHA, device=cpu)
            predictor.calculate_threshold(known, known_y.long())
            made[f"sets {name}"] = predictor.predict_with_logits(rows).numpy().astype(bool)
        return made
    from torchcp.regression.predictor import SplitPredictor as SplitRegression
    from torchcp.regression.score import ABS, CQR

    made = {}
    for name, score, columns in (("absolute", ABS(), [0]), ("quantile", CQR(), [1, 2])):
        known, rows = (torch.from_numpy(_three_columns(stated, p)[:, columns]) for p in ("calibration_", ""))
        predictor = SplitRegression(score, alpha=ALPHA, device=cpu)
        q = predictor._calculate_conformal_value(predictor.calculate_score(known, known_y), ALPHA)
        made[f"intervals {name}"] = predictor.generate_intervals(rows, q).numpy()[:, 0, :]
    return made


def _three_columns(stated: Stated, part: str) -> np.ndarray:
    return np.column_stack([stated[f"{part}{key}"] for key in ("prediction", "lower", "upper")]).astype(float)


LIBRARIES: dict[str, Callable[[Stated], Stated]] = {
    "mapie": of_mapie,
    "crepes": of_crepes,
    "torchcp": of_torchcp,
}

if __name__ == "__main__":
    library, source, target = sys.argv[1:]
    with np.load(source) as file:
        inputs = {key: file[key] for key in file.files}
    np.savez_compressed(target, **LIBRARIES[library](inputs))
