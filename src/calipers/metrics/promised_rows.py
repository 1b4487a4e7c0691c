"""Rows with what was promised for each: covered or not, promised coverage, weights, clusters."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, short_repr
from calipers.exceptions import InputError
from calipers.inputs import (
    Weights,
    check_alpha,
    check_count,
    check_covered,
    check_groups,
    check_row_alpha,
    check_same_length,
    exact_level,
)

ONE_THRESHOLD = (
    "n_calibration must be one number here: the calibration rows behind the one threshold of all rows."
)


@dataclass(frozen=True, eq=False)
class PromisedRows:
    """Checked rows of a promise; rows of weight 0 are not there.

    Parameters
    ----------
    covered : bool array of shape (n,)
        Whether each promise came true.
    alpha : float, Fraction, Decimal or None
        The level of all rows; None where rows differ, or without a promise.
    promised : float array of shape (n,) or None
        The promised coverage of each row where rows differ.
    weights : Weights or None
        None when every row counts once.
    clusters : int array of shape (n,) or None
        Code of the cluster of each row; rows of one cluster depend on each other.
    """

    covered: np.ndarray
    alpha: Any
    promised: np.ndarray | None
    weights: Weights | None
    clusters: np.ndarray | None

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.covered)

    def take(self, rows: np.ndarray) -> PromisedRows:
        """Some of the rows; what their weights mean was decided by all."""
        return PromisedRows(
            self.covered[rows],
            self.alpha,
            None if self.promised is None else self.promised[rows],
            None if self.weights is None else self.weights.take(rows),
            None if self.clusters is None else self.clusters[rows],
        )

    @property
    def has_promise(self) -> bool:
        """Whether anything was promised."""
        return self.alpha is not None or self.promised is not None

    @property
    def is_plain(self) -> bool:
        """Whether all rows were promised the same and are independent."""
        return self.promised is None and self.clusters is None

    @property
    def is_whole(self) -> bool:
        """Whether rows are counted: no weights, or repetitions."""
        return self.weights is None or self.weights.whole

    @property
    def count(self) -> int:
        """Rows: repeated ones as often as they count, others once."""
        return round(float(self.mass.sum())) if self.is_whole else len(self)

    @cached_property
    def target(self) -> np.ndarray:
        """The promised coverage of every row."""
        if self.promised is not None:
            return self.promised
        return np.full(len(self), float(1 - exact_level(self.alpha)))

    @cached_property
    def mass(self) -> np.ndarray:
        """The weight of every row."""
        return np.ones(len(self)) if self.weights is None else self.weights.mass

    @cached_property
    def noise(self) -> np.ndarray:
        """What every row adds to a variance, in units of that of one row."""
        return np.ones(len(self)) if self.weights is None else self.weights.noise

    @property
    def n_impossible(self) -> float:
        """Rows whose outcome was promised not to happen."""
        if self.promised is None:
            return 0.0
        broken = np.where(self.covered, self.promised == 0.0, self.promised == 1.0)
        return float(self.mass[broken].sum())


def check_promised_rows(
    covered: Any,
    *,
    alpha: Any,
    sample_weight: Any = None,
    cluster: Any = None,
    **columns: Any,
) -> tuple[PromisedRows, dict[str, np.ndarray]]:
    """The rows, and further columns of the same rows, which must have their length."""
    z = as_numpy(check_covered(covered))
    n = check_same_length(covered=z, **columns)
    level, promised = check_promise(alpha, n)
    clusters = None if cluster is None else check_groups(cluster, n, name="cluster")[1]
    weights = Weights.check(sample_weight, n)
    rows = PromisedRows(z, level, promised, weights, clusters)
    if weights is None or weights.mass.all():
        return rows, columns
    there = np.flatnonzero(weights.mass)
    return rows.take(there), {name: column[there] for name, column in columns.items()}


def check_promise(alpha: Any, n: int) -> tuple[Any, np.ndarray | None]:
    """One level for all rows and None, or None and the promised coverage of every row.

    A level per row that is the same in all of them, inside (0, 1), is one level.
    """
    if alpha is None:
        return None, None
    if np.ndim(alpha) == 0:
        check_alpha(alpha)
        return alpha, None
    levels = check_row_alpha(alpha, n)
    if 0.0 < levels[0] < 1.0 and (levels == levels[0]).all():
        return float(levels[0]), None
    return None, 1.0 - levels


def check_one_threshold(n_calibration: Any) -> int | None:
    """The calibration rows behind the one threshold of all rows."""
    if n_calibration is not None and np.ndim(n_calibration) != 0:
        raise InputError(ONE_THRESHOLD)
    return None if n_calibration is None else check_count(n_calibration, name="n_calibration")


def check_thresholds(n_calibration: Any, n_strata: int, *, name: str) -> int | tuple[int, ...] | None:
    """Calibration rows behind one threshold (a number), or behind that of each stratum (a sequence)."""
    if n_calibration is None or np.ndim(n_calibration) == 0:
        return check_one_threshold(n_calibration)
    given = as_numpy(n_calibration, name="n_calibration").ravel()
    if given.size != n_strata:
        raise InputError(
            f"n_calibration must be one number (one threshold for all rows) or one per stratum "
            f"({name}: {n_strata}), got {given.size}."
        )
    return tuple(check_count(c, name="n_calibration") for c in given.tolist())
