"""Sections 8 and 9 of the poster: classifiers and conformal scores on public data."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import Progress
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.cluster import KMeans
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from calipers.arrays import import_optional, is_installed
from calipers.conformal import ConformalRegressor, aps, conformal_quantile, lac, raps, saps
from calipers.datasets import load_cifar10_human, load_cifar100, load_regression
from calipers.exceptions import InputError
from calipers.metrics import ert, ert_table, is_covered
from studies.caching import remembered, study_cache
from studies.conditional.rows import Row
from studies.progress import worked

ALPHA = 0.1
CLASSIFIER_HEADER = ("data", "repeat", "n", "classifier", "l1", "l2", "kl", "seconds")
SCORE_HEADER = ("data", "score", "size", "ert", "std_error", "coverage")
Split = tuple[np.ndarray, np.ndarray, np.ndarray]
Sources = Mapping[str, tuple[np.ndarray, np.ndarray]]


class PartitionClassifier(ClassifierMixin, BaseEstimator):
    """The partition-wise estimator behind group metrics: k-means cells, the share covered in each."""

    def __init__(self, n_cells: int | None = None, random_state: int | None = None) -> None:
        self.n_cells = n_cells
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> PartitionClassifier:
        """Cells from X, shares from y; n^(1/4) cells by default."""
        cells = self.n_cells or max(2, round(len(X) ** 0.25))
        self.classes_ = np.array([0, 1])
        self.model_ = make_pipeline(StandardScaler(), KMeans(cells, n_init=1, random_state=self.random_state))
        codes = self.model_.fit_predict(X)
        hits = np.bincount(codes, weights=np.asarray(y, float), minlength=cells)
        self.shares_ = (hits + np.mean(y)) / (np.bincount(codes, minlength=cells) + 1.0)
        return self

    def predict_proba(self, X: Any) -> np.ndarray:
        """The share of the cell each row falls into."""
        share = self.shares_[self.model_.predict(X)]
        return np.column_stack([1.0 - share, share])


def classifiers(n_trees: int) -> dict[str, Any]:
    """What is compared: ours, plain boosting, forests, a linear model, a partition."""
    return {
        "default": None,
        "plain boosting": HistGradientBoostingClassifier(),
        "random forest": RandomForestClassifier(n_trees, min_samples_leaf=5),
        "extra trees": ExtraTreesClassifier(n_trees, min_samples_leaf=5),
        "logistic": make_pipeline(StandardScaler(), LogisticRegression()),
        "partition": PartitionClassifier(),
    }


# Foundation models: label -> package, class, and the variable that says where their weights lie.
FOUNDATION = {
    "TabICL": ("tabicl", "TabICLClassifier", "CALIPERS_TABICL_WEIGHTS"),
    "TabPFN": ("tabpfn", "TabPFNClassifier", "CALIPERS_TABPFN_WEIGHTS"),
}


def optional_classifiers() -> dict[str, Any]:
    """LightGBM where it is installed, and foundation models whose weights are given by path.

    ``CALIPERS_TABICL_WEIGHTS`` and ``CALIPERS_TABPFN_WEIGHTS`` name files; nothing is ever downloaded.
    """
    found: dict[str, Any] = {"LightGBM": "lightgbm"} if is_installed("lightgbm") else {}
    for label, (package, name, variable) in FOUNDATION.items():
        path = os.environ.get(variable)
        if not path:
            continue
        if not Path(path).is_file():
            raise InputError(f"{variable} must name a file of weights, got {path!r}.")
        library = import_optional(package, purpose=f"{label} classifiers", install=package)
        options = {"model_path": path} | ({"allow_auto_download": False} if package == "tabicl" else {})
        found[label] = getattr(library, name)(**options)
    return found


def compare_classifiers(
    sources: Sources,
    sizes: tuple[int, ...],
    n_repeats: int,
    n_trees: int,
    folder: Path | None,
    progress: Progress,
) -> list[Row]:
    """ERT of each classifier on the same rows, split 40 / 10 / 50 with the absolute residual as score."""
    jobs = {
        f"{name}-{repeat}": (name, X, y, repeat, sizes, n_trees)
        for name, (X, y) in sources.items()
        for repeat in range(n_repeats)
    }
    extras = sorted(optional_classifiers())
    cache = study_cache(folder, _compared, list(sources.items()), sizes, n_trees, extras)
    parts = worked(progress, _compared, jobs, description="classifiers (b)", cache=cache)
    return [row for rows in parts for row in rows]


def _compared(
    name: str, X: np.ndarray, y: np.ndarray, repeat: int, sizes: tuple[int, ...], n_trees: int
) -> list[Row]:
    """Every classifier on one split of one data set."""
    train, calibrate, test = _split(len(y), repeat)
    model = ConformalRegressor(HistGradientBoostingRegressor(random_state=0))
    model.fit(X[train], y[train]).conformalize(X[calibrate], y[calibrate])
    covered = is_covered(y[test], model.predict_interval(X[test], alpha=ALPHA))
    rows: list[Row] = []
    for n in sorted({min(size, len(test)) for size in sizes}):
        for label, classifier in (classifiers(n_trees) | optional_classifiers()).items():
            start = time.process_time()
            table = ert_table(
                X[test][:n],
                covered[:n],
                alpha=ALPHA,
                classifier=classifier,
                null=None,
                random_state=repeat,
            )
            rows.append({
                "data": name, "repeat": repeat, "n": n, "classifier": label,
                **{loss: float(table[loss]) for loss in ("l1", "l2", "kl")},
                "seconds": time.process_time() - start,
            })  # fmt: skip
    return rows


def compare_scores(sources: Sources, folder: Path | None, progress: Progress) -> list[Row]:
    """L1-ERT against mean width for three regression scores."""
    tracked = progress.track(sources.items(), description="regression scores (c)")
    return [row for name, (X, y) in tracked for row in remembered(folder, _regression_scores, name, X, y)]


def _regression_scores(name: str, X: np.ndarray, y: np.ndarray) -> list[Row]:
    rows: list[Row] = []
    train, calibrate, test = _split(len(y), 0)
    for score in ("absolute", "normalized", "quantile"):
        estimator = None if score == "quantile" else HistGradientBoostingRegressor(random_state=0)
        model = ConformalRegressor(estimator, nonconformity=score, alpha=ALPHA, random_state=0)
        model.fit(X[train], y[train]).conformalize(X[calibrate], y[calibrate])
        ends = model.predict_interval(X[test], alpha=ALPHA)
        covered = is_covered(y[test], ends)
        rows.append(_scored(name, score, X[test], covered, float(np.mean(ends[:, 1] - ends[:, 0]))))
    return rows


def compare_set_scores(
    data: Path | None, models: dict[str, str], rows: int, folder: Path | None, progress: Progress
) -> list[Row]:
    """L1-ERT against mean set size for LAC, APS, RAPS and SAPS on image classifiers."""
    loaders = {"cifar10": load_cifar10_human, "cifar100": load_cifar100}
    found: list[Row] = []
    for name in progress.track(models, description="set scores (c)"):
        outputs = loaders[name](data, models=[models[name]])
        P, labels = outputs.probabilities[models[name]][:rows], outputs.labels[:rows]
        found += remembered(folder, _set_scores, name, P, labels)
    return found


def _set_scores(name: str, P: np.ndarray, labels: np.ndarray) -> list[Row]:
    rows: list[Row] = []
    order = np.random.default_rng(0).permutation(len(P))
    fit, test = order[: len(P) // 2], order[len(P) // 2 :]
    u = np.random.default_rng(1).random(len(P))
    for score, scores in {"LAC": lac(P), "APS": aps(P, u), "RAPS": raps(P, u), "SAPS": saps(P, u)}.items():
        threshold = conformal_quantile(scores[fit, labels[fit]], ALPHA)
        sets = scores[test] <= threshold
        covered = sets[np.arange(len(test)), labels[test]]
        rows.append(_scored(name, score, _features(P[test]), covered, float(sets.sum(axis=1).mean())))
    return rows


def _features(P: np.ndarray) -> np.ndarray:
    """The ten largest probabilities: what is known about an image without its pixels."""
    return np.asarray(-np.sort(-P, axis=1)[:, :10])


def _scored(name: str, score: str, X: np.ndarray, covered: np.ndarray, size: float) -> Row:
    e = ert(X, covered, alpha=ALPHA, null=None, random_state=0)
    return {
        "data": name, "score": score, "size": size, "ert": float(e), "std_error": float(e.std_error or 0.0),
        "coverage": float(covered.mean()),
    }  # fmt: skip


def load_sources(names: Sequence[str], data: Path | None) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """At most 8000 rows of each regression set: features and targets."""
    sources = {}
    for name in names:
        loaded = load_regression(name, data)
        order = np.random.default_rng(0).permutation(len(loaded.y))[:8000]
        sources[name] = np.asarray(loaded.X, dtype=float)[order], loaded.y[order]
    return sources


def _split(n: int, seed: int) -> Split:
    order = np.random.default_rng(seed).permutation(n)
    return order[: int(0.4 * n)], order[int(0.4 * n) : int(0.5 * n)], order[int(0.5 * n) :]
