"""The size of predictions at a coverage that was asked for, with the noise of the threshold in it.

Predictions that cover more often are larger, so sizes are compared at equal coverage. A family of
predictions has one threshold: an outcome is covered when its score is at most the threshold, and a larger
threshold gives larger predictions. At the threshold that covers the wanted share of the rows, the mean size
is known up to two errors: that of the mean, and that of the threshold. Both are in the contributions below
(the influence function of the mean size at matched coverage), so paired tests of them are tests at equal
coverage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import special

from calipers.inputs import Weights

# A level is reached when it is missed by rounding only.
_ROUNDING = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class Family:
    """Predictions of every size, nested in one threshold.

    Parameters
    ----------
    scores : array (n,)
        Score of what happened; it is covered when that is at most the threshold.
    sizes : callable
        ``sizes(threshold)`` gives the size of every row's prediction, (n,).
    """

    scores: np.ndarray
    sizes: Callable[[float], np.ndarray]

    def covered(self, threshold: float) -> np.ndarray:
        """Which rows are covered at a threshold."""
        return np.asarray(self.scores <= threshold)


@dataclass(frozen=True, slots=True, eq=False)
class MatchedSize:
    """Sizes at a wanted coverage.

    Parameters
    ----------
    threshold : float
        Where the wanted share of the rows is covered.
    rate : float
        Size per unit of coverage there.
    sizes, covered : array (n,)
        Of every row at the threshold.
    contributions : array (n,)
        Their mean is the mean size at the wanted coverage, and their spread its error, threshold included.
    """

    threshold: float
    rate: float
    sizes: np.ndarray
    covered: np.ndarray
    contributions: np.ndarray


def scaled_intervals(y: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> Family:
    """Intervals scaled around their middles.

    Examples
    --------
    >>> import numpy as np
    >>> family = scaled_intervals(np.array([0.5, 3.0]), np.array([-1.0, 0.0]), np.array([1.0, 2.0]))
    >>> family.scores.tolist(), family.sizes(2.0).tolist()
    ([0.5, 2.0], [4.0, 4.0])
    """
    half, distance = (upper - lower) / 2, np.abs(y - (lower + upper) / 2)
    with np.errstate(divide="ignore", invalid="ignore"):
        scores = np.where(distance == 0, 0.0, distance / half)
    return Family(scores, lambda threshold: 2 * half * threshold)


def label_sets(scores: np.ndarray, y: np.ndarray) -> Family:
    """Sets of the labels whose score, one per row and label, is at most the threshold.

    Examples
    --------
    >>> import numpy as np
    >>> family = label_sets(np.array([[0.1, 0.9], [0.6, 0.4]]), np.array([0, 0]))
    >>> family.scores.tolist(), family.sizes(0.5).tolist()
    ([0.1, 0.6], [1.0, 1.0])
    """
    own = scores[np.arange(len(y)), y]
    return Family(own, lambda threshold: np.count_nonzero(scores <= threshold, axis=1).astype(float))


def match_coverage(family: Family, wanted: float, weights: np.ndarray | None = None) -> MatchedSize | None:
    """The sizes at the threshold that covers the wanted share; None where no finite one does.

    Notes
    -----
    The rate is a difference quotient over the coverage on both sides, at the distance of Hall and Sheather
    (1988) for the slope of a quantile. With Z_i whether row i is covered, the contribution of a row is
    ``size_i + rate (wanted - Z_i)``.
    """
    order = np.argsort(family.scores, kind="stable")
    ranked = family.scores[order]
    mass = np.ones(len(ranked)) if weights is None else weights[order]
    total = np.cumsum(mass)
    effective = len(ranked) if weights is None else float(Weights.of(weights).effective)

    def threshold_at(share: float) -> float:
        at = np.searchsorted(total, share * total[-1] * (1 - _ROUNDING), side="left")
        return float(ranked[min(int(at), len(ranked) - 1)])

    threshold, reach = threshold_at(wanted), _reach(effective, wanted)
    low, high = threshold_at(wanted - reach), threshold_at(wanted + reach)
    if not np.isfinite([low, threshold, high]).all():
        return None
    (small, rarely), (large, often) = (
        (np.average(family.sizes(at), weights=weights), np.average(family.covered(at), weights=weights))
        for at in (low, high)
    )
    rate = float((large - small) / (often - rarely)) if often > rarely else 0.0
    sizes, covered = family.sizes(threshold), family.covered(threshold)
    return MatchedSize(threshold, rate, sizes, covered, sizes + rate * (wanted - covered))


def _reach(n: float, level: float) -> float:
    """Distance in coverage over which a slope is taken, from Hall and Sheather; inside (0, 1)."""
    z = float(special.ndtri(level))
    density = np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    reach = n ** (-1 / 3) * 1.96 ** (2 / 3) * (1.5 * density**2 / (2 * z * z + 1)) ** (1 / 3)
    return float(min(max(reach, 1.0 / n), 0.9 * level, 0.9 * (1 - level)))
