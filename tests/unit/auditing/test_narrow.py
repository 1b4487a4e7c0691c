"""CAL302: rivals at equal coverage, and the answer to "is it as narrow as it could be"."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calipers
from calipers.auditing.matched_size import label_sets, match_coverage, scaled_intervals
from calipers.auditing.slice_coverage import worst_slice
from tests.triangulate.sentence_samples import KINDS


def answer(audit: calipers.auditing.Audit) -> dict[str, Any]:
    return next(q for q in audit.to_dict()["questions"] if q["question"] == "narrow")


def around(centre: np.ndarray, half: np.ndarray | float) -> np.ndarray:
    return np.column_stack([centre - half, centre + half])


@pytest.fixture(scope="module")
def houses() -> dict[str, np.ndarray]:
    """Prices that the features foretell, as far as their noise, which grows, allows."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 3))
    spread = 60_000 * np.exp(0.5 * X[:, 1])
    mean = 400_000 + 250_000 * X[:, 0]
    return {"X": X, "mean": mean, "spread": spread, "y": mean + spread * rng.normal(size=1200)}


def test_rivals_are_compared_within_a_table_of_groups(houses: dict[str, np.ndarray]) -> None:
    y, n = houses["y"], len(houses["y"])
    groups = {"sex": np.resize(["f", "m"], n), "site": np.resize(["a", "b", "c"], n)}
    found = calipers.audit(
        y, intervals=around(houses["mean"], 1.645 * houses["spread"]), X=houses["X"], groups=groups,
        random_state=0,
    )  # fmt: skip
    assert answer(found)["answer"] == "yes"


def test_a_constant_interval_is_not_as_narrow_as_it_could_be(houses: dict[str, np.ndarray]) -> None:
    y = houses["y"]
    wide = np.tile(np.quantile(y, [0.05, 0.95]), (len(y), 1))
    assert np.ptp(wide[0]) > 800_000
    found = calipers.audit(y, intervals=wide, X=houses["X"], random_state=0)
    assert answer(found)["answer"] == "doubtful"
    assert "% narrower on average" in answer(found)["sentence"]


def test_without_features_a_constant_interval_has_nothing_to_be_compared_with(
    houses: dict[str, np.ndarray],
) -> None:
    wide = np.tile(np.quantile(houses["y"], [0.05, 0.95]), (1200, 1))
    found = calipers.audit(houses["y"], intervals=wide, random_state=0)
    assert answer(found)["answer"] == "cannot tell"
    assert "Add X" in answer(found)["sentence"]


def test_four_sigma_is_larger_than_needed_in_both_answers(houses: dict[str, np.ndarray]) -> None:
    found = calipers.audit(
        houses["y"], intervals=around(houses["mean"], 4 * houses["spread"]), X=houses["X"], random_state=0
    )
    finding = next(f for f in found.faults if f.code == "CAL302")
    # 4 sigma shrinks to 1.645 sigma.
    assert finding.evidence is not None
    assert float(finding.evidence) == pytest.approx(1 - 1.645 / 4, abs=0.03)
    assert answer(found)["answer"] == "doubtful"


def test_the_true_intervals_earn_a_yes(houses: dict[str, np.ndarray]) -> None:
    found = calipers.audit(
        houses["y"], intervals=around(houses["mean"], 1.645 * houses["spread"]), X=houses["X"], random_state=0
    )
    assert answer(found)["answer"] == "yes"


def test_a_rival_that_fails_in_its_worst_slice_is_a_trade_off() -> None:
    """Sigma 1 in 90 % and 20 in 10 % of the rows: the constant interval is narrower on average."""
    rng = np.random.default_rng(1)
    spread = np.where(np.arange(3000) % 10 == 0, 20.0, 1.0)
    y = spread * rng.normal(size=3000)
    found = calipers.audit(y, intervals=around(np.zeros(3000), 1.645 * spread), random_state=0)
    finding = next(f for f in found.findings if f.code == "CAL302")
    assert finding.outcome == "clean"
    assert "A trade-off" in finding.sentence
    saved = found.estimates["size saved by a constant interval"]
    assert float(saved) == pytest.approx(1 - 5.1 / 9.5, abs=0.08)
    assert saved.details["worse_in_worst_slice"]
    assert saved.details["worst_coverage"] < 0.3 < saved.details["own_coverage_there"]


def test_the_error_of_a_saving_holds_that_of_the_threshold() -> None:
    """One width around the same middles: its mean size varies with the threshold and with nothing else."""
    rng = np.random.default_rng(2)
    means, errors = [], []
    for _ in range(200):
        y = rng.normal(size=400)
        matched = match_coverage(scaled_intervals(y, np.full(400, -1.0), np.full(400, 1.0)), 0.9)
        assert matched is not None
        assert np.ptp(matched.sizes) == 0
        means.append(matched.contributions.mean())
        errors.append(matched.contributions.std() / 20)
    assert np.mean(errors) == pytest.approx(np.std(means), rel=0.2)
    assert np.mean(means) == pytest.approx(2 * 1.645, abs=0.03)


def test_matched_sets_cover_what_is_wanted() -> None:
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(4), size=500)
    y = (P.cumsum(axis=1) < rng.random((500, 1))).sum(axis=1)
    matched = match_coverage(label_sets(1 - P, y), 0.8)
    assert matched is not None
    assert matched.covered.mean() == pytest.approx(0.8, abs=0.002)
    assert matched.sizes.tolist() == (matched.threshold >= 1 - P).sum(axis=1).tolist()


def test_intervals_without_width_cannot_be_scaled_to_cover() -> None:
    y = np.arange(100.0)
    assert match_coverage(scaled_intervals(y, np.zeros(100), np.zeros(100)), 0.9) is None


def test_the_worst_slice_counts_whole_weights_as_rows() -> None:
    covered = np.array([True, False, True, True])
    codes = {"part": np.array([0, 0, 1, 1])}
    weights = np.array([60.0, 20.0, 70.0, 50.0])
    repeated = np.repeat(np.arange(4), weights.astype(int))
    found = worst_slice(covered, codes, weights)
    same = worst_slice(covered[repeated], {"part": codes["part"][repeated]})
    assert (found.share, found.high, found.mass) == (same.share, same.high, same.mass)


def test_smaller_intervals_are_looked_for_in_every_attribute_of_a_table_of_groups(
    houses: dict[str, np.ndarray],
) -> None:
    y, X = houses["y"], houses["X"]
    wide = np.tile(np.quantile(y, [0.05, 0.95]), (len(y), 1))
    table = {"side": np.where(X[:, 2] > 0, "east", "west"), "size": np.where(X[:, 1] > 0, "large", "small")}
    found = calipers.audit(y, intervals=wide, X=X, groups=table, random_state=0)
    assert "% narrower on average" in answer(found)["sentence"]


@pytest.mark.parametrize("decimals", [None, 6, 3, 2])
def test_widths_that_differ_by_rounding_are_one_width(decimals: int | None) -> None:
    rng = np.random.default_rng(3)
    middle = 100 * rng.normal(size=900)
    ends = around(middle, 164.4852) if decimals is None else around(middle, 164.4852).round(decimals)
    found = calipers.audit(
        middle + 100 * rng.normal(size=900), intervals=ends, X=middle[:, None] / 100, random_state=0
    )
    tried = next(f for f in found.findings if f.code == "CAL302").sentence
    assert "tried" in tried
    assert "equal widths" not in tried
    assert "size saved by equal widths" not in found.estimates


def test_a_hundredth_of_the_rows_with_another_width_is_two_widths(houses: dict[str, np.ndarray]) -> None:
    half = np.full(1200, 200_000.0)
    half[::100] *= 1.5
    found = calipers.audit(houses["y"], intervals=around(houses["mean"], half), random_state=0)
    assert "size saved by equal widths" in found.estimates


def test_a_rival_that_predicts_the_same_sets_saves_exactly_nothing() -> None:
    given = KINDS["sets"](1)  # 80 % by the threshold that the rival finds
    found = calipers.audit(**given, random_state=0)
    saved = found.estimates["size saved by a threshold on the probabilities"]
    assert (saved.value, saved.low, saved.high) == (0.0, 0.0, 0.0)
