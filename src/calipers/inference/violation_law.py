"""The exact law of the largest gap between coverage and its target over several strata."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from calipers.exceptions import InputError
from calipers.inference.coverage_law import CalibrationLaw, CoverageLaw
from calipers.inference.null_law import NullLaw
from calipers.inference.poisson_binomial import PoissonBinomialLaw
from calipers.inference.strata_law import StrataLaw

_ROUNDING = 1.0 + 1e-12
# Points tried at once, and how close to an atom the search comes before it takes the nearest one.
_GRID, _CELLS = 7, 1 << 12
_PRECISION = 1e-10
# Readings whose tails are remembered.
_KEPT_TAILS = 1 << 10
SIDES = ("both", "under", "over")


class ViolationLaw(NullLaw):
    """Law of max over strata of |K_b / n_b - target|, the K_b independent with known laws.

    It is what T-CV, SSCV and ESCV read when every stratum is covered as promised: not 0, but the
    largest of many small deviations.

    Parameters
    ----------
    laws : sequence of CoverageLaw or PoissonBinomialLaw
        Law of the covered count of each stratum; strata without rows are passed over.
    target : float, or sequence with one per stratum
        The promised coverage.
    side : {"both", "under", "over"}
        Whether a gap in either direction counts, or only covering too little, or too much.
    threshold : CalibrationLaw or None
        The law of the coverage that all strata share, when one calibration sample set one threshold for all.

    Raises
    ------
    InputError
        When no stratum has rows.

    Notes
    -----
    P(T <= x) is the product over strata of P(abs(K_b - n_b target) <= n_b x). Nothing is enumerated: a
    tail costs one evaluation per distinct law, an end of the band some fifty. Tails keep their digits when
    they are small.

    Examples
    --------
    >>> from calipers.inference import CoverageLaw, ViolationLaw
    >>> law = ViolationLaw([CoverageLaw(400, 0.1)] * 50, 0.9)      # 50 bins of 400 rows
    >>> round(law.quantile(0.5), 4), round(law.band(0.95).high, 4)
    (0.0375, 0.05)
    """

    __slots__ = ("_points", "_side", "_strata", "_tails", "_text")

    def __init__(
        self,
        laws: Sequence[CoverageLaw | PoissonBinomialLaw],
        target: float | Sequence[float],
        *,
        side: str = "both",
        threshold: CalibrationLaw | None = None,
    ) -> None:
        if side not in SIDES:
            raise InputError(f'side must be "both", "under" or "over", got {side!r}.')
        targets = np.broadcast_to(np.asarray(target, dtype=float), (len(laws),)).tolist()
        self._strata, self._side = StrataLaw(laws, targets, threshold), side
        distinct = np.unique(self._strata.offsets)
        self._text = f"target {distinct[0]:g}" if distinct.size == 1 else f"{distinct.size} targets"
        self._points: dict[tuple[float, bool], float] = {}
        self._tails: dict[float, tuple[float, float]] = {}

    def __repr__(self) -> str:
        return f"ViolationLaw({self._strata.sizes.size} distinct strata, {self._text})"

    def quantile(self, level: float) -> float:
        """The smallest value that at least ``level`` of the law does not exceed."""
        return self._point(1.0 - level, upper=True)

    def _allowed(self, x: np.ndarray, *, closed: bool) -> tuple[np.ndarray, np.ndarray]:
        """First and last count whose gap is at most x (closed) or below x."""
        n, target = self._strata.sizes, self._strata.offsets
        slack = 1e-9 + 1e-14 * n
        low, high = n * (target - x), n * (target + x)
        if closed:
            first, last = np.ceil(low - slack), np.floor(high + slack)
        else:
            first, last = np.floor(low + slack) + 1, np.ceil(high - slack) - 1
        # A gap on the side that does not count is 0, and 0 is below x unless x is 0.
        free = closed | (x > 0)
        if self._side == "under":
            last = np.where(free, n, last)
        if self._side == "over":
            first = np.where(free, 0.0, first)
        return np.maximum(first, 0.0), np.minimum(last, n)

    def _exceeds(self, x: np.ndarray | float, *, closed: bool) -> np.ndarray:
        """P(T > x) when x itself is allowed (closed), else P(T >= x), for a search; x in one dimension."""
        grid = np.atleast_1d(np.asarray(x, dtype=float))[:, None]
        return self._strata.outside(*self._allowed(grid, closed=closed), small=False)

    def _tail(self, observed: float, *, upper: bool, share: float) -> float:
        # The measure is discrete: a study reads the same few values again and again.
        if observed not in self._tails:
            if len(self._tails) >= _KEPT_TAILS:
                self._tails.clear()
            self._tails[observed] = self._tails_at(observed)
        beyond, at_least = self._tails[observed]
        tied = share * (at_least - beyond)
        return min(1.0, (beyond if upper else 1.0 - at_least) + tied)

    def _tails_at(self, observed: float) -> tuple[float, float]:
        """P(T > observed) and P(T >= observed), in one evaluation."""
        x = np.array([[observed]])
        allowed = (self._allowed(x, closed=True), self._allowed(x, closed=False))
        first, last = (np.concatenate(ends) for ends in zip(*allowed, strict=True))
        beyond, at_least = self._strata.outside(first, last).tolist()
        return beyond, at_least

    def _point(self, tail: float, *, upper: bool) -> float:
        if (tail, upper) not in self._points:
            self._points[tail, upper] = self._search(tail * _ROUNDING, upper=upper)
        return self._points[tail, upper]

    def _search(self, limit: float, *, upper: bool) -> float:
        # Many points per round: a tail is vectorised, and the rounds are few; one where points are costly.
        width = int(np.clip(_CELLS // self._strata.sizes.size, 1, _GRID)) if self._strata.has_tables else 1
        if upper:  # smallest atom with P(T > atom) <= limit
            return self._nearest_atom(_bisect(lambda x: self._exceeds(x, closed=True) <= limit, width))
        # largest atom with P(T < atom) <= limit
        return self._nearest_atom(_bisect(lambda x: 1.0 - self._exceeds(x, closed=False) > limit, width))

    def _nearest_atom(self, x: float) -> float:
        n, target = self._strata.sizes, self._strata.offsets
        counts = np.rint(np.stack([n * (target - x), n * (target + x)]))
        gaps = np.clip(counts / n, 0.0, 1.0) - target
        if self._side == "both":
            atoms = np.abs(gaps)
        else:
            atoms = np.maximum(-gaps if self._side == "under" else gaps, 0.0)
        return float(atoms.flat[np.argmin(np.abs(atoms - x))])


def _bisect(holds: Callable[[np.ndarray], np.ndarray], width: int) -> float:
    """The point of [0, 1] from which on a condition that stays true holds; 1 if it never does.

    Each round tries ``width`` points at once.
    """
    low, high = 0.0, 1.0
    if holds(np.array([0.0]))[0]:
        return 0.0
    while high - low > _PRECISION:
        grid = np.linspace(low, high, width + 2)[1:-1]
        found = holds(grid)
        first = int(np.argmax(found)) if found.any() else width
        low, high = (
            float(grid[first - 1]) if first > 0 else low,
            float(grid[first]) if first < width else high,
        )
    return high
