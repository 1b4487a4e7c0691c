"""A column of labels as small integers: text is looked at once per distinct value, not once per row."""

from __future__ import annotations

from typing import Any

import numpy as np


class Categorical:
    """Labels and, per row, the index of its label; an array of the labels wherever one is asked for.

    Parameters
    ----------
    labels : array
        Distinct labels.
    codes : integer array
        Index of the label of every row.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.categorical import Categorical
    >>> np.asarray(Categorical(np.array(["a", "b"]), np.array([1, 0, 1]))).tolist()
    ['b', 'a', 'b']
    """

    __slots__ = ("codes", "labels")

    def __init__(self, labels: np.ndarray, codes: np.ndarray) -> None:
        self.labels, self.codes = labels, codes

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the array it stands for."""
        return (len(self.codes),)

    def __len__(self) -> int:
        return len(self.codes)

    def __getitem__(self, rows: Any) -> Categorical:
        return Categorical(self.labels, self.codes[rows])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return np.asarray(self.labels[self.codes], dtype=dtype)
