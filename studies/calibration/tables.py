"""Adult and Covertype with five learners: stated probabilities on validation and test rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.ensemble import AdaBoostClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.tree import DecisionTreeClassifier

from calipers.datasets import load_adult, load_covtype
from studies.calibration.settings import N_VALIDATION, SEED, Settings

DATASETS = ("adult", "covtype")
LEARNERS = ("naive Bayes", "boosted trees", "SVM", "logistic regression", "random forest")
# Scores of these are margins, rescaled to [0, 1] by the range on the training rows.
MARGINS = ("boosted trees", "SVM")


class Table(NamedTuple):
    """Features and labels of one data set in three disjoint parts."""

    X_train: np.ndarray
    y_train: np.ndarray
    X_validation: np.ndarray
    y_validation: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


class Stated(NamedTuple):
    """What one learner states on validation and test rows, and what happened."""

    validation: np.ndarray
    y_validation: np.ndarray
    test: np.ndarray
    y_test: np.ndarray


def load_table(name: str, data: Path | None, settings: Settings) -> Table:
    """Adult: the original test part, 2000 validation rows from the training part. Covertype: random parts."""
    rng = np.random.default_rng(SEED)
    if name == "adult":
        dataset = load_adult(data)
        X, y, n_train = _encode(dataset), np.asarray(dataset.y), int(dataset.n_train or 0)
        inside, test = rng.permutation(n_train), n_train + rng.permutation(len(y) - n_train)
    else:
        dataset = load_covtype(data, binary=True)
        X, y = np.asarray(dataset.X), np.asarray(dataset.y)
        order = rng.permutation(len(y))
        inside, test = order[: N_VALIDATION + settings.n_train], order[N_VALIDATION + settings.n_train :]
    validation, train = inside[:N_VALIDATION], inside[N_VALIDATION : N_VALIDATION + settings.n_train]
    test = test[: settings.n_test]
    parts = [np.asarray(X[rows], dtype=np.float64) for rows in (train, validation, test)]
    centre, spread = parts[0].mean(axis=0), parts[0].std(axis=0)
    scaled = [(part - centre) / np.where(spread > 0, spread, 1.0) for part in parts]
    return Table(scaled[0], y[train], scaled[1], y[validation], scaled[2], y[test])


def _encode(dataset: Any) -> np.ndarray:
    """Numbers as they are, one indicator per category."""
    columns = []
    for name in dataset.feature_names:
        values = dataset.X[name].to_numpy()
        if name in dataset.categorical:
            columns.append(np.unique(values)[None, :] == values[:, None])
        else:
            columns.append(values[:, None])
    return np.hstack([np.asarray(column, dtype=np.float64) for column in columns])


def learners(settings: Settings) -> dict[str, Callable[[], Any]]:
    """The five algorithms of Section 4."""
    tree = DecisionTreeClassifier(max_depth=3, random_state=SEED)
    return {
        "naive Bayes": GaussianNB,
        "boosted trees": lambda: AdaBoostClassifier(tree, n_estimators=settings.n_trees, random_state=SEED),
        "SVM": lambda: LinearSVC(dual=False, random_state=SEED),
        "logistic regression": lambda: LogisticRegression(max_iter=1000),
        "random forest": lambda: RandomForestClassifier(settings.n_trees, random_state=SEED),
    }


def state_probabilities(learner: str, table: Table, settings: Settings) -> Stated:
    """Train one learner and let it state its probabilities."""
    model = learners(settings)[learner]().fit(table.X_train, table.y_train)
    parts = (table.X_validation, table.X_test)
    if learner not in MARGINS:
        stated = [model.predict_proba(part)[:, 1] for part in parts]
    else:
        margins = model.decision_function(table.X_train)
        low, high = float(margins.min()), float(margins.max())
        stated = [np.clip((model.decision_function(part) - low) / (high - low), 0, 1) for part in parts]
    return Stated(stated[0], table.y_validation, stated[1], table.y_test)
