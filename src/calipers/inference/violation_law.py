"""The exact law of the largest gap between coverage and its target over several strata."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from calipers.exceptions import InputError
from calipers.inference.coverage_law import CoverageLaw
from calipers.inference.null_law import NullLaw
from calipers.inference.proportions import binomial_lower_tail, binomial_upper_tail

_ROUNDING = 1.0 + 1e-12
# Points tried at once, and how close to an atom the search comes before it takes the nearest one.
_GRID, _CELLS = 7, 1 << 12
_PRECISION = 1e-10
_TABLE_ROWS = 1 << 18
SIDES = ("both", "under", "over")


class ViolationLaw(NullLaw):
    """Law of max over strata of |K_b / n_b - target|, the K_b independent with known laws.

    It is what T-CV, SSCV and ESCV read when every stratum is covered as promised: not 0, but the
    largest of many small deviations.

    Parameters
    ----------
    laws : sequence of CoverageLaw
        Law of the covered count of each stratum; strata without rows are passed over.
    target : float
        The promised coverage.
    side : {"both", "under", "over"}
        Whether a gap in either direction counts, or only covering too little, or too much.

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

    __slots__ = ("_binomial", "_others", "_points", "_side", "_sizes", "_target")

    def __init__(self, laws: Sequence[CoverageLaw], target: float, *, side: str = "both") -> None:
        if side not in SIDES:
            raise InputError(f'side must be "both", "under" or "over", got {side!r}.')
        counted = Counter(law for law in laws if law.n > 0)
        if not counted:
            raise InputError("laws must hold at least one stratum with rows, got none.")
        plain = [(law.n, law.alpha, times) for law, times in counted.items() if law.n_calibration is None]
        self._binomial = np.array(plain, dtype=float).reshape(-1, 3).T
        self._others = [
            (law.n, times, *_tails(law)) for law, times in counted.items() if law.n_calibration is not None
        ]
        self._sizes = np.array([law.n for law in counted], dtype=float)
        self._target, self._side = float(target), side
        self._points: dict[tuple[float, bool], float] = {}

    def __repr__(self) -> str:
        return f"ViolationLaw({self._sizes.size} distinct strata, target {self._target:g})"

    def quantile(self, level: float) -> float:
        """The smallest value that at least ``level`` of the law does not exceed."""
        return self._point(1.0 - level, upper=True)

    def _allowed(self, n: np.ndarray, x: np.ndarray, *, closed: bool) -> tuple[np.ndarray, np.ndarray]:
        """First and last count whose gap is at most x (closed) or below x."""
        slack = 1e-9 + 1e-14 * n
        low, high = n * (self._target - x), n * (self._target + x)
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
        """P(T > x) when x itself is allowed (closed), else P(T >= x); x in one dimension."""
        grid = np.atleast_1d(np.asarray(x, dtype=float))[:, None]
        n, alpha, times = self._binomial
        first, last = self._allowed(n, grid, closed=closed)
        below = binomial_lower_tail(np.maximum(first - 1, 0), n, 1.0 - alpha, alpha)
        above = binomial_upper_tail(np.minimum(last + 1, n), n, 1.0 - alpha, alpha)
        outside = np.where(first > 0, below, 0.0) + np.where(last < n, above, 0.0)
        log_inside = _log_inside(np.where(last < first, 1.0, outside), times)
        for size, repeats, below_of, above_of in self._others:
            low, high = self._allowed(np.array([float(size)]), grid, closed=closed)
            beyond = below_of(low) + above_of(np.maximum(high, 0.0))
            log_inside += _log_inside(np.where(high < low, 1.0, beyond), np.array([repeats]))
        return np.asarray(-np.expm1(log_inside))

    def _tail(self, observed: float, *, upper: bool, share: float) -> float:
        beyond = float(self._exceeds(observed, closed=True)[0])
        at_least = float(self._exceeds(observed, closed=False)[0])
        tied = share * (at_least - beyond)
        return min(1.0, (beyond if upper else 1.0 - at_least) + tied)

    def _point(self, tail: float, *, upper: bool) -> float:
        if (tail, upper) not in self._points:
            self._points[tail, upper] = self._search(tail * _ROUNDING, upper=upper)
        return self._points[tail, upper]

    def _search(self, limit: float, *, upper: bool) -> float:
        # Many points per round: a tail is vectorised, and the rounds are few.
        width = int(np.clip(_CELLS // self._sizes.size, 1, _GRID))
        if upper:  # smallest atom with P(T > atom) <= limit
            return self._nearest_atom(_bisect(lambda x: self._exceeds(x, closed=True) <= limit, width))
        # largest atom with P(T < atom) <= limit
        return self._nearest_atom(_bisect(lambda x: 1.0 - self._exceeds(x, closed=False) > limit, width))

    def _nearest_atom(self, x: float) -> float:
        counts = np.rint(self._sizes * np.array([[self._target - x], [self._target + x]]))
        gaps = np.clip(counts / self._sizes, 0.0, 1.0) - self._target
        if self._side == "both":
            atoms = np.abs(gaps)
        else:
            atoms = np.maximum(-gaps if self._side == "under" else gaps, 0.0)
        return float(atoms.flat[np.argmin(np.abs(atoms - x))])


def _tails(law: CoverageLaw) -> tuple[Callable[[np.ndarray], np.ndarray], Callable[[np.ndarray], np.ndarray]]:
    """P(K < j) and P(K > j) as functions of j in 0..n, tabulated where the table is small."""
    if law.n > _TABLE_ROWS:
        return lambda j: np.asarray(law.cdf(j - 1)), lambda j: np.asarray(law.sf(j))
    mass = np.asarray(law.pmf(np.arange(law.n + 1)))
    # Summed from each end, so that small tails keep their digits.
    below = np.concatenate([[0.0], np.cumsum(mass)])
    above = np.concatenate([np.cumsum(mass[::-1])[::-1], [0.0]])
    return lambda j: below[j.astype(np.int64)], lambda j: above[j.astype(np.int64) + 1]


def _log_inside(outside: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Sum over strata of times * log(1 - outside); -inf where a stratum cannot be inside."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.sum(times * np.log1p(-np.minimum(outside, 1.0)), axis=1))


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
