"""Small models with known probabilities, for the tests of the predictors."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin


class KnownProbabilities(ClassifierMixin, BaseEstimator):
    """A classifier whose probabilities are the features themselves; it is fitted from the start."""

    def __init__(self, labels=None):
        self.labels = labels
        if labels is not None:
            self.classes_ = np.asarray(labels)

    def fit(self, X, y):
        self.classes_ = np.unique(y) if self.labels is None else np.asarray(self.labels)
        self.n_features_in_ = np.asarray(X).shape[1]
        return self

    def predict_proba(self, X):
        return np.asarray(X, dtype=np.float64)

    def predict(self, X):
        return self.classes_[np.asarray(X).argmax(axis=1)]


class FirstColumn(RegressorMixin, BaseEstimator):
    """A regressor that predicts the first feature; it is fitted from the start."""

    def fit(self, X, y):
        return self

    def __sklearn_is_fitted__(self):
        return True

    def predict(self, X):
        return np.asarray(X, dtype=np.float64)[:, 0]


def labelled(rng, n, K=4, concentration=0.8):
    """Rows of probabilities and labels drawn from them."""
    P = rng.dirichlet(np.full(K, concentration), size=n)
    y = (P.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return P, np.minimum(y, K - 1)
