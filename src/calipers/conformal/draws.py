"""Uniform draws keyed to a row, so that cutting the rows into batches does not change them."""

from __future__ import annotations

import numpy as np

from calipers.arrays import Array, as_numpy, namespace, on_device_of
from calipers.arrays.hashing import finalise, unit_floats

# Probabilities are read in steps of 2^-32: coarser than the rounding noise between batch sizes of a
# matrix product, finer than any difference between rows that matters.
_STEPS = float(1 << 32)


def row_draws(probabilities: Array, *, seed: int, stream: int) -> Array:
    """One number in [0, 1) per row: a keyed hash of the row and of how often it came before.

    Equal rows within a call get independent draws (by their order); the same row in another batch gets
    the draw it would have had in one call, unless rows repeat. Different streams are independent, so
    calibration row i and test row i never share a draw.
    """
    xp = namespace(probabilities)
    keys = np.random.default_rng([seed, stream]).integers(-(2**63), 2**63 - 1, probabilities.shape[1] + 1)
    steps = xp.astype(xp.round(probabilities * _STEPS), xp.int64)
    # Integer sums wrap around alike in every library and in every order.
    sums = xp.sum(steps * on_device_of(keys[:-1], steps)[None, :], axis=1)
    hashed = as_numpy(sums).astype(np.int64).view(np.uint64)
    mixed = finalise(finalise(hashed) ^ finalise(_occurrence(hashed) + keys[-1:].view(np.uint64)))
    return on_device_of(unit_floats(mixed), probabilities)


def _occurrence(keys: np.ndarray) -> np.ndarray:
    """How many equal keys come earlier."""
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    first = np.concatenate([[True], ordered[1:] != ordered[:-1]]) if len(keys) else np.zeros(0, dtype=bool)
    position = np.arange(len(keys))
    counts = np.empty(len(keys), dtype=np.uint64)
    counts[order] = position - np.maximum.accumulate(np.where(first, position, 0))
    return counts
