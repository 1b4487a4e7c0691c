"""Figures 3 and 4: intervals of a Gaussian-output model on public regression sets."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.frozen import FrozenEstimator

from calipers.arrays import generator
from calipers.conformal import ConformalRegressor, smallest_pac_size
from calipers.datasets import load_regression
from calipers.difficulty import DifficultyBins, ease
from calipers.exceptions import CalipersWarning
from calipers.metrics import is_covered
from calipers.metrics.adaptivity.binning import bin_by_ease
from calipers.metrics.adaptivity.correlation import signed_square
from studies.adaptivity.methods import bare_t_ss

ALPHAS = (0.2, 0.3, 0.4)
METHODS = ("CP", "CP-A", "PAC", "SSCP", "O-CPA", "O-PAC")
DELTA = 1e-5
Row = dict[str, Any]


class GaussianBoosting(RegressorMixin, BaseEstimator):
    """Mean and standard deviation by gradient boosting: the spread is learned from out-of-fold residuals."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the mean, then the absolute residuals of cross-validated predictions."""
        from sklearn.ensemble import HistGradientBoostingRegressor
        from sklearn.model_selection import cross_val_predict

        options = {"max_iter": 80, "max_leaf_nodes": 15, "random_state": self.random_state}
        self.mean_ = HistGradientBoostingRegressor(**options).fit(X, y)
        residuals = np.abs(y - cross_val_predict(HistGradientBoostingRegressor(**options), X, y, cv=3))
        self.spread_ = HistGradientBoostingRegressor(**options).fit(X, residuals)
        # E|N(0, s^2)| = s sqrt(2 / pi)
        self.floor_ = 0.05 * float(residuals.mean())
        return self

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Mean, or mean and standard deviation."""
        mean = self.mean_.predict(X)
        if not return_std:
            return mean
        return mean, np.maximum(self.spread_.predict(X), self.floor_) * np.sqrt(np.pi / 2)


class DenoisingLoss:
    """The self-supervised difficulty of SSCP: what a denoising autoencoder fails to restore of a row.

    A small network with a narrow middle learns to give back rows from noisy copies of them, without their
    targets; rows unlike the others, or between their modes, are restored badly. It is trained once per
    training sample.
    """

    def __init__(self, rows: np.ndarray, seed: int, noise: float = 0.2) -> None:
        from sklearn.neural_network import MLPRegressor

        d = rows.shape[1]
        layers = (max(32, 4 * d), max(2, d // 2), max(32, 4 * d))
        rng = np.random.default_rng([seed, 17])
        copies = np.repeat(rows, 2, axis=0)
        noisy = copies + noise * rng.normal(size=copies.shape)
        self.model = MLPRegressor(
            hidden_layer_sizes=layers,
            activation="tanh",
            learning_rate_init=5e-3,
            max_iter=300,
            n_iter_no_change=20,
            early_stopping=True,
            random_state=seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # an early code serves as well
            self.model.fit(noisy, copies if d > 1 else copies[:, 0])
        # Difficulties that are almost 0 would make a row's residual count for everything.
        self.floor = 0.1 * float(np.mean(self._loss(rows)))

    def _loss(self, rows: np.ndarray) -> np.ndarray:
        back = np.reshape(self.model.predict(rows), rows.shape)
        return np.asarray(np.sqrt(np.mean((rows - back) ** 2, axis=1)))

    def __call__(self, rows: Any) -> np.ndarray:
        """Root mean squared restoration error of every row."""
        return np.asarray(np.maximum(self._loss(np.asarray(rows, dtype=float)), self.floor))


def load_rows(name: str, data: Path | None) -> tuple[np.ndarray, np.ndarray]:
    """Features and targets of a public regression set."""
    source = load_regression(name, data)
    return np.asarray(source.X, dtype=float), np.asarray(source.y, dtype=float)


def regression_rows(
    name: str, X: np.ndarray, y: np.ndarray, *, seeds: int, rows: int, n_bins: int
) -> list[Row]:
    """One row per seed, level and method."""
    X = (X - X.mean(axis=0)) / np.where(X.std(axis=0) > 0, X.std(axis=0), 1.0)
    y = (y - y.mean()) / y.std()
    found: list[Row] = []
    for seed, rng in enumerate(generator(3).spawn(seeds)):
        order = rng.permutation(len(y))[:rows]
        train, calibration, test = np.split(order, [rows // 3, 2 * rows // 3])
        model = FrozenEstimator(GaussianBoosting(seed).fit(X[train], y[train]))
        score = ease(model.predict, X[test], scale=0.1, similarity="exp_abs", random_state=seed)
        error = np.abs(y[test] - model.predict(X[test]))
        loss = DenoisingLoss(X[train], seed)
        for alpha in ALPHAS:
            for method in METHODS:
                predictor = _predictor(method, model, alpha, loss, seed)
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", CalipersWarning)  # merged bins are part of the method
                    predictor.conformalize(X[calibration], y[calibration])
                    intervals = predictor.predict_interval(X[test])
                width = intervals[:, 1] - intervals[:, 0]
                covered = np.asarray(is_covered(y[test], intervals))
                row = {"data": name, "seed": seed, "alpha": alpha, "method": method}
                found.append(row | _measure(covered, width, error, score, alpha, n_bins))
    return found


def _predictor(method: str, model: Any, alpha: float, loss: Any, seed: int) -> ConformalRegressor:
    pac = {"guarantee": "pac", "delta": DELTA}
    needed = smallest_pac_size(alpha, delta=DELTA)
    options: dict[str, dict[str, Any]] = {
        "CP": {},
        "CP-A": {"nonconformity": "normalized"},
        "PAC": {"nonconformity": "normalized"} | pac,
        "SSCP": {"nonconformity": "normalized", "difficulty": loss},
        "O-CPA": {"nonconformity": "normalized", "groups": _bins(seed, alpha, None)},
        "O-PAC": {"nonconformity": "normalized", "groups": _bins(seed, alpha, needed)} | pac,
    }
    return ConformalRegressor(model, alpha=alpha, **options[method])


def _bins(seed: int, alpha: float, min_rows: int | None) -> DifficultyBins:
    return DifficultyBins(
        n_bins=10, scale=0.1, similarity="exp_abs", alpha=alpha, min_rows=min_rows, random_state=seed
    )


def _measure(
    covered: np.ndarray, width: np.ndarray, error: np.ndarray, score: np.ndarray, alpha: float, n_bins: int
) -> Row:
    finite = np.isfinite(width)
    bins = bin_by_ease([covered], score, n_bins).means()[0]
    by_width = bin_by_ease([error[finite], width[finite]], width[finite], n_bins).means()
    by_width = by_width[:, ~np.isnan(by_width[0])]
    constant = np.ptp(width[finite]) <= 1e-9 * np.abs(width[finite]).max()
    return {
        "coverage": float(covered.mean()),
        "width": float(width[finite].mean()),
        "t_cv": float(np.nanmax(np.abs(bins - (1 - alpha)))),
        "t_ss": float("nan") if constant else bare_t_ss(error[finite], width[finite], score[finite], n_bins),
        "r_squared": float("nan") if constant else float(signed_square(*by_width)),
        # Figure 4: tau and R-squared of the same points, the means of bins of width
        "tau": float("nan") if constant else float(stats.kendalltau(*by_width).statistic),
        "tau_of_rows": (
            float("nan") if constant else float(stats.kendalltau(width[finite], error[finite]).statistic)
        ),
        "infinite": int(np.sum(~finite)),
        "widths": [] if constant else by_width[1].tolist(),
        "errors": [] if constant else by_width[0].tolist(),
    }


def average(rows: Sequence[Row], alpha: float, method: str, key: str) -> float:
    """Mean over data sets and seeds; NaN where undefined everywhere."""
    values = [r[key] for r in rows if r["alpha"] == alpha and r["method"] == method and not np.isnan(r[key])]
    return float(np.mean(values)) if values else float("nan")
