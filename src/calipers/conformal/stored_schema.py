"""What a stored predictor must hold, checked in full before it is handed out."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from calipers.arrays import as_numpy

_CALIBRATIONS = ("CalibrationScores", "WeightedScores")
# Fitted attribute -> whether what it holds can be what `fit` left there.
_ATTRIBUTES: dict[str, Callable[[Any], bool]] = {
    "n_features_in_": lambda value: _is_count(value, 1),
    "n_calibration_": lambda value: _is_count(value, 1),
    "draw_seed_": lambda value: _is_count(value, 0),
    "classes_": lambda value: value is not None and _is_labels(value),
    "group_labels_": lambda value: value is None or _is_labels(value),
    "grouping_": lambda value: value is None or callable(value),
    "estimator_": lambda value: hasattr(value, "predict"),
    "calibration_": lambda value: type(value).__name__ in _CALIBRATIONS,
    "_training": lambda value: not isinstance(value, np.ndarray) or bool(np.isfinite(value).all()),
}
_REQUIRED = {
    "ConformalClassifier": ("estimator_", "classes_", "n_features_in_"),
    "ConformalRegressor": ("estimator_", "n_features_in_"),
    "TransductiveKNNClassifier": ("classes_", "n_features_in_", "_training", "_distances", "_bag"),
}
_CALIBRATED = ("n_calibration_", "draw_seed_", "grouping_", "group_labels_")


def check_stored(predictor: Any) -> None:
    """Raise ValueError with a sentence when a part is missing, of another kind, or contradicts another.

    Examples
    --------
    >>> from calipers.conformal import ConformalClassifier
    >>> from calipers.conformal.stored_schema import check_stored
    >>> check_stored(ConformalClassifier())
    """
    found, kind = vars(predictor), type(predictor).__name__
    parameters = set(inspect.signature(type(predictor).__init__).parameters) - {"self"}
    if missing := sorted(parameters - set(found)):
        raise ValueError(f"it lacks the setting {missing[0]!r}")
    fitted = any(name.endswith("_") or name.startswith("_") for name in found)
    for name in _REQUIRED.get(kind, ()) if fitted else ():
        if name not in found:
            raise ValueError(f"it lacks {name!r}")
    for name, holds in _ATTRIBUTES.items():
        if name in found and not holds(found[name]):
            raise ValueError(f"{name!r} holds what no fit leaves there")
    if "calibration_" in found:
        if lost := [name for name in _CALIBRATED if name not in found]:
            raise ValueError(f"it lacks {lost[0]!r}")
        if type(found["calibration_"]).__name__ == "CalibrationScores":
            _check_scores(found["calibration_"], int(found["n_calibration_"]))


def _check_scores(scores: Any, most: int) -> None:
    """Sorted within cells, the cells one after another, and not more than rows were calibrated on."""
    ordered, starts, sizes = (as_numpy(getattr(scores, name)) for name in ("ordered", "starts", "sizes"))
    new_run = as_numpy(scores.new_run)
    n = ordered.size - 1  # rows that set the edges of difficulty bins have no score
    if ordered.ndim != 1 or not 0 < n <= most or int(sizes.sum()) != n or (sizes < 0).any():
        raise ValueError(f"the scores are not those of {most} calibration rows")
    if len(sizes) != (scores.n_groups + 1) * scores.n_labels or not np.array_equal(
        starts, np.append(0, np.cumsum(sizes))
    ):
        raise ValueError("the cells of the calibration scores contradict each other")
    values = ordered[:-1]
    if np.isnan(values).any() or not np.isnan(ordered[-1]) or new_run.shape != (max(n - 1, 0),):
        raise ValueError("the calibration scores are incomplete")
    same_cell = ~np.isin(np.arange(1, n), starts)
    if (values[1:] < values[:-1])[same_cell].any():
        raise ValueError("the calibration scores are not in order")
    if not np.array_equal(new_run, ~same_cell | (values[1:] != values[:-1])):
        raise ValueError("the ties of the calibration scores are not theirs")


def _is_count(value: Any, least: int) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool) and bool(value >= least)


def _is_labels(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.ndim == 1 and len(set(value.tolist())) == len(value) > 0
