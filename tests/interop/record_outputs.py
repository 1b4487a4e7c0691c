"""Write outputs.json: what MAPIE and crepes return on one small problem, as they return it.

Run it once per environment that holds one of them (``python tests/interop/record_outputs.py``); each run
adds its library to the file.
"""

from __future__ import annotations

import json
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_iris, make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression

PLACE = Path(__file__).with_name("outputs.json")


def classes() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    return X[order], y[order]


def numbers() -> tuple[Any, Any]:
    return make_regression(150, 3, noise=10.0, random_state=0)


def mapie() -> dict[str, Any]:
    from mapie.classification import SplitConformalClassifier
    from mapie.regression import SplitConformalRegressor

    X, y = classes()
    classifier = SplitConformalClassifier(
        LogisticRegression(max_iter=500).fit(X[:50], y[:50]), confidence_level=[0.8, 0.9], prefit=True
    ).conformalize(X[50:90], y[50:90])
    Z, v = numbers()
    regressor = SplitConformalRegressor(
        LinearRegression().fit(Z[:50], v[:50]), confidence_level=[0.8, 0.9], prefit=True
    ).conformalize(Z[50:90], v[50:90])
    return {
        "y": y[90:], "sets": classifier.predict_set(X[90:])[1],
        "v": v[90:], "intervals": regressor.predict_interval(Z[90:])[1],
    }  # fmt: skip


def crepes() -> dict[str, Any]:
    from crepes import WrapClassifier, WrapRegressor

    X, y = classes()
    classifier = WrapClassifier(LogisticRegression(max_iter=500).fit(X[:50], y[:50])).calibrate(
        X[50:90], y[50:90]
    )
    Z, v = numbers()
    regressor = WrapRegressor(LinearRegression().fit(Z[:50], v[:50])).calibrate(Z[50:90], v[50:90])
    return {
        "y": y[90:], "sets": classifier.predict_set(X[90:], confidence=0.9),
        "p_values": classifier.predict_p(X[90:], seed=0),
        "v": v[90:], "intervals": regressor.predict_int(Z[90:], confidence=0.9),
    }  # fmt: skip


def plain(value: Any) -> list[Any]:
    """Arrays, and lists of arrays of several lengths, as JSON has them."""
    return [np.asarray(row).tolist() for row in value]


if __name__ == "__main__":
    stored = json.loads(PLACE.read_text(encoding="utf-8")) if PLACE.exists() else {}
    for library in (mapie, crepes):
        name = library.__name__
        try:
            version = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
        stored[name] = {"version": version, **{key: plain(value) for key, value in library().items()}}
    PLACE.write_text(json.dumps(dict(sorted(stored.items()))) + "\n", encoding="utf-8")
