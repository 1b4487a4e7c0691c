"""A significance level for every label (efficiency paper, section 9): sets at each of the levels."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from calipers.arrays import Array, namespace
from calipers.inputs import check_alphas
from calipers.inputs.levels import check_label_alpha


def levels_by_label(
    alpha: Any, label_alpha: Any, labels: Iterable[Any]
) -> tuple[tuple[Any, ...], np.ndarray | None]:
    """The levels at which sets are needed, and which of them belongs to every label.

    The second is None for a list of levels, and all zero for a single one.

    Examples
    --------
    >>> from calipers.conformal.label_levels import levels_by_label
    >>> levels, place = levels_by_label(0.1, [0.2, 0.05, 0.2], "abc")
    >>> levels, place.tolist()
    ((Fraction(1, 20), Fraction(1, 5)), [1, 0, 1])
    """
    if label_alpha is None:
        levels, single = check_alphas(alpha)
        return levels, np.zeros(len(list(labels)), dtype=np.int64) if single else None
    given = check_label_alpha(label_alpha, labels)
    distinct: tuple[Fraction, ...] = tuple(sorted(set(given)))
    return distinct, np.array([distinct.index(level) for level in given])


def one_level_per_label(sets: Array, columns: np.ndarray | None) -> Array:
    """From sets (n, K, L) the column of every label at its own level, (n, K); None changes nothing."""
    if columns is None:
        return sets
    if not columns.any():
        return sets[:, :, 0]
    xp = namespace(sets)
    return xp.stack([sets[:, k, int(place)] for k, place in enumerate(columns)], axis=1)
