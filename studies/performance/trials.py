"""Trials in blocks that are kept on disk: an interrupted study goes on where it stopped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.progress import Progress

from calipers.inference import CoverageLaw, clopper_pearson
from calipers.performance.fitting import thread_limit
from calipers.performance.guarantee import end_ranks
from studies.caching import study_cache
from studies.progress import worked

ALPHA = 0.1
SEED = 20_200_708

# (generator, number of trials) -> arrays whose first axis counts trials
Block = Callable[[np.random.Generator, int], dict[str, np.ndarray]]


@dataclass(frozen=True, eq=False)
class TrialTable:
    """What a method did in every trial.

    Parameters
    ----------
    name : str
        The method.
    low, high : array (trials,)
        Ends of the interval.
    mean_loss : array (trials,)
        Average loss on the trial's test cases.
    new_covered : bool array (trials,)
        Whether one random test loss lay in the interval: the "new loss cover rate" is its mean.
    coverage : array (trials,)
        Share of the test losses in the interval: the "test loss coverage".
    n_losses, n_test : int
        Losses behind each interval, test losses behind each coverage.
    """

    name: str
    low: np.ndarray
    high: np.ndarray
    mean_loss: np.ndarray
    new_covered: np.ndarray
    coverage: np.ndarray
    n_losses: int
    n_test: int

    @property
    def trials(self) -> int:
        """How many."""
        return int(self.low.size)

    @property
    def width(self) -> np.ndarray:
        """High minus low."""
        return np.asarray(self.high - self.low)

    @property
    def rank(self) -> int:
        """Difference of the two ranks: the exact coverage is this over n + 1."""
        low, high = end_ranks(self.n_losses, ALPHA, "two-sided")
        return high - low

    @property
    def exact(self) -> float:
        """Exact probability that a new loss is covered (distinct losses)."""
        return self.rank / (self.n_losses + 1)

    @property
    def law(self) -> CoverageLaw:
        """Exact law of the number of covered test losses of one trial."""
        return CoverageLaw(n=self.n_test, alpha=ALPHA, n_calibration=self.n_losses, rank=self.rank)

    def new_loss_rate(self) -> tuple[float, float, float]:
        """Cover rate of the new losses with its exact 95 % interval."""
        hits = int(self.new_covered.sum())
        low, high = clopper_pearson(hits, self.trials)
        return hits / self.trials, float(low), float(high)


def summarise(losses: np.ndarray, test: np.ndarray, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """Interval and coverage of every trial from its losses (trials, n) and test losses (trials, t)."""
    low_rank, high_rank = end_ranks(losses.shape[1], ALPHA, "two-sided")
    ordered = np.partition(losses, (low_rank - 1, high_rank - 1), axis=1)
    low, high = ordered[:, low_rank - 1], ordered[:, high_rank - 1]
    inside = (test >= low[:, None]) & (test <= high[:, None])
    return {
        "low": low,
        "high": high,
        "mean_loss": test.mean(axis=1),
        "new_covered": inside[np.arange(len(test)), chosen],
        "coverage": inside.mean(axis=1),
    }


def run_trials(
    block: Block, trials: int, block_size: int, *, name: str, folder: Path, progress: Progress
) -> dict[str, np.ndarray]:
    """All trials, block by block, each from its own seed; finished blocks are read back."""
    counts = [min(block_size, trials - start) for start in range(0, trials, block_size)]
    jobs = {f"{i:04d}-{count}": (block, name, i, count) for i, count in enumerate(counts)}
    cache = study_cache(folder, block, name, block, name=name)
    parts = worked(progress, _run_block, jobs, description=name, cache=cache)
    return {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}


def _run_block(block: Block, name: str, index: int, count: int) -> dict[str, np.ndarray]:
    """Some trials, in a worker."""
    seed = np.random.SeedSequence([SEED, *name.encode(), index])
    with thread_limit(1):  # the problems are tiny: threads would wait for each other
        return block(np.random.default_rng(seed), count)
