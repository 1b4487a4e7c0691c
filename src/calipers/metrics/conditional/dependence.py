"""Whether the size of a set tells if it covered: correlation and HSIC with permutation tests."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator
from calipers.exceptions import InputError
from calipers.inference import correlation_interval, effective_rows, permutation_test
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import (
    check_confidence,
    check_count,
    check_covered,
    check_same_length,
    check_vector,
)
from calipers.inputs.option_checks import check_number
from calipers.metrics.entry import MetricEntry
from calipers.metrics.equal_values import pool_equal
from calipers.metrics.states.all_rows import in_content_order
from calipers.results import Estimate

_MOST_SIZES = 1000


def size_coverage_correlation(
    covered: Any,
    size: Any,
    *,
    n_draws: int = 999,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> Estimate:
    """Pearson correlation between set size (or width) and coverage; 0 is right.

    A conditionally valid predictor covers equally often at every size. Negative: wide sets miss more
    often, they should be wider still. Zero correlation does not prove independence; see `size_coverage_hsic`.

    Parameters
    ----------
    covered : bool array of shape (n,)
        Whether each outcome lay in its set.
    size : array of shape (n,)
        Number of labels, or width.
    n_draws : int
        Shuffles behind the p-value.
    confidence : float
        Level of the interval.
    random_state : int, Generator or None
        Source of the shuffles.

    Returns
    -------
    Estimate
        NaN with a reason when either column is constant.

    Notes
    -----
    Null: size and coverage are independent; two-sided permutation test, exact. Standard error from the
    influence of each row, ``xy - r (x^2 + y^2) / 2`` for standardised x, y, which does not assume normality;
    the interval is symmetric in ``atanh r`` and allows for the rows that carry the noise
    (`calipers.inference.effective_quantile`): few where few rows are missed.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import size_coverage_correlation
    >>> size = np.arange(100.0)
    >>> size_coverage_correlation(size < 90, size, random_state=0).value < -0.4
    True
    """
    z, x, level, draws = _columns(covered, size, confidence, n_draws)
    method = "Pearson correlation, influence-function error, permutation test"
    fields: dict[str, Any] = {"name": "size-coverage correlation", "n": len(z), "method": method}
    if np.ptp(x) == 0 or z.min() == z.max():
        what = "size" if np.ptp(x) == 0 else "coverage"
        return Estimate(**fields, value=math.nan, reason=f"{what} is the same in every row")
    x, y = (x - x.mean()) / x.std(), (z - z.mean()) / z.std()
    test = permutation_test(
        lambda shuffled, fixed: shuffled @ fixed / len(fixed), y, x,
        n_draws=draws, alternative="two-sided", vectorized=True, random_state=generator(random_state),
    )  # fmt: skip
    r = max(-1.0, min(1.0, test.value))
    influence = x * y - 0.5 * r * (x * x + y * y)
    influence -= influence.mean()
    error = float(np.std(influence, ddof=1)) / math.sqrt(len(z))
    carriers = effective_rows(float(np.sum(influence**2)), float(np.sum(influence**4)))
    low, high = _correlation_interval(r, error, level, carriers)
    return Estimate(
        **fields,
        value=r, std_error=error, low=low, high=high, confidence=level,
        **test.law.estimate_fields(r, alternative="two-sided", level=NULL_LEVEL),
    )  # fmt: skip


def size_coverage_hsic(
    covered: Any,
    size: Any,
    *,
    bandwidth: float | None = None,
    n_draws: int = 999,
    random_state: RandomState = None,
) -> Estimate:
    """Hilbert-Schmidt independence criterion between set size and coverage; 0 means independent.

    Sees any dependence, not only a trend. The value has no natural unit: read the p-value, and compare values
    only for the same kernel.

    Parameters
    ----------
    covered, size, n_draws, random_state
        As in `size_coverage_correlation`.
    bandwidth : float, optional
        s of the kernel ``exp(-(a - b)^2 / s)`` of sizes; the squared median distance by default, so that
        units do not matter.

    Returns
    -------
    Estimate
        Without interval, and with the reason.

    Notes
    -----
    ``tr(K H L H) / (n - 1)^2`` with K the Gaussian kernel of sizes and L_ij = 1 when rows i and j were both
    covered or both missed. As L is a rank-two kernel this is ``2 r' K r / (n - 1)^2`` with r the
    sums of ``z - mean z`` over equal sizes: one small matrix instead of n x n. More than 1 000 distinct sizes
    are rounded to 1 000 quantiles first. Permutation test, exact.

    References
    ----------
    Gretton, Fukumizu, Teo, Song, Schölkopf and Smola (2008), A kernel statistical test of independence.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import size_coverage_hsic
    >>> size = np.arange(200) % 10
    >>> size_coverage_hsic((size > 2) & (size < 8), size, n_draws=199, random_state=0).p_value
    0.005
    """
    z, x, _, draws = _columns(covered, size, 0.95, n_draws)
    values, codes = np.unique(_rounded(x), return_inverse=True)
    scale = _squared_median_distance(values, codes) if bandwidth is None else _positive(bandwidth)
    kernel, n = np.exp(-((values[:, None] - values[None, :]) ** 2) / scale), len(z)
    # n times the centred coverage is whole: sums of equal sizes are exactly 0, and no rounding is tested.
    centred = n * z - z.sum()

    def statistic(shuffled: np.ndarray, fixed: np.ndarray) -> np.ndarray:
        sums = np.stack([np.bincount(fixed, weights=row, minlength=len(values)) for row in shuffled]) / n
        return np.asarray(2.0 * np.sum((sums @ kernel) * sums, axis=1) / max(n - 1, 1) ** 2)

    test = permutation_test(
        statistic, centred, codes, n_draws=draws, vectorized=True, random_state=generator(random_state)
    )
    constant = len(values) == 1 or z.min() == z.max()
    return Estimate(
        name="size-coverage HSIC",
        value=test.value,
        n=n,
        method="HSIC with a Gaussian kernel of sizes, permutation test",
        reason="HSIC has no normal law near independence, so no error bar is given"
        + ("; one column is the same in every row" if constant else ""),
        details={"bandwidth": scale, "null_mean": test.law.mean},
        **test.law.estimate_fields(test.value, alternative="greater", level=NULL_LEVEL),
    )


def _columns(
    covered: Any, size: Any, confidence: float, n_draws: int
) -> tuple[np.ndarray, np.ndarray, float, int]:
    z = as_numpy(check_covered(covered)).astype(float)
    x = pool_equal(as_numpy(check_vector(size, name="size")))
    check_same_length(covered=covered, size=size)
    z, x = in_content_order(z, x)
    return z, x, check_confidence(confidence), check_count(n_draws, name="n_draws")


def _correlation_interval(r: float, error: float, level: float, rows: float) -> tuple[float, float]:
    if abs(r) >= 1.0:
        return r, r
    return correlation_interval(r, error, level, rows=rows)


def _rounded(x: np.ndarray) -> np.ndarray:
    if len(np.unique(x)) <= _MOST_SIZES:
        return x
    grid = np.unique(np.quantile(x, (np.arange(_MOST_SIZES) + 0.5) / _MOST_SIZES))
    return np.asarray(grid[np.searchsorted(0.5 * (grid[1:] + grid[:-1]), x)])


def _squared_median_distance(values: np.ndarray, codes: np.ndarray) -> float:
    """Weighted median distance of two different rows' sizes; 1 when they are mostly equal."""
    counts = np.bincount(codes).astype(float)
    distance = np.abs(values[:, None] - values[None, :]).ravel()
    weight = np.outer(counts, counts).ravel()
    apart = distance > 0
    if not apart.any():
        return 1.0
    order = np.argsort(distance[apart])
    mass = np.cumsum(weight[apart][order])
    return float(distance[apart][order][np.searchsorted(mass, 0.5 * mass[-1])] ** 2)


def _positive(bandwidth: float) -> float:
    scale = check_number(bandwidth, name="bandwidth", low=0.0, high=1e150)
    if not scale:
        raise InputError("bandwidth must be positive and finite, got 0.")
    return scale


_SIZE = {"question": "everywhere", "inputs": ("covered", "size"), "merge": "gather", "weighted": False}
ENTRIES = (
    MetricEntry(
        function=size_coverage_correlation, direction="target", good="0", bounds=(-1.0, 1.0),
        null="size and coverage are independent (permutation)",
        interval="influence function, symmetric in atanh r", randomized=True, **_SIZE,  # type: ignore[arg-type]
    ),
    MetricEntry(
        function=size_coverage_hsic, direction="lower", good="0, up to the noise floor",
        bounds=(0.0, math.inf),
        null="size and coverage are independent (permutation)",
        no_interval="no normal law near independence", randomized=True, **_SIZE,  # type: ignore[arg-type]
    ),
)  # fmt: skip
