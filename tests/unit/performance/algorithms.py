"""Small algorithms with known behaviour, at module level so that workers can import them."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator


class MeanModel(BaseEstimator):
    """Predicts the training mean; with ``jitter`` adds noise from its random state."""

    def __init__(self, jitter=0.0, random_state=None):
        self.jitter = jitter
        self.random_state = random_state

    def fit(self, X, y):
        noise = np.random.default_rng(self.random_state).normal() if self.jitter else 0.0
        self.mean_ = float(np.mean(y)) + self.jitter * noise
        return self

    def predict(self, X):
        return np.full(len(X), self.mean_)


class LastRowModel(MeanModel):
    """Remembers the last training row only: as far from symmetric as can be."""

    def fit(self, X, y):
        self.mean_ = float(y[-1])
        return self


class FailsOnLargeMean(MeanModel):
    """Raises when its training mean is positive."""

    def fit(self, X, y):
        if np.mean(y) > 0:
            raise ValueError("mean too large")
        return super().fit(X, y)


class NothingReturned:
    """Not a scikit-learn estimator, and ``fit`` returns None."""

    def fit(self, X, y):
        self.mean_ = float(np.mean(y))

    def predict(self, X):
        return np.full(len(X), self.mean_)


def signed_loss(model, X, y):
    """One value per row, of either sign."""
    return np.asarray(y) - model.predict(X)
