"""``calipers monitor --group`` and ``--prometheus``."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

from calipers.cli import main
from calipers.cli.monitor_metrics import METRICS, prometheus_text
from calipers.performance import GroupMonitor, PromiseMonitor

RNG = np.random.default_rng(0)
SITE = RNG.choice(["north", 'so"uth'], 2000)
COVERED = RNG.random(2000) < np.where(SITE == "north", 0.9, 0.75)
# Of the exposition format: name, labels, value.
LINE = re.compile(r'^[a-z_]+(\{[a-z]+="(?:[^"\\\n]|\\.)*"\})? ([+-]?(?:Inf|[0-9.]+(?:e[+-]?[0-9]+)?))$')


@pytest.fixture
def rows(tmp_path):
    file = tmp_path / "rows.csv"
    pl.DataFrame({"covered": COVERED.astype(int), "site": SITE}).write_csv(file)
    return file


def test_groups_are_watched_each_and_kept_between_runs(rows, tmp_path, capsys):
    words = ["monitor", str(rows), "--alpha", "0.1", "--group", "site", "--state", str(tmp_path / "s.json")]
    assert main(words) == 1
    ours = GroupMonitor(alpha=0.1).update(COVERED, SITE)
    assert list(ours.alarms_) == ['so"uth']
    assert capsys.readouterr().out.splitlines() == [f"ALARM: {ours}", str(ours)]
    assert main([*words, "--json"]) == 1  # nothing new: the state is as it was
    with rows.open("a") as file:
        file.write("1,north\n")
    assert main([*words, "--json"]) == 1
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert (found["rows"], found["alarm_at"]) == (2001, ours.alarm_at_)
    assert found["groups"]["north"]["alarm"] is False
    assert found["groups"]['so"uth']["alarm_at"] == ours.alarms_['so"uth']


def test_another_monitor_in_the_state_is_refused(rows, tmp_path, capsys):
    words = ["monitor", str(rows), "--alpha", "0.1", "--state", str(tmp_path / "s.json")]
    main(words)
    assert main([*words, "--group", "site"]) == 2
    assert "--state holds a PromiseMonitor" in capsys.readouterr().err


def test_a_missing_group_column_is_named(rows, capsys):
    assert main(["monitor", str(rows), "--alpha", "0.1", "--group", "city"]) == 2
    assert "--group needs a column city" in capsys.readouterr().err


@pytest.mark.parametrize("group", [[], ["--group", "site"]])
def test_metrics_have_the_form_of_prometheus(group, rows, tmp_path, capsys):
    place = tmp_path / "calipers.prom"
    main(["monitor", str(rows), "--alpha", "0.1", "--prometheus", str(place), *group])
    lines = place.read_text().splitlines()
    values = [line for line in lines if not line.startswith("#")]
    assert all(LINE.match(line) for line in values)
    for name in {line.split("{")[0].split()[0] for line in values}:
        kind, means, _ = METRICS[name]
        assert f"# TYPE {name} {kind}" in lines
        assert f"# HELP {name} {means}" in lines
    monitor = (
        GroupMonitor(alpha=0.1).update(COVERED, SITE) if group else PromiseMonitor(alpha=0.1).update(COVERED)
    )
    assert place.read_text() == prometheus_text(monitor)


def test_an_impossible_row_is_infinite_evidence():
    text = prometheus_text(PromiseMonitor().update([False], 1.0))
    assert "calipers_monitor_e_value +Inf" in text
    assert "calipers_monitor_alarm 1" in text


def test_a_file_without_rows_still_gives_metrics(tmp_path, capsys):
    (tmp_path / "rows.csv").write_text("covered\n")
    place = tmp_path / "calipers.prom"
    assert main(["monitor", str(tmp_path / "rows.csv"), "--alpha", "0.1", "--prometheus", str(place)]) == 0
    assert "calipers_monitor_rows_total 0" in place.read_text()


def test_a_group_keeps_its_name_whatever_comes_with_it(tmp_path, capsys):
    """A file that grows is read in pieces: "007" beside numbers is the group "007" beside words."""
    file, words = tmp_path / "rows.csv", ["--alpha", "0.1", "--group", "site", "--json"]
    file.write_text("covered,site\n1,007\n1,012\n")
    command = ["monitor", str(file), *words, "--state", str(tmp_path / "s.json")]
    assert main(command) == 0
    with file.open("a") as rows:
        rows.write("1,007\n0,A1\n1,\n")
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert {name: group["rows"] for name, group in found["groups"].items()} == {
        "007": 2,
        "012": 1,
        "A1": 1,
        "(missing)": 1,
    }
