"""Does size grow with difficulty? T-SS (eq. 4) and Rank-SS."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import (
    Array,
    RandomState,
    as_numpy,
    generator,
    namespace,
    on_device_of,
)
from calipers.deprecation import renamed_arguments
from calipers.exceptions import InputError, InputTypeError
from calipers.inference import SimulatedLaw, run_sum_permutation_test
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import (
    NO_EXACT_LAW,
    Weights,
    check_confidence,
    check_count,
    check_same_length,
    check_vector,
)
from calipers.metrics.adaptivity.binning import (
    BINS_END_AT_ROWS,
    STRATA,
    Binned,
    bin_by_ease,
    bin_by_strata,
    check_strata,
    present_rows,
)
from calipers.metrics.adaptivity.correlation import fisher_interval, fit_bin_means, signed_square
from calipers.metrics.adaptivity.ease_states import by_ease
from calipers.metrics.adaptivity.from_predictions import difficulty_rows, size_rows
from calipers.metrics.entry import MetricEntry
from calipers.metrics.equal_values import EQUAL
from calipers.results import Estimate

_SUBJECT = "a predictor whose size ignores difficulty"
# Rows that are shuffled one by one; beyond, sums over runs of rows are drawn from their normal limits.
_MOST_SHUFFLED = 5_000_000
# A stratum with as many rows as this is filled in nearly every sample like it.
_FEWEST_IN_STRATUM = 5
# Of (rank, size and their squares): the product, cubes and fourth powers. With the means they give the
# line, its error, and how many rows carry that.
_PRODUCTS = ((0, 1), (0, 2), (1, 3), (2, 2), (3, 3))


@renamed_arguments("0.4", n_permutations="n_draws")
def t_ss(
    ranks: Any,
    size: Any,
    ease: Any,
    *,
    n_bins: int = 50,
    y_true: Any = None,
    classes: Any = None,
    sample_weight: Any = None,
    confidence: float = 0.95,
    n_draws: int = 999,
    random_state: RandomState = None,
) -> Estimate:
    """T-SS, eq. 4: signed R-squared of mean set size on mean true rank over bins of equal ease.

    Between -1 and 1; higher is better: near 1, sets grow in step with how hard the bins really were. A small
    p-value is good news here, because the null is a size that ignores difficulty. It falls when the
    model gets better (few ranks above 1 are left to explain), so compare predictors of one model only.

    Parameters
    ----------
    ranks : array (n,)
        1-based rank of the true label (`true_rank`); for regression the absolute error. With ``y_true``
        what the model said: probabilities (n, K), or point predictions (n,).
    size : array (n,), or the predictions
        Set sizes, or for regression interval widths; sets as bool (n, K) and intervals as float (n, 2) are
        taken too.
    ease : array (n,)
        Ease of each row, or any score that is lower for harder rows.
    n_bins : int
        Bins of equal mass, eq. 2; empty ones are passed over.
    y_true : array (n,), optional
        Outcomes, when ``ranks`` holds probabilities or predictions.
    classes : sequence of K labels, optional
        The label of every column of the probabilities; needed only when it cannot be read off ``y_true``.
    sample_weight : array (n,), optional
        Weights: whole numbers are repetitions, others importance weights without a test.
    confidence : float
        Level of the interval.
    n_draws : int
        Shuffles of the size behind the p-value and the null band.
    random_state : int, Generator or None
        Source of the shuffles.

    Returns
    -------
    Estimate
        NaN with a reason when the mean rank or the mean size is the same in every bin. ``details``:
        slope, means per bin, and ``noise_free``, the R-squared with the noise of the bin means taken out.

    Raises
    ------
    InputError
        For lengths that differ or missing or infinite values.

    Notes
    -----
    sign(slope) max(0, 1 - SSE/SST) of a least-squares line with intercept is sign(r) r^2, r the correlation
    of the bin means. Rows with equal ease are shared between bins as in `t_cv`. Interval: delta method on
    the bin means, through Fisher's z, with the quantile of Student's t for as many rows as carry the noise
    (`calipers.inference.effective_quantile`: few with heavy tails or rare hard rows); it speaks of the
    value expected at this number of rows and bins, which noise in the bin means pulls towards 0. Where the
    means do not differ the delta method does not hold: the interval leaves 0 out only where the two-sided
    test rejects. Null: size independent of rank and ease, by permutation. Cost: one sort, and one pass per
    shuffle.

    References
    ----------
    Jang and Lee (2025), Quantifying and improving adaptivity in conformal prediction through input
    transformations, eq. 4.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import t_ss
    >>> rng = np.random.default_rng(0)
    >>> ease = rng.random(5000)
    >>> rank, size = 1 + rng.poisson(3 * (1 - ease)), 1 + rng.poisson(5 * (1 - ease))
    >>> print(t_ss(rank, size, ease, random_state=0))
    T-SS 0.971 [0.952, 0.983] at 95 %; a predictor whose size ignores difficulty would read up to ...
    """
    if ease is None:
        raise InputTypeError("ease must be an array or a list, got NoneType.")
    ranks, size = difficulty_rows(ranks, y_true, classes), size_rows(size)
    difficulty, sizes, weights, score = difficulty_columns(ranks, size, sample_weight, ease=ease)
    n_bins = check_count(n_bins, name="n_bins")
    columns, origin = _with_squares(difficulty, sizes)
    bins = bin_by_ease(columns, score, n_bins, weights, products=_PRODUCTS)

    shuffling = _shuffling(bins, sizes, weights, n_draws, random_state)
    return _fit("T-SS", bins, origin, confidence, shuffling)


@renamed_arguments("0.4", n_permutations="n_draws")
def rank_ss(
    ranks: Any,
    size: Any,
    *,
    strata: Any = STRATA,
    sample_weight: Any = None,
    confidence: float = 0.95,
    n_draws: int = 999,
    random_state: RandomState = None,
) -> Estimate:
    """Rank-SS: signed R-squared of mean set size on mean rank over ranges of the true label's rank.

    Between -1 and 1; higher is better. The strata are very unequal (most rows have rank 1), and with two
    filled strata it is 1 or -1 whatever the data: `t_ss` exists because of that.

    Parameters
    ----------
    ranks, size : array (n,)
        1-based rank of the true label, and set size.
    strata : sequence of float
        Increasing upper ends. Default: [1] [2,3] [4,6] [7,10] [11,100] [101, inf).
    sample_weight, confidence, n_draws, random_state
        As in `t_ss`.

    Returns
    -------
    Estimate
        NaN with a reason when fewer than two strata have rows, or all their mean sizes are equal.

    Notes
    -----
    Every filled stratum counts once, whatever its rows. Interval and null as in `t_ss`; it speaks of samples
    in which the same strata are filled. No interval where a stratum has fewer than 5 rows, which another
    sample might not have, or only two strata are filled.

    References
    ----------
    Jang and Lee (2025), section 3; strata of Angelopoulos et al. (2021), table 8.

    Examples
    --------
    >>> from calipers.metrics import rank_ss
    >>> round(float(rank_ss([1, 1, 2, 3, 5, 6], [1, 1, 2, 2, 2, 3], random_state=0)), 4)
    0.8622
    """
    difficulty, sizes, weights, _ = difficulty_columns(ranks, size, sample_weight)
    ends = check_strata(strata, as_numpy(difficulty), name="ranks")
    columns, origin = _with_squares(difficulty, sizes)
    columns += [columns[i] * columns[j] for i, j in _PRODUCTS]
    bins = bin_by_strata(columns, difficulty, ends, weights)

    shuffling = _shuffling(bins, sizes, weights, n_draws, random_state)
    estimate = _fit("Rank-SS", bins, origin, confidence, shuffling)
    thinnest = float(bins.effective_mass[bins.filled].min())
    if estimate.low is None or thinnest >= _FEWEST_IN_STRATUM:
        return estimate
    reason = f"a stratum has {thinnest:g} rows and could as well have had none: no interval"
    return replace(estimate, low=None, high=None, reason=reason)


def difficulty_columns(
    ranks: Any, size: Any, sample_weight: Any, ease: Any = None
) -> tuple[Array, Array, Weights | None, Array]:
    """Rank and size (and ease) in one library, and weights; rows of weight 0 are not there."""
    columns = {"ranks": check_vector(ranks, name="ranks"), "size": check_vector(size, name="size")}
    if ease is not None:
        columns["ease"] = check_vector(ease, name="ease")
    n = check_same_length(ranks=ranks, size=size, ease=ease, sample_weight=sample_weight)
    _refuse_negative(columns)
    like = columns.get("ease", columns["size"])
    same = {k: v if type(v) is type(like) else on_device_of(as_numpy(v), like) for k, v in columns.items()}
    (rank, width, *others), weights = present_rows(list(same.values()), sample_weight, n)
    return rank, width, weights, others[0] if others else None


def _refuse_negative(columns: dict[str, Array]) -> None:
    for name in ("ranks", "size"):
        xp = namespace(columns[name])
        if float(xp.min(columns[name])) < 0:
            row = int(xp.argmin(columns[name]))
            raise InputError(
                f"{name} must not be negative, got {float(columns[name][row]):g} at row {row}. "
                "For regression pass the absolute error and the width."
            )


def _with_squares(ranks: Array, size: Array) -> tuple[list[Array], np.ndarray]:
    """Both columns and their squares, measured from the smallest value of each, and these two values.

    Fourth powers of widths such as 1000.01 and 1000.02 would be rounding alone.
    """
    xp = namespace(ranks)
    both = [xp.astype(ranks, xp.float64), xp.astype(size, xp.float64)]
    smallest = [xp.min(column) for column in both]
    both = [column - low for column, low in zip(both, smallest, strict=True)]
    return both + [column * column for column in both], np.array([float(low) for low in smallest])


def _fit(
    name: str,
    bins: Binned,
    origin: np.ndarray,
    confidence: float,
    permute: Callable[[], SimulatedLaw | None],
) -> Estimate:
    check_confidence(confidence)
    filled = bins.filled
    means = bins.means()[:, filled]
    difficulty, sizes = means[:2] + origin[:, None]
    base: dict[str, Any] = {
        "name": name,
        "n": bins.n,
        "method": "signed R-squared of mean size on mean difficulty over bins",
        "details": {
            "bin_difficulty": difficulty.tolist(),
            "bin_size": sizes.tolist(),
            "rows": bins.mass[filled].tolist(),
        },
    }
    if reason := _undefined(np.stack([difficulty, sizes])):
        return Estimate(**base, value=float("nan"), reason=reason)
    line = fit_bin_means(means, bins.effective_mass[filled], bins.noise_correlation())
    value = float(signed_square(means[0], means[1]))
    low, high, why = fisher_interval(line.correlation, line.std_error, confidence, rows=line.effective_rows)
    law = permute()
    fields = {} if law is None else law.estimate_fields(value, level=NULL_LEVEL)
    if law is None:
        why = "; ".join(filter(None, [why, NO_EXACT_LAW]))
    else:
        low, high = _with_zero(low, high, law.p_value(value, "two-sided"), confidence)
        base["method"] += f", delta-method interval through Fisher's z, {law.n_draws} permutations of size"
    base["details"] |= {
        "slope": line.slope,
        "noise_free": line.noise_free,
        "effective_rows": line.effective_rows,
        "null_subject": _SUBJECT,
    }
    return Estimate(
        **base,
        value=value,
        # d(r |r|) = 2 |r| dr
        std_error=None if np.isnan(line.std_error) else 2 * abs(line.correlation) * line.std_error,
        low=low,
        high=high,
        confidence=confidence,
        reason=why,
        **fields,
    )


def _with_zero(
    low: float | None, high: float | None, p_value: float, confidence: float
) -> tuple[float | None, float | None]:
    """An interval that leaves 0 out only where the test rejects that sizes ignore difficulty.

    Where they do, all bins have one mean size, the correlation of the means is noise divided by noise, and
    the delta method, which needs a spread of the means, does not hold.
    """
    if low is None or high is None or p_value <= 1 - confidence:
        return low, high
    return min(low, 0.0), max(high, 0.0)


def _undefined(means: np.ndarray) -> str:
    if means.shape[1] < 2:
        return f"only {means.shape[1]} bin has rows; a line needs two"
    for row, what in ((0, "difficulty"), (1, "size")):
        spread = float(np.ptp(means[row]))
        if spread <= EQUAL * float(np.max(np.abs(means[row]), initial=1e-300)):
            return f"the mean {what} is the same in every bin ({means[row, 0]:g}), so the fit is undefined"
    return ""


def _shuffling(
    bins: Binned, size: Array, weights: Weights | None, n_draws: int, random_state: RandomState
) -> Callable[[], SimulatedLaw | None]:
    """What draws the law under shuffled sizes; it gives None for importance weights.

    Sizes are shuffled from their sorted order, so that neither order nor split of the rows matters.
    """
    draws = check_count(n_draws, name="n_draws")

    def draw() -> SimulatedLaw | None:
        if weights is not None and not weights.whole:
            return None
        filled = bins.filled
        runs, shares = bins.shared_runs()
        shares = shares[:, filled]
        if runs.sum() > _MOST_SHUFFLED:
            return _law_of_many(bins, runs, shares, draws, random_state)
        columns = repeated(size, weights=weights)
        assert columns is not None  # noqa: S101 - narrows the type: importance weights have left
        means, mass = bins.means()[0, filled], bins.mass[filled]
        return run_sum_permutation_test(
            lambda sums: signed_square(means, (sums @ shares if bins.ties_cross else sums) / mass),
            np.sort(columns[0]),
            np.rint(runs).astype(np.int64),
            n_draws=draws,
            random_state=random_state,
        ).law

    return draw


def _law_of_many(
    bins: Binned, runs: np.ndarray, shares: np.ndarray, n_draws: int, random_state: RandomState
) -> SimulatedLaw:
    """The law under shuffled sizes when there are too many rows to shuffle.

    The sums over runs of rows are then normal: a draw without replacement has the mean and the covariance
    of independent ones, tied so that their sum is what it is.
    """
    rng, filled, total = generator(random_state), bins.filled, float(bins.mass.sum())
    means = bins.means()
    size = float(np.sum(bins.mass[filled] * means[1, filled])) / total
    square = float(np.sum(bins.mass[filled] * means[3, filled])) / total
    z = rng.normal(size=(n_draws, len(runs))) * np.sqrt(runs)
    spread = np.sqrt(max(0.0, square - size**2))
    sums = size * runs + spread * (z - runs / total * z.sum(axis=1, keepdims=True))
    return SimulatedLaw(signed_square(means[0, filled], sums @ shares / bins.mass[filled]))


def repeated(*columns: Array, weights: Weights | None) -> list[np.ndarray] | None:
    """The columns on the host, rows repeated by their weights; None for importance weights."""
    host = [np.asarray(as_numpy(column), dtype=float) for column in columns]
    if weights is None:
        return host
    times = weights.repetitions
    return None if times is None else [np.repeat(column, times) for column in host]


_INTERVAL = "delta method on bin means through Fisher's z"
_IGNORES = "size independent of difficulty (permutation of size)"

ENTRIES = (
    MetricEntry(
        function=t_ss,
        question="adaptive",
        inputs=("ranks", "size", "ease"),
        direction="higher",
        good="near 1: mean size follows mean difficulty from bin to bin",
        bounds=(-1.0, 1.0),
        null=_IGNORES,
        interval=_INTERVAL,
        merge="passes",
        state=by_ease,
        weighted=True,
        scaled=BINS_END_AT_ROWS,
        randomized=True,
        array_api=True,
    ),
    MetricEntry(
        function=rank_ss,
        question="adaptive",
        inputs=("ranks", "size"),
        direction="higher",
        good="near 1",
        bounds=(-1.0, 1.0),
        null=_IGNORES,
        interval=_INTERVAL,
        merge="counts",
        weighted=True,
        randomized=True,
        array_api=True,
    ),
)
