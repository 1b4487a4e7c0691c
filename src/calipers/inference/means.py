"""Means of contributions, with standard error, interval and test.

Whole weights are repeated rows: n is the total weight and the spread is divided by total weight minus one.
Importance weights have a linearised standard error, sqrt(sum w^2 (x - mean)^2) / sum w, and n is their
effective number of rows. `calipers.inputs.weights` says which are which.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from calipers.arrays import Array, as_numpy, namespace, not_negative
from calipers.arrays.device_rows import row_moments
from calipers.exceptions import InputError
from calipers.inference.alternatives import check_alternative
from calipers.inference.bounded import BOUNDED_METHOD, bounded_mean_interval
from calipers.inference.effective_number import effective_quantile, effective_rows
from calipers.inference.null_law import NULL_LEVEL
from calipers.inference.proportions import combine_tails
from calipers.inputs import Weights, check_confidence
from calipers.inputs.row_checks import check_vector
from calipers.inputs.weights import effective_size
from calipers.results import Estimate

METHODS = ("t", "normal")
# What an estimate says of its interval in ``method`` when rows of unknown range are skewed.
CARRIED_METHOD = "Student t interval for the rows that carry the noise"
_NO_SPREAD = "all contributions are equal, so their spread says nothing about the error of the mean"
# A spread that is this small a part of the mean is rounding.
_ROUNDING = 1e-14


@dataclass(frozen=True, slots=True)
class Moments:
    """Total weight, mean and summed squares of deviations: what a mean needs, mergeable.

    Parameters
    ----------
    n, mean, squares : float
        Total weight, weighted mean, weighted sum of squared deviations from it.
    whole : bool
        Whether all weights are whole numbers, and so repetitions.
    squared : tuple of three floats, or None
        The same three under the squared weights; None when every row counts once.
    tails, squared_tails : tuple of two floats, or None
        Weighted sums of third and fourth powers of the deviations, under the weights and under the squared
        weights; None when they were not asked for.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import Moments
    >>> both = Moments.of(np.array([1.0, 2.0])).merge(Moments.of(np.array([6.0])))
    >>> both.n, both.mean, both.squares
    (3.0, 3.0, 14.0)
    """

    n: float = 0.0
    mean: float = 0.0
    squares: float = 0.0
    whole: bool = True
    squared: tuple[float, float, float] | None = None
    tails: tuple[float, float] | None = None
    squared_tails: tuple[float, float] | None = None

    @classmethod
    def of(
        cls, contributions: np.ndarray, weights: np.ndarray | Weights | None = None, *, tails: bool = False
    ) -> Moments:
        """The moments of one block of rows; rows of weight 0 are not there."""
        x = np.asarray(contributions, dtype=float)
        if weights is None:
            own = _of_single_rows(x)
            return cls(*own, tails=_tails(x, 1.0, own[1]) if tails else None)
        w = weights if isinstance(weights, Weights) else Weights.of(np.asarray(weights, dtype=float))
        there = w.mass > 0
        x, w = x[there], w.take(there)
        own, squared = _of_weighted_rows(x, w.mass), _of_weighted_rows(x, w.squares)
        if not tails:
            return cls(*own, w.whole, squared)
        return cls(*own, w.whole, squared, _tails(x, w.mass, own[1]), _tails(x, w.squares, squared[1]))

    @classmethod
    def of_counts(cls, values: np.ndarray, counts: np.ndarray) -> list[Moments]:
        """Of each of k columns, from c kinds of rows: their values (k, c), and how often each kind occurs."""
        n, low = float(counts.sum()), values.min(axis=1)
        mean = (counts * values).sum(axis=1) / n
        deviations = values - mean[:, None]
        shift = (counts * deviations).sum(axis=1) / n
        squares = np.maximum((counts * deviations * deviations).sum(axis=1) - n * shift * shift, 0.0)
        is_constant = low == values.max(axis=1)
        mean, squares = np.where(is_constant, low, mean + shift), np.where(is_constant, 0.0, squares)
        return [cls(n, *pair) for pair in zip(mean.tolist(), squares.tolist(), strict=True)]

    @classmethod
    def of_each(cls, table: Array) -> list[Moments]:
        """The moments of every row of a (k, n) table where it lies; only a few numbers of each leave it."""
        xp, n = namespace(table), int(table.shape[1])
        if (pairs := row_moments(table)) is not None:
            return [cls(float(n), *pair) for pair in pairs.tolist()]
        low = xp.min(table, axis=1)
        mean = xp.mean(table, axis=1)
        deviations = table - mean[:, None]
        shift = xp.mean(deviations, axis=1)
        squares = xp.sum(deviations * deviations, axis=1) - n * shift * shift
        is_constant = low == xp.max(table, axis=1)
        mean, squares = xp.where(is_constant, low, mean + shift), xp.where(is_constant, 0 * low, squares)
        pairs = as_numpy(xp.stack([mean, not_negative(squares)], axis=1)).tolist()
        return [cls(float(n), *pair) for pair in pairs]

    def merge(self, other: Moments) -> Moments:
        """The moments of both blocks together, in any order."""
        if not (self.n and other.n):
            return self if self.n else other
        own, theirs = (self.n, self.mean, self.squares), (other.n, other.mean, other.squares)
        tails = _merged_tails(own, self.tails, theirs, other.tails)
        if self.squared is None and other.squared is None:
            return Moments(*_merged(own, theirs), tails=tails)
        mine, yours = self.squared or own, other.squared or theirs
        more = _merged_tails(
            mine, self.squared_tails or self.tails, yours, other.squared_tails or other.tails
        )
        return Moments(*_merged(own, theirs), self.whole and other.whole, _merged(mine, yours), tails, more)

    @property
    def rows(self) -> float:
        """Rows behind the mean: the total weight of repetitions, else the effective number of rows."""
        return self.n if self.squared is None else effective_size(self.n, self.squared[0], whole=self.whole)

    @property
    def variance(self) -> float:
        """Unbiased variance of one row; NaN below two rows."""
        if self.whole:
            return self.squares / (self.n - 1) if self.n > 1 else float("nan")
        return self.std_error**2 * self.rows

    @property
    def std_error(self) -> float:
        """Standard error of the mean; NaN below two rows."""
        if not self.rows > 1:
            return float("nan")
        if self.whole or self.squared is None:
            return math.sqrt(self.squares / (self.n - 1) / self.n)
        weight, mean, squares = self.squared
        # Squared weights have a mean of their own; the deviations wanted are those from the mean.
        deviations = squares + weight * (mean - self.mean) ** 2
        return float(np.sqrt(deviations * self.rows / (self.rows - 1)) / self.n)

    @property
    def carrying_rows(self) -> float | None:
        """Rows that carry the noise of the mean, see `effective_rows`; None without the tails."""
        if self.tails is None:
            return None
        if self.whole or self.squared is None or self.squared_tails is None:
            return effective_rows(self.squares, self.tails[1])
        weight, mean, squares = self.squared
        cubes, fourths = self.squared_tails
        gap = mean - self.mean
        around = fourths + 4 * gap * cubes + 6 * gap**2 * squares + weight * gap**4
        # An importance weight counts as its rows do on average.
        return effective_rows(squares + weight * gap**2, (weight / self.n) ** 2 * around)


_Sums = tuple[float, float, float]


def _of_single_rows(x: np.ndarray) -> _Sums:
    """Number, mean and squared deviations of rows that count once each."""
    n = float(x.size)
    if n == 0 or x.min() == x.max():  # without the rounding of a sum, so that no spread reads exactly 0
        return n, float(x[0]) if n else 0.0, 0.0
    with np.errstate(invalid="ignore"):  # inf - inf is NaN, and reported as such
        mean = float(x.sum()) / n
        deviations = x - mean
        # The mean is rounded; the second sum takes its error out again.
        shift = float(deviations.sum()) / n
        # Not a dot product: its threads wait for each other on a busy machine.
        squares = float(np.square(deviations, out=deviations).sum()) - n * shift * shift
    return _sums(n, mean, shift, squares)


def _of_weighted_rows(x: np.ndarray, w: np.ndarray) -> _Sums:
    """The same when rows have positive weights."""
    n = float(w.sum())
    if n == 0 or x.min() == x.max():
        return n, float(x[0]) if n else 0.0, 0.0
    with np.errstate(invalid="ignore"):
        mean = float((w * x).sum()) / n
        deviations = x - mean
        shift = float((w * deviations).sum()) / n
        squares = float((w * deviations * deviations).sum()) - n * shift * shift
    return _sums(n, mean, shift, squares)


def _sums(n: float, mean: float, shift: float, squares: float) -> _Sums:
    exact = mean + shift if math.isfinite(mean) else mean
    return n, exact, squares if math.isnan(squares) else max(squares, 0.0)


def _merged(first: _Sums, second: _Sums) -> _Sums:
    (n, mean, squares), (m, other, more) = first, second
    gap = other - mean
    if not np.isfinite(gap):  # an infinite mean stays infinite and has no spread
        return n + m, mean + other, float("nan")
    return n + m, mean + gap * m / (n + m), squares + more + gap * gap * n * m / (n + m)


def _tails(x: np.ndarray, w: np.ndarray | float, mean: float) -> tuple[float, float]:
    """Sums of third and fourth powers of the deviations."""
    with np.errstate(invalid="ignore", over="ignore"):
        deviations = x - mean
        # Not deviations**3: a power of floats takes ten times as long as two products.
        cubes = w * (deviations * deviations * deviations)
        return float(np.sum(cubes)), float(np.sum(cubes * deviations))


def _merged_tails(
    first: _Sums, tails: tuple[float, float] | None, second: _Sums, others: tuple[float, float] | None
) -> tuple[float, float] | None:
    """The same of both blocks together (Pebay 2008, eq. 2.1)."""
    if tails is None or others is None:
        return None
    (n, mean, squares), (m, other, more) = first, second
    total, gap = n + m, other - mean
    cubes = tails[0] + others[0] + gap**3 * n * m * (n - m) / total**2
    cubes += 3 * gap * (n * more - m * squares) / total
    fourths = tails[1] + others[1] + gap**4 * n * m * (n * n - n * m + m * m) / total**3
    fourths += 6 * gap**2 * (n * n * more + m * m * squares) / total**2
    fourths += 4 * gap * (n * others[0] - m * tails[0]) / total
    return cubes, fourths


def mean_estimate(
    contributions: np.ndarray | Moments,
    *,
    name: str,
    weights: np.ndarray | Weights | None = None,
    confidence: float = 0.95,
    method: str = "t",
    alternative: str = "two-sided",
    null: float | None = None,
    limits: tuple[float, float] | None = None,
) -> Estimate:
    """The mean of one contribution per row, with its error bar.

    Parameters
    ----------
    contributions : array (n,) or Moments
        One number per row, or the merged moments of many blocks.
    name : str
        Name of the estimate.
    weights : array (n,), Weights or None
        Whole weights are repetitions, others importance weights.
    confidence : float
        Level of the interval.
    method : {"t", "normal"}
        Quantiles of Student's t with ``n - 1`` degrees of freedom, or of the normal.
    alternative : {"two-sided", "greater", "less"}
        Of the test; the interval always has two ends.
    null : float or None
        The mean under the null. Without one there is no p-value and no null band.
    limits : tuple of two floats or None
        The range every contribution lies in, where it is known. The interval is then the one of
        `bounded_mean_interval`, which holds for skewed and for equal contributions; there is no test with it.

    Returns
    -------
    Estimate
        Without interval, and with the reason, for a value that is not finite and, without ``limits``, for
        fewer than two rows or contributions that are all equal (their spread, 0, says nothing about the
        mean's error).

    Notes
    -----
    Standard error ``sqrt(sum w (x - mean)^2 / ((n - 1) n))`` with n the total weight; with importance weights
    ``sqrt(sum w^2 (x - mean)^2 n / (n - 1)) / sum w``, n = (sum w)^2 / sum w^2. The interval is exact for
    normal contributions and asymptotic otherwise: of good predictors it misses the mean of a skewed loss in a
    third of all samples. Give ``limits`` where they are known; for shares use `clopper_pearson`. Where they
    are not, moments with tails (``Moments.of(rows, tails=True)``) widen it by `effective_quantile`. Rows are
    assumed independent. The null band is the one of the estimated spread.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import mean_estimate
    >>> print(mean_estimate(np.array([1.0, 2.0, 3.0, 6.0]), name="loss"))
    loss 3.0 [-0.5, 6.5] at 95 %
    """
    check_confidence(confidence)
    check_alternative(alternative)
    if method not in METHODS:
        raise InputError(f'method must be "t" or "normal", got {method!r}.')
    moments = _moments(contributions, weights)
    if limits is not None and null is not None:
        raise InputError("limits and null cannot be given together: rows of a known range have no t test.")
    if limits is not None and moments.n > 0 and math.isfinite(moments.squares):
        return Estimate(name=name, **bounded_mean_fields(moments, limits, confidence))
    if reason := _missing(moments):
        value = moments.mean if moments.n > 0 else float("nan")
        error = 0.0 if reason == _NO_SPREAD else None
        return Estimate(name=name, value=value, std_error=error, n=moments.rows, method="mean", reason=reason)
    freedom = moments.rows - 1 if method == "t" else np.inf
    reach, words = _reach(moments, freedom, confidence)
    half = reach * moments.std_error
    return Estimate(
        name=name,
        value=moments.mean,
        std_error=moments.std_error,
        low=moments.mean - half,
        high=moments.mean + half,
        confidence=confidence,
        n=moments.rows,
        method=f"mean, {words}",
        **_test(moments, freedom, alternative, null),
    )


def paired_difference(
    first: np.ndarray,
    second: np.ndarray,
    *,
    name: str,
    weights: np.ndarray | None = None,
    confidence: float = 0.95,
    method: str = "t",
    alternative: str = "two-sided",
) -> Estimate:
    """The mean of ``first - second`` over the same rows, tested against 0.

    Pairing takes out what both share; on the same rows it is far more precise than the difference of
    two separate means.

    Parameters
    ----------
    first, second : array (n,)
        Contributions of the same rows under two predictors.
    name, weights, confidence, method, alternative
        As in `mean_estimate`; "greater" means that first exceeds second.

    Returns
    -------
    Estimate
        As from `mean_estimate` with ``null=0``.

    Raises
    ------
    InputError
        When the lengths differ.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import paired_difference
    >>> e = paired_difference(np.array([3.0, 5.0, 9.0]), np.array([1.0, 4.0, 6.0]), name="gain")
    >>> e.value, round(e.p_value, 4)
    (2.0, 0.0742)
    """
    first, second = np.asarray(first, dtype=float), np.asarray(second, dtype=float)
    if first.shape != second.shape:
        raise InputError(
            f"first and second must have the same length, got first: {len(first)}, second: {len(second)}."
        )
    found = mean_estimate(
        _paired_gaps(first, second),
        name=name,
        weights=weights,
        confidence=confidence,
        method=method,
        alternative=alternative,
        null=0.0,
    )
    return replace(found, details={"null_subject": "two equal predictors"})


def _paired_gaps(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """First minus second; differences that vary by rounding alone are made equal."""
    with np.errstate(invalid="ignore"):
        gaps = np.asarray(first - second)
        if gaps.size and np.ptp(gaps) <= 4 * np.finfo(float).eps * np.abs([first, second]).max():
            return np.full_like(gaps, gaps[0])
    return gaps


def bounded_mean_fields(moments: Moments, limits: tuple[float, float], confidence: float) -> dict[str, Any]:
    """Fields of an Estimate of the mean of at least one row, all of them within known limits."""
    low, high = bounded_mean_interval(moments, low=limits[0], high=limits[1], confidence=confidence)
    return {
        "value": moments.mean,
        "std_error": moments.std_error if moments.rows > 1 else None,
        "low": low,
        "high": high,
        "confidence": confidence,
        "n": moments.rows,
        "method": f"mean, {BOUNDED_METHOD}",
    }


def _moments(contributions: Any, weights: Any) -> Moments:
    """The moments, of rows that are one number each."""
    if isinstance(contributions, Moments):
        return contributions
    x = np.asarray(contributions)
    if x.ndim != 1:
        x = np.asarray(check_vector(x, name="contributions", finite=False))
    return Moments.of(x, Weights.check(weights, x.size))


def _missing(moments: Moments) -> str:
    if moments.n == 0:
        return "there are no rows"
    if not (np.isfinite(moments.mean) and np.isfinite(moments.squares)):
        return "a contribution is not finite, so the mean has no error bar"
    if moments.rows <= 1:
        return "one row has no spread, so the mean has no error bar"
    if moments.squares <= moments.n * (_ROUNDING * moments.mean) ** 2:
        return _NO_SPREAD
    return ""


def _reach(moments: Moments, freedom: float, confidence: float) -> tuple[float, str]:
    """How many standard errors the interval reaches to either side, and its name."""
    plain = -_quantile((1 - confidence) / 2, freedom)
    rows = moments.carrying_rows
    if rows is None:
        return plain, f"{'normal' if np.isinf(freedom) else 'Student t'} interval"
    return max(plain, effective_quantile(confidence, rows)), CARRIED_METHOD


def _quantile(level: float, freedom: float) -> float:
    return float(special.ndtri(level) if np.isinf(freedom) else special.stdtrit(freedom, level))


def _test(moments: Moments, freedom: float, alternative: str, null: float | None) -> dict[str, Any]:
    if null is None:
        return {}
    ratio = (moments.mean - null) / moments.std_error
    sides = np.array([ratio, -ratio])
    tails = special.ndtr(sides) if np.isinf(freedom) else special.stdtr(freedom, sides)
    # A tail below the smallest number is not 0.
    p_value = max(float(combine_tails(tails[0], tails[1], alternative)), float(np.finfo(float).tiny))
    tail = (1 - NULL_LEVEL) / (2 if alternative == "two-sided" else 1)
    half = -_quantile(tail, freedom) * moments.std_error
    return {
        "p_value": p_value,
        "alternative": alternative,
        "null_low": None if alternative == "greater" else null - half,
        "null_high": None if alternative == "less" else null + half,
        "null_level": NULL_LEVEL,
    }
