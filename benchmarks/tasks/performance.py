"""Performance prediction: what the machinery costs beside the fits it runs, and the vectorised study."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import BaseEstimator

from benchmarks.protocol import Answers, Inputs, Task

WORKERS = 2
ROWS_PER_FIT = 20
FEATURES = 20


class BusyMean(BaseEstimator):
    """Predicts the mean after using a fixed number of CPU milliseconds: a fit of known cost."""

    def __init__(self, milliseconds: float = 20.0, random_state: int | None = None) -> None:
        self.milliseconds = milliseconds
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> BusyMean:
        end = time.process_time() + self.milliseconds / 1e3
        self.mean_ = float(np.mean(y))
        while time.process_time() < end:
            pass
        return self

    def predict(self, X: Any) -> np.ndarray:
        return np.full(len(X), self.mean_)


def prepare_fits(milliseconds: float, n_fits: int) -> Inputs:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n_fits * ROWS_PER_FIT, FEATURES))
    Parallel(WORKERS)(delayed(time.sleep)(0.05) for _ in range(2 * WORKERS))  # warm workers
    return {"X": X, "y": X[:, 0] + rng.normal(size=len(X)), "n_fits": n_fits, "milliseconds": milliseconds}


def forecast(inputs: Inputs) -> Answers:
    from calipers.performance import AlgorithmPerformance

    found = AlgorithmPerformance(
        BusyMean(inputs["milliseconds"]),
        loss="squared",
        n_points=inputs["n_fits"],
        n_jobs=WORKERS,
        random_state=0,
    ).fit(inputs["X"], inputs["y"])
    return {"interval": np.array(found.interval())}


def fit_all(milliseconds: float, X: np.ndarray, y: np.ndarray) -> list[float]:
    blocks = zip(X.reshape(-1, ROWS_PER_FIT, FEATURES), y.reshape(-1, ROWS_PER_FIT), strict=True)
    return [BusyMean(milliseconds).fit(a, b).mean_ for a, b in blocks]


def bare_fits(inputs: Inputs) -> Any:
    """The same fits, one big task per worker: nobody can do them for less."""
    parts = zip(np.array_split(inputs["X"], WORKERS), np.array_split(inputs["y"], WORKERS), strict=True)
    return Parallel(WORKERS)(delayed(fit_all)(inputs["milliseconds"], X, y) for X, y in parts)


def prepare_losses(n: int) -> Inputs:
    return {"losses": np.random.default_rng(0).exponential(size=n)}


def interval_of_losses(inputs: Inputs) -> Answers:
    from calipers.performance import forecast_losses

    return {"interval": np.array(forecast_losses(inputs["losses"], 0.1).interval())}


def two_partitions(inputs: Inputs) -> Any:
    losses = inputs["losses"]
    return np.partition(losses, losses.size // 20), np.partition(losses, losses.size - losses.size // 20)


def sorted_ends(inputs: Inputs) -> Answers:
    ordered = np.sort(inputs["losses"])
    n = ordered.size
    low, high = -(-(n + 1) // 20) - 1, -(-(n + 1) * 19 // 20)
    return {"interval": np.array([ordered[low - 1], ordered[high - 1]])}


def prepare_models(models: int) -> Inputs:
    from studies.performance.descent import draw_rows, draw_start

    rng = np.random.default_rng(0)
    X, y = draw_rows(rng, (74, models), 20, "student")
    return {"X": X, "y": y, "start": draw_start(rng, models, 20)}


def descend_together(inputs: Inputs) -> Answers:
    from studies.performance.descent import batch_descent, stochastic_descent

    arguments = inputs["X"], inputs["y"], inputs["start"]
    return {"GD": batch_descent(*arguments), "SGD": stochastic_descent(*arguments)}


def descend_one_by_one(inputs: Inputs) -> Answers:
    """The same steps, model by model: what the vectorised version must agree with."""
    X, y = np.swapaxes(inputs["X"], 0, 1), inputs["y"].T
    batch, stochastic = inputs["start"].copy(), inputs["start"].copy()
    for k, (rows, target) in enumerate(zip(X, y, strict=True)):
        for _ in range(5):
            batch[k] -= 0.2 / len(rows) * rows.T @ (rows @ batch[k] - target)
            for row, value in zip(rows, target, strict=True):
                stochastic[k] -= 0.02 * (row @ stochastic[k] - value) * row
    return {"GD": batch, "SGD": stochastic}


TASKS = (
    Task(
        name="performance: 20 ms fits on two warm workers",
        sizes=(50, 200, 1000),
        prepare=lambda n: prepare_fits(20.0, n),
        ours=forecast,
        limit=bare_fits,
        bar="1000 fits of 20 ms cost less than 1.05 times the bare fits on two warm workers",
    ),
    Task(
        name="performance: 1 ms fits on two warm workers",
        sizes=(50, 200, 1000),
        prepare=lambda n: prepare_fits(1.0, n),
        ours=forecast,
        limit=bare_fits,
        bar="1000 fits of 1 ms: reported, no promise",
    ),
    Task(
        name="performance: interval from losses",
        sizes=(10_000, 100_000, 1_000_000),
        prepare=prepare_losses,
        ours=interval_of_losses,
        limit=two_partitions,
        exact=sorted_ends,
        bar="two partitions and little else",
    ),
    Task(
        name="performance: GD and SGD of the study, side by side",
        sizes=(10, 100, 1000),
        prepare=prepare_models,
        ours=descend_together,
        exact=descend_one_by_one,
        bar="1000 trials of 1000 models take minutes, not hours",
    ),
)
