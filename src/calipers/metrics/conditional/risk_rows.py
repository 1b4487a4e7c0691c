"""The checked rows behind an excess risk: outcomes, targets, weights, clusters, and what is asked of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inference import repetitions
from calipers.inputs import (
    Features,
    check_confidence,
    check_count,
    check_covered,
    check_features,
    check_groups,
    check_row_alpha,
    check_same_length,
    check_weights,
)

NULLS = ("target", "flat")


@dataclass(frozen=True, slots=True, eq=False)
class RowWeights:
    """Weights of rows up to a common factor.

    Parameters
    ----------
    values : array or None
        Weights with mean 1 over the rows that count; None when every row counts the same.
    repeats : array of int or None
        Whole numbers in the same proportion, without common divisor; None when the weights are not whole.
    counted : array of bool
        Rows of positive weight.
    mass : array
        The weights themselves when all are whole numbers, else 1 for every row that counts.
    """

    values: np.ndarray | None
    repeats: np.ndarray | None
    counted: np.ndarray
    mass: np.ndarray

    @property
    def equal(self) -> bool:
        """Whether the rows that count all have the same weight."""
        return self.values is None or bool((self.values[self.counted] == 1.0).all())

    def of(self, rows: np.ndarray) -> np.ndarray:
        """Weights of some rows."""
        return np.ones(len(rows)) if self.values is None else self.values[rows]


def row_weights(sample_weight: Any, n: int) -> RowWeights:
    """Weights as given by a user; equal ones are none, and a common factor changes nothing."""
    w = check_weights(sample_weight, n)
    if w is None:
        return RowWeights(None, None, np.ones(n, dtype=bool), np.ones(n))
    counted, whole = w > 0, repetitions(w)
    mass = w if whole is not None else counted.astype(float)
    if (w[counted] == w[counted][0]).all():
        values = None if counted.all() else counted.astype(float)
        return RowWeights(values, None if values is None else counted.astype(np.int64), counted, mass)
    repeats = None if whole is None else whole // np.gcd.reduce(whole)
    return RowWeights(w / w[counted].mean(), repeats, counted, mass)


@dataclass(frozen=True, slots=True, eq=False)
class RiskRows:
    """Checked rows and the options that concern them."""

    features: Features
    covered: np.ndarray
    target: np.ndarray
    weights: RowWeights
    clusters: np.ndarray | None
    n_calibration: int | None
    null: str | None
    confidence: float

    def __len__(self) -> int:
        return len(self.covered)

    @property
    def one_target(self) -> bool:
        """Whether all rows were promised the same coverage."""
        return bool((self.target == self.target[0]).all())

    def mean(self, values: np.ndarray) -> float:
        """Weighted mean of a value per row, over the rows that count and have one (NaN: none)."""
        rows = np.flatnonzero(self.weights.counted & ~np.isnan(values))
        return float(np.average(values[rows], weights=self.weights.of(rows)))


def check_risk_rows(
    X: Any,
    covered: Any,
    *,
    alpha: Any,
    null: str | None,
    n_calibration: Any,
    cluster: Any,
    sample_weight: Any,
    confidence: float,
) -> RiskRows:
    """The arguments of `ert` that concern rows, checked."""
    features = check_features(X)
    z = as_numpy(check_covered(covered))
    n = check_same_length(X=X, covered=covered)
    if null is not None and null not in NULLS:
        raise InputError(f'null must be "target", "flat" or None, got {null!r}.')
    return RiskRows(
        features=features,
        covered=z,
        target=1.0 - check_row_alpha(alpha, n),
        weights=row_weights(sample_weight, n),
        clusters=None if cluster is None else check_groups(cluster, n, name="cluster")[1],
        n_calibration=None if n_calibration is None else check_count(n_calibration, name="n_calibration"),
        null=null,
        confidence=check_confidence(confidence),
    )
