"""Pictures of single findings: the failing region in its plane, a class's reliability, time with dates."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.auditing import Audit


@pytest.fixture(scope="module")
def houses() -> Audit:
    rng = np.random.default_rng(0)
    n = 2000
    X = pl.DataFrame({"latitude": rng.uniform(32, 42, n), "income": rng.gamma(3, 1.3, n)})
    bad = (X["latitude"].to_numpy() > 38) & (X["income"].to_numpy() > 4)
    y = rng.normal(size=n) * np.where(bad, 4.0, 1.0)
    day = np.datetime64("2024-01-01") + np.arange(n) // 6
    return calipers.audit(y, intervals=np.tile([-1.7, 1.7], (n, 1)), X=X, time=day, random_state=0)


def test_the_failing_region_is_framed_in_the_plane_of_its_features(houses: Audit) -> None:
    picture = next(p for p in houses.pictures if p.kind == "plane")
    (curve,) = picture.curves
    finding = next(f for f in houses.faults if f.code == "CAL203")
    bounds = {name: value for name, kind, value in finding.evidence.details["conditions"] if kind == ">"}
    assert {curve.x_label, curve.y_label} == set(bounds)
    left, _, low, _ = curve.details["region"]
    assert (left, low) == (bounds[curve.x_label], bounds[curve.y_label])
    inside = (curve.x > left) & (curve.y > low)
    assert curve.details["value"][inside].mean() < curve.details["value"][~inside].mean() - 0.2


def test_the_cells_hold_the_rows_of_the_sample(houses: Audit) -> None:
    (curve,) = next(p for p in houses.pictures if p.kind == "plane").curves
    covered = np.abs(houses.data["y"]) <= 1.7
    # Cells of fewer than five rows are left out, so nearly all rows are there.
    assert 0.9 * 2000 < curve.details["rows"].sum() <= 2000
    hits = float((curve.details["value"] * curve.details["rows"]).sum())
    assert hits <= covered.sum() + 1e-9


def test_time_is_shown_as_dates(houses: Audit) -> None:
    for name in ("CAL204_over_time_coverage0", "loss_along_the_file"):
        (curve,) = next(p for p in houses.pictures if p.name == name).curves
        assert curve.details["dates"]
        days = curve.x.astype("datetime64[s]").astype("datetime64[D]")
        assert days[0] < np.datetime64("2024-02-01") < np.datetime64("2024-11-01") < days[-1]


def test_a_class_that_is_off_has_its_own_reliability_diagram() -> None:
    rng = np.random.default_rng(1)
    p = rng.beta(2, 2, 800)
    y = (rng.random(800) < p**1.5).astype(int)
    day = np.datetime64("2024-01-01") + np.arange(800)
    found = calipers.audit(y, probabilities=p, time=day, random_state=0)
    picture = next(p for p in found.pictures if p.name == "CAL503_reliability")
    assert "Class 1" in picture.title
    assert picture.curves[0].null_low is not None
    assert picture.curves[0].details["mass"][-1] == pytest.approx(1.0)
    (gap,) = next(p for p in found.pictures if p.name == "CAL506_over_time_probability0").curves
    assert gap.null_low.max() < 0 < gap.null_high.min()
