"""Files of one lake must tell the same story: the same columns in the same roles, of the same kind.

The order of the columns may differ; every file is read in the order of the first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from calipers.exceptions import InputError
from calipers.inputs.files.roles import Roles

_REMEDY = {
    "feature": "Name the features that all files have with --features.",
    "outcome": "Files of one lake must hold the same columns.",
}


@dataclass(frozen=True, slots=True)
class FirstFile:
    """What the first file with rows has, and every other must have too.

    Parameters
    ----------
    path : str
        Its name, for the refusals.
    roles : Roles
        The role of its columns.
    kinds : mapping
        Column to "numbers", "text" and so on.

    Examples
    --------
    >>> from calipers.engines.agreement import FirstFile
    >>> from calipers.inputs.files.roles import Roles
    >>> first = FirstFile("a.csv", Roles(y="y_true", features=("age", "city")), {})
    >>> first.agreed("b.csv", Roles(y="y_true", features=("city", "age")), {}).features
    ('age', 'city')
    """

    path: str
    roles: Roles
    kinds: Mapping[str, str]

    def agreed(self, path: str, roles: Roles, kinds: Mapping[str, str]) -> Roles:
        """The roles of another file in the order of the first; refused where the two do not agree."""
        mine, theirs = self.roles.described(), roles.described()
        _require_columns(mine, theirs, self.path, path)
        _require_columns(theirs, mine, path, self.path)
        for column in (*self.roles.features, self.roles.group, self.roles.ease):
            self._require_kind(column, path, kinds)
        per_class = {
            role: {key: roles.per_class[role][key] for key in columns}
            for role, columns in self.roles.per_class.items()
        }
        return replace(roles, per_class=per_class, features=self.roles.features)

    def _require_kind(self, column: str | None, path: str, kinds: Mapping[str, str]) -> None:
        if column is None:
            return
        here, there = self.kinds.get(column, ""), kinds.get(column, "")
        if here and there and here != there:
            raise InputError(
                f"column {column!r} holds {here} in {self.path} and {there} in {path}. "
                "Write it the same way in every file, or choose other columns with --features and --group."
            )


def _require_columns(wanted: Mapping[str, str], found: Mapping[str, str], owner: str, path: str) -> None:
    for column, role in wanted.items():
        if found.get(column) != role:
            remedy = _REMEDY.get(role, _REMEDY["outcome"])
            raise InputError(f"{path} has no column {column!r} ({role}), which {owner} has. {remedy}")
