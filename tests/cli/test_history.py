"""``calipers audit --history`` keeps audits, ``calipers history`` shows them and answers with its exit code."""

from __future__ import annotations

import json
import re

import numpy as np
import polars as pl
import pytest

from calipers.cli import main


def write_rows(path, coverage, seed):
    covered = np.random.default_rng(seed).random(1500) < coverage
    pl.DataFrame({"y_true": np.where(covered, 0.0, 2.0), "lower": -1.0, "upper": 1.0}).write_csv(path)
    return str(path)


@pytest.fixture
def folder(tmp_path):
    for number, coverage in enumerate((0.9, 0.9, 0.8)):
        file = write_rows(tmp_path / f"day{number}.csv", coverage, number)
        code = main(["audit", file, "--history", str(tmp_path / "kept"), "--quiet"])
        assert code == int(coverage < 0.9)
    return tmp_path / "kept"


def test_the_last_audit_decides_the_exit_code(folder, capsys):
    assert main(["history", str(folder)]) == 1
    text = capsys.readouterr().out
    assert text.startswith("3 audits, ")
    assert "broken: coverage of the intervals all rows, since" in text
    assert "changed: coverage from 0.89" in text
    assert (folder / "history.html").read_text().startswith("<!doctype html>")
    assert main(["history", str(folder), "--fail-on", "never", "--quiet"]) == 0
    assert main(["history", str(folder), "--fail-on", "CAL201", "--quiet"]) == 0
    assert main(["history", str(folder), "--fail-on", "new", "--quiet"]) == 1


def test_new_asks_only_for_promises_that_the_last_audit_broke(folder, tmp_path, capsys):
    file = write_rows(tmp_path / "again.csv", 0.8, 9)
    main(["audit", file, "--history", str(folder), "--quiet"])
    assert main(["history", str(folder), "--fail-on", "new", "--quiet"]) == 0
    assert main(["history", str(folder), "--quiet"]) == 1


def test_json_on_standard_output_and_no_page_unless_asked(folder, tmp_path, capsys):
    assert main(["history", str(folder), "--json"]) == 1
    document = json.loads(capsys.readouterr().out)
    assert [run["missed"] for run in document["runs"]] == [False, False, True]
    assert [run["source"] for run in document["runs"]] != [""] * 3
    assert not (folder / "history.html").exists()
    assert main(["history", str(folder), "--json", "--html", str(tmp_path / "page.html")]) == 1
    assert (tmp_path / "page.html").exists()


def test_foreign_files_are_named_on_standard_error(folder, capsys):
    (folder / "torn.json").write_text("{")
    assert main(["history", str(folder), "--fail-on", "never", "--quiet"]) == 0
    assert "calipers: torn.json is passed over: it is not JSON" in capsys.readouterr().err


def test_bad_input_is_two(tmp_path, capsys):
    assert main(["history", str(tmp_path)]) == 2
    assert "holds no audits" in capsys.readouterr().err
    assert main(["history", str(tmp_path), "--fail-on", "CAL999"]) == 2


def test_the_report_follows_the_audits_before_it(folder, tmp_path, capsys):
    file = write_rows(tmp_path / "mended.csv", 0.9, 3)
    assert main(["audit", file, "--history", str(folder), "--out", str(tmp_path / "out")]) == 0
    assert "0 newly broken, 1 no longer broken" in capsys.readouterr().out
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    links = re.findall(r'<a href="(\.\./kept/[^"]+)"', page)
    assert len(links) == 3
    assert all((tmp_path / "out" / link).is_file() for link in links)
    document = json.loads((tmp_path / "out" / "audit.json").read_text(encoding="utf-8"))
    assert document["history"]["count"] == 3
    main(["history", str(folder), "--quiet"])
    course = (folder / "history.html").read_text(encoding="utf-8")
    assert len(re.findall(r'<a href="[^"/]+\.html"', course)) == 4


def test_a_file_in_place_of_the_history_is_refused_before_the_work(tmp_path, capsys):
    (tmp_path / "kept").write_text("")
    assert main(["audit", "no such file.csv", "--history", str(tmp_path / "kept")]) == 2
    assert "the history must be a folder" in capsys.readouterr().err
