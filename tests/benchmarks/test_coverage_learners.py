"""The comparison of learners resumes where it stopped, and its shares are those of the largest risk."""

import pytest

from benchmarks import coverage_learners


def row(data, n, learner, l1):
    return {"data": data, "n": str(n), "learner": learner, "l1": str(l1), "seconds": "0.5"}


def test_shares_are_of_the_largest_risk_over_learners_and_sizes():
    rows = [
        row("power", 400, "a", 0.01), row("power", 400, "b", -0.02), row("power", 1600, "a", 0.04),
        row("bike", 400, "a", 0.03), row("bike", 400, "b", 0.06), row("sound", 400, "a", 0.001),
    ]  # fmt: skip
    found = {key[:3]: key[3] for key in coverage_learners.shares(rows, "l1")}
    assert found["public", 400, "a"] == pytest.approx((0.25 + 0.5) / 2)
    assert found["public", 400, "b"] == pytest.approx((0.0 + 1.0) / 2)
    assert found["public", 1600, "a"] == pytest.approx(1.0)
    assert len(found) == 3


def test_rows_in_the_file_are_not_computed_again(tmp_path, monkeypatch):
    monkeypatch.setattr(coverage_learners, "WORLDS", ("logistic",))
    monkeypatch.setattr(coverage_learners, "_FRESH", 200)
    out = tmp_path / "learners.csv"
    options = {"data": None, "sizes": (100,), "label": "default"}
    coverage_learners.compare(out, repeats=1, **options)
    (first,) = coverage_learners.read(out)
    assert first["learner"] == "default"
    assert abs(float(first["l1"])) < 0.2
    coverage_learners.compare(out, repeats=2, **options)
    rows = coverage_learners.read(out)
    assert rows[0] == first
    assert [r["repeat"] for r in rows] == ["0", "1"]
    assert coverage_learners.table(rows).count("\n") >= 1
