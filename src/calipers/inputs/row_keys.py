"""Random numbers that belong to a row, not to the order in which rows are read.

A row is known by its id, or by the file it lies in and its position there. A draw is a fixed function of
that, of a purpose and of a seed: however the rows are split, ordered or repeated after a lost worker, a
row gets the same draw, and draws for different purposes are independent of each other.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from calipers.arrays.hashing import mix, text_key, unit_floats
from calipers.exceptions import InputTypeError


@dataclass(frozen=True, slots=True)
class Place:
    """Where a block of rows lies: a name for the file or array, and the position of its first row."""

    origin: str = ""
    start: int = 0


@dataclass(frozen=True, slots=True)
class Places(Place):
    """Where rows that were read from several places lie: each place with its number of rows."""

    parts: tuple[tuple[Place, int], ...] = ()


def keys_of_place(place: Place, n: int) -> np.ndarray:
    """A key per row, from the file and the position in it.

    Examples
    --------
    >>> from calipers.inputs.row_keys import Place, Places, keys_of_place
    >>> joined = keys_of_place(Places(parts=((Place("a", 5), 2), (Place("b"), 1))), 3)
    >>> bool((joined[:2] == keys_of_place(Place("a", 5), 2)).all())
    True
    """
    if isinstance(place, Places):
        return np.concatenate([keys_of_place(part, rows) for part, rows in place.parts])
    positions = np.arange(place.start, place.start + n, dtype=np.uint64)
    return mix(positions ^ mix(np.atleast_1d(text_key(place.origin))))


def keys_of_ids(ids: np.ndarray) -> np.ndarray:
    """A key per row, from its id: whole numbers or text.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.row_keys import keys_of_ids
    >>> bool(keys_of_ids(np.array([7, 8]))[1] == keys_of_ids(np.array([8]))[0])
    True
    """
    if ids.dtype.kind in "iu":
        return mix(ids.astype(np.int64).view(np.uint64))
    if ids.dtype.kind in "UO":
        return _keys_of_text(np.char.encode(ids.astype(str), "utf-8"))
    if ids.dtype.kind == "S":
        return _keys_of_text(ids)
    raise InputTypeError(f"row ids must be whole numbers or text, got {ids.dtype}.")


def _keys_of_text(ids: np.ndarray) -> np.ndarray:
    """Eight bytes at a time; the padding of shorter texts adds nothing, whatever the longest one is."""
    words = -(-ids.dtype.itemsize // 8)
    padded = ids.astype(f"S{8 * words}").view(np.uint64).reshape(len(ids), words)
    keys = np.zeros(len(ids), dtype=np.uint64)
    for column in range(words):
        part = padded[:, column]
        keys = np.where(part != 0, mix(keys ^ mix(part)), keys)
    return mix(keys)


def draws(keys: np.ndarray, purpose: str, seed: int) -> np.ndarray:
    """A uniform number in [0, 1) per row.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.row_keys import draws, keys_of_ids
    >>> u = draws(keys_of_ids(np.arange(100_000)), "tau", 0)
    >>> bool(abs(u.mean() - 0.5) < 0.005 and u.min() >= 0 and u.max() < 1)
    True
    """
    stream = mix(np.atleast_1d(text_key(purpose) ^ np.uint64(seed % 2**64)))
    return unit_floats(mix(keys ^ stream))
