"""The ten criteria over any number of rows: moments of what is continuous, counts of what is whole."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calipers.arrays.compiled import columns_of
from calipers.inference import Moments, repetitions
from calipers.inference.state import Result, State
from calipers.inputs import check_p_values
from calipers.inputs.p_value_sets import level_floors, sets_at
from calipers.inputs.rows import Rows, at_label
from calipers.metrics.contributions import criterion_gaps, criterion_rows
from calipers.metrics.criteria import (
    SHARES,
    by_label_from_moments,
    criteria_from_moments,
    difference_from_moments,
)

# Rows that stay in the processor's nearest memory while their columns pass by.
_CHUNK = 1 << 13
# Criteria that are not whole numbers, as the compiled kernel orders them.
_CONTINUOUS = ("S", "U", "F", "OU", "OF", "credibility")
_ORDER = ("S", "N", "U", "F", "M", "E", "OU", "OF", "OM", "OE", "credibility", "empty")


class CriteriaState(State):
    """Moments of the criteria that are sums or maxima of p-values; counts of sizes for the rest.

    Parameters
    ----------
    alpha : float
        Level of the sets.
    confidence : float
        Level of the intervals.
    """

    __slots__ = ("alpha", "confidence", "counts", "moments", "n_labels")

    def __init__(self, alpha: Any, confidence: float) -> None:
        self.alpha, self.confidence = alpha, confidence
        self.moments: dict[str, Moments] = {}
        self.counts: np.ndarray | None = None
        self.n_labels: int | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Labels and p-values."""
        return frozenset({"codes", "p_values", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Add the block's rows."""
        p, codes = block["p_values"], block["codes"]
        self.n_labels = int(p.shape[1])
        if (compiled := block.kernels) is not None and block.weights is None:
            self._absorb_fused(p, codes, compiled)
            return
        sets = np.asarray(sets_at(p, self.alpha))
        if block.weights is not None:
            rows = criterion_rows(p, codes, sets)
            self._add({name: Moments.of(np.asarray(x), block.weights) for name, x in rows.items()})
            return
        self._add({name: Moments.of(x) for name, x in continuous_rows(p, codes).items()})
        small = np.uint8 if p.shape[1] < 256 else np.int64
        size = np.add.reduce(sets.view(np.uint8), axis=1, dtype=small).astype(np.int64)
        cell = 2 * size + at_label(sets, codes)
        self._count(np.bincount(cell, minlength=2 * p.shape[1] + 2))

    def _absorb_fused(self, p: np.ndarray, codes: np.ndarray, compiled: Any) -> None:
        """The same in one pass over the rows."""
        counts, moments = np.zeros(2 * p.shape[1] + 2, dtype=np.int64), np.zeros((len(_CONTINUOUS), 3))
        levels = np.broadcast_to(level_floors(p, self.alpha), p.shape[1:]).copy()
        compiled.add_criteria(columns_of(p), codes, levels, counts, moments)
        found = zip(_CONTINUOUS, moments.tolist(), strict=True)
        self._add({name: Moments(n, mean, max(squares, 0.0)) for name, (n, mean, squares) in found})
        self._count(counts)

    def _count(self, counts: np.ndarray) -> None:
        self.counts = counts if self.counts is None else self.counts + counts

    def _add(self, found: dict[str, Moments]) -> None:
        for name, own in found.items():
            self.moments[name] = self.moments.get(name, Moments()).merge(own)

    def merge(self, other: Self) -> Self:
        """Pool moments and counts."""
        self._add(other.moments)
        self.n_labels = other.n_labels if self.n_labels is None else self.n_labels
        if other.counts is not None:
            self._count(other.counts)
        return self

    def finish(self) -> Result:
        """The table of `efficiency`."""
        total = CriteriaState(self.alpha, self.confidence)
        total._add(self.moments)
        if self.counts is not None:
            total._add(whole_moments(self.counts))
        ordered = {name: total.moments[name] for name in _ORDER}
        return criteria_from_moments(
            ordered, alpha=self.alpha, confidence=self.confidence, n_labels=self.n_labels
        )


def continuous_rows(p: np.ndarray, codes: np.ndarray) -> dict[str, np.ndarray]:
    """What each row adds to S, U, F, OU, OF and credibility, column by column (see `criterion_rows`)."""
    largest, second = two_largest(p)
    own = at_label(p, codes)
    total = np.add.reduce(p, axis=1, dtype=np.float64)
    return {
        "S": total,
        "U": second.astype(np.float64),
        "F": total - largest,
        # Without the true label the largest is the second when the truth was on top.
        "OU": np.where(own == largest, second, largest).astype(np.float64),
        "OF": total - own,
        "credibility": largest.astype(np.float64),
    }


def two_largest(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest and the second largest entry of every row, or 0 where there is one column.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.criteria_states import two_largest
    >>> two_largest(np.array([[0.2, 0.7, 0.4], [0.5, 0.5, 0.1]]))
    (array([0.7, 0.5]), array([0.4, 0.5]))
    """
    columns = p.T
    largest, second = np.empty((2, len(p)), dtype=p.dtype)
    for start in range(0, len(p), _CHUNK):
        part = slice(start, start + _CHUNK)
        first, next_one = columns[0, part].copy(), np.zeros(len(largest[part]), dtype=p.dtype)
        smaller = np.empty_like(first)
        for column in columns[1:, part]:
            np.minimum(first, column, out=smaller)
            np.maximum(next_one, smaller, out=next_one)
            np.maximum(first, column, out=first)
        largest[part], second[part] = first, next_one
    return largest, second


def whole_moments(counts: np.ndarray) -> dict[str, Moments]:
    """Moments of the criteria that depend on the size of the set and on whether the truth is inside only."""
    cell = np.flatnonzero(counts)
    weights = counts[cell].astype(float)
    size, inside = (cell // 2).astype(float), cell % 2
    wrong = size - inside
    rows = {
        "N": size, "M": (size > 1).astype(float), "E": np.maximum(size - 1, 0.0), "OE": wrong,
        "OM": (wrong > 0).astype(float), "empty": (size == 0).astype(float),
    }  # fmt: skip
    return {name: Moments.of(values, weights) for name, values in rows.items()}


@dataclass(eq=False)
class LabelState(State):
    """Criteria over the rows of each observed label."""

    alpha: Any
    confidence: float
    criteria: tuple[str, ...] = ("OF", "OE")
    moments: dict[tuple[str, int], Moments] = field(default_factory=dict)
    names: list[Any] | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Labels and p-values."""
        return frozenset({"codes", "p_values", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Add the rows of every label."""
        p, codes = block["p_values"], block["codes"]
        rows = criterion_rows(p, codes, sets_at(p, self.alpha))
        for k in np.unique(codes).tolist():
            own = codes == k
            weights = None if block.weights is None else block.weights[own]
            for name in self.criteria:
                part = Moments.of(np.asarray(rows[name])[own], weights)
                self.moments[name, k] = self.moments.get((name, k), Moments()).merge(part)
        if self.names is None:
            self.names = list(range(p.shape[1])) if block.classes is None else list(block.classes)

    def merge(self, other: Self) -> Self:
        """Pool the moments."""
        for key, theirs in other.moments.items():
            self.moments[key] = self.moments.get(key, Moments()).merge(theirs)
        self.names = other.names if self.names is None else self.names
        return self

    def finish(self) -> Result:
        """The table by criterion and label."""
        labels = sorted({k for _, k in self.moments})
        ordered = {(name, k): self.moments[name, k] for name in self.criteria for k in labels}
        return by_label_from_moments(
            ordered, names=self.names or [], alpha=self.alpha, confidence=self.confidence
        )


@dataclass(eq=False)
class DifferenceState(State):
    """Two predictors on the same rows: moments of the differences, and rows where only one is 1."""

    alpha: Any
    confidence: float
    moments: dict[str, Moments] = field(default_factory=dict)
    # Rows where the first, or the second, is larger, repeated by weights; None when these are not whole.
    discordant: dict[str, np.ndarray] | None = field(default_factory=dict)
    n_labels: int | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Labels and both tables of p-values."""
        return frozenset({"codes", "p_values", "other_p_values", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Add the differences of the block."""
        p, codes = block["p_values"], block["codes"]
        other = np.asarray(check_p_values(block["other_p_values"], name="other_p_values"))
        first = criterion_rows(p, codes, sets_at(p, self.alpha))
        second = criterion_rows(other, codes, sets_at(other, self.alpha))
        counts = np.ones(block.n, dtype=np.int64) if block.weights is None else repetitions(block.weights)
        self.n_labels = int(p.shape[1])
        for name, gap in criterion_gaps(first, second, p).items():
            own = Moments.of(gap, block.weights)
            self.moments[name] = self.moments.get(name, Moments()).merge(own)
            if name in SHARES and counts is not None and self.discordant is not None:
                pair = np.array([counts[gap > 0].sum(), counts[gap < 0].sum()])
                self.discordant[name] = self.discordant.get(name, np.zeros(2, dtype=np.int64)) + pair
        self.discordant = None if counts is None else self.discordant

    def merge(self, other: Self) -> Self:
        """Pool the differences."""
        for name, theirs in other.moments.items():
            self.moments[name] = self.moments.get(name, Moments()).merge(theirs)
        self.n_labels = other.n_labels if self.n_labels is None else self.n_labels
        if self.discordant is None or other.discordant is None:
            self.discordant = None
        else:
            for name, pair in other.discordant.items():
                self.discordant[name] = self.discordant.get(name, np.zeros(2, dtype=np.int64)) + pair
        return self

    def finish(self) -> Result:
        """The table of differences."""
        pairs = {name: (int(a), int(b)) for name, (a, b) in (self.discordant or {}).items()}
        return difference_from_moments(
            self.moments, pairs, alpha=self.alpha, confidence=self.confidence, n_labels=self.n_labels
        )
