"""Slow twins: the same numbers by loops over plain lists, for answers to calls whose meaning is plain."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

# Mutations after which an argument still says row by row what it means.
PLAIN = {
    "list", "tuple", "float32", "object", "read only", "strided", "fortran", "byte order", "shuffled", "constant",
    "zeros", "ones", "negative", "shifted", "huge", "tiny", "percent", "minus zero", "distinct", "one row", "two rows",
}  # fmt: skip
# Arguments that change intervals and tests, not the value.
BESIDE = {"confidence", "n_calibration", "random_state", "n_draws", "cluster"}


def _mean(values: list[float], weights: list[float]) -> float:
    return math.fsum(w * v for w, v in zip(weights, values, strict=True)) / math.fsum(weights)


def _coverage(given: Mapping[str, Any], weights: list[float]) -> float:
    ends = _rows(given["prediction"])
    return _mean(
        [float(low <= y <= high) for y, (low, high) in zip(_rows(given["y_true"]), ends, strict=True)],
        weights,
    )


def _coverage_gap(given: Mapping[str, Any], weights: list[float]) -> float:
    covered, groups = _rows(given["covered"]), _rows(given["groups"])
    gaps = []
    for label in set(groups):
        rows = [i for i, group in enumerate(groups) if group == label]
        share = _mean([float(covered[i]) for i in rows], [weights[i] for i in rows])
        gaps.append(abs(share - (1.0 - float(given["alpha"]))))
    return math.fsum(gaps) / len(gaps)


def _deficit(given: Mapping[str, Any], weights: list[float], sign: float = 1.0) -> float:
    pairs = zip(_rows(given["ranks"]), _rows(given["size"]), strict=True)
    return _mean([max(0.0, sign * (rank - size)) for rank, size in pairs], weights)


def _average_p_value(given: Mapping[str, Any], weights: list[float]) -> float:
    return _mean(_rows(given["p_values"]), weights)


TWINS: dict[str, Callable[[Mapping[str, Any], list[float]], float]] = {
    "coverage": _coverage,
    "coverage_gap": _coverage_gap,
    "deficit": _deficit,
    "excess": lambda given, weights: _deficit(given, weights, -1.0),
    "average_p_value": _average_p_value,
}
_DATA = {"y_true", "prediction", "covered", "groups", "alpha", "ranks", "size", "p_values", "sample_weight"}


def _rows(value: Any) -> list[Any]:
    found: list[Any] = np.asarray(value).tolist()
    return found


def twin_value(name: str, given: Mapping[str, Any], plan: tuple[tuple[str, str], ...]) -> float | None:
    """What the slow twin of a call says; None where there is none, or an argument is not plain."""
    for argument, mutation in plan:
        if argument not in BESIDE and (argument not in _DATA or mutation not in PLAIN):
            return None
    if name not in TWINS or (given.get("sample_weight") is None and "sample_weight" in dict(plan)):
        return None
    n = len(next(value for key, value in given.items() if key in _DATA and np.ndim(value)))
    weights = [1.0] * n if given.get("sample_weight") is None else _rows(given["sample_weight"])
    return TWINS[name](given, weights) if min(weights) > 0 else None


def differs(value: float | None, twin: float | None) -> bool:
    """Whether an answer is another than that of its twin, beyond rounding of single precision."""
    return (
        twin is not None and value is not None and not math.isclose(value, twin, rel_tol=1e-6, abs_tol=1e-9)
    )
