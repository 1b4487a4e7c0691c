"""The rows behind a finding as a table, under the names that columns have in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.arrays import as_numpy, frame_columns, is_frame
from calipers.fields import fields_of
from calipers.inputs import Features, check_features
from calipers.inputs.categorical import Categorical
from calipers.inputs.rows import Rows
from calipers.results.terminal_safe import inert

if TYPE_CHECKING:
    import polars as pl

    from calipers.auditing.audit_result import Audit

EXAMPLES, WIDEST = 5, 12


def rows_table(found: Audit, code: str) -> pl.DataFrame:
    """The rows that a fault is about: their numbers, from 0, where all rows are at hand, and every column.

    Parameters
    ----------
    found : Audit
        The audit.
    code : str
        Code of one of its faults.

    Returns
    -------
    polars.DataFrame
        A row per row; of streamed rows those of the sample.

    Examples
    --------
    >>> import numpy as np
    >>> import calipers
    >>> from calipers.auditing.row_tables import rows_table
    >>> y = np.random.default_rng(0).normal(size=1000)
    >>> found = calipers.audit(y, intervals=np.tile([-1.0, 1.0], (1000, 1)), random_state=0)
    >>> rows_table(found, "CAL101").columns
    ['row', 'y_true', 'lower', 'upper']
    """
    import polars as pl

    chosen = np.flatnonzero(found.rows_of(code))
    columns: dict[str, Any] = {"row": chosen} if found.sample_rows == found.rows else {}
    for name, values in _columns(found.data, [str(label) for label in found.design.classes]):
        free = name if name not in columns else f"feature_{name}"
        columns[free] = np.asarray(values)[chosen]
    return pl.DataFrame({name: _plain(values) for name, values in columns.items()})


def spreadsheet_safe(frame: pl.DataFrame) -> pl.DataFrame:
    """The same for a csv file, which a spreadsheet may open: no text and no name is taken for a formula."""
    import polars as pl

    texts = [name for name, kind in frame.schema.items() if kind == pl.String]
    guarded = frame.with_columns(pl.col(name).map_elements(inert, return_dtype=pl.String) for name in texts)
    return guarded.rename({name: inert(name) for name in frame.columns})


def examples(found: Audit) -> dict[str, dict[str, Any]]:
    """Code -> how many rows a fault is about, and the first few of them; for the report."""
    made = {}
    for code in dict.fromkeys(fault.code for fault in found.faults):
        if found.selectors.get(code) is None or not (table := rows_table(found, code)).height:
            continue
        few = table[:EXAMPLES, :WIDEST]
        made[code] = {
            "rows": table.height,
            "header": few.columns,
            "cells": [list(row) for row in zip(*map(_cells, few.iter_columns()), strict=True)],
            "left_out": table.width - few.width,
        }
    return made


def _cells(column: pl.Series) -> list[str]:
    """The cells of a column as text; its numbers with as many decimals as its largest one deserves."""
    numbers = [abs(v) for v in column if isinstance(v, float) and np.isfinite(v)]
    largest = max(numbers, default=0.0)
    whole = all(v.is_integer() for v in numbers)
    decimals = 0 if whole else int(np.clip(3 - np.floor(np.log10(largest or 1.0)), 0, 8))
    return [f"{value:.{decimals}f}" if isinstance(value, float) else str(value) for value in column]


def _plain(values: np.ndarray) -> Any:
    """Values that a column of a table can hold; mixed ones as text."""
    if values.dtype.kind == "M":
        return values.astype("datetime64[us]")
    return values.astype(str) if values.dtype == object else values


def _columns(rows: Rows, classes: Sequence[str]) -> Iterator[tuple[str, Any]]:
    """Every given column by its name in a file."""
    for argument, given in rows.given.items():
        if argument == "X":
            yield from _features(check_features(given))
        elif argument == "intervals":
            ends = as_numpy(given)
            for end, name in enumerate(("lower", "upper")):
                yield from _levels(name, ends[:, end], rows.alphas)
        elif is_frame(given) or (argument in {"groups", "quantiles"} and not _is_vector(given)):
            names, matrix = frame_columns(given), as_numpy(given)
            pattern = fields_of(argument)[0].column.replace("*", "")
            prefix = "q_" if argument == "quantiles" else f"{pattern.rstrip('_')}_"
            yield from ((f"{prefix}{name}", matrix[:, k]) for k, name in enumerate(names or ()))
        else:
            yield from _matrix(argument, given, classes, rows.alphas)


def _is_vector(given: Any) -> bool:
    return isinstance(given, Categorical) or np.ndim(given) == 1


def _matrix(
    argument: str, given: Any, classes: Sequence[str], alphas: Sequence[Any]
) -> Iterator[tuple[str, Any]]:
    """A column, or one per class."""
    pattern = fields_of(argument)[0].column
    values = as_numpy(given)
    if values.ndim == 1:
        yield pattern.replace("*", classes[-1] if classes else ""), values
        return
    for k, label in enumerate(classes):
        yield from _levels(pattern.replace("*", label), values[:, k], alphas)


def _levels(name: str, values: np.ndarray, alphas: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """One column, or one per level as ``lower@0.05``."""
    if values.ndim == 1:
        yield name, values
        return
    yield from ((f"{name}@{float(alpha):g}", values[:, k]) for k, alpha in enumerate(alphas))


def _features(features: Features) -> Iterator[tuple[str, Any]]:
    """Features as they were given: categories by their labels."""
    for k, (name, labels) in enumerate(zip(features.names, features.categories, strict=True)):
        values = features.values[:, k]
        if labels is None:
            yield name, values
        else:
            named = [None if np.isnan(code) else str(labels[int(code)]) for code in values]
            yield name, np.array(named, dtype=object)
