"""Two tables of the same features: columns matched by name, categories coded together."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.inputs.features import Features

Categories = tuple[Any, ...] | None


def align_features(
    first: Features, second: Features, *, names: tuple[str, str] = ("the first table", "the second table")
) -> tuple[Features, Features]:
    """Both tables with the columns of the first, in its order, and one code per category.

    Parameters
    ----------
    first, second : Features
        Tables that `check_features` made, each with codes of its own.
    names : pair of str
        What messages call them.

    Returns
    -------
    (first, second) : tuple of Features
        With equal ``names`` and ``categories``; the categories are those of either table.

    Raises
    ------
    InputError
        When a column is in one table only, or holds numbers in one and text in the other.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.inputs import align_features, check_features
    >>> old, new = (check_features(pl.DataFrame({"city": c})) for c in (["Bonn", "Rome"], ["Rome", "Zug"]))
    >>> [table.values[:, 0].tolist() for table in align_features(old, new)]
    [[0.0, 1.0], [1.0, 2.0]]
    """
    _require_same_columns(first, second, names)
    order = [second.names.index(name) for name in first.names]
    values = [first.values.copy(), second.values[:, order]]
    shared: list[Categories] = []
    for j, (one, column) in enumerate(zip(first.categories, order, strict=True)):
        other = second.categories[column]
        both = _shared_categories(one, other, [table[:, j] for table in values], first.names[j], names)
        for table, own in zip(values, (one, other), strict=True):
            table[:, j] = recode(table[:, j], own, both)
        shared.append(both)
    one_table, other_table = (Features(table, first.names, tuple(shared)) for table in values)
    return one_table, other_table


def recode(codes: np.ndarray, own: Categories, wanted: Categories) -> np.ndarray:
    """Codes of the categories ``own`` as codes of ``wanted``; a category that is not there becomes NaN.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.feature_alignment import recode
    >>> recode(np.array([0.0, 1.0, np.nan]), ("a", "b"), ("b", "c"))
    array([nan,  0., nan])
    """
    if own is None or wanted is None or own == wanted:
        return codes
    position = {label: float(i) for i, label in enumerate(wanted)}
    table = np.array([position.get(label, np.nan) for label in own] + [np.nan])
    return np.asarray(table[np.where(np.isnan(codes), len(own), codes).astype(np.intp)])


def _require_same_columns(first: Features, second: Features, names: tuple[str, str]) -> None:
    for table, other, name in ((first, second, names[0]), (second, first, names[1])):
        alone = [column for column in table.names if column not in other.names]
        if alone:
            raise InputError(
                f"{names[0]} and {names[1]} must have the same columns; only {name} has "
                f"{', '.join(repr(column) for column in alone[:5])}."
            )


def _shared_categories(
    one: Categories, other: Categories, columns: list[np.ndarray], column: str, names: tuple[str, str]
) -> Categories:
    if (one is None) != (other is None):
        # A column without any value is of no kind, and takes that of the other table.
        empty = np.isnan(columns[0]).all() if one is None else np.isnan(columns[1]).all()
        if empty:
            return other if one is None else one
        kinds = [
            f"{'numbers' if c is None else 'text'} in {n}" for c, n in zip((one, other), names, strict=True)
        ]
        raise InputError(f"column {column!r} holds {' and '.join(kinds)}; make it one kind.")
    if one is None or other is None:
        return None
    return tuple(sorted({*one, *other}, key=lambda v: (type(v).__name__, v)))
