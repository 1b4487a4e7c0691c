"""Groups of rows by one attribute or by several: labels, or a table of attributes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, frame_columns, is_frame, short_repr
from calipers.exceptions import InputError
from calipers.inputs.row_checks import check_groups, check_same_length

# A column of measurements has a group of its own for nearly every row.
MOST_NUMBERS = 100


@dataclass(frozen=True, slots=True, eq=False)
class Attributes:
    """Attributes of rows as small integers.

    Parameters
    ----------
    names : tuple of str
        Name of every attribute; empty for labels given as a plain vector.
    labels : tuple of arrays
        Distinct labels of every attribute, sorted.
    codes : integer array (n, G)
        Index of every row's label, attribute by attribute.

    Examples
    --------
    >>> from calipers.inputs.attributes import check_attributes
    >>> table = check_attributes({"sex": ["f", "m", "f"], "age": ["old", "old", "young"]})
    >>> table.names, table.codes.tolist()
    (('sex', 'age'), [[0, 0], [1, 0], [0, 1]])
    """

    names: tuple[str, ...]
    labels: tuple[np.ndarray, ...]
    codes: np.ndarray

    __repr__ = short_repr

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: np.ndarray) -> Attributes:
        """The same attributes for some rows."""
        return Attributes(self.names, self.labels, self.codes[rows])

    def group_name(self, which: Sequence[int], codes: Sequence[int]) -> str:
        """Name of the rows that share these labels of some attributes: "sex=f and age=old".

        Examples
        --------
        >>> from calipers.inputs.attributes import check_attributes
        >>> check_attributes({"sex": ["f", "m"], "age": [30, 40]}).group_name([0, 1], [1, 0])
        'sex=m and age=30'
        """
        words = [str(self.labels[j][code]) for j, code in zip(which, codes, strict=True)]
        if not self.names:
            return words[0]
        return " and ".join(f"{self.names[j]}={word}" for j, word in zip(which, words, strict=True))


def check_attributes(groups: Any, *, name: str = "groups") -> Attributes:
    """Groups as `Attributes`: labels (n,), a table (n, G), a dataframe, or a mapping of columns.

    Missing labels are refused, and so are attributes of more than 100 distinct fractional numbers: these
    are measurements, which form groups only after binning.

    Examples
    --------
    >>> from calipers.inputs.attributes import check_attributes
    >>> check_attributes(["a", "b", "a"]).codes.tolist()
    [[0], [1], [0]]
    >>> check_attributes([[1, 0], [1, 1]]).names
    ('g0', 'g1')
    """
    if isinstance(groups, Attributes):
        return groups
    columns = _columns(groups, name)
    n = check_same_length(**{f"{name}[{key!r}]": column for key, column in columns.items()})
    parts = [check_groups(column, n, name=_place(name, key)) for key, column in columns.items()]
    for (labels, _), key in zip(parts, columns, strict=True):
        _refuse_measurements(labels, _place(name, key))
    codes = np.column_stack([codes for _, codes in parts])
    names = tuple(columns) if "" not in columns else ()
    return Attributes(names, tuple(labels for labels, _ in parts), codes.astype(_smallest(parts)))


def _columns(groups: Any, name: str) -> dict[str, np.ndarray]:
    """Columns by name; a plain vector has the empty name."""
    if is_frame(groups):
        columns = {key: series.to_numpy() for key, series in frame_columns(groups).items()}
    elif isinstance(groups, Mapping):
        columns = {str(key): as_numpy(column, name=_place(name, key)) for key, column in groups.items()}
    else:
        array = as_numpy(groups, name=name)
        if array.ndim == 1:
            return {"": array}
        if array.ndim != 2:
            raise InputError(f"{name} must be labels (n,) or a table (n, G), got shape {array.shape}.")
        columns = {f"g{j}": array[:, j] for j in range(array.shape[1])}
    if not columns:
        raise InputError(f"{name} must have at least one attribute, got none.")
    return columns


def _place(name: str, key: Any) -> str:
    return f"{name}[{key!r}]" if key != "" else name


def _smallest(parts: Sequence[tuple[np.ndarray, np.ndarray]]) -> Any:
    """The smallest integers that hold every code."""
    return np.min_scalar_type(max(len(labels) for labels, _ in parts))


def _refuse_measurements(labels: np.ndarray, name: str) -> None:
    if labels.dtype.kind == "f" and len(labels) > MOST_NUMBERS and not np.all(labels == np.floor(labels)):
        raise InputError(
            f"{name} has {len(labels)} distinct fractional numbers, which are not groups. "
            "Bin it first, for instance with numpy.digitize."
        )
