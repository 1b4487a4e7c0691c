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


def winners(found: calipers.auditing.Comparison) -> dict[str, str | None]:
    return {line.measure: line.winner for line in found.lines}


def test_equal_distances_from_the_promise_have_no_winner() -> None:
    """0.935 against 0.868 at 0.9 promised: the distances differ by 0.003 +- 0.0076."""
    y = (np.arange(2000) + 0.5) / 2000
    over, under = (
        calipers.audit(y, intervals=np.tile([0.0, share], (2000, 1)), random_state=0)
        for share in (0.935, 0.868)
    )
    line = calipers.compare({"over": over, "under": under}).lines[0]
    assert line.winner is None
    difference = line.differences["over", "under"]
    assert float(difference) == pytest.approx(0.003)
    assert difference.low < 0 < difference.high
    assert difference.p_value > 0.5


def test_a_predictor_that_breaks_its_promise_neither_wins_nor_is_undominated() -> None:
    rng = np.random.default_rng(4)
    y, X = rng.normal(size=2000), rng.normal(size=(2000, 2))
    found = calipers.compare({"kept": predictor(y, 1.645, X), "broken": predictor(y, 1.34, X)})
    assert float(found.promises["broken"]["coverage"]) == pytest.approx(0.82, abs=0.02)
    assert found.promises["broken"]["broken"]
    assert not found.promises["kept"]["broken"]
    assert "broken" not in winners(found).values()
    assert found.trade_off["broken"]["efficient"] is False
    assert found.trade_off["kept"]["efficient"] is True
    assert "breaks its promise" in found.to_markdown()


def test_the_luck_of_a_stated_calibration_sample_breaks_no_promise() -> None:
    y = (np.arange(5000) + 0.5) / 5000
    intervals = np.tile([0.0, 0.88], (5000, 1))
    audits = {
        str(n): calipers.audit(y, intervals=intervals, n_calibration=n, random_state=0) for n in (100, None)
    }
    found = calipers.compare(audits)
    assert {name: promise["broken"] for name, promise in found.promises.items()} == {
        "100": False,
        "None": True,
    }


def test_a_smaller_threshold_by_luck_does_not_win_by_size() -> None:
    """Equal intervals but for the luck of their calibration: the narrower covers less, and that is all."""
    y = np.random.default_rng(5).normal(size=1000)
    found = calipers.compare({"a": predictor(y, 1.60), "b": predictor(y, 1.70)})
    assert {winners(found)[name] for name in ("mean size", "mean size at matched coverage")} == {None}


def test_size_wins_at_matched_coverage() -> None:
    rng = np.random.default_rng(6)
    spread = rng.choice([1.0, 3.0], size=3000)
    y = spread * rng.normal(size=3000)
    own = np.column_stack([-1.645 * spread, 1.645 * spread])
    found = calipers.compare({"adaptive": calipers.audit(y, intervals=own), "constant": predictor(y, 4.0)})
    assert winners(found)["mean size at matched coverage"] == "adaptive"


def test_sets_without_p_values_are_compared_only_where_they_cover_equally_often() -> None:
    rng = np.random.default_rng(7)
    y = rng.integers(0, 4, 2000)
    hit = rng.random(2000) < 0.9
    right = np.eye(4, dtype=bool)[np.where(hit, y, (y + 1) % 4)]
    larger = right | np.eye(4, dtype=bool)[(y + 2) % 4]  # one more wrong label, the same coverage
    more = larger | np.eye(4, dtype=bool)[y]  # and covered always
    audits = {
        name: calipers.audit(y, sets=sets, random_state=0)
        for name, sets in {"right": right, "larger": larger, "more": more}.items()
    }
    two = calipers.compare({name: audits[name] for name in ("right", "larger")})
    assert winners(two)["mean size"] == "right"
    other = calipers.compare({name: audits[name] for name in ("right", "more")})
    line = next(line for line in other.lines if line.measure == "mean size")
    assert line.winner is None
    assert line.differences["right", "more"].p_value is None
    assert "cover equally often" in line.differences["right", "more"].reason


def test_probabilities_are_compared_by_proper_scores_with_calibration_beside() -> None:
    rng = np.random.default_rng(8)
    signal = rng.normal(size=4000)
    p = 1 / (1 + np.exp(-3 * signal))
    y = (rng.random(4000) < p).astype(int)
    sharp = 1 / (1 + np.exp(-4.2 * signal))  # informative, overconfident
    blunt = np.full(4000, y.mean())  # calibrated, says nothing
    found = calipers.compare(
        {
            name: calipers.audit(y, probabilities=q, random_state=0)
            for name, q in (("sharp", sharp), ("blunt", blunt))
        }
    )
    assert winners(found)["log loss"] == winners(found)["Brier score"] == "sharp"
    line = found.lines[-1]
    assert line.measure == "calibration error of the top label"
    assert line.winner is None
    assert line.values["sharp"].p_value < 0.05 < line.values["blunt"].p_value


def test_over_data_sets_a_broken_promise_ranks_last() -> None:
    audits: dict[str, list[calipers.auditing.Audit]] = {"kept": [], "broken": []}
    for s in range(6):
        y = np.random.default_rng(s).normal(size=800)
        audits["kept"].append(predictor(y, 1.7))
        audits["broken"].append(predictor(y, 1.2))
    found = calipers.compare(audits)
    assert found.rankings["mean size"].average_ranks.tolist() == [1.0, 2.0]


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
