"""Errors in bins of the score over any number of rows: sums over bins merge by adding."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calipers.arrays import generator
from calipers.inference import Result, State
from calipers.inputs import check_count
from calipers.inputs.rows import Rows
from calipers.metrics.entry import MetricEntry
from calipers.metrics.reliability.binned import (
    CELLS,
    expected_calibration_error,
    smooth_calibration_error,
    smooth_error,
    with_null,
)
from calipers.metrics.reliability.calibration_test import N_DRAWS
from calipers.metrics.reliability.score_columns import ScoredRows, binary_rows, joined
from calipers.metrics.states.gathered import GatherState

# Rows kept as they are, below which the metric itself is asked.
_SMALL = 100_000


def binned_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Sums over bins of equal width; bins of equal mass need the rows."""
    if options.get("strategy", "uniform") != "uniform":
        return GatherState(entry.function, entry.inputs, options, weighted=True)
    return BinState(smooth=False, **{key: value for key, value in options.items() if key != "strategy"})


def smooth_state(entry: MetricEntry, options: dict[str, Any]) -> State:
    """Sums over fine cells of the score."""
    return BinState(smooth=True, **options)


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
    kept: list[ScoredRows] | None = field(default_factory=list)
    n_rows: int = 0

    def __post_init__(self) -> None:
        bins = CELLS if self.smooth else check_count(self.n_bins, name="n_bins")
        self.sums = np.zeros((4, bins))

    @property
    def needs(self) -> frozenset[str]:
        """Probabilities and outcomes."""
        return frozenset({"probabilities", "codes", "sample_weight"})

    def absorb(self, block: Rows) -> None:
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

    def _keep(self, rows: list[ScoredRows] | None) -> None:
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
