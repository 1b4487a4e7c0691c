"""npz archives: named arrays, by the arguments of an audit or by the names of columns, as one frame.

A matrix becomes a column of arrays, so that an archive is read, cut and checked like every other file.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from calipers.exceptions import InputError, InputTypeError
from calipers.fields import ARGUMENTS, STATED
from calipers.inputs.levels import check_alphas
from calipers.inputs.row_checks import check_count

if TYPE_CHECKING:
    import polars as pl


def read_npz(path: str) -> tuple[pl.LazyFrame, frozenset[str], dict[str, Any]]:
    """The arrays of an archive as one lazy frame, the arguments they are, and what is stated for all rows.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import numpy as np
    >>> from calipers.inputs.files.npz import read_npz
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = str(Path(folder, "rows.npz"))
    ...     np.savez(place, y_true=[0, 1], probabilities=[[0.5, 0.5], [0.25, 0.75]], n_calibration=500)
    ...     lazy, arrays, stated = read_npz(place)
    >>> sorted(arrays), stated
    (['probabilities', 'y_true'], {'n_calibration': 500})
    """
    import polars as pl

    members = list(_members(path))
    arrays = dict(members)
    if len(arrays) < len(members):
        raise InputError(f"{path} holds two arrays of one name. Write it again.")
    if not arrays:
        raise InputError(f"{path} holds no arrays. Name them as the arguments of audit: y_true, sets, ...")
    stated = {name: _checked(name, arrays.pop(name), path) for name in STATED if name in arrays}
    lengths = {name: array.shape[0] if array.ndim else None for name, array in arrays.items()}
    if None in lengths.values() or len(set(lengths.values())) > 1:
        shown = ", ".join(f"{name}: {'a single value' if n is None else n}" for name, n in lengths.items())
        raise InputError(f"the arrays of {path} must have one entry per row, got {shown}.")
    _check_feature_names(arrays.get("X"), stated.get("feature_names"), path)
    frame = pl.DataFrame({name: _column(name, array, path) for name, array in arrays.items()})
    return frame.lazy(), frozenset(arrays) & set(ARGUMENTS), stated


def _members(path: str) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays one by one. Each must be as long as its own header says before memory is taken for it."""
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            with archive.open(member) as file:
                version = np.lib.format.read_magic(file)
                header = {(1, 0): np.lib.format.read_array_header_1_0}.get(
                    version, np.lib.format.read_array_header_2_0
                )
                shape, _, dtype = header(file)
                if dtype.hasobject:
                    raise InputError(
                        f"{path} could not be read as npz: it is not an archive of plain arrays."
                    )
                if int(np.prod(shape, dtype=object)) * dtype.itemsize > member.file_size:
                    raise InputError(f"{path} is damaged: {member.filename} is shorter than it says.")
            with archive.open(member) as file:
                yield member.filename.removesuffix(".npy"), np.lib.format.read_array(file, allow_pickle=False)


def _checked(name: str, array: np.ndarray, path: str) -> Any:
    """A value that is stated once for all rows."""
    try:
        if name == "alpha":
            return list(check_alphas(np.atleast_1d(array).tolist())[0])
        if name == "n_calibration":
            return check_count(array.item() if array.size == 1 else array.tolist(), name="n_calibration")
    except (InputError, InputTypeError) as error:
        raise type(error)(f"{path}: {error}") from None
    return np.atleast_1d(array).tolist()


def _column(name: str, array: np.ndarray, path: str) -> Any:
    if array.dtype.kind == "S":
        return np.char.decode(array, "utf-8")
    if array.dtype.kind not in "biufUmM" or (array.dtype.kind == "f" and array.dtype.itemsize > 8):
        raise InputTypeError(f"array {name!r} of {path} must hold numbers, text or times, got {array.dtype}.")
    return array


def _check_feature_names(X: np.ndarray | None, names: list[Any] | None, path: str) -> None:
    if names is None:
        return
    if X is None or X.ndim != 2 or len(names) != X.shape[1]:
        raise InputError(f"feature_names of {path} must name the columns of X, got {len(names)} names.")
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"feature_names of {path} holds {twice!r} twice. Give every feature its own name.")


def write_npz(frame: pl.DataFrame, file: IO[bytes], stated: Mapping[str, Any]) -> None:
    """The columns of a frame as arrays, with what was stated for all rows.

    Examples
    --------
    >>> import io
    >>> import numpy as np
    >>> import polars as pl
    >>> from calipers.inputs.files.npz import write_npz
    >>> file = io.BytesIO()
    >>> write_npz(pl.DataFrame({"y_true": [1, 2]}), file, {"n_calibration": 50})
    >>> sorted(np.load(io.BytesIO(file.getvalue())).files)
    ['n_calibration', 'y_true']
    """
    arrays = {column.name: column.to_numpy() for column in frame}
    text = {name: array.astype(str) for name, array in arrays.items() if array.dtype.kind == "O"}
    np.savez_compressed(file, **(arrays | text | dict(stated)))
