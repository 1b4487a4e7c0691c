"""Named estimates that belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from calipers.arrays.frames import build_frame
from calipers.exceptions import InputError
from calipers.results.estimate import Estimate
from calipers.results.formatting import format_interval, format_number, format_p_value
from calipers.results.html import table_html
from calipers.results.plotting import Plotted

_COLUMNS = (
    "value", "std_error", "low", "high", "confidence", "n", "p_value", "alternative",
    "null_low", "null_high", "null_level", "method", "reason",
)  # fmt: skip


class EstimateTable(Plotted, Mapping[str, Estimate]):
    """A read-only mapping from name to `Estimate`, in a fixed order.

    Parameters
    ----------
    estimates : mapping or iterable of Estimate
        With an iterable, each estimate's own name is its key; names must differ.
    title : str
        Printed above the table.
    notes : iterable of str
        Sentences printed below it: what the table means and how to read it.

    Examples
    --------
    >>> from calipers.results import Estimate, EstimateTable
    >>> table = EstimateTable([Estimate(name="S", value=1.25, std_error=0.01)])
    >>> float(table["S"])
    1.25
    >>> table.to_frame()["value"].to_list()
    [1.25]
    """

    __slots__ = ("_estimates", "_notes", "_title")

    def __init__(
        self,
        estimates: Mapping[str, Estimate] | Iterable[Estimate],
        *,
        title: str = "",
        notes: Iterable[str] = (),
    ) -> None:
        self._estimates = dict(estimates) if isinstance(estimates, Mapping) else _by_name(estimates)
        self._title = title
        self._notes = tuple(notes)

    @property
    def title(self) -> str:
        """What the table is about."""
        return self._title

    @property
    def notes(self) -> tuple[str, ...]:
        """How to read it."""
        return self._notes

    def __getitem__(self, name: str) -> Estimate:
        try:
            return self._estimates[name]
        except KeyError:
            raise KeyError(f"{name!r} is not in the table; it has {', '.join(self)}.") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._estimates)

    def __len__(self) -> int:
        return len(self._estimates)

    def to_frame(self, backend: str = "polars") -> Any:
        """One row per estimate as a polars, pandas or pyarrow table; details stay behind."""
        columns: dict[str, list[Any]] = {"name": list(self)}
        for field in _COLUMNS:
            columns[field] = [getattr(estimate, field) for estimate in self.values()]
        return build_frame(columns, backend=backend)

    def to_dict(self) -> dict[str, Any]:
        """Title, notes and every estimate as plain dictionaries."""
        return {
            "title": self._title,
            "notes": list(self._notes),
            "estimates": {name: estimate.to_dict() for name, estimate in self.items()},
        }

    def __repr__(self) -> str:
        return f"EstimateTable({', '.join(self)})"

    def __str__(self) -> str:
        rows = [("", "value", "interval", "null", "p")] + [
            _row(name, estimate) for name, estimate in self.items()
        ]
        used = [i for i in range(5) if i < 2 or any(row[i] for row in rows[1:])]
        widths = {i: max(len(row[i]) for row in rows) for i in used}
        lines = ["  ".join(row[i].ljust(widths[i]) for i in used).rstrip() for row in rows]
        return "\n".join(filter(None, [self._title, *lines, *self._notes]))

    def _repr_html_(self) -> str:
        rows = [(_row(name, estimate), estimate) for name, estimate in self.items()]
        return table_html(rows, title=self._title, notes=self._notes)


def _by_name(estimates: Iterable[Estimate]) -> dict[str, Estimate]:
    found: dict[str, Estimate] = {}
    for estimate in estimates:
        if estimate.name in found:
            raise InputError(f"estimates must have different names, {estimate.name!r} appears twice.")
        found[estimate.name] = estimate
    return found


def _row(name: str, e: Estimate) -> tuple[str, str, str, str, str]:
    spread = e._spread()
    interval = (
        "" if e.low is None or e.high is None
        else f"[{format_interval(e.low, e.high, spread)}]"
    )  # fmt: skip
    if not interval and e.std_error:
        interval = f"± {format_number(e.std_error, e.std_error)}"
    null = e._null_band()
    p = "" if e.p_value is None else format_p_value(e.p_value)
    return name, format_number(e.value, spread), interval, null, p
