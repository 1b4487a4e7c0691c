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
    parts = [
        _numbers(values) if categories is None else _indicators(values)
        for values, categories in zip(features.values.T, features.categories, strict=True)
    ]
    return np.concatenate(parts, axis=1)


def _numbers(values: np.ndarray) -> np.ndarray:
    missing = np.isnan(values)
    if not missing.any():
        return values[:, None]
    middle = values[~missing].mean() if not missing.all() else 0.0
    return np.column_stack([np.where(missing, middle, values), missing])


def _indicators(codes: np.ndarray) -> np.ndarray:
    """One column per common category; a row of zeros is a rare one. Missing is a category of its own."""
    kinds, counts = np.unique(np.where(np.isnan(codes), -1.0, codes), return_counts=True)
    common = kinds[np.argsort(-counts, kind="stable")[:MOST_CATEGORIES]]
    return np.asarray(np.where(np.isnan(codes), -1.0, codes)[:, None] == common, dtype=np.float64)
