"""What an audit works on: the inputs, checked once, and what follows from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from calipers.arrays import as_numpy, generator
from calipers.exceptions import InputError
from calipers.inputs import (
    Features,
    check_alphas,
    check_confidence,
    check_count,
    check_features,
    check_groups,
    check_intervals,
    check_p_values,
    check_probabilities,
    check_same_length,
    check_sets,
    check_vector,
    check_weights,
    encode_labels,
    sets_at,
    unpack_intervals,
    unpack_sets,
)

Kept = TypeVar("Kept")


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The predictions at one alpha.

    Parameters
    ----------
    alpha : float
        Allowed miscoverage.
    prediction : array
        Sets (n, K) or intervals (n, 2).
    covered : bool array (n,)
        Whether each outcome lies in its prediction.
    size : array (n,)
        Labels in the set, or width of the interval.
    tag : str
        " at alpha=0.05" when there are several levels, else empty.
    """

    alpha: float
    prediction: np.ndarray
    covered: np.ndarray
    size: np.ndarray
    tag: str = ""

    @property
    def promised(self) -> float:
        """The coverage that was promised."""
        return 1.0 - self.alpha


@dataclass(frozen=True, kw_only=True, eq=False)
class Material:
    """Checked inputs of one audit; numpy on the host.

    Parameters
    ----------
    y : array (n,)
        Column index of each label (classification) or the outcome itself (regression).
    task : {"classification", "regression"}
        By what was predicted.
    classes : tuple
        Label of every column; empty for regression.
    alphas : tuple of float
        The levels, in the order given.
    probabilities, p_values, sets, intervals : array or None
        As predicted, two- or three-dimensional.
    features, groups, ease, time, weights : object or None
        What is known about the rows; time as ordered numbers.
    n_calibration : int or None
        Rows the predictor was conformalised on.
    confidence : float
        Level of the intervals around estimates.
    seed : int
        Every random draw of the audit follows from it.
    """

    y: np.ndarray
    task: str
    classes: tuple[Any, ...] = ()
    alphas: tuple[float, ...] = (0.1,)
    probabilities: np.ndarray | None = None
    p_values: np.ndarray | None = None
    sets: np.ndarray | None = None
    intervals: np.ndarray | None = None
    features: Features | None = None
    group_labels: tuple[str, ...] = ()
    groups: np.ndarray | None = None
    ease: np.ndarray | None = None
    time: np.ndarray | None = None
    weights: np.ndarray | None = None
    n_calibration: int | None = None
    confidence: float = 0.95
    seed: int = 0

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self.y)

    @property
    def noun(self) -> str:
        """What was predicted, in one word."""
        return "intervals" if self.task == "regression" else "sets"

    @cached_property
    def levels(self) -> tuple[Level, ...]:
        """The predictions at every alpha; empty when neither sets, p-values nor intervals were given."""
        return tuple(self._make_levels())

    def _make_levels(self) -> Iterator[Level]:
        several = len(self.alphas) > 1
        for position, alpha in enumerate(self.alphas):
            prediction = self._prediction(position, alpha)
            if prediction is None:
                return
            tag = f" at alpha={alpha:g}" if several else ""
            yield Level(alpha, prediction, *_covered_and_size(self.y, prediction), tag)

    def _prediction(self, position: int, alpha: float) -> np.ndarray | None:
        for given in (self.sets, self.intervals):
            if given is not None:
                return given if given.ndim == 2 else given[:, :, position]
        return None if self.p_values is None else np.asarray(sets_at(self.p_values, alpha))

    @cached_property
    def have(self) -> frozenset[str]:
        """Words for what was given: "prediction", "p_values", "probabilities", "X", "groups", "ease".

        "difficulty" stands for an ease that was given, or probabilities whose largest one can stand in.
        """
        present = {
            "prediction": bool(self.levels),
            "p_values": self.p_values is not None,
            "probabilities": self.probabilities is not None,
            "X": self.features is not None,
            "groups": self.groups is not None,
            "ease": self.ease is not None,
            "difficulty": self.ease is not None or self.probabilities is not None,
        }
        return frozenset(word for word, there in present.items() if there)

    def require(self, name: str) -> np.ndarray:
        """An array that the plan has found to be there."""
        array = getattr(self, name)
        if array is None:
            raise InputError(f"{name} was not given to the audit.")
        return np.asarray(array)

    def kept(self, key: str, make: Callable[[], Kept]) -> Kept:
        """What ``make`` gives, made once: several checks may read the same search."""
        if key not in self._shelf:
            self._shelf[key] = make()
        found: Kept = self._shelf[key]
        return found

    @cached_property
    def _shelf(self) -> dict[str, Any]:
        return {}

    def generator(self, purpose: str) -> np.random.Generator:
        """An independent source of random numbers for one purpose, the same in every run of a seed."""
        return np.random.default_rng([self.seed, *purpose.encode()])

    def rows(self, which: np.ndarray) -> Material:
        """The same material for some rows."""
        from dataclasses import replace

        names = ("probabilities", "p_values", "sets", "intervals", "groups", "ease", "time", "weights")
        parts: dict[str, Any] = {
            name: None if (array := getattr(self, name)) is None else array[which] for name in names
        }
        features = None if self.features is None else self.features.take(which)
        return replace(self, y=self.y[which], features=features, **parts)


def _covered_and_size(y: np.ndarray, prediction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if prediction.dtype.kind == "b":
        return prediction[np.arange(len(y)), y], prediction.sum(axis=1).astype(float)
    lower, upper = prediction[:, 0], prediction[:, 1]
    return (lower <= y) & (y <= upper), upper - lower


def check_material(
    y_true: Any,
    *,
    probabilities: Any = None,
    p_values: Any = None,
    sets: Any = None,
    intervals: Any = None,
    X: Any = None,
    groups: Any = None,
    ease: Any = None,
    time: Any = None,
    alpha: Any = 0.1,
    n_calibration: int | None = None,
    classes: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    random_state: Any = None,
) -> Material:
    """Check every argument of an audit and bring it into canonical form."""
    stated = {"probabilities": probabilities, "p_values": p_values, "sets": sets, "intervals": intervals}
    _refuse_nothing_or_both(stated)
    stated, classes = _unpacked(stated, y_true, classes)
    matrices: dict[str, Any] = _check_matrices(stated)
    levels, _ = check_alphas(alpha)
    alphas = tuple(float(a) for a in levels)
    _check_levels(matrices, alphas)
    n = check_same_length(
        y_true=as_numpy(y_true, name="y_true"), **{k: v for k, v in matrices.items() if v is not None}
    )
    seed = int(generator(random_state).integers(2**31))
    return Material(
        **_outcome(y_true, matrices, classes, stated),
        **matrices,
        **({} if groups is None else _check_named_groups(groups, n)),
        alphas=alphas,
        features=_rows_of(None if X is None else check_features(X), n, "X"),
        ease=_rows_of(_check_ease(ease, X, seed), n, "ease"),
        time=_rows_of(None if time is None else _check_time(time), n, "time"),
        weights=check_weights(sample_weight, n),
        n_calibration=None if n_calibration is None else check_count(n_calibration, name="n_calibration"),
        confidence=check_confidence(confidence),
        seed=seed,
    )


def _refuse_nothing_or_both(stated: dict[str, Any]) -> None:
    given = [name for name, value in stated.items() if value is not None]
    if not given:
        raise InputError(
            "an audit needs what was predicted: "
            "give probabilities, p_values, sets or intervals beside y_true."
        )
    if "intervals" in given and len(given) > 1:
        raise InputError(
            f"intervals belong to regression and {given[0]} to classification; audit them separately."
        )


def _unpacked(stated: dict[str, Any], y_true: Any, classes: Any) -> tuple[dict[str, Any], Any]:
    """The same in our own layout, whatever library returned it; lists of labels also name the classes."""
    if stated["intervals"] is not None:
        n = len(as_numpy(y_true, name="y_true"))
        return stated | {"intervals": unpack_intervals(stated["intervals"], n)}, classes
    if stated["sets"] is None:
        return stated, classes
    beside = [table for name in ("probabilities", "p_values") if (table := stated[name]) is not None]
    widths = [np.shape(as_numpy(table))[1] for table in beside if np.ndim(as_numpy(table)) == 2]
    sets, classes = unpack_sets(
        stated["sets"], y_true, classes=classes, n_classes=widths[0] if widths else None
    )
    return stated | {"sets": sets}, classes


def _check_named_groups(groups: Any, n: int) -> dict[str, Any]:
    labels, codes = check_groups(groups, n)
    return {"groups": codes, "group_labels": tuple(str(label) for label in labels)}


def _check_ease(ease: Any, X: Any, seed: int) -> np.ndarray | None:
    """The ease given, or measured by changing the features where a model was given in its place."""
    if not (callable(ease) or hasattr(ease, "predict")):
        return None if ease is None else _floats(check_vector(ease, name="ease"))
    if X is None:
        raise InputError(
            "ease by a model needs X, the features it predicts from. Add X, or give ease as numbers."
        )
    from calipers.difficulty import ease as ease_of_rows

    return ease_of_rows(ease, X, relative=True, unit="spread", random_state=seed)


def _check_time(time: Any) -> np.ndarray:
    """When each row happened, as numbers in the same order."""
    values = as_numpy(time, name="time").reshape(-1)
    if values.dtype.kind in "OUS":
        try:
            values = values.astype(str).astype("datetime64[us]")
        except ValueError:
            raise InputError(
                f"time must hold numbers, dates or text like 2024-05-31T12:00, got {str(values[0])!r}."
            ) from None
    if values.dtype.kind == "M":
        lost = np.isnat(values)
        values = values.astype("datetime64[us]").astype(np.int64)
        if lost.any():
            raise InputError(
                f"time has {int(lost.sum())} missing values (first at row {int(lost.argmax())})."
            )
    return _floats(check_vector(values, name="time"))


def _floats(array: Any) -> np.ndarray:
    # Rows side by side, whatever the file's own layout: most of the work here is by row.
    return np.ascontiguousarray(as_numpy(array), dtype=np.float64)


def _check_matrices(stated: dict[str, Any]) -> dict[str, np.ndarray | None]:
    checks: dict[str, Callable[[Any], np.ndarray]] = {
        "probabilities": _two_columns,
        # Kept in their own precision: 0.1 in float32 is 0.1, not a little more.
        "p_values": lambda value: np.ascontiguousarray(as_numpy(check_p_values(value))),
        "sets": lambda value: np.ascontiguousarray(as_numpy(check_sets(value))),
        "intervals": lambda value: _floats(check_intervals(value)),
    }
    matrices = {k: None if value is None else checks[k](value) for k, value in stated.items()}
    widths = {k: v.shape[1] for k, v in matrices.items() if v is not None and k != "intervals"}
    if len(set(widths.values())) > 1:
        found = ", ".join(f"{name}: {width}" for name, width in widths.items())
        raise InputError(f"{' and '.join(widths)} must have one column per class, got {found}.")
    return matrices


def _two_columns(probabilities: Any) -> np.ndarray:
    """Probabilities (n, K); a vector is the positive class of two."""
    from calipers.inputs import check_positive_probabilities

    array = as_numpy(probabilities, name="probabilities")
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        positive = _floats(check_positive_probabilities(array))
        return np.column_stack([1.0 - positive, positive])
    return _floats(check_probabilities(array))


def _check_levels(matrices: dict[str, np.ndarray | None], alphas: tuple[float, ...]) -> None:
    for name in ("sets", "intervals"):
        array = matrices[name]
        if array is None:
            continue
        found = 1 if array.ndim == 2 else array.shape[2]
        if found != len(alphas):
            raise InputError(
                f"{name} holds {found} level(s) and alpha {len(alphas)}. "
                f"Give one alpha per level, {name} with a last axis for several."
            )


def _outcome(
    y_true: Any, matrices: dict[str, np.ndarray | None], classes: Any, stated: dict[str, Any]
) -> dict[str, Any]:
    if matrices["intervals"] is not None:
        if classes is not None:
            raise InputError("classes belong to classification; intervals were given.")
        return {"y": _floats(check_vector(y_true, name="y_true")), "task": "regression"}
    n_classes = next(m.shape[1] for m in matrices.values() if m is not None)
    for table in stated.values():
        codes = np.asarray(as_numpy(encode_labels(y_true, n_classes, classes=classes, table=table)))
    return {"y": codes, "task": "classification", "classes": _class_names(y_true, n_classes, classes)}


def _class_names(y_true: Any, n_classes: int, classes: Any) -> tuple[Any, ...]:
    from calipers.inputs import check_classes

    labels = as_numpy(y_true, name="y_true").reshape(-1)
    known = check_classes(classes, labels, n_classes)
    return tuple(range(n_classes)) if known is None else tuple(np.asarray(known).tolist())


def _rows_of(value: Any, n: int, name: str) -> Any:
    if value is not None and len(value) != n:
        raise InputError(f"{name} must have one row per outcome ({n}), got {len(value)}.")
    return value
