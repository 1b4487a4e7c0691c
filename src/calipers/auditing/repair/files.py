"""Repaired rows of a file, part by part: what is in memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from calipers.auditing.repair.new_rows import roles_for, rows_of_table, table_columns
from calipers.auditing.repair.rule import RepairRule
from calipers.inputs.block_sizes import rows_per_piece
from calipers.inputs.files.column_roles import ColumnChoice, Roles
from calipers.inputs.files.formats import ending_of, write_table
from calipers.inputs.files.readers import Reader, open_file

if TYPE_CHECKING:
    import polars as pl

Progress = Callable[[int, int], None]


def repair_file(
    rule: RepairRule,
    path: Path | str,
    folder: Path,
    *,
    choice: ColumnChoice | None = None,
    separator: str = "",
    progress: Progress | None = None,
) -> Path:
    """Write a file with the columns that the rule changes in place of its own.

    Parameters
    ----------
    rule : RepairRule
        The repair.
    path : path
        Rows with the audited columns; outcomes are not needed.
    folder : Path
        Where to; it exists.
    choice : ColumnChoice, optional
        Which column plays which role.
    separator : str
        What separates the cells of text.
    progress : callable, optional
        Called with rows done and rows in all.

    Returns
    -------
    Path
        ``<name>_repaired.<ending>``; a folder of numbered parts in that format when the file is large.
    """
    reader = open_file(str(path), None, separator)
    roles = roles_for(list(reader.columns), rule, choice, place=str(path), arrays=reader.arrays)
    name, ending = Path(path).name.split(".")[0], ending_of(str(path))
    many, done = folder / f"{name}_repaired", 0
    for number, frame in enumerate(_batches(reader)):
        whole = frame.height == reader.n_rows
        place = Path(f"{many}{ending}") if whole else many / f"part-{number:05d}{ending}"
        place.parent.mkdir(exist_ok=True)
        write_table(_repaired(frame, rule, roles), str(place), stated=reader.stated, separator=separator)
        if whole:
            return place
        done += frame.height
        if progress is not None:
            progress(done, reader.n_rows)
    return many


def _batches(reader: Reader) -> Iterator[pl.DataFrame]:
    names = list(reader.columns)
    return iter(reader.batches(0, reader.n_rows, names, rows_per_piece(len(names))))


def _repaired(frame: pl.DataFrame, rule: RepairRule, roles: Roles) -> pl.DataFrame:
    """All columns of a part of the file, those that are repaired replaced."""
    import polars as pl

    rows, _ = rows_of_table(frame, rule, roles)
    new = table_columns(rule.apply(rows), roles, rule)
    return frame.with_columns(pl.Series(name, np.ascontiguousarray(values)) for name, values in new.items())
