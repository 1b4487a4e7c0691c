"""Columns of several blocks of rows, one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.inputs.categorical import Categorical
from calipers.inputs.features import Features


def joined(columns: Sequence[Any]) -> Any:
    """Arrays, coded columns, features or frames of one library, joined.

    Arrays of which some hold text and others numbers become text.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.joined_columns import joined
    >>> joined([np.array([1, 2]), np.array(["a"])]).tolist()
    ['1', '2', 'a']
    """
    library = type(columns[0]).__module__
    if library.startswith("polars"):
        import polars as pl

        return pl.concat(columns, how="vertical_relaxed")
    if library.startswith("pandas"):
        import pandas as pd

        return pd.concat(columns)
    if isinstance(columns[0], Features):
        return replace(columns[0], values=np.concatenate([column.values for column in columns]))
    arrays = [np.asarray(c) if isinstance(c, Categorical) else c for c in columns]
    if len({array.dtype.kind in "UO" for array in arrays}) > 1:
        arrays = [array.astype(str) for array in arrays]
    return np.concatenate(arrays)
