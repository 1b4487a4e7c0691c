"""Counts of audits are resumed where they ended, stop in time and are told as they are."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest
from benchmarks.promise_worlds import ROWS

from benchmarks import promise_audits


@pytest.fixture
def made(monkeypatch):
    """Audits that cost nothing: the third of every ten has an issue, and faults are found from 600 rows on."""
    calls = []

    def audit_world(kind, fault, n, seed):
        calls.append((kind, fault, n, seed))
        faults = [SimpleNamespace(code="CAL101", severity="issue")] if seed % 10 == 2 else []
        return SimpleNamespace(severity="issue" if faults else "none", faults=faults, rows=n)

    monkeypatch.setattr(promise_audits, "audit_world", audit_world)
    monkeypatch.setattr(promise_audits, "is_found", lambda kind, fault, found: found.rows >= 600)
    return calls


def run(what, path, *options):
    return promise_audits.main([what, "--out", str(path), *options])


def test_a_run_goes_on_where_the_last_one_ended(made, tmp_path, capsys):
    out = tmp_path / "clean.json"
    for runs in ("4", "10"):
        run("clean", out, "--runs", runs, "--rows", "50", "--only", "sets", "loss")
    assert made == [(kind, None, 50, seed) for seed in range(10) for kind in ("sets", "loss")]
    assert "| sets | 10 | 1 | 1 | CAL101 1 |" in capsys.readouterr().out
    assert len(json.loads(out.read_text(encoding="utf-8"))["loss | kept | 50"]) == 10


def test_no_audit_begins_after_the_time_given(made, tmp_path):
    run("clean", tmp_path / "clean.json", "--seconds", "0")
    assert made == []


def test_sizes_grow_until_nearly_all_audits_find_the_fault(made, tmp_path, capsys):
    run("planted", tmp_path / "planted.json", "--runs", "8", "--only", "sets|group")
    assert "| sets | group | 400: 0 of 2, 600: 8 of 8 |" in capsys.readouterr().out
    assert {n for *_, n, _ in made} == {400, 600}


def test_stated_rows_are_tried_as_often_as_asked(made, tmp_path, capsys):
    run("stated", tmp_path / "stated.json", "--runs", "3", "--only", "one class")
    rows = ROWS["one class", "class"]
    assert f"| one class | class | {rows}: 3 of 3 |" in capsys.readouterr().out
