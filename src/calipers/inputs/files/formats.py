"""The table of formats: what a file's name ends in, how its rows are scanned, and how they are written.

To add a format, write a file with a function that opens it as a lazy polars frame and one that writes a
frame, and add one line to ``FORMATS``. Everything else (columns, blocks, memory, refusals, calipers.toml, the
page) follows.
"""

from __future__ import annotations

import contextlib
import gzip
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import IO, TYPE_CHECKING, Any

from calipers.arrays import import_optional
from calipers.exceptions import InputError
from calipers.inputs.files.delimited import scan_delimited, write_delimited
from calipers.inputs.files.npz import read_npz, write_npz
from calipers.inputs.files.opened_file import TYPE_ROWS, Opened, unmapped
from calipers.inputs.files.storage_options import for_polars
from calipers.results import write_atomically

if TYPE_CHECKING:
    import polars as pl

# What may follow the ending of a text format.
COMPRESSIONS = {".gz": "gzip", ".zst": "zstd"}


@dataclass(frozen=True, slots=True)
class Format:
    """One line of the table.

    Parameters
    ----------
    name : str
        What people call it.
    endings : tuple of str
        File name endings; the first is used for files that are written.
    scan : callable
        Path, options of storage and separator to the opened file.
    write : callable
        Writes a frame to a binary file; takes what the file stated and the separator too.
    separator : str
        What stands between two cells, for text in columns; empty for other formats.
    is_text : bool
        Whether it is text, which gzip or zstd may have compressed.
    in_memory : bool
        Whether opening it reads all of it.
    """

    name: str
    endings: tuple[str, ...]
    scan: Callable[[str, Mapping[str, Any], str], Opened]
    write: Callable[[pl.DataFrame, IO[bytes], Mapping[str, Any], str], None] = field(repr=False)
    separator: str = ""
    is_text: bool = False
    in_memory: bool = False


def _scan(function: str, **options: Any) -> Callable[[str, Mapping[str, Any], str], Opened]:
    """The scan of a format that polars has a function for and that has no separator."""

    def scan(path: str, storage: Mapping[str, Any], separator: str) -> Opened:
        import polars as pl

        words = for_polars(path, storage) or None
        return Opened(getattr(pl, function)(unmapped(path), storage_options=words, **options))

    return scan


FORMATS: tuple[Format, ...] = (
    Format("csv", (".csv",), scan_delimited, write_delimited, separator=",", is_text=True),
    Format("tsv", (".tsv",), scan_delimited, write_delimited, separator="\t", is_text=True),
    Format("json-lines", (".jsonl", ".ndjson"), _scan("scan_ndjson", infer_schema_length=TYPE_ROWS),
           lambda frame, file, *_: frame.write_ndjson(file), is_text=True),
    Format("parquet", (".parquet", ".pq"), _scan("scan_parquet", hive_partitioning=False, glob=False),
           lambda frame, file, *_: frame.write_parquet(file)),
    Format("arrow", (".arrow", ".feather", ".ipc"), _scan("scan_ipc", hive_partitioning=False, glob=False),
           lambda frame, file, *_: frame.write_ipc(file)),
    Format("npz", (".npz",), lambda path, *_: Opened(*read_npz(path)),
           lambda frame, file, stated, _: write_npz(frame, file, stated), in_memory=True),
)  # fmt: skip

# Every ending that is read, longer ones first where one ends in another.
ENDINGS: dict[str, tuple[Format, str]] = {
    ending + packed: (kind, compression)
    for packed, compression in {**COMPRESSIONS, "": ""}.items()
    for kind in FORMATS
    for ending in kind.endings
    if kind.is_text or not packed
}
SHOWN = ", ".join(ending for kind in FORMATS for ending in kind.endings) + ", text also with .gz or .zst"


def is_readable(name: str) -> bool:
    """Whether the ending of a name is known.

    Examples
    --------
    >>> from calipers.inputs.files.formats import is_readable
    >>> is_readable("rows.csv.gz"), is_readable("rows.parquet.gz")
    (True, False)
    """
    return name.lower().endswith(tuple(ENDINGS))


def ending_of(path: str) -> str:
    """The ending by which a file is read, with its compression.

    Examples
    --------
    >>> from calipers.inputs.files.formats import ending_of
    >>> ending_of("Rows.CSV.gz")
    '.csv.gz'
    """
    for ending in ENDINGS:
        if str(path).lower().endswith(ending):
            return ending
    raise InputError(f"{path} must end in {SHOWN} to be read.")


def format_of(path: str) -> tuple[Format, str]:
    """The format of a file by its ending, and its compression ("gzip", "zstd" or "").

    Examples
    --------
    >>> from calipers.inputs.files.formats import format_of
    >>> kind, compression = format_of("rows.csv.gz")
    >>> kind.name, compression
    ('csv', 'gzip')
    """
    return ENDINGS[ending_of(path)]


def open_packed(path: str, compression: str) -> IO[bytes]:
    """A compressed file as the bytes that were packed into it, a stream in bounded memory."""
    if compression == "gzip":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    if compression == "zstd":
        arrow = import_optional("pyarrow", purpose="files ending in .zst", install="calipers[storage]")
        return arrow.input_stream(path, compression="zstd")  # type: ignore[no-any-return]
    return open(path, "rb")  # noqa: PTH123


def write_table(
    frame: pl.DataFrame, path: str, *, stated: Mapping[str, Any] | None = None, separator: str = ""
) -> None:
    """Write a frame in the format that the ending of the path names.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> from calipers.inputs.files import read_table
    >>> from calipers.inputs.files.formats import write_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = str(Path(folder, "rows.csv.gz"))
    ...     write_table(pl.DataFrame({"y_true": [1, 2]}), place)
    ...     read_table(place)["y_true"].to_list()
    [1, 2]
    """
    write_atomically(path, table_writer(frame, path, stated=stated, separator=separator))


def table_writer(
    frame: pl.DataFrame, path: str, *, stated: Mapping[str, Any] | None = None, separator: str = ""
) -> Callable[[IO[bytes]], None]:
    r"""What fills an open file with a frame in the format that the ending of the path names.

    Examples
    --------
    >>> import io
    >>> import polars as pl
    >>> from calipers.inputs.files.formats import table_writer
    >>> file = io.BytesIO()
    >>> table_writer(pl.DataFrame({"y_true": [1]}), "rows.csv")(file)
    >>> file.getvalue()
    b'y_true\n1\n'
    """
    kind, compression = format_of(path)

    def fill(file: IO[bytes]) -> None:
        with packed_into(file, compression) as stream:
            kind.write(frame, stream, stated or {}, separator or kind.separator)

    return fill


@contextlib.contextmanager
def packed_into(file: IO[bytes], compression: str) -> Iterator[IO[bytes]]:
    """A stream that is packed into an open file."""
    if compression == "gzip":
        with gzip.GzipFile(fileobj=file, mode="wb") as stream:
            yield stream  # type: ignore[misc]
    elif compression == "zstd":
        arrow = import_optional("pyarrow", purpose="files ending in .zst", install="calipers[storage]")
        sink = arrow.BufferOutputStream()  # a compressed stream closes what it is packed into
        with arrow.CompressedOutputStream(sink, "zstd") as stream:
            yield stream
        file.write(sink.getvalue())
    else:
        yield file
