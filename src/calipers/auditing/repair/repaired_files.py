"""Repaired rows of a file, part by part: what is in memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from calipers.auditing.repair.new_rows import roles_for, rows_of_table, table_columns
from calipers.auditing.repair.rule import RepairRule
from calipers.exceptions import InputError
from calipers.inputs.block_sizes import rows_per_piece
from calipers.inputs.files.column_roles import ColumnChoice, Roles
from calipers.inputs.files.formats import ending_of, table_writer, write_table
from calipers.inputs.files.readers import Reader, open_file
from calipers.results.writing import Content, FolderContent, write_together

if TYPE_CHECKING:
    import polars as pl

Progress = Callable[[int, int], None]


# Rows of a file that are looked at for a shift of its features, and in how many stretches of it.
_LOOKED_AT, _STRETCHES = 10_000, 20


def features_of_file(path: Path | str, names: Sequence[str], separator: str = "") -> pl.DataFrame | None:
    """These columns of some rows spread over a file; None where it does not have them all."""
    import polars as pl

    reader = open_file(str(path), None, separator)
    if not reader.n_rows or not set(names) <= set(reader.columns):
        return None
    if reader.n_rows <= _LOOKED_AT:
        return reader.read(0, reader.n_rows, list(names))
    rows = _LOOKED_AT // _STRETCHES
    starts = np.linspace(0, reader.n_rows - rows, _STRETCHES).astype(int)
    return pl.concat([reader.read(int(start), rows, list(names)) for start in starts])


def repair_file(
    rule: RepairRule,
    path: Path | str,
    folder: Path,
    *,
    choice: ColumnChoice | None = None,
    separator: str = "",
    progress: Progress | None = None,
) -> Path:
    """Write a file with the columns that the rule changes in place of its own, whole or not at all.

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
    place, _ = repaired_place(path, folder, separator)
    content = repaired_rows(rule, path, choice=choice, separator=separator, progress=progress)
    return write_together({place: content})[0]


def repaired_place(path: Path | str, folder: Path, separator: str = "") -> tuple[Path, bool]:
    """Where the repaired rows of a file will lie, and whether that is a folder of parts."""
    reader = open_file(str(path), None, separator)
    if not reader.n_rows:
        raise InputError(f"{path} has no rows. Write one row per case, with a header line of column names.")
    name, in_parts = Path(path).name.split(".")[0], not _is_one_part(reader)
    return folder / f"{name}_repaired{'' if in_parts else ending_of(str(path))}", in_parts


def repaired_rows(
    rule: RepairRule,
    path: Path | str,
    *,
    choice: ColumnChoice | None = None,
    separator: str = "",
    progress: Progress | None = None,
) -> Content | FolderContent:
    """What is to be written to the place of the repaired rows; the file is read only when it is written."""
    reader, ending = open_file(str(path), None, separator), ending_of(str(path))

    def parts() -> Iterator[tuple[pl.DataFrame, int]]:
        roles = None if rule.is_empty else _roles(reader, rule, choice, str(path))
        done = 0
        for number, frame in enumerate(_batches(reader)):
            yield (frame if roles is None else _repaired(frame, rule, roles)), number
            done += frame.height
            if progress is not None:
                progress(done, reader.n_rows)

    def fill_folder(folder: Path) -> None:
        for frame, number in parts():
            place = str(folder / f"part-{number:05d}{ending}")
            write_table(frame, place, stated=reader.stated, separator=separator)

    def fill_file(file: IO[bytes]) -> None:
        for frame, _ in parts():
            table_writer(frame, str(path), stated=reader.stated, separator=separator)(file)

    return fill_file if _is_one_part(reader) else FolderContent(fill_folder)


def _roles(reader: Reader, rule: RepairRule, choice: ColumnChoice | None, place: str) -> Roles:
    roles = roles_for(list(reader.columns), rule, choice, place=place, arrays=reader.arrays)
    return replace(roles, feature_names=tuple(map(str, reader.stated.get("feature_names", ()))))


def _is_one_part(reader: Reader) -> bool:
    return bool(reader.n_rows <= rows_per_piece(len(reader.columns)))


def _batches(reader: Reader) -> Iterator[pl.DataFrame]:
    names = list(reader.columns)
    return iter(reader.batches(0, reader.n_rows, names, rows_per_piece(len(names))))


def _repaired(frame: pl.DataFrame, rule: RepairRule, roles: Roles) -> pl.DataFrame:
    """All columns of a part of the file, those that are repaired replaced."""
    import polars as pl

    rows, _ = rows_of_table(frame, rule, roles)
    new = table_columns(rule.apply(rows), roles, rule)
    return frame.with_columns(pl.Series(name, np.ascontiguousarray(values)) for name, values in new.items())
