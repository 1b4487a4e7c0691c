"""Which quantile a regressor was fitted to predict, read off its settings."""

from __future__ import annotations

from typing import Any


def quantile_levels_of(model: Any) -> list[float]:
    """The quantiles that a regressor predicts; empty when it predicts a mean or its settings are not known.

    Known are QuantileRegressor and the boosters of scikit-learn, LightGBM, XGBoost and CatBoost, alone or at
    the end of a pipeline or a search.
    """
    settings = _settings(_innermost(model))
    if settings.get("loss") == "quantile":
        return _numbers(settings.get("quantile", settings.get("alpha")))
    if settings.get("objective") == "quantile":
        return _numbers(settings.get("alpha", 0.9))  # LightGBM's own default
    if settings.get("objective") == "reg:quantileerror":
        return _numbers(settings.get("quantile_alpha"))
    if str(settings.get("loss_function", "")).startswith(("Quantile", "MultiQuantile")):
        return _catboost_levels(str(settings["loss_function"]))
    if type(_innermost(model)).__name__ == "QuantileRegressor":
        return _numbers(settings.get("quantile"))
    return []


def _innermost(model: Any) -> Any:
    """The model at the end of pipelines and searches."""
    while True:
        if hasattr(model, "best_estimator_"):
            model = model.best_estimator_
        elif hasattr(model, "steps"):
            model = model.steps[-1][1]
        else:
            return model


def _settings(model: Any) -> dict[str, Any]:
    return (
        model.get_params(deep=False) if hasattr(model, "get_params") and not isinstance(model, type) else {}
    )


def _numbers(levels: Any) -> list[float]:
    if levels is None:
        return []
    return [float(level) for level in (levels if hasattr(levels, "__len__") else [levels])]


def _catboost_levels(loss: str) -> list[float]:
    """The levels in "Quantile:alpha=0.9" or "MultiQuantile:alpha=0.1,0.9"; plain "Quantile" is the median."""
    _, _, options = loss.partition(":")
    for option in options.split(";"):
        name, _, value = option.partition("=")
        if name == "alpha":
            return [float(level) for level in value.split(",")]
    return [0.5]
