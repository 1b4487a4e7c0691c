"""Several classes: the top label, every class for itself, and all classes under one null."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import Array, as_array, as_numpy, namespace, on_device_of
from calipers.exceptions import InputError
from calipers.inference import SimulatedLaw
from calipers.inputs import check_probabilities, check_same_length, check_weights, encode_labels
from calipers.metrics.reliability.calibration_test import (
    MAX_COINS,
    NULL_LEVEL,
    asymptotic_test,
    walk_range,
)
from calipers.metrics.reliability.rows import BinaryRows, check_binary_rows
from calipers.metrics.reliability.summary import (
    WEIGHTS_REASON,
    RowMoments,
    bound_fields,
    in_words,
    row_moments,
)
from calipers.metrics.reliability.worst_interval import SupInterval, sup_interval
from calipers.results import Estimate

# What was found for a class, the moments of its rows, and its bounds.
ClassPart = tuple[SupInterval, RowMoments, dict[str, Any]]
BONFERRONI = "Bonferroni over classes of the asymptotic range law"
# Fewest draws worth making before the asymptotic law is preferred.
_MIN_DRAWS = 99
_BATCH = 1 << 20


@dataclass(frozen=True, slots=True)
class ClassRows:
    """Checked rows of a problem with K classes.

    Parameters
    ----------
    codes : integer array of shape (n,)
        Column of the true class.
    probabilities : array of shape (n, K)
        Stated probabilities.
    names : list
        The label of every column.
    weights : float64 array of shape (n,) or None
        Weights.
    """

    codes: Array
    probabilities: Array
    names: list[Any]
    weights: Array | None = None

    @property
    def n_classes(self) -> int:
        """Number of columns."""
        return int(self.probabilities.shape[1])

    def of_class(self, k: int) -> BinaryRows:
        """Class k against the rest."""
        return BinaryRows(self.probabilities[:, k], self.codes == k, self.weights)

    def top_label(self) -> BinaryRows:
        """The largest probability as a statement that its label is right; ties go to the first column."""
        xp = namespace(self.probabilities)
        top = xp.astype(xp.argmax(self.probabilities, axis=1), self.codes.dtype)
        return BinaryRows(xp.max(self.probabilities, axis=1), top == self.codes, self.weights)


def check_class_rows(
    y_true: Any, probabilities: Any, *, classes: Any = None, sample_weight: Any = None
) -> ClassRows:
    """Rows of a problem with several classes from labels and (n, K) probabilities."""
    P = check_probabilities(probabilities)
    check_same_length(y_true=as_array(y_true, name="y_true"), probabilities=P)
    codes = encode_labels(y_true, int(P.shape[1]), classes=classes, table=probabilities)
    weights = check_weights(sample_weight, int(P.shape[0]))
    if isinstance(P, np.ndarray):
        codes = as_numpy(codes)
    else:
        codes = on_device_of(codes, P) if isinstance(codes, np.ndarray) else codes
        weights = None if weights is None else on_device_of(weights, P)
    return ClassRows(codes, P, _class_names(y_true, classes, int(P.shape[1])), weights)


def check_reliability_rows(
    y_true: Any,
    probabilities: Any,
    *,
    pos_label: Any = None,
    sample_weight: Any = None,
    classes: Any = None,
) -> BinaryRows:
    """Binary rows; with more than two columns, those of the top label."""
    scores = as_array(probabilities, name="probabilities")
    if scores.ndim == 2 and scores.shape[1] > 2:
        return check_class_rows(
            y_true, probabilities, classes=classes, sample_weight=sample_weight
        ).top_label()
    if classes is None:
        return check_binary_rows(y_true, probabilities, pos_label=pos_label, sample_weight=sample_weight)
    known = as_numpy(classes, name="classes").tolist()
    pos_label = known[-1] if pos_label is None else pos_label
    if pos_label not in known:
        raise InputError(f"pos_label={pos_label!r} is not in classes.")
    if scores.ndim == 2 and scores.shape[1] == len(known) == 2:
        # Columns are in the order of classes, which need not be sorted.
        scores = check_probabilities(scores)[:, known.index(pos_label)]
    return check_binary_rows(y_true, scores, pos_label=pos_label, sample_weight=sample_weight)


def _class_names(y_true: Any, classes: Any, n_classes: int) -> list[Any]:
    if classes is not None:
        return list(as_numpy(classes).tolist())
    labels = as_numpy(y_true)
    distinct = (
        sorted(set(labels.ravel().tolist())) if labels.dtype.kind in "OUS" else np.unique(labels).tolist()
    )
    return list(distinct) if len(distinct) == n_classes else list(range(n_classes))


def classes_together(
    rows: ClassRows,
    multiclass: str,
    *,
    confidence: float,
    n_models: int,
    n_draws: int,
    generator: np.random.Generator,
) -> Estimate:
    """Mean ("classwise") or largest ("max") error over classes, with simultaneous bounds and null."""
    parts = [_one_class(rows, k, confidence=confidence, n_models=n_models) for k in range(rows.n_classes)]
    combine = np.max if multiclass == "max" else np.mean
    null, test = simultaneous_null(rows, parts, combine, n_draws=n_draws, generator=generator)
    tops = as_numpy(namespace(rows.probabilities).max(rows.probabilities, axis=0))
    return combine_classes(
        parts, multiclass, names=rows.names, tops=tops, null=null, test=test, confidence=confidence
    )


def combine_classes(
    parts: Sequence[ClassPart],
    multiclass: str,
    *,
    names: Sequence[Any],
    tops: np.ndarray,
    null: dict[str, Any],
    test: str,
    confidence: float,
) -> Estimate:
    """The estimate over classes from what was found for each; ``tops`` are their largest scores."""
    combine = np.max if multiclass == "max" else np.mean
    values = np.array([found.value for found, _, _ in parts])
    worst = int(np.argmax(values))
    found, moments, bounds = parts[worst]
    fields = ("high", "asymptotic_high", "low_bound")
    together = {key: float(combine([b[key] for _, _, b in parts])) for key in fields}
    kind = "guaranteed (empirical Bernstein)" if bounds["guaranteed"] else "asymptotic"
    spread = [moments.std_error(found.value) for found, moments, _ in parts]
    return Estimate(
        name="calibration_error",
        value=float(combine(values)),
        std_error=float(spread[worst] if multiclass == "max" else np.mean(spread)),
        low=0.0,
        high=together.pop("high"),
        confidence=confidence,
        n=moments.total if moments.total != int(moments.total) else int(moments.total),
        **null,
        method=f"{multiclass} sup-interval error over {len(parts)} classes, {kind} upper bound at "
        f"confidence for all classes at once, {test}",
        reason="" if bounds["guaranteed"] else WEIGHTS_REASON,
        details=together
        | _worst_details(names[worst], found, moments, float(tops[worst]))
        | {
            "multiclass": multiclass,
            "guaranteed": bounds["guaranteed"],
            "per_class": dict(zip(names, values.tolist(), strict=True)),
        },
    )


def _worst_details(name: Any, found: SupInterval, moments: RowMoments, top: float) -> dict[str, Any]:
    """Which class is worst, where, and how often it was stated and happened there."""
    return {
        "class": name,
        "interval": None if found.sign == 0 else (found.low, found.high),
        "sign": found.sign,
        "share_in_interval": moments.inside / moments.total,
        "stated_in_interval": moments.stated,
        "observed_in_interval": moments.happened,
        "sentence": f"class {name!r}: {in_words(found, moments, top)}",
    }


def _one_class(
    rows: ClassRows, k: int, *, confidence: float, n_models: int
) -> tuple[SupInterval, RowMoments, dict[str, Any]]:
    binary = rows.of_class(k)
    found = sup_interval(binary)
    moments = row_moments(binary, found)
    n_statements = n_models * rows.n_classes
    return (
        found,
        moments,
        bound_fields(binary.counted, found, moments, confidence=confidence, n_models=n_statements),
    )


def simultaneous_null(
    rows: ClassRows, parts: list[Any], combine: Any, *, n_draws: int, generator: np.random.Generator
) -> tuple[dict[str, Any], str]:
    """Fields of the test that draws whole labels from the rows' probabilities, and what it is called.

    When not even 99 draws are affordable: Bonferroni over the classes' asymptotic tests, which is a valid
    test of the same null.
    """
    draws = min(n_draws, MAX_COINS // (_n_draws_of_a_label(rows) * rows.n_classes))
    if draws < min(_MIN_DRAWS, n_draws):
        return bonferroni(parts), BONFERRONI
    host = _expanded(rows)
    per_class = np.concatenate(list(simulated_errors(host, draws, generator)))
    law = SimulatedLaw(combine(per_class, axis=1))
    observed = float(combine([found.value for found, _, _ in parts]))
    return law.estimate_fields(observed, level=NULL_LEVEL), (
        f"exact Monte Carlo of labels by row, {draws} draws"
    )


def bonferroni(parts: Sequence[ClassPart]) -> dict[str, Any]:
    """Fields of the test by the smallest of the classes' asymptotic p-values, times their number."""
    tests = [asymptotic_test(found.value, m.variance, m.total) for found, m, _ in parts]
    keys = ("alternative", "null_low", "null_level")
    smallest = min(1.0, len(parts) * min(test["p_value"] for test in tests))
    return {key: tests[0][key] for key in keys} | {"p_value": smallest, "null_high": None}


def _n_draws_of_a_label(rows: ClassRows) -> int:
    """Labels in one simulated data set: whole-number weights are repetitions."""
    weights = None if rows.weights is None else as_numpy(rows.weights)
    if weights is None or not np.array_equal(weights, np.floor(weights)):
        return int(rows.probabilities.shape[0])
    return int(weights.sum())


def _expanded(rows: ClassRows) -> ClassRows:
    """Rows on the host, repeated by whole-number weights, in an order that the given order cannot change."""
    P, codes = as_numpy(rows.probabilities).astype(np.float64), as_numpy(rows.codes)
    weights = None if rows.weights is None else as_numpy(rows.weights)
    if weights is not None and np.array_equal(weights, np.floor(weights)):
        times, weights = weights.astype(np.int64), None
        P, codes = np.repeat(P, times, axis=0), np.repeat(codes, times)
    order = np.lexsort(P.T) if weights is None else np.lexsort((weights, *P.T))
    return ClassRows(codes[order], P[order], rows.names, None if weights is None else weights[order])


def simulated_errors(rows: ClassRows, n_draws: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches (b, K) of the errors of all classes when every row's label is drawn from its probabilities."""
    P, n = rows.probabilities, rows.probabilities.shape[0]
    upper = np.cumsum(P, axis=1)
    upper /= upper[:, -1:]
    walks = [_ClassWalk(P[:, k], rows.weights) for k in range(rows.n_classes)]
    batch = max(1, min(n_draws, _BATCH // n))
    for start in range(0, n_draws, batch):
        u = generator.random((min(batch, n_draws - start), n))
        below = np.zeros(u.shape, dtype=bool)
        errors = np.empty((u.shape[0], rows.n_classes))
        for k, walk in enumerate(walks):
            reached = u < upper[:, k]
            errors[:, k] = walk.error(reached & ~below)
            below = reached
        yield errors


class _ClassWalk:
    """c_emp of one class for many simulated label vectors, its scores sorted once."""

    def __init__(self, scores: np.ndarray, weights: np.ndarray | None) -> None:
        self.order = np.argsort(scores, kind="stable")
        f = np.minimum(scores[self.order], 1.0)
        self.weights = None if weights is None else weights[self.order]
        self.expected = np.cumsum(f if self.weights is None else f * self.weights)
        self.ends = np.flatnonzero(np.append(f[1:] != f[:-1], True))
        self.total = float(f.size if weights is None else weights.sum())

    def error(self, hits: np.ndarray) -> np.ndarray:
        hits = np.take(hits, self.order, axis=1)
        steps = hits if self.weights is None else hits * self.weights
        walk = np.cumsum(steps, axis=1, dtype=np.float64)
        walk -= self.expected
        walk = walk if self.ends.size == self.order.size else walk[:, self.ends]
        return walk_range(walk) / self.total
