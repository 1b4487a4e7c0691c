"""Section 4.2: gradient descent against stochastic gradient descent on a linear model.

The paper does not print the dimension; two are run. Each trial of the candidate part trains both methods
once on 3750 rows; each trial of the algorithm part trains both a thousand times on 74 rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import Progress
from scipy import stats

from studies.performance.descent import METHODS, draw_rows, draw_start, squared_errors
from studies.performance.trials import ALPHA, TrialTable, run_trials, summarise

DIMENSIONS = (2, 20)


@dataclass(frozen=True)
class Sizes:
    """How large the runs are; trials, rows, test and points are the paper's by default.

    The paper does not say how many fresh training samples test an interval of the algorithm part
    (``retrainings``), and has no naive trials.
    """

    trials: int = 1000
    rows: int = 7500
    test: int = 2500
    points: int = 1000
    algorithm_rows: int = 75_000
    retrainings: int = 250
    naive_trials: int = 10_000

    @property
    def train_size(self) -> int:
        """Rows per subset of the algorithm part, floor((n - k) / k) = 74."""
        return self.algorithm_rows // self.points - 1


def candidate_tables(dimension: int, sizes: Sizes, folder: Path, progress: Progress) -> list[TrialTable]:
    """Candidate forecasts with normal noise: one interval per trial and method."""
    half = sizes.rows // 2

    def block(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
        X, y = draw_rows(rng, (half, count), dimension, "normal")
        fresh = draw_rows(rng, (half + sizes.test, count), dimension, "normal")
        start, chosen = draw_start(rng, count, dimension), rng.integers(sizes.test, size=count)
        found: dict[str, np.ndarray] = {}
        for name, descend in METHODS.items():
            losses = squared_errors(*fresh, descend(X, y, start)).T
            summary = summarise(losses[:, :half], losses[:, half:], chosen)
            found |= {f"{name}_{key}": value for key, value in summary.items()}
        return found

    name = f"candidate d={dimension}"
    arrays = run_trials(block, sizes.trials, 50, name=name, folder=folder, progress=progress)
    return [_table(method, arrays, half, sizes.test) for method in METHODS]


def algorithm_tables(dimension: int, sizes: Sizes, folder: Path, progress: Progress) -> list[TrialTable]:
    """Z-free algorithm forecasts with heavy-tailed noise: k retrained models behind every interval."""
    k, m, fresh = sizes.points, sizes.train_size, sizes.retrainings

    def block(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
        parts = [_algorithm_trial(rng, k, m, fresh, dimension) for _ in range(count)]
        return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}

    name = f"algorithm d={dimension}"
    arrays = run_trials(block, sizes.trials, 10, name=name, folder=folder, progress=progress)
    return [_table(method, arrays, k, fresh) for method in METHODS]


def _algorithm_trial(
    rng: np.random.Generator, k: int, m: int, fresh: int, dimension: int
) -> dict[str, np.ndarray]:
    """One trial: k subsets make the interval, further fresh samples of m rows test it."""
    models = k + fresh
    X, y = draw_rows(rng, (m + 1, models), dimension, "student")
    start, chosen = draw_start(rng, models, dimension), rng.integers(fresh, size=1)
    found: dict[str, np.ndarray] = {}
    for name, descend in METHODS.items():
        weights = descend(X[1:], y[1:], start)
        losses = squared_errors(X[:1], y[:1], weights)
        summary = summarise(losses[:, :k], losses[:, k:], chosen)
        found |= {f"{name}_{key}": value for key, value in summary.items()}
    return found


def _table(method: str, arrays: dict[str, np.ndarray], n_losses: int, n_test: int) -> TrialTable:
    fields = ("low", "high", "mean_loss", "new_covered", "coverage")
    columns = {field: arrays[f"{method}_{field}"] for field in fields}
    return TrialTable(name=method, n_losses=n_losses, n_test=n_test, **columns)


def naive_coverage(dimension: int, sizes: Sizes, folder: Path, progress: Progress) -> dict[str, np.ndarray]:
    """Two intervals people read off a five-fold cross-validation of one sample of 75 rows.

    ``quantiles``: the 5 % and 95 % points of the pooled fold losses. ``mean``: the mean of the fold means
    with its 90 % t interval. Target: the loss of a retrained model on a new case, as in the algorithm part.
    """
    m, folds = sizes.train_size, 5
    rows = m + 1

    def block(rng: np.random.Generator, count: int) -> dict[str, np.ndarray]:
        X, y = draw_rows(rng, (rows, count), dimension, "student")
        fresh = draw_rows(rng, (rows, count), dimension, "student")
        starts = draw_start(rng, (folds + 1) * count, dimension).reshape(folds + 1, count, dimension)
        found: dict[str, np.ndarray] = {}
        for name, descend in METHODS.items():
            losses = np.empty((rows, count))
            for fold in range(folds):
                held = np.arange(rows) % folds == fold
                weights = descend(X[~held], y[~held], starts[fold])
                losses[held] = squared_errors(X[held], y[held], weights)
            weights = descend(fresh[0][1:], fresh[1][1:], starts[folds])
            target = squared_errors(fresh[0][:1], fresh[1][:1], weights)[0]
            found |= {f"{name}_{kind}": hit for kind, hit in _naive_hits(losses, target, folds).items()}
        return found

    name = f"naive d={dimension}"
    return run_trials(block, sizes.naive_trials, 500, name=name, folder=folder, progress=progress)


def _naive_hits(losses: np.ndarray, target: np.ndarray, folds: int) -> dict[str, np.ndarray]:
    low, high = np.quantile(losses, [ALPHA / 2, 1 - ALPHA / 2], axis=0)
    means = np.stack([losses[fold::folds].mean(axis=0) for fold in range(folds)])
    margin = stats.t.ppf(1 - ALPHA / 2, folds - 1) * means.std(axis=0, ddof=1) / np.sqrt(folds)
    return {
        "quantiles": (target >= low) & (target <= high),
        "mean": np.abs(target - means.mean(axis=0)) <= margin,
    }
