"""A stratified sample of any number of rows that no split of them can change.

Every row has a number of its own (`rowkeys`). Rows below a threshold are kept while they stream by; at the
end each stratum (a file, and covered or not) keeps its rows with the smallest numbers, as many as its share
of all rows. Inside a stratum this is a simple random sample. Rows with ids of their own are not told apart by
file: the sample is then the same however they are split into files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from calipers.inference.state import State
from calipers.inputs.joined_columns import joined
from calipers.inputs.rows import Rows, take

PURPOSE = "sample"
# More rows than wanted are kept, so that hardly a stratum is short of its share.
_SPARE = 1.3


@dataclass(slots=True)
class Part:
    """Kept rows of one block."""

    given: dict[str, Any]
    keys: np.ndarray
    draw: np.ndarray
    origin: str
    stratum: str
    position: np.ndarray
    covered: np.ndarray


@dataclass(frozen=True, slots=True, eq=False)
class Sample:
    """The rows of a sample, in the order of files and positions.

    Parameters
    ----------
    given : dict
        What was given about the rows, by the names of the arguments of an audit.
    keys : array of uint64
        The rows' own numbers.
    n_rows : int
        Rows it was drawn from.
    threshold : float
        No row with a larger draw is in it.
    classes : sequence or None
        Label of every column.
    """

    given: dict[str, Any]
    keys: np.ndarray
    n_rows: int
    threshold: float
    classes: Any = None

    @property
    def n(self) -> int:
        """Rows in the sample."""
        return len(self.keys)


@dataclass(eq=False)
class SampleState(State):
    """Keeps about ``size`` of ``n_rows`` rows, stratified by file and by whether they are covered.

    Parameters
    ----------
    size : int
        Rows wanted.
    n_rows : int
        Rows there are.
    origins : sequence of str
        The files, in the order the sample keeps.
    seed : int
        The sample follows from it and from the rows.
    """

    size: int
    n_rows: int
    origins: Sequence[str] = ()
    seed: int = 0
    parts: list[Part] = field(default_factory=list)
    strata: dict[tuple[str, bool], int] = field(default_factory=dict)
    classes: Any = None

    @property
    def threshold(self) -> float:
        """Rows with a smaller draw are kept."""
        return min(1.0, _SPARE * (self.size + 100.0) / self.n_rows)

    def absorb(self, block: Rows) -> None:
        """Count the strata of the block and keep its rows below the threshold."""
        origin = "" if block.place is None else block.place.origin
        stratum = "" if block.given.get("row_id") is not None else origin
        covered = block.get("covered")
        hits = 0 if covered is None else int(np.count_nonzero(covered))
        for outcome, n in ((True, hits), (False, block.n - hits)):
            self.strata[stratum, outcome] = self.strata.get((stratum, outcome), 0) + n
        keys, draw = block.keys(), block.draws(PURPOSE, self.seed)
        kept = np.flatnonzero(draw < self.threshold)
        start = 0 if block.place is None else block.place.start
        inside = np.zeros(len(kept), dtype=bool) if covered is None else covered[kept]
        self.parts.append(
            Part(block.rows(kept), keys[kept], draw[kept], origin, stratum, start + kept, inside)
        )
        self.classes = block.classes if self.classes is None else self.classes

    def merge(self, other: Self) -> Self:
        """Keep the other's rows too."""
        self.parts += other.parts
        for stratum, n in other.strata.items():
            self.strata[stratum] = self.strata.get(stratum, 0) + n
        self.classes = other.classes if self.classes is None else self.classes
        return self

    def finish(self) -> Any:
        """The sample: every stratum in proportion, its rows with the smallest draws."""
        parts = [part for part in self.parts if len(part.keys)]
        draw = np.concatenate([part.draw for part in parts])
        keys = np.concatenate([part.keys for part in parts])
        order = {origin: number for number, origin in enumerate(self.origins)}
        file = np.concatenate([np.full(len(p.keys), order.get(p.origin, len(order))) for p in parts])
        position = np.concatenate([part.position for part in parts])
        covered = np.concatenate([part.covered for part in parts])
        chosen = self._chosen([p.stratum for p in parts for _ in range(len(p.keys))], covered, draw)
        chosen = chosen[np.lexsort((keys[chosen], position[chosen], file[chosen]))]
        given = {name: joined([part.given[name] for part in parts]) for name in parts[0].given}
        rows = {name: take(column, chosen) for name, column in given.items()}
        return Sample(rows, keys[chosen], sum(self.strata.values()), self.threshold, self.classes)

    def _chosen(self, own: list[str], covered: np.ndarray, draw: np.ndarray) -> np.ndarray:
        strata = sorted(self.strata)
        number = {stratum: k for k, stratum in enumerate(strata)}
        code = np.array([number[o, bool(z)] for o, z in zip(own, covered, strict=True)], dtype=np.int64)
        quotas = shares(np.array([self.strata[stratum] for stratum in strata]), self.size)
        order = np.lexsort((draw, code))
        first = np.searchsorted(code[order], np.arange(len(strata)))
        rank = np.arange(len(order)) - first[code[order]]
        return order[rank < quotas[code[order]]]


def shares(counts: np.ndarray, size: int) -> np.ndarray:
    """Whole numbers in proportion to the counts that add up to ``size`` (largest remainders), none too large.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.metrics.states.sampling import shares
    >>> shares(np.array([50, 30, 20]), 7).tolist()
    [4, 2, 1]
    """
    size = int(min(size, counts.sum()))
    exact = counts * (size / counts.sum())
    whole = np.floor(exact).astype(np.int64)
    largest = np.argsort(whole - exact, kind="stable")[: size - int(whole.sum())]
    whole[largest] += 1
    return np.asarray(np.minimum(whole, counts))


def rows_outside(block: Rows, keys: np.ndarray, cut: float, seed: int) -> np.ndarray:
    """Numbers of the block's rows that are not in a sample, whose keys are sorted and draws below the cut."""
    if not len(keys):
        return np.arange(block.n)
    draw = block.draws(PURPOSE, seed)
    maybe = np.flatnonzero(draw < cut)
    own = block.keys()[maybe]
    place = np.minimum(np.searchsorted(keys, own), len(keys) - 1)
    return np.delete(np.arange(block.n), maybe[keys[place] == own])
