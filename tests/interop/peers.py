"""The same small problems solved by every peer, with what it returns untouched.

Each function gives ``{"y" and "sets" ..., "v" and "intervals" ...}``: exactly the objects that the peer's own
methods returned for the last 60 rows, after 50 rows of training and 40 of calibration.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import random
import sys
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from sklearn.datasets import load_iris, make_regression
from sklearn.linear_model import LinearRegression, LogisticRegression

TRAIN, CALIBRATE, TEST = slice(0, 50), slice(50, 90), slice(90, 150)
N_CALIBRATION = 40


def require(package: str, module: str = "") -> None:
    """Without this package the test says by name that it did not run.

    ``python3 dev.py interop`` sets CALIPERS_REQUIRE_PEERS: there an absent package is a failure, so that a
    test cannot stay away unnoticed.
    """
    if importlib.util.find_spec((module or package).partition(".")[0]) is None:
        sentence = f"{package} is not installed: `python3 dev.py interop` installs it and runs this test"
        if os.environ.get("CALIPERS_REQUIRE_PEERS"):
            pytest.fail(sentence, pytrace=False)
        pytest.skip(sentence)


@contextmanager
def foreign() -> Iterator[None]:
    """Run other people's code: its warnings are its own, and the global random states are put back."""
    states = np.random.get_state(), random.getstate()  # noqa: NPY002 - peers draw from it
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        np.random.set_state(states[0])  # noqa: NPY002
        random.setstate(states[1])


def classes() -> tuple[Any, Any]:
    X, y = load_iris(return_X_y=True)
    order = np.random.default_rng(0).permutation(150)
    return X[order], y[order]


def numbers() -> tuple[Any, Any]:
    X, v = make_regression(150, 3, noise=10.0, random_state=0)
    return X, v


def classifier() -> LogisticRegression:
    X, y = classes()
    return LogisticRegression(max_iter=500).fit(X[TRAIN], y[TRAIN])


def regressor() -> LinearRegression:
    X, v = numbers()
    return LinearRegression().fit(X[TRAIN], v[TRAIN])


def mapie() -> dict[str, Any]:
    from mapie.classification import SplitConformalClassifier
    from mapie.regression import SplitConformalRegressor

    levels = {"confidence_level": [0.8, 0.9], "prefit": True}
    X, y = classes()
    sets = SplitConformalClassifier(classifier(), **levels).conformalize(X[CALIBRATE], y[CALIBRATE])
    Z, v = numbers()
    intervals = SplitConformalRegressor(regressor(), **levels).conformalize(Z[CALIBRATE], v[CALIBRATE])
    return {
        "y": y[TEST], "sets": sets.predict_set(X[TEST]),
        "v": v[TEST], "intervals": intervals.predict_interval(Z[TEST]),
    }  # fmt: skip


def crepes() -> dict[str, Any]:
    from crepes import WrapClassifier, WrapRegressor

    X, y = classes()
    sets = WrapClassifier(classifier()).calibrate(X[CALIBRATE], y[CALIBRATE])
    Z, v = numbers()
    intervals = WrapRegressor(regressor()).calibrate(Z[CALIBRATE], v[CALIBRATE])
    return {
        "y": y[TEST],
        "sets": sets.predict_set(X[TEST], confidence=0.9, seed=0),
        "zero_one": sets.predict_set(X[TEST], confidence=0.9, seed=0, labels=False),
        "p_values": sets.predict_p(X[TEST], seed=0),
        "v": v[TEST], "intervals": intervals.predict_int(Z[TEST], confidence=0.9),
    }  # fmt: skip


def puncc() -> dict[str, Any]:
    from deel.puncc.api.prediction import BasePredictor
    from deel.puncc.classification import LAC
    from deel.puncc.regression import SplitCP

    class Probabilities(BasePredictor):
        def predict(self, X: Any, **options: Any) -> Any:
            return self.model.predict_proba(X)

    X, y = classes()
    sets = LAC(Probabilities(classifier(), is_trained=True), train=False)
    sets.fit(X_calib=X[CALIBRATE], y_calib=y[CALIBRATE])
    Z, v = numbers()
    intervals = SplitCP(BasePredictor(regressor(), is_trained=True), train=False)
    intervals.fit(X_calib=Z[CALIBRATE], y_calib=v[CALIBRATE])
    return {
        "y": y[TEST], "sets": sets.predict(X[TEST], alpha=0.1),
        "v": v[TEST], "intervals": intervals.predict(Z[TEST], alpha=0.1),
    }  # fmt: skip


def torchcp() -> dict[str, Any]:
    pretend_installed("torchsort", "torch_geometric", "transformers")
    import torch
    from torch.utils.data import DataLoader, TensorDataset
    from torchcp.classification.predictor import SplitPredictor as SplitClassifier
    from torchcp.classification.score import LAC
    from torchcp.regression.predictor import SplitPredictor as SplitRegressor
    from torchcp.regression.score import ABS

    def rows(*arrays: Any) -> Any:
        return DataLoader(TensorDataset(*map(torch.as_tensor, arrays)), batch_size=20)

    X, y = classes()
    network = linear_network(torch, classifier().coef_, classifier().intercept_)
    sets = SplitClassifier(LAC(), network, alpha=0.1, device=torch.device("cpu"))
    sets.calibrate(rows(X[CALIBRATE], y[CALIBRATE]))
    Z, v = numbers()
    network = linear_network(torch, regressor().coef_[None, :], np.array([regressor().intercept_]))
    intervals = SplitRegressor(ABS(), network, device=torch.device("cpu"))
    intervals.calibrate(rows(Z[CALIBRATE], v[CALIBRATE]), 0.1)
    return {
        "y": torch.as_tensor(y[TEST]), "sets": sets.predict(torch.as_tensor(X[TEST])),
        "p_values": sets.predict_p(torch.as_tensor(X[TEST])),
        "v": torch.as_tensor(v[TEST]), "intervals": intervals.predict(torch.as_tensor(Z[TEST])),
    }  # fmt: skip


def linear_network(torch: Any, weight: np.ndarray, bias: np.ndarray) -> Any:
    layer = torch.nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
    layer.load_state_dict({"weight": torch.as_tensor(weight), "bias": torch.as_tensor(bias)})
    return layer.eval()


def pretend_installed(*names: str) -> None:
    """Empty modules for parts that TorchCP imports, that are not used here and do not install everywhere."""
    for name in names:
        if name not in sys.modules and importlib.util.find_spec(name) is None:
            sys.meta_path.insert(0, _Absent(name))


class _Absent:
    """Finds one package and everything below it, with any name in it."""

    def __init__(self, name: str) -> None:
        self.name = name

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        known = name.partition(".")[0] == self.name
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if known else None

    @staticmethod
    def create_module(spec: Any) -> Any:
        class Empty(types.ModuleType):
            def __getattr__(self, name: str) -> Any:
                if name.startswith("__"):
                    raise AttributeError(name)
                return type(name, (), {})

        return Empty(spec.name)

    @staticmethod
    def exec_module(module: Any) -> None:
        return None


MODULES = {"puncc": "deel.puncc"}
PEERS: dict[str, Callable[[], dict[str, Any]]] = {
    "mapie": mapie, "crepes": crepes, "puncc": puncc, "torchcp": torchcp,
}  # fmt: skip
