"""The exact law of the least coverage over several strata."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from calipers.inference.coverage_law import CalibrationLaw, CoverageLaw
from calipers.inference.null_law import NullLaw
from calipers.inference.poisson_binomial import PoissonBinomialLaw
from calipers.inference.strata_law import StrataLaw

_ROUNDING = 1.0 + 1e-12
_TIE = 1e-9


class MinimumLaw(NullLaw):
    """Law of min over strata of K_b / n_b - target_b.

    Parameters
    ----------
    laws : sequence of CoverageLaw or PoissonBinomialLaw
        Law of the covered count of each stratum.
    target : float, or sequence with one per stratum
        What is taken off each share; 0 for the law of the least share itself.
    threshold : CalibrationLaw or None
        The law of the coverage that all strata share, when one calibration sample set one threshold for all.

    Notes
    -----
    P(min > x) is the product over strata of P(K_b > n_b (target_b + x)), or its mean over calibration
    samples.

    Examples
    --------
    >>> from calipers.inference import CoverageLaw
    >>> from calipers.inference.minimum_law import MinimumLaw
    >>> law = MinimumLaw([CoverageLaw(4, 0.2), CoverageLaw(2, 0.2)], 0.0)
    >>> round(law.p_value(0.5, "less"), 4)             # 1 - P(K_1 > 2) P(K_2 > 1) = 1 - 0.8192 * 0.64
    0.4757
    """

    __slots__ = ("_strata",)

    def __init__(
        self,
        laws: Sequence[CoverageLaw | PoissonBinomialLaw],
        target: float | Sequence[float],
        *,
        threshold: CalibrationLaw | None = None,
    ) -> None:
        targets = np.broadcast_to(np.asarray(target, dtype=float), (len(laws),)).tolist()
        self._strata = StrataLaw(laws, targets, threshold)

    def __repr__(self) -> str:
        return f"MinimumLaw({self._strata.sizes.size} distinct strata)"

    def _at_most(self, x: float, *, closed: bool) -> float:
        """P(min <= x), or P(min < x) where x itself is not counted."""
        n, limit = self._strata.sizes, self._strata.sizes * (self._strata.offsets + x)
        # The first count above x (or from x on): a stratum with fewer is at most (below) x.
        first = np.floor(limit + _TIE) + 1 if closed else np.ceil(limit - _TIE)
        return float(self._strata.outside(np.clip(first, 0.0, n + 1), n))

    def _tail(self, observed: float, *, upper: bool, share: float) -> float:
        below, at_most = self._at_most(observed, closed=False), self._at_most(observed, closed=True)
        tied = share * (at_most - below)
        return min(1.0, (1.0 - at_most if upper else below) + tied)

    def _point(self, tail: float, *, upper: bool) -> float:
        atoms = np.unique(
            np.concatenate(
                [
                    np.arange(int(n) + 1) / n - offset
                    for n, offset in zip(self._strata.sizes, self._strata.offsets, strict=True)
                ]
            )
        )
        first, last = 0, len(atoms) - 1
        limit = 1.0 - tail if upper else tail
        while first < last:  # the first atom x with P(min <= x) above the limit
            middle = (first + last) // 2
            if self._at_most(float(atoms[middle]), closed=True) > limit * _ROUNDING:
                last = middle
            else:
                first = middle + 1
        return float(atoms[first])
