"""The files of one dataset must have the same columns in the same roles, of the same kind.

The order of the columns may differ; every file is read in the order of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from calipers.exceptions import InputError
from calipers.inputs.files.column_roles import Roles
from calipers.inputs.files.readers import Reader

_REMEDY = {"feature": "Name the features that all files have with --features."}
_OTHERWISE = "The files of one dataset must hold the same columns."


@dataclass(frozen=True, slots=True)
class FirstFile:
    """The first file with rows: its name, its roles and its reader, with which all others must agree."""

    path: str
    roles: Roles
    reader: Reader

    def agreed(self, path: str, roles: Roles, reader: Reader) -> Roles:
        """The roles of another file in the order of the first; refused where the two do not agree."""
        mine, theirs = self.roles.described(), roles.described()
        _require_columns(mine, theirs, self.path, path)
        _require_columns(theirs, mine, path, self.path)
        for argument in ("X", "groups", "ease"):
            for column in self.roles.columns.get(argument, {}).values():
                self._require_kind(column, path, reader)
        if reader.stated != self.reader.stated:
            raise InputError(f"{path} states {reader.stated} and {self.path} {self.reader.stated}.")
        return replace(roles, columns=self.roles.columns)

    def _require_kind(self, column: str, path: str, reader: Reader) -> None:
        here, there = self.reader.kind(column), reader.kind(column)
        if here and there and here != there:
            raise InputError(
                f"column {column!r} holds {here} in {self.path} and {there} in {path}. "
                "Write it the same way in every file, or choose other columns with --features and --group."
            )


def _require_columns(wanted: Mapping[str, str], found: Mapping[str, str], owner: str, path: str) -> None:
    for column, role in wanted.items():
        if found.get(column) != role:
            remedy = _REMEDY.get(role, _OTHERWISE)
            raise InputError(f"{path} has no column {column!r} ({role}), which {owner} has. {remedy}")
