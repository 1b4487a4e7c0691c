"""Every promise has its worlds; a short run of the grid in the fast lane, all of it in the slow lane."""

from __future__ import annotations

import os

import pytest

import calipers.calibration
import calipers.conformal
import calipers.performance
from calipers.metrics import metric_entries
from calipers.performance.caching import ResumableCache
from tests.grid.promises import NO_PROMISE, PROMISES
from tests.grid.readings import Count
from tests.grid.running import read_records, run_cell, run_promise

ROOMS = (calipers.performance, calipers.calibration, calipers.conformal)


def test_every_registered_metric_declares_its_worlds():
    assert {entry.name for entry in metric_entries()} <= set(PROMISES)


def test_every_public_name_with_a_promise_declares_its_worlds():
    public = {name for room in ROOMS for name in room.__all__}
    assert public - set(PROMISES) - set(NO_PROMISE) == set()
    assert set(NO_PROMISE) <= public


@pytest.mark.parametrize("name", PROMISES)
def test_the_worlds_of_a_promise_can_be_drawn(name):
    """One small regime per promise: what is measured is counted, and what is missing has its reason."""
    promise = PROMISES[name]
    regime = min((r for r in promise.regimes if r.form == "plain"), key=lambda r: r.n)
    counts = run_cell(promise, regime, (2,))
    assert counts
    assert all("NO REASON GIVEN" not in count.reasons for count in counts.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISES)
def test_the_promise_is_kept_in_every_regime(name):
    """Finished cells are kept in the folder CALIPERS_GRID_CACHE, so that a stopped run goes on."""
    cells = run_promise(PROMISES[name], ResumableCache.open(os.environ.get("CALIPERS_GRID_CACHE"), "grid"))
    assert missed_bars({name: cells}) == []


def missed_bars(records):
    """Promise, regime, key and the bar that is missed."""
    return [
        f"{name} | {regime} | {key} | {line}"
        for name, cells in records.items()
        for regime, cell in cells.items()
        for key, stored in cell.items()
        for line in Count.from_json(stored).failures()
    ]


def test_the_recorded_grid_has_the_cells_of_the_table():
    """The records are those of the worlds that are declared now."""
    records = read_records()
    for name, promise in PROMISES.items():
        assert set(records.get(name, {})) <= {regime.name for regime in promise.regimes}
