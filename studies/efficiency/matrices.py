"""Distance matrices in blocks on disk: an interrupted run continues at the first missing block."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from calipers.conformal.distances import Distances, take_rows
from calipers.performance.caching import ResumableCache
from studies.caching import study_cache
from studies.efficiency.digits import Digits

METRICS = ("euclidean", "tangent")
BLOCK = 256


class MatrixStore:
    """Distances of the study, computed once and kept.

    Parameters
    ----------
    digits : Digits
        The images.
    folder : Path
        Where the blocks are kept.
    """

    def __init__(self, digits: Digits, folder: Path) -> None:
        self.digits = digits
        self.folder = folder

    def compute(self, metric: str, progress: Any) -> None:
        """Make sure that every block of the metric is there."""
        blocks = Blocks(metric, self.digits, self.folder)
        for part, start in progress.track(blocks.missing(), description=f"{metric} distances"):
            blocks.get(part, start)

    def load(self, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Training distances (n, n), exactly symmetric, and test distances (m, n)."""
        n, m = len(self.digits.y_train), len(self.digits.y_test)
        train, test = np.empty((n, n)), np.empty((m, n))
        blocks = Blocks(metric, self.digits, self.folder)
        for part, start in blocks.jobs():
            block = blocks.get(part, start)
            rows = slice(start, start + len(block))
            if part == "test":
                test[rows] = block
                continue
            train[start:, rows] = block.T
            train[rows, rows.stop :] = block[:, len(block) :]
            corner = np.triu(block[:, : len(block)], 1)
            train[rows, rows] = corner + corner.T
        return train, test

    def test_blocks(self, metric: str) -> Iterator[np.ndarray]:
        """Test distances, a block of rows at a time."""
        blocks = Blocks(metric, self.digits, self.folder)
        return (blocks.get(part, start) for part, start in blocks.jobs() if part == "test")


class Blocks:
    """The blocks of one metric: read back, or computed and kept.

    Parameters
    ----------
    metric : str
        One of ``METRICS``.
    digits : Digits
        The images.
    folder : Path
        Where the blocks are kept.
    """

    def __init__(self, metric: str, digits: Digits, folder: Path) -> None:
        self.metric = metric
        self.digits = digits
        self.cache: ResumableCache = study_cache(
            folder, Blocks, metric, digits.fingerprint, name=f"{metric}-distances"
        )

    def jobs(self) -> Iterator[tuple[str, int]]:
        """Part and first row of every block."""
        for part, y in (("train", self.digits.y_train), ("test", self.digits.y_test)):
            for start in range(0, len(y), BLOCK):
                yield part, start

    def missing(self) -> list[tuple[str, int]]:
        """The blocks that are not kept yet."""
        return [(part, start) for part, start in self.jobs() if f"{part}-{start:05d}" not in self.cache]

    def get(self, part: str, start: int) -> np.ndarray:
        """One block; rows of the training part reach from the diagonal to the right, as it is symmetric."""
        return np.asarray(self.cache.get(f"{part}-{start:05d}", lambda: self._between(part, start)))

    def _between(self, part: str, start: int) -> np.ndarray:
        distances, train, test = self._prepared
        mine = take_rows(train if part == "train" else test, slice(start, start + BLOCK))
        others = take_rows(train, slice(start, None)) if part == "train" else train
        return np.asarray(distances.between(mine, others))

    @cached_property
    def _prepared(self) -> tuple[Distances, Any, Any]:
        distances = Distances(self.metric, None)
        return distances, distances.prepare(self.digits.train), distances.prepare(self.digits.test)
