"""Where the rows lie: arrays in memory, or files read piece by piece.

A source lists its pieces; a piece is a few words (a path and a range of rows), so it can be sent to the
machine that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from calipers.arrays import as_numpy, is_frame, short_repr
from calipers.arrays.compiled import MANY_ROWS
from calipers.conformal.stored_scores import ConformalScores
from calipers.engines.agreement import FirstFile
from calipers.engines.places import Reader, distinct, expand, open_file
from calipers.exceptions import InputError
from calipers.inputs import Features, require_column_order
from calipers.inputs.categorical import Categorical
from calipers.inputs.files import ColumnChoice, extract_predictions
from calipers.inputs.files.predictions import levels_of
from calipers.inputs.files.roles import Roles, assign_roles
from calipers.inputs.row_keys import Place
from calipers.inputs.rows import Rows

if TYPE_CHECKING:
    import polars as pl

# Rows per block, at most: enough for numpy to be at work most of the time.
BLOCK_ROWS = 1 << 18
# Rows per block, at least, and bytes of a matrix that stay near the processor.
_FEWEST_ROWS = 1 << 13
_NEAR_BYTES = 6 << 20
# Rows per piece where rows are narrow: what two writers make of a row group, or a multiple of it.
PIECE_ROWS = 1 << 20
_HEAD = 1000
# A piece is read at once; this many values of it fit easily.
PIECE_VALUES = 1 << 25


class Piece(Protocol):
    """Some rows, read when asked."""

    @property
    def rows(self) -> int:
        """Number of rows."""

    @property
    def origin(self) -> str:
        """The file, or the array, they belong to."""

    def only(self, columns: frozenset[str]) -> Piece:
        """The same rows, of which only these columns of a block will be asked for."""

    def head(self) -> Rows:
        """Its first rows, to see what there is."""

    def checked(self) -> Piece:
        """The same rows, which an earlier pass has checked."""

    def blocks(self) -> Iterator[Rows]:
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
    conformal: ConformalScores | None = None
    origin: str = ""
    fused: bool = False

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    def only(self, columns: frozenset[str]) -> ArrayPiece:
        """The piece itself: what is in memory costs nothing to leave out."""
        return self

    def head(self) -> Rows:
        """Its first rows, to see what there is."""
        return next(replace(self, stop=min(self.stop, self.start + _HEAD)).blocks())

    def checked(self) -> ArrayPiece:
        """The piece itself."""
        return self

    def blocks(self) -> Iterator[Rows]:
        """One block after the other."""
        step = block_rows(self.given)
        for begin in range(self.start, self.stop, step):
            rows = slice(begin, min(begin + step, self.stop))
            part = {name: value[rows] for name, value in self.given.items()}
            yield Rows(
                part,
                classes=self.classes,
                alpha=self.alpha,
                place=Place(self.origin, begin),
                conformal=self.conformal,
                fused=self.fused,
            )


@dataclass(frozen=True, slots=True, eq=False)
class ArraySource:
    """Arrays in memory, by the names of the arguments of an audit.

    Parameters
    ----------
    given : mapping
        y_true, probabilities, p_values, sets, intervals, X, ease, groups, sample_weight, row_id.
    classes : sequence, optional
        Label of every column.
    alpha : float or sequence of floats
        Level at which p-values become sets, or the levels of sets and intervals.
    piece_rows : int
        Rows per piece.
    conformal : ConformalScores, optional
        How probabilities become p-values.

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
    conformal: ConformalScores | None = None

    __repr__ = short_repr

    def pieces(self) -> list[ArrayPiece]:
        """Ranges of rows."""
        given = {name: value for name, value in self.given.items() if value is not None}
        self._refuse_other_order(given)
        arrays = {name: _sliceable(name, value) for name, value in given.items()}
        n = len(next(iter(arrays.values())))
        classes = self.classes if self.classes is not None else _common_classes(arrays)
        return [
            ArrayPiece(
                arrays,
                start,
                min(start + self.piece_rows, n),
                classes,
                self.alpha,
                self.conformal,
                origin="array",
                fused=n >= MANY_ROWS,
            )
            for start in range(0, n, self.piece_rows)
        ]

    def _refuse_other_order(self, given: Mapping[str, Any]) -> None:
        """Tables that name their columns after the labels, in another order, are refused."""
        for role in ("probabilities", "p_values", "sets"):
            table = given.get(role)
            if self.classes is None and is_frame(table) and "y_true" in given:
                labels = as_numpy(given["y_true"], name="y_true").reshape(-1)
                require_column_order(table, labels, as_numpy(table, name=role).shape[1])


def _sliceable(name: str, value: Any) -> Any:
    """Columns whose rows can be taken by a slice; features keep their names and categories."""
    if isinstance(value, (Categorical, Features)) or (name == "X" and is_frame(value)):
        return value
    return as_numpy(value, name=name)


def _common_classes(arrays: Mapping[str, np.ndarray]) -> Any:
    """The labels of all rows, so that a block without some class reads its columns the same way."""
    wide = next((arrays[r] for r in ("probabilities", "p_values", "sets") if r in arrays), None)
    if wide is None or "y_true" not in arrays or wide.ndim == 1:
        return None
    labels = np.unique(arrays["y_true"])
    return labels if len(labels) == wide.shape[1] else None


@dataclass(frozen=True, slots=True, eq=False)
class FilePiece:
    """A range of rows of one file."""

    path: str
    start: int
    rows: int
    roles: Roles
    classes: Any = None
    alpha: Any = 0.1
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    conformal: ConformalScores | None = None
    origin: str = ""
    fused: bool = False
    trusted: bool = False

    def only(self, columns: frozenset[str]) -> FilePiece:
        """The same rows with the columns of the file that these columns of a block are made of."""
        return replace(self, roles=narrowed(self.roles, columns, conformal=self.conformal is not None))

    def head(self) -> Rows:
        """Its first rows, to see what there is."""
        return next(replace(self, rows=min(self.rows, _HEAD)).blocks())

    def checked(self) -> FilePiece:
        """The same rows, which an earlier pass has checked."""
        return replace(self, trusted=True)

    def blocks(self) -> Iterator[Rows]:
        """Read the range part by part, only the columns with a role, and hand it on block by block."""
        step, end = _rows_per_piece(self.roles), self.start + self.rows
        for start in range(self.start, end, step):
            yield from self._read(start, min(step, end - start))

    def _read(self, start: int, rows: int) -> Iterator[Rows]:
        frame = open_file(self.path, self.storage).read(start, rows, list(self.roles.described()))
        found = extract_predictions(frame, self.roles, source=self.path, whole=False)
        given = found.arguments() | {"row_id": found.row_id}
        classes = given.pop("classes", None)
        given.pop("alpha", None)
        for column, name in ((self.roles.y, "y_true"), (self.roles.group, "groups")):
            given[name] = given.get(name) if (coded := _coded(frame, column)) is None else coded
        block = block_rows(given)
        for begin in range(0, frame.height, block):
            part = slice(begin, begin + block)
            yield Rows(
                {name: value[part] for name, value in given.items() if value is not None},
                classes=self.classes if self.classes is not None else classes,
                alpha=self.alpha,
                place=Place(self.origin, start + begin),
                conformal=self.conformal,
                trusted=self.trusted,
                fused=self.fused,
            )


def _coded(frame: pl.DataFrame, name: str | None) -> Categorical | None:
    """A text column without gaps as codes; None for numbers, which need none."""
    import polars as pl

    if name is None or frame.schema[name] not in (pl.String, pl.Categorical, pl.Enum):
        return None
    column = frame[name].cast(pl.String)
    if column.null_count():
        return None
    labels = column.unique().sort()
    codes = column.replace_strict(labels, np.arange(len(labels)), return_dtype=pl.Int64)
    return Categorical(labels.to_numpy().astype(str), codes.to_numpy())


@dataclass(frozen=True, slots=True, eq=False)
class FileSource:
    """Parquet, arrow or csv files, given by paths, folders or patterns, streamed in pieces.

    Parameters
    ----------
    paths : str or sequence of str
        Files, patterns such as ``logs/*.parquet``, folders (also partitioned ones, ``region=north/...``),
        and addresses that polars or fsspec can open (``s3://...``, ``memory://...``).
    choice : ColumnChoice, optional
        Which column plays which role.
    classes : sequence, optional
        Label of every column, when the column names do not say it.
    alpha : float or sequence of floats
        Level at which p-values become sets, or the levels of sets and intervals.
    features : bool
        Whether columns without another role are read too.
    storage : mapping
        Options of remote storage, in the words of polars or of s3fs: key, secret, endpoint_url, ... Without
        them the environment speaks (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...).
    piece_rows : int, optional
        Rows per piece: the unit of work that is sent out and, after a loss, repeated. By default about a
        million, fewer where rows are wide.
    conformal : ConformalScores, optional
        How probabilities become p-values.

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
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    piece_rows: int | None = None
    conformal: ConformalScores | None = None

    __repr__ = short_repr

    def files(self) -> list[str]:
        """The files the patterns stand for, sorted; an error when there are none."""
        wanted = [self.paths] if isinstance(self.paths, str) else [str(path) for path in self.paths]
        return distinct(file for pattern in wanted for file in expand(pattern, self.storage))

    def pieces(self) -> list[FilePiece]:
        """Ranges of rows of every file; row counts come from the files' own footers where they have one."""
        files = self.files()
        pieces: list[FilePiece] = []
        first: FirstFile | None = None
        for path, origin in zip(files, short_names(files), strict=True):
            reader = open_file(path, self.storage)
            roles, n = self.roles(reader, path), reader.n_rows
            if not n:
                continue
            first = first or FirstFile(path, roles, reader.kinds)
            roles = first.agreed(path, roles, reader.kinds)
            step = self.piece_rows or _rows_per_piece(roles)
            shared = (roles, self.classes, self.alpha, dict(self.storage), self.conformal, origin)
            pieces += [FilePiece(path, start, min(step, n - start), *shared) for start in range(0, n, step)]
        if not pieces:
            raise InputError(f"there are no rows in {', '.join(files[:3])}.")
        is_large = sum(piece.rows for piece in pieces) >= MANY_ROWS
        return [replace(piece, fused=True) for piece in pieces] if is_large else pieces

    def stated_levels(self) -> list[float] | None:
        """Levels that the names of the columns state (``lower@0.05``), if they do."""
        path = self.files()[0]
        return levels_of(self.roles(open_file(path, self.storage), path))

    def roles(self, reader: Reader, path: str) -> Roles:
        """The role of every column that is read."""
        found = assign_roles(reader.columns, self.choice, place=path)
        return found if self.features else replace(found, features=())


# What a derived column is made of: for each entry the first role that the file has.
_MADE_OF: dict[str, tuple[tuple[str, ...], ...]] = {
    "covered": (("sets", "ends", "p_values"),),
    "size": (("sets", "ends", "p_values"),),
    "empty": (("sets", "ends", "p_values"),),
    "sets_at_level": (("sets", "p_values"),),
    "prediction": (("sets", "ends", "p_values"),),
    "intervals": (("ends",),),
    "ranks": (("probabilities",),),
    "hardness": (("ends", "probabilities"),),
    "error": (("ends", "probabilities"),),
    "width": (("ends", "sets", "p_values"),),
    "difficulty": (("ease", "probabilities"),),
    "top_probability": (("probabilities",),),
    "top_is_right": (("probabilities",),),
    "codes": (("probabilities", "p_values", "sets"),),
    "groups": (("group",),),
    "sample_weight": (("weight",),),
    "row_id": (("row",),),
    "X": (("features",),),
}


def narrowed(roles: Roles, columns: frozenset[str], *, conformal: bool) -> Roles:
    """The roles from which the columns can be made; the outcome always stays.

    Examples
    --------
    >>> from calipers.inputs.files.roles import Roles
    >>> sets, p = {("a", None): "set_a"}, {("a", None): "p_a"}
    >>> roles = Roles(y="y_true", per_class={"sets": sets, "probabilities": p}, features=("age",))
    >>> narrowed(roles, frozenset({"covered"}), conformal=False).described()
    {'y_true': 'outcome', 'set_a': 'sets of class a'}
    """
    there = {
        role: bool(getattr(roles, role)) for role in ("ends", "group", "ease", "weight", "row", "features")
    }
    there |= {role: role in roles.per_class for role in ("sets", "p_values", "probabilities")}
    if conformal:
        there["p_values"] = True
    wanted = {"row"}
    # Labels need some matrix; they take the one that is read anyway.
    for column in sorted(columns, key=lambda name: name == "codes"):
        for choices in _MADE_OF.get(column, ((column,),)):
            found = [role for role in choices if there.get(role)]
            if found and not (column == "codes" and wanted & set(found)):
                wanted.add(found[0])
    if conformal and "p_values" in wanted:
        wanted.add("probabilities")
    nothing: dict[str, Any] = dict.fromkeys(("group", "ease", "weight", "time"))
    nothing |= {"ends": {}, "features": ()}
    left_out = {role: empty for role, empty in nothing.items() if role not in wanted}
    kept = {role: columns for role, columns in roles.per_class.items() if role in wanted}
    return replace(roles, per_class=kept, **left_out)


def _rows_per_piece(roles: Roles) -> int:
    """A power of two, so that row groups, which are powers of two too, are seldom read twice."""
    fitting = PIECE_VALUES // max(1, len(roles.described()))
    return int(min(PIECE_ROWS, max(_FEWEST_ROWS, 1 << (max(1, fitting).bit_length() - 1))))


def block_rows(given: Mapping[str, Any]) -> int:
    """Rows of a block, a power of two, such that its widest matrix stays near the processor.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.engines.sources import block_rows
    >>> block_rows({"sets": np.zeros((1, 10), dtype=bool)}), block_rows({"p_values": np.zeros((1, 10))})
    (262144, 65536)
    """
    wide = [value for value in given.values() if getattr(value, "ndim", 1) > 1]
    bytes_a_row = max(
        (np.prod(v.shape[1:]) * v.dtype.itemsize for v in wide if hasattr(v, "dtype")), default=1
    )
    fitting = 1 << (max(1, int(_NEAR_BYTES // max(1, bytes_a_row))).bit_length() - 1)
    return min(BLOCK_ROWS, max(_FEWEST_ROWS, fitting))


def short_names(files: Sequence[str]) -> list[str]:
    """Names of the files below the folder they share: the same wherever that folder is mounted."""
    parts = [file.split("/") for file in files]
    shared = 0
    while all(len(part) > shared + 1 and part[shared] == parts[0][shared] for part in parts):
        shared += 1
    return ["/".join(part[shared:]) for part in parts]
