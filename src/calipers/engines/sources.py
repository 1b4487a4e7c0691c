"""Where the rows lie: arrays in memory, or files read piece by piece.

A source lists its pieces; a piece is a few words (a path and a range of rows), so it can be sent to the
machine that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calipers.engines.block import Block
from calipers.exceptions import InputError
from calipers.inputs.files import ColumnChoice, predictions_of_frame
from calipers.inputs.files.roles import assign_roles

if TYPE_CHECKING:
    import polars as pl

# Rows per block: large enough for numpy, small enough for memory with hundreds of columns.
BLOCK_ROWS = 262_144
PIECE_ROWS = 4 * BLOCK_ROWS


class Piece(Protocol):
    """Some rows, read when asked."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    def blocks(self) -> Iterator[Block]:
        """The rows in blocks."""


class Source(Protocol):
    """All rows, as a list of pieces."""

    def pieces(self) -> Sequence[Piece]:
        """Pieces that together hold every row once."""


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPiece:
    """A range of rows of arrays in memory."""

    given: Mapping[str, Any]
    start: int
    stop: int
    classes: Any = None
    alpha: Any = 0.1

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    def blocks(self) -> Iterator[Block]:
        """One block after the other."""
        for begin in range(self.start, self.stop, BLOCK_ROWS):
            end = min(begin + BLOCK_ROWS, self.stop)
            part = {name: value[begin:end] for name, value in self.given.items() if value is not None}
            yield Block(part, classes=self.classes, alpha=self.alpha)


@dataclass(frozen=True, slots=True, eq=False)
class ArraySource:
    """Arrays in memory, by the names of the arguments of an audit.

    Parameters
    ----------
    given : mapping
        y_true, probabilities, p_values, sets, intervals, ease, groups, sample_weight.
    classes : sequence, optional
        Label of every column.
    alpha : float
        Level at which p-values become sets.
    piece_rows : int
        Rows per piece.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.engines import ArraySource
    >>> source = ArraySource({"y_true": np.zeros(5), "intervals": np.zeros((5, 2))}, piece_rows=2)
    >>> [piece.rows for piece in source.pieces()]
    [2, 2, 1]
    """

    given: Mapping[str, Any]
    classes: Any = None
    alpha: Any = 0.1
    piece_rows: int = PIECE_ROWS

    def pieces(self) -> list[ArrayPiece]:
        """Ranges of rows."""
        arrays = {name: np.asarray(v) for name, v in self.given.items() if v is not None}
        n = len(next(iter(arrays.values())))
        classes = self.classes if self.classes is not None else _common_classes(arrays)
        return [
            ArrayPiece(arrays, start, min(start + self.piece_rows, n), classes, self.alpha)
            for start in range(0, n, self.piece_rows)
        ]


def _common_classes(arrays: Mapping[str, np.ndarray]) -> Any:
    """The labels of all rows, so that a block without some class reads its columns the same way."""
    wide = next((arrays[r] for r in ("probabilities", "p_values", "sets") if r in arrays), None)
    if wide is None or "y_true" not in arrays:
        return None
    labels = np.unique(arrays["y_true"])
    return labels if len(labels) == wide.shape[1] else None


@dataclass(frozen=True, slots=True, eq=False)
class FilePiece:
    """A range of rows of one file."""

    path: str
    start: int
    rows: int
    columns: tuple[str, ...]
    choice: ColumnChoice
    classes: Any = None
    alpha: Any = 0.1
    storage: Mapping[str, Any] = field(default_factory=dict)

    def blocks(self) -> Iterator[Block]:
        """Read the range block by block; only the columns with a role are touched."""
        lazy = scan(self.path, self.storage).select(self.columns)
        for begin in range(self.start, self.start + self.rows, BLOCK_ROWS):
            length = min(BLOCK_ROWS, self.start + self.rows - begin)
            frame = lazy.slice(begin, length).collect()
            found = predictions_of_frame(frame, self.choice, source=self.path).arguments()
            classes = found.pop("classes", None)
            found.pop("alpha", None)
            yield Block(found, classes=self.classes or classes, alpha=self.alpha)


@dataclass(frozen=True, slots=True, eq=False)
class FileSource:
    """Parquet, arrow or csv files, given by paths or patterns, streamed in pieces.

    Parameters
    ----------
    paths : str or sequence of str
        Files or patterns such as ``logs/*.parquet``; addresses polars can open (``s3://...``) as they are.
    choice : ColumnChoice, optional
        Which column plays which role.
    classes : sequence, optional
        Label of every column, when the column names do not say it.
    alpha : float
        Level at which p-values become sets.
    features : bool
        Whether columns without another role are read too.
    storage : mapping
        Options for remote storage, passed to polars.
    piece_rows : int
        Rows per piece: the unit of work that is sent out and, after a loss, repeated.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> from calipers.engines import FileSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = str(Path(folder, "rows.parquet"))
    ...     pl.DataFrame({"y_true": [1.0] * 5, "lower": [0.0] * 5, "upper": [2.0] * 5}).write_parquet(place)
    ...     [piece.rows for piece in FileSource(place, piece_rows=3).pieces()]
    [3, 2]
    """

    paths: str | Sequence[str]
    choice: ColumnChoice = field(default_factory=ColumnChoice)
    classes: Any = None
    alpha: Any = 0.1
    features: bool = False
    storage: Mapping[str, Any] = field(default_factory=dict)
    piece_rows: int = PIECE_ROWS

    def files(self) -> list[str]:
        """The files the patterns stand for, sorted; an error when there are none."""
        wanted = [self.paths] if isinstance(self.paths, str) else [str(path) for path in self.paths]
        found = [file for pattern in wanted for file in expand(pattern)]
        if not found:
            raise InputError(f"no file matches {', '.join(wanted)}.")
        return found

    def pieces(self) -> list[FilePiece]:
        """Ranges of rows of every file; row counts come from the files' own footers where they have one."""
        pieces = []
        for path in self.files():
            lazy = scan(path, self.storage)
            columns = self._columns(lazy, path)
            n = count_rows(lazy)
            shared = (columns, self.choice, self.classes, self.alpha, dict(self.storage))
            pieces += [
                FilePiece(path, start, min(self.piece_rows, n - start), *shared)
                for start in range(0, n, self.piece_rows)
            ]
        if not pieces:
            raise InputError(f"there are no rows in {', '.join(self.files())}.")
        return pieces

    def _columns(self, lazy: pl.LazyFrame, path: str) -> tuple[str, ...]:
        roles = assign_roles(lazy.collect_schema().names(), self.choice, place=path)
        words = roles.described()
        return tuple(c for c in words if self.features or words[c] != "feature")


def expand(pattern: str) -> list[str]:
    """The files a pattern stands for, sorted; an address or a plain path stands for itself."""
    if "://" in pattern or not any(character in pattern for character in "*?["):
        return [pattern]
    path = Path(pattern)
    root = Path(path.anchor) if path.is_absolute() else Path()
    return sorted(str(found) for found in root.glob(str(path.relative_to(path.anchor))))


def scan(path: str, storage: Mapping[str, Any] | None = None) -> pl.LazyFrame:
    """A file opened lazily, by its ending."""
    import polars as pl

    name = path.lower()
    try:
        if name.endswith((".parquet", ".pq")):
            return pl.scan_parquet(path, storage_options=dict(storage or {}) or None)
        if name.endswith((".arrow", ".feather", ".ipc")):
            return pl.scan_ipc(path)
        if name.endswith((".csv", ".tsv")):
            return pl.scan_csv(path, separator="\t" if name.endswith(".tsv") else ",")
    except FileNotFoundError:
        raise InputError(f"there is no file {path}.") from None
    raise InputError(f"{path} must end in .parquet, .arrow, .csv or .tsv to be streamed.")


def count_rows(lazy: pl.LazyFrame) -> int:
    """Number of rows, without reading them where the format knows it."""
    import polars as pl
    from polars.exceptions import ComputeError

    try:
        return int(lazy.select(pl.len()).collect(engine="streaming").item())
    except (ComputeError, OSError) as error:
        raise InputError(f"the file cannot be read: {str(error).splitlines()[0]}") from None
