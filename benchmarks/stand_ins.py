"""Models that only pass on what they are given, so that every library scores the same numbers."""

from __future__ import annotations

from typing import Any

import numpy as np


class Passes:
    """A fitted scikit-learn style classifier whose probabilities are its features."""

    _estimator_type = "classifier"

    def __init__(self, labels: int) -> None:
        self.labels = labels
        self.classes_ = np.arange(labels)
        self.n_features_in_ = labels

    def fit(self, X: Any, y: Any) -> Passes:
        return self

    def predict_proba(self, X: Any) -> Any:
        return X

    def predict(self, X: Any) -> Any:
        return self.classes_[np.asarray(X).argmax(axis=1)]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return {"labels": self.labels}

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def __sklearn_tags__(self) -> Any:
        from sklearn.utils import ClassifierTags, InputTags, Tags, TargetTags

        return Tags(
            estimator_type="classifier",
            target_tags=TargetTags(required=True),
            classifier_tags=ClassifierTags(),
            input_tags=InputTags(),
        )


def zero_regressor() -> Any:
    """A fitted scikit-learn regressor that always says 0."""
    from sklearn.dummy import DummyRegressor

    return DummyRegressor(strategy="constant", constant=0.0).fit(np.zeros((2, 1)), np.zeros(2))


def random_probabilities(
    n: int, labels: int, seed: int = 0, flatness: float = 0.3
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of probabilities, and labels drawn from them: a model that knows the truth."""
    rng = np.random.default_rng(seed)
    P = rng.gamma(flatness, size=(n, labels)) + 1e-9
    P /= P.sum(axis=1, keepdims=True)
    y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(max=labels - 1)
    return P, y


def puncc_predictor(labels: int) -> Any:
    """The same for puncc, which asks for a predictor of its own kind."""
    from deel.puncc.api.prediction import BasePredictor

    class Probabilities(BasePredictor):  # type: ignore[misc]
        def predict(self, X: Any, **kwargs: Any) -> Any:
            return np.asarray(X)

    return Probabilities(Passes(labels), is_trained=True)


def as_matrix(sets: Any, labels: int) -> np.ndarray:
    """Lists of labels as booleans (n, K)."""
    found = np.zeros((len(sets), labels), dtype=bool)
    for row, members in enumerate(sets):
        found[row, np.asarray(members, dtype=int)] = True
    return found
