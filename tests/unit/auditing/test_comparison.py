"""Comparison of predictors: winners only where significant, ranks over many data sets."""

from __future__ import annotations

import json

import numpy as np
import pytest

import calipers
from calipers.auditing.comparison import _efficient
from calipers.exceptions import InputError


def predictor(y: np.ndarray, half_width: float, X: np.ndarray | None = None) -> calipers.auditing.Audit:
    return calipers.audit(y, intervals=np.tile([-half_width, half_width], (len(y), 1)), X=X, random_state=0)


def test_a_clear_difference_has_a_winner_and_noise_has_none(seed: int) -> None:
    y = np.random.default_rng(seed).normal(size=2000)
    found = calipers.compare(
        {"right": predictor(y, 1.645), "wide": predictor(y, 3.0), "same": predictor(y, 1.646)}
    )
    winners = {line.measure: line.winner for line in found.lines}
    assert winners["coverage"] is None  # right and same cannot be told apart
    two = calipers.compare({"right": predictor(y, 1.645), "wide": predictor(y, 3.0)})
    assert {line.measure: line.winner for line in two.lines}["coverage"] == "right"


def test_differences_are_paired_by_row() -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=500)
    found = calipers.compare({"a": predictor(y, 1.6), "b": predictor(y, 1.7)})
    line = next(line for line in found.lines if line.measure == "mean size")
    difference = line.differences["a", "b"]
    assert float(difference) == pytest.approx(-0.2)


def test_p_values_are_corrected_for_all_pairs_and_measures() -> None:
    rng = np.random.default_rng(1)
    y = rng.normal(size=400)
    found = calipers.compare({"a": predictor(y, 1.5), "b": predictor(y, 1.6), "c": predictor(y, 1.7)})
    line = next(line for line in found.lines if line.measure == "coverage")
    from calipers.inference import paired_difference

    covered = [(np.abs(y) <= w).astype(float) for w in (1.5, 1.6)]
    raw = paired_difference(*covered, name="x").p_value
    assert line.differences["a", "b"].p_value >= raw


def test_other_rows_are_refused() -> None:
    a, b = (predictor(np.random.default_rng(s).normal(size=300), 1.6) for s in (0, 1))
    with pytest.raises(InputError, match="were not audited on the same rows"):
        calipers.compare({"a": a, "b": b})
    with pytest.raises(InputError, match="at least two predictors"):
        calipers.compare({"a": a})
    with pytest.raises(InputError, match="one audit per data set, got a: 1, b: 2"):
        calipers.compare({"a": [a], "b": [b, b]})
    with pytest.raises(InputError, match="b must be an Audit"):
        calipers.compare({"a": [a], "b": [3]})


def test_many_data_sets_are_ranked() -> None:
    methods = {"right": 1.645, "narrow": 1.2, "wide": 2.6}
    audits: dict[str, list[calipers.auditing.Audit]] = {name: [] for name in methods}
    for s in range(8):
        y = np.random.default_rng(s).normal(size=400)
        for name, width in methods.items():
            audits[name].append(predictor(y, width))
    found = calipers.compare(audits)
    ranking = found.rankings["distance of coverage from its target"]
    assert ranking.shared_ranks["right"] == 1
    assert found.rankings["interval score"].average_ranks[0] == 1.0
    page = found.to_html()
    assert "Average ranks over 8 data sets" in page
    assert json.loads(found.to_json())["rankings"]["mean size"]["n_blocks"] == 8


def test_the_trade_off_marks_predictors_that_nobody_beats_in_both() -> None:
    points = [(1.0, 0.3), (2.0, 0.1), (2.5, 0.2)]
    named = [{"size": s, "conditional_error": e} for s, e in points]
    found = [_efficient(p, [q for q in named if q is not p]) for p in named]
    assert found == [True, True, False]
    assert _efficient({"size": None, "conditional_error": 0.1}, named) is None


def test_the_page_of_a_comparison_is_self_contained() -> None:
    rng = np.random.default_rng(2)
    X = rng.normal(size=(1200, 2))
    y = (1 + (X[:, 0] > 0.5)) * rng.normal(size=1200)
    found = calipers.compare({"<a>": predictor(y, 2.2, X), "b": predictor(y, 3.0, X)})
    page = found.to_html()
    assert "https://" not in page
    assert "<a>" not in page.replace("<a class", "")
    assert "conditional error" in page
    assert found.to_markdown().startswith("## Calipers comparison of &lt;a> and b")
