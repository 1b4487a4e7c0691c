"""Bootstrap intervals: BCa for any smooth statistic, Poisson for ratios of sums in blocks.

Neither is valid for a maximum, a minimum or another statistic that hangs on a few rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import special

from calipers.arrays import RandomState, generator, short_repr
from calipers.exceptions import InputError
from calipers.inference.normal_law import normal_quantile
from calipers.inputs import check_confidence, check_count

_CELLS = 1 << 20
_MAX_JACKKNIFE = 400


@dataclass(frozen=True, slots=True)
class BootstrapResult:
    """A value with its bootstrap error bar and the Monte-Carlo error of that.

    Parameters
    ----------
    value : float
        The statistic on the data.
    std_error : float or None
        Standard deviation over the resamples.
    low, high : float or None
        Ends of the interval at level ``confidence``; None when ``reason`` says why.
    confidence : float
        Level of the interval.
    n_draws, n_undefined : int
        Resamples, and those among them where the statistic was NaN (left out).
    std_error_error, low_error, high_error : float or None
        Monte-Carlo standard errors of the three; more draws shrink them with the square root.
    method, reason : str
        How it was made; why something is missing.
    """

    value: float
    std_error: float | None
    low: float | None
    high: float | None
    confidence: float
    n_draws: int
    n_undefined: int = 0
    std_error_error: float | None = None
    low_error: float | None = None
    high_error: float | None = None
    method: str = ""
    reason: str = ""


def bca_bootstrap(
    statistic: Callable[..., Any],
    *columns: np.ndarray,
    n_draws: int = 2000,
    confidence: float = 0.95,
    vectorized: bool = False,
    random_state: RandomState = None,
) -> BootstrapResult:
    """Bias-corrected and accelerated bootstrap interval of a statistic of the rows.

    Parameters
    ----------
    statistic : callable
        ``statistic(*columns)`` gives one number. With ``vectorized=True`` it is called as
        ``statistic(*columns, axis=-1)`` on (draws, n) columns and gives one number per draw.
    *columns : array
        Arrays with one entry (vectorized: one number) per row; rows are resampled together.
    n_draws : int
        Resamples. 2000 leaves a Monte-Carlo error of about 3 % of the interval's width in its ends.
    confidence : float
        Level of the two-sided interval.
    vectorized : bool
        Whether the statistic takes many resamples at once.
    random_state : int, Generator or None
        Source of the resamples.

    Returns
    -------
    BootstrapResult
        Without interval, with the reason, for a single row, a NaN value, a statistic that is the same on
        every resample, or a value beyond all its resamples.

    Notes
    -----
    Second-order accurate: the error of each end's level is of order 1/n [1]_. The acceleration
    comes from the jackknife, leave-one-out up to 400 rows and on 400 random groups above: group sums
    have the same third-moment ratio, so the estimate stays consistent.

    References
    ----------
    .. [1] Efron (1987), Journal of the American Statistical Association 82, 171-185.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import bca_bootstrap
    >>> x = np.random.default_rng(0).exponential(size=80)
    >>> r = bca_bootstrap(np.mean, x, vectorized=True, random_state=1)
    >>> r.low < r.value < r.high and r.high - r.value > r.value - r.low
    True
    """
    n_draws, columns = check_count(n_draws, name="n_draws"), _same_length(columns)
    n, rng = len(columns[0]), generator(random_state)
    evaluate = _evaluator(statistic, columns, vectorized)
    value = float(evaluate(np.arange(n)[None])[0]) if n else math.nan
    blank = BootstrapResult(
        value, None, None, None, check_confidence(confidence), n_draws, method="BCa bootstrap"
    )
    if n < 2 or math.isnan(value):
        reason = "fewer than two rows cannot be resampled" if n < 2 else "the statistic is NaN"
        return replace(blank, reason=reason)
    draws = np.empty(n_draws)
    step = max(1, _CELLS // n)
    for start in range(0, n_draws, step):
        size = min(step, n_draws - start)
        draws[start : start + size] = evaluate(rng.integers(0, n, size=(size, n)))
    return bca_interval(value, draws, _jackknife(evaluate, n, rng), confidence=confidence)


def bca_interval(
    value: float, draws: np.ndarray, jackknife: np.ndarray, *, confidence: float = 0.95
) -> BootstrapResult:
    """The BCa interval from the value, its resamples and its jackknife values.

    Parameters
    ----------
    value : float
        The statistic on the data.
    draws : array
        The statistic on each resample; NaN where it is undefined.
    jackknife : array
        The statistic without each row, or without each of many groups of rows.
    confidence : float
        Level of the interval.

    Returns
    -------
    BootstrapResult

    Notes
    -----
    With z0 the normal quantile of the share of draws below the value (ties half) and a the
    acceleration, the ends are the quantiles at ``Phi(z0 + (z0 + z) / (1 - a (z0 + z)))``.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import bca_interval
    >>> r = bca_interval(0.5, np.linspace(0, 1, 1001), np.array([0.4, 0.5, 0.6]), confidence=0.9)
    >>> round(r.low, 3), round(r.high, 3)      # no bias, no acceleration: the plain quantiles
    (0.05, 0.95)
    """
    draws = np.asarray(draws, dtype=float)
    defined = np.sort(draws[~np.isnan(draws)])
    n_undefined = draws.size - defined.size
    blank = BootstrapResult(
        value, None, None, None, check_confidence(confidence), draws.size, n_undefined, method="BCa bootstrap"
    )
    if 2 * n_undefined > draws.size:
        return replace(blank, reason=f"the statistic is NaN on {n_undefined} of {draws.size} resamples")
    if defined[0] == defined[-1]:
        reason = "every resample gives the same value, so resampling says nothing about its error"
        return replace(blank, std_error=0.0, reason=reason)
    below = (np.sum(defined < value) + 0.5 * np.sum(defined == value)) / defined.size
    if not 0 < below < 1 or not np.all(np.isfinite(jackknife)) or not np.all(np.isfinite(defined)):
        return replace(blank, reason=_why_undefined(float(below)))
    z0, a = float(special.ndtri(below)), _acceleration(jackknife)
    z = normal_quantile(confidence)
    levels = tuple(_bca_level(z0, a, end) for end in (-z, z))
    return _with_ends(blank, defined, levels)


@dataclass(frozen=True, slots=True, eq=False)
class PoissonSums:
    """Poisson-resampled sums of a ratio, one pair per draw; blocks merge by addition.

    Build one per block with `poisson_sums`, `merge` them in any order, then read `result`. Every
    block needs its own random stream (`calipers.arrays.spawn`).
    """

    numerator: float
    denominator: float
    numerators: np.ndarray
    denominators: np.ndarray

    __repr__ = short_repr

    def merge(self, other: PoissonSums) -> PoissonSums:
        """The sums of both blocks together."""
        if self.numerators.size != other.numerators.size:
            raise InputError(
                "blocks must have the same number of draws, "
                f"got {self.numerators.size} and {other.numerators.size}."
            )
        return PoissonSums(
            self.numerator + other.numerator,
            self.denominator + other.denominator,
            self.numerators + other.numerators,
            self.denominators + other.denominators,
        )

    def result(self, *, confidence: float = 0.95) -> BootstrapResult:
        """Ratio, standard error and percentile interval."""
        check_confidence(confidence)
        value = self.numerator / self.denominator if self.denominator else math.nan
        defined = self.denominators > 0
        n_draws, n_undefined = self.numerators.size, int(np.sum(~defined))
        blank = BootstrapResult(
            value, None, None, None, confidence, n_draws, n_undefined, method="Poisson bootstrap, percentile"
        )
        if not math.isfinite(value):
            return replace(blank, reason="the ratio is not finite")
        if 2 * n_undefined > n_draws:
            return replace(blank, reason=f"the ratio is undefined on {n_undefined} of {n_draws} resamples")
        ratios = np.sort(self.numerators[defined] / self.denominators[defined])
        if ratios[-1] - ratios[0] <= 1e-12 * abs(value):
            reason = "every resample gives the same value, so resampling says nothing about its error"
            return replace(blank, std_error=0.0, reason=reason)
        return _with_ends(blank, ratios, ((1 - confidence) / 2, (1 + confidence) / 2))


def poisson_sums(
    numerators: np.ndarray,
    denominators: np.ndarray | None = None,
    *,
    weights: np.ndarray | None = None,
    n_draws: int = 1000,
    random_state: RandomState = None,
) -> PoissonSums:
    """Poisson bootstrap of sum(numerators) / sum(denominators) on one block of rows.

    Parameters
    ----------
    numerators, denominators : array (n,)
        Contributions of the rows; denominators, non-negative, default to 1 and make the ratio a mean.
    weights : array (n,) or None
        Repetitions of the rows: a row of weight w enters a resample Poisson(w) times, which is exactly
        what w separate copies do together.
    n_draws : int
        Resamples; the same for all blocks that are to be merged.
    random_state : int, Generator or None
        Stream of this block; two blocks must not share a seed.

    Returns
    -------
    PoissonSums

    Notes
    -----
    Needs no row count in advance, so it streams; for n above a few dozen it agrees with the ordinary
    bootstrap of a ratio [1]_. Cost: n times ``n_draws`` Poisson draws.

    References
    ----------
    .. [1] Chamandy, Muralidharan, Najmi and Naidu (2012), Estimating uncertainty for massive data streams.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.arrays import spawn
    >>> from calipers.inference import poisson_sums
    >>> first, second = (poisson_sums(np.arange(50.0) + k, random_state=g) for k, g in enumerate(spawn(0, 2)))
    >>> r = first.merge(second).result()
    >>> r.value, round(r.std_error, 1)
    (25.0, 1.5)
    """
    n_draws, rng = check_count(n_draws, name="n_draws"), generator(random_state)
    x = np.asarray(numerators, dtype=float)
    y = np.ones(x.shape) if denominators is None else np.asarray(denominators, dtype=float)
    w = np.ones(x.shape) if weights is None else np.asarray(weights, dtype=float)
    pairs = np.stack([x, y])
    sums = np.zeros((n_draws, 2))
    step = max(1, _CELLS // n_draws)
    for start in range(0, x.size, step):
        rows = slice(start, start + step)
        times = rng.poisson(w[rows], size=(n_draws, w[rows].size))
        with np.errstate(invalid="ignore"):  # 0 times inf: the value is not finite either
            sums += times @ pairs[:, rows].T
    return PoissonSums(float(w @ x), float(w @ y), sums[:, 0], sums[:, 1])


def _same_length(columns: tuple[Any, ...]) -> tuple[np.ndarray, ...]:
    arrays = tuple(np.asarray(column) for column in columns)
    lengths = [len(column) for column in arrays]
    if len(set(lengths)) != 1:
        raise InputError(f"columns must be given and have one length, got lengths {lengths}.")
    return arrays


def _evaluator(
    statistic: Callable[..., Any], columns: tuple[np.ndarray, ...], vectorized: bool
) -> Callable[[np.ndarray], np.ndarray]:
    """The statistic on each row of an index matrix."""
    if vectorized:
        return lambda indices: np.asarray(statistic(*(c[indices] for c in columns), axis=-1), dtype=float)
    return lambda indices: np.array([float(statistic(*(c[i] for c in columns))) for i in indices])


def _jackknife(evaluate: Callable[[np.ndarray], np.ndarray], n: int, rng: np.random.Generator) -> np.ndarray:
    """The statistic without each row, or without each of 400 random groups of rows."""
    if n <= _MAX_JACKKNIFE:
        kept = np.arange(n - 1)[None]
        return evaluate(kept + (kept >= np.arange(n)[:, None]))
    groups = np.array_split(rng.permutation(n), _MAX_JACKKNIFE)
    everything = np.ones(n, dtype=bool)
    values = np.empty(len(groups))
    for g, group in enumerate(groups):
        everything[group] = False
        values[g] = evaluate(np.flatnonzero(everything)[None])[0]
        everything[group] = True
    return values


def _acceleration(jackknife: np.ndarray) -> float:
    deviations = np.mean(jackknife) - jackknife
    squares = float(np.sum(deviations**2))
    return float(np.sum(deviations * deviations**2)) / (6 * squares**1.5) if squares > 0 else 0.0


def _bca_level(z0: float, a: float, z: float) -> float:
    shrink = 1 - a * (z0 + z)
    # Past this pole the acceleration sends the end to the extreme resample.
    return float(special.ndtr(z0 + (z0 + z) / shrink)) if shrink > 0 else float(z > 0)


def _why_undefined(below: float) -> str:
    if 0 < below < 1:
        return "the statistic is not finite on some resample or jackknife sample"
    return "the value lies beyond all its resamples, so the bias correction is undefined"


def _with_ends(blank: BootstrapResult, draws: np.ndarray, levels: tuple[float, ...]) -> BootstrapResult:
    low, high = (float(np.quantile(draws, level)) for level in levels)
    spread = float(np.std(draws, ddof=1))
    fourth = float(np.mean(((draws - np.mean(draws)) ** 2) ** 2))
    left_out = f"{blank.n_undefined} of {blank.n_draws} resamples were undefined and left out"
    return replace(
        blank,
        std_error=spread,
        low=low,
        high=high,
        # Delta method on the variance of a sample variance, (mu4 - sigma^4) / draws.
        std_error_error=math.sqrt(max(fourth - spread**4, 0.0) / draws.size) / (2 * spread),
        low_error=_quantile_error(draws, levels[0]),
        high_error=_quantile_error(draws, levels[1]),
        reason=left_out if blank.n_undefined else "",
    )


def _quantile_error(draws: np.ndarray, level: float) -> float:
    """Half the distance between the quantiles one binomial standard error of the level apart."""
    error = max(math.sqrt(level * (1 - level) / draws.size), 1.0 / draws.size)
    around = np.quantile(draws, [max(level - error, 0.0), min(level + error, 1.0)])
    return float(around[1] - around[0]) / 2
