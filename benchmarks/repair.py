"""Repairs of stated sets and intervals on public data, beside the ways of MAPIE, crepes and scikit-learn.

Run with ``python -m benchmarks.repair --data FOLDER [--only NAME] [--split N]``. A model is trained on some
rows and states sets or intervals with one threshold. Of other rows one half is audited and repaired; every
way is fitted on that same half and compared on the other one, which nobody saw: coverage, coverage of the
worst slice, mean size. Slices are the groups of the data, fifths of difficulty, and fifths of the coverage
that a gradient boosting of the audited half foretells. The worst slice falls short most beyond its own noise.

The worst of several slices reads below the promise by chance. Two floors say by how much: that of a predictor
that covers every row with the promised probability, and that of one whose slices each have the exact
threshold of their share of the calibration rows, which no repair can know better. The bar is two points below
the latter. The size of a repair stands beside that of its best candidate: the smallest whose worst slice
meets the bar on the other half, or, where none does, the one whose worst slice is highest.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

import calipers
from calipers.auditing.repair.candidates import candidates, learn_design
from calipers.auditing.repair.rule import REPAIRABLE, RepairRule
from calipers.conformal import conformal_quantile, conformal_rank, lac
from calipers.datasets import load_adult, load_cifar100, load_covtype, load_fashion_mnist, load_regression
from calipers.inputs import check_features
from calipers.inputs.rows import Rows

ALPHA = 0.1
TRAIN, HALF = 5000, 5000
REGRESSION = ("bike", "bio", "california", "kin8nm", "naval", "power", "star", "wine_white")
FEWEST_SLICE_ROWS = 100
# Of the audited half: what a repair learns from, and what it conformalises on.
LEARN, CALIBRATE = 0.533, 0.267
BAR = 0.02


@dataclass
class Problem:
    """A fitted model, its task, and both halves of the rows it was not trained on."""

    name: str
    model: Any
    task: str
    fit: tuple[np.ndarray, np.ndarray, np.ndarray | None]
    test: tuple[np.ndarray, np.ndarray, np.ndarray | None]
    threshold: float


class Softmax:
    """Probabilities that were stored, looked up by row number."""

    def __init__(self, probabilities: np.ndarray) -> None:
        self.probabilities = probabilities
        self.classes_ = np.arange(probabilities.shape[1])

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        return self.probabilities[X[:, -1].astype(int)]


def classification(name: str, folder: str, split: int) -> Problem:
    """Features, labels and groups of a set, and a model of them."""
    if name == "cifar100":
        data = load_cifar100(folder, models=["wrn_16_4"])
        P = np.asarray(data.probabilities["wrn_16_4"], dtype=float)
        P = P / P.sum(axis=1, keepdims=True)
        top = P.argmax(axis=1)
        X = np.column_stack([np.sort(P, axis=1)[:, -3:], np.arange(len(P))])
        return _split(
            name,
            Softmax(P),
            "classification",
            X,
            np.asarray(data.labels),
            (top // 10).astype(str),
            split,
            500,
        )
    if name == "adult":
        data = load_adult(folder)
        groups = np.char.add(data.X["sex"].to_numpy().astype(str), data.X["race"].to_numpy().astype(str))
        X, y = check_features(data.X).values, np.asarray(data.y)
        return _split(
            name, HistGradientBoostingClassifier(random_state=0), "classification", X, y, groups, split
        )
    if name == "covertype":
        data = load_covtype(folder)
        X, y = np.asarray(data.X, dtype=float), np.unique(data.y, return_inverse=True)[1]
        areas = X[:, 10:14].argmax(axis=1).astype(str)
        return _split(
            name, HistGradientBoostingClassifier(random_state=0), "classification", X, y, areas, split
        )
    data = load_fashion_mnist(folder)
    X = (
        np.asarray(data.X, dtype=float).reshape(len(data.X), 28, 28)[:, ::2, ::2].reshape(len(data.X), -1)
        / 255
    )
    return _split(
        name,
        LogisticRegression(max_iter=60),
        "classification",
        X,
        np.asarray(data.y).astype(int),
        None,
        split,
    )


def regression(name: str, folder: str, split: int) -> Problem:
    """A regression set and a boosting of it."""
    data = load_regression(name, data_dir=folder)
    X = check_features(data.X).values
    model = HistGradientBoostingRegressor(random_state=0)
    return _split(name, model, "regression", X, np.asarray(data.y, dtype=float), None, split)


def _split(
    name: str,
    model: Any,
    task: str,
    X: np.ndarray,
    y: np.ndarray,
    groups: np.ndarray | None,
    split: int,
    train: int = TRAIN,
) -> Problem:
    order = np.random.default_rng(split).permutation(len(y))
    train = min(train, len(y) // 3)
    rest = order[train:]
    half = min(HALF, (len(rest) - train // 4) // 2)
    own, cal, fit, test = (
        order[:train],
        rest[: train // 4],
        rest[train // 4 :][:half],
        rest[train // 4 + half :][:half],
    )
    if hasattr(model, "fit"):
        model.fit(X[own], y[own])
    scores = _scores(model, task, X[cal], y[cal])
    pick = lambda rows: (X[rows], y[rows], None if groups is None else groups[rows])  # noqa: E731
    return Problem(name, model, task, pick(fit), pick(test), conformal_quantile(scores, ALPHA))


def _scores(model: Any, task: str, X: np.ndarray, y: np.ndarray) -> np.ndarray:
    if task == "regression":
        return np.abs(y - model.predict(X))
    return lac(model.predict_proba(X))[np.arange(len(y)), y]


def stated(p: Problem, X: np.ndarray) -> dict[str, np.ndarray]:
    """What the model states: one threshold for all rows."""
    if p.task == "regression":
        center = p.model.predict(X)
        return {"intervals": np.column_stack([center - p.threshold, center + p.threshold])}
    P = p.model.predict_proba(X)
    return {"probabilities": P, "sets": lac(P) <= p.threshold}


def ours(p: Problem) -> tuple[np.ndarray, str, float]:
    """The repair of the audited half, applied to the other."""
    X, y, groups = p.fit
    begin = time.process_time()
    shown = X if p.name != "cifar100" else X[:, :-1]
    given = {"X": shown, "groups": groups}
    found = calipers.audit(y, **stated(p, X), **given, alpha=ALPHA, random_state=0)
    codes = {f.code for f in found.faults}
    repair = found.repair(held_out=0.2)
    spent = time.process_time() - begin
    chosen = next(
        (t.name for t in repair.trials if t.chosen and t.promise == "coverage"), "nothing to repair"
    )
    X, _, groups = p.test
    new = stated(p, X) | repair.apply(
        stated(p, X) | {"X": X if p.name != "cifar100" else X[:, :-1], "groups": groups}
    )
    return (
        new["intervals" if p.task == "regression" else "sets"],
        f"{chosen} ({', '.join(sorted(codes))})",
        spent,
    )


def peers(p: Problem) -> dict[str, Callable[[], np.ndarray]]:
    """Other ways to state sets or intervals from the same half."""
    return _regression_peers(p) if p.task == "regression" else _classification_peers(p)


def _regression_peers(p: Problem) -> dict[str, Callable[[], np.ndarray]]:
    import crepes
    from crepes.extras import DifficultyEstimator, binning
    from mapie.regression import SplitConformalRegressor

    (X, y, _), (new, _, _) = p.fit, p.test
    first, second = slice(None, len(y) // 2), slice(len(y) // 2, None)

    def mapie(score: str) -> np.ndarray:
        way = SplitConformalRegressor(
            p.model, confidence_level=1 - ALPHA, conformity_score=score, prefit=True
        )
        return np.asarray(way.conformalize(X, y).predict_interval(new)[1])[:, :, 0]

    def crepes_way(kind: str) -> np.ndarray:
        wrapped = crepes.WrapRegressor(p.model)
        away = y[first] - p.model.predict(X[first])
        hard = DifficultyEstimator()
        hard.fit(X=X[first], residuals=away, scaler=True)
        if kind == "normalised":
            wrapped.calibrate(X[second], y[second], de=hard)
        else:
            bins = binning(hard.apply(X[first]), bins=5)[1]
            wrapped.calibrate(X[second], y[second], mc=lambda rows: binning(hard.apply(rows), bins=bins))
        return np.asarray(wrapped.predict_int(new, confidence=1 - ALPHA))

    def quantiles() -> np.ndarray:
        models = [
            HistGradientBoostingRegressor(loss="quantile", quantile=q, random_state=0)
            for q in (ALPHA / 2, 1 - ALPHA / 2)
        ]
        ends = [model.fit(X, y).predict(new) for model in models]
        return np.sort(np.column_stack(ends), axis=1)

    return {
        "MAPIE absolute": lambda: mapie("absolute"),
        "MAPIE residual_normalized": lambda: mapie("residual_normalized"),
        "crepes normalised": lambda: crepes_way("normalised"),
        "crepes Mondrian": lambda: crepes_way("bins"),
        "scikit-learn quantile boosting": quantiles,
    }


def _classification_peers(p: Problem) -> dict[str, Callable[[], np.ndarray]]:
    import crepes
    from mapie.classification import SplitConformalClassifier

    (X, y, groups), (new, _, new_groups) = p.fit, p.test

    def mapie(score: str) -> np.ndarray:
        way = SplitConformalClassifier(
            _prefit(p.model), confidence_level=1 - ALPHA, conformity_score=score, prefit=True, random_state=0
        )
        return np.asarray(way.conformalize(X, y).predict_set(new)[1])[:, :, 0].astype(bool)

    def crepes_way(by_group: bool) -> np.ndarray:
        scores = lac(p.model.predict_proba(X))[np.arange(len(y)), y]
        codes = np.unique(np.concatenate([groups, new_groups]), return_inverse=True)[1] if by_group else None
        way = crepes.ConformalClassifier().fit(scores, bins=None if codes is None else codes[: len(y)])
        alphas = lac(p.model.predict_proba(new))
        cells = None if codes is None else codes[len(y) :]
        found = way.predict_set(alphas, cells, confidence=1 - ALPHA, smoothing=False)
        return np.asarray(found, dtype=bool)

    def scikit_learn() -> np.ndarray:
        """The smallest sets whose recalibrated probabilities sum to what is promised."""
        P = CalibratedClassifierCV(FrozenEstimator(_prefit(p.model)), method="isotonic").fit(X, y)
        P = P.predict_proba(new)
        order = np.argsort(-P, axis=1)
        sums = np.cumsum(np.take_along_axis(P, order, axis=1), axis=1)
        before = np.column_stack([np.zeros(len(P)), sums[:, :-1]])
        found = np.empty(P.shape, dtype=bool)
        np.put_along_axis(found, order, before < 1 - ALPHA, axis=1)
        return found

    ways: dict[str, Callable[[], np.ndarray]] = {
        "MAPIE lac": lambda: mapie("lac"),
        "crepes": lambda: crepes_way(False),
        "scikit-learn CalibratedClassifierCV": scikit_learn,
    }
    if len(p.model.classes_) > 2:  # MAPIE refuses its other scores for two classes
        ways["MAPIE aps"] = lambda: mapie("aps")
    if groups is not None:
        ways["crepes Mondrian by group"] = lambda: crepes_way(True)
    return ways


def _prefit(model: Any) -> Any:
    """A stored softmax as a fitted classifier of scikit-learn."""
    if not isinstance(model, Softmax):
        return model
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Stored(ClassifierMixin, BaseEstimator):
        classes_ = model.classes_
        n_features_in_ = 4

        def fit(self, X: Any, y: Any) -> Any:
            return self

        def predict(self, X: Any) -> Any:
            return model.predict_proba(X).argmax(axis=1)

        def predict_proba(self, X: Any) -> Any:
            return model.predict_proba(X)

        def __sklearn_is_fitted__(self) -> bool:
            return True

    return Stored()


def slices(p: Problem) -> list[np.ndarray]:
    """Rows of the other half by group, difficulty and foretold coverage; the same for all ways."""
    (X, y, _), (new, _, groups) = p.fit, p.test
    missed = _scores(p.model, p.task, X, y) > p.threshold
    foretell = HistGradientBoostingClassifier(
        max_leaf_nodes=15, learning_rate=0.05, max_iter=60, random_state=0
    )
    risk = foretell.fit(X, missed).predict_proba(new)[:, 1]
    found = [np.array_split(np.argsort(risk, kind="stable"), 5)]
    if p.task == "classification":
        found.append(np.array_split(np.argsort(p.model.predict_proba(new).max(axis=1), kind="stable"), 5))
    if groups is not None:
        found.append([np.flatnonzero(groups == g) for g in np.unique(groups)])
    return [rows for parts in found for rows in parts if len(rows) >= FEWEST_SLICE_ROWS]


def measured(p: Problem, new: np.ndarray, parts: list[np.ndarray]) -> tuple[float, float, float]:
    """Coverage, coverage of the slice that falls short most, and mean size."""
    y = p.test[1]
    if p.task == "regression":
        covered, size = (new[:, 0] <= y) & (y <= new[:, 1]), new[:, 1] - new[:, 0]
    else:
        covered, size = new[np.arange(len(y)), y], new.sum(axis=1)
    worst = worst_of(np.array([covered[rows].mean() for rows in parts]), parts)
    return float(covered.mean()), worst, float(size.mean())


def worst_of(shares: np.ndarray, parts: list[np.ndarray]) -> float:
    """Coverage of the slice that falls short most beyond its own noise."""
    noise = np.sqrt(ALPHA * (1 - ALPHA) / np.array([len(rows) for rows in parts]))
    return float(shares[np.argmin(shares + noise)])


def floors(p: Problem, parts: list[np.ndarray], draws: int = 300) -> tuple[float, float]:
    """The mean worst slice of a predictor right in every row, and of one with a threshold per slice."""
    rng, n = np.random.default_rng(0), len(p.test[1])
    rows = np.array([len(own) for own in parts])
    known = np.maximum(1 / ALPHA, CALIBRATE * len(p.fit[1]) * rows / n).astype(int)
    ranks = np.array([min(int(m), conformal_rank(int(m), ALPHA)) for m in known])
    exact, calibrated = [], []
    for _ in range(draws):
        covered = rng.uniform(size=n) >= ALPHA
        exact.append(worst_of(np.array([covered[own].mean() for own in parts]), parts))
        calibrated.append(worst_of(rng.binomial(rows, rng.beta(ranks, known + 1 - ranks)) / rows, parts))
    return float(np.mean(exact)), float(np.mean(calibrated))


def every_candidate(p: Problem) -> dict[str, np.ndarray]:
    """What each candidate of a repair states, learnt and conformalised on as many rows as a repair does."""
    y = p.fit[1]
    order = np.random.default_rng(0).permutation(len(y))
    learn, calibrate = np.split(order, [int(LEARN * len(y))])
    calibrate = calibrate[: int(CALIBRATE * len(y))]

    def rows(which: Any, part: tuple[Any, Any, Any]) -> Rows:
        own = [None if values is None else values[which] for values in part]
        shown = own[0] if p.name != "cifar100" else own[0][:, :-1]
        given = {**stated(p, own[0]), "X": shown, "y_true": own[1], "groups": own[2]}
        classes = None if p.task == "regression" else tuple(range(len(p.model.classes_)))
        return Rows(given, classes=classes, alpha=(ALPHA,))

    fit, new, rng = rows(calibrate, p.fit), rows(slice(None), p.test), np.random.default_rng(0)
    names = tuple(name for name in REPAIRABLE if name in fit.given)
    found = {}
    for own in candidates(learn_design(rows(learn, p.fit), rng), fit):
        thresholds = own.fit(fit, [own.score.of_outcomes(fit, 0)], rng)
        if thresholds is not None:
            rule = RepairRule(p.task, (ALPHA,), (), names, score=own.score, thresholds=thresholds)
            found[own.name] = rule.apply(new)["intervals" if p.task == "regression" else "sets"]
    return found


def best_candidate(p: Problem, parts: list[np.ndarray], floor: float) -> tuple[str, float, float]:
    """The smallest candidate whose worst slice meets the bar, or that with the highest: worst slice, size."""
    found = {name: measured(p, new, parts)[1:] for name, new in every_candidate(p).items()}
    able = {name: own for name, own in found.items() if own[0] >= floor - BAR}
    if able:
        return min(((name, *own) for name, own in able.items()), key=lambda own: own[2])
    return max(((name, *own) for name, own in found.items()), key=lambda own: own[1])


def main() -> None:
    """Print one table per set."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--split", type=int, default=0)
    chosen = parser.parse_args()
    names = (
        chosen.only.split(",") if chosen.only else ["adult", "covertype", "fashion", "cifar100", *REGRESSION]
    )
    warnings.simplefilter("ignore")
    print("| set | way | coverage | worst slice | mean size |\n|---|---|---:|---:|---:|")
    for name in names:
        p = (regression if name in REGRESSION else classification)(name, chosen.data, chosen.split)
        parts = slices(p)
        exact, calibrated = floors(p, parts)
        key = "intervals" if p.task == "regression" else "sets"
        new, words, spent = ours(p)
        rows = {"as stated": stated(p, p.test[0])[key], "Calipers repair": new}
        rows |= {way: make() for way, make in peers(p).items()}
        for way, found in rows.items():
            coverage, worst, size = measured(p, found, parts)
            print(f"| {name} | {way} | {coverage:.3f} | {worst:.3f} | {size:.4g} |", flush=True)
        best, worst, size = best_candidate(p, parts, calibrated)
        print(f"| {name} | best candidate: {best} | | {worst:.3f} | {size:.4g} |", flush=True)
        print(f"| {name} | floors: exact, calibrated | | {exact:.3f}, {calibrated:.3f} | |", flush=True)
        print(f"| {name} | chosen in {spent:.0f} s: {words} | | | |", flush=True)


if __name__ == "__main__":
    main()
