"""The error of every class for itself, and of all classes together under one null."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, generator
from calipers.inference import SimulatedLaw
from calipers.inference.null_law import NULL_LEVEL
from calipers.metrics.reliability.bucket_walk import UNTESTED, walk_of_rows
from calipers.metrics.reliability.calibration_estimate import (
    Walk,
    bound_fields,
    in_words,
    interval_details,
    lower_end,
    missing_reasons,
)
from calipers.metrics.reliability.calibration_states import CalibrationOptions
from calipers.metrics.reliability.calibration_test import (
    MAX_COINS,
    asymptotic_test,
    exact_test,
)
from calipers.metrics.reliability.multiclass import ClassRows
from calipers.results import Estimate

_BONFERRONI = "Bonferroni over classes of the range law"
# Fewest draws worth making before the classes are tested one by one.
_MIN_DRAWS = 99
# Draws per class, at most, that place a p-value far below one over the number of classes.
_DRAWS_PER_CLASS, _MOST_DRAWS = 20, 50_000
_BATCH = 1 << 20


def classes_together(rows: ClassRows, multiclass: str, options: CalibrationOptions) -> Estimate:
    """Mean ("classwise") or largest ("max") error over classes of checked rows."""
    binary = [rows.of_class(k) for k in range(rows.n_classes)]
    drawn = n_label_draws(binary[0].total, rows.n_classes, options.n_draws) > 0
    each = replace(UNTESTED, confidence=options.confidence) if drawn else options
    walks = [walk_of_rows(one, each, n_tests=rows.n_classes) for one in binary]
    return error_of_classes(walks, multiclass, options, rows.names, rows if drawn else None)


def error_of_classes(
    walks: Sequence[Walk],
    multiclass: str,
    options: CalibrationOptions,
    names: Sequence[Any],
    rows: ClassRows | None,
) -> Estimate:
    """The estimate over classes from what was found for each, and the rows where labels can be drawn."""
    combine = np.max if multiclass == "max" else np.mean
    n_models = options.n_models * len(walks)
    bounds = [bound_fields(walk, confidence=options.confidence, n_models=n_models) for walk in walks]
    values = np.array([walk.found.value for walk in walks])
    worst = int(np.argmax(values))
    null, test = _null(walks, combine, options, rows)
    fields = ("high", "asymptotic_high", "low_bound")
    together = {key: float(combine([b[key] for b in bounds])) for key in fields}
    kind = "guaranteed (empirical Bernstein)" if bounds[worst]["guaranteed"] else "asymptotic"
    return Estimate(
        name="calibration_error",
        value=float(combine(values)),
        std_error=walks[worst].std_error
        if multiclass == "max"
        else float(np.mean([walk.std_error for walk in walks])),
        low=lower_end(null.get("p_value"), together["low_bound"], confidence=options.confidence, n_models=1),
        high=together.pop("high"),
        confidence=options.confidence,
        n=walks[worst].moments.rows,
        **null,
        method=f"{multiclass} sup-interval error over {len(walks)} classes, {kind} upper bound at "
        f"confidence for all classes at once" + (f", {test}" if test else ""),
        reason=missing_reasons(walks[worst], bounds[worst]),
        details=together
        | _worst_details(names[worst], walks[worst])
        | {
            "multiclass": multiclass,
            "one_sided_ends": True,
            "guaranteed": bounds[worst]["guaranteed"],
            "per_class": dict(zip(names, values.tolist(), strict=True)),
        },
    )


def _worst_details(name: Any, walk: Walk) -> dict[str, Any]:
    """Which class is worst, where, and how often it was stated and happened there."""
    sentence = f"class {name!r}: {in_words(walk.found, walk.moments, walk.highest)}"
    return {"class": name, "sentence": sentence, **interval_details(walk)}


def _null(
    walks: Sequence[Walk], combine: Any, options: CalibrationOptions, rows: ClassRows | None
) -> tuple[dict[str, Any], str]:
    """Fields of the test, and what it is called; none with importance weights."""
    if not walks[0].moments.whole:
        return {}, ""
    rng = generator(options.random_state)
    draws = n_label_draws(walks[0].moments.total, len(walks), options.n_draws)
    if rows is None or not draws:
        return bonferroni(walks, options.n_draws, rng), _BONFERRONI
    per_class = np.concatenate(list(simulated_errors(written_out(rows), draws, rng)))
    observed = float(combine([walk.found.value for walk in walks]))
    fields = SimulatedLaw(combine(per_class, axis=1)).estimate_fields(observed, level=NULL_LEVEL)
    return fields, f"exact Monte Carlo of labels by row, {draws} draws"


def n_label_draws(total: float, n_classes: int, n_draws: int) -> int:
    """How often the labels of so many rows can be drawn; 0 when not even 99 times."""
    draws = min(n_draws, int(MAX_COINS // (total * n_classes)))
    return draws if draws >= min(_MIN_DRAWS, n_draws) else 0


def bonferroni(walks: Sequence[Walk], n_draws: int, rng: np.random.Generator) -> dict[str, Any]:
    """Fields of the test by the smallest of the classes' p-values, times their number.

    A valid test of the same null. A class whose asymptotic p-value could decide is tested by draws where its
    surprises are few, or its scores.
    """
    n = len(walks)
    tests = [asymptotic_test(w.found.value, w.moments.variance, w.moments.total) for w in walks]
    p_values = [test["p_value"] for test in tests]
    draws = max(n_draws, min(_DRAWS_PER_CLASS * n, _MOST_DRAWS))
    for k, walk in enumerate(walks):
        if walk.levels is not None and n * p_values[k] < 1:
            p_values[k] = exact_test(walk.levels, n_draws=draws, generator=rng)["p_value"]
    keys = ("alternative", "null_low", "null_level")
    return {key: tests[0][key] for key in keys} | {"p_value": min(1.0, n * min(p_values)), "null_high": None}


def written_out(rows: ClassRows) -> ClassRows:
    """Rows on the host, repeated by their weights, in an order that the given order cannot change."""
    P, codes = as_numpy(rows.probabilities).astype(np.float64), as_numpy(rows.codes)
    if rows.weights is not None:
        times = as_numpy(rows.weights).astype(np.int64)
        P, codes = np.repeat(P, times, axis=0), np.repeat(codes, times)
    order = np.lexsort(P.T)
    return ClassRows(codes[order], P[order], rows.names)


def simulated_errors(rows: ClassRows, n_draws: int, generator: np.random.Generator) -> Iterator[np.ndarray]:
    """Batches (b, K) of the errors of all classes when every row's label is drawn from its probabilities."""
    P, n = rows.probabilities, rows.probabilities.shape[0]
    upper = np.cumsum(P, axis=1)
    upper /= upper[:, -1:]
    walks = [_ClassWalk(P[:, k]) for k in range(rows.n_classes)]
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

    def __init__(self, scores: np.ndarray) -> None:
        self.order = np.argsort(scores, kind="stable")
        f = np.minimum(scores[self.order], 1.0)
        self.expected = np.cumsum(f)
        self.ends = np.flatnonzero(np.append(f[1:] != f[:-1], True))

    def error(self, hits: np.ndarray) -> np.ndarray:
        walk = np.cumsum(np.take(hits, self.order, axis=1), axis=1, dtype=np.float64)
        walk -= self.expected
        walk = walk if self.ends.size == self.order.size else walk[:, self.ends]
        size = self.order.size
        return np.asarray((np.maximum(walk.max(axis=1), 0) - np.minimum(walk.min(axis=1), 0)) / size)
