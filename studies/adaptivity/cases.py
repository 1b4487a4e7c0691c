"""The study's classifiers: real models trained on few rows, so that there is difficulty to find."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from calipers.arrays import generator, is_installed
from calipers.datasets import load_fashion_mnist, load_usps
from studies.adaptivity.outputs import Outputs, compute_outputs
from studies.caching import remembered


@dataclass(frozen=True, slots=True)
class Case:
    """One data set and one model: rows to train on, rows kept for validation and test."""

    data: str
    model: str
    n_train: int
    n_pool: int

    @property
    def name(self) -> str:
        """Data set and model in one word."""
        return f"{self.data}-{self.model}"


FULL = (
    Case("fashion", "logistic", 1500, 10_000),
    Case("fashion", "mlp", 3000, 10_000),
    Case("fashion", "forest", 2000, 10_000),
    Case("fashion", "neighbours", 600, 10_000),
    Case("fashion", "network", 3000, 10_000),
    Case("usps", "logistic", 250, 7000),
    Case("usps", "mlp", 500, 7000),
    Case("usps", "forest", 400, 7000),
    Case("digits", "logistic", 120, 1600),
    Case("digits", "forest", 200, 1500),
)
# Models that need an optional part, and the part.
NEEDS = {"network": "torch"}
QUICK = (Case("digits", "logistic", 150, 800), Case("digits", "forest", 150, 600))


def available(cases: Iterable[Case]) -> tuple[Case, ...]:
    """The cases whose optional parts are installed."""
    return tuple(c for c in cases if c.model not in NEEDS or is_installed(NEEDS[c.model]))


def outputs_of(case: Case, data: Path | None, cache: Path | None) -> Outputs:
    """The case's answers and ease, trained and computed on the first call."""
    found = remembered(cache, state_and_perturb, case, *_source(case.data, data))
    return Outputs(case.name, found["probabilities"].astype(float), found["labels"], found["ease"])


def state_and_perturb(case: Case, X: np.ndarray, y: np.ndarray, shape: tuple[int, int]) -> dict[str, Any]:
    """Train the model; probabilities (kept in single precision), labels and ease of its pool of rows."""
    order = generator(7).permutation(len(y))
    train, pool = order[: case.n_train], order[case.n_train : case.n_train + case.n_pool]
    model = _model(case.model).fit(X[train], y[train])
    outputs = compute_outputs(
        case.name, model.predict_proba, X[pool], y[pool], image_shape=shape, batch_size=30_000
    )
    probabilities = outputs.probabilities.astype(np.float32)
    return {"probabilities": probabilities, "labels": outputs.labels, "ease": dict(outputs.ease)}


def _fashion(data: Path | None) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    source = load_fashion_mnist(data)
    return source.X.astype(np.float32) / 255.0, source.y, (28, 28)


def _usps(data: Path | None) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    source = load_usps(data)
    return np.asarray(source.X, dtype=np.float32), source.y, (16, 16)


def _digits(data: Path | None) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    from sklearn.datasets import load_digits

    X, y = load_digits(return_X_y=True)
    return (X / 16.0).astype(np.float32), y, (8, 8)


_LOADERS: dict[str, Callable[[Path | None], tuple[np.ndarray, np.ndarray, tuple[int, int]]]] = {
    "fashion": _fashion,
    "usps": _usps,
    "digits": _digits,
}


@lru_cache(maxsize=1)  # several models share a data set
def _source(name: str, data: Path | None) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    return _LOADERS[name](data)


def _model(name: str) -> Any:
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neighbors import KNeighborsClassifier
    from sklearn.neural_network import MLPClassifier

    from studies.adaptivity.network import SmallNetwork

    return {
        "network": SmallNetwork(),
        "logistic": LogisticRegression(C=0.1, max_iter=300),
        "mlp": MLPClassifier((64,), max_iter=40, early_stopping=True, random_state=0),
        "forest": RandomForestClassifier(60, min_samples_leaf=2, random_state=0),
        "neighbours": KNeighborsClassifier(15, algorithm="brute"),
    }[name]


def splits(n: int, repetitions: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Random halves of the pool, validation and test, as in the paper: drawn anew for every repetition."""
    for rng in generator(11).spawn(repetitions):
        order = rng.permutation(n)
        yield order[: n // 2], order[n // 2 :]
