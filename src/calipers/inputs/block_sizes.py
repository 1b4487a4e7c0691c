"""How many rows are read, and worked on, at a time."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# Rows per block, at most: enough for numpy to be at work most of the time.
BLOCK_ROWS = 1 << 18
# Rows per block, at least, and bytes of a matrix that stay near the processor.
_FEWEST_ROWS = 1 << 13
_NEAR_BYTES = 6 << 20
# Rows per piece where rows are narrow: what two writers make of a row group, or a multiple of it.
PIECE_ROWS = 1 << 20
# A piece is read at once; this many values of it fit easily.
PIECE_VALUES = 1 << 25
# The first rows of a piece, from which is seen what there is.
HEAD_ROWS = 1000


def rows_per_piece(n_columns: int) -> int:
    """A power of two, so that row groups, which are powers of two too, are seldom read twice.

    Examples
    --------
    >>> from calipers.inputs.block_sizes import rows_per_piece
    >>> rows_per_piece(4), rows_per_piece(1000)
    (1048576, 32768)
    """
    fitting = PIECE_VALUES // max(1, n_columns)
    return int(min(PIECE_ROWS, max(_FEWEST_ROWS, 1 << (max(1, fitting).bit_length() - 1))))


def block_rows(given: Mapping[str, Any]) -> int:
    """Rows of a block, a power of two, such that its widest matrix stays near the processor.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.block_sizes import block_rows
    >>> block_rows({"sets": np.zeros((1, 10), dtype=bool)}), block_rows({"p_values": np.zeros((1, 10))})
    (262144, 65536)
    """
    wide = [value for value in given.values() if getattr(value, "ndim", 1) > 1]
    bytes_a_row = max(
        (np.prod(v.shape[1:]) * v.dtype.itemsize for v in wide if hasattr(v, "dtype")), default=1
    )
    fitting = 1 << (max(1, int(_NEAR_BYTES // max(1, bytes_a_row))).bit_length() - 1)
    return min(BLOCK_ROWS, max(_FEWEST_ROWS, fitting))
