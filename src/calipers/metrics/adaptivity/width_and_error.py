"""Regression: how far the width of the interval follows the error of the prediction, row by row."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy
from calipers.deprecation import renamed_arguments
from calipers.inference import RowCorrelation, effective_quantile, effective_rows, permutation_test
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import check_confidence, check_count, check_same_length, check_vector
from calipers.metrics.adaptivity.correlation import fisher_interval, signed_square
from calipers.metrics.entry import MetricEntry
from calipers.metrics.equal_values import pool_equal
from calipers.metrics.states.all_rows import in_content_order
from calipers.results import Estimate, EstimateTable

_SUBJECT = "a predictor whose width ignores the error"


@renamed_arguments("0.4", n_permutations="n_draws")
def width_against_error(
    error: Any,
    width: Any,
    *,
    confidence: float = 0.95,
    n_draws: int = 999,
    random_state: RandomState = None,
) -> EstimateTable:
    """Signed R-squared and Kendall's tau of interval width against absolute error.

    Both lie between -1 and 1; higher is better: wide intervals should announce large errors. Even an ideal
    predictor stays well below 1, because the width can follow the spread of the error, not its draw.

    Parameters
    ----------
    error : array (n,)
        Absolute error of the point prediction; or its mean in each bin.
    width : array (n,)
        Width of the interval; or its mean in each bin.
    confidence : float
        Level of the intervals.
    n_draws : int
        Shuffles of the width behind the test of R-squared.
    random_state : int, Generator or None
        Source of the shuffles.

    Returns
    -------
    EstimateTable
        ``r_squared`` and ``kendall_tau`` (tau-b). NaN with a reason where a side is constant.

    Raises
    ------
    InputError
        For lengths that differ or values that are not finite.

    Notes
    -----
    R-squared: interval by the delta method on the correlation through Fisher's z, with the quantile of
    Student's t for the rows that carry the noise (`calipers.inference.effective_quantile`), test by
    permutation. Widths within a part in 10^9 of each other are equal. Tau-b: the variance is that of the
    projection on single rows [1]_; the test of independence is exact below 34 rows without ties, else
    normal with the correction for ties. Cost: n log^2 n, and one pass per shuffle.

    References
    ----------
    .. [1] Kendall (1938), Biometrika 30; Hoeffding (1948), Annals of Mathematical Statistics 19.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import width_against_error
    >>> rng = np.random.default_rng(0)
    >>> scale = rng.uniform(1, 3, 500)
    >>> table = width_against_error(np.abs(rng.normal(0, scale)), 3.3 * scale, random_state=0)
    >>> print(table["kendall_tau"])
    Kendall tau 0.23 [0.17, 0.29] at 95 %; p < 0.001 against a predictor whose width ignores the error
    """
    x = np.asarray(as_numpy(check_vector(error, name="error")), dtype=float)
    y = pool_equal(as_numpy(check_vector(width, name="width")))
    check_same_length(error=error, width=width)
    check_confidence(confidence)
    x, y = in_content_order(x, y)
    draws = check_count(n_draws, name="n_draws")
    r_squared = _r_squared(x, y, confidence, draws, random_state)
    rows = {"r_squared": r_squared, "kendall_tau": _tau(x, y, confidence)}
    return EstimateTable(rows, title="width against error")


def _constant(name: str, x: np.ndarray, y: np.ndarray) -> Estimate | None:
    for values, what in ((x, "error"), (y, "width")):
        if np.ptp(values) == 0:
            reason = f"the {what} is the same in every row, so {name} is undefined"
            return Estimate(name=name, value=float("nan"), n=x.size, method="undefined", reason=reason)
    return None


def _r_squared(
    x: np.ndarray, y: np.ndarray, confidence: float, draws: int, random_state: RandomState
) -> Estimate:
    if undefined := _constant("R-squared", x, y):
        return undefined
    value = float(signed_square(x, y))
    line = RowCorrelation.of(x, y)
    low, high, reason = fisher_interval(line.value, line.std_error, confidence, rows=line.rows)
    law = permutation_test(
        lambda shuffled: signed_square(x, shuffled),
        y,
        n_draws=draws,
        vectorized=True,
        random_state=random_state,
    ).law
    return Estimate(
        name="R-squared",
        value=value,
        std_error=2 * abs(line.value) * line.std_error,
        low=low,
        high=high,
        confidence=confidence,
        n=x.size,
        method=f"signed R-squared over rows, delta method through Fisher's z, {draws} permutations of width",
        reason=reason,
        details={"null_subject": _SUBJECT},
        **law.estimate_fields(value, level=NULL_LEVEL),
    )


def _tau(x: np.ndarray, y: np.ndarray, confidence: float) -> Estimate:
    if undefined := _constant("Kendall tau", x, y):
        return undefined
    balance = concordance_balance(x, y)
    pairs_x, pairs_y = (_untied(z) for z in (x, y))
    scale = math.sqrt(pairs_x.sum() * pairs_y.sum())
    tau = float(balance.sum() / scale)
    # Influence of a row on tau-b, through the numerator and both counts of untied pairs.
    influence = 2 * balance / scale - tau * (pairs_x / pairs_x.sum() + pairs_y / pairs_y.sum())
    influence -= influence.mean()
    error = float(np.sqrt(np.sum(influence**2)))
    carriers = effective_rows(float(np.sum(influence**2)), float(np.sum(influence**4)))
    half = effective_quantile(confidence, carriers) * error
    from scipy import stats

    test = stats.kendalltau(x, y, alternative="greater")
    return Estimate(
        name="Kendall tau",
        value=tau,
        std_error=error,
        low=max(-1.0, tau - half),
        high=min(1.0, tau + half),
        confidence=confidence,
        n=x.size,
        p_value=float(test.pvalue),
        alternative="greater",
        method="tau-b, projection variance, test of independence",
        details={"null_subject": _SUBJECT},
    )


def concordance_balance(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Per row: pairs with the others that agree in order, minus those that disagree.

    #agree - #disagree of row i is a sum of four dominance counts; each is counted by halving blocks of the
    rows sorted by x and looking up one half in the other.
    """
    i, j = (np.unique(z, return_inverse=True)[1].reshape(-1).astype(np.int64) for z in (x, y))
    both_less = _dominated(i, j)
    both_more = _dominated(-i, -j)
    first_less = _dominated(i, -j)
    first_more = _dominated(-i, j)
    return np.asarray(both_less + both_more - first_less - first_more, dtype=float)


def _dominated(i: np.ndarray, j: np.ndarray) -> np.ndarray:
    """For each row the number of rows with both coordinates strictly smaller."""
    # Equal i: larger j first, so that an equal i is never counted as smaller.
    order = np.lexsort((-j, i))
    keys = np.unique(j, return_inverse=True)[1].reshape(-1)[order].astype(np.int64)
    n, counts, width = keys.size, np.zeros(keys.size, dtype=np.int64), 1
    position, span = np.arange(n), int(keys.max()) + 2
    while width < n:
        block, right = position // (2 * width), (position // width) % 2 == 1
        left_keys = np.sort(block[~right] * span + keys[~right])
        first = np.searchsorted(left_keys, block[right] * span)
        counts[right] += np.searchsorted(left_keys, block[right] * span + keys[right]) - first
        width *= 2
    result = np.empty(n, dtype=np.int64)
    result[order] = counts
    return result


def _untied(values: np.ndarray) -> np.ndarray:
    """Per row: pairs with the others that are not tied."""
    inverse, counts = np.unique(values, return_inverse=True, return_counts=True)[1:]
    return np.asarray(values.size - counts[inverse.reshape(-1)], dtype=float)


ENTRIES = (
    MetricEntry(
        function=width_against_error,
        question="adaptive",
        inputs=("error", "width"),
        returns="table",
        direction="higher",
        good="clearly above 0; the ceiling is what the spread of the error explains of its size",
        bounds=(-1.0, 1.0),
        null="width independent of the error (permutation; Kendall's test)",
        interval="delta method through Fisher's z; projection variance of tau-b",
        merge="gather",
        weighted=False,
        randomized=True,
        array_api=True,
    ),
)
