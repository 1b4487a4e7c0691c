"""Errors in bins of the score: sums over bins merge by adding, of few rows and of any number."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calipers.arrays import generator
from calipers.inference import SimulatedLaw, State
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import NO_EXACT_LAW
from calipers.inputs.rows import Rows
from calipers.metrics.reliability.block_scores import ScoredRows, Tally, binary_rows, sorted_rows
from calipers.metrics.reliability.calibration_test import MAX_COINS, n_coins, simulated_hits
from calipers.metrics.reliability.certificates import binned_lower_bound, upper_bound
from calipers.metrics.reliability.cumulative_differences import ScoreTable
from calipers.metrics.reliability.distinct_scores import ScoreLevels
from calipers.results import Estimate

# Cells of the grid on which residuals are smoothed; the error of the grid is below one cell.
CELLS = 1 << 13
# Rows that are kept, so that the null can be drawn score by score.
_SMALL = 100_000
# Binomial trials beyond which their number does not matter.
_MOST_TRIALS = 1e12
_NO_ERROR = "absolute values of noise add up, so there is no standard error"
_CHOSEN_BINS = "bins of equal mass are chosen by the same scores, so there is no bound for their error"
_NO_BOUND = "no interval: with importance weights the bound of the error is not known"
_ONE_SIDED = "from below only 0 is known: what lies above it may be noise"
_SOFT = "soft labels have no Bernoulli law, so there is no null"


@dataclass(eq=False)
class BinState(State):
    """Sums over bins of the score: the binned error, or the smoothed one on its cells.

    Parameters
    ----------
    edges : array
        Inner edges of the bins, which belong to the bin below; ignored when ``smooth``.
    smooth : bool
        Whether residuals are smoothed over fine cells, or compared bin by bin.
    n_draws : int
        Draws of the null law.
    random_state : int, Generator or None
        Source of those draws.
    strategy : str
        How the edges were chosen, in a word.
    confidence : float
        Level of the interval.
    """

    edges: np.ndarray
    smooth: bool
    n_draws: int
    random_state: Any = None
    strategy: str = "uniform"
    confidence: float = 0.95
    # Per bin: weight, stated, happened, variance under calibration, squared error.
    sums: np.ndarray = field(init=False)
    kept: list[ScoredRows] | None = field(default_factory=list)
    tally: Tally = field(default_factory=Tally)

    def __post_init__(self) -> None:
        self.sums = np.zeros((5, CELLS if self.smooth else self.edges.size + 1))

    @property
    def needs(self) -> frozenset[str]:
        """Probabilities and outcomes."""
        return frozenset({"probabilities", "codes", "sample_weight"})

    def absorb(self, block: Rows) -> None:
        """Add the block to its bins."""
        self.add(binary_rows(block))

    def add(self, rows: ScoredRows) -> None:
        """Add rows to their bins; keep them as long as they are few."""
        f, y, w = rows
        mass = np.ones(f.size) if w is None else w
        index, bins = self.bin_of(f), self.sums.shape[1]
        scored = mass * f
        for k, column in enumerate((mass, scored, mass * y, scored * (1 - f), mass * (y - f) ** 2)):
            self.sums[k] += np.bincount(index, weights=column, minlength=bins)
        self.tally.add(rows)
        self._keep([rows])

    def bin_of(self, f: np.ndarray) -> np.ndarray:
        """The bin of every score."""
        if self.smooth:
            return np.minimum((f * CELLS).astype(np.int64), CELLS - 1)
        # A score equal to an edge falls below it.
        return np.searchsorted(self.edges, f, side="left")

    def _keep(self, rows: list[ScoredRows] | None) -> None:
        # Repeated rows count as often as they are repeated, so that they are drawn like rows written out.
        many = max(self.tally.total, self.tally.n_rows) > _SMALL
        small = self.kept is not None and rows is not None and not many
        self.kept = [*(self.kept or ()), *(rows or ())] if small else None

    def merge(self, other: Self) -> Self:
        """Add the other's bins."""
        self.sums += other.sums
        self.tally.merge(other.tally)
        self._keep(other.kept)
        return self

    def finish(self) -> Estimate:
        """The error and its null."""
        mass, stated, happened, *_ = self.sums
        total = float(mass.sum())
        value = float(self._errors((happened - stated)[None, :])[0]) / total
        noise, how = self._noise() if self.tally.testable else (None, "")
        draws = None if noise is None else np.concatenate([self._errors(part) for part in noise]) / total
        shared: dict[str, Any] = {
            "name": "smooth_calibration_error" if self.smooth else "expected_calibration_error",
            "value": value,
            "n": self.tally.rows,
            "method": self._method() + how,
        }
        details = {"bandwidth": value} if self.smooth else self._per_bin()
        interval, reason = self._interval(value)
        shared |= interval
        if draws is None:
            reason = f"{reason}; {_SOFT if self.tally.soft else NO_EXACT_LAW}"
            return Estimate(**shared, reason=reason, details=details)
        law = SimulatedLaw(draws)
        floor = {"noise_floor": law.mean, "above_noise": max(0.0, value - law.mean)}
        fields = law.estimate_fields(value, level=NULL_LEVEL)
        return Estimate(**shared, **fields, reason=reason, details=floor | details)

    def _interval(self, value: float) -> tuple[dict[str, float], str]:
        """Ends for the population's error, half of the allowed error at each, and what is missing."""
        if not self.tally.whole:
            return {}, f"{_NO_ERROR}; {_NO_BOUND}"
        if self.strategy != "uniform":
            return {}, f"{_NO_ERROR}; {_CHOSEN_BINS}"
        n, level = round(self.tally.total), (1 + self.confidence) / 2
        second = float(self.sums[4].sum()) / self.tally.total
        ends = {"high": upper_bound(value, second, n, confidence=level), "confidence": self.confidence}
        if self.smooth:
            return ends | {"low": 0.0}, f"{_NO_ERROR}; {_ONE_SIDED}"
        bins = self.sums.shape[1]
        low = binned_lower_bound(value, second, n, n_bins=bins, confidence=level)
        return ends | {"low": low}, _NO_ERROR

    def _errors(self, residuals: np.ndarray) -> np.ndarray:
        """Total weight times the error, of rows (b, bins) of summed residuals."""
        if not self.smooth:
            return np.asarray(np.abs(residuals).sum(axis=1))
        total = float(self.sums[0].sum())
        return total * np.array([smooth_error(row / total) for row in residuals])

    def _noise(self) -> tuple[Iterator[np.ndarray], str]:
        """Batches (b, bins) of residuals under calibration, and how they are drawn."""
        rng = generator(self.random_state)
        if self.kept is not None:
            levels = ScoreTable.of_sorted_rows(sorted_rows(self.kept)).levels()
            if n_coins(levels, self.n_draws) <= MAX_COINS:
                how = f", exact Monte Carlo by score level, {self.n_draws} draws"
                return self._noise_of_levels(levels, rng), how
        return self._noise_of_bins(rng), f", binomial bin sums, {self.n_draws} draws"

    def _noise_of_levels(self, levels: ScoreLevels, rng: np.random.Generator) -> Iterator[np.ndarray]:
        index = self.bin_of(levels.values)
        first = np.flatnonzero(np.append(True, index[1:] != index[:-1]))
        expected = np.add.reduceat(levels.trials * levels.values, first)
        for hits in simulated_hits(levels, self.n_draws, rng):
            residuals = np.zeros((len(hits), self.sums.shape[1]))
            residuals[:, index[first]] = np.add.reduceat(hits, first, axis=1, dtype=np.float64) - expected
            yield residuals

    def _noise_of_bins(self, rng: np.random.Generator) -> Iterator[np.ndarray]:
        _, stated, _, variance, _ = self.sums
        trials, chance = binomial_like(stated, variance)
        batch = max(1, (1 << 20) // stated.size)
        for start in range(0, self.n_draws, batch):
            shape = (min(batch, self.n_draws - start), stated.size)
            few = rng.binomial(np.where(trials <= _MOST_TRIALS, trials, 0).astype(np.int64), chance, shape)
            yield np.where(trials <= _MOST_TRIALS, few, rng.poisson(stated, shape)) - stated

    def _method(self) -> str:
        if self.smooth:
            return f"reflected Gaussian kernel on {CELLS} cells, bandwidth equal to the error"
        return f"{self.sums.shape[1]} {self.strategy} bins"

    def _per_bin(self) -> dict[str, Any]:
        mass, stated, happened, *_ = self.sums
        with np.errstate(invalid="ignore"):
            per_bin = {"mass": mass, "mean_score": stated / mass, "frequency": happened / mass}
        return {key: column.tolist() for key, column in per_bin.items()} | {"edges": self.edges.tolist()}


def binomial_like(mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Trials and chance of the binomial laws with given means and (nearly: trials are whole) variances.

    Events with different probabilities have a Poisson-binomial number; the binomial law of the same mean and
    variance is close to it at any size, also where a normal law is not.

    References
    ----------
    Ehm (1991), Binomial approximation to the Poisson binomial distribution, Statistics and Probability
    Letters 11.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.reliability.binned_states import binomial_like
    >>> trials, chance = binomial_like(np.array([3.0, 0.0]), np.array([2.1, 0.0]))  # ten coins of 0.3
    >>> trials.tolist(), chance.round(2).tolist()
    ([10.0, 0.0], [0.3, 0.0])
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        # mean = n p and variance = n p (1 - p); certain events have p = 1.
        trials = np.where(mean > 0, mean**2 / np.maximum(mean - variance, 0.0), 0.0)
        trials = np.where(trials <= _MOST_TRIALS, np.ceil(trials - 1e-9 * np.maximum(trials, 1.0)), trials)
        trials = np.maximum(trials, np.ceil(mean))
        chance = np.where(mean > 0, np.minimum(mean / trials, 1.0), 0.0)
    return trials, chance


def smooth_error(residuals: np.ndarray) -> float:
    """The bandwidth at which the smoothed residuals on equal cells of [0, 1] have that l1 norm."""
    from scipy import fft, optimize

    spectrum = fft.dct(residuals, type=2)
    frequencies = (np.pi * np.arange(residuals.size)) ** 2 / 2

    def excess(bandwidth: float) -> float:
        smoothed = fft.idct(spectrum * np.exp(-frequencies * bandwidth**2), type=2)
        return float(np.abs(smoothed).sum()) - bandwidth

    if excess(1e-6) <= 0:
        return 0.0
    return float(optimize.brentq(excess, 1e-6, 1.0, xtol=1e-10))
