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
        p-values; those outside of [0, 1] are counted.
    codes : integer array of shape (n,)
        Column of the true label; those that are no column are counted.
    floors : array of shape (1,) or (K,)
        What a p-value must exceed to be in the set, in the precision of ``p``.

    Returns
    -------
    float64 array of shape (14, n) or None
        S, N, U, F, M, E, OU, OF, OM, OE, credibility and empty, as
        `calipers.metrics.contributions.criterion_rows` has them; the entries that are no p-values and labels
        that are no columns; whether the label is 0.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays.device_rows import read_rows
    >>> read_rows(np.ones((2, 3)), np.zeros(2, dtype=int), np.array([0.1])) is None    # numpy has its own
    True
    """
    kernels = _kernels_for(p)
    if kernels is None:
        return None
    return kernels.summarise_rows(p, codes.contiguous(), floors.contiguous())


def is_read_once(table: Array) -> bool:
    """Whether there is a kernel for a table (n, K) of floats, which checks what it reads."""
    return _kernels_for(table) is not None


def running_mass(descending: Array, order: Array | None = None) -> Array | None:
    """Cumulative sums of rows of probabilities, at most 1 and at last 1; None where there is no kernel.

    With an order, the sum at place r of a row stands in its column ``order[r]``. Probabilities are rounded to
    multiples of 2^-52, whose sums are exact below 2: the order of additions does not matter, and the sums are
    those of the host.
    """
    kernels = _kernels_for(descending)
    if kernels is None or not (order is None or order.is_contiguous()):
        return None
    return kernels.running_mass(descending, order)


def first_labels(p: Array, ordered: Array, scores: Array, limits: Array) -> Array | None:
    """The labels of every row in its set; None where there is no kernel.

    Parameters
    ----------
    p, ordered : array of shape (n, K)
        Probabilities, and each row of them in descending order.
    scores : float64 array of shape (n, K)
        Score by rank, not decreasing along a row.
    limits : float64 array of shape (n,)
        The largest score that is kept; ties of probabilities are cut in column order.

    Returns
    -------
    bool array of shape (n, K) or None

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays.device_rows import first_labels
    >>> p = np.ones((2, 3)) / 3
    >>> first_labels(p, p, p, np.ones(2)) is None    # numpy has its own
    True
    """
    kernels = _kernels_for(p)
    if kernels is None or tuple(scores.shape) != tuple(p.shape) or str(scores.dtype) != "torch.float64":
        return None
    if not (ordered.is_contiguous() and scores.is_contiguous() and limits.dtype == scores.dtype):
        return None
    return kernels.first_labels(p, ordered, scores, limits.contiguous())


def row_moments(table: Array) -> Array | None:
    """Mean and summed squares of every row of a (k, n) table of doubles, (k, 2); None without a kernel."""
    kernels = _kernels() if getattr(table, "is_cuda", False) else None
    if kernels is None or str(table.dtype) != "torch.float64" or not table.is_contiguous():
        return None
    return kernels.row_moments(table)


def p_values_among(column: Array, values: Array, *, is_sorted: bool = False) -> Array | None:
    """(#{column >= value} + 1) / (n + 1) of every value, all flat; None without a kernel, or with a NaN.

    The range of the column is cut into cells of equal width. A table gives how many entries lie in
    lower cells, and a search among the few of the value's own cell the rest.
    """
    kernels = _kernels() if getattr(values, "is_cuda", False) else None
    if kernels is None or values.dtype not in kernels.FLOATS or column.dtype != values.dtype:
        return None
    # Positions are 32 bits wide.
    if not (0 < column.shape[0] < 1 << 30) or not values.shape[0]:
        return None
    return kernels.p_values(column.contiguous(), values.contiguous(), is_sorted)


def walk_ends(
    scores: Array, outcomes: Array, tie: float
) -> list[tuple[float, float | None, float | None]] | None:
    """Highest reading of the walk of y - f over sorted scores in [0, 1], and the first and last score there.

    Of the walk, and of its mirror image; no score where nothing reads as much. None where there is no kernel.
    """
    kernels = _kernels_of_events(scores, outcomes)
    return None if kernels is None else kernels.walk_ends(scores, outcomes, tie)


def score_sums(scores: Array, outcomes: Array, low: float, high: float) -> list[float] | None:
    """Sums over rows of scores in [0, 1] and events, in one read; None where there is no kernel.

    Of (y - f)^2 and f (1 - f); inside (low, high] of 1, f, y and (y - f)^2; and of rows whose outcome was
    stated to have probability 0.
    """
    kernels = _kernels_of_events(scores, outcomes)
    return None if kernels is None else kernels.score_sums(scores, outcomes, low, high).tolist()


def _kernels_of_events(scores: Array, outcomes: Array) -> Any:
    """The kernels for columns of scores and events on a CUDA device; None for all others."""
    kernels = _kernels() if getattr(scores, "is_cuda", False) else None
    if kernels is None or scores.dtype not in kernels.FLOATS or str(outcomes.dtype) != "torch.bool":
        return None
    return kernels if scores.is_contiguous() and outcomes.is_contiguous() else None


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
