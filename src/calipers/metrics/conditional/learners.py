"""Whatever learns P(covered | x), behind one call: the default, a scikit-learn classifier, an extra."""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import narwhals as nw
import numpy as np

from calipers.arrays import as_numpy, import_optional, is_frame
from calipers.exceptions import InputError, InputTypeError, MissingDependencyError
from calipers.inputs import Features
from calipers.metrics.conditional.coverage_ensemble import CoverageClassifier, Prediction, smoothed_rate
from calipers.metrics.conditional.risk_rows import RowWeights

# Predictions closer to the target than rounding are the target: the L1 score jumps there.
_ROUNDING = 1e-9
EXTRAS = ("lightgbm", "catboost", "tabicl", "tabpfn")


class Learner(Protocol):
    """Learns from some rows, predicts for others; rows are given by number."""

    def fit_predict(self, train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> Prediction:
        """P(covered | x) for the test rows, learnt from the training rows."""
        ...

    def for_test(self) -> Learner:
        """The learner of the sequential test."""
        ...


@dataclass(frozen=True, slots=True)
class DefaultLearner:
    """`CoverageClassifier` on the checked features."""

    classifier: CoverageClassifier
    features: Features
    covered: np.ndarray
    target: np.ndarray
    weights: np.ndarray | None

    def fit_predict(self, train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> Prediction:
        """P(covered | x) for the test rows, learnt from the training rows."""
        weights = None if self.weights is None else self.weights[train]
        model = self.classifier.fit(
            self.features.take(train), self.covered[train], self.target[train], weights, rng
        )
        h, unshrunk = model.predict(self.features.values[test], self.target[test])
        return Prediction(snap(h, self.target[test]), snap(unshrunk, self.target[test]))

    def for_test(self) -> DefaultLearner:
        """A cheaper copy: the test only needs the direction."""
        own = self.classifier
        faster = 0.5 if own.learning_rate is None else 2 * own.learning_rate
        n_trees = own.trees_for(len(self.covered)) // 2
        cheaper = replace(own, n_bags=2, learning_rate=faster, n_trees=n_trees)
        return replace(self, classifier=cheaper)


@dataclass(frozen=True, slots=True)
class EstimatorLearner:
    """A user's classifier, used as it is, on the table as it was given."""

    estimator: Any
    table: Any
    covered: np.ndarray
    target: np.ndarray
    weights: RowWeights
    offline: str = ""

    def fit_predict(self, train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> Prediction:
        """P(covered | x) for the test rows, learnt from the training rows."""
        z = self.covered[train]
        w = self.weights.of(train)
        if z[w > 0].all() or not z[w > 0].any():
            # A one-class model has no column for the other class: the smoothed base rate instead.
            rate = np.full(len(test), smoothed_rate(z, self.target[train], w))
            return Prediction(rate, rate)
        from sklearn.base import clone

        estimator = clone(self.estimator)
        _seed(estimator, rng)
        with _offline(self.offline):
            self._fit(estimator, train)
            h = snap(_positive_column(estimator, take_rows(self.table, test)), self.target[test])
        return Prediction(h, h)

    def for_test(self) -> EstimatorLearner:
        """The same: a user's classifier is not second-guessed."""
        return self

    def _fit(self, estimator: Any, train: np.ndarray) -> None:
        from sklearn.utils.validation import has_fit_parameter

        if self.weights.values is None:
            estimator.fit(take_rows(self.table, train), self.covered[train].astype(int))
        elif has_fit_parameter(estimator, "sample_weight"):
            estimator.fit(
                take_rows(self.table, train),
                self.covered[train].astype(int),
                sample_weight=self.weights.values[train],
            )
        else:
            if self.weights.repeats is None:
                raise InputError(
                    f"{type(estimator).__name__}.fit takes no sample_weight, and weights that are not whole "
                    "cannot be replaced by repeated rows. Use a classifier that takes weights."
                )
            rows = np.repeat(train, self.weights.repeats[train])
            estimator.fit(take_rows(self.table, rows), self.covered[rows].astype(int))


def check_learner(
    classifier: Any,
    X: Any,
    features: Features,
    covered: np.ndarray,
    target: np.ndarray,
    weights: RowWeights,
) -> DefaultLearner | EstimatorLearner:
    """The learner named or given; a target that varies by row becomes one more column."""
    varies = bool((target != target[0]).any())
    if varies:
        features = with_target(features, target)
    if classifier is None or isinstance(classifier, CoverageClassifier):
        return DefaultLearner(classifier or CoverageClassifier(), features, covered, target, weights.values)
    if isinstance(classifier, str):
        return EstimatorLearner(
            named_estimator(classifier), features.values, covered, target, weights,
            classifier if classifier.startswith("tab") else "",
        )  # fmt: skip
    if inspect.isclass(classifier):
        raise InputTypeError(
            f"classifier must be an instance, got the class {classifier.__name__}. "
            f"Pass {classifier.__name__}()."
        )
    if not (hasattr(classifier, "fit") and hasattr(classifier, "predict_proba")):
        raise InputTypeError(
            f"classifier must have fit and predict_proba, {type(classifier).__name__} has not. Hard labels "
            "are not probabilities: wrap it in sklearn.calibration.CalibratedClassifierCV."
        )
    table = _with_alpha(X, features, target) if varies else _table(X, features)
    return EstimatorLearner(classifier, table, covered, target, weights)


def with_target(features: Features, target: np.ndarray) -> Features:
    """The features with the allowed miscoverage of each row as one more column."""
    return Features(
        np.column_stack([features.values, 1.0 - target]),
        (*features.names, "alpha"),
        (*features.categories, None),
    )


def named_estimator(name: str) -> Any:
    """An optional learner by name, with settings that suit a 90/10 target."""
    if name == "lightgbm":
        library = import_optional("lightgbm", purpose="LightGBM classifiers", install="calipers[boosting]")
        return library.LGBMClassifier(
            n_estimators=100, learning_rate=0.05, num_leaves=8, min_child_samples=20, reg_lambda=20.0,
            n_jobs=1, verbose=-1,
        )  # fmt: skip
    if name == "catboost":
        library = import_optional("catboost", purpose="CatBoost classifiers", install="calipers[boosting]")
        return library.CatBoostClassifier(
            iterations=200, learning_rate=0.05, depth=4, thread_count=1, verbose=False,
            allow_writing_files=False,
        )  # fmt: skip
    if name == "tabicl":
        return import_optional("tabicl", purpose="TabICL classifiers", install="tabicl").TabICLClassifier()
    if name == "tabpfn":
        return import_optional("tabpfn", purpose="TabPFN classifiers", install="tabpfn").TabPFNClassifier()
    raise InputError(
        "classifier must be None, a classifier with predict_proba, or one of "
        f"{', '.join(EXTRAS)}, got {name!r}."
    )


def snap(h: np.ndarray, target: np.ndarray) -> np.ndarray:
    """Probabilities as floats, checked, and equal to the target where they are so up to rounding."""
    h = np.asarray(h, dtype=float)
    wrong = ~((h >= 0) & (h <= 1))
    if wrong.any():
        raise InputError(
            f"classifier must predict probabilities in [0, 1], got {h[wrong][0]} in {int(wrong.sum())} rows."
        )
    return np.where(np.abs(h - target) <= _ROUNDING, target, h)


def take_rows(table: Any, rows: np.ndarray) -> Any:
    """Some rows of a dataframe or a matrix, of the same kind."""
    if is_frame(table):
        return nw.from_native(table, eager_only=True)[rows].to_native()
    return table[rows]


def _table(X: Any, features: Features) -> Any:
    if is_frame(X):
        return X
    array = features.values if isinstance(X, Features) else as_numpy(X, name="X")
    return array.reshape(len(array), -1)


def _with_alpha(X: Any, features: Features, target: np.ndarray) -> Any:
    if not is_frame(X):
        return features.values
    frame = nw.from_native(X, eager_only=True)
    column = nw.new_series("alpha", 1.0 - target, backend=frame.implementation)
    native = nw.to_native(column)
    if frame.implementation.is_pandas_like():
        native.index = nw.to_native(frame).index
    return frame.with_columns(nw.from_native(native, series_only=True)).to_native()


def _positive_column(estimator: Any, table: Any) -> np.ndarray:
    probabilities = np.asarray(estimator.predict_proba(table), dtype=float)
    return np.asarray(probabilities[:, [int(c) for c in estimator.classes_].index(1)])


def _seed(estimator: Any, rng: np.random.Generator) -> None:
    """Give every open random_state a number from our generator, so that one seed fixes the answer."""
    open_seeds = {
        key: int(rng.integers(2**31))
        for key, value in sorted(estimator.get_params(deep=True).items())
        if (key == "random_state" or key.endswith("__random_state")) and value is None
    }
    if open_seeds:
        estimator.set_params(**open_seeds)


@contextlib.contextmanager
def _offline(name: str) -> Iterator[None]:
    """Foundation models read their weights from disk; none is fetched here."""
    if not name:
        yield
        return
    before = os.environ.get("HF_HUB_OFFLINE")
    os.environ["HF_HUB_OFFLINE"] = "1"
    try:
        yield
    except (OSError, RuntimeError, ValueError) as error:
        raise MissingDependencyError(
            f"{name} could not run offline ({type(error).__name__}: {error}). "
            "Put its weights into its own cache folder first."
        ) from error
    finally:
        if before is None:
            del os.environ["HF_HUB_OFFLINE"]
        else:
            os.environ["HF_HUB_OFFLINE"] = before
