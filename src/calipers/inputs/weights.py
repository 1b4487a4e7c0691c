"""What weights mean: decided here, by value, over all rows, and nowhere else.

Weights that are all whole numbers are compressed repeated rows: every number, error bar and p-value is that
of the rows written out. All other weights are importance weights: point estimates do not depend on their
scale, error bars are linearised, and there is no exact test. One weight that is not whole decides for all
rows, whatever block it came in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from calipers.arrays import short_repr
from calipers.exceptions import InputError
from calipers.inputs.row_checks import LARGEST_COUNT, check_weights

# The reason to report where a p-value is missing because of the weights.
NO_EXACT_LAW = (
    "weights that are not whole numbers are importance weights: there is no exact law, so there is no test"
)


@dataclass(frozen=True, slots=True, eq=False)
class Weights:
    """Weights of entries, each of which is one row or all rows that are equal to it.

    Parameters
    ----------
    mass : float64 array of shape (n,)
        Sum of the weights of the rows of each entry.
    squares : float64 array of shape (n,)
        Sum of their squared weights.
    whole : bool
        Whether every weight was a whole number.

    Examples
    --------
    >>> from calipers.inputs import Weights
    >>> Weights.check([2, 1, 1], 3).effective, round(Weights.check([0.2, 0.1, 0.1], 3).effective, 4)
    (4.0, 2.6667)
    """

    mass: np.ndarray
    squares: np.ndarray
    whole: bool

    __repr__ = short_repr

    @classmethod
    def check(cls, sample_weight: Any, n: int) -> Weights | None:
        """Checked weights of n rows; None when every row counts once."""
        if isinstance(sample_weight, cls):
            return sample_weight
        weights = check_weights(sample_weight, n)
        if weights is None:
            return None
        found = cls.of(weights)
        if found.whole and found.total > LARGEST_COUNT:
            raise InputError(
                f"sample_weight sums to {found.total:.4g}; whole weights are repeated rows, of which at most "
                f"{LARGEST_COUNT:.0g} are counted. Divide it by a constant."
            )
        return found

    @classmethod
    def of(cls, weights: np.ndarray) -> Weights:
        """The weights of rows that have been checked."""
        return cls(weights, weights * weights, are_whole(weights))

    def __len__(self) -> int:
        return len(self.mass)

    @property
    def noise(self) -> np.ndarray:
        """What each entry adds to a variance: its rows (repetitions), else its squared weights."""
        return self.mass if self.whole else self.squares

    @property
    def total(self) -> float:
        """Sum of all weights."""
        return float(self.mass.sum())

    @property
    def effective(self) -> float:
        """Rows of equal weight that carry as much information; the rows themselves when weights are whole."""
        return effective_size(self.total, float(self.squares.sum()), whole=self.whole)

    @property
    def repetitions(self) -> np.ndarray | None:
        """How often each entry counts, as integers; None for importance weights."""
        return self.mass.astype(np.int64) if self.whole else None

    def take(self, rows: np.ndarray | slice) -> Self:
        """The weights of some entries; what they mean was decided by all."""
        return type(self)(self.mass[rows], self.squares[rows], self.whole)


def are_whole(weights: np.ndarray | None) -> bool:
    """Whether every weight is a whole number; no weights mean that each row counts once.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.weights import are_whole
    >>> are_whole(np.array([2.0, 0.0])), are_whole(np.array([0.5, 0.5])), are_whole(None)
    (True, False, True)
    """
    return weights is None or bool(np.all(weights == np.floor(weights)))


def effective_size(total: float, squares: float, *, whole: bool) -> float:
    """Kish's effective sample size, total^2 / squares; the total where weights are repetitions."""
    if whole:
        return total
    return total * total / squares if squares > 0 else 0.0


def repetitions(weights: np.ndarray) -> np.ndarray | None:
    """The weights as integers when every one of them is whole, else None.

    Parameters
    ----------
    weights : array
        Non-negative weights of the rows.

    Returns
    -------
    array of int, or None
        None: these are importance weights, and `NO_EXACT_LAW` says what that means for a test.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import repetitions
    >>> repetitions(np.array([2.0, 1.0])).tolist(), repetitions(np.array([0.5, 0.5]))
    ([2, 1], None)
    """
    weights = np.asarray(weights)
    return weights.astype(np.int64) if are_whole(weights) else None
