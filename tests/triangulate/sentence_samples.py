"""Predictions of all kinds to audit: healthy and faulty, synthetic and real."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from calipers.conformal import aps, conformal_p_values, lac

DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
Given = dict[str, Any]


def intervals(seed: int) -> Given:
    """Intervals of three shapes and five levels around a good or a poor middle."""
    rng = np.random.default_rng([1, seed])
    n = 700 + 100 * (seed % 4)
    X = rng.normal(size=(n, 3))
    spread = np.exp(0.5 * X[:, 1]) if seed % 2 else np.ones(n)
    y = 2 * X[:, 0] + spread * rng.normal(size=n)
    centre = np.zeros(n) if seed % 5 == 4 else 2 * X[:, 0] + 0.3 * rng.normal(size=n)
    reach = (1.645, 1.2, 4.0, 1.9, 3.6)[seed % 5]
    half = reach * (spread if seed % 3 else np.ones(n))
    given = {"y_true": y, "intervals": np.column_stack([centre - half, centre + half]), "X": X}
    if seed % 3 == 1:
        given |= {"ease": -spread - 0.01 * rng.random(n)}
    if seed % 4 == 2:
        given |= {"groups": np.where(X[:, 1] > 0.8, "far", "near")}
    return given


def _labels(seed: int) -> tuple[np.random.Generator, np.ndarray, np.ndarray]:
    rng = np.random.default_rng([2, seed])
    P = rng.dirichlet(np.full(2 + seed % 5, 0.6), size=1000)
    return rng, P, (P.cumsum(axis=1) < rng.random((1000, 1))).sum(axis=1)


def probabilities(seed: int) -> Given:
    """Probabilities that are right, too sharp or too blunt."""
    _, P, y = _labels(seed)
    stated = P ** (1.0, 1.8, 0.5)[seed % 3]
    return {"y_true": y, "probabilities": stated / stated.sum(axis=1, keepdims=True)}


def sets(seed: int) -> Given:
    """Sets by a threshold, or adaptive ones, with the probabilities; some cover too little or too much."""
    rng, P, y = _labels(seed)
    scores = lac(P) if seed % 2 else aps(P, rng.random(len(P)))
    level = (0.9, 0.8, 0.97)[seed % 3]
    kept = scores <= np.quantile(scores[np.arange(len(y)), y], level)
    return {"y_true": y, "sets": kept, "probabilities": P, "groups": P.argmax(axis=1)}


def p_values(seed: int) -> Given:
    """Conformal p-values, of calibration rows that are like the others or not."""
    rng, P, y = _labels(seed)
    learn = rng.permutation(1000) < 500
    own = lac(P)[np.arange(1000), y][learn] * (1.0 if seed % 2 else 0.8)
    given = {"y_true": y[~learn], "p_values": conformal_p_values(own, lac(P[~learn]))}
    return given | ({"probabilities": P[~learn]} if seed % 3 else {})


def digits(seed: int) -> Given:
    """Handwritten digits, a quarter of the pixels seen, naive Bayes or a logistic regression."""
    from sklearn.datasets import load_digits
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB

    X, y = load_digits(return_X_y=True)
    X = X[:, seed % 4 :: 4] / 16.0
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:600], order[600:]
    model = GaussianNB() if seed % 2 else LogisticRegression(max_iter=5000)
    P = model.fit(X[train], y[train]).predict_proba(X[test])
    return {"y_true": y[test], "probabilities": P, "sets": lac(P) <= 0.9, "X": X[test][:, :4]}


def diabetes(seed: int) -> Given:
    """Disease progression with intervals of one width, by a line."""
    from sklearn.datasets import load_diabetes
    from sklearn.linear_model import Ridge

    X, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:150], order[150:]
    middle = Ridge(alpha=0.1).fit(X[train], y[train]).predict(X[test])
    half = (60.0, 90.0, 200.0)[seed % 3]
    return {"y_true": y[test], "intervals": np.column_stack([middle - half, middle + half]), "X": X[test]}


def cifar(seed: int) -> Given:
    """Probabilities of a network for photographs, from the shared data where they are there."""
    with np.load(DATA / "cifar10_resnet50_val_test.npz") as stored:
        names = {name: stored[name] for name in stored.files}
    P = next(a for a in names.values() if a.ndim == 2 and a.shape[1] == 10).astype(float)
    y = next(a for a in names.values() if a.ndim == 1 and len(a) == len(P)).astype(int)
    if not ((P >= 0).all() and np.allclose(P.sum(axis=1), 1, atol=1e-3)):
        P = np.exp(P - P.max(axis=1, keepdims=True))
    P /= P.sum(axis=1, keepdims=True)
    rows = np.random.default_rng(seed).choice(len(y), 1500, replace=False)
    return {"y_true": y[rows], "probabilities": P[rows], "sets": lac(P[rows]) <= (0.7, 0.99)[seed % 2]}


def _marks(rng: np.random.Generator, n: int) -> Given:
    """Two attributes and days."""
    return {
        "groups": {"sex": rng.choice(["f", "m"], n), "site": rng.choice(["a", "b", "c"], n)},
        "time": np.datetime64("2024-01-01") + np.arange(n) // 10,
    }


def _spoilt(seed: int, marks: Given, n: int) -> np.ndarray:
    """Rows in which a promise is broken: none, a group, an intersection, or the later ones."""
    sex, site = (np.asarray(marks["groups"][name]) for name in ("sex", "site"))
    return (np.zeros(n, dtype=bool), site == "b", (sex == "f") & (site == "a"), np.arange(n) > 0.6 * n)[
        seed % 4
    ]


def over_time(seed: int) -> Given:
    """Intervals with attributes, days and a point prediction that is the middle."""
    rng, n = np.random.default_rng([3, seed]), 1200
    marks, X = _marks(rng, n), rng.normal(size=(n, 2))
    noise = rng.normal(size=n) * np.where(_spoilt(seed, marks, n), 1.9, 1.0)
    half = 1.645 * np.exp(0.3 * X[:, 1]) if seed % 2 else np.full(n, 1.9)
    ends = np.column_stack([X[:, 0] - half, X[:, 0] + half])
    return {"y_true": X[:, 0] + noise, "intervals": ends} | marks | ({"X": X} if seed % 3 else {})


def grouped_probabilities(seed: int) -> Given:
    """Two or three classes with attributes, days and features; probabilities too high in some rows."""
    rng, n = np.random.default_rng([4, seed]), 1500
    marks, X = _marks(rng, n), rng.normal(size=(n, 2))
    off = _spoilt(seed, marks, n)
    if seed % 2:
        stated = 0.2 + 0.6 / (1 + np.exp(-X[:, 0]))
        y = (rng.random(n) < stated - 0.15 * off).astype(int)
        P = np.column_stack([1 - stated, stated])
    else:
        P = rng.dirichlet(np.full(3, 0.5), size=n)
        true = np.where(off[:, None], 0.7 * P + 0.1, P)
        y = (true.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return {"y_true": y, "probabilities": P, "X": X} | marks


def quantiles(seed: int) -> Given:
    """Three quantiles, some too close, some shifted, with attributes and days."""
    rng, n = np.random.default_rng([5, seed]), 1000
    marks, spread = _marks(rng, n), np.exp(0.4 * rng.normal(size=n))
    y = spread * rng.normal(size=n) * np.where(_spoilt(seed, marks, n), 2.0, 1.0)
    Q = np.outer(spread, [-1.2816, 0.0, 1.2816]) * (0.8 if seed % 3 == 2 else 1.0)
    return {"y_true": y, "quantiles": Q, "quantile_levels": [0.1, 0.5, 0.9]} | marks


def pit(seed: int) -> Given:
    """PIT values that are even, too far out or shifted."""
    rng, n = np.random.default_rng([6, seed]), 900
    marks = _marks(rng, n)
    u = rng.beta(*((1, 1), (0.6, 0.6), (1.5, 1.0))[seed % 3], size=n)
    return {"pit": np.where(_spoilt(seed, marks, n), u**2, u)} | marks


def losses(seed: int) -> Given:
    """Losses with a bound that is kept, or broken everywhere, in a group or of late."""
    rng, n = np.random.default_rng([7, seed]), 1000
    marks = _marks(rng, n)
    mean = np.where(_spoilt(seed, marks, n), 0.2, 0.09)
    return {"loss": rng.beta(3 * mean, 3 * (1 - mean)), "bound": (0.1, 0.05)[seed % 5 == 4]} | marks


def outcomes(seed: int) -> Given:
    """Promises found elsewhere, at one level with a size, or with a probability per row."""
    rng, n = np.random.default_rng([8, seed]), 1200
    marks, size = _marks(rng, n), rng.gamma(3.0, size=n)
    off = 0.2 * _spoilt(seed, marks, n)
    if seed % 2:
        return {"covered": rng.random(n) < 0.9 - off, "size": size} | marks
    t = rng.uniform(0.5, 0.95, n)
    return {"covered": rng.random(n) < t - off, "promised": t} | marks


def adult(seed: int) -> Given:
    """Incomes by a logistic regression, with sex and race, and sets of the training shares."""
    import pandas as pd
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    train, test = (pd.read_csv(DATA / f"adult_{part}.csv.gz") for part in ("train", "test"))
    names = ["age", "education-num", "hours-per-week", "capital-gain"]
    names = [name for name in names if name in train] or train.select_dtypes("number").columns[:4].tolist()
    rows = np.random.default_rng(seed).choice(len(test), 2500, replace=False)
    scale = StandardScaler().fit(train[names])
    label = train.columns[-1]
    positive = max(train[label].unique())
    model = LogisticRegression().fit(scale.transform(train[names]), train[label] == positive)
    part = test.iloc[rows]
    P = model.predict_proba(scale.transform(part[names])) ** (1.0, 2.0)[seed % 2]
    given = {
        "y_true": (part[label] == positive).to_numpy().astype(int),
        "X": part[names].to_numpy(dtype=float),
    }
    given["groups"] = {"sex": part["sex"].to_numpy(), "race": part["race"].to_numpy()}
    return given | {"probabilities": P / P.sum(axis=1, keepdims=True)}


def housing(seed: int) -> Given:
    """House prices with intervals of one width, or scaled by the rooms, of a line."""
    import pandas as pd
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import StandardScaler

    table = pd.read_csv(DATA / "regression" / "california_housing.csv.gz").dropna()
    X, y = StandardScaler().fit_transform(table.iloc[:, :-1]), table.iloc[:, -1].to_numpy() / 1e5
    order = np.random.default_rng(seed).permutation(len(y))
    train, rest = order[:3000], order[3000:6000]
    middle = Ridge().fit(X[train], y[train]).predict(X)
    half = np.full(len(y), np.quantile(np.abs(y - middle)[train], 0.9))
    half = half * (np.exp(0.3 * X[:, 0]) if seed % 2 else 1.0)
    ends = np.column_stack([middle - half, middle + half])[rest]
    return {"y_true": y[rest], "intervals": ends, "X": X[rest][:, :5], "groups": (X[rest, 6] > 0).astype(str)}


def _houses(seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Standardised features, outcomes, residuals of other rows of a line, and its middles for these rows."""
    import pandas as pd
    from sklearn.linear_model import Ridge
    from sklearn.preprocessing import StandardScaler

    table = pd.read_csv(DATA / "regression" / "california_housing.csv.gz").dropna()
    X, y = StandardScaler().fit_transform(table.iloc[:, :-1]), table.iloc[:, -1].to_numpy() / 1e5
    order = np.random.default_rng(seed).permutation(len(y))
    train, other, rest = order[:3000], order[3000:5000], order[5000:7000]
    model = Ridge().fit(X[train], y[train])
    return X[rest], y[rest], y[other] - model.predict(X[other]), model.predict(X[rest])


def housing_quantiles(seed: int) -> Given:
    """House prices with quantiles around a line: of its residuals, or of a normal law."""
    from scipy import stats

    X, y, residuals, middle = _houses(seed)
    levels = [0.1, 0.5, 0.9]
    steps = stats.norm.ppf(levels) * residuals.std() if seed % 2 else np.quantile(residuals, levels)
    groups = {"side": np.where(X[:, 6] > 0, "north", "south"), "age": np.where(X[:, 1] > 0, "old", "new")}
    Q = middle[:, None] + steps * (np.exp(0.2 * X[:, 0])[:, None] if seed % 3 else 1.0)
    return {"y_true": y, "quantiles": Q, "quantile_levels": levels, "groups": groups, "X": X[:, :4]}


def housing_pit(seed: int) -> Given:
    """PIT values of normal laws around a line, centred, shifted or too wide."""
    from scipy import stats

    X, y, residuals, middle = _houses(seed)
    scale, shift = ((1.0, 0.0), (1.0, 0.5), (1.6, 0.0))[seed % 3]
    pit = stats.norm.cdf((y - middle + shift) / (scale * residuals.std()))
    return {"pit": pit, "groups": np.where(X[:, 6] > 0, "north", "south")}


def forest_covers(seed: int) -> Given:
    """Kinds of forest by a line of logits, as conformal p-values from like or unlike calibration rows."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import StandardScaler

    with np.load(DATA / "covtype.npz") as stored:
        rows = np.sort(np.random.default_rng(seed).choice(len(stored["y"]), 5000, replace=False))
        X, y = stored["X"][rows, :10].astype(float), stored["y"][rows].astype(int)
    y = np.unique(y, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(5000)
    train, learn, test = order[:2000], order[2000:3000], order[3000:]
    scale = StandardScaler().fit(X[train])
    model = LogisticRegression(max_iter=200).fit(scale.transform(X[train]), y[train])
    scores = lac(model.predict_proba(scale.transform(X)))
    own = scores[learn, y[learn]] * (1.0 if seed % 2 else 0.93)
    given = {"y_true": y[test], "p_values": conformal_p_values(own, scores[test]), "X": X[test][:, :3]}
    return given | ({"n_calibration": 1000} if seed % 3 else {})


def adult_losses(seed: int) -> Given:
    """Wrong incomes with a bound of their share, by sex and race."""
    given = adult(2 * seed)
    wrong = given["probabilities"].argmax(axis=1) != given["y_true"]
    bound = (0.26, 0.22, 0.18)[seed % 3]
    return {"loss": wrong.astype(float), "bound": bound, "groups": given["groups"]}


def bike_rides(seed: int) -> Given:
    """Rides per hour over two years: whether a line of the first months held them, and how far it reached."""
    import pandas as pd
    from sklearn.linear_model import Ridge

    table = pd.read_csv(DATA / "regression" / "bike.csv.gz").iloc[seed % 5 :: 5]
    X = table[["season", "workingday", "temp", "humidity", "windspeed"]].to_numpy(dtype=float)
    y = np.sqrt(table["count"].to_numpy(dtype=float))
    day = pd.to_datetime(table["datetime"]).dt.date.to_numpy().astype("datetime64[D]")
    first = np.arange(len(y)) < 600
    model = Ridge().fit(X[first], y[first])
    error = np.abs(y - model.predict(X))
    half = np.quantile(error[first], 0.9) * (1 + 0.02 * (X[:, 2] - X[first, 2].mean()) * (seed % 2))
    rest = ~first
    return {"covered": (error <= half)[rest], "size": 2 * half[rest], "time": day[rest],
            "groups": np.where(X[rest, 1] > 0, "working", "free")}  # fmt: skip


KINDS: dict[str, Callable[[int], Given]] = {
    "intervals": intervals, "probabilities": probabilities, "sets": sets, "p_values": p_values,
    "digits": digits, "diabetes": diabetes, "over_time": over_time, "quantiles": quantiles, "pit": pit,
    "grouped_probabilities": grouped_probabilities, "losses": losses, "outcomes": outcomes,
}  # fmt: skip
# Kinds whose rows are data that people collected; those of the shared folder where they are there.
REAL = ["digits", "diabetes"]
_SHARED: dict[str, tuple[str, Callable[[int], Given]]] = {
    "cifar": ("cifar10_resnet50_val_test.npz", cifar), "adult": ("adult_test.csv.gz", adult),
    "housing": ("regression/california_housing.csv.gz", housing),
    "housing_quantiles": ("regression/california_housing.csv.gz", housing_quantiles),
    "housing_pit": ("regression/california_housing.csv.gz", housing_pit),
    "forest_covers": ("covtype.npz", forest_covers), "adult_losses": ("adult_test.csv.gz", adult_losses),
    "bike_rides": ("regression/bike.csv.gz", bike_rides),
}  # fmt: skip
for _name, (_file, _kind) in _SHARED.items():
    if (DATA / _file).exists():
        KINDS[_name] = _kind
        REAL.append(_name)
