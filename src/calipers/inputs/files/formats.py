"""From a path to a polars frame or, for npz, to named arrays."""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.arrays import RandomState, generator
from calipers.exceptions import InputError

if TYPE_CHECKING:
    import polars as pl

# Ending -> kind of file. A csv may be compressed by gzip; the other kinds compress themselves.
KINDS = {
    ".csv": "csv", ".tsv": "tsv", ".csv.gz": "csv", ".tsv.gz": "tsv", ".parquet": "parquet", ".pq": "parquet",
    ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".npz": "npz", ".jsonl": "json-lines",
    ".ndjson": "json-lines",
}  # fmt: skip
# Rows looked at to decide the type of a csv column; a late surprise is an error, never a silent null.
_TYPE_ROWS = 100_000
# A frame, its numpy copies and the work on them, per byte of values.
_WORKING_SPACE = 4
_BYTES_PER_VALUE = 8
# Bytes of values per byte of file, where the number of rows cannot be read off the file.
_EXPANSION = {"csv": 2, "tsv": 2, "json-lines": 1, "npz": 4}
_GZIP_EXPANSION = 6


def kind_of(path: Path) -> str:
    """The kind of file by its ending.

    Examples
    --------
    >>> from pathlib import Path
    >>> kind_of(Path("rows.csv.gz"))
    'csv'
    """
    name = path.name.lower()
    for ending in sorted(KINDS, key=len, reverse=True):
        if name.endswith(ending):
            return KINDS[ending]
    raise InputError(f"{path} must end in {', '.join(KINDS)} to be read, got {path.suffix or 'no ending'!r}.")


def read_table(
    path: Path | str, *, max_rows: int | None = None, random_state: RandomState = None
) -> pl.DataFrame | dict[str, np.ndarray]:
    r"""The rows of a file: a polars frame, or named arrays for npz.

    Parameters
    ----------
    path : path
        The file; its ending says what it is.
    max_rows : int, optional
        Keep a random sample of this many rows, drawn while the file streams by.
    random_state : int, Generator or None
        Source of that draw.

    Returns
    -------
    polars.DataFrame or dict of arrays
        Never empty.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "rows.csv")
    ...     _ = place.write_text("y_true,lower,upper\n1.5,1,2\n", encoding="utf-8")
    ...     read_table(place).shape
    (1, 3)
    """
    place = _existing_file(Path(path))
    kind = kind_of(place)
    if kind == "npz":
        _refuse_larger_than_memory(place, kind, None)
        return _read_npz(place)
    frame: pl.DataFrame = _guarded(place, kind, lambda: _read_frame(place, kind, max_rows, random_state))
    if frame.height == 0 or frame.width == 0:
        raise InputError(f"{place} has no rows. Write one row per case, with a header line of column names.")
    return frame


def _existing_file(path: Path) -> Path:
    if path.is_dir():
        raise InputError(f"{path} is a folder; name the file inside it.")
    if not path.exists():
        raise InputError(f"{path} does not exist.")
    if path.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes). Write the predictions to it again.")
    return path


def _guarded(path: Path, kind: str, read: Callable[[], Any]) -> Any:
    """Whatever the reader objects to becomes one sentence that names the file."""
    import polars as pl

    try:
        return read()
    except InputError:
        raise
    except (pl.exceptions.PolarsError, OSError, ValueError, zipfile.BadZipFile, EOFError) as error:
        said = " ".join(str(error).split())[:160].rstrip(".")
        if "allow_pickle" in said:  # its advice is to run whatever the file holds
            said = "it is no archive of plain arrays"
        raise InputError(
            f"{path} could not be read as {kind} ({said}). "
            "Check that it is complete and that its ending says what it is."
        ) from None
    # polars reports some damaged files as a panic, which is not an Exception.
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{path} is damaged and could not be read as {kind}. Write it again.") from None


def _read_frame(path: Path, kind: str, max_rows: int | None, random_state: RandomState) -> pl.DataFrame:
    if kind in {"csv", "tsv"} and path.name.lower().endswith(".gz"):
        return _sample_frame(_read_zipped_csv(path, kind), max_rows, random_state)
    lazy = _scan(path, kind)
    if max_rows is None:
        _refuse_larger_than_memory(path, kind, lazy)
        return lazy.collect()
    return _stream_sample(lazy, max_rows, random_state)


def _scan(path: Path, kind: str) -> pl.LazyFrame:
    import polars as pl

    if kind == "parquet":
        return pl.scan_parquet(path)
    if kind == "arrow":
        return pl.scan_ipc(path)
    if kind == "json-lines":
        return pl.scan_ndjson(path, infer_schema_length=_TYPE_ROWS)
    return pl.scan_csv(path, separator=_separator(kind), infer_schema_length=_TYPE_ROWS)


def _read_zipped_csv(path: Path, kind: str) -> pl.DataFrame:
    import polars as pl

    _refuse_larger_than_memory(path, kind, None)
    return pl.read_csv(path, separator=_separator(kind), infer_schema_length=_TYPE_ROWS)


def _separator(kind: str) -> str:
    return "\t" if kind == "tsv" else ","


def _stream_sample(lazy: pl.LazyFrame, max_rows: int, random_state: RandomState) -> pl.DataFrame:
    """A uniform sample without replacement: one pass to count, one to keep, neither in memory."""
    import polars as pl

    n = int(lazy.select(pl.len()).collect(engine="streaming").item())
    if n <= max_rows:
        return lazy.collect(engine="streaming")
    kept = np.sort(generator(random_state).choice(n, size=max_rows, replace=False))
    numbered = lazy.with_row_index("__row").filter(pl.col("__row").is_in(kept.tolist()))
    return numbered.drop("__row").collect(engine="streaming")


def _sample_frame(frame: pl.DataFrame, max_rows: int | None, random_state: RandomState) -> pl.DataFrame:
    if max_rows is None or frame.height <= max_rows:
        return frame
    return frame[np.sort(generator(random_state).choice(frame.height, size=max_rows, replace=False))]


def _read_npz(path: Path) -> dict[str, np.ndarray]:
    def load() -> dict[str, np.ndarray]:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in archive.files}

    arrays: dict[str, np.ndarray] = _guarded(path, "npz", load)
    if not arrays:
        raise InputError(f"{path} holds no arrays. Name them as the arguments of audit: y_true, sets, ...")
    return arrays


def fits_memory(path: Path) -> bool:
    """Whether the rows of a file and the work on them fit into memory; True for what is no readable file.

    Examples
    --------
    >>> from pathlib import Path
    >>> fits_memory(Path("no such file.parquet"))
    True
    """
    free = available_memory()
    streamed = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv", ".tsv")
    if free is None or not path.is_file() or not path.name.lower().endswith(streamed):
        return True
    kind = kind_of(path)
    try:
        lazy = _scan(path, kind) if kind in {"parquet", "arrow"} else None
        return bool(_guarded(path, kind, lambda: _working_bytes(path, kind, lazy)) <= free)
    except InputError:
        return True  # the reader says what is wrong with it


def _refuse_larger_than_memory(path: Path, kind: str, lazy: pl.LazyFrame | None) -> None:
    needed, free = _working_bytes(path, kind, lazy), available_memory()
    if free is not None and needed > free:
        raise InputError(
            f"{path} needs about {needed / 1e9:.0f} GB in memory and {free / 1e9:.0f} GB are free. "
            f"'calipers audit {path} --engine local' streams all rows; "
            "--max-rows 1000000 audits a random million of them."
        )


def _working_bytes(path: Path, kind: str, lazy: pl.LazyFrame | None) -> int:
    if kind in {"parquet", "arrow"} and lazy is not None:
        import polars as pl

        rows = int(lazy.select(pl.len()).collect(engine="streaming").item())
        return rows * len(lazy.collect_schema()) * _BYTES_PER_VALUE * _WORKING_SPACE
    zipped = path.name.lower().endswith(".gz")
    return path.stat().st_size * _EXPANSION.get(kind, 1) * (_GZIP_EXPANSION if zipped else 1)


def available_memory() -> int | None:
    """Bytes a new process could use; None where the system does not say.

    Examples
    --------
    >>> free = available_memory()
    >>> free is None or free > 0
    True
    """
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        pass
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
