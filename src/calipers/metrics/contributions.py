"""What each row adds to each criterion of efficiency: a handful of passes over the p-values."""

from __future__ import annotations

from calipers.arrays import Array, count_along, namespace, pick_columns


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
