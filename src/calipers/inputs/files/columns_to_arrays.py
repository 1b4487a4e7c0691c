"""From the columns of a table to the arguments of an audit."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.exceptions import InputError, InputTypeError
from calipers.fields import fields_of
from calipers.inputs.categorical import Categorical
from calipers.inputs.column_matrix import ColumnMatrix, column_matrix
from calipers.inputs.files.column_roles import ColumnChoice, Roles, assign_roles, select_levels
from calipers.inputs.joined_columns import joined

if TYPE_CHECKING:
    import polars as pl

_PLAIN_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"
_DECIMAL_COMMA = re.compile(r"^\s*[+-]?\d+,\d+\s*$")
_NEEDED = {"numbers": "numbers", "flags": "true and false, or 1 and 0"}


@dataclass(frozen=True, slots=True, eq=False)
class Arguments:
    """Arguments of an audit for some rows, and the label of every column of their matrices."""

    given: dict[str, Any]
    classes: list[Any] | None = None


def arguments_of_frame(
    frame: pl.DataFrame, choice: ColumnChoice | None = None, *, place: str = "the table"
) -> dict[str, Any]:
    """Arguments of an audit from a polars frame whose columns are found by name.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.inputs.files import arguments_of_frame
    >>> frame = pl.DataFrame({"y_true": ["b"], "p_a": [0.25], "p_b": [0.75]})
    >>> arguments_of_frame(frame)["classes"]
    ['a', 'b']
    """
    roles = assign_roles(frame.columns, choice or ColumnChoice(), place=place)
    roles = roles.ignoring(identifiers(frame.select(roles.columns.get("X", {}).values())))
    roles, levels = select_levels(roles, None, place=place)
    found = columns_to_arrays(frame, roles, place=place)
    stated = {"classes": found.classes, "alpha": None if levels is None else list(levels)}
    return found.given | {name: value for name, value in stated.items() if value is not None}


def columns_to_arrays(frame: pl.DataFrame, roles: Roles, *, place: str, whole: bool = True) -> Arguments:
    """The arguments that the columns of a table fill.

    Without ``whole`` a matrix may come as its columns (`ColumnMatrix`) and text as codes (`Categorical`), for
    callers that read slices of them.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.inputs.files.column_roles import ColumnChoice, assign_roles
    >>> from calipers.inputs.files.columns_to_arrays import columns_to_arrays
    >>> frame = pl.DataFrame({"y_true": [1.0, 5.0], "lower": [0.0, 1.0], "upper": [2.0, 2.0]})
    >>> roles = assign_roles(frame.columns, ColumnChoice(), place="rows")
    >>> columns_to_arrays(frame, roles, place="rows").given["intervals"].tolist()
    [[0.0, 2.0], [1.0, 2.0]]
    """
    table = _Table(frame, roles, place, whole)
    given = {argument: _READ[fields_of(argument)[0].layout](table, argument) for argument in roles.columns}
    labels = table.class_labels()
    named = len(labels) > 1 and "y_true" in given
    typed = _typed_labels(labels, given["y_true"], place) if named else None
    return Arguments(given, typed)


@dataclass(frozen=True, slots=True)
class _Table:
    """A frame whose columns have roles."""

    frame: pl.DataFrame
    roles: Roles
    place: str
    whole: bool

    def class_labels(self) -> list[str]:
        """The classes in column order, of two the positive one last; every argument names the same ones."""
        named = {a: found for a in ("probabilities", "p_values", "sets") if (found := self.roles.labels(a))}
        if not named:
            return []
        first = next(iter(named))  # probabilities lead: their order is the order people think in
        for argument, labels in named.items():
            if set(labels) != set(named[first]):
                odd = min(set(labels) ^ set(named[first]))
                raise InputError(
                    f"{first} and {argument} of {self.place} must name the same classes; class {odd!r} is in "
                    "one of them only."
                )
        return _positive_last(named[first])

    def column(self, argument: str) -> Any:
        """A single column."""
        name, holds = self.roles.columns[argument]["", None], fields_of(argument)[0].holds
        if argument == "y_true" and self.roles.columns.keys() & {"intervals", "quantiles"}:
            self.numbers([name], "numbers")
        elif holds == "numbers":
            (series,) = self.numbers([name], "numbers")
            return series.to_numpy() if _is_array(series) else column_matrix([series])[:, 0]
        if holds == "flags":
            (series,) = self.numbers([name], _NEEDED[holds])
            self.require_filled(series)
            return series.to_numpy()
        if holds != "anything":
            self.require_filled(self.frame[name])
        return self.labels(self.frame[name])

    def labels(self, series: pl.Series) -> Any:
        """Labels, numbers or times of the rows; text as codes where slices of it are read."""
        import polars as pl

        if (series.dtype.is_nested() and not _is_array(series)) or series.dtype == pl.Object:
            raise InputTypeError(
                f"column {series.name!r} of {self.place} must hold text, numbers or times, "
                f"got {series.dtype}."
            )
        text = series.dtype in (pl.String, pl.Categorical, pl.Enum)
        if text and not self.whole and not series.null_count():
            return _coded(series)
        values = series.to_numpy()
        return values.astype(str) if values.dtype.kind == "O" and not series.null_count() else values

    def matrix(self, argument: str) -> Any:
        """A column per class, or the two ends, as a matrix with a last axis for several levels."""
        columns, field = self.roles.columns[argument], fields_of(argument)[0]
        if ("", None) in columns:
            return self.layers(argument)
        labels = ["lower", "upper"] if field.layout == "end" else self.class_labels()
        levels = dict.fromkeys(level for _, level in columns)
        layers = [
            self.numbers([columns[label, lv] for label in labels], _NEEDED[field.holds]) for lv in levels
        ]
        if not self.whole and len(layers) == 1 and len(labels) > 1:
            return ColumnMatrix(layers[0])
        matrices = [column_matrix(layer) for layer in layers]
        matrix = matrices[0] if len(matrices) == 1 else np.stack(matrices, axis=-1)
        return matrix[:, 0] if argument == "probabilities" and matrix.shape[1] == 1 else matrix

    def table(self, argument: str) -> Any:
        """A column per quantile or attribute as a frame whose columns are named after them."""
        import polars as pl

        columns, field = self.roles.columns[argument], fields_of(argument)[0]
        if ("", None) in columns and len(columns) == 1:
            if field.holds != "numbers":
                return self.labels(self.frame[columns["", None]])
            Q, levels = self.array(argument), self.roles.quantile_levels
            if len(levels) != np.shape(Q)[1]:
                raise InputError(
                    f"quantiles of {self.place} need quantile_levels, one per column ({np.shape(Q)[1]}), "
                    f"got {len(levels)}."
                )
            return quantile_table(Q, levels)
        if field.holds == "numbers":
            self.numbers(list(columns.values()), "numbers")
            columns = dict(sorted(columns.items(), key=lambda item: float(item[0][0])))
        named = {label or field.option: self.frame[name] for (label, _), name in columns.items()}
        return pl.DataFrame(named)

    def rest(self, argument: str) -> Any:
        """The features as a frame, or the matrix of an npz file."""
        import polars as pl

        columns = self.roles.columns[argument]
        if ("", None) not in columns:
            return self.frame.select(list(columns.values()))
        names, X = self.roles.feature_names, self.array(argument)
        return pl.DataFrame({name: X[:, j] for j, name in enumerate(names)}) if names else X

    def array(self, argument: str) -> np.ndarray:
        """An argument that is one column of arrays; checked where it is used, as one given in memory."""
        return self.frame[self.roles.columns[argument]["", None]].to_numpy()

    def layers(self, argument: str) -> np.ndarray:
        """The same with the levels that are read on its last axis; without the axis for a single one."""
        array, layers = self.array(argument), self.roles.layers
        array = array[:, :, layers] if layers and array.ndim == 3 else array
        return array[:, :, 0] if array.ndim == 3 and array.shape[2] == 1 else array

    def numbers(self, names: Sequence[str], kind: str) -> list[pl.Series]:
        """Columns of numbers; one that holds something else is refused with its first bad cell."""
        for series in (found := [self.frame[name] for name in names]):
            if series.dtype.is_numeric() or str(series.dtype) == "Boolean" or _is_array(series):
                continue
            said = f"column {series.name!r} of {self.place}"
            if series.null_count() == len(series):
                raise InputError(f"{said} is empty. Fill it, or leave it out of the file.")
            raise InputTypeError(f"{said} must hold {kind}, {_bad_cell(series)}")
        return found

    def require_filled(self, series: pl.Series) -> None:
        """Refuse missing values."""
        if series.null_count():
            row = int(series.is_null().arg_max() or 0)
            raise InputError(
                f"column {series.name!r} of {self.place} has {series.null_count()} missing of {len(series)} "
                f"values (first at row {row}). Drop these rows or fill them."
            )


_READ: dict[str, Callable[[_Table, str], Any]] = {
    "column": _Table.column,
    "per class": _Table.matrix,
    "per level": _Table.table,
    "attributes": _Table.table,
    "end": _Table.matrix,
    "rest": _Table.rest,
}


def quantile_table(quantiles: Any, levels: Sequence[float]) -> pl.DataFrame:
    """Quantiles (n, Q) as a frame whose columns are named after their levels, in rising order.

    Examples
    --------
    >>> from calipers.inputs.files.columns_to_arrays import quantile_table
    >>> quantile_table([[5.0, 1.0]], [0.9, 0.1]).columns
    ['0.1', '0.9']
    """
    import polars as pl

    Q = np.asarray(quantiles, dtype=np.float64)
    return pl.DataFrame({f"{levels[j]:g}": Q[:, j] for j in np.argsort(levels)})


def _is_array(series: pl.Series) -> bool:
    """Whether every cell is an array of the same shape, as in a frame made of an npz file."""
    return str(series.dtype).startswith("Array")


def _bad_cell(series: pl.Series) -> str:
    """The first cell that is not a number, where it is, and the remedy for a decimal comma."""
    import polars as pl

    if series.dtype != pl.String:
        return f"got {series.dtype} (first value {series.drop_nulls()[0]!r})."
    wrong = series.is_not_null() & series.str.strip_chars().cast(pl.Float64, strict=False).is_null()
    if not wrong.any():
        # Such as nan and Infinity, which one can read and the types of a csv file cannot.
        wrong = series.is_not_null() & ~series.str.contains(_PLAIN_NUMBER)
    if not wrong.any():
        return f"got numbers as text ({series.drop_nulls()[0]!r})."
    row = int(wrong.arg_max() or 0)
    comma = " It has a decimal comma: export the file again with decimal points."
    return f"got {series[row]!r} at row {row}.{comma if _DECIMAL_COMMA.match(series[row]) else ''}"


def _positive_last(labels: list[str]) -> list[str]:
    """Of two classes the greater is the positive one, as in scikit-learn, in any order of their columns."""
    if len(labels) != 2:
        return labels
    try:
        return sorted(labels, key=float)
    except ValueError:
        return sorted(labels)


def _coded(series: pl.Series) -> Categorical:
    """Text as codes: each distinct value is looked at once."""
    import polars as pl

    column = series.cast(pl.String)
    labels = column.unique().sort()
    codes = column.replace_strict(labels, np.arange(len(labels)), return_dtype=pl.Int64)
    return Categorical(labels.to_numpy().astype(str), codes.to_numpy())


def _typed_labels(labels: Sequence[str], y: Any, place: str) -> list[Any]:
    """Class names as values of the kind that y_true holds."""
    values = y.labels if isinstance(y, Categorical) else y
    convert = _converter(values)
    try:
        return [convert(label) for label in labels]
    except (KeyError, ValueError):
        shown = values[0].item() if isinstance(values[0], np.generic) else values[0]
        raise InputError(
            f"the classes of {place} ({', '.join(labels[:5])}) are not of the kind y_true holds "
            f"({shown!r}). Name the columns after the labels, or choose them with --proba."
        ) from None


def _converter(y: np.ndarray) -> Callable[[str], Any]:
    if y.dtype.kind == "b":
        return lambda label: {"true": True, "1": True, "false": False, "0": False}[label.lower()]
    if y.dtype.kind in "iu":
        return int
    return float if y.dtype.kind == "f" else str


# A text column with this share of distinct values names its rows; it is not a feature.
_IDENTIFIER_SHARE = 0.5
_IDENTIFIER_ROWS = 50


def identifiers(head: pl.DataFrame) -> list[str]:
    """Columns that name their rows, as far as the first rows show: text that is hardly ever repeated.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.inputs.files.columns_to_arrays import identifiers
    >>> identifiers(pl.DataFrame({"name": [f"row{i}" for i in range(60)], "site": ["a", "b"] * 30}))
    ['name']
    """
    return [series.name for series in head if _is_identifier(series)]


def _is_identifier(series: pl.Series) -> bool:
    if str(series.dtype) not in {"String", "Categorical", "Enum"}:
        return False
    return len(series) > _IDENTIFIER_ROWS and series.n_unique() > _IDENTIFIER_SHARE * len(series)


def join_arguments(parts: Sequence[Arguments]) -> Arguments:
    """The rows of several tables one after the other.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.files.columns_to_arrays import Arguments, join_arguments
    >>> one, two = Arguments({"y_true": np.array(["1", "0"])}), Arguments({"y_true": np.array([1])})
    >>> join_arguments([one, two]).given["y_true"].tolist()
    ['1', '0', '1']
    """
    if len(parts) == 1:
        return parts[0]
    classes = parts[0].classes
    if any(part.classes != classes for part in parts):  # labels are text in one file and numbers in another
        classes = None if classes is None else [str(label) for label in classes]
    given = {name: joined([part.given[name] for part in parts]) for name in parts[0].given}
    return Arguments(given, classes)
