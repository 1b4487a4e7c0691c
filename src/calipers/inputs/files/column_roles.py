"""Which column of a table is what: by the names of `calipers.fields`, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Any

from calipers.exceptions import InputError, InputTypeError
from calipers.fields import ARGUMENTS, FIELDS, STATED, STATEMENTS, Field, field_named, fields_of

# A level may follow the name: lower@0.05, set_cat@0.05, and lower_0.05 for the ends of an interval.
_LEVEL = re.compile(r"^(?P<stem>.+?)(?P<joint>@|_(?=0?\.\d))(?P<level>0?\.\d+)$")
# 0.1 and 1 - 0.9 are the same level.
_SAME_LEVEL = 1e-12
# Every other character between two cells of a line that people use.
_SEPARATORS = {";": "';'", "\t": "tab", "|": "'|'"}

# Arguments with a last axis for several levels.
LEVELLED = tuple(dict.fromkeys(single.argument for single in FIELDS if single.levels))

# What a column stands for: a class, an end or a feature ("" for a single column), and the level it states.
Key = tuple[str, float | None]


class ColumnChoice:
    """Names or patterns (``p_*``) of the columns of each field; by default those of `calipers.fields`.

    Parameters
    ----------
    **chosen : str or sequence of str
        Field to column, by any name that `calipers.fields` has for it: ``y``, ``probabilities``, ``sets``,
        ``p_values``, ``lower``, ``upper``, ``features``, ``group``, ``ease``, ``time``, ``weight``, ``row``.
        What the star of a pattern stands for is the class. Several patterns are a sequence, or one text with
        commas; an empty sequence says that no column has that field, such as ``y=()`` for rows whose
        outcomes are not known.

    Examples
    --------
    >>> from calipers.inputs.files import ColumnChoice
    >>> ColumnChoice(y="label", features="age, x_*")
    ColumnChoice(y_true='label', X='age,x_*')
    """

    __slots__ = ("chosen",)

    def __init__(self, **chosen: str | Sequence[str]) -> None:
        self.chosen: dict[str, tuple[str, ...]] = {}
        for name, patterns in chosen.items():
            found = field_named(name)
            if found is None:
                known = ", ".join(field.option for field in FIELDS)
                raise InputTypeError(f"no column can be chosen for {name!r}; there are {known}.")
            words = patterns.split(",") if isinstance(patterns, str) else patterns
            self.chosen[found.name] = tuple(word.strip() for word in words)

    def __repr__(self) -> str:
        words = (f"{name}={','.join(patterns)!r}" for name, patterns in self.chosen.items())
        return f"ColumnChoice({', '.join(words)})"

    def patterns(self, field: Field) -> tuple[str, ...]:
        """Names or patterns of the columns of a field."""
        return self.chosen.get(field.name, (field.column,) if field.column else ())

    def named(self, field: Field) -> set[str]:
        """Columns that the user has named for a field, without a star."""
        return {word for word in self.chosen.get(field.name, ()) if "*" not in word}

    def named_for_others(self, field: Field) -> set[str]:
        """Columns that the user has named for other fields."""
        others = (words for name, words in self.chosen.items() if name != field.name)
        return {word for words in others for word in words if "*" not in word}

    def chosen_for_others(self, field: Field, columns: Sequence[str]) -> set[str]:
        """Columns that a pattern of the user gives to another field, when this one has its default."""
        if field.name in self.chosen or "*" not in field.column:
            return set()
        others = [f for f in FIELDS if f.name in self.chosen and f != field and f.layout != "rest"]
        patterns = [word for f in others for word in self.chosen.get(f.name, ()) if "*" in word]
        return {column for column in columns if any(_star(column, pattern) for pattern in patterns)}


@dataclass(frozen=True, slots=True)
class Roles:
    """The columns of one file by the argument of `calipers.audit` that they fill.

    Parameters
    ----------
    columns : dict
        Argument to its columns: (class, end or feature; level or None) to the name of the column.
    ignored : tuple of str
        Columns that are read for nothing, because they name their rows.
    feature_names : tuple of str
        Names of the columns of X, where X is one array.
    quantile_levels : tuple of float
        Levels of the quantiles, where they are one array.
    layers : tuple of int
        Which levels are read, in their order, where sets or intervals are one array; all when empty.

    Examples
    --------
    >>> from calipers.inputs.files.column_roles import Roles
    >>> Roles({"y_true": {("", None): "label"}}).described()
    {'label': 'outcome'}
    """

    columns: dict[str, dict[Key, str]] = field(default_factory=dict)
    ignored: tuple[str, ...] = ()
    feature_names: tuple[str, ...] = ()
    quantile_levels: tuple[float, ...] = ()
    layers: tuple[int, ...] = ()

    def described(self) -> dict[str, str]:
        """Column to its role in words, for the plan."""
        words = {}
        for argument, columns in self.columns.items():
            single = fields_of(argument)[0]
            for (label, _), column in columns.items():
                # A single column whose name tells no class is that of the positive one.
                alone = argument == "probabilities" and len(columns) == 1 and label == column
                words[column] = "probability of the positive class" if alone else _in_words(single, label)
        return words | dict.fromkeys(self.ignored, "ignored (names its rows)")

    def names(self) -> list[str]:
        """The columns that are read."""
        return list(dict.fromkeys(name for columns in self.columns.values() for name in columns.values()))

    def array(self, argument: str) -> str | None:
        """The column that holds a whole argument; None when there is none."""
        return self.columns.get(argument, {}).get(("", None))

    def labels(self, argument: str) -> list[str]:
        """The classes whose columns an argument has, in their order; none for an array of its own."""
        return list(dict.fromkeys(label for label, _ in self.columns.get(argument, {}) if label))

    def levels(self) -> list[float | None]:
        """Levels of sets and intervals in the order of their columns; [None] where none is stated."""
        own = (key for argument in LEVELLED for key in self.columns.get(argument, {}))
        return list(dict.fromkeys(level for _, level in own))

    def without(self, *arguments: str) -> Roles:
        """The same without some arguments."""
        return replace(self, columns={a: c for a, c in self.columns.items() if a not in arguments})

    def ignoring(self, names: Collection[str]) -> Roles:
        """The same without some features, which the plan still lists."""
        features = self.columns.get("X", {})
        kept = {key: column for key, column in features.items() if column not in names}
        columns = {a: kept if a == "X" else c for a, c in self.columns.items() if a != "X" or kept}
        ignored = tuple(column for column in features.values() if column in names)
        return replace(self, columns=columns, ignored=(*self.ignored, *ignored))


def _in_words(single: Field, label: str) -> str:
    if single.layout == "end":
        return label or single.argument
    if single.layout in {"per level", "attributes"} and label:
        return f"{single.option} {label}"
    return f"{single.said} of class {label}" if single.layout == "per class" and label else single.said


def assign_roles(
    columns: Sequence[str], choice: ColumnChoice, *, place: str, arrays: Collection[str] = ()
) -> Roles:
    """The role of every column.

    A column that was named for a field is not taken for another by a pattern. ``arrays`` are columns that
    hold a whole argument of `calipers.audit`, as in npz files.

    Examples
    --------
    >>> from calipers.inputs.files.column_roles import ColumnChoice, assign_roles
    >>> assign_roles(["y_true", "p_a", "age"], ColumnChoice(), place="rows.csv").described()
    {'y_true': 'outcome', 'p_a': 'probabilities of class a', 'age': 'feature'}
    """
    found: dict[str, dict[Key, str]] = {name: {("", None): name} for name in arrays}
    taken: set[str] = set(arrays)
    choice = _with_other_names(columns, choice, arrays)
    for single in sorted(FIELDS, key=lambda f: f.layout == "rest"):
        own = choice.named(single)
        others = choice.named_for_others(single) | choice.chosen_for_others(single, columns)
        free = [column for column in columns if column in own or column not in taken | others]
        matched = _match(free, single, choice)
        if not (matched or single.argument in found) and choice.chosen.get(single.name):
            raise _no_column(single, choice.patterns(single), columns, place)
        if single.beside and single.beside not in found and single.name not in choice.chosen:
            continue
        if matched and single.argument in arrays and single.layout != "rest":
            column = next(iter(matched.values()))
            raise InputError(f"{place} holds {single.argument} twice, also as {column!r}. Leave one out.")
        if matched:
            found[single.argument] = found.get(single.argument, {}) | matched
            taken |= set(matched.values())
    if "loss" in found and ("bound", None) in found.get("X", {}) and "X" not in choice.chosen:
        raise InputError(
            f"{place} has a column 'bound' beside loss, and the bound of the mean loss is one number: state "
            "it with --bound, and name the features with --features if the column stays in the file."
        )
    has_outcomes = choice.chosen.get(FIELDS[0].name) != ()
    if has_outcomes and not found.keys() & {"y_true", "covered", "pit", "loss"}:
        raise _no_column(FIELDS[0], choice.patterns(FIELDS[0]), columns, place)
    unknown = [label for label, _ in found.get("X", {}) if label]
    odd = next((name for name in unknown if name.startswith(("lower@", "upper@"))), None)
    if odd is not None and "X" not in choice.chosen:
        raise InputError(
            f"column {odd!r} of {place} states no level: after '@' stands the allowed miscoverage, lower@0.1."
        )
    if arrays and unknown and "X" not in choice.chosen:
        raise InputError(
            f"{place} holds an array {unknown[0]!r} that an audit does not take; "
            f"it takes {', '.join((*ARGUMENTS, *STATED))}, or columns such as p_<class>."
        )
    roles = Roles({f.argument: found[f.argument] for f in FIELDS if f.argument in found})
    _require_complete(roles, place)
    return roles


def _with_other_names(columns: Sequence[str], choice: ColumnChoice, arrays: Collection[str]) -> ColumnChoice:
    """The choice, with a column of another common name where the file states nothing otherwise."""
    stating = [single for single in FIELDS if single.argument in STATEMENTS]
    if any(single.argument in arrays or _match(columns, single, choice) for single in stating):
        return choice
    names = ((single, name) for single in stating for name in single.also if name in columns)
    single, name = next(names, (None, ""))
    if single is None or name in set().union(*(choice.named(other) for other in FIELDS)):
        return choice
    return ColumnChoice(**choice.chosen | {single.name: name})


def _match(columns: Iterable[str], single: Field, choice: ColumnChoice) -> dict[Key, str]:
    """The columns of one field; for features that were not chosen, all that are left."""
    if single.layout == "rest" and single.name not in choice.chosen:
        return {(column, None): column for column in columns}
    found: dict[Key, str] = {}
    patterns = choice.patterns(single)
    if single.layout == "attributes" and single.name not in choice.chosen:
        patterns = (single.column, f"{single.column}_*")
    several = single.layout == "attributes" and len(choice.chosen.get(single.name, ())) > 1
    for pattern in patterns:
        for column in columns:
            key = (column, None) if several and column == pattern else _key(column, pattern, single)
            if key is None or column in found.values():
                continue
            if key in found:
                raise InputError(
                    f"columns {found[key]!r} and {column!r} are both {_in_words(single, key[0])}."
                )
            found[key] = column
    return found


def _key(column: str, pattern: str, single: Field) -> Key | None:
    """What the column stands for under the pattern; None without a match."""
    if single.layout == "column" or (single.layout == "attributes" and "*" not in pattern):
        return ("", None) if column == pattern else None
    if single.layout == "rest":
        return (column, None) if fnmatchcase(column, pattern) else None
    if single.layout == "end":
        stem, level = (column, None) if column == pattern else _split_level(column, "@_")
        return (single.name, level) if stem == pattern else None
    label = _star(column, pattern)
    if label is None or (single.layout == "per level" and not _is_level(label)):
        return None
    return _split_level(label, "@") if single.levels else (label, None)


def _star(column: str, pattern: str) -> str | None:
    """What the star stands for; the whole name when the pattern has none; None without a match."""
    if "*" not in pattern:
        return column if column == pattern else None
    if not fnmatchcase(column, pattern):
        return None
    head, tail = pattern.split("*", 1)
    tail = tail.replace("*", "")
    return column[len(head) : len(column) - len(tail) if tail else None] or None


def _is_level(text: str) -> bool:
    """Whether the text is a number strictly between 0 and 1: q_0.9 is a quantile, q_total is not."""
    try:
        return 0 < float(text) < 1
    except ValueError:
        return False


def _split_level(name: str, joints: str) -> Key:
    match = _LEVEL.match(name)
    if match is None or match["joint"] not in joints:
        return name, None
    return match["stem"], float(match["level"])


def _require_complete(roles: Roles, place: str) -> None:
    """Every class, or both ends, must have a column at every level."""
    if None in (levels := roles.levels()) and len(levels) > 1:
        raise InputError(
            f"some columns of {place} state a level (lower@0.05) and some do not. Name all levels."
        )
    for argument in LEVELLED:
        own = roles.columns.get(argument, {})
        ends = ["lower", "upper"] if argument == "intervals" and ("", None) not in own else []
        for label in (ends if own else []) or roles.labels(argument):
            for level in levels:
                if (label, level) not in own:
                    at = "" if level is None else f" at alpha = {level:g}"
                    raise InputError(
                        f"{place} has no column of {argument} for {label}{at}. "
                        "Name it as the others are named, or choose the columns with options such as --upper."
                    )


def _no_column(single: Field, patterns: Sequence[str], columns: Sequence[str], place: str) -> InputError:
    if single.layout == "per level":
        return InputError(
            f"{place} has no column like {', '.join(patterns)} whose star is a level between 0 and 1, such "
            f"as q_0.9; it has {_some(columns)}."
        )
    wanted = ", ".join(patterns) if "*" in "".join(patterns) else repr(", ".join(patterns))
    said = f"{place} has no column {'like ' if '*' in wanted else ''}{wanted}; it has {_some(columns)}."
    if len(columns) == 1:
        mark = next((mark for mark in _SEPARATORS if mark in columns[0]), None)
        if mark is not None:
            return InputError(f"{said} Its cells seem to be separated by {_SEPARATORS[mark]}: use --sep.")
    return InputError(
        f"{said} Name the column of true outcomes with --y." if single.name == "y_true" else said
    )


def _some(columns: Iterable[str], shown: int = 8) -> str:
    names = list(columns)
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")


# What a derived column of `calipers.inputs.rows.Rows` is made of: the first of these that the file has.
_MADE_OF: dict[str, tuple[str, ...]] = {
    "covered": ("covered", "sets", "intervals", "p_values"),
    "size": ("size", "sets", "intervals", "p_values"),
    "empty": ("sets", "intervals", "p_values"),
    "sets_at_level": ("sets", "p_values"),
    "prediction": ("sets", "intervals", "p_values"),
    "ranks": ("probabilities",),
    "hardness": ("intervals", "probabilities"),
    "error": ("intervals", "probabilities"),
    "width": ("intervals", "sets", "p_values"),
    "difficulty": ("ease", "probabilities"),
    "ease_or_size": ("ease", "probabilities", "size", "intervals", "quantiles"),
    "top_probability": ("probabilities",),
    "top_is_right": ("probabilities",),
    "is_positive": ("probabilities",),
    "positive_probability": ("probabilities",),
    "stated_covered": ("probabilities",),
    "stated_size": ("probabilities",),
    "stated_mass": ("probabilities",),
    "below_quantile": ("quantiles", "pit"),
    "group_cell": ("groups",),
    "codes": ("probabilities", "p_values", "sets"),
}


def narrowed(roles: Roles, needs: frozenset[str], *, conformal: bool) -> Roles:
    """The roles from which the needed columns of a block can be made; outcome and row id always stay.

    Examples
    --------
    >>> from calipers.inputs.files.column_roles import ColumnChoice, assign_roles, narrowed
    >>> roles = assign_roles(["y_true", "set_a", "p_a", "age"], ColumnChoice(), place="rows")
    >>> narrowed(roles, frozenset({"covered"}), conformal=False).described()
    {'y_true': 'outcome', 'set_a': 'sets of class a'}
    """
    there = set(roles.columns) | ({"p_values"} if conformal else set())
    wanted = {"y_true", "row_id"}
    # Labels need some matrix; they take the one that is read anyway.
    for need in sorted(needs, key=lambda name: name == "codes"):
        found = [argument for argument in _MADE_OF.get(need, (need,)) if argument in there]
        if found and not (need == "codes" and wanted & set(found)):
            wanted.add(found[0])
    if conformal and "p_values" in wanted:
        wanted.add("probabilities")
    return roles.without(*(argument for argument in roles.columns if argument not in wanted))


def select_levels(
    roles: Roles, alpha: Sequence[Any] | None, *, place: str, stated: Sequence[float] | None = None
) -> tuple[Roles, tuple[Any, ...] | None]:
    """The columns of the levels that are asked for, in that order, and the levels.

    Without ``alpha`` all levels are taken that the columns, or the file (``stated``), state; None when there
    are none. Columns that state no level are read at whatever is asked for.

    Examples
    --------
    >>> from calipers.inputs.files.column_roles import ColumnChoice, assign_roles, select_levels
    >>> names = ["y_true", "lower@0.05", "upper@0.05", "lower@0.2", "upper@0.2"]
    >>> roles = assign_roles(names, ColumnChoice(), place="rows.csv")
    >>> chosen, levels = select_levels(roles, [0.2], place="rows.csv")
    >>> chosen.names(), levels
    (['y_true', 'lower@0.2', 'upper@0.2'], (0.2,))
    """
    in_names = sorted(level for level in roles.levels() if level is not None)
    in_arrays = list(stated or ()) if any(roles.array(argument) for argument in LEVELLED) else []
    known, asked = in_names or in_arrays, alpha if alpha is not None else stated
    if not known:
        return roles, None if asked is None else tuple(asked)
    wanted = tuple(known if alpha is None else alpha)
    at = level_positions(wanted, known, place=place)
    if not in_names:
        return replace(roles, layers=tuple(at)), wanted
    columns = {
        argument: own
        if None in {level for _, level in own}
        else {key: own[key] for k in at for key in own if key[1] == known[k]}
        for argument, own in roles.columns.items()
    }
    return replace(roles, columns=columns), wanted


def level_positions(wanted: Sequence[Any], known: Sequence[Any], *, place: str) -> list[int]:
    """Which of the stated levels each wanted one is.

    Examples
    --------
    >>> from calipers.inputs.files.column_roles import level_positions
    >>> level_positions([0.2, 1 - 0.95], [0.05, 0.2], place="rows.csv")
    [1, 0]
    """
    positions = []
    for level in wanted:
        same = [k for k, other in enumerate(known) if abs(float(level) - float(other)) < _SAME_LEVEL]
        if not same:
            have = ", ".join(f"{float(other):g}" for other in known)
            raise InputError(
                f"{place} states predictions at alpha = {have}; {float(level):g} is none of them."
            )
        positions.append(same[0])
    return positions
