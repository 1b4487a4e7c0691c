"""From the arguments of an audit to rows in canonical form: every array checked once, classes known."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from calipers.arrays import as_numpy, frame_columns, is_frame
from calipers.exceptions import InputError
from calipers.fields import STATEMENTS
from calipers.inputs import (
    check_alphas,
    check_classes,
    check_covered,
    check_features,
    check_groups,
    check_intervals,
    check_p_values,
    check_positive_probabilities,
    check_probabilities,
    check_same_length,
    check_sets,
    check_vector,
    check_weights,
    encode_labels,
    unpack_intervals,
    unpack_sets,
)
from calipers.inputs.attributes import check_attributes
from calipers.inputs.categorical import Categorical
from calipers.inputs.files.columns_to_arrays import quantile_table
from calipers.inputs.labels import named_classes_of
from calipers.inputs.predictions import check_promised
from calipers.inputs.row_checks import check_time, require_same_index
from calipers.inputs.row_keys import Place
from calipers.inputs.rows import Rows
from calipers.metrics.distributions.quantile_columns import check_quantile_levels

# Rows in memory have positions in one array; draws that belong to rows follow from them.
IN_MEMORY = Place("array", 0)


def rows_of_arguments(
    y_true: Any,
    *,
    probabilities: Any = None,
    p_values: Any = None,
    sets: Any = None,
    intervals: Any = None,
    covered: Any = None,
    size: Any = None,
    promised: Any = None,
    loss: Any = None,
    quantiles: Any = None,
    quantile_levels: Any = None,
    pit: Any = None,
    y_pred: Any = None,
    X: Any = None,
    groups: Any = None,
    ease: Any = None,
    time: Any = None,
    cluster: Any = None,
    row_id: Any = None,
    alpha: Any = 0.1,
    classes: Any = None,
    sample_weight: Any = None,
    seed: int = 0,
) -> Rows:
    """Check every argument about the rows of an audit and bring it into canonical form."""
    stated = {"probabilities": probabilities, "p_values": p_values, "sets": sets, "intervals": intervals}
    columns = {
        "covered": covered,
        "size": size,
        "promised": promised,
        "loss": loss,
        "pit": pit,
        "y_pred": y_pred,
    }
    beside = {"X": X, "groups": groups, "ease": ease, "time": time, "cluster": cluster}
    _refuse_nothing_or_both(stated, columns | {"quantiles": quantiles}, y_true)
    require_same_index(y_true=y_true, **stated, **columns, **beside, sample_weight=sample_weight)
    named = named_classes_of(stated, y_true) if classes is None and y_true is not None else classes
    stated, classes = _unpacked(stated, y_true, named)
    matrices = _check_matrices(stated)
    levels, _ = check_alphas(alpha)
    alphas = tuple(float(a) for a in levels)
    _check_levels(matrices, alphas)
    distribution = _quantile_table(quantiles, quantile_levels)
    is_number = distribution is not None or pit is not None
    is_number |= y_pred is not None and all(value is None for value in stated.values())
    y, labels = _outcome(y_true, matrices, classes, stated, is_number=is_number)
    checked = {name: _checked_column(name, value) for name, value in columns.items()}
    own = {"y_true": y, "quantiles": distribution} | matrices | checked
    n = check_same_length(**{k: v for k, v in own.items() if v is not None})
    given = own | _checked_beside(beside, n, seed) | {"sample_weight": check_weights(sample_weight, n)}
    if row_id is not None:
        given["row_id"] = _rows_of(np.atleast_1d(as_numpy(row_id, name="row_id")), n, "row_id")
    return Rows(given, classes=labels, alpha=alphas, place=IN_MEMORY)


def _checked_beside(beside: dict[str, Any], n: int, seed: int) -> dict[str, Any]:
    """What says where and when a promise was made, n rows of each that was given."""
    X, groups, cluster = beside["X"], beside["groups"], beside["cluster"]
    return {
        "X": _rows_of(None if X is None else check_features(X), n, "X"),
        "groups": None if groups is None else _group_labels(groups, n),
        "cluster": None if cluster is None else _cluster_labels(cluster, n),
        "ease": _rows_of(_check_ease(beside["ease"], X, seed), n, "ease"),
        "time": _rows_of(_checked_time(beside["time"]), n, "time"),
    }


def require_statement(given: Collection[str], columns: Mapping[str, str] | None = None) -> None:
    """Refuse rows that hold nothing a model states: "no fault found" would be said of nothing.

    ``columns`` of a file, and what they were taken for.
    """
    if set(STATEMENTS) & set(given):
        return
    if not columns:
        raise InputError(
            "an audit needs what was predicted: give probabilities, p_values, sets, intervals, quantiles or "
            "y_pred with y_true, or covered, pit or loss."
        )
    found = ", ".join(f"{column} ({role})" for column, role in columns.items())
    raise InputError(
        f"an audit needs what was predicted, and no column holds it; there are {found}. Name them, for "
        "instance with --proba, --set, --p-value, --quantile, or --lower and --upper."
    )


def _refuse_nothing_or_both(stated: dict[str, Any], columns: dict[str, Any], y_true: Any) -> None:
    given = [name for name, value in stated.items() if value is not None]
    require_statement({name for name, value in (stated | columns).items() if value is not None})
    with_outcome = [*given, *(name for name in ("quantiles", "y_pred") if columns[name] is not None)]
    if y_true is None and with_outcome:
        raise InputError(f"{with_outcome[0]} needs y_true, the outcomes.")
    for name in ("promised", "size"):
        if columns[name] is not None and columns["covered"] is None:
            raise InputError(f"{name} belongs to covered: whether each promise came true. Add covered.")
    if columns["covered"] is not None and given and given != ["probabilities"]:
        raise InputError(f"give either covered or {given[0]}, which says what is covered.")
    if "intervals" in given and len(given) > 1:
        raise InputError(
            f"intervals belong to regression and {given[0]} to classification; audit them separately."
        )


def _unpacked(stated: dict[str, Any], y_true: Any, classes: Any) -> tuple[dict[str, Any], Any]:
    """The same in our own layout, whatever library returned it; lists of labels also name the classes."""
    if stated["intervals"] is not None:
        n = len(as_numpy(y_true, name="y_true"))
        return stated | {"intervals": unpack_intervals(stated["intervals"], n)}, classes
    if stated["sets"] is None:
        return stated, classes
    beside = [table for name in ("probabilities", "p_values") if (table := stated[name]) is not None]
    widths = [np.shape(as_numpy(table))[1] for table in beside if np.ndim(as_numpy(table)) == 2]
    sets, classes = unpack_sets(
        stated["sets"], y_true, classes=classes, n_classes=widths[0] if widths else None
    )
    return stated | {"sets": sets}, classes


def _check_matrices(stated: dict[str, Any]) -> dict[str, Any]:
    checks: dict[str, Callable[[Any], np.ndarray]] = {
        "probabilities": _two_columns,
        # Kept in their own precision: 0.1 in float32 is 0.1, not a little more.
        "p_values": lambda value: np.ascontiguousarray(as_numpy(check_p_values(value))),
        "sets": lambda value: np.ascontiguousarray(as_numpy(check_sets(value))),
        "intervals": lambda value: _floats(check_intervals(value)),
    }
    matrices = {k: None if value is None else checks[k](value) for k, value in stated.items()}
    widths = {k: v.shape[1] for k, v in matrices.items() if v is not None and k != "intervals"}
    if len(set(widths.values())) > 1:
        found = ", ".join(f"{name}: {width}" for name, width in widths.items())
        raise InputError(f"{' and '.join(widths)} must have one column per class, got {found}.")
    return matrices


def _two_columns(probabilities: Any) -> np.ndarray:
    """Probabilities (n, K); a vector is the positive class of two."""
    array = as_numpy(probabilities, name="probabilities")
    if array.ndim == 1 or (array.ndim == 2 and array.shape[1] == 1):
        positive = _floats(check_positive_probabilities(array))
        return np.column_stack([1.0 - positive, positive])
    return _floats(check_probabilities(array))


def _floats(array: Any) -> np.ndarray:
    # Rows side by side, whatever the file's own layout: most of the work here is by row.
    return np.ascontiguousarray(as_numpy(array), dtype=np.float64)


def _check_levels(matrices: dict[str, Any], alphas: tuple[float, ...]) -> None:
    for name in ("sets", "intervals"):
        array = matrices[name]
        if array is None:
            continue
        found = 1 if array.ndim == 2 else array.shape[2]
        if found != len(alphas):
            raise InputError(
                f"{name} holds {found} level(s) and alpha {len(alphas)}. "
                f"Give one alpha per level, {name} with a last axis for several."
            )


def _quantile_table(quantiles: Any, levels: Any) -> Any:
    """Quantiles as a frame whose columns are named after their levels."""
    if quantiles is None:
        return None
    if levels is None and is_frame(quantiles):
        levels = [name.removeprefix("q_") for name in frame_columns(quantiles)]
    if levels is None:
        raise InputError(
            "quantiles need quantile_levels: the probability stated for each column, such as [0.1, 0.9]."
        )
    Q = _floats(as_numpy(quantiles, name="quantiles"))
    Q = Q[:, None] if Q.ndim == 1 else Q
    stated = check_quantile_levels(np.asarray(levels, dtype=float))
    if Q.ndim != 2 or Q.shape[1] != len(stated):
        raise InputError(f"quantiles must have a column per level ({len(stated)}), got shape {Q.shape}.")
    return quantile_table(Q, stated)


def _checked_column(name: str, value: Any) -> Any:
    if value is None:
        return None
    checks: dict[str, Callable[[Any], Any]] = {
        "covered": check_covered,
        "promised": check_promised,
        "size": lambda v: check_vector(v, name="size", finite=False),
        "pit": lambda v: check_promised(v, name="pit"),
    }
    check = checks.get(name, lambda v: check_vector(v, name=name))
    return np.asarray(as_numpy(check(value)))


def _cluster_labels(cluster: Any, n: int) -> np.ndarray:
    labels, codes = check_groups(cluster, n, name="cluster")
    return np.asarray(np.array([str(label) for label in labels])[codes])


def _outcome(
    y_true: Any, matrices: dict[str, Any], classes: Any, stated: dict[str, Any], *, is_number: bool
) -> tuple[Any, Any]:
    """What happened, checked, and the label of every column; None for numbers."""
    if y_true is None:
        return None, None
    if matrices["intervals"] is not None or is_number:
        if classes is not None:
            raise InputError("classes belong to classification; intervals were given.")
        return _floats(check_vector(y_true, name="y_true")), None
    if all(matrix is None for matrix in matrices.values()):
        return as_numpy(y_true, name="y_true").reshape(-1), None
    labels = as_numpy(y_true, name="y_true").reshape(-1)
    n_classes = next(m.shape[1] for m in matrices.values() if m is not None)
    for table in stated.values():
        codes = np.asarray(as_numpy(encode_labels(y_true, n_classes, classes=classes, table=table)))
    known = check_classes(classes, labels, n_classes)
    names = np.arange(n_classes) if known is None else np.asarray(known)
    return Categorical(names, codes), tuple(names.tolist())


def _checked_time(time: Any) -> Any:
    """Times as they were given, so that findings can name the date; text and dates are known to be such."""
    if time is None:
        return None
    check_time(time)
    return as_numpy(time, name="time").reshape(-1)


def _group_labels(groups: Any, n: int) -> Any:
    """Labels (n,), or several attributes as a frame of texts."""
    table = check_attributes(groups)
    if len(table) != n:
        raise InputError(f"groups must have one row per outcome ({n}), got {len(table)}.")
    texts = [
        np.array([str(label) for label in own])[codes]
        for own, codes in zip(table.labels, table.codes.T, strict=True)
    ]
    if not table.names:
        return np.asarray(texts[0])
    import polars as pl

    return pl.DataFrame(dict(zip(table.names, texts, strict=True)))


def _check_ease(ease: Any, X: Any, seed: int) -> np.ndarray | None:
    """The ease given, or measured by changing the features where a model was given in its place."""
    if not (callable(ease) or hasattr(ease, "predict")):
        return None if ease is None else _floats(check_vector(ease, name="ease"))
    if X is None:
        raise InputError(
            "ease by a model needs X, the features it predicts from. Add X, or give ease as numbers."
        )
    from calipers.difficulty import ease as ease_of_rows

    return np.asarray(ease_of_rows(ease, X, relative=True, unit="spread", random_state=seed))


def _rows_of(value: Any, n: int, name: str) -> Any:
    if value is not None and len(value) != n:
        raise InputError(f"{name} must have one row per outcome ({n}), got {len(value)}.")
    return value
