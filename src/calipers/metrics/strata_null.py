"""What coverage in strata would be if every promise were kept: exact laws where known, else draws."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np

from calipers.conformal import conformal_rank
from calipers.inference import CalibrationLaw, CoverageLaw, PoissonBinomialLaw, SimulatedLaw
from calipers.inference.binomial_draws import draw_binomials
from calipers.inference.null_law import NULL_LEVEL
from calipers.inference.staged_law import STAGES, WORK, staged_draws
from calipers.inputs import NO_EXACT_LAW
from calipers.metrics.cluster_sums import MIN_CLUSTERS, ClusterSums
from calipers.metrics.marginal import coverage_law
from calipers.metrics.promised_counts import (
    PromisedCounts,
    order_statistics,
    promise_levels,
    threshold_ranks,
)
from calipers.metrics.promised_rows import PromisedRows

NO_PROMISE = "without alpha there is no promise to test"
# Numbers drawn at a time, and what drawing one costs beside adding it.
_BATCH, _COST = 1 << 20, 10
# The same where drawing is so fast that numbers should stay near the processor.
_NEAR = 1 << 18

Statistic = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class StrataNull:
    """The null "every promise is kept" over strata of rows.

    Parameters
    ----------
    rows : PromisedRows
        Rows with a promise.
    cell : int array of shape (n,)
        The cell of each row: its stratum, or a run of rows that strata share alike.
    mass : array of shape (B,)
        Rows (weight) of each stratum, all positive.
    names : sequence of str
        Names of the strata.
    thresholds : int, tuple of int or None
        Calibration rows behind the one threshold of all rows, or behind that of each stratum.
    parts : array of shape (k, B) or None
        The part of each cell that belongs to each stratum; None when cells are the strata.
    """

    rows: PromisedRows
    cell: np.ndarray
    mass: np.ndarray
    names: tuple[str, ...]
    thresholds: int | tuple[int, ...] | None = None
    parts: np.ndarray | None = None

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self.mass) if self.parts is None else len(self.parts)

    @cached_property
    def target(self) -> np.ndarray:
        """Promised coverage of each stratum: the mean over its rows."""
        if self.rows.promised is None:
            return np.full(len(self.mass), self.rows.target[0])
        sums = np.bincount(self.cell, weights=self.rows.mass * self.rows.promised, minlength=self.n_cells)
        return np.asarray((sums if self.parts is None else sums @ self.parts) / self.mass)

    @cached_property
    def clusters(self) -> ClusterSums | None:
        """Sums of dependent rows; None when rows are independent."""
        if self.rows.clusters is None:
            return None
        return ClusterSums(self.rows, self.cell, self.parts, self.n_cells)

    @property
    def no_test(self) -> str:
        """Why there is no test; empty when there is one."""
        if not self.rows.has_promise:
            return NO_PROMISE
        if not self.rows.is_whole:
            return NO_EXACT_LAW
        if self.clusters is None:
            return ""
        fewest = int(np.argmin(self.clusters.n_clusters))
        count = int(self.clusters.n_clusters[fewest])
        if count >= MIN_CLUSTERS:
            return ""
        return (
            f"cannot tell: {self.names[fewest]} has rows of {count} cluster{'s' if count != 1 else ''}, "
            f"a test needs at least {MIN_CLUSTERS} in every stratum"
        )

    @property
    def threshold(self) -> CalibrationLaw | None:
        """The law of the coverage that all strata share, where one threshold and level is behind all."""
        n = self.thresholds
        if not isinstance(n, int) or self.rows.alpha is None:
            return None
        return CalibrationLaw(n, conformal_rank(n, self.rows.alpha))

    def counted_strata(self) -> tuple[tuple[int, int | None], ...] | None:
        """Rows of every stratum and calibration rows of its own, where one level makes its law exact."""
        if self.no_test or self.clusters is not None or self.parts is not None or self.rows.alpha is None:
            return None
        behind = self.thresholds if isinstance(self.thresholds, tuple) else (None,) * len(self.mass)
        return tuple((round(m), n) for m, n in zip(self.mass.tolist(), behind, strict=True))

    def laws(self) -> Sequence[CoverageLaw | PoissonBinomialLaw] | None:
        """The law of each stratum's covered count, given the shared threshold; None where it is not exact."""
        if (strata := self.counted_strata()) is not None:
            return coverage_laws(strata, self.rows.alpha)
        if self.no_test or self.clusters is not None or self.parts is not None:
            return None
        if self.thresholds is not None:
            return None
        counts, ends = self.counts, np.append(self.counts.first, len(self.counts))
        return [PoissonBinomialLaw.of(counts.chances[a:b], counts.trials[a:b]) for a, b in pairwise(ends)]

    @cached_property
    def counts(self) -> PromisedCounts:
        """Rows of every cell and promise."""
        level, weight = self._level, self.rows.mass
        return PromisedCounts.of(self.cell, self.n_cells, level, self.rows.target, weight)

    @cached_property
    def _level(self) -> np.ndarray:
        if self.rows.promised is None:
            return np.zeros(len(self.rows), dtype=np.int64)
        return promise_levels(self.rows.promised, self.n_cells)

    def departures(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Coverage minus promised coverage of the strata (n_draws, B), drawn under the null."""
        if self.clusters is not None:
            drawn = self.clusters.draw_departures(n_draws, rng) / self.mass
            return np.asarray(drawn if self.thresholds is None else drawn + self._luck(n_draws, rng))
        sums = self._sums(n_draws, rng)
        return np.asarray(sums / self.mass - self.target)

    def _sums(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """Covered rows of the strata (n_draws, B), drawn under the null."""
        if self._has_tables and self.parts is not None:
            counts = self.counts
            return _shared_out(draw_binomials(counts.trials, counts.chances, n_draws, rng), self.parts)
        chances = self._chances(n_draws, rng)
        covered = (
            self.counts.draw(n_draws, rng) if chances is None else self.counts.toss(chances, n_draws, rng)
        )
        return covered if self.parts is None else np.asarray(covered @ self.parts)

    @property
    def _has_tables(self) -> bool:
        """Whether runs of tied rows, each with one promise, are counted by tables of their laws."""
        plain = self.thresholds is None and self.clusters is None and self.parts is not None
        return plain and len(self.counts) == self.n_cells

    def _luck(self, n_draws: int, rng: np.random.Generator) -> np.ndarray:
        """What drawn calibration samples add to the coverage of each stratum."""
        chances = self._chances(n_draws, rng)
        rows = self.counts.trials * (0.0 if chances is None else chances - self.counts.chances)
        sums = np.add.reduceat(rows, self.counts.first, axis=1)
        return np.asarray((sums if self.parts is None else sums @ self.parts) / self.mass)

    def _chances(self, n_draws: int, rng: np.random.Generator) -> np.ndarray | None:
        """Coverage of every unit (n_draws, u) over calibration samples; None where it is the promise."""
        if self.thresholds is None:
            return None
        sizes = (self.thresholds,) if isinstance(self.thresholds, int) else self.thresholds
        owner = np.zeros(self.n_cells, dtype=np.int64)
        if len(sizes) > 1:
            # A run that strata share takes the luck of the stratum that holds most of it.
            owner = np.arange(self.n_cells) if self.parts is None else np.argmax(self.parts, axis=1)
        chances, of_unit, levels = (
            np.empty((n_draws, len(self.counts))),
            owner[self.counts.cell],
            self._levels,
        )
        for j in np.unique(of_unit):
            coverage = order_statistics(threshold_ranks(levels, sizes[j]), sizes[j], n_draws, rng)
            chances[:, of_unit == j] = coverage[:, self.counts.level[of_unit == j]]
        return chances

    @property
    def _levels(self) -> np.ndarray:
        """The promise behind every level: the mean of those pooled in it."""
        counts = self.counts
        mass = np.bincount(counts.level, weights=counts.trials)
        sums = np.bincount(counts.level, weights=counts.trials * counts.chances)
        if self.rows.promised is None:
            return np.array([self.rows.target[0]])
        return np.asarray(sums / np.where(mass > 0, mass, 1.0))

    def simulated(
        self, statistic: Statistic, observed: float, rng: np.random.Generator, n_draws: int | None = None
    ) -> SimulatedLaw:
        """The law of a statistic of the departures, (b, B) to (b,), from as many draws as its tail needs.

        A given number of draws is taken as it is.
        """
        width = len(self.mass) if self.clusters is not None else len(self.counts)

        def draw(count: int) -> np.ndarray:
            step = max(1, (_NEAR if self._has_tables else _BATCH) // width)
            sizes = [min(step, count - start) for start in range(0, count, step)]
            return np.concatenate([statistic(self.departures(size, rng)) for size in sizes])

        if n_draws is not None:
            return SimulatedLaw(draw(n_draws))
        stages = STAGES[1:] if STAGES[1] * _COST * width <= WORK else STAGES
        return staged_draws(draw, observed, cost=_COST * width, stages=stages)

    def with_certainty(self, fields: dict[str, Any], n_draws: int = STAGES[-1]) -> dict[str, Any]:
        """Fields of an estimate; an outcome that was promised not to happen rejects by itself.

        Its p-value is the resolution of the law: an exact one counts as the finest simulated one.
        """
        if not self.rows.n_impossible or fields.get("p_value") is None:
            return fields
        return fields | {"p_value": min(fields["p_value"], 1.0 / (n_draws + 1))}


def coverage_laws(strata: Sequence[tuple[int, int | None]], alpha: Any) -> list[CoverageLaw]:
    """Laws of the covered counts of strata: rows of each, and calibration rows of its own or None."""
    # Bins of equal mass have two sizes at most: each law is made once.
    made = {key: coverage_law(key[0], alpha, key[1]) for key in set(strata)}
    return [made[key] for key in strata]


def _shared_out(covered: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """``covered @ parts`` for parts that are nearly all 0: a run of ties belongs to a few neighbours."""
    sums = np.zeros((parts.shape[1], len(covered)))
    for cell, stratum in zip(*np.nonzero(parts), strict=True):
        sums[stratum] += parts[cell, stratum] * covered[:, cell]
    return sums.T


def one_stratum(rows: PromisedRows, n_calibration: int | None, name: str) -> StrataNull:
    """The null over one stratum that holds all of these rows."""
    thresholds = None if n_calibration is None else (n_calibration,)
    return StrataNull(
        rows, np.zeros(len(rows), dtype=np.int64), np.array([rows.mass.sum()]), (name,), thresholds
    )


def share_fields(
    null: StrataNull, share: float, alternative: str, rng: np.random.Generator
) -> dict[str, Any]:
    """p-value and null band of the coverage of one stratum; empty without a test."""
    if null.no_test:
        return {}
    laws, target = null.laws(), float(null.target[0])
    if laws is None:
        cheap = null.clusters is not None and null.thresholds is None
        draws = null.simulated(_first, share - target, rng, STAGES[-1] if cheap else STAGES[1])
        fields = draws.estimate_fields(share - target, alternative=alternative, level=NULL_LEVEL)
        ends = {
            key: None if fields[key] is None else fields[key] + target for key in ("null_low", "null_high")
        }
        return null.with_certainty(fields | ends, draws.n_draws)
    n, law = float(null.mass[0]), laws[0]
    low, high = law.interval(NULL_LEVEL, alternative)
    fields = {
        "p_value": float(law.p_value(float(np.rint(n * share)), alternative)),
        "alternative": alternative,
        "null_low": None if alternative == "greater" else float(low / n),
        "null_high": None if alternative == "less" else float(high / n),
        "null_level": NULL_LEVEL,
    }
    return null.with_certainty(fields)


def _first(departures: np.ndarray) -> np.ndarray:
    return departures[:, 0]
