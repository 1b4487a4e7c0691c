"""Nonconformity of regression: residuals, the difficulty that scales them, the quantiles that bound them."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator

from calipers.arrays import as_numpy
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs import check_vector

# Predicted difficulties below this share of the mean residual are raised to it: any fixed positive
# function keeps the guarantee, and a tiny one would make a row's residual count for everything.
_FLOOR = 0.01


def absolute_residuals(y: np.ndarray, center: np.ndarray) -> np.ndarray:
    """``|y - f(x)|``."""
    return np.asarray(np.abs(y - center))


def quantile_residuals(y: np.ndarray, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """``max(low - y, y - high)``: how far outside (positive) or inside (negative) the band y lies."""
    return np.asarray(np.maximum(low - y, y - high))


class Difficulty:
    """A fitted model of the absolute residual, kept above a floor."""

    def __init__(self, model: Any, floor: float) -> None:
        self.model = model
        self.floor = floor

    def __call__(self, X: Any) -> np.ndarray:
        """Expected absolute residual of every row."""
        return np.maximum(as_numpy(self.model.predict(X)).astype(np.float64), self.floor)


def fit_difficulty(difficulty: Any, template: Any, fitted: Any, X: Any, y: Any) -> Any:
    """A function of X: as given, the model's own spread (None), or a regressor of residuals."""
    if difficulty is None and has_std(fitted):
        return None
    if isinstance(difficulty, FrozenEstimator) or (callable(difficulty) and not hasattr(difficulty, "fit")):
        return difficulty
    model = _default_difficulty() if difficulty is None else difficulty
    if not hasattr(model, "fit"):
        raise InputTypeError(
            f"difficulty must be a function of X or a regressor, got {type(difficulty).__name__}."
        )
    from sklearn.model_selection import cross_val_predict

    outcome = as_numpy(check_vector(y, name="y"))
    # Residuals of rows the model was trained on are too small, most of all where it overfits.
    center = fitted.predict(X) if isinstance(template, FrozenEstimator) else cross_val_predict(template, X, y)
    residuals = np.abs(outcome - as_numpy(center))
    floor = max(_FLOOR * float(residuals.mean()), float(np.finfo(np.float64).tiny))
    return Difficulty(clone(model).fit(X, residuals), floor)


def _default_difficulty() -> Any:
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(min_samples_leaf=10, random_state=0)


def positive_difficulty(difficulty: Any, model: Any, X: Any) -> np.ndarray:
    """The spread of every row, refused where it is not positive and finite."""
    if difficulty is None:
        if not has_std(model):
            raise InputError(
                'nonconformity="normalized" needs a difficulty: call fit, give difficulty a function or a '
                "fitted FrozenEstimator, or use a model with predict(X, return_std=True)."
            )
        spread = model.predict(X, return_std=True)[1]
    elif hasattr(difficulty, "predict"):
        spread = difficulty.predict(X)
    elif callable(difficulty):
        spread = difficulty(X)
    else:
        raise InputTypeError(
            f"difficulty must be a function of X or a regressor, got {type(difficulty).__name__}."
        )
    values = as_numpy(check_vector(spread, name="difficulty(X)")).astype(np.float64)
    if (values <= 0).any():
        row = int(np.argmax(values <= 0))
        raise InputError(f"difficulty must be positive, got {values[row]:g} at row {row}.")
    return values


def has_std(model: Any) -> bool:
    """Whether ``predict(X, return_std=True)`` is offered."""
    return _takes(_unfrozen(model).predict, "return_std") if hasattr(_unfrozen(model), "predict") else False


def fit_quantile_models(
    template: Any, X: Any, y: Any, levels: tuple[float, float, float], params: dict[str, Any]
) -> Any:
    """Models of the quantiles: one per level, a given pair, or a single one that predicts any quantile."""
    if isinstance(template, (list, tuple)):
        if len(template) not in (2, 3):
            raise InputError(
                "a list of quantile models must hold two (lower, upper) or three (lower, median, upper), "
                f"got {len(template)}."
            )
        return [clone(model).fit(X, y, **params) for model in template]
    name = quantile_parameter(template)
    if name is not None:
        return [clone(template).set_params(**{name: level}).fit(X, y, **params) for level in levels]
    return clone(template).fit(X, y, **params)


def quantile_parameter(model: Any) -> str | None:
    """The parameter that names the quantile, for models that fit one quantile at a time."""
    options = model.get_params(deep=False) if hasattr(model, "get_params") else {}
    if "quantile" in options:
        return "quantile"
    if "alpha" in options and "quantile" in (options.get("loss"), options.get("objective")):
        return "alpha"
    return None


def predict_quantiles(
    models: Any, X: Any, levels: tuple[float, float, float]
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray]:
    """Lower, middle (None where there is none) and upper quantile of every row; crossed ends swapped."""
    if isinstance(models, list):
        columns = [_vector(model.predict(X)) for model in models]
    elif _takes(_unfrozen(models).predict, "quantiles"):
        columns = list(np.asarray(models.predict(X, quantiles=list(levels)), dtype=np.float64).T)
    else:
        table = np.asarray(as_numpy(models.predict(X)), dtype=np.float64)
        if table.ndim != 2 or table.shape[1] not in (2, 3):
            raise InputError(
                'nonconformity="quantile" needs a model with a quantile parameter, with '
                "predict(X, quantiles=...), with two or three columns of predictions, or a list of two "
                f"models; predict(X) gave shape {table.shape}."
            )
        columns = list(table.T)
    low, high = np.minimum(columns[0], columns[-1]), np.maximum(columns[0], columns[-1])
    return low, columns[1] if len(columns) == 3 else None, high


def _vector(values: Any) -> np.ndarray:
    return as_numpy(check_vector(values, name="predict(X)")).astype(np.float64)


def _unfrozen(model: Any) -> Any:
    return model.estimator if isinstance(model, FrozenEstimator) else model


def _takes(function: Any, name: str) -> bool:
    try:
        return name in inspect.signature(function).parameters
    except (TypeError, ValueError):
        return False
