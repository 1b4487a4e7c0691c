"""What the columns of arriving rows mean for a monitor: outcomes, and the promise of each row."""

from __future__ import annotations

import numpy as np
import polars as pl

from calipers.exceptions import InputError
from calipers.inputs.files.column_roles import ColumnChoice, assign_roles

_PROBABILITY = "p_"


def named_columns(table: pl.DataFrame, choice: ColumnChoice, *, beside: str | None = None) -> pl.DataFrame:
    """The table with chosen columns under the names that a monitor looks for; ``beside`` keeps its own."""
    if not choice.chosen:
        return table
    roles = assign_roles(table.columns, choice, place="the rows")
    names: dict[str, str] = {}
    for argument in ("y_true", "probabilities", "intervals", "covered", "promised", "loss"):
        for (label, _), column in roles.columns.get(argument, {}).items():
            if argument == "probabilities" and label == column:
                raise InputError(
                    f"--proba must have a star for the class, such as 'score_*', got {column!r}: "
                    "a monitor sees too few rows at once to tell the positive class."
                )
            name = {"probabilities": f"{_PROBABILITY}{label}", "intervals": label}.get(argument, argument)
            names[column] = name
    others = [pl.col(beside)] if beside in table.columns and beside not in names else []
    return table.select(*(pl.col(column).alias(name) for column, name in names.items()), *others)


def outcomes_of(table: pl.DataFrame) -> tuple[np.ndarray, np.ndarray | None]:
    """Whether each row was covered, and its promised probability when the rows state it.

    ``covered`` [and ``promised``]; or ``y_true`` with ``lower`` and ``upper``; or ``y_true`` with
    ``p_<class>``: one such column promises its class, several promise the class with the largest probability.
    """
    columns = set(table.columns)
    if "covered" in columns:
        promised = _numbers(table, "promised") if "promised" in columns else None
        return _numbers(table, "covered"), promised
    if {"y_true", "lower", "upper"} <= columns:
        y, low, high = (_numbers(table, name) for name in ("y_true", "lower", "upper"))
        return (low <= y) & (y <= high), None
    classes = [name for name in table.columns if name.startswith(_PROBABILITY)]
    if "y_true" in columns and classes:
        return _labels(table, classes)
    raise InputError(
        "rows need the columns covered [and promised], or y_true with lower and upper, or y_true with "
        f"p_<class>; got {', '.join(table.columns[:8])}."
    )


def losses_of(table: pl.DataFrame) -> np.ndarray:
    """The column ``loss``."""
    if "loss" not in table.columns:
        raise InputError(f"--bound needs a column loss, got {', '.join(table.columns[:8])}.")
    return _numbers(table, "loss")


def groups_of(table: pl.DataFrame, column: str) -> np.ndarray:
    """The group of every row, as text; rows without one are a group of their own."""
    if column not in table.columns:
        raise InputError(f"--group needs a column {column}, got {', '.join(table.columns[:8])}.")
    return np.asarray(table[column].cast(pl.String).fill_null("(missing)").to_list(), dtype=object)


def _labels(table: pl.DataFrame, columns: list[str]) -> tuple[np.ndarray, np.ndarray]:
    P = np.column_stack([_numbers(table, name) for name in columns])
    top = P.argmax(axis=1)
    names = [name.removeprefix(_PROBABILITY) for name in columns]
    return _classes(table["y_true"], names) == top, P[np.arange(len(P)), top]


def _classes(labels: pl.Series, names: list[str]) -> np.ndarray:
    """The column of each label, by its text, else by its value: 1.0 is 1, true is True; -1 without one.

    A single label decides, not its neighbours: rows come in pieces.
    """
    if labels.null_count():
        raise InputError("y_true has missing labels; give only rows whose outcome is known.")
    texts = labels.cast(pl.String).to_list()
    known = {_value(name): column for column, name in reversed(list(enumerate(names)))}
    known |= {name: column for column, name in enumerate(names)}
    found = {text: known.get(text, known.get(_value(text), -1)) for text in set(texts)}
    strange = sorted(text for text, column in found.items() if column < 0)
    if strange and len(names) > 1:
        raise InputError(
            f"y_true has the label {strange[0]!r}, which is none of the columns "
            f"{', '.join(_PROBABILITY + name for name in names[:8])}."
        )
    return np.array([found[text] for text in texts], dtype=np.int64)


def _value(text: str) -> float | str:
    """What a label means: a number, or its letters."""
    word = text.strip().lower()
    try:
        return float(word)
    except ValueError:
        return word


def _numbers(table: pl.DataFrame, name: str) -> np.ndarray:
    column = table[name]
    if column.dtype == pl.String:
        lowered = column.str.to_lowercase().str.strip_chars()
        column = lowered.replace({"true": "1", "false": "0"}).cast(pl.Float64, strict=False)
    values = np.asarray(column.cast(pl.Float64).to_numpy(), dtype=np.float64)
    if np.isnan(values).any():
        row = int(np.argmax(np.isnan(values)))
        raise InputError(
            f"column {name!r} has a value that is missing or no number, {table[name][row]!r} at row {row}."
        )
    return values
