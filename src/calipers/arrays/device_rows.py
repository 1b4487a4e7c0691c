"""Tables on a CUDA device in one read, where Triton can compile for it."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, TypeAlias

# As in `calipers.arrays.library`, which uses these kernels.
Array: TypeAlias = Any
# Rows of more entries do not fit into the registers of one program.
_WIDEST = 1 << 13


def read_rows(p: Array, codes: Array, floors: Array) -> Array | None:
    """What every row of p-values (n, K) adds to the criteria, from one read; None where there is no kernel.

    Parameters
    ----------
    p : array of shape (n, K)
        p-values, checked.
    codes : integer array of shape (n,)
        Column of the true label.
    floors : array of shape (1,) or (K,)
        What a p-value must exceed to be in the set, in the precision of ``p``.

    Returns
    -------
    float64 array of shape (12, n) or None
        S, N, U, F, M, E, OU, OF, OM, OE, credibility and empty, as
        `calipers.metrics.contributions.criterion_rows` has them.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays.device_rows import read_rows
    >>> read_rows(np.ones((2, 3)), np.zeros(2, dtype=int), np.array([0.1])) is None    # numpy has its own
    True
    """
    kernels = _kernels_for(p)
    if kernels is None or floors.dtype != p.dtype:
        return None
    return kernels.summarise_rows(p, codes.contiguous(), floors.contiguous())


def running_mass(descending: Array) -> Array | None:
    """Cumulative sums of rows of probabilities, at most 1 and at last 1; None where there is no kernel.

    Probabilities are rounded to multiples of 2^-52, whose sums are exact below 2: the order of additions does
    not matter, and the sums are those of the host.
    """
    kernels = _kernels_for(descending)
    return None if kernels is None else kernels.running_mass(descending)


def scatter_rows(values: Array, order: Array) -> Array | None:
    """The value at place r of each row in column ``order[r]``; None where there is no kernel."""
    kernels = _kernels_for(values)
    if kernels is None or not (values.is_contiguous() and order.is_contiguous()):
        return None
    return kernels.scatter_rows(values, order)


def _kernels_for(table: Array) -> Any:
    """The kernels for a table (n, K) of floats on a CUDA device; None for all others."""
    if not getattr(table, "is_cuda", False) or table.ndim != 2 or 0 in table.shape:
        return None
    if table.shape[1] > _WIDEST or table.stride(1) != 1:
        return None
    kernels = _kernels()
    return None if kernels is None or table.dtype not in kernels.FLOATS else kernels


@lru_cache(maxsize=1)
def _kernels() -> Any:
    """The kernels, tried once; None where Triton is missing or its compiler does not work."""
    try:
        import torch

        from calipers.arrays import device_kernels

        table = torch.tensor([[0.5, 0.25]], device="cuda")
        device_kernels.summarise_rows(table, torch.zeros(1, dtype=torch.int64, device="cuda"), table[0, :1])
    except Exception:  # noqa: BLE001 - a compiler that does not work has errors of its own
        return None
    return device_kernels
