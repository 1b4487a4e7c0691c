"""Parts of the rows that a repair can treat each on its own; edges and regions come from other rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np

from calipers.auditing.repair.boosted_trees import Trees
from calipers.auditing.repair.feature_codes import FeatureCodes
from calipers.auditing.repair.saved_repair import part
from calipers.exceptions import InputError
from calipers.inputs.attributes import check_attributes
from calipers.inputs.categorical import Categorical
from calipers.inputs.rows import Rows


class Partition(Protocol):
    """A cell per row."""

    @property
    def title(self) -> str:
        """What a threshold per cell is called in a list of candidates."""

    @property
    def words(self) -> str:
        """The same with the number of cells."""

    @property
    def needs(self) -> tuple[str, ...]:
        """Columns beside what is stated."""

    def cells(self, rows: Rows) -> np.ndarray:
        """The cell of every row, from 0; -1 for a row of no known cell."""

    def names(self) -> list[str]:
        """What each cell is called."""


@part("all rows")
@dataclass(frozen=True, slots=True)
class AllRows:
    """One cell."""

    needs: ClassVar[tuple[str, ...]] = ()
    title: ClassVar[str] = "one threshold"
    words: ClassVar[str] = "one threshold"

    def cells(self, rows: Rows) -> np.ndarray:
        """All rows are in cell 0."""
        return np.zeros(rows.n, dtype=np.intp)

    def names(self) -> list[str]:
        """The only cell."""
        return ["all rows"]


@part("groups")
@dataclass(frozen=True, slots=True)
class GroupCells:
    """The labels of one attribute of the groups.

    Parameters
    ----------
    attribute : str
        Name of the attribute; empty where groups are plain labels.
    labels : tuple of str
        The known labels; cell i has the i-th.
    """

    attribute: str
    labels: tuple[str, ...]
    needs: ClassVar[tuple[str, ...]] = ("groups",)

    @property
    def title(self) -> str:
        """A threshold per group."""
        return "a threshold per group" + (f" of {self.attribute}" if self.attribute else "")

    @property
    def words(self) -> str:
        """What the cells are."""
        return f"a threshold for each of {len(self.labels)} groups" + (
            f" of {self.attribute}" if self.attribute else ""
        )

    def cells(self, rows: Rows) -> np.ndarray:
        """The label of every row; -1 for one that was not there when the repair was fitted."""
        labels, codes = _coded(rows, self.attribute)
        place = {label: i for i, label in enumerate(self.labels)}
        cell_of_label = np.array([place.get(str(label), -1) for label in labels], dtype=np.intp)
        return np.asarray(cell_of_label[codes])

    def names(self) -> list[str]:
        """The labels."""
        return [f"group {self.attribute}={x}" if self.attribute else f"group {x}" for x in self.labels]


def _coded(rows: Rows, attribute: str) -> tuple[Any, np.ndarray]:
    """Distinct labels of an attribute and the code of every row."""
    given = rows.given.get("groups")
    if given is None:
        raise InputError("this repair has a threshold per group; groups was not given.")
    if isinstance(given, Categorical):
        return given.labels, given.codes
    table = check_attributes(given)
    names = table.names or ("",)
    if attribute not in names:
        raise InputError(f"this repair needs the groups {attribute!r}; there are {', '.join(names)}.")
    at = names.index(attribute)
    return table.labels[at], table.codes[:, at]


def group_partitions(rows: Rows) -> list[GroupCells]:
    """One partition per attribute of the groups that were given; none without groups."""
    given = rows.given.get("groups")
    if given is None:
        return []
    if isinstance(given, Categorical):
        return [GroupCells("", tuple(str(label) for label in given.labels))]
    table = check_attributes(given)
    return [
        GroupCells(name, tuple(str(label) for label in labels))
        for name, labels in zip(table.names or ("",), table.labels, strict=True)
    ]


@part("difficulty")
@dataclass(frozen=True, slots=True, eq=False)
class DifficultyCells:
    """Parts along the ease, or along the largest probability where no ease is given.

    Parameters
    ----------
    edges : array
        Upper ends of all parts but the last; they belong to the lower part.
    column : str
        "ease", or "probabilities" in its place.
    """

    edges: np.ndarray
    column: str
    title: ClassVar[str] = "a threshold per part along difficulty"

    @property
    def words(self) -> str:
        """What the cells are."""
        return f"a threshold for each of {len(self.edges) + 1} parts along difficulty"

    @property
    def needs(self) -> tuple[str, ...]:
        """The ease, where it was given."""
        return (self.column,)

    def cells(self, rows: Rows) -> np.ndarray:
        """The part of every row, hardest first."""
        ease = rows.get("ease" if self.column == "ease" else "top_probability")
        if ease is None:
            raise InputError(f"this repair needs {self.column}; it was not given.")
        return np.searchsorted(self.edges, ease)

    def names(self) -> list[str]:
        """Number of the part, hardest first."""
        n = len(self.edges) + 1
        return [f"part {i + 1} of {n} along difficulty" for i in range(n)]


def difficulty_partition(rows: Rows, n_parts: int) -> DifficultyCells | None:
    """Parts of equal size along the ease of these rows; None without an ease or where it is constant."""
    ease = rows.get("difficulty")
    if ease is None:
        return None
    edges = np.unique(np.quantile(ease.astype(float), np.arange(1, n_parts) / n_parts))
    column = "ease" if rows.get("ease") is not None else "probabilities"
    return DifficultyCells(edges, column) if len(edges) and edges[0] < ease.max() else None


@part("foretold")
@dataclass(frozen=True, slots=True, eq=False)
class PredictedCoverageCells:
    """Parts by the miscoverage that a model of the features predicts.

    Parameters
    ----------
    codes : FeatureCodes
        How features are read.
    trees : Trees
        The model, of the log-odds of a miss.
    edges : array
        Upper ends of all parts but the last.
    """

    codes: FeatureCodes
    trees: Trees
    edges: np.ndarray
    needs: ClassVar[tuple[str, ...]] = ("X",)
    title: ClassVar[str] = "a threshold per level of predicted coverage"

    @property
    def words(self) -> str:
        """What the cells are."""
        return f"a threshold for each of {len(self.edges) + 1} levels of coverage predicted from the features"

    def cells(self, rows: Rows) -> np.ndarray:
        """The part of every row, safest first."""
        return np.searchsorted(self.edges, self.trees.predict(self.codes.values(rows)))

    def names(self) -> list[str]:
        """The parts by predicted coverage, the highest first."""
        n = len(self.edges) + 1
        middle = (f"part {i + 1} of {n} by predicted coverage" for i in range(1, n - 1))
        return ["the rows with the highest predicted coverage", *middle, LOWEST_PREDICTED]


LOWEST_PREDICTED = "the rows with the lowest predicted coverage"


@part("regions")
@dataclass(frozen=True, slots=True, eq=False)
class RegionCells:
    """Leaves of one small tree over the features.

    Parameters
    ----------
    codes : FeatureCodes
        How features are read.
    trees : Trees
        One tree.
    leaves : array
        The leaves that rows can reach.
    """

    codes: FeatureCodes
    trees: Trees
    leaves: np.ndarray
    needs: ClassVar[tuple[str, ...]] = ("X",)
    title: ClassVar[str] = "a threshold per region of the features"

    @property
    def words(self) -> str:
        """What the cells are."""
        return f"a threshold for each of {len(self.leaves)} regions of the features"

    def cells(self, rows: Rows) -> np.ndarray:
        """The region of every row; -1 where no row was when the tree was fitted."""
        place = np.full(self.trees.value.shape[1], -1, dtype=np.intp)
        place[self.leaves] = np.arange(len(self.leaves))
        return np.asarray(place[self.trees.leaves(self.codes.values(rows))])

    def names(self) -> list[str]:
        """Number of the region."""
        return [f"region {i + 1}" for i in range(len(self.leaves))]
