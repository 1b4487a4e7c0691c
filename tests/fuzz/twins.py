"""Slow twins: the same numbers by loops over definitions, for answers to calls whose meaning is plain.

Whole weights are repeated rows, so the twin of a weighted call is that of the repeated rows.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from calipers.results import Curve, Estimate, EstimateTable
from tests.fuzz.call_twins import CALLS
from tests.fuzz.metric_twins import METRICS, REPEATED_ONLY, Reading, Twin
from tests.fuzz.targets import Target

# Mutations after which an argument still says row by row what it means.
PLAIN = {
    "list", "tuple", "float32", "object", "read only", "strided", "fortran", "byte order", "shuffled", "constant",
    "zeros", "ones", "negative", "shifted", "percent", "minus zero", "distinct", "one row", "two rows",
}  # fmt: skip
# Arguments that change intervals and tests, not the value.
BESIDE = {"confidence", "n_calibration", "random_state", "n_draws", "cluster"}
TWINS: dict[str, Twin] = METRICS | CALLS
# Arrays whose rows are not those of the others.
_ALONE = {"test_scores", "new_weights", "levels", "alpha"}


def tricky_rows(target: Target, seed: int) -> dict[str, Any]:
    """Rows that work, few or many, tied, with classes missing, and with weights of every kind."""
    rng = np.random.default_rng([seed, 3])
    given = target.make(np.random.default_rng([seed, 0]))
    arrays = [name for name, value in given.items() if isinstance(value, np.ndarray) and name not in _ALONE]
    n, pool = int(rng.choice([1, 2, 3, 4, 7, 24, 60])), int(rng.choice([1, 2, 5, 24, 24]))
    together, rows = rng.random() < 0.5, rng.integers(0, pool, n)
    for name in arrays:
        given[name] = given[name][rows if together else rng.integers(0, pool, n)]
    if arrays and "sample_weight" in inspect.signature(target.call).parameters:
        kinds = [None, rng.integers(1, 4, n), rng.integers(0, 3, n), rng.random(n), np.full(n, 0.5)]
        given["sample_weight"] = kinds[int(rng.integers(len(kinds)))]
    return given


def is_plain(target: Target, plan: tuple[tuple[str, str], ...]) -> bool:
    """Whether every mutated argument still says row by row what it means."""
    rows = {
        name for name, value in target.make(np.random.default_rng(0)).items() if isinstance(value, np.ndarray)
    }
    return all(
        name in BESIDE or (name in rows | {"sample_weight"} and mutation in PLAIN) for name, mutation in plan
    )


def twin_value(target: Target, given: Mapping[str, Any], plan: tuple[tuple[str, str], ...] = ()) -> Reading:
    """What the slow twin of a call says; None where there is none, or an argument is not plain."""
    if target.name not in TWINS or not is_plain(target, plan):
        return None
    g = {name: _array(value) for name, value in given.items() if value is not None and name not in BESIDE}
    weights = g.pop("sample_weight", None)
    lengths = {len(v) for name, v in g.items() if isinstance(v, np.ndarray) and name not in _ALONE}
    if len(lengths) > 1 or (weights is not None and np.shape(weights) != (*lengths,)):
        return None  # the call should have been refused; what it says is no matter of rows
    rows = np.arange(lengths.pop() if lengths else 1)
    w = np.ones(len(rows)) if weights is None else np.asarray(weights, dtype=float)
    if w.sum() <= 0 or w.min() < 0:
        return None
    if np.all(w == np.floor(w)) and w.max() < 1000:
        rows, w = np.repeat(rows, w.astype(int)), np.ones(int(w.sum()))
    elif target.name in REPEATED_ONLY:
        return None
    else:
        rows, w = rows[w > 0], w[w > 0]
    g = {name: v[rows] if isinstance(v, np.ndarray) and name not in _ALONE else v for name, v in g.items()}
    try:
        return TWINS[target.name](g, w)
    except (ArithmeticError, IndexError, KeyError, TypeError, ValueError):
        if plan:  # a mutated argument for which the definition says nothing
            return None
        raise


def _array(value: Any) -> Any:
    """Rows as a plain array; options as they are."""
    if not isinstance(value, (np.ndarray, list, tuple)):
        return value
    array = np.asarray(value)
    return np.array(array.tolist()) if array.dtype.kind == "O" else array


def readings(found: Any) -> Reading:
    """The numbers in an answer."""
    if isinstance(found, Estimate):
        return math.nan if found.value is None else float(found.value)
    if isinstance(found, EstimateTable):
        return {name: math.nan if e.value is None else float(e.value) for name, e in found.items()}
    if isinstance(found, Curve):
        return [float(v) for v in found.y]
    array = np.asarray(found, dtype=float)
    return float(array) if array.ndim == 0 else [float(v) for v in array.reshape(-1)]


def differs(found: Any, twin: Reading, *, digits: float = 1e-6) -> str:
    """Where an answer is another than that of its twin, beyond rounding; empty where it is not."""
    if twin is None:
        return ""
    ours = readings(found)
    if isinstance(twin, dict):
        pairs = {name: (ours.get(name, math.nan), value) for name, value in twin.items()}  # type: ignore[union-attr]
    elif isinstance(twin, list):
        if len(ours) != len(twin):  # type: ignore[arg-type]
            return f"{len(ours)} numbers, its slow twin gives {len(twin)}"  # type: ignore[arg-type]
        pairs = {str(i): pair for i, pair in enumerate(zip(ours, twin, strict=True))}  # type: ignore[arg-type]
    else:
        pairs = {"value": (ours, twin)}  # type: ignore[dict-item]
    for name, (mine, its) in pairs.items():
        if not math.isnan(its) and not math.isclose(mine, its, rel_tol=digits, abs_tol=digits / 1000):
            return f"{name}: {mine!r}, its slow twin gives {its!r}"
    return ""
