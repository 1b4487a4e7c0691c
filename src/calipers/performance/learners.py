"""The auxiliary learners of Algorithm 3 and section 3.3, and one way to ask any of them for quantiles."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from calipers.arrays import is_installed
from calipers.exceptions import InputTypeError
from calipers.performance.fitting import seeded_clone


def default_regressor() -> Any:
    """Random forest: sound with the 50 to 1000 rows an auxiliary learner sees, and scale-free."""
    from sklearn.ensemble import RandomForestRegressor

    return RandomForestRegressor(n_estimators=200, min_samples_leaf=5)


def default_classifier() -> Any:
    """Random forest classifier; copes with a single class and gives smooth probabilities."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=200, min_samples_leaf=5)


def default_quantile_learner() -> Any:
    """Quantile regression forest where installed (extra ``forest``), else boosting with pinball loss."""
    if is_installed("quantile_forest"):
        from quantile_forest import RandomForestQuantileRegressor

        # All rows of a leaf count (None), as Meinshausen has it; subsampling them would also seed Python's
        # global generator.
        return RandomForestQuantileRegressor(n_estimators=200, min_samples_leaf=5, max_samples_leaf=None)
    from sklearn.ensemble import HistGradientBoostingRegressor

    return HistGradientBoostingRegressor(
        loss="quantile", quantile=0.5, learning_rate=0.05, max_iter=60, max_leaf_nodes=8, min_samples_leaf=10
    )


class QuantileLearner:
    """Predicts several quantiles with any regressor that can: one model, or one per level.

    Parameters
    ----------
    learner : estimator, or sequence of estimators
        A forest whose ``predict`` takes ``quantiles``; an estimator with a parameter ``quantile``
        (scikit-learn's QuantileRegressor, HistGradientBoostingRegressor), or ``alpha`` with
        ``loss="quantile"`` (GradientBoostingRegressor); or one ready estimator per level, in order.
    levels : tuple of float
        Quantile levels, ascending.
    seed : int
        For random states that are open.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.linear_model import QuantileRegressor
    >>> from calipers.performance.learners import QuantileLearner
    >>> X, y = np.zeros((5, 1)), np.array([1.0, 2.0, 3.0, 4.0, 5.0])
    >>> QuantileLearner(QuantileRegressor(alpha=0), (0.25, 0.75), 0).fit(X, y).predict(X[:1]).round(6)
    array([[2., 4.]])
    """

    def __init__(self, learner: Any, levels: tuple[float, ...], seed: int) -> None:
        self._learner, self._levels, self._seed = learner, levels, seed

    def fit(self, X: np.ndarray, y: np.ndarray) -> QuantileLearner:
        """Fit the model, or one per level."""
        self._models = [model.fit(X, y) for model in self._unfitted()]
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Quantiles per row, (n, levels), sorted so that they do not cross."""
        if self._joint:
            table = np.asarray(self._models[0].predict(X, quantiles=list(self._levels)), dtype=np.float64)
            table = table.reshape(len(X), len(self._levels))
        else:
            table = np.column_stack([np.asarray(m.predict(X), dtype=np.float64) for m in self._models])
        return np.sort(table, axis=1)

    def _unfitted(self) -> list[Any]:
        self._joint = False
        if isinstance(self._learner, (list, tuple)):
            if len(self._learner) != len(self._levels):
                raise InputTypeError(
                    f"learner must hold one estimator per quantile level ({len(self._levels)}), "
                    f"got {len(self._learner)}."
                )
            return [seeded_clone(model, self._seed) for model in self._learner]
        if _takes_quantiles(self._learner):
            self._joint = True
            return [seeded_clone(self._learner, self._seed)]
        name = _level_parameter(self._learner)
        return [
            seeded_clone(clone(self._learner).set_params(**{name: level}), self._seed)
            for level in self._levels
        ]


def _takes_quantiles(learner: Any) -> bool:
    from inspect import signature

    return "quantiles" in signature(learner.predict).parameters


def _level_parameter(learner: Any) -> str:
    parameters = learner.get_params(deep=False)
    if "quantile" in parameters:
        return "quantile"
    if "alpha" in parameters and parameters.get("loss") == "quantile":
        return "alpha"
    raise InputTypeError(
        f"learner must be able to predict quantiles, {type(learner).__name__} cannot. Use an estimator "
        "with a parameter quantile, a quantile forest, or a pair of estimators (low, high)."
    )
