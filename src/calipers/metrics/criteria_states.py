"""The ten criteria over any number of rows: moments of what each row adds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from calipers.arrays import Array, as_numpy, namespace
from calipers.arrays.compiled import columns_of
from calipers.arrays.device_rows import read_rows
from calipers.inference import Moments
from calipers.inference.state import State
from calipers.inputs import Weights, check_p_values
from calipers.inputs.option_checks import check_increasing
from calipers.inputs.p_value_sets import level_floors, sets_at
from calipers.inputs.rows import Rows
from calipers.metrics.contributions import (
    CRITERIA_ORDER,
    criterion_gaps,
    criterion_rows,
    p_value_rows,
    size_rows,
    sizes,
)
from calipers.metrics.criteria_estimates import (
    SHARES,
    by_label_from_moments,
    criteria_from_moments,
    difference_from_moments,
)
from calipers.metrics.states.moments import MomentTable
from calipers.results import EstimateTable

# Criteria that are not whole numbers, as the compiled kernel orders them.
_CONTINUOUS = ("S", "U", "F", "OU", "OF", "credibility")
_ORDER = (*CRITERIA_ORDER, "S_phi")
_FEW_ROWS, _BLOCK = 1 << 11, 1 << 15
GivenWeights = np.ndarray | Weights | None


@dataclass(eq=False)
class CriteriaState(State):
    """Moments of the criteria.

    Parameters
    ----------
    alpha : float, or one per label
        Level of the sets.
    confidence : float
        Level of the intervals.
    phi : callable or None
        A strictly increasing function on [0, 1], whose sum over the p-values is averaged too.
    """

    alpha: Any
    confidence: float
    phi: Callable[[Any], Any] | None = None
    moments: MomentTable = field(default_factory=MomentTable)
    n_labels: int = 0

    @property
    def needs(self) -> frozenset[str]:
        """Labels and p-values."""
        return frozenset({"codes", "p_values", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Add the block's rows."""
        self.add(block["p_values"], block["codes"], block.weights, block.kernels)

    def add(self, p: Array, codes: Array, weights: GivenWeights, compiled: Any = None) -> None:
        """Add checked rows, of any array library."""
        self.n_labels = int(p.shape[1])
        if compiled is not None and weights is None and self.phi is None:
            self.moments.add(compiled_moments(p, codes, self.alpha, compiled))
            return
        if weights is None and self.phi is None and self.add_read(p, codes):
            return
        size, inside = sizes(sets_at(p, self.alpha), codes)
        rows = p_value_rows(p, codes)
        if self.phi is not None:
            rows["S_phi"] = transformed_sums(p, self.phi)
        if weights is None and isinstance(p, np.ndarray):
            # Sizes are few: their counts say all.
            self.moments.add(moments_of_sizes(np.bincount(2 * size.astype(np.int64) + inside)))
        else:
            rows |= size_rows(size, inside)
        if weights is None and (not isinstance(p, np.ndarray) or len(p) <= _FEW_ROWS):
            # Only a few numbers leave the device; of few rows, all columns together cost as much as one.
            each = Moments.of_each(namespace(p).stack(list(rows.values())))
            self.moments.add(dict(zip(rows, each, strict=True)))
            return
        self.moments.add({name: Moments.of(as_numpy(x), weights) for name, x in rows.items()})

    def add_read(self, p: Array, codes: Array, *, unchecked: bool = False, needs_zero: bool = False) -> bool:
        """Add rows that count once from one read on their device; False where there is no kernel for that.

        Unchecked rows are not added, either, when an entry is no p-value, a label no column, or no label 0.
        """
        if isinstance(p, np.ndarray) or (read := read_rows(p, codes, level_floors(p, self.alpha))) is None:
            return False
        *each, unfit, zero = Moments.of_each(read)
        if unchecked and (unfit.mean > 0 or (needs_zero and zero.mean == 0)):
            return False
        self.n_labels = int(p.shape[1])
        self.moments.add(dict(zip(CRITERIA_ORDER, each, strict=True)))
        return True

    def merge(self, other: Self) -> Self:
        """Pool the moments."""
        self.moments.add(other.moments)
        self.n_labels = self.n_labels or other.n_labels
        return self

    def finish(self) -> EstimateTable:
        """The table of `efficiency`."""
        ordered = {name: self.moments[name] for name in _ORDER if name in self.moments}
        ranges = {} if self.phi is None else {"S_phi": transformed_range(self.phi, self.n_labels)}
        return criteria_from_moments(
            ordered, n_labels=self.n_labels, alpha=self.alpha, confidence=self.confidence, ranges=ranges
        )


def compiled_moments(p: np.ndarray, codes: np.ndarray, alpha: Any, compiled: Any) -> dict[str, Moments]:
    """The moments of rows that count once, in one pass over them."""
    counts, moments = np.zeros(2 * p.shape[1] + 2, dtype=np.int64), np.zeros((len(_CONTINUOUS), 3))
    levels = np.broadcast_to(level_floors(p, alpha), p.shape[1:]).copy()
    compiled.add_criteria(columns_of(p), codes, levels, counts, moments)
    found = zip(_CONTINUOUS, moments.tolist(), strict=True)
    continuous = {name: Moments(n, mean, max(squares, 0.0)) for name, (n, mean, squares) in found}
    return continuous | moments_of_sizes(counts)


def moments_of_sizes(counts: np.ndarray) -> dict[str, Moments]:
    """Moments of the criteria that depend on the size of the set and on whether the truth is inside only.

    ``counts`` has two cells per size: rows whose truth is outside, and inside.
    """
    cell = np.flatnonzero(counts)
    rows = size_rows(cell // 2, cell % 2)
    each = Moments.of_counts(np.stack(list(rows.values())), counts[cell].astype(float))
    return dict(zip(rows, each, strict=True))


def transformed_sums(p: Array, phi: Callable[[Any], Any]) -> Array:
    """The sum of transformed p-values of every row."""
    transformed_range(phi, 1)
    xp = namespace(p)
    return xp.sum(phi(xp.astype(p, xp.float64)), axis=1)


def transformed_range(phi: Callable[[Any], Any], n_labels: int) -> tuple[float, float]:
    """What the sum of transformed p-values of one row can be; phi must increase strictly."""
    low, high = check_increasing(phi, name="phi")
    return n_labels * low, n_labels * high


@dataclass(eq=False)
class LabelState(State):
    """Criteria over the rows of each observed label."""

    alpha: Any
    confidence: float
    criteria: tuple[str, ...] = ("OF", "OE")
    moments: MomentTable = field(default_factory=MomentTable)
    names: Sequence[Any] | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Labels and p-values."""
        return frozenset({"codes", "p_values", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Add the rows of every label."""
        self.add(block["p_values"], block["codes"], block.weights, names=block.classes)

    def add(self, p: Array, codes: Array, weights: GivenWeights, names: Sequence[Any] | None) -> None:
        """Add checked rows; the names of the columns are those of the first block."""
        rows = {name: as_numpy(x) for name, x in criterion_rows(p, codes, sets_at(p, self.alpha)).items()}
        host = as_numpy(codes)
        given = Weights.of(weights) if isinstance(weights, np.ndarray) else weights
        for k in np.unique(host).tolist():
            own = np.flatnonzero(host == k)
            part = None if given is None else given.take(own)
            self.moments.add({(name, k): Moments.of(rows[name][own], part) for name in self.criteria})
        if self.names is None:
            self.names = list(range(int(p.shape[1]))) if names is None else as_numpy(names).tolist()

    def merge(self, other: Self) -> Self:
        """Pool the moments."""
        self.moments.add(other.moments)
        self.names = other.names if self.names is None else self.names
        return self

    def finish(self) -> EstimateTable:
        """The table by criterion and label."""
        # The weights of all rows say what those of one label mean.
        whole = all(m.whole for m in self.moments.values())
        labels = sorted({k for (_, k), m in self.moments.items() if m.n > 0})
        ordered = {(c, k): replace(self.moments[c, k], whole=whole) for c in self.criteria for k in labels}
        return by_label_from_moments(
            ordered, names=self.names or [], alpha=self.alpha, confidence=self.confidence
        )


@dataclass(eq=False)
class DifferenceState(State):
    """Two predictors on the same rows: moments of the differences, and rows where only one is 1."""

    alpha: Any
    confidence: float
    moments: MomentTable = field(default_factory=MomentTable)
    # Weight of the rows where the first, or the second, is larger.
    discordant: dict[str, np.ndarray] = field(default_factory=dict)
    n_labels: int | None = None

    @property
    def needs(self) -> frozenset[str]:
        """Labels and both tables of p-values."""
        return frozenset({"codes", "p_values", "other_p_values", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Add the differences of the block."""
        other = np.asarray(check_p_values(block["other_p_values"], name="other_p_values"))
        self.add(block["p_values"], other, block["codes"], block.weights)

    def add(self, p: Array, other: Array, codes: Array, weights: GivenWeights) -> None:
        """Add checked rows; many on the host block by block, whose columns stay in the cache."""
        n = int(p.shape[0])
        given = Weights.of(weights) if isinstance(weights, np.ndarray) else weights
        step = _BLOCK if isinstance(p, np.ndarray) else max(n, 1)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            part = given if given is None or step >= n else given.take(rows)
            self._add_block(p[rows, ...], other[rows, ...], codes[rows], part)

    def _add_block(self, p: Array, other: Array, codes: Array, weights: Weights | None) -> None:
        first = criterion_rows(p, codes, sets_at(p, self.alpha))
        second = criterion_rows(other, codes, sets_at(other, self.alpha))
        mass = None if weights is None else weights.mass
        self.n_labels = int(p.shape[1])
        for name, gap in criterion_gaps(first, second, p).items():
            self.moments.add({name: Moments.of(gap, weights)})
            if name in SHARES:
                sides = (gap > 0, gap < 0)
                self._count(
                    name, np.array([side.sum() if mass is None else mass[side].sum() for side in sides])
                )

    def _count(self, name: str, pair: np.ndarray) -> None:
        self.discordant[name] = self.discordant.get(name, np.zeros(2)) + pair

    def merge(self, other: Self) -> Self:
        """Pool the differences."""
        self.moments.add(other.moments)
        self.n_labels = other.n_labels if self.n_labels is None else self.n_labels
        for name, pair in other.discordant.items():
            self._count(name, pair)
        return self

    def finish(self) -> EstimateTable:
        """The table of differences; rows are counted where weights are repetitions."""
        whole = all(m.whole for m in self.moments.values())
        pairs = {name: (int(a), int(b)) for name, (a, b) in self.discordant.items()} if whole else {}
        return difference_from_moments(
            self.moments, pairs, alpha=self.alpha, confidence=self.confidence, n_labels=self.n_labels
        )
