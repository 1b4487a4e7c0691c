"""Features of new rows in the coding of the rows a repair was fitted on."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import frame_columns, is_frame
from calipers.auditing.repair.saved_repair import part
from calipers.exceptions import InputError
from calipers.inputs import Features, check_features
from calipers.inputs.feature_alignment import recode
from calipers.inputs.rows import Rows


@part("feature codes")
@dataclass(frozen=True, slots=True, eq=False)
class FeatureCodes:
    """Names, categories and medians of features; missing values and unknown categories become the median.

    Parameters
    ----------
    names : tuple of str
        The columns that are read.
    categories : tuple
        Per column None (numbers) or its categories.
    medians : array (d,)
        What stands for a missing value.
    stated : tuple of str
        Columns of `statements` that come after the features.
    """

    names: tuple[str, ...]
    categories: tuple[tuple[Any, ...] | None, ...]
    medians: np.ndarray
    stated: tuple[str, ...] = ()

    @staticmethod
    def of(rows: Rows, *, with_statements: bool = False) -> FeatureCodes:
        """The coding of these rows."""
        features = check_features(rows.given["X"])
        known = ~np.isnan(features.values).all(axis=0)
        medians = np.zeros(features.values.shape[1])
        medians[known] = np.nanmedian(features.values[:, known], axis=0)
        stated = tuple(statements(rows)) if with_statements else ()
        return FeatureCodes(features.names, features.categories, medians, stated)

    def only(self, columns: np.ndarray) -> FeatureCodes:
        """The same for some of the columns."""
        d = len(self.names)
        own = columns[columns < d]
        return FeatureCodes(
            tuple(self.names[j] for j in own),
            tuple(self.categories[j] for j in own),
            self.medians[own],
            tuple(self.stated[j - d] for j in columns[columns >= d]),
        )

    def values(self, rows: Rows) -> np.ndarray:
        """The features and what is stated (n, d) in single precision, as trees compare them."""
        values = np.empty((rows.n, len(self.names) + len(self.stated)), dtype=np.float32)
        for j, column in enumerate(self._coded(rows.given.get("X")) if self.names else ()):
            values[:, j] = np.where(np.isnan(column), self.medians[j], column)
        known = statements(rows) if self.stated else {}
        for j, name in enumerate(self.stated, start=len(self.names)):
            values[:, j] = known[name]
        return values

    def _coded(self, X: Any) -> Iterator[np.ndarray]:
        features = self._columns(X)
        for name, wanted in zip(self.names, self.categories, strict=True):
            at = features.names.index(name)
            yield recode(features.values[:, at], features.categories[at], wanted)

    def _columns(self, X: Any) -> Features:
        if X is None:
            raise InputError(f"this repair needs X with the features {_some(self.names)}; it was not given.")
        if is_frame(X):
            columns = frame_columns(X)
            self._require(columns)
            X = X[list(self.names)] if type(X).__module__.startswith(("polars", "pandas")) else X
        features = check_features(X)
        self._require(features.names)
        return features

    def _require(self, names: Any) -> None:
        if missing := [name for name in self.names if name not in names]:
            raise InputError(f"this repair needs the features {_some(missing)}, which X does not have.")


# Classes up to which the value of each is a column.
MOST_CLASSES = 20
_LARGEST = 3


def statements(rows: Rows) -> dict[str, np.ndarray]:
    """What is stated about every row, as columns for trees.

    Middle and half width of the intervals of the first level; the largest probabilities, or p-values, and
    with few classes those of every class.
    """
    if rows.task == "regression":
        ends = rows.at(0)["interval_at_level"].astype(float)
        finite = np.isfinite(ends).all(axis=1)
        ends = np.where(finite[:, None], ends, 0.0)
        # An infinite interval is wider than all others.
        return {"middle": ends.mean(axis=1), "half width": np.where(finite, np.ptp(ends, axis=1) / 2, np.inf)}
    matrix = rows.get("probabilities")
    matrix = np.asarray(rows["p_values"] if matrix is None else matrix)
    top = min(_LARGEST, matrix.shape[1])
    largest = -np.sort(np.partition(-matrix, top - 1, axis=1)[:, :top], axis=1)
    found = {f"largest {k + 1}": largest[:, k] for k in range(top)}
    return found | ({f"class {k}": matrix[:, k] for k in range(matrix.shape[1])}
                    if matrix.shape[1] <= MOST_CLASSES else {})  # fmt: skip


def _some(names: Any, shown: int = 5) -> str:
    words = [repr(name) for name in names]
    return ", ".join(words[:shown]) + (f" and {len(words) - shown} more" if len(words) > shown else "")
