"""The set of every row: the labels whose p-value exceeds alpha."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.arrays import Array, namespace, on_device_of
from calipers.exceptions import InputError
from calipers.inputs.levels import check_alphas, exact_level

# p-values are counts divided by n + 1: two different ones are never as close as this.
P_VALUE_NOISE = 1e-12


def sets_at(p: Array, alpha: Any) -> Array:
    """``p > alpha`` for one level, or one per label; alpha in the precision of p, above its noise.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs import sets_at
    >>> sets_at(np.array([[0.1, 0.3]]), 0.1)
    array([[False,  True]])
    """
    return p > level_floors(p, alpha)[None, :]


def level_floors(p: Array, alpha: Any) -> Array:
    """What a p-value must exceed to be in the set: (1,) or one per label, in the precision of p."""
    levels, single = check_alphas(alpha)
    if not single and len(levels) != int(p.shape[1]):
        raise InputError(
            f"alpha must be one level or one per label ({p.shape[1]}), got {len(levels)}. "
            "For several levels use efficiency_curve."
        )
    exact = np.array([float(exact_level(a)) for a in levels]) + P_VALUE_NOISE
    if isinstance(p, np.ndarray):
        return exact.astype(p.dtype)
    if single:  # made on the device, not copied to it
        return namespace(p).full((1,), float(exact[0]), dtype=p.dtype, device=p.device)
    return namespace(p).astype(on_device_of(exact, p), p.dtype)
