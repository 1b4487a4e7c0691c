"""Training a model with weights, where it can take them."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from calipers.exceptions import DegradedResultWarning, warn


def fit_weighted(model: Any, X: Any, y: Any, weights: np.ndarray | None) -> Any:
    """The fitted model; a model that takes no weights is fitted without them, with a warning.

    In a pipeline the weights go to every step that takes them.
    """
    if weights is None:
        return model.fit(X, y)
    if isinstance(model, Pipeline):
        steps = [name for name, step in model.steps if has_fit_parameter(step, "sample_weight")]
        if steps and steps[-1] == model.steps[-1][0]:
            return model.fit(X, y, **{f"{name}__sample_weight": weights for name in steps})
    elif has_fit_parameter(model, "sample_weight"):
        return model.fit(X, y, sample_weight=weights)
    warn(
        f"{type(model).__name__} takes no sample_weight and is trained without it; "
        "the weights are used for calibration only.",
        DegradedResultWarning,
    )
    return model.fit(X, y)
