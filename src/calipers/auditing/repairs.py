"""The repair of every fault, as code a reader can run.

The names in capital-free words are the reader's own: ``model`` is the fitted model, ``X_held_out`` and
``y_held_out`` are rows it has not seen, ``X_new`` the rows to predict.
"""

from __future__ import annotations

_CLASSIFIER = """from sklearn.frozen import FrozenEstimator
from calipers.conformal import ConformalClassifier

predictor = ConformalClassifier(FrozenEstimator(model){options}).fit(X_held_out, y_held_out)
predictor.conformalize(X_held_out, y_held_out{groups})
sets = predictor.predict_set(X_new, alpha={alpha:g}{new_groups})"""

_REGRESSOR = """from sklearn.frozen import FrozenEstimator
from calipers.conformal import ConformalRegressor

predictor = ConformalRegressor(FrozenEstimator(model), alpha={alpha:g}{options}).fit(X_held_out, y_held_out)
predictor.conformalize(X_held_out, y_held_out{groups})
intervals = predictor.predict_interval(X_new{new_groups})"""

_CALIBRATE = """from calipers.calibration import IsotonicCalibrator

calibrator = IsotonicCalibrator().fit(probabilities_held_out, y_held_out)
probabilities = calibrator.predict(probabilities_new)"""


def reconformalise(task: str, alpha: float) -> str:
    """Conformalise again, on fresh rows."""
    return _fill(task, alpha)


def by_group(task: str, alpha: float) -> str:
    """A threshold per group (Mondrian)."""
    return _fill(task, alpha, groups=", groups=groups_held_out", new_groups=", groups=groups_new")


def by_difficulty(task: str, alpha: float) -> str:
    """A threshold per bin of difficulty."""
    imports = "from calipers.difficulty import DifficultyBins\n"
    return imports + _fill(task, alpha, options=", groups=DifficultyBins(n_bins=10)")


def narrower(task: str, alpha: float) -> str:
    """Sets by the score that makes them smallest on average; intervals as wide as the features ask."""
    score = "normalized" if task == "regression" else "lac"
    return _fill(task, alpha, options=f', nonconformity="{score}"')


def calibrate() -> str:
    """A monotone map of the probabilities, fitted on held-out rows."""
    return _CALIBRATE


def _fill(task: str, alpha: float, *, options: str = "", groups: str = "", new_groups: str = "") -> str:
    template = _REGRESSOR if task == "regression" else _CLASSIFIER
    return template.format(alpha=alpha, options=options, groups=groups, new_groups=new_groups)
