"""Noise that belongs to rows: looked up by a row's own content in random numbers drawn once (decision 6)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import Array, on_device_of
from calipers.difficulty.row_keys import row_keys

# Noise numbers that are kept, and the most rows a pool of them has.
_ENTRIES, _ROWS = 1 << 22, 4096
# Between the windows of two transformations of one row lies a row and so many numbers.
_GAP = 7919


@dataclass(frozen=True, slots=True, eq=False)
class NoiseSource:
    """Random numbers for rows of one shape: as rows of a pool, or as windows of one long tape.

    Parameters
    ----------
    numbers : array (rows, *shape), or (length,)
        A pool of noise rows; or, where that would hold too few of them, a tape of which every row takes the
        window at a place of its own. Two windows at different places hold independent numbers at every
        feature.
    shape : tuple of int
        Shape of one row.
    """

    numbers: np.ndarray
    shape: tuple[int, ...]

    @classmethod
    def draw(
        cls, shape: tuple[int, ...], count: int, sample: Callable[[tuple[int, ...]], Any]
    ) -> NoiseSource:
        """A pool of up to 4096 rows; rows of more than 1024 features get a tape of four million numbers.

        ``count`` is the number of transformations, ``sample`` draws an array of a shape. A pool within the
        same memory would hold 27 images of 224 x 224 pixels, to be shared by all.
        """
        features = max(1, int(np.prod(shape)))
        if features * _ROWS <= _ENTRIES:
            return cls(sample((max(count, _ROWS), *shape)), shape)
        return cls(sample((max(_ENTRIES, (count + 1) * (features + _GAP)),)), shape)

    @property
    def is_tape(self) -> bool:
        """Whether rows take windows of a tape."""
        return self.numbers.ndim != len(self.shape) + 1

    def rows(self, turn: int, values: Array) -> Array:
        """The noise of every row of the values at one turn, beside them."""
        keys = row_keys(values)
        rows = self._windows(keys, turn) if self.is_tape else self.numbers[(keys + turn) % len(self.numbers)]
        if rows.dtype == np.float32 and isinstance(values, np.ndarray):
            rows = rows.astype(values.dtype, copy=False)
        return rows if isinstance(values, np.ndarray) else on_device_of(rows, values)

    def _windows(self, keys: np.ndarray, turn: int) -> np.ndarray:
        features = int(np.prod(self.shape))
        windows = np.lib.stride_tricks.sliding_window_view(self.numbers, features)
        at = (keys + turn * (features + _GAP)) % len(windows)
        return np.asarray(windows[at]).reshape(len(keys), *self.shape)
