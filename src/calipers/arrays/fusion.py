"""Several elementwise steps and sums as one pass over memory, where the device has a compiler for it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from calipers.arrays.library import Array, namespace


def fused(function: Callable[..., Array], like: Array) -> Callable[..., Array]:
    """``function(xp, *arrays)`` bound to the library of ``like``.

    On a CUDA device with Triton it is compiled, so that the arrays are read once and nothing is stored
    between the steps; everywhere else it runs step by step. The compiled form is kept for functions that
    compare equal.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import fused
    >>> fused(lambda xp, a, b: xp.sum(a * b), np.ones(3))(np.arange(3.0), np.arange(3.0))
    np.float64(5.0)
    """
    xp = namespace(like)
    if getattr(like, "is_cuda", False) and _has_triton():
        return _compiled(function, xp)
    return lambda *arrays: function(xp, *arrays)


def _has_triton() -> bool:
    from torch.utils._triton import has_triton

    return bool(has_triton())


@lru_cache(maxsize=32)
def _compiled(function: Callable[..., Array], xp: Any) -> Callable[..., Array]:
    import torch

    def bound(*arrays: Array) -> Array:
        return function(xp, *arrays)

    # Lengths become variables only once they change: with the width of the rows known the rows are added up
    # in registers, four times as fast as with every length a variable.
    with warnings.catch_warnings():
        # The first call imports torch's compiler, which uses what torch itself has deprecated.
        warnings.simplefilter("ignore", DeprecationWarning)
        compiled: Callable[..., Array] = torch.compile(bound)
    return compiled
