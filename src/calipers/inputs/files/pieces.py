"""Files in pieces: ranges of rows that are read, on whatever machine, as blocks in canonical form."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from calipers.exceptions import InputError
from calipers.inputs.block_sizes import HEAD_ROWS, block_rows, rows_per_piece
from calipers.inputs.files.column_roles import (
    LEVELLED,
    ColumnChoice,
    Roles,
    assign_roles,
    narrowed,
    select_levels,
)
from calipers.inputs.files.columns_to_arrays import columns_to_arrays, identifiers
from calipers.inputs.files.consistent_files import FirstFile
from calipers.inputs.files.file_patterns import distinct, expand, short_names
from calipers.inputs.files.opened_file import TYPE_ROWS
from calipers.inputs.files.readers import Reader, open_file
from calipers.inputs.levels import check_alphas
from calipers.inputs.row_keys import Place
from calipers.inputs.rows import PValueRule, Rows

DEFAULT_ALPHA = 0.1


@dataclass(frozen=True, slots=True, eq=False)
class FilePiece:
    """A range of rows of one file."""

    path: str
    start: int
    rows: int
    roles: Roles
    classes: Any = None
    alpha: Any = DEFAULT_ALPHA
    storage: Mapping[str, Any] = field(default_factory=dict, repr=False)
    conformal: PValueRule | None = None
    origin: str = ""
    separator: str = ""
    fused: bool = False
    trusted: bool = False

    def only(self, columns: frozenset[str]) -> FilePiece:
        """The same rows with the columns of the file that these columns of a block are made of."""
        return replace(self, roles=narrowed(self.roles, columns, conformal=self.conformal is not None))

    def head(self) -> Rows:
        """Its first rows, to see what there is."""
        return next(replace(self, rows=min(self.rows, HEAD_ROWS)).blocks())

    def checked(self) -> FilePiece:
        """The same rows, which an earlier pass has checked."""
        return replace(self, trusted=True)

    def blocks(self) -> Iterator[Rows]:
        """Read the range part by part, only the columns with a role, and yield it block by block."""
        start = self.start
        for frame in self.frames():
            found = columns_to_arrays(frame, self.roles, place=self.path, whole=False)
            block = block_rows(found.given)
            for begin in range(0, frame.height, block):
                part = slice(begin, begin + block)
                yield Rows(
                    {name: value[part] for name, value in found.given.items()},
                    classes=self.classes if self.classes is not None else found.classes,
                    alpha=self.alpha,
                    place=Place(self.origin, start + begin),
                    conformal=self.conformal,
                    trusted=self.trusted,
                    fused=self.fused,
                )
            start += frame.height

    def frames(self) -> Iterator[Any]:
        """The columns with a role, as polars frames."""
        names = self.roles.names()
        reader = open_file(self.path, self.storage, self.separator)
        return reader.batches(self.start, self.rows, names, rows_per_piece(len(names)))


def list_files(paths: str | Sequence[str], storage: Mapping[str, Any]) -> list[str]:
    """The files that paths, patterns and folders stand for, each once; an error when there are none."""
    wanted = [paths] if isinstance(paths, str) else [str(path) for path in paths]
    return distinct(file for pattern in wanted for file in expand(pattern, storage))


@dataclass(frozen=True, slots=True)
class OpenedFile:
    """A file of a dataset: its rows, the columns that are read, and the levels they are read at."""

    path: str
    origin: str
    n_rows: int
    roles: Roles
    alphas: tuple[Any, ...]
    stated: Mapping[str, Any]
    is_stream: bool


def open_files(
    files: Sequence[str],
    choice: ColumnChoice,
    *,
    alpha: Any = None,
    features: bool = False,
    storage: Mapping[str, Any] | None = None,
    separator: str = "",
) -> Iterator[OpenedFile]:
    """The files that have rows, each with the columns of the levels asked for, ordered as in the first.

    Without ``alpha`` the levels are those that the files state, else 0.1.
    """
    first: FirstFile | None = None
    for path, origin in zip(files, short_names(files), strict=True):
        reader = open_file(path, storage, separator)
        roles = roles_of(reader, choice, path)
        roles = roles if features else roles.without("X")
        if not reader.n_rows:
            continue
        if first is None:
            roles = roles.ignoring(_identifiers(reader, roles))
            first = FirstFile(path, roles, reader)
        roles = first.agreed(path, roles.ignoring(first.roles.ignored), reader)
        roles, alphas = _at_levels(reader, roles, alpha, path)
        yield OpenedFile(path, origin, reader.n_rows, roles, alphas, reader.stated, reader.is_stream)
    if first is None:
        raise InputError(f"there are no rows in {', '.join(files[:3])}.")


def roles_of(reader: Reader, choice: ColumnChoice, path: str) -> Roles:
    """The role of every column of a file."""
    roles = assign_roles(reader.columns, choice, place=path, arrays=reader.arrays)
    return replace(
        roles,
        feature_names=tuple(map(str, reader.stated.get("feature_names", ()))),
        quantile_levels=tuple(map(float, reader.stated.get("quantile_levels", ()))),
    )


def _identifiers(reader: Reader, roles: Roles) -> list[str]:
    """Features that name their rows, as far as the first rows show."""
    text = [name for name in roles.columns.get("X", {}).values() if reader.kind(name) == "text"]
    return identifiers(reader.read(0, TYPE_ROWS, text)) if text else []


def _at_levels(reader: Reader, roles: Roles, alpha: Any, path: str) -> tuple[Roles, tuple[Any, ...]]:
    """The columns of the levels asked for; sets and intervals must have one layer for each."""
    wanted = None if alpha is None else check_alphas(alpha)[0]
    roles, levels = select_levels(roles, wanted, place=path, stated=reader.stated.get("alpha"))
    alphas = levels or (DEFAULT_ALPHA,)
    for argument in LEVELLED:
        if (column := roles.array(argument)) is not None:
            shape = reader.read(0, 1, [column])[column].to_numpy().shape
            layers = len(roles.layers or range(shape[2])) if len(shape) == 3 else 1
        else:
            layers = len({level for _, level in roles.columns.get(argument, {})}) or len(alphas)
        if layers != len(alphas):
            raise InputError(
                f"{argument} holds {layers} level(s) in {path} and alpha {len(alphas)}. "
                "Give one alpha per level; columns state theirs as in lower@0.05, upper@0.05, set_cat@0.05."
            )
    return roles, alphas
