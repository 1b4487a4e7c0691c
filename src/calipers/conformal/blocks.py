"""Rows in blocks: temporaries stay in a processor's cache, or fill a GPU, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calipers.arrays import Array

_DEVICE_ENTRIES = 1 << 25


def row_blocks(array: Array, *, host_entries: int) -> Iterator[slice]:
    """Slices of rows of about ``host_entries`` entries (more on a device), at least one row each."""
    n = int(array.shape[0])
    width = int(array.shape[1]) if array.ndim == 2 else 1
    entries = host_entries if isinstance(array, np.ndarray) else _DEVICE_ENTRIES
    step = max(1, entries // max(1, width))
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))
