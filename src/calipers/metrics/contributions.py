"""What each row adds to each criterion of efficiency: a handful of passes over the p-values."""

from __future__ import annotations

import numpy as np

from calipers.arrays import Array, as_numpy, count_along, namespace, not_negative, pick_columns
from calipers.inputs.derived_columns import at_label
from calipers.inputs.p_value_sets import P_VALUE_NOISE

# Rows that stay in the processor's nearest memory while their columns pass by.
_CHUNK = 1 << 13


# The criteria in their order, with the keys that break ties.
CRITERIA_ORDER = ("S", "N", "U", "F", "M", "E", "OU", "OF", "OM", "OE", "credibility", "empty")


def criterion_rows(p: Array, codes: Array, sets: Array) -> dict[str, Array]:
    """Kernel: what each row adds to each criterion, (n,) each."""
    rows = p_value_rows(p, codes) | size_rows(*sizes(sets, codes))
    return {name: rows[name] for name in CRITERIA_ORDER}


def p_value_rows(p: Array, codes: Array) -> dict[str, Array]:
    """What each row adds to the criteria that read p-values."""
    xp = namespace(p)
    codes = xp.astype(codes, xp.int64, copy=False)
    largest, second = two_largest(p)
    own = _at_label(p, codes)
    # Without the true label the largest is the second when the truth was on top.
    false_one = xp.astype(xp.where(own == largest, second, largest), xp.float64)
    largest, second, own = (xp.astype(column, xp.float64, copy=False) for column in (largest, second, own))
    total = xp.sum(p, axis=1, dtype=xp.float64)
    return {
        "S": total, "U": second, "F": total - largest, "OU": false_one, "OF": total - own,
        "credibility": largest,
    }  # fmt: skip


def size_rows(size: Array, inside: Array) -> dict[str, Array]:
    """What each row adds to the criteria that read sets, by their size and whether the truth is inside."""
    xp = namespace(size)
    size = xp.astype(size, xp.float64)
    false_size = size - xp.astype(inside, xp.float64)
    return {
        "N": size,
        "M": xp.astype(size > 1, xp.float64),
        "E": not_negative(size - 1),
        "OM": xp.astype(false_size > 0, xp.float64),
        "OE": false_size,
        "empty": xp.astype(size == 0, xp.float64),
    }


def criterion_gaps(first: dict[str, Array], second: dict[str, Array], p: Array) -> dict[str, np.ndarray]:
    """First minus second row by row, exactly 0 where rounding alone tells the two apart.

    p-values are counts over calibration rows: sums of them are equal, or differ by far more than rounding.
    """
    noise = int(p.shape[1]) * max(P_VALUE_NOISE, float(namespace(p).finfo(p.dtype).eps) / 2)
    gaps = {name: as_numpy(first[name]) - as_numpy(second[name]) for name in first}
    return {name: np.where(np.abs(gap) <= noise, 0.0, gap) for name, gap in gaps.items()}


def sizes(sets: Array, codes: Array) -> tuple[Array, Array]:
    """Labels in every set, and whether the true one is among them."""
    inside = _at_label(sets, namespace(sets).astype(codes, namespace(sets).int64, copy=False))
    if not isinstance(sets, np.ndarray) or sets.shape[1] > 255:
        return count_along(sets, axis=1), inside
    # Bytes, where they hold the number: many add up at a time.
    return np.add.reduce(sets.view(np.uint8), axis=1, dtype=np.uint8), inside


def two_largest(p: Array) -> tuple[Array, Array]:
    """The largest and the second largest entry of every row, or 0 where there is one column.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.contributions import two_largest
    >>> two_largest(np.array([[0.2, 0.7, 0.4], [0.5, 0.5, 0.1]]))
    (array([0.7, 0.5]), array([0.4, 0.5]))
    """
    if isinstance(p, np.ndarray):
        return _two_largest_on_host(p)
    xp = namespace(p)
    first = xp.argmax(p, axis=1)
    columns = xp.arange(int(p.shape[1]), dtype=first.dtype, device=p.device)[None, :]
    zero = xp.zeros((1, 1), dtype=p.dtype, device=p.device)
    return xp.max(p, axis=1), xp.max(xp.where(columns == first[:, None], zero, p), axis=1)


def _two_largest_on_host(p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns = p.T
    largest, second = np.empty((2, len(p)), dtype=p.dtype)
    for start in range(0, len(p), _CHUNK):
        part = slice(start, start + _CHUNK)
        first, next_one = columns[0, part].copy(), np.zeros(len(largest[part]), dtype=p.dtype)
        smaller = np.empty_like(first)
        for column in columns[1:, part]:
            np.minimum(first, column, out=smaller)
            np.maximum(next_one, smaller, out=next_one)
            np.maximum(first, column, out=first)
        largest[part], second[part] = first, next_one
    return largest, second


def _at_label(table: Array, codes: Array) -> Array:
    by_columns = isinstance(table, np.ndarray) and not table.flags.c_contiguous
    return at_label(table, codes) if by_columns else pick_columns(table, codes)
