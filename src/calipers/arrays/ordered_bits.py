"""Floats as integers of the same order: sorts and searches that carry something along, or count floats.

The bits of non-negative floats, read as integers, are ordered like the floats.
"""

from __future__ import annotations

import numpy as np

_ONE = np.uint64(1)


def pack_outcomes(scores: np.ndarray, outcomes: np.ndarray, *, overwrite: bool = False) -> np.ndarray:
    """Score and outcome of every row as one integer: sorting these sorts by score, then by outcome.

    Parameters
    ----------
    scores : float64 array
        In [0, 1]: such floats leave the top two bits free.
    outcomes : array of bool, or of 0 and 1
        Goes into the last bit.
    overwrite : bool
        Make the keys in the place of the scores, which then must hold no negative zero.

    Returns
    -------
    uint64 array
        One key per row.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays.ordered_bits import pack_outcomes, unpack_outcomes, unpack_scores
    >>> keys = np.sort(pack_outcomes(np.array([0.75, 0.5, 0.75]), np.array([True, True, False])))
    >>> unpack_scores(keys), unpack_outcomes(keys)
    (array([0.5 , 0.75, 0.75]), array([1, 0, 1], dtype=uint64))
    """
    # Adding 0 copies, and turns -0, whose bits are not those of 0, into 0.
    keys = (scores if overwrite else scores + 0.0).view(np.uint64)
    keys <<= _ONE
    keys |= outcomes if outcomes.dtype == bool else outcomes.astype(np.uint64)
    return keys


def unpack_scores(keys: np.ndarray) -> np.ndarray:
    """The scores of packed rows."""
    return np.asarray((keys >> _ONE).view(np.float64))


def unpack_outcomes(keys: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """The outcomes of packed rows, 0 or 1."""
    return np.asarray(np.bitwise_and(keys, _ONE, out=out))
