"""The folder the user keeps the public data in: given as an argument, or in CALIPERS_DATA."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from calipers.exceptions import InputError

ENVIRONMENT_VARIABLE = "CALIPERS_DATA"


def data_file(file: str, data_dir: str | os.PathLike[str] | None, *, origin: str) -> Path:
    """Return the path of a data file, or one sentence that says what is missing and where to get it."""
    folder = _folder(data_dir, file)
    path = folder / file
    if not path.is_file():
        raise InputError(f"{file} was not found in {folder}; it is made from {origin}.")
    return path


def _folder(data_dir: str | os.PathLike[str] | None, file: str) -> Path:
    given = os.environ.get(ENVIRONMENT_VARIABLE) if data_dir is None else data_dir
    if not given:
        raise InputError(
            f"data_dir must name the folder that holds {file}; "
            f"pass data_dir=... or set the environment variable {ENVIRONMENT_VARIABLE}."
        )
    folder = Path(given)
    if not folder.is_dir():
        named = "data_dir" if data_dir is not None else ENVIRONMENT_VARIABLE
        raise InputError(f"{named} must name an existing folder that holds {file}, got {str(given)!r}.")
    return folder


def read_arrays(path: Path, names: Sequence[str]) -> dict[str, np.ndarray]:
    """Return the named arrays of an npz file, and only those; pickled objects are refused."""
    with np.load(path, allow_pickle=False) as archive:
        missing = [name for name in names if name not in archive.files]
        if missing:
            raise InputError(
                f"{path.name} must hold the array {missing[0]}, it has {', '.join(archive.files)}."
            )
        return {name: archive[name] for name in names}


def read_text_table(path: Path) -> Any:
    """Return a csv or csv.gz file as a polars frame of text columns, without surrounding spaces."""
    import polars as pl

    frame = pl.read_csv(path.read_bytes(), infer_schema=False)
    frame = frame.rename({name: " ".join(name.split()) for name in frame.columns})
    return frame.with_columns(pl.all().str.strip_chars())


def to_numbers(frame: Any, *, name: str) -> np.ndarray:
    """Return the columns of a text table as a float64 matrix; a value that is not a number is named."""
    import polars as pl

    numbers = frame.with_columns(pl.all().cast(pl.Float64, strict=False))
    for column in frame.columns:
        bad = numbers[column].is_null()
        if bad.any():
            row = int(bad.arg_true()[0])
            raise InputError(
                f"{name} must hold numbers in column {column!r}, got {frame[column][row]!r} at row {row}."
            )
    return np.ascontiguousarray(numbers.to_numpy(), dtype=np.float64)
