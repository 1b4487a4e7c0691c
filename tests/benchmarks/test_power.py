"""Two versions are compared on the same samples, and a stopped run goes on."""

from __future__ import annotations

import json

import pytest

from benchmarks import power


@pytest.fixture
def points(monkeypatch):
    chosen = tuple(point for point in power.POINTS if point.test == "T-CV")[:1]
    monkeypatch.setattr(power, "POINTS", chosen)
    return chosen


def test_the_same_runs_give_the_same_rejections(points):
    (point,) = points
    assert power.rejections(point, 6) == power.rejections(point, 8)[:6]


def test_the_table_pairs_the_runs_of_two_files(points, tmp_path, capsys):
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    old.write_text(json.dumps({points[0].key: [0, 0, 1, 1]}), encoding="utf-8")
    new.write_text(json.dumps({points[0].key: [1, 0, 1, 1, 1, 1]}), encoding="utf-8")
    power.main(["--table", str(old), str(new)])
    assert "| 2000 | 4 | 0.500 | 0.750 | +0.250 ± 0.217 |" in capsys.readouterr().out


def test_points_with_enough_runs_are_not_run_again(points, tmp_path, capsys):
    out = tmp_path / "new.json"
    for _ in range(2):
        power.main(["--out", str(out), "--runs", "3"])
    assert capsys.readouterr().out.count("of 3") == 1
    assert len(json.loads(out.read_text(encoding="utf-8"))[points[0].key]) == 3


def test_every_test_has_points_of_its_own():
    assert {point.test for point in power.POINTS} == {"T-CV", "ERT", "calibration error", "failing regions"}
    assert len({point.key for point in power.POINTS}) == len(power.POINTS)
