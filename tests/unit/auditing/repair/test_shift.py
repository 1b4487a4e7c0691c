"""New rows with other features: thresholds weighted by the estimated likelihood ratio, and what is said."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import calipers
from calipers.auditing import Repair, load_repair
from calipers.auditing.repair.boosted_trees import no_trees
from calipers.auditing.repair.choice import Trial, _order
from calipers.auditing.repair.density_ratio import DensityRatio, learn_ratio
from calipers.auditing.repair.feature_codes import FeatureCodes
from calipers.auditing.repair.partitions import AllRows, GroupCells
from calipers.auditing.repair.thresholds import fit_cells
from calipers.auditing.repair.weighted_thresholds import WeightedThresholds, fit_weighted
from calipers.conformal import conformal_p_values
from calipers.conformal.weighted import weighted_quantiles
from calipers.exceptions import InputError
from calipers.inputs.rows import Rows

MOVED = 1.0


def columns(n: int, rng: np.random.Generator, moved: float = 0.0) -> dict[str, np.ndarray]:
    """Noise that grows with the first feature; the density ratio of moved rows is exp(moved x - moved^2/2)."""
    X = rng.normal(size=(n, 3))
    X[:, 0] += moved
    y = X[:, 1] + (0.3 + np.exp(0.6 * X[:, 0])) * rng.normal(size=n)
    return {"y_true": y, "intervals": np.column_stack([X[:, 1] - 2.6, X[:, 1] + 2.6]), "X": X}


def coverage(ends: np.ndarray, y: np.ndarray) -> float:
    return float(np.mean((ends[:, 0] <= y) & (y <= ends[:, 1])))


def known_ratio(slope: float) -> DensityRatio:
    """exp(slope x0) of a single feature."""
    codes = FeatureCodes(("x0",), (None,), np.zeros(1))
    coefficients = np.array([0.0, slope, 0.0])
    return DensityRatio(codes, np.zeros(1), np.ones(1), coefficients, no_trees(0.0), (100, 100))


@pytest.fixture(scope="module")
def shifted() -> tuple[Repair, dict[str, np.ndarray]]:
    rng = np.random.default_rng(0)
    found = calipers.audit(**columns(4000, rng), alpha=0.1, random_state=0)
    new = columns(3000, rng, MOVED)
    return found.repair(X_new=new["X"]), new


def test_the_ratio_of_two_normal_laws_is_found_back() -> None:
    rng = np.random.default_rng(1)
    old, new = (Rows({"X": rng.normal(m, 1.0, (6000, 2)) * [1.0, 1.0]}) for m in ([0.0, 0.0], [1.0, 0.0]))
    ratio = learn_ratio(old, new, rng)
    at = np.array([[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [2.0, 0.0]])
    # exp(x - 1/2), within the noise of a logistic regression of 12 000 rows.
    assert ratio.of(Rows({"X": at})) == pytest.approx(np.exp(at[:, 0] - 0.5), rel=0.25)
    assert ratio.of(old).mean() == pytest.approx(1.0, abs=0.1)


def test_numbers_of_rows_do_not_change_the_ratio() -> None:
    rng = np.random.default_rng(2)
    old, new = (Rows({"X": rng.normal(size=(n, 1))}) for n in (4000, 1000))
    assert learn_ratio(old, new, rng).of(old).mean() == pytest.approx(1.0, abs=0.1)


def test_blocks_of_rows_have_the_same_ratio_to_the_bit() -> None:
    rng = np.random.default_rng(3)
    old, new = (Rows({"X": rng.normal(m, 1.0, (500, 4))}) for m in (0.0, 0.5))
    ratio, whole = learn_ratio(old, new, rng), rng.normal(size=(1000, 4))
    parts = np.concatenate([ratio.of(Rows({"X": block})) for block in np.array_split(whole, 7)])
    assert parts.tobytes() == ratio.of(Rows({"X": whole})).tobytes()


def test_equal_weights_give_the_thresholds_and_p_values_of_one_cell() -> None:
    rng = np.random.default_rng(4)
    given = {"X": rng.normal(size=(300, 1)), "intervals": np.zeros((300, 2)), "y_true": rng.normal(size=300)}
    rows, scores = Rows(given, alpha=(0.1, 0.3)), [np.abs(given["y_true"]), np.abs(given["y_true"]) / 2]
    plain = fit_cells(AllRows(), rows, scores, (0.1, 0.3))
    found = fit_weighted(AllRows(), rows, scores, (0.1, 0.3), known_ratio(0.0), keep_scores=True)
    for level in (0, 1):
        assert found.at(rows, level).tolist() == plain.at(rows, level).tolist()
    asked = rng.normal(size=(300, 2))
    assert found.p_values(rows, asked) == pytest.approx(np.asarray(conformal_p_values(scores[0], asked)))


def test_a_weighted_threshold_is_the_weighted_quantile_of_all_scores_in_its_cell() -> None:
    rng = np.random.default_rng(5)
    n = 400
    groups = np.where(np.arange(n) % 2, "a", "b")
    rows = Rows({"X": rng.normal(size=(n, 1)), "y_true": rng.normal(size=n), "groups": groups,
                 "intervals": np.zeros((n, 2))}, alpha=(0.2,))  # fmt: skip
    scores, ratio = np.abs(rows["outcomes"]), known_ratio(0.7)
    found = fit_weighted(GroupCells("", ("a", "b")), rows, [scores], (0.2,), ratio)
    weights = np.exp(0.7 * rows.given["X"][:, 0].astype(np.float32).astype(float))
    for label in ("a", "b"):
        own = groups == label
        order = np.argsort(scores[own])
        mass = np.concatenate([[0.0], np.cumsum(weights[own][order])])
        expected = weighted_quantiles(scores[own][order], mass, weights[own], Fraction(1, 5))
        assert found.at(rows, 0)[own] == pytest.approx(expected)
        assert len(found.tails[0][0][0]) < own.sum() / 2  # scores that are no threshold are not kept


def test_a_row_unlike_all_others_gets_everything() -> None:
    rng = np.random.default_rng(6)
    rows = Rows({"X": rng.normal(size=(200, 1)), "intervals": np.zeros((200, 2))})
    found = fit_weighted(AllRows(), rows, [rng.random(200)], (0.1,), known_ratio(1.0))
    assert np.isinf(found.at(Rows({"X": [[8.0]], "intervals": [[0.0, 0.0]]}), 0)).all()


def test_cells_that_are_worth_few_rows_share_a_threshold() -> None:
    rng = np.random.default_rng(7)
    X = np.concatenate([rng.normal(size=200), rng.normal(size=300) * 4])[:, None]
    rows = Rows({"X": X, "intervals": np.zeros((500, 2)),
                 "groups": np.repeat(["calm", "wild", "wilder"], [200, 150, 150])})  # fmt: skip
    cells, scores = GroupCells("", ("calm", "wild", "wilder")), [rng.random(500)]
    # By exp(x) both wild cells are worth a handful of rows each.
    shared = [fit_weighted(cells, rows, scores, (0.1,), known_ratio(slope)).shared for slope in (0.1, 1.0)]
    assert [own.tolist() for own in shared] == [[0, 1, 2], [0, 1, 1]]
    assert "taken together" in fit_weighted(cells, rows, scores, (0.1,), known_ratio(1.0)).guarantee


def test_faults_of_the_new_rows_are_told_before_and_gone_after(shifted) -> None:
    repair, new = shifted
    assert repair.shift is not None
    assert repair.shift.found
    assert isinstance(repair.rule.thresholds, WeightedThresholds)
    assert "CAL101" in repair.gone
    changes = {change.measure: change for change in repair.changes}
    # What is said of the new rows without their outcomes is what happens to them.
    before, after = changes["coverage"].before, changes["coverage"].after
    assert float(before) == pytest.approx(coverage(new["intervals"], new["y_true"]), abs=0.05)
    assert float(after) == pytest.approx(coverage(repair.apply(new)["intervals"], new["y_true"]), abs=0.05)
    assert "as far as the estimated likelihood ratio" in repair.guarantee
    assert "only if outcomes given the features have not changed" in repair.guarantee
    assert str(repair.shift) in str(repair)
    assert repair.to_dict()["repair"]["shift"]["found"] is True


def test_a_weighted_repair_is_saved_and_applied_to_the_bit(shifted, tmp_path: Path) -> None:
    repair, new = shifted
    loaded = load_repair(repair.save(tmp_path / "repair.json"))
    assert loaded.needs == ("intervals", "X")
    assert loaded.apply(new)["intervals"].tobytes() == repair.apply(new)["intervals"].tobytes()


def test_new_rows_like_the_old_ones_change_nothing() -> None:
    rng = np.random.default_rng(9)
    found = calipers.audit(**columns(2000, rng), alpha=0.1, random_state=0)
    new = columns(1000, rng)
    repair, plain = found.repair(X_new=new["X"]), found.repair()
    assert repair.shift is not None
    assert not repair.shift.found
    assert "no shift of the features was found" in str(repair)
    assert repair.apply(new)["intervals"].tolist() == plain.apply(new)["intervals"].tolist()


def test_new_rows_need_features_of_the_audited_ones() -> None:
    rng = np.random.default_rng(10)
    given = columns(400, rng)
    without = calipers.audit(given["y_true"], intervals=given["intervals"], random_state=0)
    with pytest.raises(InputError, match="X_new needs audited rows with features"):
        without.repair(X_new=given["X"])
    with pytest.raises(InputError, match="at least 50 rows, got 3"):
        calipers.audit(**given, random_state=0).repair(X_new=given["X"][:3])


def test_sets_of_labels_are_weighted_too() -> None:
    rng = np.random.default_rng(11)

    def rows(n: int, moved: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        X = rng.normal(size=(n, 2))
        X[:, 0] += moved
        clear = np.column_stack([X[:, 1], -X[:, 1], np.zeros(n)])
        P, stated = (np.exp(a) / np.exp(a).sum(axis=1, keepdims=True)
                     for a in (2 * clear / (1 + np.exp(X[:, :1])), clear))  # fmt: skip
        return X, (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1), stated

    X, y, stated = rows(3000, 0.0)
    found = calipers.audit(y, probabilities=stated, sets=1 - stated <= 0.75, X=X, random_state=0)
    X, y, stated = rows(3000, 1.2)
    repair = found.repair(X_new=X)
    assert isinstance(repair.rule.thresholds, WeightedThresholds)
    new = repair.apply({"probabilities": stated, "sets": 1 - stated <= 0.75, "X": X})["sets"]
    # 750 calibration rows are worth about 180: three of their standard deviations.
    assert new[np.arange(len(y)), y].mean() == pytest.approx(0.9, abs=3 * np.sqrt(0.09 / 180))
    assert new.sum(axis=1).mean() < 2.8


def test_new_rows_with_other_features_ask_for_thresholds_that_hold_for_them() -> None:
    own = {"promise": "coverage", "rows": 200, "scores": {}, "mean_size": 2.0}
    trials = [
        Trial(name="one threshold", shortfall=0.0, **own),
        Trial(name="weighted", shortfall=0.1, weighted=True, **own),
    ]
    assert _order(trials, {"CAL101"})[0] == 1


def test_infinite_intervals_are_not_chosen_where_finite_ones_are_there() -> None:
    own = {"promise": "coverage", "rows": 200, "scores": {}}
    trials = [
        Trial(name="regions", shortfall=0.0, mean_size=np.inf, **own),
        Trial(name="one threshold", shortfall=0.03, mean_size=1.5, **own),
    ]
    assert _order(trials, {"CAL202"}) == [1, 0]


def test_stating_everything_is_not_chosen_though_it_never_falls_short() -> None:
    own = {"promise": "coverage", "rows": 200, "scores": {}}
    trials = [
        Trial(name="everything", shortfall=0.0, mean_size=3.0, excess=0.08, **own),
        Trial(name="one threshold", shortfall=0.03, mean_size=1.5, **own),
    ]
    assert _order(trials, {"CAL202"})[0] == 1
