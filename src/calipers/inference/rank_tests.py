"""Comparing several methods over several data sets by ranks: Friedman, then pairs by Nemenyi or Holm."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from scipy import special

from calipers.arrays import as_numpy
from calipers.exceptions import DegradedResultWarning, InputError, warn
from calipers.inference.multiplicity import holm
from calipers.inputs import check_alpha, require_finite
from calipers.results import RankComparison

POST_HOC = ("nemenyi", "holm")
BLOCKS = ("data sets", "repetitions")
# Quadrature over the largest of several normals.
_NODES, _REACH = 200, 12.0
_EXACT_BLOCKS = 200
_REPETITIONS = (
    "blocks are repetitions on one data set: they share its rows and its model, so they are not "
    "independent and the p-values are too small; they speak of this data set only"
)


def block_ranks(values: Any, *, higher_is_better: bool = False) -> np.ndarray:
    """Rank of each method in each block, 1 the best, ties sharing the mean of their ranks.

    Parameters
    ----------
    values : array (blocks, methods)
        One measurement of every method in every block.
    higher_is_better : bool
        Whether the largest value has rank 1.

    Returns
    -------
    array (blocks, methods)
        The ranks.

    Examples
    --------
    >>> from calipers.inference import block_ranks
    >>> block_ranks([[0.3, 0.1, 0.3], [0.1, 0.2, 0.3]]).tolist()
    [[2.5, 1.0, 2.5], [1.0, 2.0, 3.0]]
    """
    table = _table(values)
    from scipy import stats

    return np.asarray(stats.rankdata(-table if higher_is_better else table, axis=1))


def friedman_test(values: Any, *, higher_is_better: bool = False) -> tuple[float, float]:
    """Friedman's chi-squared, corrected for ties, and its p-value.

    Parameters
    ----------
    values : array (blocks, methods)
        One measurement of every method in every block.
    higher_is_better : bool
        Does not change the test.

    Returns
    -------
    (statistic, p_value) : tuple of float
        (0, 1) when every block is one tie.

    Notes
    -----
    Null: within a block all orders of the methods are equally likely. Chi-squared with k - 1 degrees of
    freedom, good from about ten blocks or five methods on. For two methods it is the sign test.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets.

    Examples
    --------
    >>> from calipers.inference import friedman_test
    >>> statistic, p = friedman_test([[1, 2, 3], [1, 2, 3], [2, 1, 3], [1, 2, 3]])
    >>> round(statistic, 2), round(p, 4)
    (6.5, 0.0388)
    """
    ranks = block_ranks(values, higher_is_better=higher_is_better)
    n, k = ranks.shape
    ties = sum(float(np.sum(c**3 - c)) for c in (np.unique(row, return_counts=True)[1] for row in ranks))
    correction = 1 - ties / (n * k * (k * k - 1))
    if correction <= 0:
        return 0.0, 1.0
    spread = float(np.sum((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2))
    statistic = 12 * spread / (n * k * (k + 1)) / correction
    return statistic, float(special.chdtrc(k - 1, statistic))


def critical_difference(n_methods: int, n_blocks: int, *, alpha: float = 0.05) -> float:
    """Nemenyi's difference of average ranks from which on two methods differ.

    Parameters
    ----------
    n_methods, n_blocks : int
        Size of the table.
    alpha : float
        Level of the test of all pairs together.

    Returns
    -------
    float
        q sqrt(k (k + 1) / (6 n)), q the quantile of the studentized range over sqrt(2).

    Examples
    --------
    >>> from calipers.inference import critical_difference
    >>> round(critical_difference(4, 14), 2)     # Demsar (2006), section 3.2.4: 2.569 sqrt(20 / 84)
    1.25
    """
    from scipy import optimize

    level = check_alpha(alpha)
    quantile = optimize.brentq(lambda q: float(range_exceeds(np.asarray(q), n_methods)) - level, 0.0, 40.0)
    return float(quantile / np.sqrt(2) * np.sqrt(n_methods * (n_methods + 1) / (6 * n_blocks)))


def range_exceeds(q: np.ndarray, k: int) -> np.ndarray:
    """P(range of k independent standard normals > q): the studentized range with known variance.

    1 - k times the integral of phi(z) (Phi(z) - Phi(z - q))^(k-1), the largest of the k at z, by
    Gauss-Legendre quadrature.
    """
    nodes, weights = _quadrature()
    z = _REACH * nodes
    density = _REACH * weights * np.exp(-z * z / 2) / np.sqrt(2 * np.pi)
    inside = special.ndtr(z) - special.ndtr(z - np.asarray(q)[..., None])
    return np.asarray(np.clip(1 - k * np.sum(density * inside ** (k - 1), axis=-1), 0.0, 1.0))


def compare_ranks(
    values: Any,
    names: Sequence[str],
    *,
    alpha: float = 0.05,
    post_hoc: str = "holm",
    higher_is_better: bool = False,
    blocks: str = "data sets",
) -> RankComparison:
    """Which of several methods differ, by their ranks over blocks.

    Parameters
    ----------
    values : array (blocks, methods)
        One measurement of every method in every block.
    names : sequence of str
        Names of the methods.
    alpha : float
        Level of the tests.
    post_hoc : {"holm", "nemenyi"}
        Pairs by Wilcoxon's signed-rank test with Holm's adjustment (does not depend on which other methods
        take part), or by Nemenyi's test of average ranks (has a critical difference).
    higher_is_better : bool
        Direction of the measurement.
    blocks : {"data sets", "repetitions"}
        What a block is. Repetitions on one data set are not independent: the result then carries a
        note, and a warning is raised.

    Returns
    -------
    RankComparison

    Raises
    ------
    InputError
        For fewer than two methods or blocks, missing values, or names that do not fit.

    Notes
    -----
    Friedman's test comes first; where it does not reject, no pair differs. Shared ranks follow the paper of
    Jang and Lee: methods that are not statistically different get the same rank.

    References
    ----------
    Demsar (2006), Statistical comparisons of classifiers over multiple data sets.
    Benavoli, Corani and Mangili (2016), Should we really use post-hoc tests based on mean-ranks?

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import compare_ranks
    >>> values = np.random.default_rng(0).normal(size=(20, 3)) + [0, 0, 2]
    >>> compare_ranks(values, ["a", "b", "c"]).shared_ranks
    {'b': 1, 'a': 1, 'c': 2}
    """
    table, labels = _table(values), tuple(str(name) for name in names)
    if len(labels) != table.shape[1] or len(set(labels)) != len(labels):
        raise InputError(f"names must name the {table.shape[1]} methods, each differently, got {labels}.")
    if post_hoc not in POST_HOC:
        raise InputError(f'post_hoc must be "holm" or "nemenyi", got {post_hoc!r}.')
    if blocks not in BLOCKS:
        raise InputError(f'blocks must be "data sets" or "repetitions", got {blocks!r}.')
    ranks = block_ranks(table, higher_is_better=higher_is_better)
    statistic, p_value = friedman_test(table)
    adjusted = _nemenyi(ranks) if post_hoc == "nemenyi" else _wilcoxon_holm(table)
    notes: tuple[str, ...] = ()
    if blocks == "repetitions":
        notes = (_REPETITIONS,)
        warn(f"{_REPETITIONS}.", DegradedResultWarning)
    level = check_alpha(alpha)
    nemenyi = post_hoc == "nemenyi"
    return RankComparison(
        names=labels,
        average_ranks=ranks.mean(axis=0),
        n_blocks=table.shape[0],
        statistic=statistic,
        p_value=p_value,
        adjusted=adjusted,
        alpha=level,
        post_hoc="Nemenyi" if nemenyi else "Wilcoxon signed-rank, Holm",
        critical_difference=critical_difference(*reversed(table.shape), alpha=level) if nemenyi else None,
        notes=notes,
    )


def average_shared_rank(comparisons: Sequence[RankComparison]) -> dict[str, float]:
    """Mean over data sets of each method's shared rank, as in the last rows of the paper's Table 2.

    Parameters
    ----------
    comparisons : sequence of RankComparison
        One per data set, all of the same methods.

    Returns
    -------
    dict
        Method to its mean shared rank; 1 is best.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import average_shared_rank, compare_ranks
    >>> values = np.random.default_rng(0).normal(size=(20, 2)) + [0, 2]
    >>> average_shared_rank([compare_ranks(values, ["a", "b"]), compare_ranks(-values, ["a", "b"])])
    {'a': 1.5, 'b': 1.5}
    """
    if not comparisons:
        raise InputError("comparisons must hold at least one comparison, got none.")
    names = comparisons[0].names
    if any(set(c.names) != set(names) for c in comparisons):
        raise InputError("comparisons must rank the same methods.")
    return {name: float(np.mean([c.shared_ranks[name] for c in comparisons])) for name in names}


def _nemenyi(ranks: np.ndarray) -> np.ndarray:
    """p-values of all pairs from the studentized range of average ranks."""
    n, k = ranks.shape
    means = ranks.mean(axis=0)
    gaps = np.abs(means[:, None] - means[None]) / np.sqrt(k * (k + 1) / (6 * n))
    p = range_exceeds(gaps * np.sqrt(2), k)
    np.fill_diagonal(p, 1.0)
    return p


def _wilcoxon_holm(table: np.ndarray) -> np.ndarray:
    k = table.shape[1]
    pairs = list(combinations(range(k), 2))
    adjusted = holm([signed_rank_test(table[:, i] - table[:, j]) for i, j in pairs])
    p = np.ones((k, k))
    for (i, j), value in zip(pairs, adjusted, strict=True):
        p[i, j] = p[j, i] = value
    return p


def signed_rank_test(differences: np.ndarray) -> float:
    """Two-sided p-value of Wilcoxon's signed-rank test; blocks without a difference are left out.

    Exact up to 200 differences, ties included: twice the mid-ranks are whole numbers, and the law of
    their signed sum is built by adding one rank at a time. Normal with the variance of the ranks above.
    """
    changed = differences[differences != 0]
    if not changed.size:
        return 1.0
    from scipy import stats

    ranks = np.rint(2 * stats.rankdata(np.abs(changed))).astype(np.int64)
    positive, total = int(ranks[changed > 0].sum()), int(ranks.sum())
    if changed.size > _EXACT_BLOCKS:
        z = (abs(positive - total / 2) - 0.5) / np.sqrt(float(np.sum(ranks.astype(float) ** 2)) / 4)
        return float(min(1.0, 2 * special.ndtr(-z)))
    law = np.zeros(total + 1)
    law[0] = 1.0
    for rank in ranks:
        law[rank:] = 0.5 * (law[rank:] + law[: total + 1 - rank])
        law[:rank] *= 0.5
    smaller = min(positive, total - positive)
    return float(min(1.0, 2 * law[: smaller + 1].sum()))


@lru_cache(maxsize=1)
def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return np.asarray(nodes), np.asarray(weights)


def _table(values: Any) -> np.ndarray:
    table = np.asarray(as_numpy(values, name="values"), dtype=float)
    if table.ndim != 2 or min(table.shape) < 2:
        raise InputError(
            "values must be (blocks, methods) with at least two of each, "
            f"got shape {table.shape}. Ranks need something to compare."
        )
    return np.asarray(require_finite(table, name="values"))
