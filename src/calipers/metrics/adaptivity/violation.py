"""Worst coverage violation over bins of difficulty (T-CV), of set size (SSCV, ESCV) and of rank (Rank-CV)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from calipers.arrays import Array, RandomState, as_numpy, generator, on_device_of
from calipers.exceptions import InputError
from calipers.inputs import (
    NO_EXACT_LAW,
    Weights,
    check_count,
    check_covered,
    check_same_length,
    check_vector,
)
from calipers.inputs.option_checks import check_flag
from calipers.metrics.adaptivity.binning import (
    BINS_END_AT_ROWS,
    STRATA,
    bin_by_ease,
    bin_by_strata,
    check_strata,
    present_rows,
    stratum_name,
)
from calipers.metrics.adaptivity.ease_states import by_ease
from calipers.metrics.adaptivity.worst import (
    exact_law,
    stratum_laws,
    target_coverage,
    worst_estimate,
    worst_law,
)
from calipers.metrics.entry import MetricEntry
from calipers.results import Estimate


def t_cv(
    covered: Any,
    ease: Any,
    *,
    alpha: Any,
    n_bins: int = 50,
    n_calibration: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    randomized: bool = False,
    n_draws: int = 9999,
    random_state: RandomState = None,
) -> Estimate:
    """T-CV, eq. 3: the largest |coverage - (1 - alpha)| over bins of equal mass along the ease.

    Between 0 and max(alpha, 1 - alpha); lower is better, and 0 is out of reach: a predictor that covers every
    bin exactly as promised still reads about 0.0375 on 20 000 rows, 50 bins and alpha = 0.1. Read it
    against its null band; values for different numbers of rows or bins cannot be compared.

    Parameters
    ----------
    covered : bool array (n,)
        Whether the prediction set or interval of each row held its outcome.
    ease : array (n,)
        Ease of each row (`calipers.difficulty.ease`), or any score that is lower for harder rows.
    alpha : float, Fraction or Decimal
        Allowed miscoverage.
    n_bins : int
        Bins, eq. 2. More bins than rows leave some empty; those are passed over.
    n_calibration : int or array (n_bins,), optional
        Calibration rows behind the threshold of each bin, hardest first. One number n is exact for a
        predictor with n rows per bin, and on the safe side for a single threshold made from n rows.
    sample_weight : array (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    confidence : float
        Level of the interval.
    randomized : bool
        Break the ties of the discrete null law by a uniform draw: the p-value is then exactly
        uniform under the null. The plain one is valid and needs no draw.
    n_draws : int
        Draws of the null law, where it has to be simulated.
    random_state : int, Generator or None
        Used where rows with equal ease are shared between bins, and by ``randomized``.

    Returns
    -------
    Estimate
        ``std_error`` is that of the coverage of the worst bin. ``details``: coverage and rows per
        bin, the worst bin (0 is the hardest), the median of the null law, and ``mean_squared_violation``, the
        mean over bins of (coverage - target)^2 without its noise (0 on average for a sound
        predictor, comparable across numbers of rows), with its standard error.

    Raises
    ------
    InputError
        For lengths that differ, missing values, or an alpha outside (0, 1).

    Notes
    -----
    Rows with equal ease that cross an edge of eq. 2 are shared between the bins by mass, so the order of
    rows never matters. Null: every bin is covered with probability 1 - alpha; P(T <= x) is the product
    over bins of P(abs(K_b - n_b(1-alpha)) <= n_b x), K_b binomial, or beta-binomial with
    ``n_calibration``; with shared rows that law is simulated. One threshold from n rows shifts
    all bins together; E[f^B] >= (E f)^B makes that law smaller than the one used, hence the safe
    side. Interval: Clopper-Pearson per bin at the Sidak level, mapped through the maximum; it holds the
    largest violation of the true coverages of the bins. Unbiased mean square: mean of
    (c_b - t)^2 - c_b (1 - c_b) / (n_b - 1) over bins of two rows or more. Cost: one sort.

    References
    ----------
    Jang and Lee (2025), Quantifying and improving adaptivity in conformal prediction through input
    transformations, eq. 2 and 3.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import t_cv
    >>> rng = np.random.default_rng(0)
    >>> ease = rng.random(20_000)
    >>> print(t_cv(rng.random(20_000) < 0.82 + 0.16 * ease, ease, alpha=0.1))
    T-CV 0.11 [0.06, 0.18] at 95 %; a perfect predictor would read up to 0.050 (p = 6.7e-09)
    """
    hits, score, weights = _rows(covered, ease, "ease", sample_weight)
    bins = bin_by_ease([hits], score, check_count(n_bins, name="n_bins"), weights)
    rng, draws = generator(random_state), check_count(n_draws, name="n_draws")
    laws = stratum_laws(bins, alpha, n_calibration, name="n_bins")
    law = None if laws is None else worst_law(bins, laws, alpha, "both", draws, rng)
    return worst_estimate(
        "T-CV",
        bins,
        alpha,
        law=law,
        confidence=confidence,
        names=[f"ease bin {b + 1}" for b in range(n_bins)],
        randomized=rng if check_flag(randomized, name="randomized") else None,
        reason=NO_EXACT_LAW if law is None else "",
    )


def sscv(
    covered: Any,
    size: Any,
    *,
    alpha: Any,
    strata: Any = STRATA,
    n_calibration: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Estimate:
    """Size-stratified coverage violation: the largest |coverage - (1 - alpha)| over ranges of set size.

    Lower is better; the noise floor depends on how many rows fall into the thinnest stratum, so read it
    against the null band.

    Parameters
    ----------
    covered : bool array (n,)
        Whether each set held its outcome.
    size : array (n,)
        Set sizes, or interval widths with strata of your own.
    alpha : float, Fraction or Decimal
        Allowed miscoverage.
    strata : sequence of float
        Increasing upper ends; a stratum holds the sizes above the previous end up to and including its
        own. Default: [0,1] [2,3] [4,6] [7,10] [11,100] [101, inf). Empty strata are passed over.
    n_calibration : int or array, optional
        Calibration rows behind each stratum's coverage, as in `t_cv`.
    sample_weight, confidence
        As in `t_cv`.

    Returns
    -------
    Estimate
        Fields as in `t_cv`.

    Notes
    -----
    Null: every stratum is covered with probability 1 - alpha, given the sizes. Even a predictor that covers
    every case x as promised can break it, because the size is part of its answer; a violation says
    that the size does not mean what it should. Law and interval as in `t_cv`, without shared rows.

    References
    ----------
    Angelopoulos, Bates, Jordan and Malik (2021), Uncertainty sets for image classifiers using conformal
    prediction.

    Examples
    --------
    >>> from calipers.metrics import sscv
    >>> float(sscv([1, 1, 1, 0], [1, 1, 2, 2], alpha=0.25))     # size 1: 2 of 2, size 2: 1 of 2
    0.25
    """
    hits, sizes, weights = _rows(covered, size, "size", sample_weight)
    ends = check_strata(strata, as_numpy(sizes), name="size")
    return _by_size("SSCV", hits, sizes, ends, weights, alpha, n_calibration, confidence, "both")


def escv(
    covered: Any,
    size: Any,
    *,
    alpha: Any,
    one_sided: bool = False,
    n_calibration: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Estimate:
    """Each-size coverage violation: as `sscv` with one stratum per set size that occurs.

    Lower is better. A size that few rows have makes the noise floor high: read it against the null band.

    Parameters
    ----------
    covered : bool array (n,)
        Whether each set held its outcome.
    size : array (n,)
        Set sizes, whole numbers.
    alpha : float, Fraction or Decimal
        Allowed miscoverage.
    one_sided : bool
        Count only covering too little, max(0, (1 - alpha) - coverage), as the SAPS paper does.
    n_calibration, sample_weight, confidence
        As in `sscv`.

    Returns
    -------
    Estimate
        Fields as in `t_cv`.

    Notes
    -----
    Null, law and interval as in `sscv`.

    References
    ----------
    Huang, Xi, Zhang, Yao, Qiu and Wei (2024), Conformal prediction for deep classifier via label ranking.

    Examples
    --------
    >>> from calipers.metrics import escv
    >>> float(escv([1, 1, 1, 0, 0, 1], [1, 1, 2, 2, 2, 3], alpha=0.25))     # size 2: 1 of 3
    0.4166666666666667
    """
    hits, sizes, weights = _rows(covered, size, "size", sample_weight)
    host = as_numpy(sizes)
    if np.any(host != np.floor(host)) or np.any(host < 0):
        row = int(np.argmax((host != np.floor(host)) | (host < 0)))
        raise InputError(
            f"size must hold whole numbers of labels, got {host[row]:g} at row {row}. "
            "For interval widths use sscv with strata of widths, or t_cv."
        )
    ends = tuple(np.unique(host).tolist())
    side = "under" if check_flag(one_sided, name="one_sided") else "both"
    return _by_size("ESCV", hits, sizes, ends, weights, alpha, n_calibration, confidence, side)


def rank_cv(
    covered: Any,
    ranks: Any,
    *,
    alpha: Any,
    strata: Any = STRATA,
    sample_weight: Any = None,
    confidence: float = 0.95,
) -> Estimate:
    """Rank-CV: the largest |coverage - (1 - alpha)| over ranges of the true label's rank.

    It has no reading that is right: even the best predictor covers nearly all rows of rank 1 and few
    of rank 100, so it cannot be 0. Compare predictors by it at most.

    Parameters
    ----------
    covered : bool array (n,)
        Whether each set held its outcome.
    ranks : array (n,)
        1-based rank of the true label (`true_rank`), or absolute errors with strata of your own.
    alpha : float, Fraction or Decimal
        Allowed miscoverage.
    strata : sequence of float
        Increasing upper ends. Default: [1] [2,3] [4,6] [7,10] [11,100] [101, inf).
    sample_weight, confidence
        As in `t_cv`.

    Returns
    -------
    Estimate
        Without p-value and null band, and with the reason.

    Notes
    -----
    Interval as in `t_cv`. The rank is known only with the outcome, so coverage given the rank is not
    something a predictor can promise: there is no null.

    References
    ----------
    Jang and Lee (2025), section 3; strata of Angelopoulos et al. (2021), table 8.

    Examples
    --------
    >>> from calipers.metrics import rank_cv
    >>> float(rank_cv([1, 1, 1, 0], [1, 1, 2, 2], alpha=0.25))
    0.25
    """
    hits, positions, weights = _rows(covered, ranks, "ranks", sample_weight)
    ends = check_strata(strata, as_numpy(positions), name="ranks")
    bins = bin_by_strata([hits], positions, ends, weights)
    reason = "coverage given the rank of the outcome is not 1 - alpha even for a perfect predictor: no null"
    names = [f"rank {stratum_name(ends, k)}" for k in range(len(ends))]
    return worst_estimate("Rank-CV", bins, alpha, law=None, confidence=confidence, names=names, reason=reason)


def _rows(covered: Any, values: Any, name: str, sample_weight: Any) -> tuple[Array, Array, Weights | None]:
    """Covered rows, the column that sorts them, and weights; rows of weight 0 are not there."""
    hits, column = check_covered(covered), check_vector(values, name=name)
    n = check_same_length(covered=covered, **{name: values}, sample_weight=sample_weight)
    if isinstance(hits, np.ndarray) != isinstance(column, np.ndarray):
        hits = on_device_of(as_numpy(hits), column)
    (hits, column), weights = present_rows([hits, column], sample_weight, n)
    return hits, column, weights


def _by_size(
    name: str,
    hits: Array,
    sizes: Array,
    ends: Sequence[float],
    weights: Weights | None,
    alpha: Any,
    n_calibration: Any,
    confidence: float,
    side: str,
) -> Estimate:
    bins = bin_by_strata([hits], sizes, ends, weights)
    laws = stratum_laws(bins, alpha, n_calibration, name="strata")
    law = None if laws is None else exact_law(tuple(laws), target_coverage(alpha), side)
    if name == "SSCV":
        names = [f"size {stratum_name(ends, k)}" for k in range(len(ends))]
    else:
        names = [f"size {end:g}" for end in ends]
    return worst_estimate(
        name,
        bins,
        alpha,
        law=law,
        confidence=confidence,
        names=names,
        side=side,
        reason=NO_EXACT_LAW if law is None else "",
    )


_COVERS = "covers 1 - alpha in every {} (exact law; beta-binomial with n_calibration)"
_INTERVAL = "Clopper-Pearson per bin at the Sidak level, mapped through the maximum"


def _entry(function: Any, column: str, **fields: Any) -> MetricEntry:
    common = {
        "question": "adaptive", "inputs": ("covered", column), "direction": "lower", "bounds": (0.0, 1.0),
        "interval": _INTERVAL, "merge": "counts", "weighted": True, "array_api": True,
    }  # fmt: skip
    return MetricEntry(function=function, **(common | fields))  # type: ignore[arg-type]


ENTRIES = (
    _entry(
        t_cv, "ease", null=_COVERS.format("bin of equal mass along the ease"), randomized=True,
        good="inside the null band: no larger than a predictor that covers every bin as promised",
        merge="passes", state=by_ease, scaled=BINS_END_AT_ROWS,
    ),
    _entry(sscv, "size", good="inside the null band", null=_COVERS.format("stratum of set size")),
    _entry(escv, "size", good="inside the null band", null=_COVERS.format("set size that occurs")),
    _entry(
        rank_cv, "ranks", good="lower than a rival's on the same rows; 0 cannot be reached",
        no_null="coverage given the rank of the outcome is not 1 - alpha even for a perfect predictor",
    ),
)  # fmt: skip
