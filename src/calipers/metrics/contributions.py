"""What each row adds to each criterion of efficiency: a handful of passes over the p-values."""

from __future__ import annotations

import numpy as np

from calipers.arrays import Array, as_numpy, count_along, namespace, pick_columns
from calipers.inputs.p_value_sets import P_VALUE_NOISE


def criterion_rows(p: Array, codes: Array, sets: Array) -> dict[str, Array]:
    """Kernel: what each row adds to each criterion, (n,) each."""
    xp = namespace(p)
    codes, first = xp.astype(codes, xp.int64), xp.argmax(p, axis=1)
    columns = xp.arange(int(p.shape[1]), dtype=first.dtype, device=p.device)[None, :]
    zero = xp.zeros((1, 1), dtype=p.dtype, device=p.device)
    second = xp.astype(xp.max(xp.where(columns == first[:, None], zero, p), axis=1), xp.float64)
    largest, own = (xp.astype(pick_columns(p, at), xp.float64) for at in (first, codes))
    total = xp.sum(p, axis=1, dtype=xp.float64)
    size = xp.astype(count_along(sets, axis=1), xp.float64)
    false_size = size - xp.astype(pick_columns(sets, codes), xp.float64)
    return {
        "S": total,
        "N": size,
        "U": second,
        "F": total - largest,
        "M": xp.astype(size > 1, xp.float64),
        "E": xp.clip(size - 1, min=0.0),
        # Without the true label the largest is the second when the truth was on top.
        "OU": xp.where(codes == first, second, largest),
        "OF": total - own,
        "OM": xp.astype(false_size > 0, xp.float64),
        "OE": false_size,
        "credibility": largest,
        "empty": xp.astype(size == 0, xp.float64),
    }


def criterion_gaps(first: dict[str, Array], second: dict[str, Array], p: Array) -> dict[str, np.ndarray]:
    """First minus second row by row, exactly 0 where rounding alone tells the two apart.

    p-values are counts over calibration rows: sums of them are equal, or differ by far more than rounding.
    """
    noise = int(p.shape[1]) * max(P_VALUE_NOISE, float(namespace(p).finfo(p.dtype).eps) / 2)
    gaps = {name: as_numpy(first[name]) - as_numpy(second[name]) for name in first}
    return {name: np.where(np.abs(gap) <= noise, 0.0, gap) for name, gap in gaps.items()}
