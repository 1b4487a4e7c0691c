"""The rows and the model of ``calipers forecast``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_SPLIT = "module:name"


def fitted_forecast(kind: Any, data: Path, model: str | None, target: str, options: Mapping[str, Any]) -> Any:
    """A forecast of that kind for the model at ``module:name``, fitted on the rows of the file."""
    from calipers.exceptions import CalipersError, InputError

    if model is None:
        raise InputError(f"--model must name an estimator as {_SPLIT}, or --losses a column of losses.")
    X, y = features_and_target(read_rows(data), target)
    performance = kind(load_estimator(model), **options)
    try:
        return performance.fit(X, y)
    except CalipersError:
        raise
    except (TypeError, ValueError) as error:  # a model that cannot take these columns is not a fault of ours
        raise InputError(
            f"{model} cannot be fitted on {data} ({error}). Text needs a pipeline that encodes it."
        ) from None


def read_rows(data: Path) -> Any:
    """The rows of a file as a table."""
    from calipers.inputs.files import read_table

    return read_table(data)


def require_column(column: str, table: Any, option: str) -> None:
    """Refuse a column that the table does not have."""
    from calipers.exceptions import InputError

    if column not in table.columns:
        names = ", ".join(table.columns)
        raise InputError(f"{option} must be a column of the file, got {column!r}; it has {names}.")


def features_and_target(table: Any, target: str) -> tuple[Any, Any]:
    """Features as a matrix when all are numbers, else as a frame for a pipeline; the target as an array."""
    require_column(target, table, "--target")
    features = table.drop(target)
    if "X" in features.columns and features["X"].dtype.is_nested():  # the matrix of an npz file
        return features["X"].to_numpy(), table[target].to_numpy()
    numeric = all(dtype.is_numeric() for dtype in features.dtypes)
    return features.to_numpy() if numeric else features, table[target].to_numpy()


def load_estimator(place: str) -> Any:
    """The estimator at ``module:name``: itself, an instance of the class, or what the function makes.

    Modules in the current folder are found, as with ``python -m``.

    Examples
    --------
    >>> from calipers.cli.forecast_rows import load_estimator
    >>> load_estimator("sklearn.linear_model:Ridge")
    Ridge()
    """
    import importlib
    import sys

    from calipers.exceptions import InputError

    module, separator, name = place.partition(":")
    if not separator or not module or not name:
        raise InputError(f"--model must have the form {_SPLIT}, got {place!r}.")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found = getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        raise InputError(f"--model names the module {module!r}, which cannot be imported: {error}.") from None
    except AttributeError:
        raise InputError(f"--model names {name!r}, which is not in the module {module!r}.") from None
    finally:
        sys.path.pop(0)
    made = found if hasattr(found, "fit") and not isinstance(found, type) else found()
    if not hasattr(made, "fit"):
        raise InputError(
            f"--model must give an object with a method fit, {place!r} gave {type(made).__name__}."
        )
    return made
