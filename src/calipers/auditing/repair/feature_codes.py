"""Features of new rows in the coding of the rows a repair was fitted on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import frame_columns, is_frame
from calipers.auditing.repair.stored import part
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
    """

    names: tuple[str, ...]
    categories: tuple[tuple[Any, ...] | None, ...]
    medians: np.ndarray

    @staticmethod
    def of(rows: Rows) -> FeatureCodes:
        """The coding of these rows."""
        features = check_features(rows.given["X"])
        known = ~np.isnan(features.values).all(axis=0)
        medians = np.zeros(features.values.shape[1])
        medians[known] = np.nanmedian(features.values[:, known], axis=0)
        return FeatureCodes(features.names, features.categories, medians)

    def only(self, columns: np.ndarray) -> FeatureCodes:
        """The same for some of the columns."""
        return FeatureCodes(
            tuple(self.names[j] for j in columns),
            tuple(self.categories[j] for j in columns),
            self.medians[columns],
        )

    def values(self, rows: Rows) -> np.ndarray:
        """The features (n, d) in single precision, as trees compare them."""
        features = self._columns(rows.given.get("X"))
        values = np.empty((len(features), len(self.names)), dtype=np.float32)
        for j, (name, wanted) in enumerate(zip(self.names, self.categories, strict=True)):
            at = features.names.index(name)
            column = recode(features.values[:, at], features.categories[at], wanted)
            values[:, j] = np.where(np.isnan(column), self.medians[j], column)
        return values

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


def _some(names: Any, shown: int = 5) -> str:
    words = [repr(name) for name in names]
    return ", ".join(words[:shown]) + (f" and {len(words) - shown} more" if len(words) > shown else "")
