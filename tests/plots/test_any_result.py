"""One call for every result: what is drawn is what was measured, and nothing is computed on the way."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calipers
from calipers.exceptions import InputError
from calipers.results import Curve, Estimate, EstimateTable, RankComparison

matplotlib = pytest.importorskip("matplotlib", reason="plots need calipers[plots]")
matplotlib.use("Agg")

from matplotlib import pyplot as plt  # noqa: E402

from calipers.plots import plot  # noqa: E402

TCV = Estimate(
    name="T-CV", value=0.062, low=0.048, high=0.081, null_high=0.05, alternative="greater", p_value=0.004
)
CURVE = Curve(name="reliability", x=[0.2, 0.8], y=[0.1, 0.9], null_low=[0.1, 0.7], null_high=[0.3, 0.9],
              x_label="stated probability", y_label="observed frequency", details={"mass": [0.25, 1.0]})  # fmt: skip
RANKS = RankComparison(
    names=("a", "b"), average_ranks=np.array([1.0, 2.0]), n_blocks=9, statistic=9.0, p_value=0.003,
    adjusted=np.array([[1, 0.01], [0.01, 1]]), alpha=0.05, post_hoc="holm",
)  # fmt: skip


@pytest.fixture(autouse=True)
def close() -> Any:
    yield
    plt.close("all")


def test_an_estimate_is_its_dot_its_interval_and_its_null_band() -> None:
    ax = plot(TCV)
    (dot,) = (line for line in ax.lines if line.get_marker() == "o")
    assert dot.get_xdata().tolist() == [0.062]
    ends = np.concatenate([path.vertices for c in ax.collections for path in c.get_paths()])
    assert {0.048, 0.081, 0.05} <= set(np.round(ends[:, 0], 6))


@pytest.mark.parametrize("result", [TCV, EstimateTable([TCV]), CURVE, RANKS], ids=lambda r: type(r).__name__)
def test_the_method_plot_draws_on_the_axes_it_is_given(result: Any) -> None:
    _, axes = plt.subplots()
    assert result.plot(ax=axes) is axes
    assert axes.has_data()


def test_a_reliability_curve_stands_over_its_histogram_and_the_diagonal() -> None:
    ax = plot(CURVE)
    (below,) = (other for other in ax.figure.axes if other is not ax)
    heights = [bar.get_height() for bar in below.patches]
    assert (heights[4], heights[16]) == (0.25, 0.75)
    assert any(getattr(line, "get_slope", lambda: None)() == 1 for line in ax.lines)


def test_a_table_leaves_out_what_is_undefined() -> None:
    table = EstimateTable([TCV, Estimate(name="T-SS", value=None, reason="constant")])
    assert [label.get_text() for label in plot(table).get_yticklabels()] == ["T-CV"]


PROMISES = [
    {"promise": "sets", "slice": "all rows", "answer": "kept", "value": 0.91, "low": 0.89, "high": 0.93},
    {"promise": "sets", "slice": "groups", "answer": "broken", "value": 0.71, "low": 0.65, "high": 0.77},
    {"promise": "probabilities", "slice": "all rows", "answer": "cannot tell", "value": None},
]


def test_an_audit_is_drawn_as_its_table_of_promises() -> None:
    ax = plot({"kind": "Audit", "promises": PROMISES, "verdict": {"sentence": "Found 1 issue."}})
    words = [text.get_text() for text in ax.texts]
    assert words == ["✓ 0.910", "✗ 0.71", "?", "–"]
    assert ax.get_title() == "Found 1 issue."


def test_a_test_statistic_does_not_stand_among_shares() -> None:
    rows = [{"promise": "sets", "slice": "time", "answer": "cannot tell", "value": 2.153}]
    (text,) = plot({"kind": "Audit", "promises": rows}).texts
    assert text.get_text() == "?"


def test_an_audit_and_its_pictures_can_be_given_as_they_are() -> None:
    y = np.random.default_rng(0).normal(size=400)
    found = calipers.audit(y, intervals=np.tile([-1.6, 1.6], (400, 1)), random_state=0)
    assert found.plot().has_data()
    assert plot(found.pictures[0]).get_title() == found.pictures[0].title


def test_what_is_no_result_is_refused() -> None:
    with pytest.raises(InputError, match="plot takes an Estimate, .* got list"):
        plot([1, 2])
