"""The exact law of the coverage of one predictor on a finite number of test rows.

A predictor that covers each row with probability 1 - alpha covers a binomial number of m test rows. A
split-conformal predictor does not: its coverage probability is itself random, Beta(k, n+1-k) with k
the rank of its threshold among n calibration scores, so its count of covered rows is
BetaBinomial(m, k, n+1-k). Both laws assume continuous scores; ties only add coverage.

Whole weights are repeated rows and have these laws, with m their sum. Importance weights have no such law
(`calipers.inputs.weights`); the interval of their share is that of `ShareCounts`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from calipers.exceptions import InputError
from calipers.inference.alternatives import Number, check_alternative
from calipers.inference.point_masses import log_binomial_mass, log_hypergeometric_mass
from calipers.inference.proportions import (
    Interval,
    binomial_lower_tail,
    binomial_upper_tail,
    combine_tails,
    tails_of_one,
)
from calipers.inputs import check_alpha, check_confidence, check_count

# Levels that differ by rounding only, such as 1 - 0.95 and 0.05, are the same level.
_ROUNDING = 1.0 + 1e-12
# Terms summed at once, and counts tried at once.
_CELLS = 1 << 18
_GRID = 17


@dataclass(frozen=True, slots=True)
class CoverageLaw:
    """Law of the number of covered rows among n, under the null that the predictor is sound.

    Parameters
    ----------
    n : int
        Test rows (the sum of whole weights).
    alpha : float
        Allowed miscoverage.
    n_calibration : int or None
        Rows the predictor was conformalised on. None: it covers each row with probability 1 - alpha.
    rank : int or None
        Rank of its threshold among them, ceil((n_calibration + 1)(1 - alpha)); needed with
        ``n_calibration``. At n_calibration + 1 the threshold is infinite and every row is covered.

    Raises
    ------
    InputError
        When n is not whole, alpha not in (0, 1), or the rank not in 1..n_calibration + 1.

    Notes
    -----
    Binomial tails are incomplete Beta functions. With N = n + n_calibration, the beta-binomial tail
    P(K <= j) equals P(H >= rank), H the number of calibration scores among the rank + j smallest of
    all N: a hypergeometric tail of about sqrt(min(n, n_calibration)) terms, summed from its largest term
    outwards. Relative precision is about 1e-11 up to 1e9 rows on either side.

    Examples
    --------
    >>> from calipers.inference import CoverageLaw
    >>> law = CoverageLaw(n=1000, alpha=0.1, n_calibration=99, rank=90)
    >>> law.share_interval(0.95)         # Binomial(1000, 0.9) would say [0.881, 0.918]
    Interval(low=0.831, high=0.953)
    >>> f"{law.p_value(870):.3f}"
    '0.339'
    """

    n: int
    alpha: float
    n_calibration: int | None = None
    rank: int | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "n", check_count(self.n, name="n", minimum=0))
        object.__setattr__(self, "alpha", check_alpha(self.alpha))
        if (self.n_calibration is None) != (self.rank is None):
            raise InputError("n_calibration and rank must be given together or not at all.")
        if self.n_calibration is not None:
            _check_rank(self.n_calibration, self.rank)

    @property
    def _degenerate(self) -> bool:
        return self.n_calibration is not None and self.rank == self.n_calibration + 1

    @property
    def probability(self) -> float:
        """Expected coverage: 1 - alpha, or rank / (n_calibration + 1)."""
        if self.n_calibration is None or self.rank is None:
            return 1.0 - self.alpha
        return self.rank / (self.n_calibration + 1)

    @property
    def mean(self) -> float:
        """Expected number of covered rows."""
        return self.n * self.probability

    @property
    def std(self) -> float:
        """Standard deviation of the number of covered rows."""
        p = self.probability
        if self.n_calibration is None:
            return float(np.sqrt(self.n * self.alpha * p))
        # Beta-binomial with a + b = n_calibration + 1.
        total = self.n_calibration + 1.0
        return float(np.sqrt(self.n * p * (1 - p) * (total + self.n) / (total + 1)))

    @property
    def share_std(self) -> float:
        """Standard deviation of the share of covered rows; NaN without rows."""
        return self.std / self.n if self.n else float("nan")

    def pmf(self, covered: Number) -> Number:
        """P(K = covered)."""
        j = np.asarray(covered, dtype=float)
        possible = (j >= 0) & (j <= self.n) & (j == np.floor(j))
        inner = np.where(possible, j, 0.0)
        return np.where(possible, self._mass(inner), 0.0)[()]

    def cdf(self, covered: Number) -> Number:
        """P(K <= covered)."""
        j, inner = self._counts(covered)
        if self._degenerate:
            tail = np.zeros(j.shape)
        elif self.n_calibration is None or self.rank is None:
            tail = binomial_lower_tail(inner, *self._trials(j.shape))
        else:
            tail = _beta_binomial_tails(inner, self.n, self.n_calibration, self.rank)[0]
        return _bounded(j, self.n, tail, below=0.0)[()]

    def sf(self, covered: Number) -> Number:
        """P(K > covered), to full precision where it is small."""
        j, inner = self._counts(covered)
        if self._degenerate:
            tail = np.ones(j.shape)
        elif self.n_calibration is None or self.rank is None:
            n, p, q = self._trials(j.shape)
            tail = binomial_upper_tail(np.minimum(inner + 1, n), n, p, q)
        else:
            tail = _beta_binomial_tails(inner, self.n, self.n_calibration, self.rank)[1]
        return _bounded(j, self.n, tail, below=1.0)[()]

    def p_value(self, covered: Number, alternative: str = "two-sided") -> Number:
        """Exact p-value of a count: one tail, or twice the smaller one (at most 1).

        The law is discrete, so the p-value is valid, P(p <= u) <= u, and not uniform.
        """
        check_alternative(alternative)
        if self.n_calibration is None and isinstance(covered, int) and 0 <= covered <= self.n:
            tails = tails_of_one(float(covered), float(self.n), 1.0 - self.alpha, self.alpha)
            return combine_tails(*tails, alternative)[()]
        covered = np.asarray(covered, dtype=float)
        below = np.ceil(covered) - 1.0
        if self._degenerate or self.n_calibration is None or self.rank is None:
            return combine_tails(self.cdf(covered), self.sf(below), alternative)[()]
        # Both tails in one sum: a single count costs as much as many.
        j, inner = self._counts(np.stack([covered, below]))
        lower, upper = _beta_binomial_tails(inner, self.n, self.n_calibration, self.rank)
        lower, upper = (
            _bounded(j[0], self.n, lower[0], below=0.0),
            _bounded(j[1], self.n, upper[1], below=1.0),
        )
        return combine_tails(lower, upper, alternative)[()]

    def interval(self, level: float = 0.95, alternative: str = "two-sided") -> Interval:
        """The counts with p-value above 1 - level: a band that holds at least ``level`` of the law.

        One-sided towards the alternative: "greater" cuts off large counts only, so its low end is 0.
        """
        return _band(self, check_confidence(level, name="level"), check_alternative(alternative))

    def share_interval(self, level: float = 0.95, alternative: str = "two-sided") -> Interval:
        """`interval` as shares of the rows; [0, 1] without rows."""
        if self.n == 0:
            return Interval(0.0, 1.0)
        low, high = self.interval(level, alternative)
        return Interval(low / self.n, high / self.n)

    def rvs(self, generator: np.random.Generator, size: int | tuple[int, ...] | None = None) -> Number:
        """Draws of the number of covered rows."""
        if self.n_calibration is None or self.rank is None:
            return generator.binomial(self.n, 1.0 - self.alpha, size)
        return generator.binomial(self.n, CalibrationLaw(self.n_calibration, self.rank).rvs(generator, size))

    def _mass(self, j: np.ndarray) -> np.ndarray:
        if self._degenerate:
            return np.asarray(j == self.n, dtype=float)
        if self.n_calibration is None or self.rank is None:
            return np.asarray(np.exp(log_binomial_mass(j, self.n, 1.0 - self.alpha, self.alpha)))
        k = float(self.rank)
        # The threshold is the last of the rank + j smallest scores: k of k + j equally likely places.
        log_mass = log_hypergeometric_mass(k, self.n_calibration, self.n, k + j)
        return np.asarray(np.exp(log_mass) * k / (k + j))

    def _first(self, holds: Callable[[np.ndarray], np.ndarray], level: float) -> int:
        """The smallest count in 0..n where a condition that stays true holds; n if it never does.

        The search starts around the normal quantile at ``level`` and is exact wherever it starts.
        """
        low, high = 0, self.n
        near = max(8.0, self.std / 4)
        guess = float(np.clip(self.mean + self.std * special.ndtri(level), 0, self.n))
        ends = max(guess - near, 0), min(guess + near, self.n - 1)
        while low < high:
            # Many counts per round: the tails are vectorised, and the rounds are few.
            size = min(_GRID, int(ends[1]) - int(ends[0]) + 1)
            grid = np.unique(np.linspace(*ends, size).astype(np.int64))
            found = int(np.sum(~holds(grid)))
            low = int(grid[found - 1]) + 1 if found else low
            high = int(grid[found]) if found < grid.size else high
            ends = low, high - 1
        return low

    def _counts(self, covered: Number) -> tuple[np.ndarray, np.ndarray]:
        """Whole counts, and the same inside 0..n."""
        j = np.floor(np.asarray(covered, dtype=float))
        return j, np.clip(np.where(np.isnan(j), 0.0, j), 0.0, self.n)

    def _trials(self, shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Trials, chance of success and of failure of the binomial law."""
        q = np.full(shape, self.alpha)
        return np.full(shape, float(self.n)), 1.0 - q, q


@lru_cache(maxsize=256)
def _band(law: CoverageLaw, level: float, alternative: str) -> Interval:
    """`CoverageLaw.interval`; kept, because the search takes longer than all else about a small table."""
    tail = (1.0 - level) / (2 if alternative == "two-sided" else 1)
    low, high = 0, law.n
    if alternative != "greater":
        low = law._first(lambda j: law.cdf(j) > tail * _ROUNDING, tail)
    if alternative != "less":
        high = law._first(lambda j: law.sf(j) <= tail * _ROUNDING, 1.0 - tail)
    return Interval(low, high)


@dataclass(frozen=True, slots=True)
class CalibrationLaw:
    """Law of the coverage probability of a split-conformal predictor over calibration sets.

    Parameters
    ----------
    n_calibration : int
        Calibration rows.
    rank : int
        Rank of the threshold among them; at n_calibration + 1 the coverage is always 1.

    Notes
    -----
    Beta(rank, n_calibration + 1 - rank) for continuous scores; with ties the coverage is at least that.

    Examples
    --------
    >>> from calipers.inference import CalibrationLaw
    >>> law = CalibrationLaw(n_calibration=99, rank=90)
    >>> law.mean
    0.9
    >>> print("{:.3f} {:.3f}".format(*law.interval(0.95)))
    0.834 0.950
    """

    n_calibration: int
    rank: int

    def __post_init__(self) -> None:
        _check_rank(self.n_calibration, self.rank)

    @property
    def _shape(self) -> tuple[float, float]:
        return float(self.rank), float(self.n_calibration + 1 - self.rank)

    @property
    def mean(self) -> float:
        """Expected coverage."""
        return self.rank / (self.n_calibration + 1)

    @property
    def std(self) -> float:
        """Standard deviation of the coverage over calibration sets."""
        return float(np.sqrt(self.mean * (1 - self.mean) / (self.n_calibration + 2)))

    def cdf(self, coverage: Number) -> Number:
        """P(coverage probability <= coverage)."""
        x, (a, b) = np.clip(np.asarray(coverage, dtype=float), 0.0, 1.0), self._shape
        return (np.where(x < 1, 0.0, 1.0) if b == 0 else special.betainc(a, b, x))[()]

    def sf(self, coverage: Number) -> Number:
        """P(coverage probability > coverage)."""
        x, (a, b) = np.clip(np.asarray(coverage, dtype=float), 0.0, 1.0), self._shape
        return (np.where(x < 1, 1.0, 0.0) if b == 0 else special.betaincc(a, b, x))[()]

    def density(self, coverage: Number) -> Number:
        """Density of the coverage probability inside (0, 1); not for a coverage that is always 1."""
        x, (a, b) = np.asarray(coverage, dtype=float), self._shape
        return np.exp(special.xlogy(a - 1, x) + special.xlog1py(b - 1, -x) - special.betaln(a, b))[()]

    def quantile(self, level: Number) -> Number:
        """The coverage that a share ``level`` of calibration sets stays below."""
        level, (a, b) = np.asarray(level, dtype=float), self._shape
        return np.asarray(1.0 + 0.0 * level if b == 0 else special.betaincinv(a, b, level))[()]

    def interval(self, level: float = 0.95) -> Interval:
        """Equal-tailed band that holds ``level`` of calibration sets."""
        tail = (1.0 - check_confidence(level, name="level")) / 2
        return Interval(float(self.quantile(tail)), float(self.quantile(1.0 - tail)))

    def rvs(self, generator: np.random.Generator, size: int | tuple[int, ...] | None = None) -> Number:
        """Draws of the coverage probability."""
        a, b = self._shape
        if b == 0:
            return np.ones(() if size is None else size)[()]
        return generator.beta(a, b, size)


def _check_rank(n_calibration: int, rank: int | None) -> None:
    check_count(n_calibration, name="n_calibration")
    if rank is None or not 1 <= check_count(rank, name="rank") <= n_calibration + 1:
        raise InputError(
            f"rank must be a whole number from 1 to n_calibration + 1 = {n_calibration + 1}, got {rank}."
        )


def _bounded(j: np.ndarray, n: int, tail: np.ndarray, *, below: float) -> np.ndarray:
    """The tail, with its value below 0 and from n on, and NaN where the count is NaN."""
    tail = np.where(j < 0, below, np.where(j >= n, 1.0 - below, tail))
    return np.where(np.isnan(j), np.nan, tail)


def _beta_binomial_tails(
    j: np.ndarray, n: int, n_calibration: int, rank: int
) -> tuple[np.ndarray, np.ndarray]:
    """P(K <= j) and P(K > j): the smaller side is summed, the other is its complement."""
    draws = rank + j.ravel()
    upward = rank > draws * (n_calibration / (n + n_calibration))
    tail = np.empty(draws.shape)
    for up in (True, False):
        if not (rows := upward == up).any():
            continue
        tail[rows] = _hypergeometric_tail(rank if up else rank - 1, n_calibration, n, draws[rows], up=up)
    tail = np.minimum(tail, 1.0)
    lower = np.where(upward, tail, 1.0 - tail).reshape(j.shape)
    upper = np.where(upward, 1.0 - tail, tail).reshape(j.shape)
    return lower, upper


def _hypergeometric_tail(
    start: int, marked: int, unmarked: int, draws: np.ndarray, *, up: bool
) -> np.ndarray:
    """P(H >= start) or P(H <= start), summed away from the mode until the terms vanish."""
    term = np.asarray(np.exp(log_hypergeometric_mass(start, marked, unmarked, draws)))
    total, active, h = term.copy(), np.flatnonzero(term > 0), float(start)
    while active.size:
        width = max(16, min(_CELLS // active.size, 16 + int(8 * np.sqrt(min(marked, unmarked)))))
        steps, d = h + np.arange(width) * (1 if up else -1), draws[active, None]
        # P(H = h+1) / P(H = h), and its reciprocal shifted by one on the way down; 0 past the support.
        if up:
            ratio = (marked - steps) * (d - steps) / ((steps + 1) * (unmarked - d + steps + 1))
        else:
            ratio = steps * (unmarked - d + steps) / ((marked - steps + 1) * (d - steps + 1))
        terms = term[active, None] * np.cumprod(np.maximum(ratio, 0.0), axis=1)
        total[active] += terms.sum(axis=1)
        term[active] = terms[:, -1]
        h += width if up else -width
        active = active[terms[:, -1] > total[active] * 1e-18]
    return total
