"""The six algorithms of the paper's Table 2 over stored outputs, tuned by T-SS as the paper does."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.frozen import FrozenEstimator

from calipers.conformal import ConformalClassifier, raps, saps
from calipers.difficulty import DifficultyBins
from calipers.exceptions import SmallSampleWarning
from calipers.metrics.adaptivity.binning import bin_by_ease
from calipers.metrics.adaptivity.correlation import signed_square
from studies.adaptivity.outputs import TRANSFORMS, Outputs

BASELINES = ("LAC", "APS", "RAPS", "SAPS")
OURS = ("O-LAC", "O-SAPS")
METHODS = (*BASELINES, *OURS)
_PENALTIES = (0.001, 0.01, 0.1, 0.5)
_WEIGHTS = (0.02, 0.1, 0.2, 0.4)
_BINS = (5, 10, 20)


class StoredProbabilities(ClassifierMixin, BaseEstimator):
    """A model whose answers are the first columns of its rows."""

    def __init__(self, n_classes: int = 2) -> None:
        self.n_classes = n_classes

    def fit(self, X: Any, y: Any) -> Self:
        """Nothing to learn."""
        return self

    @property
    def classes_(self) -> np.ndarray:
        """Labels 0 to K - 1."""
        return np.arange(self.n_classes)

    def predict_proba(self, X: Any) -> np.ndarray:
        """The stored probabilities."""
        return np.asarray(X)[:, : self.n_classes]

    def predict(self, X: Any) -> np.ndarray:
        """The most likely label."""
        return np.asarray(self.predict_proba(X).argmax(axis=1))

    def __sklearn_is_fitted__(self) -> bool:
        return True


class StoredEaseBins(DifficultyBins):
    """Difficulty bins over a stored column of ease, counted from the end of the row."""

    def __init__(self, *, n_bins: int, column: int, alpha: Any = 0.05, split: float | None = None) -> None:
        super().__init__(n_bins=n_bins, alpha=alpha, split=split, random_state=0)
        self.column = column

    def ease(self, X: Any) -> np.ndarray:
        """The stored ease."""
        return np.asarray(X)[:, self.column]

    def _draw(self, X: Any, predict: Any, rng: np.random.Generator) -> None:
        """Nothing to draw: the ease is there already."""


def candidates(
    method: str, n_classes: int, kinds: Sequence[str], seed: int
) -> dict[str, ConformalClassifier]:
    """The predictors a method is tuned over; one for a method without parameters."""
    model = FrozenEstimator(StoredProbabilities(n_classes))
    wrap = partial(ConformalClassifier, model, random_state=seed)
    columns = {kind: i - len(kinds) for i, kind in enumerate(kinds)}
    bins = {
        f"{n} bins, {kind}": StoredEaseBins(n_bins=n, column=column)
        for n in _BINS
        for kind, column in columns.items()
    }
    if method == "LAC":
        return {"": wrap(nonconformity="lac")}
    if method == "APS":
        return {"": wrap(nonconformity="aps", randomized=True)}
    if method == "RAPS":
        return {f"{p:g}": wrap(nonconformity=partial(raps, penalty=p), randomized=True) for p in _PENALTIES}
    if method == "SAPS":
        return {f"{w:g}": wrap(nonconformity=partial(saps, weight=w), randomized=True) for w in _WEIGHTS}
    if method == "O-LAC":
        return {name: wrap(nonconformity="lac", groups=group) for name, group in bins.items()}
    return {
        f"{name}, {w:g}": wrap(nonconformity=partial(saps, weight=w), randomized=True, groups=group)
        for name, group in bins.items()
        for w in _WEIGHTS[:1] + _WEIGHTS[2:3]
    }


@dataclass(frozen=True, slots=True, eq=False)
class Prediction:
    """Sets of one method on the test rows at one level."""

    covered: np.ndarray
    size: np.ndarray
    chosen: str


def run_method(
    method: str,
    outputs: Outputs,
    validation: np.ndarray,
    test: np.ndarray,
    alphas: Sequence[float],
    seed: int,
) -> dict[float, Prediction]:
    """Tune (by T-SS, on half of the validation rows) and predict, at every level."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SmallSampleWarning)  # merging small bins is part of the method
        return _run(method, outputs, validation, test, alphas, seed)


def _run(
    method: str,
    outputs: Outputs,
    validation: np.ndarray,
    test: np.ndarray,
    alphas: Sequence[float],
    seed: int,
) -> dict[float, Prediction]:
    table, kinds = outputs.table(), tuple(outputs.ease)
    grid = candidates(method, outputs.probabilities.shape[1], kinds, seed)
    calibration = validation
    chosen = dict.fromkeys(alphas, next(iter(grid)))
    if len(grid) > 1:
        half = len(validation) // 2
        calibration, judging = validation[:half], validation[half:]
        chosen = _best(grid, table, outputs, calibration, judging, alphas)
    answers = {}
    for name in dict.fromkeys(chosen.values()):
        if len(grid) == 1:
            grid[name].conformalize(table[calibration], outputs.labels[calibration])
        sets = grid[name].predict_set(table[test], alpha=list(alphas))
        for i, alpha in enumerate(alphas):
            if chosen[alpha] == name:
                answers[alpha] = _read(sets[:, :, i], outputs.labels[test], name)
    return {alpha: answers[alpha] for alpha in alphas}


def _read(sets: np.ndarray, labels: np.ndarray, name: str) -> Prediction:
    return Prediction(sets[np.arange(len(labels)), labels], sets.sum(axis=1), name)


def _best(
    grid: Mapping[str, ConformalClassifier],
    table: np.ndarray,
    outputs: Outputs,
    calibration: np.ndarray,
    judging: np.ndarray,
    alphas: Sequence[float],
) -> dict[float, str]:
    ranks, ease = outputs.ranks[judging], outputs.ease[next(iter(outputs.ease))][judging]
    readings: dict[float, dict[str, float]] = {alpha: {} for alpha in alphas}
    for name, predictor in grid.items():
        predictor.conformalize(table[calibration], outputs.labels[calibration])
        sets = predictor.predict_set(table[judging], alpha=list(alphas))
        for i, alpha in enumerate(alphas):
            readings[alpha][name] = bare_t_ss(ranks, sets[:, :, i].sum(axis=1), ease)
    return {alpha: _highest(found) for alpha, found in readings.items()}


def _highest(readings: Mapping[str, float]) -> str:
    """The name of the highest reading; one that is undefined loses."""
    return max(readings, key=lambda name: -2.0 if np.isnan(readings[name]) else readings[name])


def bare_t_ss(ranks: np.ndarray, size: np.ndarray, ease: np.ndarray, n_bins: int = 50) -> float:
    """T-SS without its error bar and test, which tuning does not need; NaN where undefined."""
    means = bin_by_ease([ranks, size], ease, n_bins).means()
    means = means[:, ~np.isnan(means[0])]
    return float(signed_square(means[0], means[1]))


def main_ease(outputs: Outputs) -> np.ndarray:
    """The ease the metrics are read along: Gaussian noise, as in the paper."""
    return outputs.ease.get("gaussian", outputs.ease[next(iter(TRANSFORMS))])
