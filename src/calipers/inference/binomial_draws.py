"""Many draws of coins and of binomial numbers at once, exact in law, by few random bits each."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from scipy import special

# Cells of equal probability into which every law is cut; the most laws, and possible counts of all of them.
_CELLS, _MOST_LAWS, _MOST_COUNTS = 1 << 12, 1 << 8, 1 << 17
_FEWEST_DRAWS = 256


def draw_coins(chances: np.ndarray, n_draws: int, rng: np.random.Generator) -> np.ndarray:
    """Independent coins, one column for each chance.

    Parameters
    ----------
    chances : array of shape (k,)
        Probability of a hit, from 0 to 1.
    n_draws : int
        Rows.
    rng : Generator
        Source of the draws.

    Returns
    -------
    bool array of shape (n_draws, k)
        Whether each coin hits.

    Notes
    -----
    A uniform number U below the chance is a hit. Its first eight bits decide unless they are those of the
    chance (one coin in 256): then further bits are drawn. The law is that of 61 bits, in a quarter of the
    time of as many uniform numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference.binomial_draws import draw_coins
    >>> draw_coins(np.array([0.0, 0.3, 1.0]), 4000, np.random.default_rng(0)).mean(axis=0).round(1).tolist()
    [0.0, 0.3, 1.0]
    """
    places = np.asarray(chances, dtype=np.float64) * 256
    first = np.minimum(places, 255).astype(np.uint8)  # a chance of 1 is 255 and a whole further place
    shape = (n_draws, len(first))
    words = rng.integers(0, 1 << 64, -(-n_draws * len(first) // 8), dtype=np.uint64)
    cells = words.view(np.uint8)[: n_draws * len(first)].reshape(shape)
    hits = cells < first
    unsure = np.flatnonzero(cells == first)
    column = unsure % max(len(first), 1)
    hits.reshape(-1)[unsure] = rng.random(len(unsure)) < places[column] - first[column]
    return hits


def draw_binomials(
    trials: np.ndarray, chances: np.ndarray, n_draws: int, rng: np.random.Generator
) -> np.ndarray:
    """Independent binomial numbers (n_draws, k), one column for each pair of trials and chance.

    Parameters
    ----------
    trials : int array of shape (k,)
        Number of trials.
    chances : array of shape (k,)
        Probability of success.
    n_draws : int
        Rows.
    rng : Generator
        Source of the draws.

    Returns
    -------
    array of shape (n_draws, k)
        Whole numbers; as float64 where they come from tables.

    Notes
    -----
    By inversion: a uniform number U in [0, 1) gives the count k with P(K < k) <= U < P(K <= k). Its first
    twelve bits name a cell. Where no step of the distribution function lies inside the cell, a table gives
    the count; elsewhere (one draw in a hundred) further bits are drawn and the count is searched for. The
    law is exact, in a tenth of the time of numpy's draws, which prepare each law anew. Laws with too many
    counts for a table, and few draws, are left to numpy.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference.binomial_draws import draw_binomials
    >>> drawn = draw_binomials(np.array([10, 40]), np.array([0.5, 0.9]), 4000, np.random.default_rng(0))
    >>> drawn.mean(axis=0).round(1).tolist()
    [5.0, 36.0]
    """
    if n_draws < _FEWEST_DRAWS or len(trials) * n_draws < _CELLS:
        return rng.binomial(trials, chances, (n_draws, len(trials)))
    made = _tables(trials.astype(np.int64).tobytes(), chances.astype(np.float64).tobytes())
    if made is None:
        return rng.binomial(trials, chances, (n_draws, len(trials)))
    table, stacked, first, law = made
    # One law at a time: its table stays near the processor.
    words = rng.integers(0, 1 << 64, -(-len(law) * n_draws // 4), dtype=np.uint64).view(np.uint16)
    words &= _CELLS - 1
    cells = words[: len(law) * n_draws].reshape(len(law), n_draws)
    drawn = np.empty(cells.shape)
    for own, column, found in zip(law, cells, drawn, strict=True):
        np.take(table[own], column, out=found, mode="wrap")
    unsure = np.flatnonzero(drawn < 0)
    own = law[unsure // n_draws]
    inside = (cells.reshape(-1)[unsure] + rng.random(len(own))) / _CELLS
    place = np.searchsorted(stacked, inside + own, side="right")
    drawn.reshape(-1)[unsure] = np.minimum(place, first[own + 1] - 1) - first[own]
    return drawn.T


@lru_cache(maxsize=8)
def _tables(trials: bytes, chances: bytes) -> tuple[np.ndarray, ...] | None:
    """Tables of the distinct laws, their distribution functions, where each begins, and each column's law.

    The functions stand one after the other, that of law j raised by j. None where counts are too many.
    """
    pairs = np.stack([np.frombuffer(trials, dtype=np.int64), np.frombuffer(chances)])
    distinct, law = np.unique(pairs, axis=1, return_inverse=True)
    n = distinct[0].astype(np.int64)
    if int(n.sum()) + len(n) > _MOST_COUNTS or len(n) > _MOST_LAWS:
        return None
    steps, first = _distributions(n, distinct[1])
    stacked = steps + np.repeat(np.arange(len(n)), n + 1)
    return _cell_table(steps, first), stacked, first, law.reshape(-1)


def _distributions(trials: np.ndarray, chances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(K <= 0), ..., P(K <= n) of every law, one after the other, and where each begins."""
    first = np.append(0, np.cumsum(trials + 1))
    k = np.arange(first[-1]) - np.repeat(first[:-1], trials + 1)
    n, p = np.repeat(trials, trials + 1).astype(float), np.repeat(chances, trials + 1)
    ways = special.gammaln(n + 1) - special.gammaln(k + 1.0) - special.gammaln(n - k + 1)
    sums = np.append(0.0, np.cumsum(np.exp(ways + special.xlogy(k, p) + special.xlog1py(n - k, -p))))
    start, end = sums[first[:-1]], sums[first[1:]]
    steps = (sums[1:] - np.repeat(start, trials + 1)) / np.repeat(end - start, trials + 1)
    return np.clip(steps, 0.0, 1.0), first


def _cell_table(steps: np.ndarray, first: np.ndarray) -> np.ndarray:
    """The count in every cell of every law; -1 where a step lies inside the cell."""
    n_laws = len(first) - 1
    # The last step, from the largest count on, is 1 and lies in no cell.
    own = np.repeat(np.arange(n_laws), np.diff(first))
    cell = np.minimum((steps * _CELLS).astype(np.int64), _CELLS)
    inner = cell < _CELLS
    at = own[inner] * _CELLS + cell[inner]
    below = np.bincount(at, minlength=n_laws * _CELLS).reshape(n_laws, _CELLS)
    table = np.cumsum(below, axis=1, dtype=np.float64)
    table.reshape(-1)[at] = -1.0
    return table
