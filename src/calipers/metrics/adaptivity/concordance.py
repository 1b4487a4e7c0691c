"""Property 1 as concordance: of two groups of rows the harder one should have the larger sets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inference import SimulatedLaw, effective_quantile, effective_rows
from calipers.inputs import check_confidence, check_count
from calipers.metrics.adaptivity.size import difficulty_columns, repeated
from calipers.metrics.entry import MetricEntry
from calipers.metrics.equal_values import EQUAL
from calipers.metrics.states.all_rows import in_content_order
from calipers.results import Estimate

_NULL_LEVEL = 0.95
# Sums of whole numbers below this are exact in single precision.
_EXACT_IN_SINGLE = 2.0**24
# With so many times more rows than a pair holds the product is sparse; numbers of a dense one made at once.
_SPARSE, _CELLS = 12, 1 << 21


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
    harder = harder_first(np.vstack([rank, width, shuffled]), pairs)
    agree = harder[:, 1:] == harder[:, :1]
    hits, law = agree[:, 0].copy(), SimulatedLaw(np.count_nonzero(agree[:, 1:], axis=0))
    line = _Correlation.of(rank, width)
    return _estimate(hits, pairs, law, line, rank.size, check_confidence(confidence))


def draw_pairs(n: int, m: int, draws: int, rng: np.random.Generator) -> np.ndarray:
    """(draws, 2, m) row numbers of disjoint groups, cut from random orders of all rows."""
    per_order = n // (2 * m)
    orders = -(-draws // per_order)
    shuffled = rng.permuted(np.broadcast_to(np.arange(n), (orders, n)), axis=1)
    return np.asarray(shuffled[:, : per_order * 2 * m].reshape(-1, 2, m)[:draws])


def harder_first(values: np.ndarray, pairs: np.ndarray) -> np.ndarray:
    """Whether the first group's total is at most the second's, equal up to rounding counting as equal.

    Of columns (k, n) and pairs of groups (draws, 2, m), as (draws, k).
    """
    signs = np.broadcast_to(np.array([1.0, -1.0])[:, None], pairs.shape[1:]).reshape(-1)
    gaps = _group_sums(values, pairs, signs)
    # Totals lie between m times the smallest and the largest value of their column: most gaps are decided.
    least, most = (EQUAL * pairs.shape[2] * end(values, axis=1) for end in (np.min, np.max))
    if gaps.dtype == np.float32:
        # These gaps are whole numbers: whole limits decide them alike, in their own precision.
        least, most = (np.floor(end).astype(np.float32) for end in (least, most))
    if np.array_equal(least, most) or not np.any((gaps > least) & (gaps <= most)):
        return np.asarray(gaps <= least)
    # For totals that are not negative the larger of the two is (sum + |difference|) / 2.
    larger = (_group_sums(values, pairs, np.abs(signs)) + np.abs(gaps)) / 2
    return np.asarray(gaps <= EQUAL * larger)


def _group_sums(values: np.ndarray, pairs: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Sums of each column's signed entries over the rows of each pair: one product of matrices.

    A product adds a hundred times as fast as a gather; it is sparse where groups hold few of the rows.
    """
    (k, n), rows = values.shape, pairs.reshape(len(pairs), -1)
    reach = 2.0 * signs.size * float(np.abs(values).max())
    # Whole numbers are exact in half the width.
    narrow = reach < _EXACT_IN_SINGLE and bool(np.all(values == np.floor(values)))
    columns = np.ascontiguousarray(values.T, dtype=np.float32 if narrow else np.float64)
    own = signs.astype(columns.dtype)
    if n > _SPARSE * signs.size:
        from scipy.sparse import csr_array

        starts = np.arange(0, rows.size + 1, signs.size)
        chosen: Any = csr_array((np.tile(own, len(rows)), rows.reshape(-1), starts), (len(rows), n))
        return np.asarray(chosen @ columns)
    found, step = np.empty((len(rows), k), dtype=columns.dtype), max(1, min(len(rows), _CELLS // n))
    table, places = np.empty((step, n), dtype=columns.dtype), np.arange(0, step * n, n)[:, None]
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        chosen = table[: len(part)]
        chosen.fill(0.0)
        # Places in the flat table: half the time of pairs of row and column.
        chosen.reshape(-1)[part + places[: len(part)]] = own
        np.matmul(chosen, columns, out=found[start : start + step])
    return found


@dataclass(frozen=True, slots=True)
class _Correlation:
    """Correlation of rank and size over rows, its standard error, and the rows that carry that."""

    value: float
    std_error: float
    rows: float

    @classmethod
    def of(cls, rank: np.ndarray, size: np.ndarray) -> _Correlation:
        if min(np.ptp(rank), np.ptp(size)) == 0:
            return cls(0.0, 0.0, 0.0)
        u, v = ((z - z.mean()) / z.std() for z in (rank, size))
        r = float(np.mean(u * v))
        influence = u * v - r * (u * u + v * v) / 2
        squares, fourths = float(np.sum(influence**2)), float(np.sum(influence**4))
        return cls(r, float(np.sqrt(squares)) / rank.size, effective_rows(squares, fourths))

    @property
    def share_error(self) -> float:
        """Standard error of 1/2 + arcsin(r) / pi."""
        return float(self.std_error / (np.pi * np.sqrt(max(1 - self.value**2, 1e-12))))


def _estimate(
    hits: np.ndarray, pairs: np.ndarray, law: SimulatedLaw, line: _Correlation, n: int, confidence: float
) -> Estimate:
    draws, value = hits.size, float(np.mean(hits))
    monte_carlo = float(np.sqrt(value * (1 - value) / draws))
    error = float(np.hypot(max(_row_error(hits, pairs, n), line.share_error), monte_carlo))
    fields = law.estimate_fields(int(hits.sum()), level=_NULL_LEVEL)
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
            "group_size": int(pairs.shape[2]),
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


def _row_error(hits: np.ndarray, pairs: np.ndarray, n: int) -> float:
    """Standard error over rows: infinitesimal jackknife of a U-statistic of k = 2m rows.

    The covariance of each row's presence with the hit, squared and summed; drawing adds
    (k/n)(1 - k/n) variance / draws to each square on average, which is taken out.
    """
    draws, k = hits.size, pairs[0].size
    present = np.bincount(pairs.reshape(-1), minlength=n) / draws
    together = np.bincount(pairs[hits].reshape(-1), minlength=n) / draws
    covariance = together - present * hits.mean()
    noise = n * (k / n) * (1 - k / n) * hits.var() / draws
    scale = n * (n - 1) / max(n - k, 1) ** 2
    return float(np.sqrt(max(scale * (np.sum(covariance**2) - noise), 0.0)))


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
