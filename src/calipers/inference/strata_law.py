"""The joint law of the covered counts of several strata, when every promise is kept.

Strata are independent, unless one calibration sample set one threshold for all of them: its luck shifts all
coverages together, so the joint law is a mixture over the coverage c ~ Beta(k, n + 1 - k), not a product of
beta-binomial laws.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from calipers.exceptions import InputError
from calipers.inference.coverage_law import CalibrationLaw, CoverageLaw
from calipers.inference.poisson_binomial import EXACT_ROWS, PoissonBinomialLaw
from calipers.inference.proportions import binomial_lower_tail, binomial_upper_tail

_TABLE_ROWS = 1 << 18
# Nodes of the integral over the coverage, per standard deviation of the least noisy count, and their limits.
_NODES_PER_SPREAD, _FEWEST_NODES, _MOST_NODES = 3.0, 64, 4096
# The integral leaves out this much of the law of the coverage on either side.
_BEYOND = 1e-17
# Counts and nodes whose chances are kept in a table.
_TABLE_CELLS = 1 << 21
# Standard deviations to either side of the mean beyond which a binomial number has no mass that matters.
_WINDOW, _WINDOW_CELLS = 9.5, 1 << 23

Tail = Callable[[np.ndarray], np.ndarray]


class StrataLaw:
    """Law of the covered counts of strata.

    Parameters
    ----------
    laws : sequence of CoverageLaw or PoissonBinomialLaw
        Law of the count of each stratum; strata without rows are passed over.
    offsets : sequence of float
        A number per stratum that tells strata of one law apart, such as their promised coverage.
    threshold : CalibrationLaw or None
        The law of the one coverage that all strata share; then the laws are those of sound predictors that
        cover each row with the same probability, and only their rows count.

    Raises
    ------
    InputError
        When no stratum has rows.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inference import CalibrationLaw, CoverageLaw
    >>> from calipers.inference.strata_law import StrataLaw
    >>> two = [CoverageLaw(1000, 0.1), CoverageLaw(1000, 0.1)]
    >>> first, last = np.array([880.0]), np.array([920.0])
    >>> apart = StrataLaw(two, [0.9, 0.9]).outside(first, last)
    >>> together = StrataLaw(two, [0.9, 0.9], CalibrationLaw(199, 180)).outside(first, last)
    >>> round(float(apart), 3), round(float(together), 3)
    (0.06, 0.5)
    """

    __slots__ = ("_binomial", "_nodes", "_others", "_tables", "_threshold", "_windows", "offsets", "sizes")

    def __init__(
        self,
        laws: Sequence[CoverageLaw | PoissonBinomialLaw],
        offsets: Sequence[float],
        threshold: CalibrationLaw | None = None,
    ) -> None:
        counted = Counter((law, o) for law, o in zip(laws, offsets, strict=True) if law.n > 0)
        if not counted:
            raise InputError("laws must hold at least one stratum with rows, got none.")
        # Plain binomial laws first: they are computed together.
        ordered = sorted(counted.items(), key=lambda item: not _is_binomial(item[0][0]))
        self.sizes = np.array([law.n for (law, _), _ in ordered], dtype=float)
        self.offsets = np.array([offset for (_, offset), _ in ordered], dtype=float)
        plain = [(law.n, law.alpha, times) for (law, _), times in ordered if isinstance(law, CoverageLaw)]
        n_plain = sum(_is_binomial(law) for (law, _), _ in ordered)
        self._binomial = np.array(plain[:n_plain], dtype=float).reshape(-1, 3).T
        self._others = [(times, *_tails(law)) for (law, _), times in ordered[n_plain:]]
        self._threshold = threshold
        largest = float(self.sizes.max())
        self._nodes = (np.ones(0),) * 2 if threshold is None else coverage_nodes(threshold, largest)
        self._tables: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self._windows: dict[int, _Window] = {}

    def outside(self, first: np.ndarray, last: np.ndarray, *, small: bool = True) -> np.ndarray:
        """P(some count lies below ``first`` or above ``last``), to full precision where it is small.

        With ``small=False`` what lies below 1e-15 may be lost, which a search for a level does not see.

        Both have one entry per distinct stratum (`sizes`, `offsets`) on their last axis, or one for all, with
        values from 0 to the rows of the stratum; an empty range is never met.
        """
        shape = (*np.broadcast_shapes(np.shape(first)[:-1], np.shape(last)[:-1]), self.sizes.size)
        first, last = (
            end if end.shape == shape else np.broadcast_to(end, shape)
            for end in (np.asarray(first, dtype=float), np.asarray(last, dtype=float))
        )
        if self._threshold is None:
            n, alpha, times = self._binomial
            low, high = first[..., : n.size], last[..., : n.size]
            log_inside = _log_kept(_binomial_outside(low, high, n, 1.0 - alpha, alpha), times)
            for at, (repeats, below_of, above_of) in enumerate(self._others, start=n.size):
                low, high = first[..., at], last[..., at]
                beyond = np.where(high < low, 1.0, below_of(low) + above_of(np.maximum(high, 0.0)))
                log_inside = log_inside + _log_kept(beyond[..., None], np.array([repeats]))
            return np.asarray(-np.expm1(log_inside))
        nodes, masses = self._nodes
        log_inside = np.zeros((nodes.size, *shape[:-1]))
        for at, (n, _, times) in enumerate(self._binomial.T):
            beyond = self._outside_at_nodes(at, int(n), first[..., at], last[..., at], small)
            log_inside += _log_kept(beyond[..., None], np.array([times]))
        return np.clip(np.tensordot(masses, -np.expm1(log_inside), axes=1), 0.0, 1.0) + 0.0

    def _fits_window(self, n: int) -> bool:
        return self._nodes[0].size * _window_width(n) <= _WINDOW_CELLS

    @property
    def has_tables(self) -> bool:
        """Whether a search reads tables, or has no integral: then many points at once are cheap."""
        return self._threshold is None or all(map(self._fits_window, self.sizes.astype(int).tolist()))

    def _outside_at_nodes(
        self, at: int, n: int, first: np.ndarray, last: np.ndarray, small: bool
    ) -> np.ndarray:
        """P(count below ``first`` or above ``last``) of one stratum at every node of the coverage."""
        nodes, _ = self._nodes
        if nodes.size * (n + 1) > _TABLE_CELLS and not small and self._fits_window(n):
            if at not in self._windows:
                self._windows[at] = _window(n, nodes)
            return self._windows[at].outside(first, last)
        if nodes.size * (n + 1) > _TABLE_CELLS:
            c = nodes.reshape(-1, *([1] * first.ndim))
            return _binomial_outside(first[None], last[None], np.asarray(float(n)), c, 1.0 - c)
        if at not in self._tables:
            self._tables[at] = _tables_of(_binomial_masses(n, nodes[:, None]))
        under, over = self._tables[at]
        low, high = np.minimum(first, n + 1).astype(np.int64), np.maximum(last, -1).astype(np.int64)
        return np.where(high < low, 1.0, under[:, low] + over[:, high + 1])


@dataclass(frozen=True, slots=True)
class _Window:
    """P(K < j) and P(K >= j) of binomial counts, (nodes, w + 1), for j from ``start`` on, one per node.

    Counts before and after the window have no mass that matters.
    """

    start: np.ndarray
    under: np.ndarray
    over: np.ndarray

    def outside(self, first: np.ndarray, last: np.ndarray) -> np.ndarray:
        """P(count below ``first`` or above ``last``) at every node, (nodes, ...); 1 for an empty range."""
        low, high = (
            np.clip(end.reshape(1, -1) - self.start[:, None], 0, self.under.shape[1] - 1).astype(np.int64)
            for end in (first, last + 1)
        )
        beyond = np.take_along_axis(self.under, low, axis=1) + np.take_along_axis(self.over, high, axis=1)
        return np.where(last < first, 1.0, beyond.reshape(-1, *first.shape))


def _window_width(n: int) -> int:
    """Counts that hold a binomial number of n trials but for 1e-20, wherever its mean is."""
    return min(n, 2 * int(_WINDOW * 0.5 * np.sqrt(n)) + 2) + 1


def _window(n: int, nodes: np.ndarray) -> _Window:
    """The tails of the counts of n trials near their mean at every node."""
    width = _window_width(n)
    start = np.clip(np.floor(n * nodes - width / 2), 0, n + 1 - width).astype(np.int64)
    counts = start[:, None] + np.arange(width)
    mass = _log_ways(n)[counts]
    mass += special.xlogy(counts[:, :1], nodes[:, None]) + special.xlog1py(n - counts[:, :1], -nodes[:, None])
    # From one count to the next, log c - log(1 - c) is added; certain coverage has one count.
    mass += np.arange(width) * special.logit(np.minimum(nodes, 1 - 1e-16))[:, None]
    np.exp(mass, out=mass)
    mass /= mass.sum(axis=1, keepdims=True)
    return _Window(start, *_tables_of(mass))


def _log_ways(n: int) -> np.ndarray:
    """Logarithms of the numbers of ways to choose 0, ..., n of n."""
    k = np.arange(n + 1.0)
    return np.asarray(special.gammaln(n + 1.0) - special.gammaln(k + 1) - special.gammaln(n - k + 1))


def coverage_nodes(threshold: CalibrationLaw, rows: float) -> tuple[np.ndarray, np.ndarray]:
    """Coverages and their masses, for integrals over calibration samples of what depends on counts of rows.

    Gauss-Legendre nodes in panels over nearly all of the Beta law. They are the denser the sharper a count of
    so many rows answers to the coverage.
    """
    if threshold.rank == threshold.n_calibration + 1:
        return np.ones(1), np.ones(1)
    low, high = float(threshold.quantile(_BEYOND)), _upper_end(threshold)
    spread = np.sqrt(threshold.mean * (1 - threshold.mean) / max(rows, 1.0))
    wanted = int(np.clip(_NODES_PER_SPREAD * (high - low) / spread, _FEWEST_NODES, _MOST_NODES))
    x, w = np.polynomial.legendre.leggauss(16)
    edges = np.linspace(low, high, -(-wanted // 16) + 1)
    half = np.diff(edges)[:, None] / 2
    nodes = (edges[:-1, None] + half + half * x).ravel()
    masses = (half * w).ravel() * threshold.density(nodes)
    return nodes, masses / masses.sum()


def _upper_end(threshold: CalibrationLaw) -> float:
    """The coverage that all but a vanishing part of calibration samples stay below."""
    mirrored = CalibrationLaw(threshold.n_calibration, threshold.n_calibration + 1 - threshold.rank)
    return 1.0 - float(mirrored.quantile(_BEYOND))


def _is_binomial(law: CoverageLaw | PoissonBinomialLaw) -> bool:
    return isinstance(law, CoverageLaw) and law.n_calibration is None


def _tails(law: CoverageLaw | PoissonBinomialLaw) -> tuple[Tail, Tail]:
    """P(K < j) and P(K > j) as functions of j in 0..n, tabulated where the table is small."""
    if law.n > (_TABLE_ROWS if isinstance(law, CoverageLaw) else EXACT_ROWS):
        below, above = np.vectorize(law.cdf, otypes=[float]), np.vectorize(law.sf, otypes=[float])
        return lambda j: np.asarray(below(j - 1)), lambda j: np.asarray(above(j))
    under, over = _tables_of(np.asarray(law.pmf(np.arange(law.n + 1))))
    return lambda j: under[j.astype(np.int64)], lambda j: over[j.astype(np.int64) + 1]


def _tables_of(mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(K < j) and P(K >= j) for j = 0..n+1, summed from each end so that small tails keep their digits."""
    none = np.zeros((*mass.shape[:-1], 1))
    under = np.concatenate([none, np.cumsum(mass, axis=-1)], axis=-1)
    over = np.concatenate([np.cumsum(mass[..., ::-1], axis=-1)[..., ::-1], none], axis=-1)
    return under, over


def _binomial_masses(n: int, covered: np.ndarray) -> np.ndarray:
    """P(K = 0), ..., P(K = n) for every probability of a column."""
    k = np.arange(n + 1.0)
    return np.asarray(np.exp(_log_ways(n) + special.xlogy(k, covered) + special.xlog1py(n - k, -covered)))


def _binomial_outside(
    first: np.ndarray, last: np.ndarray, n: np.ndarray, covered: np.ndarray, missed: np.ndarray
) -> np.ndarray:
    """P(count below ``first`` or above ``last``) of binomial counts; 1 for an empty range."""
    below = binomial_lower_tail(np.maximum(first - 1, 0), n, covered, missed)
    above = binomial_upper_tail(np.minimum(last + 1, n), n, covered, missed)
    outside = np.where(first > 0, below, 0.0) + np.where(last < n, above, 0.0)
    return np.where(last < first, 1.0, outside)


def _log_kept(outside: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Sum over strata of times * log(1 - outside); -inf where a stratum cannot be inside."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.sum(times * np.log1p(-np.minimum(outside, 1.0)), axis=-1))
