"""Worst coverage violation over bins of difficulty (T-CV), of set size (SSCV, ESCV) and of rank (Rank-CV)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import Array, RandomState, as_numpy, on_device_of
from calipers.exceptions import InputError
from calipers.inputs import Weights, check_count, check_covered, check_groups, check_same_length, check_vector
from calipers.inputs.option_checks import check_flag
from calipers.metrics.adaptivity.binning import (
    BINS_END_AT_ROWS,
    STRATA,
    bin_by_ease,
    bin_by_strata,
    check_strata,
    places_in_order,
    present_rows,
    stratum_codes,
    stratum_name,
)
from calipers.metrics.adaptivity.ease_states import by_ease
from calipers.metrics.adaptivity.from_predictions import covered_rows
from calipers.metrics.adaptivity.largest_violation import bins_null, worst_estimate
from calipers.metrics.entry import MetricEntry
from calipers.metrics.promised_rows import PromisedRows, check_promise
from calipers.metrics.states.row_arguments import ROW_ARGUMENTS
from calipers.results import Estimate


def t_cv(
    covered: Any,
    ease: Any,
    *,
    alpha: Any,
    n_bins: int = 50,
    y_true: Any = None,
    classes: Any = None,
    n_calibration: Any = None,
    sample_weight: Any = None,
    cluster: Any = None,
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
        Whether the prediction set or interval of each row held its outcome. With ``y_true`` the prediction
        itself: sets as bool (n, K), or intervals as float (n, 2).
    ease : array (n,)
        Ease of each row (`calipers.difficulty.ease`), or any score that is lower for harder rows.
    alpha : float, Fraction or Decimal, or array (n,)
        Allowed miscoverage: a number in (0, 1), or one in [0, 1] per row (``1 - p`` for probabilities).
    n_bins : int
        Bins, eq. 2. More bins than rows leave some empty; those are passed over.
    y_true : array (n,), optional
        Outcomes, when ``covered`` holds sets or intervals.
    classes : sequence of K labels, optional
        The label of every column of the sets; needed only when it cannot be read off ``y_true``.
    n_calibration : int or array (n_bins,), optional
        Calibration rows: one number for one threshold, which shifts all bins together, or one per bin,
        hardest first, for thresholds of their own.
    sample_weight : array (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    cluster : array (n,), optional
        Rows of one cluster depend on each other.
    confidence : float
        Level of the interval.
    randomized : bool
        Break the ties of the discrete null law by a uniform draw: the p-value is then exactly
        uniform under the null. The plain one is valid and needs no draw.
    n_draws : int
        Draws of the null law, where it has to be simulated.
    random_state : int, Generator or None
        Used where the null law is simulated, and by ``randomized``.

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
    over bins of P(abs(K_b - n_b(1-alpha)) <= n_b x), K_b binomial, or beta-binomial with calibration rows of
    its own. One threshold from n rows gives all bins one coverage c ~ Beta(k, n + 1 - k), and the law is the
    mean of that product over c. With an alpha per row a bin is held against the mean promise of its rows,
    and K_b has the law of unequal trials. The law is simulated with shared rows, with levels that
    differ by row from one calibration sample (its order statistics), and with ``cluster``: the normal law of
    the cluster sums, with Student's allowance for few; a bin with rows of fewer than 10 clusters leaves no
    test. Interval: Clopper-Pearson per bin at the Sidak level, mapped through the maximum; it holds the
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
    T-CV 0.11 [0.06, 0.19] at 95 %; a valid predictor would read up to 0.050 (p < 0.001)
    """
    covered = covered_rows(covered, y_true, classes)
    rows, score = _rows(covered, ease, "ease", alpha, sample_weight, cluster)
    bins = bin_by_ease([rows.covered], score, check_count(n_bins, name="n_bins"), rows.weights)
    draws = check_count(n_draws, name="n_draws")
    names = [f"ease bin {b + 1}" for b in range(n_bins)]
    null = bins_null(
        bins, rows, lambda: places_in_order(bins, as_numpy(score), rows.mass), names, n_calibration
    )
    return worst_estimate(
        "T-CV",
        bins,
        null,
        confidence=confidence,
        random_state=random_state,
        n_draws=draws,
        randomized=check_flag(randomized, name="randomized"),
    )


def sscv(
    covered: Any,
    size: Any,
    *,
    alpha: Any,
    strata: Any = STRATA,
    n_calibration: Any = None,
    sample_weight: Any = None,
    cluster: Any = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
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
    alpha : float, Fraction or Decimal, or array (n,)
        Allowed miscoverage: a number in (0, 1), or one in [0, 1] per row (``1 - p`` for probabilities).
    strata : sequence of float
        Increasing upper ends; a stratum holds the sizes above the previous end up to and including its
        own. Default: [0,1] [2,3] [4,6] [7,10] [11,100] [101, inf). Empty strata are passed over.
    n_calibration : int or array, optional
        Calibration rows behind one threshold, or behind that of each stratum, as in `t_cv`.
    sample_weight, cluster, confidence, random_state
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
    rows, sizes = _rows(covered, size, "size", alpha, sample_weight, cluster)
    ends = check_strata(strata, as_numpy(sizes), name="size")
    names = [f"size {stratum_name(ends, k)}" for k in range(len(ends))]
    return _over_strata("SSCV", rows, sizes, ends, names, n_calibration, confidence, random_state)


def escv(
    covered: Any,
    size: Any,
    *,
    alpha: Any,
    one_sided: bool = False,
    n_calibration: Any = None,
    sample_weight: Any = None,
    cluster: Any = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> Estimate:
    """Each-size coverage violation: as `sscv` with one stratum per set size that occurs.

    Lower is better. A size that few rows have makes the noise floor high: read it against the null band.

    Parameters
    ----------
    covered : bool array (n,)
        Whether each set held its outcome.
    size : array (n,)
        Set sizes, whole numbers.
    alpha : float, Fraction or Decimal, or array (n,)
        Allowed miscoverage: a number in (0, 1), or one in [0, 1] per row (``1 - p`` for probabilities).
    one_sided : bool
        Count only covering too little, max(0, (1 - alpha) - coverage), as the SAPS paper does.
    n_calibration, sample_weight, cluster, confidence, random_state
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
    rows, sizes = _rows(covered, size, "size", alpha, sample_weight, cluster)
    host = as_numpy(sizes)
    if np.any(host != np.floor(host)) or np.any(host < 0):
        row = int(np.argmax((host != np.floor(host)) | (host < 0)))
        raise InputError(
            f"size must hold whole numbers of labels, got {host[row]:g} at row {row}. "
            "For interval widths use sscv with strata of widths, or t_cv."
        )
    ends = tuple(np.unique(host).tolist())
    names, side = (
        [f"size {end:g}" for end in ends],
        "under" if check_flag(one_sided, name="one_sided") else "both",
    )
    return _over_strata("ESCV", rows, sizes, ends, names, n_calibration, confidence, random_state, side=side)


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
    alpha : float, Fraction or Decimal, or array (n,)
        Allowed miscoverage: a number in (0, 1), or one in [0, 1] per row (``1 - p`` for probabilities).
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
    rows, positions = _rows(covered, ranks, "ranks", alpha, sample_weight)
    ends = check_strata(strata, as_numpy(positions), name="ranks")
    reason = "coverage given the rank of the outcome is not 1 - alpha even for a perfect predictor: no null"
    names = [f"rank {stratum_name(ends, k)}" for k in range(len(ends))]
    return _over_strata("Rank-CV", rows, positions, ends, names, None, confidence, None, no_null=reason)


def _rows(
    covered: Any, values: Any, name: str, alpha: Any, sample_weight: Any, cluster: Any = None
) -> tuple[PromisedRows, Array]:
    """Rows of the promise and the column that sorts them; rows of weight 0 are not there."""
    hits, column = check_covered(covered), check_vector(values, name=name)
    n = check_same_length(covered=covered, **{name: values}, sample_weight=sample_weight)
    if isinstance(hits, np.ndarray) != isinstance(column, np.ndarray):
        hits = on_device_of(as_numpy(hits), column)
    level, promised = check_promise(alpha, n)
    clusters = None if cluster is None else check_groups(cluster, n, name="cluster")[1]
    given = Weights.check(sample_weight, n)
    there = slice(None) if given is None else np.flatnonzero(given.mass)
    (hits, column), weights = present_rows([hits, column], given, n)
    promised = None if promised is None else promised[there]
    clusters = None if clusters is None else clusters[there]
    rows = PromisedRows(hits, level, promised, weights, clusters)
    return (rows if rows.is_plain else replace(rows, covered=as_numpy(hits))), column


def _over_strata(
    name: str,
    rows: PromisedRows,
    values: Array,
    ends: Sequence[float],
    names: list[str],
    n_calibration: Any,
    confidence: float,
    random_state: RandomState,
    **options: Any,
) -> Estimate:
    bins = bin_by_strata([rows.covered], values, ends, rows.weights)
    null = bins_null(bins, rows, lambda: stratum_codes(as_numpy(values), ends), names, n_calibration)
    return worst_estimate(name, bins, null, confidence=confidence, random_state=random_state, **options)


_COVERS = "covers 1 - alpha in every {} (exact law; one coverage drawn for all with n_calibration)"
_INTERVAL = "Clopper-Pearson per bin at the Sidak level, mapped through the maximum"


def _entry(function: Any, column: str, **fields: Any) -> MetricEntry:
    common = {
        "question": "adaptive", "inputs": ("covered", column), "direction": "lower", "bounds": (0.0, 1.0),
        "interval": _INTERVAL, "merge": "counts", "weighted": True, "array_api": True,
        "row_arguments": ROW_ARGUMENTS,
    }  # fmt: skip
    return MetricEntry(function=function, **(common | fields))  # type: ignore[arg-type]


ENTRIES = (
    _entry(
        t_cv, "ease", null=_COVERS.format("bin of equal mass along the ease"), randomized=True,
        good="inside the null band: no larger than a predictor that covers every bin as promised",
        merge="passes", state=by_ease, scaled=BINS_END_AT_ROWS,
    ),
    _entry(sscv, "size", good="inside the null band", null=_COVERS.format("stratum of set size")),
    _entry(
        escv, "size", good="inside the null band", null=_COVERS.format("set size that occurs"),
        counts_labels=True,
    ),
    _entry(
        rank_cv, "ranks", good="lower than a rival's on the same rows; 0 cannot be reached",
        no_null="coverage given the rank of the outcome is not 1 - alpha even for a perfect predictor",
        row_arguments=("promised",),
    ),
)  # fmt: skip
