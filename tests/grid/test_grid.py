"""Every promise has its worlds; a short run of the grid in the fast lane, all of it in the slow lane."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

import calipers.calibration
import calipers.conformal
import calipers.performance
from calipers.metrics import metric_entries
from calipers.performance.caching import ResumableCache
from tests.grid.page import PAGE, counts_of, missing_numbers, page
from tests.grid.promises import NO_PROMISE, PROMISES
from tests.grid.readings import Count
from tests.grid.regimes import Regime
from tests.grid.running import decided, read_records, run_cell, run_promise

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


# Cells in which a promise was once broken, or is kept narrowly; cheap enough for every run.
HARSHEST = (
    ("proper_scores", Regime(20, "near-perfect")),
    ("proper_scores", Regime(2000, events=0.2)),
    ("crps", Regime(200, "near-perfect")),
    ("deficit", Regime(200, "uneven")),
    ("calibration_slope", Regime(2000, events=1.0)),
    ("calibration_error", Regime(2000, events=0.2)),
    ("expected_calibration_error", Regime(200, "uneven")),
    ("efficiency", Regime(200, "near-perfect")),
    ("t_ss", Regime(200, "sound", "ties")),
    ("rank_ss", Regime(600, "hopeless")),
    ("size_coverage_hsic", Regime(200, "sound", "constant")),
    ("coverage", Regime(200, n_calibration=19)),
    ("loss_ratio", Regime(20, "near-perfect")),
    ("PromiseMonitor", Regime(200, n_calibration=19)),
    ("DifficultyBins", Regime(90)),
)


@pytest.mark.parametrize(("name", "regime"), HARSHEST, ids=lambda v: v if isinstance(v, str) else v.name)
def test_the_promise_is_kept_in_the_harshest_regimes(name, regime):
    assert regime in PROMISES[name].regimes
    counts = run_cell(PROMISES[name], regime, (40,))
    assert {key: count.failures() for key, count in counts.items() if count.failures()} == {}


@pytest.mark.slow
@pytest.mark.parametrize("name", PROMISES)
def test_the_promise_is_kept_in_every_regime(name):
    """Finished cells are kept in the folder CALIPERS_GRID_CACHE, so that a stopped run goes on.

    CALIPERS_GRID_RUNS sets the runs of every cell, for a quick look at all of them.
    """
    promise, runs = PROMISES[name], os.environ.get("CALIPERS_GRID_RUNS")
    promise = promise if runs is None else replace(promise, runs=(int(runs),))
    cells = run_promise(promise, ResumableCache.open(os.environ.get("CALIPERS_GRID_CACHE"), "grid"))
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
    declared = {name: {regime.name for regime in promise.regimes} for name, promise in PROMISES.items()}
    assert {name: set(cells) for name, cells in records.items()} == declared


def test_every_bar_is_met_in_the_recorded_grid():
    assert missed_bars(read_records()) == []


def test_at_most_a_tenth_of_the_promised_numbers_is_missing_and_each_says_why():
    asked, missing, why = missing_numbers(counts_of(read_records()))
    assert missing <= 0.1 * asked
    assert not any("NO REASON GIVEN" in reason for reason in why)


def test_the_page_is_that_of_the_recorded_grid():
    assert PAGE.read_text(encoding="utf-8") == page(read_records()), "python -m tests.grid.page writes it"


def test_counts_beyond_the_bar_are_told_from_noise():
    # 93 % of 100: 82 or fewer have a tail below 0.001 (0.0002); 85 do not (0.005).
    assert Count(intervals=100, held=82).failures()
    assert not Count(intervals=100, held=85).failures()
    assert Count(tests=100, rejected={0.05: 17, 0.01: 0}).failures()
    assert not Count(tests=100, rejected={0.05: 12, 0.01: 4}).failures()


def test_counts_beyond_a_bar_by_chance_get_more_runs():
    assert Count(intervals=100, held=92).is_beyond()
    assert not Count(intervals=100, held=93).is_beyond()
    assert Count(tests=100, rejected={0.05: 5, 0.01: 2}).is_beyond()
    cell = Count(intervals=100, held=92).to_json()
    assert decided({"doubtful": {"value": cell}, "clear": {"value": cell | {"held": 97}}}).keys() == {"clear"}
