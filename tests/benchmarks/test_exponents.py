import json
import math

import pytest

from benchmarks import exponents, page
from calipers.metrics import metric_entries


def test_the_exponent_is_the_slope_between_the_two_largest_sizes():
    assert exponents.exponent({"10": 5.0, "100": 1.0, "1000": 100.0}) == pytest.approx(2.0)
    assert math.isnan(exponents.exponent({"10": 5.0}))


def test_sizes_that_would_take_too_long_are_left_out(monkeypatch):
    monkeypatch.setattr(exponents, "cost", lambda call: call())
    found = exponents.costs(lambda n: lambda: n / 1e4, (1_000, 10_000, 100_000))
    assert found == {"1000": 0.1, "10000": 1.0}


def test_every_metric_has_a_stored_exponent_and_none_above_n_log_n_is_left_without_a_word():
    stored = exponents.load()
    assert set(stored["rows"]) == {entry.name for entry in metric_entries()}
    assert set(stored["labels"]) == set(exponents.table_calls(3))
    for key in ("rows", "labels"):
        steep = {name for name, found in stored[key].items() if exponents.exponent(found) > exponents.MOST}
        assert steep <= set(exponents.STATED), steep - set(exponents.STATED)


def test_the_page_shows_what_is_stored(tmp_path, monkeypatch):
    monkeypatch.setattr(exponents, "STORE", tmp_path / "exponents.json")
    assert page.exponent_part().startswith("No stored run")
    content = {
        "date": "2026-01-01", "machine": {"processor": "P", "cores": 2}, "load": 1.0,
        "rows": {"aps": {"1000": 0.001, "10000": 0.02}}, "labels": {},
    }  # fmt: skip
    exponents.STORE.write_text(json.dumps(content))
    assert "| aps | 1 ms | 20 ms |  |  | 1.30 | K log K, one sort per row |" in page.exponent_part()
