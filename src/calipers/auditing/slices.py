"""Parts of the rows in which a promise is compared: groups and their intersections, strata of difficulty.

Every test here asks whether a promise is kept *less well in one part* than in all rows together. The level
itself is the first question, so luck of the calibration sample and a wrong level do not count twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy import stats

from calipers.auditing.promise import Promise
from calipers.auditing.promise_rows import PromiseRows
from calipers.auditing.severity import LEVEL
from calipers.inference import ShareCounts, sidak_confidence
from calipers.inputs import Weights
from calipers.inputs.derived_columns import CELL_JOINT, attribute_names
from calipers.inputs.rows import Rows

# Most attributes that are intersected, and rows from which on an intersection is looked at.
DEPTH = 2
FEWEST_ROWS = 20
# Parts of this kind are an ordered series; all others are labels.
ALONG = "difficulty"


def flat_p_values(
    counts: ShareCounts,
    whole: tuple[float, float] | tuple[np.ndarray, np.ndarray] | None = None,
    *,
    two_sided: bool = False,
) -> np.ndarray:
    """P-value of each part against "kept no less often than by the others", exact given the totals.

    Under the null the covered rows of a part are a hypergeometric draw from all covered rows; neither the
    level of coverage nor the luck of a calibration sample enters. NaN with importance weights. ``whole``:
    covered and all rows, where parts overlap.
    """
    if not counts.whole:
        return np.full(len(counts.hits), np.nan)
    hits, rows = (counts.hits.sum(), counts.totals.sum()) if whole is None else whole
    law = stats.hypergeom(rows, hits, counts.totals)
    below = np.asarray(law.cdf(counts.hits))
    if not two_sided:
        return below
    return np.asarray(np.minimum(1.0, 2 * np.minimum(below, np.asarray(law.sf(counts.hits - 1)))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """Parts of the rows in which a promise is compared; they may overlap.

    Parameters
    ----------
    counts : ShareCounts
        Covered and all rows of every part.
    labels : tuple of str
        The parts in words.
    kind : str
        One of the parts in a word, "group"; "difficulty" where they are an ordered series.
    foremost : int or None
        The part that was named before the data were seen. Its interval stands for itself; those of the
        others are corrected for their number.
    whole : (float, float) or None
        Covered and all rows, where parts overlap.
    """

    counts: ShareCounts
    labels: tuple[str, ...]
    kind: str
    foremost: int | None = None
    whole: tuple[float, float] | None = None

    @property
    def shares(self) -> np.ndarray:
        """Coverage of every part."""
        return self.counts.shares

    @property
    def hits(self) -> np.ndarray:
        """Covered rows of every part, or their weight."""
        return self.counts.hits

    @property
    def rows(self) -> np.ndarray:
        """Rows of every part, or their weight."""
        return self.counts.totals

    @property
    def all_rows(self) -> tuple[float, float]:
        """Covered and all rows."""
        return self.whole or (float(self.hits.sum()), float(self.rows.sum()))

    def place(self, at: int) -> str:
        """A part in words, as the place of a finding."""
        return self.labels[at] if self.kind == ALONG else f"{self.kind} {self.labels[at]}"

    def rest(self, at: int) -> float:
        """Coverage of all rows outside a part."""
        hits, rows = self.all_rows
        return float((hits - self.hits[at]) / max(1e-300, rows - self.rows[at]))

    def intervals(self, confidence: float, effect: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
        """Clopper-Pearson intervals that hold together (Sidak), but for the part named beforehand.

        ``effect`` is the design effect of clusters: so many rows count as one.
        """
        together = np.full(len(self.labels), sidak_confidence(confidence, len(self.labels)))
        if self.foremost is not None:
            together[self.foremost] = confidence
        counts = self.counts if effect == 1.0 else _thinned(self.counts, effect)
        each = [counts.take(np.array([at])).interval(float(level)) for at, level in enumerate(together)]
        return np.array([float(low[0]) for low, _ in each]), np.array([float(high[0]) for _, high in each])

    def worst(self, high: np.ndarray, promise: Promise) -> tuple[int, float | None]:
        """The part with most evidence against it, and the smallest p-value corrected for their number.

        Where more than promised is a fault too, what one part lacks the others have to spare: of the parts
        that stand out the one farthest from the promise is named.
        """
        p_values = flat_p_values(self.counts, self.whole, two_sided=promise.two_sided)
        if np.isnan(p_values).all():
            return int(np.argmin(high)), None
        corrected = np.minimum(1.0, p_values * len(self.labels))
        at = int(np.nanargmin(p_values))
        outstanding = np.flatnonzero(corrected <= LEVEL)
        if promise.two_sided and len(outstanding):
            gaps = np.abs(self.hits - promise.promised * self.rows) / np.sqrt(np.maximum(self.rows, 1.0))
            at = int(outstanding[np.argmax(gaps[outstanding])])
        return at, float(np.nanmin(corrected))


def _thinned(counts: ShareCounts, effect: float) -> ShareCounts:
    return ShareCounts(counts.hits / effect, counts.totals / effect, counts.hit_noise, counts.noise)


def labelled_parts(
    covered: np.ndarray, cell: np.ndarray, weights: Weights, names: Sequence[str], *, kind: str = "group"
) -> Parts:
    """Rows of one label, or of one attribute and intersections of several with enough rows."""
    everything = ShareCounts.of(covered, weights)
    found: list[tuple[str, ShareCounts]] = []
    for label, mask, n_attributes in memberships(cell, names):
        counts = ShareCounts.of(covered[mask], weights.take(mask))
        if n_attributes == 1 or float(counts.totals[0]) >= FEWEST_ROWS:
            found.append((label, counts))
    own = [counts for _, counts in found]
    hits, totals, hit_noise, noise = (
        np.concatenate([getattr(c, key) for c in own]) for key in ("hits", "totals", "hit_noise", "noise")
    )
    joined = ShareCounts(hits, totals, hit_noise, noise, everything.whole)
    overlap = None if not names else (float(everything.hits[0]), float(everything.totals[0]))
    return Parts(counts=joined, labels=tuple(label for label, _ in found), kind=kind, whole=overlap)


def memberships(cell: np.ndarray, names: Sequence[str]) -> list[tuple[str, np.ndarray, int]]:
    """Name, rows and number of attributes of every group; a group equal to a simpler one is left out."""
    found: dict[bytes, tuple[str, np.ndarray, int]] = {}
    for label, mask, size in _named_groups(cell, names):
        found.setdefault(np.packbits(mask).tobytes(), (label, mask, size))
    return [entry for entry in found.values() if not entry[1].all() or len(found) == 1]


def _named_groups(cell: np.ndarray, names: Sequence[str]) -> Iterator[tuple[str, np.ndarray, int]]:
    """Name, rows and number of attributes of every group and intersection."""
    distinct, cells = np.unique(np.asarray(cell).astype(str), return_inverse=True)
    if not names:
        yield from ((str(label), cells == number, 1) for number, label in enumerate(distinct))
        return
    columns = np.array([text.split(CELL_JOINT) for text in distinct])
    for size in range(1, min(DEPTH, len(names)) + 1):
        for chosen in combinations(range(len(names)), size):
            keys, codes = np.unique(columns[:, chosen], axis=0, return_inverse=True)
            codes = codes.reshape(-1)[cells]
            for number, key in enumerate(keys):
                label = " and ".join(f"{names[j]}={word}" for j, word in zip(chosen, key, strict=True))
                yield label, codes == number, size


def labelled_rows(cell: np.ndarray, names: Sequence[str], *labels: str) -> list[np.ndarray]:
    """Which rows have these labels; none where there is no such label."""
    asked = set(labels)
    found = {label: mask for label, mask, _ in _named_groups(cell, names) if label in asked}
    return [found.get(label, np.zeros(len(cell), dtype=bool)) for label in labels]


def group_rows(rows: Rows, *labels: str) -> list[np.ndarray]:
    """Which rows belong to the groups of these names."""
    return labelled_rows(rows["group_cell"], attributes_of(rows), *labels)


def attributes_of(rows: Rows) -> Sequence[str]:
    """Names of the attributes by which rows are grouped; none where they have one label each."""
    return attribute_names(rows.given["groups"])


def no_attributes(rows: Rows) -> Sequence[str]:
    """Labels of their own."""
    return ()


def clustered_worst(
    side: PromiseRows, masks: list[np.ndarray], generator: np.random.Generator, promise: Promise
) -> tuple[int, float | None]:
    """The part whose sum of residuals stands out most, and its p-value by signs of clusters.

    Signs spread a part's sum by its own squares, which are small where few rows missed: there the sum is
    measured by the noise that its promises have.
    """
    sign = 1.0 if promise.two_sided else -1.0
    own = np.array([max(1.0, float(np.sum(side.residuals[mask] ** 2))) for mask in masks])
    expected = np.array([np.sum(side.expected[mask] * (1.0 - side.expected[mask])) for mask in masks])

    def scores(residuals: np.ndarray) -> np.ndarray:
        sums = np.stack([residuals[:, mask].sum(axis=1) for mask in masks]) / np.sqrt(own)[:, None]
        return np.asarray(np.abs(sums) if promise.two_sided else sign * sums)

    seen = scores(side.residuals[None, :])[:, 0] / np.sqrt(np.maximum(1.0, expected / own))
    at = int(np.argmax(seen))
    return at, side.sign_test(lambda r: scores(r).max(axis=0), generator, float(seen[at]))
