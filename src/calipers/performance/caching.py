"""A folder that remembers finished fits, so that an interrupted run goes on where it stopped.

One file of JSON lines per run, named after everything its values depend on: the data, the blocks, the
seeds, the estimator and the loss. A line that was cut off by the interruption is passed over.
"""

from __future__ import annotations

import json
import pickle
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np

from calipers.exceptions import InputTypeError
from calipers.performance.rows import Rows
from calipers.version import __version__


@dataclass(slots=True)
class FitCache:
    """Values of finished blocks; without a file it remembers nothing.

    Examples
    --------
    >>> from calipers.performance.caching import FitCache
    >>> FitCache(None).known
    {}
    """

    path: Path | None
    known: dict[int, Any] = field(default_factory=dict)

    @classmethod
    def open(
        cls,
        folder: str | None,
        estimator: Any,
        rows: Rows,
        train: np.ndarray,
        evaluate_rows: np.ndarray,
        seeds: np.ndarray,
        evaluate: Any,
    ) -> FitCache:
        """The cache of exactly this run, empty when it is new."""
        if folder is None:
            return cls(None)
        parts = (__version__, fingerprint(estimator), rows.X, rows.y, train, evaluate_rows, seeds)
        key = joblib.hash((joblib.hash(parts), fingerprint(evaluate)))
        place = Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        path = place / f"fits-{key}.jsonl"
        return cls(path, _read(path))

    def store(self, values: Mapping[int, Any]) -> None:
        """Append finished values and make sure they are on disk."""
        if self.path is None or not values:
            return
        with self.path.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps([j, _plain(value)]) + "\n" for j, value in values.items())


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _read(path: Path) -> dict[int, Any]:
    found: dict[int, Any] = {}
    if not path.exists():
        return found
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            index, value = json.loads(line)
        except ValueError:  # cut off in the middle
            continue
        found[int(index)] = value
    return found


def fingerprint(value: Any) -> str:
    """A name for an object that changes when its content, or the code of a function in it, changes.

    Examples
    --------
    >>> from calipers.performance.caching import fingerprint
    >>> fingerprint(lambda model, X, y: 1.0) == fingerprint(lambda model, X, y: 2.0)
    False
    """
    code = getattr(value, "__code__", None)
    if code is not None:
        closure = [fingerprint(cell.cell_contents) for cell in value.__closure__ or ()]
        constants = [repr(constant) for constant in code.co_consts if not hasattr(constant, "co_code")]
        parts = (value.__qualname__, code.co_code, constants, code.co_names, value.__defaults__, closure)
        return str(joblib.hash(parts))
    inner = getattr(value, "fingerprint_parts", None)
    if inner is not None:
        return str(joblib.hash([fingerprint(part) for part in inner()]))
    try:
        return str(joblib.hash(value))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise InputTypeError(
            f"cache needs an estimator and a loss that can be pickled, {type(value).__name__} cannot: "
            f"{error}. Define its functions at the top of a module, or run without a cache."
        ) from None
