"""Where files lie: patterns, folders, partitioned tables and addresses, and how some of their rows are read.

Local files and the clouds polars knows are read by polars. Everything else that fsspec can open
(``memory://``, ``hdfs://``, ...) is read through it by pyarrow, row group by row group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from calipers.arrays import import_optional
from calipers.engines.storage import for_fsspec, for_polars
from calipers.exceptions import CalipersError, InputError, MissingDependencyError

if TYPE_CHECKING:
    import polars as pl

_ENDINGS = (".parquet", ".pq", ".arrow", ".feather", ".ipc", ".csv", ".tsv")
_PARQUET = (".parquet", ".pq")
# Rows of a csv file that are looked at for the types of its columns, as in memory.
_TYPE_ROWS = 100_000
# Addresses that polars opens by itself.
_NATIVE = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "azure", "http", "https", "file", "hf")


Stamp = tuple[int, int]
T = TypeVar("T")


class Reader(Protocol):
    """One file, opened: its columns, its number of rows, and any range of them."""

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""

    @property
    def kinds(self) -> Mapping[str, str]:
        """Column to what it holds: "numbers", "text", ...; empty text where nothing can be said."""

    @property
    def n_rows(self) -> int:
        """Rows in the file."""

    def read(self, start: int, rows: int, columns: Sequence[str]) -> pl.DataFrame:
        """A range of rows of some columns."""


def expand(pattern: str, storage: Mapping[str, Any] | None = None) -> list[str]:
    """The files a pattern, a folder or an address stands for, sorted; a plain path stands for itself."""
    if "://" in pattern:
        found = _expand_address(pattern, dict(storage or {}))
    elif Path(pattern).is_dir():
        found = _of_folder(str(file) for file in Path(pattern).rglob("*"))
    elif not _has_wildcard(pattern) or Path(pattern).exists():
        return [pattern]
    else:
        found = _of_pattern(Path(pattern))
    if not found:
        raise InputError(
            f"no file matches {pattern}; files that end in {', '.join(_ENDINGS)} are looked for."
        )
    return found


def _of_pattern(path: Path) -> list[str]:
    """Files that match, and those in folders that match."""
    root = Path(path.anchor) if path.is_absolute() else Path()
    found = sorted(root.glob(str(path.relative_to(path.anchor))))
    inside = (_of_folder(str(f) for f in file.rglob("*")) if file.is_dir() else [str(file)] for file in found)
    return [name for names in inside for name in names]


def distinct(files: Iterable[str]) -> list[str]:
    """Every file once, however its path is spelled.

    Examples
    --------
    >>> from calipers.engines.places import distinct
    >>> distinct(["logs/a.csv", "logs/./a.csv", "s3://lake/a.csv"])
    ['logs/a.csv', 's3://lake/a.csv']
    """
    known: dict[str, str] = {}
    for file in files:
        known.setdefault(file if "://" in file else str(Path(file).absolute()), file)
    return list(known.values())


def _expand_address(address: str, storage: dict[str, Any]) -> list[str]:
    if not _has_wildcard(address) and address.lower().endswith(_ENDINGS):
        return [address]
    fsspec = import_optional("fsspec", purpose="patterns and folders of addresses", install="calipers[lake]")

    def listed() -> list[str]:
        system, path = fsspec.url_to_fs(address, **for_fsspec(address, storage))
        found = system.glob(path) if _has_wildcard(address) else system.find(path)
        return [system.unstrip_protocol(name) for name in found]

    return _of_folder(_reached(address, listed))


def _of_folder(names: Any) -> list[str]:
    """Files that hold rows; names that begin with _ or . are the table's own notes."""
    return sorted(n for n in names if n.lower().endswith(_ENDINGS) and n.rsplit("/", 1)[-1][0] not in "_.")


def _has_wildcard(pattern: str) -> bool:
    return any(character in pattern for character in "*?[")


def open_file(path: str, storage: Mapping[str, Any] | None = None) -> Reader:
    """The reader of a file, by its address and ending."""
    if not path.lower().endswith(_ENDINGS):
        if "://" not in path and not Path(path).exists():
            raise InputError(f"{path} does not exist.")
        raise InputError(f"{path} must end in .parquet, .arrow, .csv or .tsv to be streamed.")
    return _opened(path, file_stamp(path), _Options(storage or {}))


class _Options(dict[str, Any]):
    """Options that can be the key of a cache, whatever they hold."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items())))


@lru_cache(maxsize=64)
def _opened(path: str, stamp: Stamp | None, storage: _Options) -> Reader:
    """The reader, kept while the file stays as it is: every piece of a file needs its footer."""
    protocol = path.split("://", 1)[0] if "://" in path else ""
    kind = PolarsReader if not protocol or protocol in _NATIVE else AddressReader
    return kind(path, storage)


def file_stamp(path: str) -> Stamp | None:
    """When a local file was written and how long it is."""
    try:
        found = Path(path).stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


class PolarsReader:
    """A file opened lazily by polars; ``key=value`` folders of its path are columns."""

    def __init__(self, path: str, storage: Mapping[str, Any]) -> None:
        self.path = path
        self.lazy = _guarded(path, lambda: _scan(path, storage))

    @cached_property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns."""
        return tuple(self._schema)

    @cached_property
    def kinds(self) -> Mapping[str, str]:
        """Column to what it holds."""
        return {name: _kind(dtype) for name, dtype in self._schema.items()}

    @cached_property
    def _schema(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] = _guarded(self.path, self.lazy.collect_schema)
        return found

    @property
    def n_rows(self) -> int:
        """Rows in the file, without reading them where the format knows it."""
        import polars as pl

        count = self.lazy.select(pl.len())
        return int(_guarded(self.path, lambda: count.collect(engine="streaming")).item())

    def read(self, start: int, rows: int, columns: Sequence[str]) -> pl.DataFrame:
        """A range of rows of some columns."""
        wanted = self.lazy.slice(start, rows).select(columns)
        frame: pl.DataFrame = _guarded(self.path, wanted.collect)
        return frame


def _kind(dtype: Any) -> str:
    """What a column holds, in words; nothing for a column without any value."""
    import polars as pl

    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    if dtype == pl.Boolean:
        return "true and false"
    if dtype == pl.Null:
        return ""
    return "numbers" if dtype.is_numeric() else "times" if dtype.is_temporal() else str(dtype)


def _scan(path: str, storage: Mapping[str, Any]) -> pl.LazyFrame:
    import polars as pl

    name, options = path.lower(), for_polars(path, storage) or None
    if name.endswith(_PARQUET):
        return pl.scan_parquet(path, hive_partitioning=True, storage_options=options)
    if name.endswith((".csv", ".tsv")):
        separator = "\t" if name.endswith(".tsv") else ","
        found = pl.scan_csv(
            path, separator=separator, storage_options=options, infer_schema_length=_TYPE_ROWS
        )
        return found.with_columns(_folder_columns(path))
    return pl.scan_ipc(path, storage_options=options, hive_partitioning=True)


def _folder_columns(path: str) -> list[pl.Expr]:
    """Columns that ``key=value`` folders state, numbers as numbers; what polars does for parquet."""
    import polars as pl

    folders = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
    return [
        pl.lit(int(value) if value.lstrip("-").isdigit() else value).alias(name)
        for name, value in folders.items()
    ]


def _guarded(path: str, work: Any) -> Any:
    """Whatever the reader objects to becomes one sentence that names the file."""
    import polars as pl

    try:
        return work()
    except FileNotFoundError:
        raise InputError(f"there is no file {path}.") from None
    except (pl.exceptions.PolarsError, OSError) as error:
        said = " ".join(str(error).split())[:160].rstrip(".")
        raise InputError(f"{path} cannot be read ({said}).") from None


def _reached(address: str, work: Callable[[], T]) -> T:
    """Whatever a remote store objects to becomes one sentence that names the address.

    Stores have trees of errors of their own, which share no class but Exception.
    """
    try:
        return work()
    except CalipersError:
        raise
    except FileNotFoundError:
        raise InputError(f"there is nothing at {address}.") from None
    except ImportError as error:
        said = " ".join(str(error).split()).rstrip(".")
        raise MissingDependencyError(f"{address} cannot be opened: {said}.") from None
    except Exception as error:  # noqa: BLE001
        said = " ".join(str(error).split())[:160].rstrip(".") or type(error).__name__
        raise InputError(f"{address} cannot be read ({said}). Check the address and the options.") from None


class AddressReader:
    """A parquet file that only fsspec can open; row groups are fetched as they are needed."""

    def __init__(self, path: str, storage: Mapping[str, Any]) -> None:
        if not path.lower().endswith(_PARQUET):
            raise InputError(f"{path} must be parquet to be streamed from its address.")
        import_optional("pyarrow", purpose="such addresses", install="calipers[lake]")
        self.path, self.storage = path, dict(storage)
        self.folders = dict(part.split("=", 1) for part in path.split("/")[:-1] if "=" in part)
        with _reached(path, self._open) as file:
            self.groups = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
            self._columns = (*file.schema_arrow.names, *self.folders)
            import polars as pl

            empty = pl.DataFrame(file.schema_arrow.empty_table())
            self._kinds = {name: _kind(dtype) for name, dtype in empty.schema.items()}

    @property
    def kinds(self) -> Mapping[str, str]:
        """Column to what it holds; folders hold text."""
        return self._kinds | dict.fromkeys(self.folders, "text")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns, with those the folders say."""
        return self._columns

    def _open(self) -> Any:
        import pyarrow.parquet as parquet

        fsspec = import_optional("fsspec", purpose="such addresses", install="calipers[lake]")
        handle = fsspec.open(self.path, "rb", **for_fsspec(self.path, self.storage)).open()
        return parquet.ParquetFile(handle)

    @property
    def n_rows(self) -> int:
        """Rows in the file, from its footer."""
        return sum(self.groups)

    def read(self, start: int, rows: int, columns: Sequence[str]) -> pl.DataFrame:
        """A range of rows of some columns: the row groups that hold them, cut."""
        import polars as pl

        first, skipped = 0, 0
        touched: list[int] = []
        for number, size in enumerate(self.groups):
            if first + size > start and first < start + rows:
                skipped = skipped if touched else start - first
                touched.append(number)
            first += size
        own = [name for name in columns if name not in self.folders]

        def fetched() -> Any:
            with self._open() as file:
                return file.read_row_groups(touched, columns=own).slice(skipped, rows)

        table = _reached(self.path, fetched)
        frame = pl.DataFrame(table)
        constants = [pl.lit(self.folders[name]).alias(name) for name in columns if name in self.folders]
        return frame.with_columns(constants).select(columns)
