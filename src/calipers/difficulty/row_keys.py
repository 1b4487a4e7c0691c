"""A number per row that depends on the row's content only, exactly and in any order of rows."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from calipers.arrays import Array, as_numpy
from calipers.arrays.hashing import GOLDEN

# A constant of the hash, not randomness: it is the same in every process.
_SEED = 20250
_CHUNK = 1 << 21


def row_keys(values: Array) -> np.ndarray:
    """Keys in [0, 2^42) of the rows of a floating array, by multiply-and-add over their 32-bit words.

    Torch arrays are hashed where they lie; their keys differ from those of numpy.
    """
    if not isinstance(values, np.ndarray) and hasattr(values, "element_size"):
        return _torch_keys(values)
    # Adding 0 turns -0 into 0, which compares equal.
    flat = np.ascontiguousarray(as_numpy(values).reshape(len(values), -1)) + 0.0
    words = flat.view(np.uint32)
    multipliers = _multipliers(words.shape[1])
    keys = np.empty(len(flat), dtype=np.uint64)
    step = max(1, _CHUNK // max(words.shape[1], 1))
    for start in range(0, len(flat), step):
        block = words[start : start + step].astype(np.uint64)
        keys[start : start + step] = (block * multipliers).sum(axis=1, dtype=np.uint64)
    return _high_bits(keys)


def _torch_keys(values: Any) -> np.ndarray:
    import torch

    flat = (values.reshape(values.shape[0], -1) + 0.0).contiguous()
    if flat.element_size() not in (4, 8):
        flat = flat.float()
    words = flat.view(torch.int32)
    # The wrap-around of 64-bit products is the point of the hash.
    multipliers = torch.from_numpy(_multipliers(words.shape[1]).view(np.int64)).to(flat.device)
    step = max(1, _CHUNK // max(words.shape[1], 1))
    parts = [(words[i : i + step].long() * multipliers).sum(dim=1) for i in range(0, len(flat), step)]
    keys = torch.cat(parts).cpu().numpy().view(np.uint64)
    return _high_bits(keys)


def _high_bits(keys: np.ndarray) -> np.ndarray:
    """The well-mixed part of the keys, as numbers below 2^42."""
    return np.asarray((keys * GOLDEN) >> np.uint64(22), dtype=np.int64)


@lru_cache(maxsize=8)
def _multipliers(n: int) -> np.ndarray:
    draws = np.random.default_rng(_SEED).integers(0, 2**63, size=n, dtype=np.uint64)
    return np.asarray(draws * np.uint64(2) + np.uint64(1))
