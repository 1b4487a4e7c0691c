"""When it changed, and what happened before and after."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.metrics.over_time.time_nulls import TimeNull
from calipers.metrics.over_time.time_units import TimeUnits


def change_details(units: TimeUnits, law: TimeNull, at: int | None) -> dict[str, Any]:
    """Place, direction and coverage of the change that window number ``at`` stands for; None: no window."""
    if at is None:
        return {"changed_at": None, "until": None, "window": None, "sign": 0}
    first, stop = _exact_window(units, law, at)
    n_times = len(units.first_of_time)
    seen = law.seen[law.windows.start[at] : law.windows.stop[at]].sum()
    window = (units.time_at(first), units.time_at(stop - 1))
    details = {"window": window, "sign": int(np.sign(seen)), "until": None, "changed_at": None}
    if first == 0 and stop == n_times:
        return details | _both(units, n_times, n_times) | {"sentence": _sentence(units, None, None, n_times)}
    # A window at the beginning ends where things change; any other begins there.
    change, end = (stop, n_times) if first == 0 else (first, stop)
    details["changed_at"] = units.time_at(change)
    if end < n_times:
        details["until"] = units.time_at(end - 1)
    return details | _both(units, change, end) | {"sentence": _sentence(units, change, end, n_times)}


def _exact_window(units: TimeUnits, law: TimeNull, at: int) -> tuple[int, int]:
    """The window in distinct times, half-open; ends are moved to where it differs most from other times."""
    first = int(np.searchsorted(units.cell_of_time, law.windows.start[at]))
    stop = int(np.searchsorted(units.cell_of_time, law.windows.stop[at]))
    n_times = len(units.cell_of_time)
    walk, rows = (np.append(0.0, np.cumsum(c)) for c in _per_time(units, law))
    reach = (stop - first) // 2 if law.is_target else 0
    if first > 0:
        first = _best(walk, rows, _near(units, first, reach), stop)
    if stop < n_times:
        stop = _best(walk, rows, _near(units, stop, reach), first)
    return (first, stop) if first < stop else (stop, first)


def _per_time(units: TimeUnits, law: TimeNull) -> tuple[np.ndarray, np.ndarray]:
    """What was seen per distinct time, with a cell's expectation spread over its rows, and the rows."""
    rows = units.per_time(units.weight)
    cell = units.cell_of_time
    share = rows / units.per_cell(units.weight)[cell]
    residual = units.per_time(units.hits - units.weight * units.promised)
    shift = law.seen - units.per_cell(units.hits - units.weight * units.promised)
    return residual + share * shift[cell], rows


def _near(units: TimeUnits, place: int, reach: int) -> np.ndarray:
    """Distinct times inside the cells on either side of a place, and at least so far from it."""
    cell = units.cell_of_time
    low, high = cell[max(place - 1, 0)], cell[min(place, len(cell) - 1)]
    first, last = np.searchsorted(cell, low), np.searchsorted(cell, high, side="right")
    return np.arange(max(min(first, place - reach), 0), min(max(last, place + reach + 1), len(cell) + 1))


def _best(walk: np.ndarray, rows: np.ndarray, places: np.ndarray, other: int) -> int:
    """The place that, with the other end of the window, departs most from all other times."""
    places = places[(places > 0) & (places < len(walk) - 1) & (places != other)]
    if not places.size:
        return other
    share = np.abs(rows[places] - rows[other]) / rows[-1]
    mean = walk[-1] * share
    inside = np.abs(walk[places] - walk[other] - np.where(places > other, mean, -mean))
    return int(places[np.argmax(inside / np.sqrt(np.maximum(share * (1 - share), 1e-300)))])


def _both(units: TimeUnits, change: int, end: int) -> dict[str, float | None]:
    """Rows, coverage and promise before the change, and from it to its end."""
    columns = (units.weight, units.hits, units.weight * units.promised)
    rows, hits, promised = (np.append(0.0, np.cumsum(units.per_time(c))) for c in columns)
    details: dict[str, float | None] = {}
    for name, first, stop in (("before", 0, change), ("after", change, end)):
        total = float(rows[stop] - rows[first])
        details[f"rows_{name}"] = total
        details[f"coverage_{name}"] = float(hits[stop] - hits[first]) / total if total else None
        details[f"promised_{name}"] = float(promised[stop] - promised[first]) / total if total else None
    return details


def _sentence(units: TimeUnits, change: int | None, end: int | None, n_times: int) -> str:
    """The change in words."""
    if change is None or end is None:
        found = _both(units, n_times, n_times)
        return f"{found['coverage_before']:.1%} covered over the whole time"
    found = _both(units, change, end)
    words = f"{found['coverage_before']:.1%} covered before {units.time_at(change)}, "
    words += f"{found['coverage_after']:.1%} from then "
    return words + ("on" if end == n_times else f"until {units.time_at(end - 1)}")
