"""Several methods ranked over several blocks: which ones differ, and which share a rank."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import short_repr
from calipers.arrays.frames import build_frame
from calipers.results.formatting import p_in_words
from calipers.results.plotting import Plotted


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankComparison(Plotted):
    """The outcome of a Friedman test with its post-hoc comparisons.

    Parameters
    ----------
    names : tuple of str
        The methods.
    average_ranks : array (k,)
        Mean rank of each over the blocks; 1 is best, ties share the mean of their ranks.
    n_blocks : int
        Data sets (or repetitions).
    statistic, p_value : float
        Friedman's chi-squared, corrected for ties, and the p-value of "all methods are alike".
    adjusted : array (k, k)
        Adjusted p-value of every pair; 1 on the diagonal.
    alpha : float
        Level at which two methods differ.
    post_hoc : str
        How pairs were compared.
    critical_difference : float or None
        Nemenyi: the difference of average ranks from which on two methods differ.
    notes : tuple of str
        What a reader must know before believing it.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.results import RankComparison
    >>> c = RankComparison(names=("a", "b"), average_ranks=np.array([1.0, 2.0]), n_blocks=9,
    ...                    statistic=9.0, p_value=0.003, adjusted=np.array([[1, 0.01], [0.01, 1]]),
    ...                    alpha=0.05, post_hoc="holm")
    >>> c.shared_ranks
    {'a': 1, 'b': 2}
    """

    names: tuple[str, ...]
    average_ranks: np.ndarray
    n_blocks: int
    statistic: float
    p_value: float
    adjusted: np.ndarray
    alpha: float
    post_hoc: str
    critical_difference: float | None = None
    notes: tuple[str, ...] = ()

    __repr__ = short_repr

    @property
    def order(self) -> tuple[int, ...]:
        """Methods from best to worst average rank."""
        return tuple(int(i) for i in np.argsort(self.average_ranks, kind="stable"))

    @property
    def differ(self) -> np.ndarray:
        """Which pairs differ; none when the Friedman test finds no difference at all."""
        if not self.p_value <= self.alpha:
            return np.zeros(self.adjusted.shape, dtype=bool)
        return np.asarray(self.adjusted <= self.alpha)

    @property
    def can_differ(self) -> bool:
        """Whether so many blocks could tell any two methods apart, whatever they held.

        Nemenyi: average ranks of k methods differ by at most k - 1, so the critical difference must be less
        (six methods need three blocks). Holm: n signed ranks have a p-value of at least 2 / 2^n, which
        times the number of pairs must not exceed alpha (six methods need ten blocks).
        """
        k = len(self.names)
        if self.critical_difference is not None:
            return self.critical_difference < k - 1
        return k * (k - 1) / 2 * 2.0 ** (1 - self.n_blocks) <= self.alpha

    @property
    def shared_ranks(self) -> dict[str, int]:
        """Rank of each method, 1, 2, 3, ... without gaps; methods that do not differ share one.

        From the best on: a method opens a new rank when it differs from the first method of the current one.
        """
        differ, ranks, leader, rank = self.differ, {}, None, 0
        for i in self.order:
            if leader is None or differ[leader, i]:
                leader, rank = i, rank + 1
            ranks[self.names[i]] = rank
        return ranks

    @property
    def cliques(self) -> tuple[tuple[int, ...], ...]:
        """Largest runs of neighbours in average rank among which no pair differs: the bars of the diagram."""
        differ, order = self.differ, self.order
        found: list[tuple[int, ...]] = []
        for start in range(len(order)):
            stop = start + 1
            while stop < len(order) and not any(differ[order[stop], j] for j in order[start:stop]):
                stop += 1
            if stop - start > 1 and not any(set(order[start:stop]) <= set(old) for old in found):
                found.append(order[start:stop])
        return tuple(found)

    def to_dict(self) -> dict[str, Any]:
        """Every field by name, with the shared ranks."""
        fields = {key: getattr(self, key) for key in self.__slots__}
        return fields | {"shared_ranks": self.shared_ranks}

    def to_frame(self, backend: str = "polars") -> Any:
        """One row per method, best first."""
        shared = self.shared_ranks
        rows = [(self.names[i], float(self.average_ranks[i]), shared[self.names[i]]) for i in self.order]
        columns = dict(zip(("name", "average_rank", "shared_rank"), zip(*rows, strict=True), strict=True))
        return build_frame(columns, backend=backend)

    def __str__(self) -> str:
        ranked = ", ".join(f"{self.names[i]} {self.average_ranks[i]:.2f}" for i in self.order)
        verdict = "differ" if self.p_value <= self.alpha else "no difference shown"
        test = f"Friedman {p_in_words(self.p_value)}, {self.n_blocks} blocks"
        head = f"{verdict} ({test}); average ranks: {ranked}"
        return "; ".join([head, *self.notes])
