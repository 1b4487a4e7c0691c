"""Metrics that need every row at once: the rows are kept, up to a limit, in an order of their own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from calipers.arrays import is_frame
from calipers.exceptions import InputError
from calipers.inference.state import Result, State
from calipers.inputs import Features, check_features
from calipers.inputs.joined_columns import joined
from calipers.inputs.rows import Rows

MAX_ROWS = 5_000_000


class GatherState(State):
    """The columns themselves, finished by the metric's public function.

    The rows are sorted by their content before the end, so that neither the split nor the order of
    arrival can matter.
    """

    __slots__ = ("classes", "columns", "function", "options", "parts", "weighted")

    def __init__(
        self,
        function: Callable[..., Result],
        columns: tuple[str, ...],
        options: dict[str, Any],
        *,
        weighted: bool,
    ) -> None:
        self.function, self.columns, self.options, self.weighted = function, columns, options, weighted
        self.parts: list[dict[str, Any]] = []
        self.classes: Any = None

    @property
    def needs(self) -> frozenset[str]:
        """Its columns."""
        return frozenset(self.columns) | {"sample_weight"}

    def absorb(self, block: Rows) -> None:
        """Keep the block's columns."""
        part: dict[str, Any] = {name: _kept(block, name) for name in self.columns}
        self.classes = block.classes if self.classes is None else self.classes
        if block.weights is not None:
            part["sample_weight"] = block.weights
        self.parts.append(part)
        self._refuse_too_many()

    def merge(self, other: Self) -> Self:
        """Keep the other's columns too."""
        self.parts += other.parts
        self.classes = other.classes if self.classes is None else self.classes
        self._refuse_too_many()
        return self

    def _refuse_too_many(self) -> None:
        rows = sum(len(next(iter(part.values()))) for part in self.parts)
        if rows > MAX_ROWS:
            raise InputError(
                f"{self.function.__name__} needs all rows at once and there are more than {MAX_ROWS:,}; "
                "measure it on a random sample of the rows."
            )

    def finish(self) -> Result:
        """The metric over all rows."""
        columns = {name: joined([part[name] for part in self.parts]) for name in self.parts[0]}
        if "X" in columns:
            columns["X"] = check_features(columns["X"])
        order = content_order([c.values if isinstance(c, Features) else c for c in columns.values()])
        ordered = {name: _taken(column, order) for name, column in columns.items()}
        weights = ordered.pop("sample_weight", None)
        given = {"sample_weight": weights} if self.weighted and weights is not None else {}
        if self.classes is not None and "y_true" in self.columns:
            given |= {k: v for k, v in {"classes": self.classes}.items() if k in _parameters(self.function)}
        return self.function(*(ordered[name] for name in self.columns), **self.options, **given)


def _kept(block: Rows, name: str) -> Any:
    """The column as it was given: the metric checks it itself; a copy, so that no piece is kept alive."""
    value = block.given.get(name)
    if value is None:
        return block[name]
    return value if is_frame(value) else np.array(value)


def _taken(column: Any, order: np.ndarray) -> Any:
    return column.take(order) if isinstance(column, Features) else column[order]


def _parameters(function: Callable[..., Any]) -> Any:
    import inspect

    return inspect.signature(function).parameters


def in_content_order(*columns: np.ndarray) -> list[np.ndarray]:
    """The rows in an order of their own, so that draws do not follow the order they were given in."""
    order = content_order(list(columns))
    return [column[order] for column in columns]


def content_order(columns: list[np.ndarray]) -> np.ndarray:
    """An order of the rows that depends on their content only (equal rows are interchangeable)."""
    flat = [column.reshape(len(column), -1) for column in columns]
    keys = [column[:, j] for column in reversed(flat) for j in reversed(range(column.shape[1]))]
    return np.lexsort(keys)
