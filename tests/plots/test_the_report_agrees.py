"""The report's SVG and matplotlib draw the same values: the same points, bands and promise."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

import calipers
from calipers.report.drawing import draw

matplotlib = pytest.importorskip("matplotlib", reason="plots need calipers[plots]")
matplotlib.use("Agg")

from calipers.plots import plot  # noqa: E402


@pytest.fixture(scope="module")
def pictures() -> dict[str, dict]:
    rng = np.random.default_rng(0)
    n = 1200
    X = pl.DataFrame({"a": rng.random(n), "b": rng.random(n)})
    y = rng.normal(size=n) * np.where((X["a"] > 0.6).to_numpy() & (X["b"] > 0.5).to_numpy(), 4, 1)
    found = calipers.audit(
        y, intervals=np.tile([-1.7, 1.7], (n, 1)), X=X, groups=np.arange(n) % 4,
        time=np.datetime64("2024-01-01") + np.arange(n) // 4, random_state=0,
    )  # fmt: skip
    return {picture["name"]: picture for picture in found.to_dict()["pictures"]}


def shares_of(values: list[float]) -> np.ndarray:
    """Places between the first and the last of them, so that pixels and data can be compared."""
    array = np.array(values)
    return (array - array.min()) / np.ptp(array)


@pytest.mark.parametrize("name", ["coverage_by_expectation", "CAL204_over_time_coverage0"])
def test_points_stand_at_the_same_places(name: str, pictures: dict[str, dict]) -> None:
    drawn = re.findall(r'<circle class="dot c0" cx="([\d.]+)" cy="([\d.]+)"', draw(pictures[name]))
    x, y = (shares_of([float(pair[i]) for pair in drawn]) for i in (0, 1))
    (line,) = (line for line in plot(pictures[name]).lines if line.get_marker() == "o")
    along = matplotlib.dates.date2num(line.get_xdata()) if name.endswith("time") else line.get_xdata()
    assert x == pytest.approx(shares_of(list(along)), abs=0.002)
    assert 1 - y == pytest.approx(shares_of(list(line.get_ydata())), abs=0.002)


def test_intervals_have_the_same_rows_and_ends(pictures: dict[str, dict]) -> None:
    picture = pictures["CAL201_coverage_by_group"]
    drawn = re.findall(r'<line class="line \w+" x1="([\d.]+)" x2="([\d.]+)"', draw(picture))
    bars = plot(picture).collections[0].get_segments()
    pixels = shares_of([float(end) for pair in drawn for end in pair])
    ends = shares_of([point[0] for bar in bars for point in bar])
    assert pixels == pytest.approx(ends, abs=0.002)


def test_a_plane_has_the_same_cells_and_the_same_frame(pictures: dict[str, dict]) -> None:
    picture = pictures["CAL203_plane"]
    svg, axes = draw(picture), plot(picture)
    cells = len(re.findall(r'<rect class="(?:below|above)"', svg))
    assert cells == np.isfinite(np.ma.filled(axes.collections[0].get_array(), np.nan)).sum()
    (frame,) = axes.patches
    left, right, low, high = picture["curves"][0]["details"]["region"]
    assert frame.get_bbox().extents == pytest.approx((left, low, right, high))
    assert svg.count('class="frame"') == 1


def test_legends_tell_what_is_drawn_and_a_change_is_drawn_in_both(pictures: dict[str, dict]) -> None:
    rng = np.random.default_rng(0)
    stated = rng.random(600)
    shown = calipers.displays.ReliabilityDisplay.from_predictions(
        rng.random(600) < stated**2, stated, random_state=0
    )
    said = {text.get_text() for text in shown.ax_.get_legend().get_texts()}
    assert said == {"measured", "a valid predictor", "the promise", "share of the rows"}
    changed = pictures["CAL204_over_time_coverage0"] | {
        "focus": {"since": 1_704_153_600.0, "until": None, "words": "since 2024-01-02"}
    }
    assert 'class="change"' in draw(changed)
    lines = [line for line in plot(changed).lines if line.get_label() == "since 2024-01-02"]
    assert np.datetime64(lines[0].get_xdata()[0], "D") == np.datetime64("2024-01-02")
