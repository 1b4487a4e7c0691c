"""The table promises x slices as a grid: one answer per cell, ready to be drawn or read aloud."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from calipers.results.formatting import format_count, format_number, format_p_value

# The worst first: of several answers for one cell the first of these is shown.
ANSWERS = ("broken", "cannot tell", "kept", "not asked")
ANSWER_MARKS = {"broken": "✗", "cannot tell": "?", "kept": "✓", "not asked": "–"}


@dataclass(frozen=True, slots=True)
class PromiseGrid:
    """Promises down, slices across.

    Parameters
    ----------
    promises, slices : tuple of str
        Names, in the order in which they were looked at.
    cells : mapping
        (promise, slice) -> the row of the table; what was never looked at is not in it.

    Examples
    --------
    >>> from calipers.results import PromiseGrid
    >>> grid = PromiseGrid.of([{"promise": "sets at 90 %", "slice": "all rows", "answer": "broken",
    ...                         "value": 0.856, "low": 0.845, "high": 0.867, "p_value": 1e-9, "n": 4000}])
    >>> grid.answer("sets at 90 %", "all rows"), grid.number("sets at 90 %", "all rows")
    ('broken', '0.856')
    >>> grid.words("sets at 90 %", "all rows")
    'sets at 90 %, all rows: broken; 0.856, interval 0.845 to 0.867, p = 1.0e-09, 4000 rows'
    """

    promises: tuple[str, ...]
    slices: tuple[str, ...]
    cells: Mapping[tuple[str, str], Mapping[str, Any]]

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> PromiseGrid:
        """From the rows of the table; of several for one cell the worst is kept."""
        cells: dict[tuple[str, str], Mapping[str, Any]] = {}
        for row in rows:
            key = (str(row["promise"]), str(row["slice"]))
            if key not in cells or _rank(row) < _rank(cells[key]):
                cells[key] = row
        promises, slices = (tuple(dict.fromkeys(key[i] for key in cells)) for i in (0, 1))
        return cls(promises, slices, cells)

    def cell(self, promise: str, part: str) -> Mapping[str, Any]:
        """The row of the table; one that says "not asked" where there is none."""
        return self.cells.get((promise, part), {"answer": "not asked"})

    def answer(self, promise: str, part: str) -> str:
        """Kept, broken, cannot tell or not asked."""
        return str(self.cell(promise, part)["answer"])

    def number(self, promise: str, part: str) -> str:
        """The value with the digits its interval deserves; empty where there is none."""
        row = self.cell(promise, part)
        return "" if row.get("value") is None else format_number(row["value"], _spread(row))

    def words(self, promise: str, part: str) -> str:
        """Everything the cell knows, in one line."""
        row, spread = self.cell(promise, part), _spread(self.cell(promise, part))
        facts = [self.number(promise, part)]
        if spread is not None:
            facts.append(
                f"interval {format_number(row['low'], spread)} to {format_number(row['high'], spread)}"
            )
        if row.get("p_value") is not None:
            facts.append(f"p = {format_p_value(row['p_value'])}")
        if row.get("n") is not None:
            facts.append(f"{format_count(row['n'])} rows")
        known = ", ".join(fact for fact in facts if fact)
        parts = [f"{promise}, {part}: {row['answer']}", known, str(row.get("where") or "")]
        return "; ".join(piece for piece in parts if piece)


def _rank(row: Mapping[str, Any]) -> int:
    return ANSWERS.index(row["answer"])


def _spread(row: Mapping[str, Any]) -> float | None:
    low, high = row.get("low"), row.get("high")
    return None if low is None or high is None else float(high - low)
