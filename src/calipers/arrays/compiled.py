"""Which runs use compiled kernels: large ones, on machines that have numba.

Loading them takes half a second, compiling them the first time some ten; only many rows make up for it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

# Rows of a run from which the kernels are worth loading.
MANY_ROWS = 10_000_000


@lru_cache(maxsize=1)
def kernels() -> Any:
    """The compiled kernels, or None where numba is missing or unfit: numpy does the same work, slower."""
    try:
        from calipers.arrays import compiled_kernels
    except ImportError:  # not installed, or of another age than numpy
        return None
    except RuntimeError:  # no folder to keep what was compiled: every process would compile it anew
        return None
    return compiled_kernels


def columns_of(matrix: np.ndarray) -> np.ndarray:
    """The columns of a matrix, each in one piece; copied only when they are not."""
    return np.ascontiguousarray(matrix.T)


def are_in_unit(table: Any, compiled: Any) -> bool:
    """Whether compiled kernels find every entry in [0, 1]; False means: look closer."""
    return _is_fit(table, compiled) and bool(compiled.lies_in_unit(columns_of(table)))


def are_probabilities(table: Any, compiled: Any, tolerance: float) -> bool:
    """Whether compiled kernels find rows that sum to 1 within the tolerance; False means: look closer."""
    if not _is_fit(table, compiled) or table.shape[1] < 2:
        return False
    unfit, off, smallest, largest = compiled.look_over(columns_of(table), tolerance)
    slack = 4 * float(np.finfo(table.dtype).eps)
    return bool(unfit == 0 and smallest >= 0 and (off <= slack or largest <= 1 + slack))


def _is_fit(table: Any, compiled: Any) -> bool:
    if compiled is None or not isinstance(table, np.ndarray):
        return False
    return table.ndim == 2 and table.size > 0 and table.dtype in (np.float32, np.float64)
