"""Where the rows lie: arrays in memory, or files read piece by piece.

A source lists its pieces; a piece is a few words (a path and a range of rows), so it can be sent to the
machine that reads it. How files are read is the business of `calipers.inputs.files`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator, is_frame, short_repr
from calipers.arrays.compiled import MANY_ROWS
from calipers.conformal.stored_scores import ConformalScores
from calipers.inputs import Features, check_alphas, check_classes, check_count, require_column_order
from calipers.inputs.block_sizes import HEAD_ROWS, PIECE_ROWS, block_rows, rows_per_piece
from calipers.inputs.categorical import Categorical
from calipers.inputs.files import ColumnChoice, FilePiece
from calipers.inputs.files.column_roles import LEVELLED, level_positions
from calipers.inputs.files.columns_to_arrays import Arguments, columns_to_arrays, join_arguments
from calipers.inputs.files.pieces import DEFAULT_ALPHA, OpenedFile, list_files, open_files
from calipers.inputs.files.size_limits import fits_memory, require_memory, working_bytes
from calipers.inputs.given_columns import TABLES
from calipers.inputs.labels import named_classes, named_classes_of
from calipers.inputs.row_checks import missing_mask
from calipers.inputs.row_keys import Place, Places
from calipers.inputs.rows import Rows


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


def at_levels(source: Source, alpha: Any) -> tuple[Source, tuple[float, ...]]:
    """The source read at the levels asked for, and those levels.

    The default level gives way to what the source states itself: its ``alpha``, or ``lower@0.05`` in a file.
    """
    levels = tuple(float(a) for a in check_alphas(alpha)[0])
    if not isinstance(source, (ArraySource, FileSource)):
        return source, levels
    if levels == (DEFAULT_ALPHA,):
        own = source.alpha
        if own is None and isinstance(source, FileSource):
            own = source.stated_levels()
        levels = levels if own is None else tuple(float(a) for a in check_alphas(own)[0])
    return source.at(list(levels) if len(levels) > 1 else levels[0]), levels


@dataclass(frozen=True, slots=True, eq=False)
class ArrayPiece:
    """A range of rows of arrays in memory, which may have been read from a file.

    ``first`` is the position of its first row in the arrays, ``start`` that in the file or array ``origin``.
    """

    given: Mapping[str, Any]
    first: int
    rows: int
    origin: str
    start: int
    path: str = ""
    classes: Any = None
    alpha: Any = DEFAULT_ALPHA
    conformal: ConformalScores | None = None
    fused: bool = False

    def only(self, columns: frozenset[str]) -> ArrayPiece:
        """The piece itself: what is in memory costs nothing to leave out."""
        return self

    def head(self) -> Rows:
        """Its first rows, to see what there is."""
        return next(replace(self, rows=min(self.rows, HEAD_ROWS)).blocks())

    def checked(self) -> ArrayPiece:
        """The piece itself."""
        return self

    def blocks(self) -> Iterator[Rows]:
        """One block after the other."""
        step = block_rows(self.given)
        for begin in range(0, self.rows, step):
            rows = slice(self.first + begin, self.first + min(begin + step, self.rows))
            yield Rows(
                {name: value[rows] for name, value in self.given.items()},
                classes=self.classes,
                alpha=self.alpha,
                place=Place(self.origin, self.start + begin),
                conformal=self.conformal,
                fused=self.fused,
            )


@dataclass(frozen=True, slots=True, eq=False)
class ArraySource:
    """Arrays in memory, by the names of the arguments of an audit.

    Parameters
    ----------
    given : mapping
        y_true, probabilities, p_values, sets, intervals, X, ease, groups, time, sample_weight, row_id.
    classes : sequence, optional
        Label of every column.
    alpha : float or sequence of floats
        Level at which p-values become sets, or the levels of sets and intervals.
    piece_rows : int
        Rows per piece.
    conformal : ConformalScores, optional
        How probabilities become p-values.
    n_calibration : int, optional
        Rows the predictor was conformalised on, where the file they were read from states it.
    bound, loss_range : float and pair of floats, optional
        Promised bound of the mean loss and the range of a loss, where the file states them.
    parts : sequence of pieces
        The pieces of files from which the rows were read, one after the other.
    roles : mapping
        Column to its role in words, for rows that were read from files.

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
    alpha: Any = DEFAULT_ALPHA
    piece_rows: int = PIECE_ROWS
    conformal: ConformalScores | None = None
    n_calibration: int | None = None
    bound: float | None = None
    loss_range: tuple[float, float] | None = None
    parts: Sequence[FilePiece] = field(default=(), repr=False)
    roles: Mapping[str, str] = field(default_factory=dict)

    __repr__ = short_repr

    def at(self, alpha: Any) -> ArraySource:
        """The same rows read at other levels; sets and intervals of several levels must have them.

        Examples
        --------
        >>> import numpy as np
        >>> from calipers.engines import ArraySource
        >>> intervals = np.array([[[0.0, 1.0], [9.0, 8.0]]])
        >>> source = ArraySource({"y_true": [0.5], "intervals": intervals}, alpha=[0.05, 0.2])
        >>> source.at(0.2).given["intervals"].tolist()
        [[1.0, 8.0]]
        """
        have, wanted = check_alphas(self.alpha)[0], check_alphas(alpha)[0]
        given = dict(self.given)
        for argument in LEVELLED:
            layers = as_numpy(given[argument]) if given.get(argument) is not None else np.empty(0)
            if layers.ndim == 3:
                chosen = layers[:, :, level_positions(wanted, have, place=argument)]
                given[argument] = chosen[:, :, 0] if len(wanted) == 1 else chosen
        return replace(self, given=given, alpha=alpha)

    def pieces(self) -> list[ArrayPiece]:
        """Ranges of rows; of rows that were read from files those of the files."""
        arrays, n = self._arrays()
        firsts = range(0, n, self.piece_rows)
        parts = [(part.rows, part.origin, part.start, part.path) for part in self.parts]
        parts = parts or [(min(self.piece_rows, n - start), "array", start, "") for start in firsts]
        first, pieces = 0, []
        shared = (self._classes(arrays), self.alpha, self.conformal, n >= MANY_ROWS)
        for part in parts:
            pieces.append(ArrayPiece(arrays, first, *part, *shared))
            first += part[0]
        return pieces

    def rows(self) -> Rows:
        """All rows as one block."""
        arrays, n = self._arrays()
        places = [(Place(part.origin, part.start), part.rows) for part in self.parts] or [(Place("array"), n)]
        return Rows(
            arrays,
            classes=self._classes(arrays),
            alpha=self.alpha,
            place=places[0][0] if len(places) == 1 else Places(parts=tuple(places)),
            conformal=self.conformal,
            fused=n >= MANY_ROWS,
        )

    def arguments(self) -> dict[str, Any]:
        """What is given, by the arguments of `calipers.audit`."""
        alphas = check_alphas(self.alpha)[0]
        further = {
            "classes": self.classes,
            "alpha": list(alphas) if len(alphas) > 1 else alphas[0],
            "n_calibration": self.n_calibration,
        }
        found = {**self.given, **further}
        return {name: value for name, value in found.items() if value is not None}

    def _arrays(self) -> tuple[dict[str, Any], int]:
        """What was given as arrays, and the number of rows."""
        given = {name: value for name, value in self.given.items() if value is not None}
        self._refuse_other_order(given)
        arrays = {name: _sliceable(name, value) for name, value in given.items()}
        return arrays, len(next(iter(arrays.values())))

    def _classes(self, arrays: Mapping[str, Any]) -> Any:
        if self.classes is not None:
            return self.classes
        return named_classes_of(self.given, arrays.get("y_true")) or _common_classes(arrays)

    def _refuse_other_order(self, given: Mapping[str, Any]) -> None:
        """Tables that name their columns after the labels, in another order, are refused."""
        for role in ("probabilities", "p_values", "sets"):
            table = given.get(role)
            if self.classes is None and is_frame(table) and "y_true" in given:
                labels = as_numpy(given["y_true"], name="y_true").reshape(-1)
                if named_classes(table, labels) is None:
                    require_column_order(table, labels, as_numpy(table, name=role).shape[1])


def _sliceable(name: str, value: Any) -> Any:
    """Columns whose rows can be taken by a slice; features keep their names and categories."""
    if isinstance(value, (Categorical, Features)) or (name in TABLES and is_frame(value)):
        return value
    return as_numpy(value, name=name)


def _common_classes(arrays: Mapping[str, np.ndarray]) -> Any:
    """The labels of all rows, so that a block without some class reads its columns the same way."""
    wide = next((arrays[r] for r in ("probabilities", "p_values", "sets") if r in arrays), None)
    if wide is None or "y_true" not in arrays or wide.ndim == 1:
        return None
    labels = as_numpy(arrays["y_true"], name="y_true").reshape(-1)
    known = check_classes(None, labels[~missing_mask(labels)], wide.shape[1])
    return np.arange(wide.shape[1]) if known is None else known


@dataclass(frozen=True, slots=True, eq=False)
class FileSource:
    """Files of any format, given by paths, folders or patterns, streamed in pieces or loaded.

    Parameters
    ----------
    paths : str or sequence of str
        Files, patterns such as ``logs/*.parquet``, folders (also partitioned ones, ``region=north/...``),
        and addresses that polars or fsspec can open (``s3://...``, ``memory://...``).
    choice : ColumnChoice, optional
        Which column plays which role.
    classes : sequence, optional
        Label of every column, when the column names do not say it.
    alpha : float or sequence of floats, optional
        Level at which p-values become sets, or the levels of sets and intervals. By default those that the
        files state (``lower@0.05``), else 0.1.
    features : bool
        Whether columns without another role are read too.
    storage : mapping
        Options of remote storage, in the words of polars or of s3fs: key, secret, endpoint_url, ... Without
        them the environment speaks (AWS_ACCESS_KEY_ID, AWS_ENDPOINT_URL, ...).
    piece_rows : int, optional
        Rows per piece: the unit of work that is sent out and, after a loss, repeated. By default about a
        million, fewer where rows are wide. Compressed text is one piece per file.
    conformal : ConformalScores, optional
        How probabilities become p-values.
    separator : str
        What stands between two cells of a text file, when it is not the comma or, for .tsv, the tab.
    n_calibration : int, optional
        Rows the predictor was conformalised on; by default what the files state, if they do.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> import polars as pl
    >>> from calipers.engines import FileSource
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = str(Path(folder, "rows.parquet"))
    ...     pl.DataFrame({"y_true": [1.0] * 5, "lower": [0.0] * 5, "upper": [2.0] * 5}).write_parquet(place)
    ...     source = FileSource(place, piece_rows=3)
    ...     [piece.rows for piece in source.pieces()], source.load().rows()
    ([3, 2], Rows(5 rows of y_true, intervals))
    """

    paths: str | Sequence[str]
    choice: ColumnChoice = field(default_factory=ColumnChoice)
    classes: Any = None
    alpha: Any = None
    features: bool = False
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    piece_rows: int | None = None
    conformal: ConformalScores | None = None
    separator: str = ""
    n_calibration: int | None = None

    __repr__ = short_repr

    def files(self) -> list[str]:
        """The files the patterns stand for, sorted; an error when there are none."""
        return list_files(self.paths, self.storage)

    def at(self, alpha: Any) -> FileSource:
        """The same rows read at other levels; columns that state theirs must have them."""
        return replace(self, alpha=alpha)

    def opened(self) -> Iterator[OpenedFile]:
        """The files that have rows, one by one, with the role of their columns."""
        return open_files(
            self.files(), self.choice, alpha=self.alpha, features=self.features, storage=self.storage,
            separator=self.separator,
        )  # fmt: skip

    def stated_levels(self) -> list[float] | None:
        """Levels that the files state (``lower@0.05``), if they do."""
        first = next(replace(self, alpha=None).opened())
        named = any(level is not None for level in first.roles.levels())
        return list(first.alphas) if named or "alpha" in first.stated else None

    @property
    def bound(self) -> float | None:
        """The promised bound of the mean loss that the files state, if they do."""
        return _one(next(self.opened()).stated.get("bound"))

    @property
    def loss_range(self) -> tuple[float, float] | None:
        """The range of a loss that the files state, if they do."""
        return _pair(next(self.opened()).stated.get("loss_range"))

    def pieces(self) -> list[FilePiece]:
        """Ranges of rows of every file; row counts come from the files' own footers where they have one."""
        return self._pieces(list(self.opened()))

    def _pieces(self, opened: Sequence[OpenedFile]) -> list[FilePiece]:
        is_large = sum(file.n_rows for file in opened) >= MANY_ROWS
        pieces: list[FilePiece] = []
        for file in opened:
            step = self.piece_rows or rows_per_piece(len(file.roles.names()))
            step = file.n_rows if file.is_stream else step
            classes = self.classes if self.classes is not None else file.stated.get("classes")
            pieces += [
                FilePiece(
                    file.path, start, min(step, file.n_rows - start), file.roles, classes, file.alphas,
                    dict(self.storage), self.conformal, file.origin, self.separator, is_large,
                )
                for start in range(0, file.n_rows, step)
            ]  # fmt: skip
        return pieces

    def fits_memory(self) -> bool:
        """Whether all rows and the work on them fit into memory."""
        return fits_memory(sum(_working_bytes(file) for file in self.opened()))

    def load(self, max_rows: int | None = None, random_state: RandomState = None) -> ArraySource:
        """All rows in memory, or a random sample of them, as arrays.

        The pieces of what is loaded are those of the files, so both give the same numbers.

        Parameters
        ----------
        max_rows : int, optional
            Keep a random sample of so many rows, drawn while the files stream by.
        random_state : int, Generator or None
            Source of that draw.

        Returns
        -------
        ArraySource
            Its ``arguments()`` are those of `calipers.audit`, its ``rows()`` one block.

        Raises
        ------
        InputError
            When the rows do not fit into memory, or a file cannot be read.
        """
        opened = list(self.opened())
        pieces, n = self._pieces(opened), sum(file.n_rows for file in opened)
        if max_rows is None:
            require_memory(sum(map(_working_bytes, opened)), ", ".join(file.path for file in opened[:3]))
        size = n if max_rows is None else min(n, check_count(max_rows, name="max_rows"))
        kept = None if size == n else np.sort(generator(random_state).choice(n, size=size, replace=False))
        found: list[Arguments] = []
        parts: list[FilePiece] = []
        for piece in pieces:
            own = _loaded(piece, kept)
            rows = sum(len(next(iter(part.given.values()))) for part in own)
            found, parts = found + own, parts + ([replace(piece, rows=rows)] if rows else [])
            kept = None if kept is None else kept - piece.rows
        joined = join_arguments(found)
        return ArraySource(
            joined.given,
            classes=pieces[0].classes if pieces[0].classes is not None else joined.classes,
            alpha=pieces[0].alpha,
            conformal=self.conformal,
            n_calibration=self.n_calibration or opened[0].stated.get("n_calibration"),
            bound=_one(opened[0].stated.get("bound")),
            loss_range=_pair(opened[0].stated.get("loss_range")),
            parts=parts,
            roles=opened[0].roles.described(),
        )


def _one(stated: Any) -> float | None:
    """One number that a file states."""
    return None if stated is None else float(np.asarray(stated).reshape(-1)[0])


def _pair(stated: Any) -> tuple[float, float] | None:
    """Two numbers that a file states; of any other count they are refused where they are used."""
    return None if stated is None else tuple(map(float, np.asarray(stated).reshape(-1)))  # type: ignore[return-value]


def _working_bytes(file: OpenedFile) -> int:
    return working_bytes(file.n_rows, len(file.roles.names()))


def _loaded(piece: FilePiece, kept: np.ndarray | None) -> list[Arguments]:
    """The arguments of a piece, or of its rows with these numbers."""
    found, first = [], 0
    for frame in piece.frames():
        end = first + frame.height
        own = frame if kept is None else frame[kept[(kept >= first) & (kept < end)] - first]
        if own.height:
            found.append(columns_to_arrays(own, piece.roles, place=piece.path))
        first = end
    return found
