"""Calibration in the large: probabilities that are too high or too low over all rows fill a cell of their own."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from scipy import stats

import calipers
from calipers.auditing.promise_rows import PromiseRows
from calipers.engines import ArraySource
from calipers.inputs.rows import Rows

CLASS, TOP = "probability of class 1", "probability of the top label"


def binary(n: int, gap: float, seed: int = 0) -> dict[str, Any]:
    """Probabilities of the second class that are all too high by the gap."""
    rng = np.random.default_rng(seed)
    stated = rng.uniform(0.2, 0.8, n)
    return {"y_true": (rng.random(n) < stated - gap).astype(int), "probabilities": stated}


def three_classes(n: int, gap: float) -> dict[str, Any]:
    """The top label happens less often than stated, by the gap."""
    rng = np.random.default_rng(0)
    P = np.sort(rng.dirichlet([2, 2, 2], n), axis=1)[:, ::-1]
    u = rng.random(n)
    return {"y_true": np.where(u < P[:, 0] - gap, 0, 1 + (rng.random(n) < 0.5)), "probabilities": P}


@pytest.mark.parametrize(("gap", "word"), [(0.05, "high"), (-0.05, "low")])
def test_probabilities_all_five_points_off_are_broken_over_all_rows(gap: float, word: str) -> None:
    rows = binary(4000, gap)
    found = calipers.audit(**rows, random_state=0)
    cell = found.promises[CLASS, "all rows"]
    assert (cell.answer, cell.code, cell.n) == ("broken", "CAL509", 4000)
    assert cell.value == pytest.approx(np.mean(rows["y_true"] - rows["probabilities"]), abs=1e-12)
    assert cell.low < -gap < cell.high
    finding = next(f for f in found.findings if f.code == "CAL509")
    assert f"is too {word}" in finding.sentence


def test_the_fault_of_all_rows_is_told_once() -> None:
    found = calipers.audit(**binary(4000, 0.05), random_state=0)
    assert [f.code for f in found.faults if f.severity in {"warning", "issue"}] == ["CAL503"]
    assert next(f for f in found.faults if f.code == "CAL509").details["explained_by"] == "CAL503"


def test_the_top_label_of_three_classes_has_the_cell_too() -> None:
    found = calipers.audit(**three_classes(4000, 0.08), random_state=0)
    assert found.promises[TOP, "all rows"].answer == "broken"
    assert next(f for f in found.faults if f.code == "CAL509").details["explained_by"] == "CAL501"


def test_right_probabilities_are_kept_over_all_rows() -> None:
    cell = calipers.audit(**binary(4000, 0.0), random_state=0).promises[CLASS, "all rows"]
    assert cell.answer == "kept"
    assert cell.low < 0 < cell.high


def test_too_few_rows_cannot_tell() -> None:
    assert (
        calipers.audit(**binary(60, 0.0), random_state=0).promises[CLASS, "all rows"].answer == "cannot tell"
    )


def test_streamed_rows_fill_the_same_cell() -> None:
    rows = binary(3000, 0.05) | {"row_id": np.arange(3000)}
    loaded = calipers.audit(**rows, random_state=0)
    streamed = calipers.audit(source=ArraySource(rows, piece_rows=401), random_state=0)
    one, other = (a.promises[CLASS, "all rows"] for a in (loaded, streamed))
    assert one.to_dict() == other.to_dict()
    cells = json.loads(loaded.to_json())["promises"]
    assert next(c for c in cells if (c["promise"], c["slice"]) == (CLASS, "all rows"))["code"] == "CAL509"


def test_rows_that_depend_on_each_other_are_tested_by_clusters() -> None:
    rng = np.random.default_rng(3)
    stated = np.repeat(rng.uniform(0.3, 0.7, 300), 10)
    together = np.repeat(rng.random(300), 10) < stated  # all rows of a cluster share their outcome
    own = np.repeat(np.arange(300), 10)
    rows = {"y_true": together.astype(int), "probabilities": stated, "cluster": own}
    cell = calipers.audit(**rows, random_state=0).promises[CLASS, "all rows"]
    assert cell.high - cell.low > 2.5 * 2 * 1.96 * np.sqrt(0.23 / 3000)
    assert cell.answer != "broken"


def side_of(kept: np.ndarray, promised: np.ndarray) -> PromiseRows:
    return PromiseRows(Rows({"covered": kept}), kept, promised, promised, None)


def test_a_share_that_is_met_exactly_leaves_nothing() -> None:
    assert side_of(np.arange(100) < 10, np.full(100, 0.1)).gap == 0.0


@pytest.mark.parametrize("events", [0.02, 0.5])
def test_the_interval_of_the_mean_difference_holds(events: float) -> None:
    # Sharp probabilities, half of them off: the interval must hold the true mean in 95 % of the samples.
    runs, n, rng = 400, 300, np.random.default_rng(4)
    missed = 0
    for _ in range(runs):
        t = rng.beta(0.5, 0.5 * (1 - events) / events, n)
        true = np.where(np.arange(n) < n // 2, t, 0.7 * t)
        low, high = side_of(rng.random(n) < true, t).gap_interval(0.95)
        missed += not low <= float(np.mean(true - t)) <= high
    assert missed <= stats.binom.ppf(0.999, runs, 0.05)


def test_sharp_probabilities_have_a_narrow_interval() -> None:
    rng = np.random.default_rng(5)
    t = rng.choice([0.02, 0.98], 1000)
    side = side_of(rng.random(1000) < t, t)
    low, high = side.gap_interval(0.95)
    assert high - low < 0.4 * np.diff(side.share_interval(0.95))[0]


def test_probabilities_that_are_too_sharp_may_be_right_on_average() -> None:
    rng = np.random.default_rng(6)
    t = rng.choice([0.001, 0.999], 2000)
    side = side_of(np.arange(2000) % 2 == 0, t - t.mean() + 0.5)
    assert side.gap_p_value(rng) > 0.9
    low, high = side.gap_interval(0.95)
    assert low < 0 < high


@pytest.mark.parametrize("events", [0.02, 0.5])
def test_the_test_of_the_mean_holds_its_size_and_finds_a_shift(events: float) -> None:
    runs, n, rng = 400, 300, np.random.default_rng(7)
    p = np.empty((2, runs))
    for run in range(runs):
        t = rng.beta(0.5, 0.5 * (1 - events) / events, n)
        for row, shift in enumerate((0.0, 0.1)):
            p[row, run] = side_of(rng.random(n) < np.minimum(t + shift, 1), t).gap_p_value(rng)
    assert np.sum(p[0] <= 0.05) <= stats.binom.ppf(0.999, runs, 0.05)
    assert np.mean(p[1] <= 0.05) > 0.8
