"""One file, opened: its columns, its number of rows, and any range of them.

Local files and the clouds polars knows are read by polars. Parquet at every other address that fsspec can
open (``memory://``, ``hdfs://``, ...) is read through it by pyarrow, row group by row group.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from calipers.arrays import import_optional
from calipers.exceptions import CalipersError, InputError
from calipers.inputs.files.file_patterns import of_store
from calipers.inputs.files.formats import format_of, open_packed
from calipers.inputs.files.opened_file import TYPE_ROWS, unmapped
from calipers.inputs.files.size_limits import refuse_bomb, refuse_damaged_index, require_memory, working_bytes
from calipers.inputs.files.storage_options import for_fsspec

if TYPE_CHECKING:
    import polars as pl

# Addresses that polars opens by itself.
_BY_POLARS = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "azure", "http", "https", "file", "hf")

Stamp = tuple[int, int]
T = TypeVar("T")


class Reader(ABC):
    """One file, opened.

    ``schema`` is its columns and their types, ``arrays`` the columns that hold a whole argument of an audit,
    ``stated`` what the file says for all rows. Rows of a stream are reached by unpacking all before them.
    """

    schema: Mapping[str, Any]
    n_rows: int
    arrays: frozenset[str] = frozenset()
    stated: Mapping[str, Any] = {}
    is_stream: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, with those that ``key=value`` folders of the path state."""
        return tuple(self.schema)

    def kind(self, column: str) -> str:
        """What a column holds: "numbers", "text", ...; empty text where nothing can be said."""
        return kind_of(self.schema[column])

    @abstractmethod
    def read(self, start: int, rows: int, columns: Sequence[str]) -> pl.DataFrame:
        """A range of rows of some columns."""

    def batches(self, start: int, rows: int, columns: Sequence[str], step: int) -> Iterator[pl.DataFrame]:
        """The same in parts of at most ``step`` rows."""
        for first in range(start, start + rows, step):
            yield self.read(first, min(step, start + rows - first), columns)


def open_file(path: str, storage: Mapping[str, Any] | None = None, separator: str = "") -> Reader:
    """The reader of a file, by its address and ending."""
    if "://" not in path:
        _require_file(path)
    kind, _ = format_of(path)
    opened = _opened_in_memory if kind.in_memory else _opened
    return opened(path, file_stamp(path), _Options(storage or {}), separator or kind.separator)


def _require_file(path: str) -> None:
    place = Path(path)
    if place.is_dir():
        raise InputError(f"{path} is a folder; name the file inside it.")
    if not place.exists():
        raise InputError(f"{path} does not exist.")
    format_of(path)
    if not place.is_file():
        raise InputError(
            f"{path} is not a file but a pipe, a socket or a device. Write its content to a file."
        )
    if place.stat().st_size == 0:
        raise InputError(f"{path} is empty (0 bytes). Write the predictions to it again.")


class _Options(dict[str, Any]):
    """Options that can be the key of a cache, whatever they hold."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


def _open(path: str, stamp: Stamp | None, storage: _Options, separator: str) -> Reader:
    protocol = path.split("://", 1)[0] if "://" in path else ""
    if not protocol or protocol in _BY_POLARS:
        return PolarsReader(path, storage, separator, stamp)
    return FsspecReader(path, storage)


# Readers are kept while their file stays as it is: every piece of a file needs its footer. One that holds all
# rows is kept alone.
_opened = lru_cache(maxsize=64)(_open)
_opened_in_memory = lru_cache(maxsize=1)(_open)


def file_stamp(path: str) -> Stamp | None:
    """When a local file was written and how long it is."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


class PolarsReader(Reader):
    """A file opened lazily by polars."""

    def __init__(
        self, path: str, storage: Mapping[str, Any], separator: str, stamp: Stamp | None = None
    ) -> None:
        self.path = path
        kind, compression = format_of(path)
        self.stamp = None if kind.in_memory else stamp
        self.is_stream, self.separated = bool(compression), bool(kind.separator)
        guarded(path, lambda: _refuse_unreadable(path))
        opened = guarded(path, lambda: kind.scan(path, storage, separator))
        self.arrays, self.stated = opened.arrays, opened.stated
        folders = folder_columns(path)
        self.lazy = guarded(
            path, lambda: _plain(opened.lazy.with_columns(folders) if folders else opened.lazy)
        )
        self.schema = guarded(path, self.lazy.collect_schema)

    @cached_property
    def n_rows(self) -> int:  # type: ignore[override]
        """Rows in the file, without reading them where the format knows it."""
        import polars as pl

        # pl.len() of a csv file by its address counts lines of a copy that polars keeps, which may be old.
        counted = pl.nth(0).null_count() + pl.nth(0).count() if self.separated else pl.len()
        # Where only some columns are read, polars passes over cells beyond the header: all are read once.
        flags = pl.QueryOptFlags(projection_pushdown=not self.separated)
        count = self.lazy.select(counted)
        return int(guarded(self.path, lambda: count.collect(engine="streaming", optimizations=flags)).item())

    def read(self, start: int, rows: int, columns: Sequence[str]) -> pl.DataFrame:
        """A range of rows of some columns."""
        return self._read_unchanged(self.lazy.slice(start, rows).select(columns).collect)

    def _read_unchanged(self, work: Callable[[], T]) -> T:
        try:
            return guarded(self.path, work)
        finally:
            self._require_unchanged()

    def _require_unchanged(self) -> None:
        """Rows of a file that was written to since it was opened may be those of two files."""
        if self.stamp is not None and file_stamp(self.path) != self.stamp:
            raise InputError(
                f"{self.path} was changed while it was read. Read it when it is complete, or copy it first."
            )

    def batches(self, start: int, rows: int, columns: Sequence[str], step: int) -> Iterator[pl.DataFrame]:
        """The same in parts of at most ``step`` rows; a compressed file is unpacked once."""
        if not self.is_stream or rows <= step or not hasattr(self.lazy, "collect_batches"):
            yield from super().batches(start, rows, columns, step)
            return
        wanted = self.lazy.slice(start, rows).select(columns)
        parts = iter(guarded(self.path, lambda: wanted.collect_batches(chunk_size=step)))
        while (part := self._read_unchanged(lambda: next(parts, None))) is not None:
            yield part


def _plain(lazy: pl.LazyFrame) -> pl.LazyFrame:
    """Decimals and 128-bit integers as the numbers that arrays hold; integers that do not fit are refused."""
    import polars as pl

    plain: dict[str, Any] = {"Decimal": pl.Float64, "Int128": pl.Int64, "UInt128": pl.Int64}
    kinds = {name: str(dtype).split("(")[0] for name, dtype in lazy.collect_schema().items()}
    casts: Any = {name: plain[kind] for name, kind in kinds.items() if kind in plain}
    return lazy.cast(casts) if casts else lazy


def _refuse_unreadable(path: str) -> None:
    """Refuse what unpacks to far too much, a damaged index, and text in an unsupported encoding."""
    refuse_bomb(path)
    refuse_damaged_index(path)
    kind, compression = format_of(path)
    if not kind.is_text or "://" in path:
        return
    with open_packed(path, compression) as file:
        first = file.read(4096)
    if first.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\x00" in first[:64]:
        raise InputError(f"{path} is written in UTF-16. Save it as UTF-8.")
    if b"\r" in first and b"\n" not in first:
        raise InputError(f"the lines of {path} end in a carriage return alone. Save it with line feeds.")


def kind_of(dtype: Any) -> str:
    """What a column holds, in words; nothing for a column without any value."""
    import polars as pl

    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    if dtype == pl.Boolean:
        return "true and false"
    if dtype == pl.Null:
        return ""
    return "numbers" if dtype.is_numeric() else "times" if dtype.is_temporal() else str(dtype)


def folder_columns(path: str) -> list[pl.Expr]:
    """Columns that ``key=value`` folders of a path state, whole numbers as numbers.

    Examples
    --------
    >>> from calipers.inputs.files.readers import folder_columns
    >>> [column.meta.output_name() for column in folder_columns("logs/region=north/day=3/rows.csv")]
    ['region', 'day']
    """
    import polars as pl

    folders = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    return [
        pl.lit(int(value) if value.lstrip("-").isdigit() else value).alias(name)
        for name, value in folders.items()
    ]


def guarded(path: str, work: Callable[[], T]) -> T:
    """Whatever a reader objects to becomes one sentence that names the file."""
    import polars as pl

    foreign = (
        pl.exceptions.PolarsError, OSError, ValueError, EOFError, RuntimeError, MemoryError, OverflowError,
        zipfile.BadZipFile, zlib.error,
    )  # fmt: skip
    try:
        return work()
    except CalipersError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist.") from None
    except foreign as error:
        raise InputError(_in_our_words(path, error)) from None
    # polars reports some damaged files as a panic, which is not an Exception.
    except BaseException as error:
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(f"{path} is damaged and could not be read. Write it again.") from None


def _in_our_words(path: str, error: Exception) -> str:
    """What is wrong with a file, without advice about options that we do not have."""
    said = str(error).replace(unmapped(path), path)
    if cell := re.search(r"could not parse `(.*?)` as dtype `\w+` at column '(.*?)'", said):
        return (
            f"column {cell[2]!r} of {path} holds {cell[1]!r}, which is not of the kind of its first "
            f"{TYPE_ROWS} values. Correct the cell, or write the file as parquet."
        )
    if cell := re.search(r"conversion from `[iu]128` .*? in column '(.*?)'", said):
        return (
            f"column {cell[1]!r} of {path} holds whole numbers of more than 64 bits. "
            "Divide them, or write them with a decimal point."
        )
    if "more fields than defined" in said:
        return (
            f"{path} has a line with more cells than its header. Where cells are separated by ';' or tabs, "
            "use --sep; where numbers have a decimal comma, export the file again with decimal points."
        )
    if "utf-8" in said.lower():
        return f"{path} is not written in UTF-8. Save it as UTF-8."
    said = " ".join(said.split("\n\n", maxsplit=1)[0].split())[:160].rstrip(".") or type(error).__name__
    if isinstance(error, zipfile.BadZipFile) or "allow_pickle" in said or "magic string" in said:
        said = "it is not an archive of plain arrays"
    return (
        f"{path} could not be read as {format_of(path)[0].name} ({said}). "
        "Check that it is complete and that its ending says what it is."
    )


class FsspecReader(Reader):
    """A parquet file that only fsspec can open; row groups are fetched as they are needed."""

    def __init__(self, path: str, storage: Mapping[str, Any]) -> None:
        import polars as pl

        if format_of(path)[0].name != "parquet":
            raise InputError(f"{path} must be parquet to be streamed from its address.")
        import_optional("pyarrow", purpose="such addresses", install="calipers[storage]")
        self.path, self.storage, self.folders = path, dict(storage), folder_columns(path)
        with of_store(path, self._open) as file:
            self.groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            empty = pl.DataFrame(file.schema_arrow.empty_table())
        self.n_rows = sum(self.groups)
        self.own = set(empty.columns)
        self.schema = empty.with_columns(self.folders).schema

    def _open(self) -> Any:
        import pyarrow.parquet as parquet

        fsspec = import_optional("fsspec", purpose="such addresses", install="calipers[storage]")
        handle = fsspec.open(self.path, "rb", **for_fsspec(self.path, self.storage)).open()
        return parquet.ParquetFile(handle)

    def read(self, start: int, rows: int, columns: Sequence[str]) -> pl.DataFrame:
        """A range of rows of some columns: the row groups that hold them, cut."""
        import polars as pl

        ends = np.cumsum(self.groups)
        touched = np.flatnonzero((ends > start) & (ends - self.groups < start + rows)).tolist()
        skipped = start - int(ends[touched[0]] - self.groups[touched[0]])

        def fetched() -> Any:
            with self._open() as file:
                own = [name for name in columns if name in self.own]
                return file.read_row_groups(touched, columns=own).slice(skipped, rows)

        frame = pl.DataFrame(of_store(self.path, fetched)).lazy()
        return _plain(frame.with_columns(self.folders).select(columns)).collect()


def read_table(path: Path | str, *, separator: str = "") -> pl.DataFrame:
    r"""All rows and columns of a file as a polars frame; the matrices of npz files are columns of arrays.

    Parameters
    ----------
    path : path
        The file; its ending says what it is.
    separator : str
        What stands between two cells of a text file, when it is not the comma or, for .tsv, the tab.

    Returns
    -------
    polars.DataFrame
        Never empty.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calipers.inputs.files import read_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "rows.csv")
    ...     _ = place.write_text("y_true,lower,upper\n1.5,1,2\n", encoding="utf-8")
    ...     read_table(place).shape
    (1, 3)
    """
    reader = open_file(str(path), separator=separator)
    if not reader.n_rows:
        raise InputError(f"{path} has no rows. Write one row per case, with a header line of column names.")
    require_memory(working_bytes(reader.n_rows, len(reader.columns)), str(path))
    return reader.read(0, reader.n_rows, reader.columns)
