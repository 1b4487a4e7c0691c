"""The public sets, each with models of scikit-learn or stored outputs of networks, and what they state."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.linear_model import BayesianRidge, LogisticRegression
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler

from calipers import datasets
from calipers.datasets import REGRESSION_SETS
from calipers.difficulty import ease

MOST_TRAIN, MOST_CALIBRATION, MOST_TEST = 8000, 2000, 3000


@dataclass(frozen=True, kw_only=True)
class Problem:
    """One model on one set: what it states about calibration rows and about the rows to audit.

    Parameters
    ----------
    set, model : str
        Names of both.
    stated : dict of arrays
        Inputs of the producers: probabilities, or prediction, ends and spread, of both parts.
    y : array
        Outcomes of the rows to audit.
    about : dict
        What else the audit is given: X, groups, ease.
    own : dict
        What the model itself states and is audited with nothing added: probabilities or intervals.
    """

    set: str
    model: str
    stated: dict[str, np.ndarray]
    y: np.ndarray
    about: dict[str, Any] = field(default_factory=dict)
    own: dict[str, Any] = field(default_factory=dict)


Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


def split(n: int, n_train: int | None, seed: int = 0) -> Parts:
    """Rows to train on, to calibrate with and to audit; the source's own test part stays one."""
    rng = np.random.default_rng(seed)
    known = rng.permutation(n if n_train is None else n_train)
    if n_train is None:
        known, test = known[: int(0.6 * n)], known[int(0.6 * n) :]
    else:
        test = n_train + rng.permutation(n - n_train)
    n_calibration = min(MOST_CALIBRATION, len(known) // 3)
    train = known[n_calibration:][:MOST_TRAIN]
    return train, known[:n_calibration], test[:MOST_TEST]


def labels_of(
    name: str, model: Any, X: Any, y: np.ndarray, parts: Parts, about: dict[str, Any], title: str
) -> Problem:
    """A classifier trained on the first part, asked about the other two."""
    train, known, test = parts
    model.fit(X[train], y[train])
    return stated_labels(name, title, *(model.predict_proba(X[p]) for p in (known, test)), y[known], y[test],
                         about)  # fmt: skip


def stated_labels(
    name: str, model: str, known: np.ndarray, P: np.ndarray, known_y: np.ndarray, y: np.ndarray,
    about: dict[str, Any],
) -> Problem:  # fmt: skip
    """A problem from probabilities that are there already."""
    stated = {"calibration_probabilities": known, "calibration_y": known_y, "probabilities": P}
    return Problem(set=name, model=model, stated=stated, y=y, about=about, own={"probabilities": P})


def adult(folder: Path) -> Iterator[Problem]:
    data = datasets.load_adult(folder)
    parts = split(len(data), data.n_train)
    codes = OrdinalEncoder().fit_transform(data.X.select(data.categorical).to_numpy())
    numbers = [name for name in data.feature_names if name not in data.categorical]
    X = np.column_stack([data.X.select(numbers).to_numpy().astype(float), codes])
    about = {"X": data.X[parts[2]], "groups": data.column("race")[parts[2]]}
    categorical = np.arange(X.shape[1]) >= len(numbers)
    boosting = HistGradientBoostingClassifier(categorical_features=categorical, max_iter=80, random_state=0)
    yield labels_of("adult", boosting, X, data.y, parts, about, "boosting")
    yield labels_of("adult", GaussianNB(), X, data.y, parts, about, "naive Bayes")


def covtype(folder: Path) -> Iterator[Problem]:
    data = datasets.load_covtype(folder)
    parts = split(len(data), None)
    y = np.asarray(data.y).astype(int) - int(np.min(data.y))
    X = np.asarray(data.X, dtype=float)
    area = np.argmax(X[:, 10:14], axis=1)[parts[2]]
    about = {"X": _frame(X[parts[2]][:, :10], data.feature_names[:10]), "groups": area}
    boosting = HistGradientBoostingClassifier(max_iter=60, random_state=0)
    yield labels_of("covtype", boosting, X, y, parts, about, "boosting")
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=200))
    yield labels_of("covtype", logistic, X, y, parts, about, "logistic")


def images(name: str, load: Callable[..., Any], folder: Path) -> Iterator[Problem]:
    data = load(folder)
    parts = split(len(data), data.n_train)
    X = np.asarray(data.X, dtype=float).reshape(len(data), -1)
    small = PCA(12, random_state=0).fit(X[parts[0]]).transform(X[parts[2]])
    about = {"X": _frame(small, [f"component {i + 1}" for i in range(12)])}
    logistic = make_pipeline(StandardScaler(), PCA(40, random_state=0), LogisticRegression(max_iter=200))
    yield labels_of(name, logistic, X, np.asarray(data.y).astype(int), parts, about, "logistic")
    bayes = make_pipeline(PCA(40, random_state=0), GaussianNB())
    yield labels_of(name, bayes, X, np.asarray(data.y).astype(int), parts, about, "naive Bayes")


def cifar10_resnet50(folder: Path) -> Iterator[Problem]:
    known = datasets.load_cifar10_resnet50(folder, part="val")
    test = datasets.load_cifar10_resnet50(folder, part="test")
    P, Q = (_softmax(next(iter(part.logits.values()))) for part in (known, test))
    rows = np.random.default_rng(0).permutation(len(test))[:MOST_TEST]
    about = {"groups": np.array(test.class_names or range(10))[Q.argmax(axis=1)][rows]}
    yield stated_labels("cifar10_resnet50", "resnet50", P, Q[rows], known.labels.astype(int),
                        test.labels[rows].astype(int), about)  # fmt: skip


def cifar10_human(folder: Path) -> Iterator[Problem]:
    data = datasets.load_cifar10_human(folder)
    order = np.random.default_rng(0).permutation(len(data))
    known, test = order[:MOST_CALIBRATION], order[MOST_CALIBRATION:][:MOST_TEST]
    human = np.asarray(data.human_counts, dtype=float)
    agreement = human.max(axis=1) / human.sum(axis=1)
    for model, P in data.probabilities.items():
        yield stated_labels("cifar10_human", model, P[known], P[test], data.labels[known].astype(int),
                            data.labels[test].astype(int), {"ease": agreement[test]})  # fmt: skip
    shares = human / human.sum(axis=1, keepdims=True)
    yield stated_labels("cifar10_human", "annotators", shares[known], shares[test],
                        data.labels[known].astype(int), data.labels[test].astype(int), {})  # fmt: skip


def cifar100(folder: Path) -> Iterator[Problem]:
    data = datasets.load_cifar100(folder)
    order = np.random.default_rng(0).permutation(len(data))
    known, test = order[:MOST_CALIBRATION], order[MOST_CALIBRATION:][:MOST_TEST]
    for model, P in data.probabilities.items():
        yield stated_labels("cifar100", model, P[known], P[test], data.labels[known].astype(int),
                            data.labels[test].astype(int), {})  # fmt: skip


def cifar_n(folder: Path) -> Iterator[Problem]:
    """A naive Bayes model of the clean label from what three annotators said (one for 100 classes)."""
    for name, word in (("cifar10", "random"), ("cifar100", "noisy")):
        data = datasets.load_cifar_n(folder, dataset=name)
        kinds = tuple(kind for kind in data.noisy if word in kind)
        X = np.column_stack([data.noisy[kind] for kind in kinds]).astype(int)
        parts = split(len(data.clean), None)
        agree = np.array([len(set(row)) for row in X[parts[2]]])
        about = {"groups": agree} if len(kinds) > 1 else {}
        yield labels_of(f"cifar_n {name}", CategoricalNB(min_categories=int(X.max()) + 1), X,
                        data.clean.astype(int), parts, about, "naive Bayes")  # fmt: skip


def regression(name: str, folder: Path) -> Iterator[Problem]:
    data = datasets.load_regression(name, folder)
    parts = train, known, test = split(len(data), data.n_train)
    X, frame, y = _numbers(data), _features(data, parts[2]), np.asarray(data.y, dtype=float)
    mean = HistGradientBoostingRegressor(max_iter=100, random_state=0).fit(X[train], y[train])
    ends = [
        HistGradientBoostingRegressor(loss="quantile", quantile=q, max_iter=100, random_state=0).fit(
            X[train], y[train]
        )
        for q in (0.05, 0.95)
    ]
    half = len(train) // 2
    rough = HistGradientBoostingRegressor(max_iter=60, random_state=0).fit(X[train[:half]], y[train[:half]])
    errors = np.abs(y[train[half:]] - rough.predict(X[train[half:]]))
    spread = HistGradientBoostingRegressor(max_iter=30, random_state=0).fit(X[train[half:]], errors)
    stated: dict[str, np.ndarray] = {"calibration_y": y[known]}
    for prefix, rows in (("calibration_", known), ("", test)):
        low, high = np.sort([end.predict(X[rows]) for end in ends], axis=0)
        stated |= {
            f"{prefix}prediction": mean.predict(X[rows]), f"{prefix}lower": low, f"{prefix}upper": high,
            f"{prefix}sigma": np.maximum(spread.predict(X[rows]), 0.05 * errors.mean()),
        }  # fmt: skip
    easy = ease(mean.predict, X[test], scale=0.1, relative=True, similarity="exp_abs", random_state=0)
    about = {"X": frame, "ease": easy}
    yield Problem(set=name, model="boosting", stated=stated, y=y[test], about=about,
                  own={"intervals": np.column_stack([stated["lower"], stated["upper"]])})  # fmt: skip
    bayes = make_pipeline(StandardScaler(), BayesianRidge()).fit(np.nan_to_num(X[train]), y[train])
    centre, sigma = bayes.predict(np.nan_to_num(X[test]), return_std=True)
    own = {"intervals": np.column_stack([centre - 1.6448536 * sigma, centre + 1.6448536 * sigma])}
    yield Problem(set=name, model="Bayesian ridge", stated={}, y=y[test], about=about, own=own)


def _numbers(data: Any) -> np.ndarray:
    """Features as numbers; categories become codes."""
    if isinstance(data.X, np.ndarray):
        return np.asarray(data.X, dtype=float)
    encoder = make_column_transformer(
        (OrdinalEncoder(), list(data.categorical)), remainder="passthrough", verbose_feature_names_out=False
    )
    return np.asarray(encoder.fit_transform(data.X.to_pandas()), dtype=float)


def _features(data: Any, rows: np.ndarray) -> Any:
    """What the audit is given as X: at most 30 named columns."""
    if not isinstance(data.X, np.ndarray):
        return data.X[rows]
    return _frame(data.X[rows][:, :30], data.feature_names[:30])


def _frame(X: np.ndarray, names: Any) -> Any:
    import polars as pl

    return pl.DataFrame({str(name): X[:, i] for i, name in enumerate(names)})


def _softmax(logits: np.ndarray) -> np.ndarray:
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


SETS: dict[str, Callable[[Path], Iterator[Problem]]] = {
    "adult": adult,
    "covtype": covtype,
    "fashion_mnist": lambda folder: images("fashion_mnist", datasets.load_fashion_mnist, folder),
    "usps": lambda folder: images("usps", datasets.load_usps, folder),
    "cifar10_resnet50": cifar10_resnet50,
    "cifar10_human": cifar10_human,
    "cifar100": cifar100,
    "cifar_n": cifar_n,
    **{name: lambda folder, name=name: regression(name, folder) for name in REGRESSION_SETS},  # type: ignore[misc]
}
