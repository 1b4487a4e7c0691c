"""A small convolutional network with the manners of a scikit-learn classifier; needs torch."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from calipers.arrays import import_optional


class SmallNetwork(ClassifierMixin, BaseEstimator):
    """Two convolutions and a linear layer on flattened square images.

    Parameters
    ----------
    epochs : int
        Passes over the training rows.
    random_state : int
        Seed of the weights and of the order of rows; the global state of torch is left as it was.
    """

    def __init__(self, epochs: int = 8, random_state: int = 0) -> None:
        self.epochs = epochs
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Train by Adam on cross-entropy."""
        torch = import_optional("torch", purpose="the convolutional case", install="calipers[torch]")
        self.classes_, codes = np.unique(y, return_inverse=True)
        side = round(np.sqrt(X.shape[1]))
        images = torch.from_numpy(np.asarray(X, dtype=np.float32)).reshape(-1, 1, side, side)
        labels = torch.from_numpy(codes.astype(np.int64))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(self.random_state)
            self.network_ = _network(torch, side, len(self.classes_))
            optimiser = torch.optim.Adam(self.network_.parameters(), lr=3e-3)
            for _ in range(self.epochs):
                for rows in torch.randperm(len(labels)).split(64):
                    optimiser.zero_grad()
                    loss = torch.nn.functional.cross_entropy(self.network_(images[rows]), labels[rows])
                    loss.backward()
                    optimiser.step()
        self.network_.eval()
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """Softmax of the network's answers."""
        torch = import_optional("torch", purpose="the convolutional case", install="calipers[torch]")
        side = round(np.sqrt(X.shape[1]))
        with torch.no_grad():
            images = torch.from_numpy(np.asarray(X, dtype=np.float32)).reshape(-1, 1, side, side)
            parts = [torch.softmax(self.network_(part).double(), dim=1) for part in images.split(4096)]
        return np.asarray(torch.cat(parts).numpy())

    def predict(self, X: Any) -> np.ndarray:
        """The most likely label."""
        return np.asarray(self.classes_[self.predict_proba(X).argmax(axis=1)])


def _network(torch: Any, side: int, n_classes: int) -> Any:
    nn, quarter = torch.nn, (side + 3) // 4  # two strides of two, each rounding up
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * quarter * quarter, n_classes),
    )
