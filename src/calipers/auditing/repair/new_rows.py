"""New rows for a repair: a mapping of arguments, or a table whose columns are found by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, is_frame
from calipers.auditing.repair.rule import REPAIRABLE, RepairRule
from calipers.exceptions import InputError
from calipers.fields import FIELDS
from calipers.inputs.files.column_roles import ColumnChoice, Roles, assign_roles, select_levels
from calipers.inputs.files.columns_to_arrays import columns_to_arrays
from calipers.inputs.rows import Rows

_READ = (*REPAIRABLE, "X", "groups", "ease")


def rows_of_mapping(predictions: Mapping[str, Any], rule: RepairRule) -> Rows:
    """The rows of a mapping, with every column that the rule needs."""
    given = {name: value for name, value in predictions.items() if name in _READ and value is not None}
    if missing := [name for name in rule.needs if name not in given]:
        raise InputError(
            f"this repair needs {', '.join(rule.needs)}; {missing[0]} was not given "
            f"(there is {', '.join(predictions) or 'nothing'})."
        )
    arrays = {name: _attributes(value) if isinstance(value, Mapping)
              else value if _keeps_its_form(name, value) else as_numpy(value, name=name)
              for name, value in given.items()}  # fmt: skip
    rows = Rows(arrays, classes=rule.classes or None, alpha=rule.alphas)
    _require_width(rows, rule)
    return rows


def _attributes(columns: Mapping[str, Any]) -> Any:
    """A mapping of columns, which an audit takes for groups, as a table."""
    import polars as pl

    return pl.DataFrame({str(key): as_numpy(column, name=str(key)) for key, column in columns.items()})


def _keeps_its_form(name: str, value: Any) -> bool:
    return name in ("X", "groups") and (is_frame(value) or not isinstance(value, (list, tuple)))


def _require_width(rows: Rows, rule: RepairRule) -> None:
    """Refuse other classes, or other levels, than those of the audit."""
    for name in ("probabilities", "p_values"):
        if name in rule.needs and rows[name].shape[1] != len(rule.classes):
            raise InputError(
                f"{name} must have the {len(rule.classes)} columns of the audit, got {rows[name].shape[1]}."
            )
    layers = np.shape(rows.given["intervals"])[2:] if "intervals" in rows.given else ()
    if "intervals" in rule.needs and (layers[0] if layers else 1) != len(rule.alphas):
        raise InputError(
            f"intervals must have the {len(rule.alphas)} level(s) of the audit, "
            f"got {layers[0] if layers else 1}."
        )


def roles_for(
    columns: list[str],
    rule: RepairRule,
    choice: ColumnChoice | None = None,
    *,
    place: str,
    arrays: Collection[str] = (),
) -> Roles:
    """Which columns of a table the rule reads; those of classes in the order of the audit."""
    named = columns if "y_true" in columns or (choice and "y_true" in choice.chosen) else [*columns, "y_true"]
    roles = assign_roles(named, choice or ColumnChoice(), place=place, arrays=arrays)
    # Outcomes are not read: new rows have none.
    roles = roles.without(*(argument for argument in roles.columns if argument not in _READ))
    roles, _ = select_levels(roles, rule.alphas if roles.levels() != [None] else None, place=place)
    wanted = {name: _in_order(roles.columns[name], rule, place) for name in (*rule.needs, *rule.changes)
              if name in roles.columns}  # fmt: skip
    if missing := [name for name in rule.needs if name not in wanted]:
        options = " and ".join(
            f"--{f.option} (column {f.column})" for f in FIELDS if f.argument == missing[0]
        )
        raise InputError(
            f"this repair needs {', '.join(rule.needs)}; {place} has no {missing[0]}; it has "
            f"{', '.join(columns[:8])}. Columns with other names are named as for the audit: {options}."
        )
    if "X" in wanted:
        names = _features(rule) | {"X"}  # an archive has all features in one array
        wanted["X"] = {key: column for key, column in wanted["X"].items() if column in names}
    return replace(roles, columns=wanted)


def _features(rule: RepairRule) -> set[str]:
    """The features that the parts of the rule read."""
    from calipers.auditing.repair.feature_codes import FeatureCodes

    found: set[str] = set()
    todo: list[Any] = [rule]
    while todo:
        one = todo.pop()
        if isinstance(one, FeatureCodes):
            found |= set(one.names)
        elif isinstance(one, (list, tuple)):
            todo += one
        elif hasattr(one, "__dataclass_fields__"):
            todo += [getattr(one, name) for name in one.__dataclass_fields__]
    return found


def _in_order(columns: dict[Any, str], rule: RepairRule, place: str) -> dict[Any, str]:
    labels = list(dict.fromkeys(label for label, _ in columns))
    if not rule.classes or not set(labels) & set(rule.classes) or len(labels) < 2:
        return columns
    if set(labels) != set(rule.classes):
        raise InputError(
            f"{place} must have the classes of the audit ({', '.join(rule.classes)}), "
            f"got {', '.join(labels)}."
        )
    return dict(sorted(columns.items(), key=lambda item: rule.classes.index(item[0][0])))


def rows_of_table(table: Any, rule: RepairRule, roles: Roles | None = None) -> tuple[Rows, Roles]:
    """The rows of a table, and the roles of its columns."""
    frame = _polars(table)
    roles = roles or roles_for(list(frame.columns), rule, place="the table")
    found = columns_to_arrays(frame.select(roles.names()), roles, place="the table", whole=False)
    rows = Rows(found.given, classes=rule.classes or None, alpha=rule.alphas)
    _require_width(rows, rule)
    return rows, roles


def _polars(table: Any) -> Any:
    if type(table).__module__.startswith("polars"):
        return table
    import narwhals as nw
    import polars as pl

    return pl.DataFrame(
        {name: series.to_numpy() for name, series in nw.from_native(table, eager_only=True).to_dict().items()}
    )


def table_columns(new: dict[str, np.ndarray], roles: Roles, rule: RepairRule) -> dict[str, np.ndarray]:
    """Repaired arguments as columns of the table they came from; p-values that were not there get a name."""
    out: dict[str, np.ndarray] = {}
    for argument, array in new.items():
        columns = roles.columns.get(argument)
        if columns is None:
            out |= {f"pvalue_{label}": array[:, k] for k, label in enumerate(rule.classes)}
        elif ("", None) in columns:
            out[columns["", None]] = array
        else:
            out |= _split(array, columns)
    return out


def _split(array: np.ndarray, columns: dict[Any, str]) -> dict[str, np.ndarray]:
    labels = list(dict.fromkeys(label for label, _ in columns))
    levels = list(dict.fromkeys(level for _, level in columns))
    if len(labels) == 1 and array.shape[1] == 2:  # one column: the positive class of two
        return {columns[labels[0], levels[0]]: array[:, 1]}
    if set(labels) == {"lower", "upper"}:
        labels = ["lower", "upper"]
    layers = array[:, :, None] if array.ndim == 2 else array
    return {
        columns[label, level]: layers[:, i, j]
        for i, label in enumerate(labels)
        for j, level in enumerate(levels)
    }
