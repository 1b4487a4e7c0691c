"""The table of an audit: what was promised, in which slices of the rows, and whether it was kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

from calipers.results.finding import severity_rank
from calipers.results.formatting import format_count, format_interval, format_number, p_in_words
from calipers.results.html import promise_html
from calipers.results.plotting import Plotted

# The worst first: of several checks that fill one cell the first of these is shown.
ANSWERS = ("broken", "cannot tell", "mostly kept", "kept", "descriptive", "not asked")
# A promise broken by a warning has words and a mark of its own, as its tile and its card do.
NOT_QUITE = "not quite kept"
ANSWER_MARKS = {
    "broken": "✗", NOT_QUITE: "!", "cannot tell": "?", "mostly kept": "~", "kept": "✓", "measured only": "·",
    "not asked": "–",
}  # fmt: skip
_OF_OUTCOMES = {
    "fault": "broken", "clean": "kept", "cannot_tell": "cannot tell", "not_applicable": "not asked"
}  # fmt: skip
# What the answer to one of the six questions says about what was promised.
OF_QUESTIONS = {"no": "broken", "doubtful": NOT_QUITE, "mostly": "mostly kept", "yes": "kept"}
# Families of slices, in the order a table shows them.
SLICES = ("all rows", "score", "groups", "features", "difficulty", "time", "label")
_SLICE_NAMES = {"score": "stated probability", "label": "true label"}


def slice_name(part: str) -> str:
    """A family of slices for people.

    Examples
    --------
    >>> slice_name("score"), slice_name("groups")
    ('stated probability', 'groups')
    """
    return _SLICE_NAMES.get(part, part)


def answer_of_finding(outcome: str, severity: str, details: Mapping[str, Any]) -> str:
    """What a finding says about its promise; ``details`` tell its own severity, effect and kind.

    Examples
    --------
    >>> answer_of_finding("fault", "note", {"effect": 0.01}), answer_of_finding("fault", "issue", {})
    ('mostly kept', 'broken')
    """
    answer = _OF_OUTCOMES[outcome]
    if details.get("own_severity", severity) == "note":
        # A difference above the promise breaks nothing: a group may be covered more often than another.
        answer = "kept" if (details.get("effect") or 0.0) < 0 else "mostly kept"
    return "descriptive" if answer == "kept" and details.get("descriptive") else answer


@dataclass(frozen=True, slots=True, kw_only=True)
class PromiseCell:
    """One promise in one family of slices.

    Parameters
    ----------
    promise, slice : str
        What was promised, and over which slices it was looked at.
    answer : {"kept", "mostly kept", "broken", "cannot tell", "descriptive", "not asked"}
        Whether it was kept; "broken" is a fault of severity warning or issue, "mostly kept" one that is too
        small to act on (a note), "descriptive" a number about which nothing was promised.
    value, low, high : float or None
        The number behind it and its interval.
    p_value : float or None
        Corrected for all tests of the audit.
    n : float or None
        Rows that were looked at.
    code, where : str
        Code of the finding, and where the promise is kept least well.
    severity : {"none", "note", "warning", "issue"}
        Of the finding by itself, also where another one explains it.

    Examples
    --------
    >>> from calipers.results import PromiseCell
    >>> PromiseCell(promise="coverage", slice="groups", answer="broken", code="CAL201").answer
    'broken'
    """

    promise: str
    slice: str
    answer: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    n: float | None = None
    code: str = ""
    where: str = ""
    severity: str = "none"

    @property
    def shown(self) -> str:
        """The answer in the words of a page, which tell a warning from an issue."""
        if self.answer == "descriptive":
            return "measured only"
        return NOT_QUITE if self.answer == "broken" and self.severity == "warning" else self.answer

    @property
    def spread(self) -> float | None:
        """Width of the interval; None without one."""
        return None if self.low is None or self.high is None else float(self.high - self.low)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {name: getattr(self, name) for name in self.__slots__}


def _weight(cell: PromiseCell) -> tuple[int, int]:
    """The more a cell says the smaller."""
    return ANSWERS.index(cell.answer), -severity_rank(cell.severity)


class PromiseTable(Plotted, Mapping[tuple[str, str], PromiseCell]):
    """(promise, slice) -> `PromiseCell`; of several checks that fill a cell the one that says most counts.

    Parameters
    ----------
    cells : sequence of PromiseCell
        Every cell that was looked at.

    Examples
    --------
    >>> from calipers.results import PromiseCell, PromiseTable
    >>> table = PromiseTable([PromiseCell(promise="coverage", slice="time", answer="kept", code="CAL204")])
    >>> table["coverage", "time"].answer, table.promises, table.slices
    ('kept', ('coverage',), ('time',))
    """

    __slots__ = ("cells",)

    def __init__(self, cells: Sequence[PromiseCell]) -> None:
        self.cells = tuple(cells)

    @classmethod
    def of(cls, rows: Iterable[Mapping[str, Any]]) -> Self:
        """From the rows of a stored table; names that are not known are passed over."""
        known = PromiseCell.__slots__
        return cls([PromiseCell(**{key: row[key] for key in known if key in row}) for row in rows])

    def _by_key(self) -> dict[tuple[str, str], PromiseCell]:
        found: dict[tuple[str, str], PromiseCell] = {}
        for cell in self.cells:
            key = (cell.promise, cell.slice)
            if key not in found or _weight(cell) < _weight(found[key]):
                found[key] = cell
        return found

    def cell(self, promise: str, part: str) -> PromiseCell:
        """The cell; one that says "not asked" where nothing was checked."""
        return self._by_key().get(
            (promise, part), PromiseCell(promise=promise, slice=part, answer="not asked")
        )

    def number(self, promise: str, part: str) -> str:
        """The value with the digits its interval deserves; empty where there is none."""
        cell = self.cell(promise, part)
        return "" if cell.value is None else format_number(cell.value, cell.spread)

    def words(self, promise: str, part: str) -> str:
        """Everything the cell knows, in one line."""
        cell = self.cell(promise, part)
        facts = [self.number(promise, part)]
        if cell.low is not None and cell.high is not None:
            ends = format_interval(cell.low, cell.high, cell.spread)
            facts.append(f"interval {ends.replace(', ', ' to ')}")
        if cell.p_value is not None:
            facts.append(p_in_words(cell.p_value))
        if cell.n is not None:
            facts.append(f"{format_count(cell.n)} rows")
        known = ", ".join(fact for fact in facts if fact)
        parts = [f"{promise}, {slice_name(part)}: {cell.shown}", known, cell.where]
        return "; ".join(piece for piece in parts if piece)

    def __getitem__(self, key: tuple[str, str]) -> PromiseCell:
        return self._by_key()[key]

    def __iter__(self) -> Iterator[tuple[str, str]]:
        return iter(self._by_key())

    def __len__(self) -> int:
        return len(self._by_key())

    @property
    def promises(self) -> tuple[str, ...]:
        """Every promise, in order."""
        return tuple(dict.fromkeys(cell.promise for cell in self.cells))

    @property
    def slices(self) -> tuple[str, ...]:
        """Every family of slices, in order."""
        seen = {cell.slice for cell in self.cells}
        return tuple(name for name in SLICES if name in seen) + tuple(sorted(seen - set(SLICES)))

    def to_frame(self) -> Any:
        """One row per promise and slice as a polars frame."""
        import polars as pl

        return pl.DataFrame([cell.to_dict() for cell in self._by_key().values()], infer_schema_length=None)

    def to_dict(self) -> list[dict[str, Any]]:
        """One dictionary per promise and slice."""
        return [cell.to_dict() for cell in self._by_key().values()]

    def __repr__(self) -> str:
        broken = sum(cell.answer == "broken" for cell in self._by_key().values())
        return f"PromiseTable({len(self.promises)} promises x {len(self.slices)} slices, {broken} broken)"

    def _repr_html_(self) -> str:
        cells = self._by_key()
        rows = [
            (promise, [(cells[promise, part].shown if (promise, part) in cells else "not asked",
                        self.words(promise, part)) for part in self.slices])
            for promise in self.promises
        ]  # fmt: skip
        return promise_html([slice_name(part) for part in self.slices], rows, ANSWER_MARKS)

    def __str__(self) -> str:
        cells, width = self._by_key(), max((len(name) for name in self.promises), default=0)
        lines = ["  ".join([" " * width, *(f"{name:>12}" for name in self.slices)])]
        for promise in self.promises:
            words = (cells[promise, s].shown if (promise, s) in cells else "" for s in self.slices)
            lines.append("  ".join([f"{promise:<{width}}", *(f"{word:>12}" for word in words)]))
        return "\n".join(lines)
