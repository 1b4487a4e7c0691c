"""Text in columns: csv, tsv, and whatever else has one separator between cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import IO, TYPE_CHECKING, Any

from calipers.exceptions import InputError
from calipers.inputs.files.opened_file import TYPE_ROWS, Opened, unmapped
from calipers.inputs.files.storage_options import for_polars

if TYPE_CHECKING:
    import polars as pl


def scan_delimited(path: str, storage: Mapping[str, Any], separator: str) -> Opened:
    """The file as a lazy frame, its types found once."""
    import polars as pl

    options: dict[str, Any] = {
        "separator": separator, "storage_options": for_polars(path, storage) or None, "glob": False
    }  # fmt: skip
    address = unmapped(path)
    schema = pl.scan_csv(address, infer_schema_length=TYPE_ROWS, **options).collect_schema()
    if any("_duplicated_" in name for name in schema):
        header = (
            pl.scan_csv(address, has_header=False, n_rows=1, infer_schema=False, **options).collect().row(0)
        )
        twice = next((name for name in header if header.count(name) > 1), None)
        if twice is not None:
            raise InputError(f"{path} has two columns called {twice!r}. Give every column a name of its own.")
    blank = next((name for name in schema if name != name.strip()), None)
    if blank is not None:
        raise InputError(f"column {blank!r} of {path} has blanks around its name. Write cells without them.")
    # With the types said, they are not looked for again whenever some rows are read.
    return Opened(pl.scan_csv(address, schema=schema, **options))


def write_delimited(frame: pl.DataFrame, file: IO[bytes], stated: Mapping[str, Any], separator: str) -> None:
    """Write the frame as text in columns."""
    frame.write_csv(file, separator=separator)
