"""Which column is what: by its name, or as the user says."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from fnmatch import translate

from calipers.exceptions import InputError

# A level may follow the name: lower@0.05, set_cat@0.05, and lower_0.05 for the ends of an interval.
_LEVEL = re.compile(r"^(?P<stem>.+?)(?:@|_(?=0?\.\d))(?P<level>0?\.\d+)$")

_SINGLE = ("group", "ease", "weight", "row", "time")


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnChoice:
    """Names or patterns (``p_*``) of the columns that play each role.

    Parameters
    ----------
    y : str
        What happened.
    probabilities, p_values, sets : tuple of str
        Patterns; what the star stands for is the class.
    lower, upper : str
        Ends of the intervals.
    features : tuple of str
        Patterns; empty means every column without another role.
    group, ease, weight, row : str
        One column each; ``row`` names the rows and is no feature.
    time : str
        Column of times; none unless it is named.

    Examples
    --------
    >>> from calipers.inputs.files import ColumnChoice
    >>> ColumnChoice(y="label").lower
    'lower'
    """

    y: str = "y_true"
    probabilities: tuple[str, ...] = ("p_*",)
    p_values: tuple[str, ...] = ("pvalue_*",)
    sets: tuple[str, ...] = ("set_*",)
    lower: str = "lower"
    upper: str = "upper"
    features: tuple[str, ...] = ()
    group: str = "group"
    ease: str = "ease"
    weight: str = "sample_weight"
    row: str = "row_id"
    time: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """The columns of one file by role.

    ``per_class`` maps "probabilities", "p_values" and "sets" to (class, level or None) -> column;
    ``ends`` maps (side, level or None) -> column.
    """

    y: str
    per_class: dict[str, dict[tuple[str, str | None], str]] = field(default_factory=dict)
    ends: dict[tuple[str, str | None], str] = field(default_factory=dict)
    group: str | None = None
    ease: str | None = None
    weight: str | None = None
    row: str | None = None
    time: str | None = None
    features: tuple[str, ...] = ()

    def described(self) -> dict[str, str]:
        """Column -> role in words, for the plan."""
        words = {self.y: "outcome"}
        for role, columns in self.per_class.items():
            words |= {column: f"{role} of class {label}" for (label, _), column in columns.items()}
        words |= {column: side for (side, _), column in self.ends.items()}
        for role in _SINGLE:
            if (column := getattr(self, role)) is not None:
                words[column] = role
        return words | dict.fromkeys(self.features, "feature")


def assign_roles(columns: Sequence[str], choice: ColumnChoice, *, place: str) -> Roles:
    """The role of every column.

    Examples
    --------
    >>> roles = assign_roles(["y_true", "p_a", "p_b", "age"], ColumnChoice(), place="rows.csv")
    >>> roles.per_class["probabilities"], roles.features
    ({('a', None): 'p_a', ('b', None): 'p_b'}, ('age',))
    """
    if choice.y not in columns:
        raise InputError(
            f"{place} has no column {choice.y!r}; it has {_some(columns)}. "
            "Name the column of true outcomes with --y."
        )
    taken = {choice.y}
    per_class: dict[str, dict[tuple[str, str | None], str]] = {}
    defaults = ColumnChoice()
    # p-values first: 'pvalue_*' and 'p_*' cannot both match, but a user's patterns may overlap.
    for role in ("p_values", "sets", "probabilities"):
        patterns = getattr(choice, role)
        found = _match_classes(columns, patterns, taken)
        if not found and patterns != getattr(defaults, role):
            raise InputError(f"{place} has no column like {', '.join(patterns)}; it has {_some(columns)}.")
        if found:
            per_class[role] = found
            taken |= set(found.values())
    ends = _match_ends(columns, choice, taken, place)
    taken |= set(ends.values())
    single = {
        role: _single(columns, getattr(choice, role), getattr(defaults, role), place) for role in _SINGLE
    }
    taken |= {column for column in single.values() if column is not None}
    features = _match_features(columns, choice.features, taken, place)
    return Roles(y=choice.y, per_class=per_class, ends=ends, features=features, **single)


def _match_classes(
    columns: Iterable[str], patterns: Iterable[str], taken: set[str]
) -> dict[tuple[str, str | None], str]:
    found: dict[tuple[str, str | None], str] = {}
    for pattern in patterns:
        for column in columns:
            label = _star(column, pattern)
            if label is not None and column not in taken and column not in found.values():
                found[_split_level(label, joined="@")] = column
    return found


def _star(column: str, pattern: str) -> str | None:
    """What the star stands for; the whole name when the pattern has none; None without a match."""
    if "*" not in pattern:
        return column if column == pattern else None
    if not re.match(translate(pattern), column):
        return None
    head, tail = pattern.split("*", 1)
    tail = tail.replace("*", "")
    return column[len(head) : len(column) - len(tail) if tail else None] or None


def _split_level(name: str, *, joined: str) -> tuple[str, str | None]:
    match = _LEVEL.match(name)
    if match is None or (joined == "@" and "@" not in name):
        return name, None
    return match["stem"], match["level"]


def _match_ends(
    columns: Iterable[str], choice: ColumnChoice, taken: set[str], place: str
) -> dict[tuple[str, str | None], str]:
    ends: dict[tuple[str, str | None], str] = {}
    for side in ("lower", "upper"):
        wanted = getattr(choice, side)
        for column in columns:
            stem, level = (column, None) if column == wanted else _split_level(column, joined="_")
            if stem == wanted and column not in taken:
                ends[side, level] = column
        if wanted != side and not any(end == side for end, _ in ends):
            raise InputError(f"{place} has no column {wanted!r}; it has {_some(columns)}.")
    lower, upper = ({level for end, level in ends if end == side} for side in ("lower", "upper"))
    if lower != upper:
        missing = "upper" if lower - upper else "lower"
        raise InputError(
            f"{place} has one end of its intervals without the other: there is no column for {missing}. "
            "Name both with --lower and --upper."
        )
    return ends


def _single(columns: Sequence[str], wanted: str, default: str, place: str) -> str | None:
    if wanted in columns:
        return wanted
    if wanted != default:
        raise InputError(f"{place} has no column {wanted!r}; it has {_some(columns)}.")
    return None


def _match_features(
    columns: Sequence[str], patterns: Sequence[str], taken: set[str], place: str
) -> tuple[str, ...]:
    if not patterns:
        return tuple(column for column in columns if column not in taken)
    found = tuple(
        column
        for column in columns
        if column not in taken and any(re.match(translate(pattern), column) for pattern in patterns)
    )
    if not found:
        raise InputError(f"{place} has no column like {', '.join(patterns)}; it has {_some(columns)}.")
    return found


def _some(columns: Iterable[str], shown: int = 8) -> str:
    names = list(columns)
    return ", ".join(names[:shown]) + (f" and {len(names) - shown} more" if len(names) > shown else "")
