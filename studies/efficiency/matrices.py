"""Distance matrices in blocks on disk: an interrupted run continues at the first missing block."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from calipers.conformal.distances import Distances, take_rows
from studies.efficiency.digits import Digits

METRICS = ("euclidean", "tangent")
BLOCK = 256


class MatrixStore:
    """Distances of the study, computed once and kept under a name that depends on the images.

    Parameters
    ----------
    digits : Digits
        The images.
    folder : Path
        Where the blocks are kept.
    """

    def __init__(self, digits: Digits, folder: Path) -> None:
        self.digits = digits
        self.folder = folder / digits.fingerprint
        self.folder.mkdir(parents=True, exist_ok=True)

    def compute(self, metric: str, progress: Any) -> None:
        """Make sure that every block of the metric is there."""
        missing = [job for job in self._jobs(metric) if not job[0].exists()]
        if not missing:
            return
        distances = Distances(metric, None)
        train, test = distances.prepare(self.digits.train), distances.prepare(self.digits.test)
        for path, part, start in progress.track(missing, description=f"{metric} distances"):
            rows = slice(start, start + BLOCK)
            # Training distances are symmetric: a block reaches from the diagonal to the right.
            mine = take_rows(train if part == "train" else test, rows)
            others = take_rows(train, slice(start, None)) if part == "train" else train
            save_array(path, distances.between(mine, others))

    def _jobs(self, metric: str) -> Iterator[tuple[Path, str, int]]:
        for part, y in (("train", self.digits.y_train), ("test", self.digits.y_test)):
            for start in range(0, len(y), BLOCK):
                yield self.folder / f"{metric}-{part}-{start:05d}.npy", part, start

    def load(self, metric: str) -> tuple[np.ndarray, np.ndarray]:
        """Training distances (n, n), exactly symmetric, and test distances (m, n)."""
        n, m = len(self.digits.y_train), len(self.digits.y_test)
        train, test = np.empty((n, n)), np.empty((m, n))
        for path, part, start in self._jobs(metric):
            block = np.load(path)
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
        return (np.load(path) for path, part, _ in self._jobs(metric) if part == "test")


def save_array(path: Path, array: np.ndarray) -> None:
    """Write the file whole or not at all."""
    partial = path.with_name(path.name + ".part")
    with partial.open("wb") as stream:
        np.save(stream, array)
    partial.replace(path)
