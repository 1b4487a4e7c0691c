"""Property 1 as concordance: of two groups of rows the harder one should have the larger sets."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inference import RowCorrelation, SimulatedLaw, effective_quantile
from calipers.inference.null_law import NULL_LEVEL
from calipers.inputs import check_confidence, check_count
from calipers.metrics.adaptivity.size_and_difficulty import difficulty_columns, repeated
from calipers.metrics.entry import MetricEntry
from calipers.metrics.equal_values import EQUAL
from calipers.metrics.states.all_rows import in_content_order
from calipers.results import Estimate

# Sums of whole numbers below this are exact in single precision.
_EXACT_IN_SINGLE = 2.0**24
# With so many times more rows than a pair holds pairs are sparse. Numbers of a dense product made at once;
# random ones so few that they stay near the processor.
_SPARSE, _CELLS, _NEAR = 12, 1 << 21, 1 << 15


def difficulty_concordance(
    ranks: Any,
    size: Any,
    *,
    group_size: int = 100,
    n_draws: int = 10_000,
    n_permutations: int = 199,
    sample_weight: Any = None,
    confidence: float = 0.95,
    random_state: RandomState = None,
) -> Estimate:
    """Share of random pairs of groups in which the group with the higher mean rank has the larger mean size.

    Between 0 and 1; higher is better, about 0.5 when size ignores difficulty. A small p-value is good
    news: the null is a size that ignores difficulty.

    Parameters
    ----------
    ranks, size : array (n,)
        1-based rank of the true label (or absolute error), and set size (or width).
    group_size : int
        Rows in each group, m in the paper. Twice as many rows are needed.
    n_draws : int
        Pairs of groups, T in the paper.
    n_permutations : int
        Shuffles of the size behind the p-value and the null band (``n_draws`` of the other metrics).
    sample_weight : array (n,), optional
        Whole numbers: repetitions of the rows.
    confidence : float
        Level of the interval.
    random_state : int, Generator or None
        Source of the groups and the shuffles.

    Returns
    -------
    Estimate
        ``details`` holds the Monte-Carlo error that comes from drawing pairs.

    Raises
    ------
    InputError
        For fewer than ``2 * group_size`` rows, weights that are not whole, or missing values.

    Notes
    -----
    Property 1 as printed, "(d1 <= d2 implies s1 <= s2) or (d1 > d2 implies s1 > s2)", is always true: one of
    the two premises is false. What is measured is that both implications hold, (d1 <= d2) = (s1 <= s2).
    The groups of a pair do not overlap; pairs are cut from random orders of all rows, n // (2m) pairs from
    each. Interval: it speaks of new rows, on the logit scale. Sums over large groups are jointly normal, so
    the share is 1/2 + arcsin(r) / pi with r the correlation of rank and size [1]_, and its standard error
    follows from that of r. The share is also a U-statistic of 2m rows, and the variance of its projection
    on single rows [2]_ serves small groups; the larger error of the two is taken. The quantile is that of
    Student's t for the rows that carry the noise (`calipers.inference.effective_quantile`). Null: size
    independent of rank, by permutation. Cost: 2 m n_draws sums per shuffle.

    References
    ----------
    .. [1] Sheppard (1899), On the application of the theory of error to cases of normal distribution and
       normal correlation, Philosophical Transactions A 192.
    .. [2] Wager, Hastie and Efron (2014), Confidence intervals for random forests, JMLR 15.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics import difficulty_concordance
    >>> rng = np.random.default_rng(0)
    >>> rank = 1 + rng.poisson(2, 600)
    >>> size = rank + rng.poisson(3, 600)
    >>> e = difficulty_concordance(rank, size, group_size=20, n_draws=2000, random_state=0)
    >>> print(f"{e.value:.2f} {e.p_value:.3f}")
    0.74 0.005
    """
    difficulty, sizes, weights, _ = difficulty_columns(ranks, size, sample_weight)
    columns = repeated(difficulty, sizes, weights=weights)
    if columns is None:
        raise InputError("sample_weight must hold whole numbers: groups of rows are drawn, not weighed.")
    rank, width = in_content_order(*columns)
    m, draws = check_count(group_size, name="group_size"), check_count(n_draws, name="n_draws")
    if rank.size < 2 * m:
        raise InputError(
            f"two groups of {m} rows need {2 * m} rows, got {rank.size}. Choose a smaller group_size."
        )
    rng = generator(random_state)
    pairs = draw_pairs(rank.size, m, draws, rng)
    shuffled = np.tile(width, (check_count(n_permutations, name="n_permutations"), 1))
    rng.permuted(shuffled, axis=1, out=shuffled)
    harder = harder_first(np.vstack([rank, width, shuffled]), pairs, m)
    agree = harder[:, 1:] == harder[:, :1]
    hits, law = agree[:, 0].copy(), SimulatedLaw(np.count_nonzero(agree[:, 1:], axis=0))
    line = RowCorrelation.of(rank, width)
    error = max(_row_error(hits, pairs, m), _share_error(line))
    return _estimate(hits, error, m, law, line, rank.size, check_confidence(confidence))


def draw_pairs(n: int, m: int, draws: int, rng: np.random.Generator) -> Any:
    """Random pairs of disjoint groups of m rows as signs (draws, n): 1 in the first group, -1 in the second.

    Pairs are cut from random orders of all rows. Others are 0, and not stored where groups hold few rows.
    """
    per_order = n // (2 * m)
    if per_order == 1:
        return _one_pair_of_each(n, m, draws, rng)
    orders = np.broadcast_to(np.arange(n), (-(-draws // per_order), n))
    rows = rng.permuted(orders, axis=1)[:, : per_order * 2 * m].reshape(-1, 2 * m)[:draws]
    signs = np.repeat(np.array([1, -1], dtype=np.int8), m)
    if n > _SPARSE * 2 * m:
        from scipy.sparse import csr_array

        starts = np.arange(0, rows.size + 1, 2 * m)
        signs = np.tile(signs.astype(np.float32), draws)  # the product sorts the rows of every other type
        return csr_array((signs, rows.reshape(-1), starts), (draws, n))
    table = np.zeros((draws, n), dtype=np.int8)
    # Places in the flat table: half the time of pairs of row and column.
    table.reshape(-1)[rows + np.arange(0, table.size, n)[:, None]] = signs
    return table


def _one_pair_of_each(n: int, m: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """The pairs of `draw_pairs` where an order holds one: random numbers up to the m-th, and to the 2m-th."""
    table, step = np.empty((draws, n), dtype=np.int8), max(1, _NEAR // n)
    for start in range(0, draws, step):
        signs = table[start : start + step]
        keys = rng.random(signs.shape)
        ordered = np.sort(keys, axis=1)
        first, both = ((keys <= ordered[:, k - 1, None]).view(np.int8) for k in (m, 2 * m))
        np.subtract(first, both - first, out=signs)
    return table


def harder_first(values: np.ndarray, pairs: Any, m: int) -> np.ndarray:
    """Whether the first group's total is at most the second's, equal up to rounding counting as equal.

    Of columns (k, n) and pairs of groups of m rows (draws, n), as (draws, k).
    """
    gaps = _group_sums(values, pairs, m)
    # Totals lie between m times the smallest and the largest value of their column: most gaps are decided.
    least, most = (EQUAL * m * end(values, axis=1) for end in (np.min, np.max))
    if gaps.dtype == np.float32:
        # These gaps are whole numbers: whole limits decide them alike, in their own precision.
        least, most = (np.floor(end).astype(np.float32) for end in (least, most))
    if np.array_equal(least, most) or not np.any((gaps > least) & (gaps <= most)):
        return np.asarray(gaps <= least)
    # For totals that are not negative the larger of the two is (sum + |difference|) / 2.
    larger = (_group_sums(values, abs(pairs), m) + np.abs(gaps)) / 2
    return np.asarray(gaps <= EQUAL * larger)


def _group_sums(values: np.ndarray, pairs: Any, m: int) -> np.ndarray:
    """Sums of each column's signed entries over the rows of each pair: one product of matrices.

    A product adds a hundred times as fast as a gather.
    """
    (k, n), reach = values.shape, 4.0 * m * float(np.abs(values).max())
    # Whole numbers are exact in half the width.
    narrow = reach < _EXACT_IN_SINGLE and bool(np.all(values == np.floor(values)))
    columns = np.ascontiguousarray(values.T, dtype=np.float32 if narrow else np.float64)
    if not isinstance(pairs, np.ndarray):
        return np.asarray(pairs @ columns)
    sums, step = np.empty((len(pairs), k), dtype=columns.dtype), max(1, _CELLS // n)
    for start in range(0, len(pairs), step):
        part = slice(start, start + step)
        np.matmul(pairs[part].astype(columns.dtype), columns, out=sums[part])
    return sums


def _share_error(line: RowCorrelation) -> float:
    """Standard error of 1/2 + arcsin(r) / pi."""
    return float(line.std_error / (np.pi * np.sqrt(max(1 - line.value**2, 1e-12))))


def _estimate(
    hits: np.ndarray,
    row_error: float,
    group_size: int,
    law: SimulatedLaw,
    line: RowCorrelation,
    n: int,
    confidence: float,
) -> Estimate:
    draws, value = hits.size, float(np.mean(hits))
    monte_carlo = float(np.sqrt(value * (1 - value) / draws))
    error = float(np.hypot(row_error, monte_carlo))
    fields = law.estimate_fields(int(hits.sum()), level=NULL_LEVEL)
    fields["null_high"] = fields["null_high"] / draws
    low, high, reason = _interval(value, error, line.rows, draws, confidence)
    return Estimate(
        name="concordance",
        value=value,
        std_error=error,
        low=low,
        high=high,
        confidence=confidence,
        n=n,
        method=f"share of {draws} pairs of groups, error of the correlation behind it, "
        f"{law.n_draws} permutations of size",
        reason=reason,
        details={
            "monte_carlo_error": monte_carlo,
            "group_size": group_size,
            "effective_rows": line.rows,
            "null_subject": "a predictor whose size ignores difficulty",
        },
        **fields,
    )


def _interval(
    value: float, error: float, rows: float, draws: int, confidence: float
) -> tuple[float | None, float | None, str]:
    """On the logit scale; a share of all or none of the pairs is read as half a pair short of it."""
    if error == 0:
        return None, None, "every pair agrees, and rank and size lie on one line: no noise, no interval"
    centre = float(np.clip(value, 0.5 / draws, 1 - 0.5 / draws))
    half = effective_quantile(confidence, rows) * error / (centre * (1 - centre))
    low, high = special.expit(special.logit(centre) + np.array([-half, half]))
    return float(min(low, value)), float(max(high, value)), ""


def _row_error(hits: np.ndarray, pairs: Any, m: int) -> float:
    """Standard error over rows: infinitesimal jackknife of a U-statistic of k = 2m rows.

    The covariance of each row's presence with the hit, squared and summed; drawing adds
    (k/n)(1 - k/n) variance / draws to each square on average, which is taken out.
    """
    (draws, n), k = pairs.shape, 2 * m
    if k == n:
        return 0.0  # all rows are present in every pair
    present, together = (_presence(pairs, chosen) / draws for chosen in (slice(None), hits))
    covariance = together - present * hits.mean()
    noise = n * (k / n) * (1 - k / n) * hits.var() / draws
    scale = n * (n - 1) / max(n - k, 1) ** 2
    return float(np.sqrt(max(scale * (np.sum(covariance**2) - noise), 0.0)))


def _presence(pairs: Any, chosen: Any) -> np.ndarray:
    """Of every row the number of chosen pairs that hold it."""
    if isinstance(pairs, np.ndarray):
        return np.asarray(np.count_nonzero(pairs[chosen], axis=0))
    held = pairs.indices.reshape(pairs.shape[0], -1)[chosen]
    return np.bincount(held.reshape(-1), minlength=pairs.shape[1])


ENTRIES = (
    MetricEntry(
        function=difficulty_concordance,
        question="adaptive",
        inputs=("ranks", "size"),
        direction="higher",
        good="near 1: the harder group has the larger sets; 0.5 when size ignores difficulty",
        bounds=(0.0, 1.0),
        null="size independent of difficulty (permutation of size)",
        interval="error of the correlation behind it or of the projection, logit scale",
        merge="gather",
        weighted=True,
        importance="refused",
        randomized=True,
        array_api=True,
    ),
)
