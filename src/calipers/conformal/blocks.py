"""Rows in blocks: temporaries stay in a processor's cache, or fill a GPU, whatever the number of rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calipers.arrays import Array

# On a GPU every block costs a millisecond of launches; some three gigabytes of temporaries are few.
_DEVICE_ENTRIES = 1 << 26
# Tensors of other libraries on the host: their threads like more entries than numpy.
_TENSOR_ENTRIES = 1 << 22


def row_blocks(array: Array, *, host_entries: int) -> Iterator[slice]:
    """Slices of rows of about ``host_entries`` entries (more on a device), at least one row each."""
    n = int(array.shape[0])
    width = int(array.shape[1]) if array.ndim == 2 else 1
    entries = host_entries if isinstance(array, np.ndarray) else _tensor_entries(array)
    step = max(1, entries // max(1, width))
    for first in range(0, n, step):
        yield slice(first, min(first + step, n))


def _tensor_entries(array: Array) -> int:
    return _TENSOR_ENTRIES if str(array.device).lower().startswith("cpu") else _DEVICE_ENTRIES
