"""A file of predictions as the arguments of an audit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.arrays import RandomState
from calipers.exceptions import InputError, InputTypeError
from calipers.inputs.files.beside import SideBySide, side_by_side
from calipers.inputs.files.formats import read_table
from calipers.inputs.files.roles import ColumnChoice, Roles, assign_roles

if TYPE_CHECKING:
    import polars as pl

# A text column with this share of distinct values names its rows; it is no feature.
_IDENTIFIER_SHARE = 0.5
_IDENTIFIER_ROWS = 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Predictions:
    """What a file says: what was predicted, what happened, and what is known about the rows.

    Parameters
    ----------
    y_true : array
        What happened.
    probabilities, p_values, sets, intervals : array or None
        What was predicted.
    X : polars frame, array or None
        Features.
    groups, ease, time, sample_weight, row_id : array or None
        One value per row.
    classes : list or None
        Label of every column.
    alpha : list or None
        Levels, when the file states them.
    n_calibration : int or None
        Rows the predictor was conformalised on, when the file states it.
    source : str
        Where it was read.
    roles : mapping
        Column -> role, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.inputs.files import Predictions
    >>> sorted(Predictions(y_true=np.array([1.0]), intervals=np.array([[0.0, 2.0]])).arguments())
    ['intervals', 'y_true']
    """

    y_true: np.ndarray
    probabilities: np.ndarray | None = None
    p_values: np.ndarray | None = None
    sets: np.ndarray | None = None
    intervals: np.ndarray | None = None
    X: Any = None
    groups: np.ndarray | None = None
    ease: np.ndarray | None = None
    time: np.ndarray | None = None
    sample_weight: np.ndarray | None = None
    row_id: np.ndarray | None = None
    classes: list[Any] | None = None
    alpha: list[float] | None = None
    n_calibration: int | None = None
    source: str = ""
    roles: Mapping[str, str] = field(default_factory=dict)

    def arguments(self) -> dict[str, Any]:
        """What was found, by the names of the arguments of an audit."""
        names = [f.name for f in fields(self) if f.name not in {"source", "roles", "row_id"}]
        return {name: value for name in names if (value := getattr(self, name)) is not None}


def read_predictions(
    path: Path | str,
    choice: ColumnChoice | None = None,
    *,
    max_rows: int | None = None,
    random_state: RandomState = None,
) -> Predictions:
    r"""Read a file of predictions; columns are found by name unless ``choice`` says otherwise.

    Parameters
    ----------
    path : path
        csv, parquet, arrow, json-lines or npz; never modified.
    choice : ColumnChoice, optional
        Which column plays which role. npz files use the argument names of an audit instead.
    max_rows : int, optional
        Audit a random sample of this many rows; the file streams by.
    random_state : int, Generator or None
        Source of that draw.

    Returns
    -------
    Predictions
        Its ``arguments()`` go to an audit.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from calipers.inputs.files import read_predictions
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     place = Path(folder, "rows.csv")
    ...     _ = place.write_text("y_true,p_no,p_yes,age\nyes,0.2,0.8,30\n", encoding="utf-8")
    ...     found = read_predictions(place)
    >>> found.classes, found.probabilities.tolist()
    (['no', 'yes'], [[0.2, 0.8]])
    """
    table = read_table(path, max_rows=max_rows, random_state=random_state)
    if isinstance(table, dict):
        return _from_arrays(table, source=str(path))
    return predictions_of_frame(table, choice, source=str(path))


def predictions_of_frame(
    frame: pl.DataFrame, choice: ColumnChoice | None = None, *, source: str = "the table"
) -> Predictions:
    """The same, from a polars frame that is already there.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.inputs.files import predictions_of_frame
    >>> frame = pl.DataFrame({"y_true": [1.0, 5.0], "lower": [0.0, 1.0], "upper": [2.0, 2.0]})
    >>> predictions_of_frame(frame).intervals.tolist()
    [[0.0, 2.0], [1.0, 2.0]]
    """
    return extract_predictions(
        frame, assign_roles(frame.columns, choice or ColumnChoice(), place=source), source=source
    )


def extract_predictions(
    frame: pl.DataFrame, roles: Roles, *, source: str = "the table", whole: bool = True
) -> Predictions:
    """The same, when the role of every column is known already.

    Without ``whole`` a matrix may come as its columns (`SideBySide`), for callers that read slices of it.

    Examples
    --------
    >>> import polars as pl
    >>> from calipers.inputs.files import ColumnChoice, extract_predictions
    >>> from calipers.inputs.files.roles import assign_roles
    >>> frame = pl.DataFrame({"y_true": ["b"], "p_a": [0.25], "p_b": [0.75]})
    >>> roles = assign_roles(frame.columns, ColumnChoice(), place="rows")
    >>> extract_predictions(frame, roles).classes
    ['a', 'b']
    """
    y = _column(frame, roles.y, source)
    labels = _class_labels(roles, y, source)
    kept = _features(frame, roles.features)
    return Predictions(
        y_true=y,
        probabilities=_per_class(frame, roles, "probabilities", labels, source, whole=whole),
        p_values=_per_class(frame, roles, "p_values", labels, source, whole=whole),
        sets=_per_class(frame, roles, "sets", labels, source, whole=whole),
        intervals=_intervals(frame, roles, source),
        X=kept,
        groups=_optional(frame, roles.group),
        row_id=None if roles.row is None else _column(frame, roles.row, source),
        ease=_numbers(frame, roles.ease, source),
        time=None if roles.time is None else _column(frame, roles.time, source),
        sample_weight=_numbers(frame, roles.weight, source),
        classes=None if labels is None or len(labels) < 2 else _typed_labels(labels, y, source),
        alpha=levels_of(roles),
        source=source,
        roles=_describe(roles, kept),
    )


def _column(frame: pl.DataFrame, name: str, source: str) -> np.ndarray:
    series = frame[name]
    if series.null_count():
        row = int(series.is_null().arg_max() or 0)
        raise InputError(
            f"column {name!r} of {source} has {series.null_count()} missing of {frame.height} values "
            f"(first at row {row}). Drop these rows or fill them."
        )
    values = series.to_numpy()
    return values.astype(str) if values.dtype.kind == "O" else values


def _optional(frame: pl.DataFrame, name: str | None) -> np.ndarray | None:
    return None if name is None else frame[name].to_numpy()


def _numbers(frame: pl.DataFrame, name: str | None, source: str) -> np.ndarray | None:
    return None if name is None else _numeric(frame, [name], source)[:, 0]


def _numeric(frame: pl.DataFrame, names: Sequence[str], source: str, *, kind: str = "numbers") -> np.ndarray:
    return side_by_side(_number_columns(frame, names, source, kind))


def _number_columns(frame: pl.DataFrame, names: Sequence[str], source: str, kind: str) -> list[pl.Series]:
    for name in names:
        found = frame.schema[name]
        if not (found.is_numeric() or str(found) == "Boolean" or str(found) == "Null"):
            first = frame[name].drop_nulls()[0]
            raise InputTypeError(
                f"column {name!r} of {source} must hold {kind}, got {found} (first value {first!r})."
            )
    return [frame[name] for name in names]


def _class_labels(roles: Roles, y: np.ndarray, source: str) -> list[str] | None:
    """The classes in column order; every role must name the same ones."""
    named = {
        role: list(dict.fromkeys(label for label, _ in columns)) for role, columns in roles.per_class.items()
    }
    if not named:
        return None
    # Probabilities lead: their order is the order people think in.
    first = next(role for role in ("probabilities", "p_values", "sets") if role in named)
    for role, labels in named.items():
        if set(labels) != set(named[first]):
            odd = min(set(labels) ^ set(named[first]))
            raise InputError(
                f"{first} and {role} of {source} must name the same classes; class {odd!r} is in one of "
                "them only."
            )
    return named[first]


def _typed_labels(labels: list[str], y: np.ndarray, source: str) -> list[Any]:
    """Class names as values of the kind that y_true holds."""
    convert = _converter(y)
    try:
        return [convert(label) for label in labels]
    except (KeyError, ValueError):
        shown = y[0].item() if isinstance(y[0], np.generic) else y[0]
        raise InputError(
            f"the classes of {source} ({', '.join(labels[:5])}) are not of the kind y_true holds "
            f"({shown!r}). Name the columns after the labels, or choose them with --proba."
        ) from None


def _converter(y: np.ndarray) -> Callable[[str], Any]:
    if y.dtype.kind == "b":
        return lambda label: {"true": True, "1": True, "false": False, "0": False}[label.lower()]
    if y.dtype.kind in "iu":
        return int
    return float if y.dtype.kind == "f" else str


def _per_class(
    frame: pl.DataFrame, roles: Roles, role: str, labels: list[str] | None, source: str, *, whole: bool
) -> Any:
    columns = roles.per_class.get(role)
    if columns is None or labels is None:
        return None
    levels = _sorted_levels(level for _, level in columns)
    kind = "true and false, or 1 and 0" if role == "sets" else "numbers"
    try:
        found = [
            _number_columns(frame, [columns[label, level] for label in labels], source, kind)
            for level in levels
        ]
    except KeyError as error:
        label, level = error.args[0]
        raise InputError(f"{source} has no column of {role} for class {label!r} at level {level}.") from None
    if not whole and len(levels) == 1 and len(labels) > 1 and (role != "sets" or _are_bits(found[0])):
        return SideBySide(found[0])
    layers = [side_by_side(layer) for layer in found]
    array = layers[0] if len(layers) == 1 else np.stack(layers, axis=-1)
    if role == "sets":
        return _as_sets(array, source)
    return array[:, 0] if role == "probabilities" and array.shape[1] == 1 else array


def _are_bits(columns: Sequence[pl.Series]) -> bool:
    return all(str(column.dtype) == "Boolean" and not column.null_count() for column in columns)


def _as_sets(array: np.ndarray, source: str) -> np.ndarray:
    if array.dtype == bool:
        return array
    wrong = (array != 0) & (array != 1)
    if wrong.any():
        place = np.argwhere(wrong)[0]
        raise InputError(
            f"the set columns of {source} must hold true and false, or 1 and 0, "
            f"got {array[tuple(place)]:g} at row {place[0]}."
        )
    return np.asarray(array == 1)


def _intervals(frame: pl.DataFrame, roles: Roles, source: str) -> np.ndarray | None:
    if not roles.ends:
        return None
    levels = _sorted_levels(level for _, level in roles.ends)
    layers = [
        _numeric(frame, [roles.ends["lower", level], roles.ends["upper", level]], source) for level in levels
    ]
    return layers[0] if len(layers) == 1 else np.stack(layers, axis=-1)


def _sorted_levels(levels: Any) -> list[str | None]:
    return sorted(set(levels), key=lambda level: float(level or 0))


def levels_of(roles: Roles) -> list[float] | None:
    """Levels stated in column names, in increasing order."""
    stated = {level for _, level in roles.ends} | {level for _, level in roles.per_class.get("sets", {})}
    named = [level for level in _sorted_levels(stated) if level is not None]
    return [float(level) for level in named] or None


def _features(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame | None:
    kept = [name for name in names if not _is_identifier(frame[name])]
    return frame.select(kept) if kept else None


def _is_identifier(series: pl.Series) -> bool:
    if series.dtype.is_numeric() or str(series.dtype) not in {"String", "Categorical", "Enum"}:
        return False
    return len(series) > _IDENTIFIER_ROWS and series.n_unique() > _IDENTIFIER_SHARE * len(series)


def _describe(roles: Roles, kept: pl.DataFrame | None) -> dict[str, str]:
    used = set() if kept is None else set(kept.columns)
    return {
        column: role if role != "feature" or column in used else "ignored (names its rows)"
        for column, role in roles.described().items()
    }


_ARRAYS = ("probabilities", "p_values", "sets", "intervals", "groups", "ease", "time", "sample_weight")


def _from_arrays(arrays: dict[str, np.ndarray], *, source: str) -> Predictions:
    if "y_true" not in arrays:
        raise InputError(
            f"{source} has no array 'y_true'; it has {', '.join(list(arrays)[:8])}. "
            "Name the arrays as the arguments of audit: y_true, probabilities, sets, intervals, X, ..."
        )
    known = {"y_true", "X", "classes", "alpha", "n_calibration", "feature_names", *_ARRAYS}
    unknown = sorted(set(arrays) - known)
    if unknown:
        raise InputError(
            f"{source} holds an array {unknown[0]!r} that an audit does not take; "
            f"it takes {', '.join(sorted(known))}."
        )
    calibration = arrays.get("n_calibration")
    return Predictions(
        y_true=arrays["y_true"],
        X=_named_features(arrays, source),
        classes=arrays["classes"].tolist() if "classes" in arrays else None,
        alpha=np.atleast_1d(arrays["alpha"]).tolist() if "alpha" in arrays else None,
        n_calibration=None if calibration is None else int(calibration),
        source=source,
        roles=dict.fromkeys(arrays, "array"),
        **{name: arrays.get(name) for name in _ARRAYS},
    )


def _named_features(arrays: dict[str, np.ndarray], source: str) -> Any:
    X = arrays.get("X")
    names = arrays.get("feature_names")
    if X is None or names is None:
        return X
    if X.ndim != 2 or len(names) != X.shape[1]:
        raise InputError(f"feature_names of {source} must name the columns of X, got {len(names)} names.")
    import polars as pl

    return pl.DataFrame({str(name): X[:, j] for j, name in enumerate(names)})
