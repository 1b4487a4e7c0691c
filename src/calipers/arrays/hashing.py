"""One hash: 64-bit keys that look random, the same on every machine and in every process.

SplitMix64 of Steele, Lea and Flood (2014) without its running state: a key plus the golden ratio goes
through the finaliser, one to one.
"""

from __future__ import annotations

import hashlib

import numpy as np

# 2^64 divided by the golden ratio, odd.
GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)


def mix(keys: np.ndarray) -> np.ndarray:
    """SplitMix64: neighbouring keys become unrelated ones, one to one.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays.hashing import mix
    >>> hex(mix(np.zeros(1, dtype=np.uint64))[0])
    '0xe220a8397b1dcdaf'
    """
    with np.errstate(over="ignore"):
        return finalise(keys + GOLDEN)


def finalise(keys: np.ndarray) -> np.ndarray:
    """The finaliser alone: every bit of a key reaches every bit of the result; 0 stays 0."""
    with np.errstate(over="ignore"):
        z = (keys ^ (keys >> np.uint64(30))) * _FIRST
        z = (z ^ (z >> np.uint64(27))) * _SECOND
        return np.asarray(z ^ (z >> np.uint64(31)))


def text_key(text: str) -> np.uint64:
    """A key for a text.

    Examples
    --------
    >>> from calipers.arrays.hashing import text_key
    >>> hex(text_key("tau"))
    '0x284525571d3325ca'
    """
    return np.uint64(int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little"))


def unit_floats(keys: np.ndarray) -> np.ndarray:
    """Numbers in [0, 1) from mixed keys: their upper 53 bits, which fill the fraction of a float.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays.hashing import unit_floats
    >>> unit_floats(np.array([0, 2**63], dtype=np.uint64))
    array([0. , 0.5])
    """
    return np.asarray((keys >> np.uint64(11)).astype(np.float64) * 2.0**-53)
