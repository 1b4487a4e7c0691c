"""Features as plain numbers for a linear model: one column per category, missing values marked."""

from __future__ import annotations

import numpy as np

from calipers.inputs import Features

# Rarer categories of a column share one indicator.
MOST_CATEGORIES = 30


def indicator_table(features: Features) -> np.ndarray:
    """Numbers as they are, categories as indicators, missing values as the mean and an indicator.

    Parameters
    ----------
    features : Features
        Columns with codes; rows to be compared must be in one table.

    Returns
    -------
    float64 array (n, D)
        Without NaN.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.inputs import check_features
    >>> from calipers.performance.indicator_table import indicator_table
    >>> rows = pl.DataFrame({"x": [1.0, None, 3.0], "city": ["Bonn", "Rome", "Rome"]})
    >>> indicator_table(check_features(rows))
    array([[1., 0., 0., 1.],
           [2., 1., 1., 0.],
           [3., 0., 1., 0.]])
    """
    return Indicators(features).table(features.values)


class Indicators:
    """The columns of `indicator_table` as some rows define them, for other rows with the same codes.

    Parameters
    ----------
    features : Features
        The rows that say which categories have an indicator, and what takes the place of a missing number.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs import check_features
    >>> from calipers.performance.indicator_table import Indicators
    >>> Indicators(check_features([[1.0], [np.nan], [3.0]])).table(np.array([[7.0], [np.nan]]))
    array([[7., 0.],
           [2., 1.]])
    """

    def __init__(self, features: Features) -> None:
        self.columns = [
            _Number(values) if categories is None else _Category(values)
            for values, categories in zip(features.values.T, features.categories, strict=True)
        ]

    def table(self, values: np.ndarray) -> np.ndarray:
        """Rows (n, d) of values and codes as plain numbers (n, D)."""
        parts = [column.table(own) for column, own in zip(self.columns, values.T, strict=True)]
        return np.concatenate(parts, axis=1)


class _Number:
    """A number; with an indicator of missing ones where there are some."""

    def __init__(self, values: np.ndarray) -> None:
        missing = np.isnan(values)
        self.has_missing = bool(missing.any())
        self.middle = values[~missing].mean() if not missing.all() else 0.0

    def table(self, values: np.ndarray) -> np.ndarray:
        missing = np.isnan(values)
        if not self.has_missing:
            return np.where(missing, self.middle, values)[:, None]
        return np.column_stack([np.where(missing, self.middle, values), missing])


class _Category:
    """One column per common category; a row of zeros is a rare one. Missing is a category of its own."""

    def __init__(self, codes: np.ndarray) -> None:
        kinds, counts = np.unique(np.where(np.isnan(codes), -1.0, codes), return_counts=True)
        self.common = kinds[np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]]

    def table(self, codes: np.ndarray) -> np.ndarray:
        known = np.where(np.isnan(codes), -1.0, codes)[:, None] == self.common
        return np.asarray(known, dtype=np.float64)
