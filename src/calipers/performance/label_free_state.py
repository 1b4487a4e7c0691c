"""Unlabelled rows as a mergeable state: a sample that no split can change, and tallies of all rows.

Few rows are all in the sample. Of many, the shift is tested and undone on the sample; what the reference as
it is expects of every row (the pilot) is summed over all of them, so that the sample decides only how much
the weighted reference expects beyond it. Rows without their like in the reference are counted one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np

from calipers.inference.state import State
from calipers.inputs import Features, check_features
from calipers.inputs.rows import Rows
from calipers.metrics.states.sampling import SampleState
from calipers.performance.covariate_shift import Comparison, compare_rows
from calipers.performance.expected_loss import LossModel, Pilot
from calipers.performance.expected_loss_interval import Population, Tally
from calipers.performance.reference_support import ReferenceSupport
from calipers.results import Estimate

if TYPE_CHECKING:
    from calipers.performance.label_free import LabelFreePerformance

# Rows up to which all are looked at; of more a sample. Its noise is far below that of any labelled reference.
SAMPLED_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What an estimate is made of.

    Parameters
    ----------
    new : array (s,) or (s, K)
        What the model states about the sampled rows.
    compared : Comparison
        The sampled rows beside the reference.
    tally : Tally
        All rows.
    population : Population or None
        All rows with their like, when they are more than the sample.
    """

    new: np.ndarray
    compared: Comparison
    tally: Tally
    population: Population | None


class LabelFreeState(State):
    """What is kept of unlabelled rows for one estimate.

    Parameters
    ----------
    estimator : LabelFreePerformance
        Fitted on the reference.
    n_rows : int
        Rows there are.
    origins : sequence of str
        The files they lie in, in their order.
    """

    __slots__ = ("estimator", "pilot", "sample", "support", "tally", "thinned")
    SHARED: ClassVar[tuple[str, ...]] = ("estimator", "pilot", "support")

    def __init__(self, estimator: LabelFreePerformance, n_rows: int, origins: Sequence[str]) -> None:
        model, features, seed = estimator.reference_model_, estimator.features_, estimator.seed_
        self.estimator, self.thinned = estimator, n_rows > SAMPLED_ROWS
        self.support: ReferenceSupport | None = None
        if features is not None:
            self.support = ReferenceSupport(features, np.random.default_rng(seed))
        tables = estimator.pilot_tables_()
        self.pilot: Pilot | None = None
        if self.thinned:
            self.pilot = model.pilot(tables, None if features is None else features.values)
        self.sample = SampleState(SAMPLED_ROWS, max(n_rows, 1), tuple(origins), seed % 2**32)
        self.tally = Tally(pilot=np.zeros(len(tables)))

    @property
    def needs(self) -> frozenset[str]:
        """Statements, and features where the reference has them."""
        return frozenset({self._stated} | ({"X"} if self.support is not None else set()))

    @property
    def _stated(self) -> str:
        return "y_pred" if isinstance(self.estimator.reference_model_, LossModel) else "probabilities"

    def fresh(self) -> Self:
        """An empty state for another worker, with the same reference."""
        other = object.__new__(type(self))
        for name in self.__slots__:
            setattr(other, name, getattr(self, name))
        own = self.sample
        other.sample = SampleState(own.size, own.n_rows, own.origins, own.seed)
        other.tally = Tally(pilot=np.zeros_like(self.tally.pilot))
        return other

    def absorb(self, block: Rows) -> None:
        """Keep the block's sampled rows; tally all of them where only a sample is kept."""
        new, features = self._read(block)
        self.sample.absorb(block)
        if self.pilot is not None:
            kept = self._supported(new, features)
            pilot = self.pilot(new[kept], self._coded(features, kept))
            self.tally = self.tally.merge(Tally.of(self.estimator.reference_model_, new, kept, pilot))

    def merge(self, other: Self) -> Self:
        """Both samples, both tallies."""
        self.sample.merge(other.sample)
        self.tally = self.tally.merge(other.tally)
        return self

    def finish(self) -> Estimate:
        """The estimate for all rows."""
        return self.estimator.estimate_of_(self._seen())

    def _seen(self) -> Seen:
        sample = self.sample.finish()
        new, features = self._read(Rows(sample.given, classes=sample.classes))
        kept = self._supported(new, features)
        estimator, model = self.estimator, self.estimator.reference_model_
        tables = None if features is None or estimator.features_ is None else (estimator.features_, features)
        compared = compare_rows(
            (model.statements, new),
            tables,
            kept,
            classifier=estimator.classifier,
            generator=np.random.default_rng(estimator.seed_),
        )
        if self.pilot is None:
            return Seen(new, compared, Tally.of(model, new, kept), None)
        pilot, mean = self.pilot(new[kept], self._coded(features, kept)), self.tally.pilot / self.tally.kept
        population = Population(self.tally.kept, pilot, mean) if kept.any() else None
        return Seen(new, compared, self.tally, population)

    def _read(self, block: Rows) -> tuple[np.ndarray, Features | None]:
        """Statements and features of a block."""
        new = np.asarray(block[self._stated], dtype=np.float64)
        self.estimator.check_statements_(new)
        return new, None if self.support is None else check_features(block["X"])

    def _supported(self, new: np.ndarray, features: Features | None) -> np.ndarray:
        if features is None or self.support is None:
            return np.ones(len(new), dtype=bool)
        return self.support.of(features)

    def _coded(self, features: Features | None, kept: np.ndarray) -> np.ndarray | None:
        """Features of the rows with their like, in the codes of the reference."""
        if features is None or self.support is None:
            return None
        return self.support.coded(features.take(kept))
