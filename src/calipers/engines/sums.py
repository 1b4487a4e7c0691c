"""Metrics that are sums over rows, cut by label, paired, or put into bins of the score."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calipers.arrays import generator
from calipers.engines.block import Block
from calipers.engines.scored import Rows, binary_rows, joined
from calipers.engines.state import Result, State
from calipers.inference import Moments, repetitions
from calipers.inputs import check_count, check_p_values
from calipers.metrics import expected_calibration_error, smooth_calibration_error
from calipers.metrics.contributions import criterion_gaps, criterion_rows, sets_at
from calipers.metrics.criteria import SHARES, by_label_from_moments, difference_from_moments
from calipers.metrics.reliability.binned import CELLS, smooth_error, with_null
from calipers.metrics.reliability.calibration_test import N_DRAWS

# Rows kept as they are, below which the metric itself is asked.
_SMALL = 100_000


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

    def absorb(self, block: Block) -> None:
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

    def absorb(self, block: Block) -> None:
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


@dataclass(eq=False)
class BinState(State):
    """Sums over bins of the score: the binned error, or the smoothed one on its cells.

    Parameters
    ----------
    smooth : bool
        Whether residuals are smoothed over fine cells, or compared in ``n_bins`` bins of equal width.
    """

    smooth: bool
    n_bins: int = 15
    n_draws: int | None = None
    random_state: Any = None
    # Per bin: weight, stated, happened, variance under calibration.
    sums: np.ndarray = field(init=False)
    kept: list[Rows] | None = field(default_factory=list)
    n_rows: int = 0

    def __post_init__(self) -> None:
        bins = CELLS if self.smooth else check_count(self.n_bins, name="n_bins")
        self.sums = np.zeros((4, bins))

    @property
    def needs(self) -> frozenset[str]:
        """Probabilities and outcomes."""
        return frozenset({"probabilities", "codes", "sample_weight"})

    def absorb(self, block: Block) -> None:
        """Add the block to its bins; keep the rows as long as there are few."""
        rows = f, y, w = binary_rows(block)
        mass = np.ones(f.size) if w is None else w
        bins = self.sums.shape[1]
        if self.smooth:
            index = np.minimum((f * bins).astype(np.int64), bins - 1)
        else:
            # An edge belongs to the bin below it.
            index = np.searchsorted(np.arange(1, bins) / bins, f, side="left")
        for k, column in enumerate((mass, mass * f, mass * y, mass * mass * f * (1 - f))):
            self.sums[k] += np.bincount(index, weights=column, minlength=bins)
        self.n_rows += f.size
        self._keep([rows])

    def _keep(self, rows: list[Rows] | None) -> None:
        small = self.kept is not None and rows is not None and self.n_rows <= _SMALL
        self.kept = [*(self.kept or ()), *(rows or ())] if small else None

    def merge(self, other: Self) -> Self:
        """Add the other's bins."""
        self.sums += other.sums
        self.n_rows += other.n_rows
        self._keep(other.kept)
        return self

    def finish(self) -> Result:
        """The metric itself of few rows; of many, from the bins, with normal draws of their sums."""
        draws = self.n_draws or (199 if self.smooth else N_DRAWS)
        if self.kept is not None:
            f, y, w = joined(self.kept)
            options: dict[str, Any] = {
                "sample_weight": w, "n_draws": draws, "random_state": self.random_state
            }  # fmt: skip
            if self.smooth:
                return smooth_calibration_error(y, f, **options)
            return expected_calibration_error(y, f, n_bins=self.n_bins, **options)
        mass, stated, happened, variance = self.sums
        total, rng = float(mass.sum()), generator(self.random_state)
        noise = rng.normal(size=(draws, mass.size)) * np.sqrt(variance)
        if self.smooth:
            value = smooth_error((happened - stated) / total)
            drawn = total * np.array([smooth_error(part / total) for part in noise])
            method = f"reflected Gaussian kernel on {CELLS} cells, bandwidth equal to the error"
            return with_null("smooth_calibration_error", value, total, drawn, method, {"bandwidth": value})
        with np.errstate(invalid="ignore"):
            per_bin = {"mass": mass, "mean_score": stated / mass, "frequency": happened / mass}
        details: dict[str, Any] = {key: column.tolist() for key, column in per_bin.items()}
        details["edges"] = (np.arange(1, mass.size) / mass.size).tolist()
        value = float(np.abs(happened - stated).sum()) / total
        method = f"{mass.size} uniform bins, normal bin sums"
        return with_null(
            "expected_calibration_error", value, total, np.abs(noise).sum(axis=1), method, details
        )
