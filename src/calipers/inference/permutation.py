"""Permutation test of the independence of one column from the others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError
from calipers.inference.monte_carlo import MonteCarloP, monte_carlo_p
from calipers.inference.null_law import SimulatedLaw
from calipers.inference.options import check_alternative
from calipers.inputs import check_count

_CELLS = 1 << 20


@dataclass(frozen=True, slots=True)
class PermutationResult:
    """The statistic, its simulated null law and its p-value with the Monte-Carlo error."""

    value: float
    test: MonteCarloP
    law: SimulatedLaw

    @property
    def p_value(self) -> float:
        """The p-value, valid at any number of draws."""
        return self.test.p_value


def permutation_test(
    statistic: Callable[..., Any],
    permuted: np.ndarray,
    *fixed: np.ndarray,
    n_draws: int = 999,
    alternative: str = "greater",
    strata: np.ndarray | None = None,
    vectorized: bool = False,
    random_state: RandomState = None,
) -> PermutationResult:
    """Test of the null that the order of ``permuted`` carries no information about the fixed columns.

    Parameters
    ----------
    statistic : callable
        ``statistic(permuted, *fixed)`` gives one number. With ``vectorized=True`` it gets (draws, n)
        permutations and the (n,) fixed columns, and gives one number per draw along the last axis.
    permuted : array (n,)
        The column to shuffle.
    *fixed : array (n,)
        The columns that stay.
    n_draws : int
        Shuffles.
    alternative : {"greater", "less", "two-sided"}
        Which readings count against the null.
    strata : array (n,) or None
        Shuffle within equal values only (independence given the stratum).
    vectorized : bool
        Whether the statistic takes many shuffles at once.
    random_state : int, Generator or None
        Source of the shuffles.

    Returns
    -------
    PermutationResult
        A NaN statistic gives a NaN p-value.

    Notes
    -----
    Exact at any n: under the null all orders are equally likely, and the one seen is counted with them.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import permutation_test
    >>> x = np.arange(8)
    >>> permutation_test(lambda p, f: p @ f, x, x, vectorized=True, n_draws=99, random_state=0).p_value
    0.01
    """
    check_alternative(alternative)
    n_draws, column = check_count(n_draws, name="n_draws"), np.asarray(permuted)
    others = tuple(np.asarray(c) for c in fixed)
    lengths = [len(c) for c in (column, *others, *(() if strata is None else (strata,)))]
    if len(set(lengths)) != 1:
        raise InputError(f"permuted, fixed and strata must have the same length, got {lengths}.")
    rng, step = generator(random_state), max(1, _CELLS // max(len(column), 1))
    value = _evaluate(statistic, column[None], others, vectorized)[0]
    draws = [
        _evaluate(statistic, _shuffles(column, strata, min(step, n_draws - start), rng), others, vectorized)
        for start in range(0, n_draws, step)
    ]
    simulated = np.concatenate(draws)
    test = monte_carlo_p(value.item(), simulated, alternative=alternative)
    return PermutationResult(float(value), test, SimulatedLaw(simulated))


def _shuffles(
    column: np.ndarray, strata: np.ndarray | None, size: int, rng: np.random.Generator
) -> np.ndarray:
    order = np.argsort(rng.random((size, len(column))), axis=1)
    if strata is None:
        return np.asarray(column[order])
    codes = np.unique(strata, return_inverse=True)[1]
    # Sorting a shuffled order by stratum leaves a random order inside each stratum.
    within = np.take_along_axis(order, np.argsort(codes[order], axis=1, kind="stable"), axis=1)
    shuffled = np.empty((size, len(column)), dtype=column.dtype)
    shuffled[:, np.argsort(codes, kind="stable")] = column[within]
    return shuffled


def _evaluate(
    statistic: Callable[..., Any], columns: np.ndarray, fixed: tuple[np.ndarray, ...], vectorized: bool
) -> np.ndarray:
    if vectorized:
        return np.asarray(statistic(columns, *fixed))
    return np.asarray([statistic(column, *fixed) for column in columns])
