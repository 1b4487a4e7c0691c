"""The parts of a repair, by hand and against other routes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import approx_fprime, linprog
from scipy.special import expit

from calipers.auditing.repair.boosted_trees import Trees, boost, one_tree
from calipers.auditing.repair.choice import Trial, _order
from calipers.auditing.repair.feature_codes import FeatureCodes, statements
from calipers.auditing.repair.nonconformity import IntervalScore, LabelScore
from calipers.auditing.repair.partitions import GroupCells, difficulty_partition, group_partitions
from calipers.auditing.repair.recalibration import (
    fit_segments,
    fit_temperature,
    fit_temperature_and_uniform,
    mixed,
    mixture_loss,
    recalibrations,
    sharpened,
)
from calipers.auditing.repair.thresholds import FEWEST_ROWS, _conditional, fit_cells, fit_conditional
from calipers.conformal import conformal_quantile
from calipers.exceptions import InputError, UnseenGroupWarning
from calipers.inputs.rows import Rows


def probability_rows(n: int, seed: int, temperature: float = 1.0, **given: object) -> Rows:
    rng = np.random.default_rng(seed)
    P = rng.dirichlet(np.ones(3), size=n)
    y = (rng.random((n, 1)) > P.cumsum(axis=1)).sum(axis=1)
    stated = sharpened(P, temperature)
    return Rows({"y_true": y, "probabilities": stated, **given}, classes=(0, 1, 2))


def test_sharpened_probabilities_by_hand() -> None:
    # 0.8^2 / (0.8^2 + 0.2^2) = 0.64 / 0.68
    assert sharpened(np.array([[0.8, 0.2]]), 0.5)[0, 0] == pytest.approx(0.64 / 0.68)


def test_temperature_is_found_back() -> None:
    found = fit_temperature(probability_rows(20_000, 3, 0.5), np.random.default_rng(0))
    assert found.temperature == pytest.approx(2.0, rel=0.05)


def test_a_tree_by_hand() -> None:
    # Every row is asked x0 > 1, then x1 > 0; the leaf is both answers in binary.
    trees = Trees(10.0, np.array([[0, 1]]), np.array([[1.0, 0.0]]), np.arange(4.0)[None])
    values = np.array([[0.0, 5.0], [2.0, -1.0], [2.0, 1.0], [1.0, 0.0]], dtype=np.float32)
    assert trees.predict(values).tolist() == [11.0, 12.0, 13.0, 10.0]
    # Only the columns that are read are kept.
    wider = Trees(10.0, np.array([[1, 4]]), trees.threshold, trees.value)
    assert wider.used().tolist() == [1, 4]
    assert wider.renumbered(wider.used()).predict(values).tolist() == trees.predict(values).tolist()


def test_regions_have_rows_enough_and_the_means_of_their_rows() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(1000, 3)).astype(np.float32)
    y = (X[:, 1] > 0.7).astype(float)
    tree = one_tree(X, y, rng, leaf_rows=100)
    leaf = tree.leaves(X)
    rows_of_leaves = np.bincount(leaf)
    assert len(rows_of_leaves) > 1
    assert rows_of_leaves.min() >= 100
    assert tree.predict(X) == pytest.approx((np.bincount(leaf, y) / rows_of_leaves)[leaf])
    assert tree.predict(X)[y == 1].mean() > 0.8 > 0.2 > tree.predict(X)[y == 0].mean()
    assert not len(one_tree(X, y, rng, leaf_rows=600).used())


def test_a_boosted_quantile_follows_the_spread_of_the_outcome() -> None:
    rng = np.random.default_rng(2)
    X = rng.uniform(size=(4000, 2)).astype(np.float32)
    y = rng.normal(size=4000) * np.where(X[:, 0] > 0.5, 3.0, 1.0)
    trees = boost(X, y, rng, loss="quantile", level=0.9, start=float(np.quantile(y, 0.9)))
    found = [trees.predict(X[side]).mean() for side in (X[:, 0] < 0.4, X[:, 0] > 0.6)]
    assert found == pytest.approx([1.28, 3.84], rel=0.2)  # 1.2816 is the normal quantile


def test_trees_read_what_is_stated_after_the_features() -> None:
    intervals = np.array([[0.0, 2.0], [-np.inf, 1.0]])
    rows = Rows({"y_true": [0.0, 0.0], "intervals": intervals, "X": np.array([[7.0], [np.nan]])})
    codes = FeatureCodes.of(rows, with_statements=True)
    assert codes.stated == ("middle", "half width")
    assert codes.values(rows).tolist() == [[7.0, 1.0, 1.0], [7.0, 0.0, np.inf]]
    only = codes.only(np.array([2]))
    assert (only.names, only.stated, only.values(rows).tolist()) == ((), ("half width",), [[1.0], [np.inf]])
    stated = np.array([[0.2, 0.5, 0.3]])
    found = statements(Rows({"y_true": [0], "probabilities": stated}, classes=(0, 1, 2)))
    assert [float(column[0]) for column in found.values()] == [0.5, 0.3, 0.2, 0.2, 0.5, 0.3]


def test_boosting_learns_nothing_from_noise_and_something_from_a_signal() -> None:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(3000, 2)).astype(np.float32)
    signal = boost(X, rng.random(3000) < np.where(X[:, 0] > 0, 0.8, 0.2), rng, loss="logistic")
    assert len(signal.value) > 5
    p = signal.predict(X)
    assert p[X[:, 0] > 0.5].min() > 0 > p[X[:, 0] < -0.5].max()


def test_conditional_thresholds_with_one_cell_are_the_conformal_quantile(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for n in (19, 99, 100, 250):
        scores = rng.normal(size=n)
        found = _conditional(np.ones((n, 1)), np.ones((1, 1)), scores, 0.1)[0]
        assert found == pytest.approx(conformal_quantile(scores, 0.1), abs=1e-7)


def test_too_few_rows_have_an_infinite_conditional_threshold() -> None:
    assert _conditional(np.ones((8, 1)), np.ones((1, 1)), np.arange(8.0), 0.1)[0] == np.inf


def test_a_conditional_threshold_is_where_the_dual_weight_reaches_one_minus_alpha() -> None:
    """The definition of Gibbs, Cherian and Candes: solve with the new score in the sample, and search."""
    rng = np.random.default_rng(5)
    phi = np.column_stack([np.ones(60), rng.random(60) < 0.5, rng.random(60) < 0.3]).astype(float)
    scores, new, alpha = rng.normal(size=60) * (1 + phi[:, 1]), np.array([1.0, 1.0, 1.0]), 0.2

    def weight(s: float) -> float:
        A = np.vstack([phi, new]).T
        solved = linprog(
            -np.append(scores, s), A_eq=A, b_eq=np.zeros(3), bounds=(-alpha, 1 - alpha), method="highs"
        )
        return float(solved.x[-1])

    found = _conditional(phi, new[None], scores, alpha)[0]
    assert weight(found - 1e-4) < 1 - alpha - 1e-9
    assert weight(found + 1e-4) == pytest.approx(1 - alpha)


def test_overlapping_groups_are_covered_each_on_its_own() -> None:
    """200 draws of calibration and test: every group of both attributes covers 0.8, up to binomial noise."""
    rng = np.random.default_rng(6)
    hits, counts = np.zeros(4), np.zeros(4)
    for _ in range(40):
        n, m = 120, 60
        table = np.column_stack([rng.random(n + m) < 0.5, rng.random(n + m) < 0.4]).astype(int)
        y = rng.normal(size=n + m) * (1 + 2 * table[:, 0] + 3 * table[:, 1])
        rows = Rows(
            {"y_true": y, "intervals": np.zeros((n + m, 2)), "groups": table.astype(str)}, alpha=(0.2,)
        )
        fit, new = rows.take(np.arange(n)), rows.take(np.arange(n, n + m))
        score = IntervalScore("shift")
        rule = fit_conditional(group_partitions(rows), fit, [score.of_outcomes(fit, 0)], (0.2,), rng)
        assert rule is not None
        covered = np.abs(y[n:]) <= rule.at(new, 0)
        for k, which in enumerate(
            (table[n:, 0] == 0, table[n:, 0] == 1, table[n:, 1] == 0, table[n:, 1] == 1)
        ):
            hits[k] += covered[which].sum()
            counts[k] += which.sum()
    shares = hits / counts
    # At least 0.8; at most d / (n P(group)) = 3 / (120 * 0.4) more; rows of one draw share thresholds.
    assert (shares > 0.8 - 0.035).all()
    assert (shares < 0.8 + 3 / 48 + 0.035).all()


def test_small_groups_share_a_threshold_and_unseen_ones_get_everything() -> None:
    n = 4 * FEWEST_ROWS
    groups = np.array(["big"] * (n - 20) + ["small"] * 10 + ["tiny"] * 10)
    y = np.arange(n, dtype=float)
    rows = Rows({"y_true": y, "intervals": np.zeros((n, 2)), "groups": groups})
    rule = fit_cells(GroupCells("", ("big", "small", "tiny")), rows, [y], (0.1,))
    assert rule.shared.tolist() == [0, 1, 1]
    assert rule.values[0, 0] == conformal_quantile(y[:-20], 0.1)
    assert rule.values[1, 0] == conformal_quantile(y[-20:], 0.1)
    new = Rows({"intervals": np.zeros((2, 2)), "groups": np.array(["tiny", "other"])})
    with pytest.warns(UnseenGroupWarning, match="1 rows belong to a group"):
        assert rule.at(new, 0).tolist() == [rule.values[1, 0], np.inf]


def test_unseen_groups_get_the_largest_conditional_threshold_and_a_warning() -> None:
    rng = np.random.default_rng(8)
    table = np.column_stack([rng.integers(0, 2, 200), rng.integers(0, 2, 200)])
    y = rng.normal(size=200) * (1 + table.sum(axis=1))
    rows = Rows({"y_true": y, "intervals": np.zeros((200, 2)), "groups": table})
    rule = fit_conditional(list(group_partitions(rows)), rows, [np.abs(y)], (0.1,), rng)
    assert rule is not None
    new = Rows({"intervals": np.zeros((2, 2)), "groups": np.array([[0, 0], [0, 7]])})
    with pytest.warns(UnseenGroupWarning, match="1 rows belong to a group .* largest threshold"):
        found = rule.at(new, 0)
    assert found[1] == rule.values.max() > found[0]


@pytest.mark.parametrize("kind", ["shift", "scale"])
def test_an_outcome_is_in_the_new_interval_exactly_when_its_score_is_at_most_the_threshold(kind: str) -> None:
    rng = np.random.default_rng(7)
    low = rng.normal(size=300)
    rows = Rows({"y_true": rng.normal(size=300), "intervals": np.column_stack([low, low + rng.random(300)])})
    score = IntervalScore(kind, floor=0.01)
    scores = score.of_outcomes(rows, 0)
    ends = score.intervals(rows, 0, np.full(300, 0.3))
    y = rows["outcomes"]
    close = np.isclose(scores, 0.3)
    assert (((ends[:, 0] <= y) & (y <= ends[:, 1])) == (scores <= 0.3))[~close].all()


def test_an_infinite_interval_stays_infinite() -> None:
    rows = Rows({"y_true": [0.0], "intervals": [[-np.inf, np.inf]]})
    for kind in ("shift", "scale"):
        assert IntervalScore(kind).intervals(rows, 0, np.array([-1.0])).tolist() == [[-np.inf, np.inf]]
        assert IntervalScore(kind).of_outcomes(rows, 0)[0] == -np.inf


def test_a_label_score_of_p_values_keeps_their_order() -> None:
    rows = Rows({"y_true": [1], "p_values": [[0.2, 0.7]]}, classes=(0, 1))
    assert LabelScore("p_values").of_outcomes(rows, 0) == pytest.approx([0.3])


def test_parts_along_difficulty_need_an_ease_that_varies() -> None:
    assert (
        difficulty_partition(
            Rows({"y_true": [0.0, 1.0], "intervals": np.zeros((2, 2)), "ease": [1.0, 1.0]}), 5
        )
        is None
    )


def test_a_missing_attribute_is_named() -> None:
    rows = Rows({"intervals": np.zeros((2, 2)), "groups": np.array([["a", "b"], ["c", "d"]])})
    with pytest.raises(InputError, match="needs the groups 'site'"):
        GroupCells("site", ("a",)).cells(rows)


def test_recalibrations_offered_follow_from_the_columns() -> None:
    three = probability_rows(50, 0)
    assert list(recalibrations(three)) == ["temperature", "temperature and uniform", "isotonic"]
    with_groups = probability_rows(50, 0, groups=np.arange(50) % 2)
    assert list(recalibrations(with_groups)) == [
        "temperature", "temperature and uniform", "isotonic", "per segment", "multicalibrated"
    ]  # fmt: skip
    two = Rows({"y_true": [0, 1], "probabilities": [[0.5, 0.5], [0.2, 0.8]]}, classes=(0, 1))
    assert list(recalibrations(two)) == ["temperature", "beta", "isotonic", "Venn-Abers"]


def test_a_uniform_share_and_a_temperature_are_found_back() -> None:
    rng = np.random.default_rng(1)
    P = rng.dirichlet(np.ones(4) / 2, size=30_000)
    true = mixed(P, 2.0, 0.1)
    y = (rng.random((len(P), 1)) > true.cumsum(axis=1)).sum(axis=1)
    rows = Rows({"y_true": y, "probabilities": P}, classes=(0, 1, 2, 3))
    found = fit_temperature_and_uniform(rows, rng)
    assert found.temperature == pytest.approx(2.0, rel=0.1)
    assert found.uniform == pytest.approx(0.1, abs=0.02)
    # No point of a fine grid is more likely, so the gradient that was followed is the right one.
    grid = [
        (t, u)
        for t in found.temperature * np.geomspace(0.9, 1.1, 5)
        for u in found.uniform * np.linspace(0.8, 1.2, 5)
    ]
    losses = [-np.mean(np.log(mixed(P, t, u)[np.arange(len(y)), y])) for t, u in grid]
    own = -np.mean(np.log(found.apply(rows)[np.arange(len(y)), y]))
    assert own <= min(losses) + 1e-7


def test_rows_that_are_sure_and_wrong_do_not_make_all_others_under_confident() -> None:
    rng = np.random.default_rng(2)
    P = sharpened(rng.dirichlet(np.ones(5), size=4000), 0.5)
    y = (rng.random((len(P), 1)) > P.cumsum(axis=1)).sum(axis=1)
    broken = rng.random(len(P)) < 0.1
    stated = np.where(broken[:, None], sharpened(rng.permuted(P, axis=1), 0.02), P)
    rows = Rows({"y_true": np.minimum(y, 4), "probabilities": stated}, classes=tuple(range(5)))
    others = rows.take(~broken)

    def bias(map_: Any) -> float:
        new = map_.apply(others)
        return float(np.mean(new.argmax(axis=1) == others["y"]) - new.max(axis=1).mean())

    alone, both = (bias(fit(rows, rng)) for fit in (fit_temperature, fit_temperature_and_uniform))
    assert alone > 0.1
    assert abs(both) < alone / 2


def test_a_small_group_keeps_near_all_rows_and_a_large_one_goes_its_own_way() -> None:
    rng = np.random.default_rng(3)
    P = rng.dirichlet(np.ones(3), size=6000)
    groups = np.repeat(["large", "small"], [5970, 30])
    y = (rng.random((len(P), 1)) > P.cumsum(axis=1)).sum(axis=1)
    y[-30:] = P[-30:].argmax(axis=1)
    rows = Rows({"y_true": y, "probabilities": P, "groups": groups}, classes=(0, 1, 2))
    lines = fit_segments(rows, rng).lines
    large, small, pooled = lines[:, 1]
    assert large == pytest.approx(pooled, rel=0.02)
    assert 1.5 * pooled < small < 50 * pooled


@pytest.mark.parametrize("centre", [None, np.array([0.4, -1.0])])
def test_the_gradient_of_the_mixture_is_that_of_its_loss(centre: np.ndarray | None) -> None:
    weights = np.random.default_rng(0).integers(0, 4, 60).astype(float)
    loss = mixture_loss(probability_rows(60, 1, 0.7, sample_weight=weights), centre)
    for at in ([0.0, -2.0], [0.7, -0.5], [-0.5, 1.0]):
        expected = approx_fprime(np.array(at), lambda own: loss(own)[0], 1e-7)
        assert loss(np.array(at))[1] == pytest.approx(expected, abs=1e-5)


def test_the_loss_of_a_mixture_by_hand() -> None:
    """Two rows that count 3 and 1, at temperature 1 and a share of a half; then a prior one spread away."""
    given = {"y_true": [0, 1], "probabilities": [[0.6, 0.4, 0.0], [0.2, 0.3, 0.5]], "sample_weight": [3, 1]}
    rows = Rows(given, classes=(0, 1, 2))
    likely = np.log(0.5 * np.array([0.6, 0.3]) + 0.5 / 3)
    plain = -(3 * likely[0] + likely[1]) / 4
    assert mixture_loss(rows, None)(np.zeros(2))[0] == pytest.approx(plain)
    assert mixture_loss(rows, np.array([1.5, 0.0]))(np.zeros(2))[0] == pytest.approx(plain + 1 / (2 * 2))


def line_rows(n: int, seed: int, slope: float, group: str) -> dict[str, np.ndarray]:
    """Two classes, stated with log-odds that are right once multiplied by the slope."""
    rng = np.random.default_rng(seed)
    s = rng.normal(size=n) * 1.5
    stated = expit(s)
    return {"y_true": (rng.random(n) < expit(slope * s)).astype(int), "groups": np.repeat(group, n),
            "probabilities": np.column_stack([1 - stated, stated])}  # fmt: skip


def test_a_small_group_of_two_classes_keeps_near_all_rows_and_a_large_one_goes_its_own_way() -> None:
    parts = [
        line_rows(4000, 0, 1.0, "large"),
        line_rows(3000, 1, 0.5, "other"),
        line_rows(20, 2, 1.0, "small"),
    ]
    # All that the small group states is on the right side: without a prior its slope would be endless.
    parts[2]["y_true"] = (parts[2]["probabilities"][:, 1] > 0.5).astype(int)
    rows = Rows({name: np.concatenate([own[name] for own in parts]) for name in parts[0]}, classes=(0, 1))
    lines = fit_segments(rows, np.random.default_rng(0)).lines
    large, other, small, pooled = lines[:, 1]
    # Four standard deviations of a slope of so many rows, about 0.04.
    assert large == pytest.approx(1.0, abs=0.16)
    assert other == pytest.approx(0.5, abs=0.16)
    assert pooled < small < pooled + 4 * 1.5  # four spreads of the prior


def trial(name: str, shortfall: float, size: float, score: float | None = None, **more: Any) -> Trial:
    scores = {} if score is None else {"interval score": score}
    return Trial(
        promise="coverage", name=name, rows=200, scores=scores, shortfall=shortfall, mean_size=size, **more
    )


ORDERS = {
    "the least shortfall": ([trial("a", 0.06, 1.0), trial("b", 0.0, 2.0)], {"CAL202"}, [1, 0]),
    "within a point of it the smallest": ([trial("a", 0.009, 1.0), trial("b", 0.0, 2.0)], {"CAL202"}, [0, 1]),
    "within its noise the smallest": (
        [trial("a", 0.03, 1.0), trial("b", 0.0, 2.0, noise=0.001)], {"CAL202"}, [0, 1]
    ),
    "of nearly equal size the one that guarantees most": (
        [trial("a", 0.0, 1.0), trial("b", 0.0, 1.015, guaranteed=2)], {"CAL202"}, [1, 0]
    ),
    "a guarantee does not buy three per cent": (
        [trial("a", 0.0, 1.0), trial("b", 0.0, 1.03, guaranteed=2)], {"CAL202"}, [0, 1]
    ),
    "the simplest where no slice was broken": (
        [trial("a", 0.0, 1.0), trial("b", 0.0, 1.0, guaranteed=2)], {"CAL101"}, [0, 1]
    ),
    "then those that are able, by shortfall": (
        [trial("a", 0.0, 1.0), trial("b", 0.2, 0.5), trial("c", 0.005, 3.0), trial("d", 0.1, 0.5)],
        {"CAL101"},
        [0, 2, 3, 1],
    ),
    "of others first those that do not cover too much": (
        [trial("a", 0.1, 1.0), trial("b", 0.0, 3.0, excess=0.1), trial("c", 0.3, 1.0)], {"CAL101"}, [0, 2, 1]
    ),
    "some excess is the price of even coverage": (
        [trial("a", 0.1, 1.0), trial("b", 0.0, 1.2, excess=0.02)], {"CAL202"}, [1, 0]
    ),
    "of intervals those whose score is best, though they are wider": (
        [trial("a", 0.0, 1.0, score=2.0), trial("b", 0.0, 1.2, score=1.5)], {"CAL202"}, [1, 0]
    ),
    "a broken part asks for a guarantee in such parts, though it costs size": (
        [trial("a", 0.0, 1.0), trial("b", 0.0, 1.2, guaranteed=1, in_learnt=True)], {"CAL202"}, [1, 0]
    ),
    "two points of evenness do not buy everything": (
        [trial("a", 0.015, 1.0), trial("b", 0.0, 1.6)], {"CAL202"}, [0, 1]
    ),
    "but they are worth something": (
        [trial("a", 0.015, 1.0), trial("b", 0.0, 1.4)], {"CAL202"}, [1, 0]
    ),
    "a guarantee in the groups does not buy everything": (
        [trial("a", 0.0, 1.0), trial("b", 0.0, 1.6, guaranteed=1, in_groups=True)], {"CAL201"}, [0, 1]
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", ORDERS)
def test_the_order_of_candidates(case: str) -> None:
    trials, codes, expected = ORDERS[case]
    assert _order(trials, codes) == expected


def test_a_broken_group_asks_for_a_guarantee_in_the_groups_though_it_costs_size() -> None:
    own = {"promise": "coverage", "rows": 200, "scores": {}, "shortfall": 0.0}
    trials = [
        Trial(name="one threshold", mean_size=2.0, **own),
        Trial(name="per group", mean_size=2.5, guaranteed=1, in_groups=True, **own),
    ]
    assert [_order(trials, codes)[0] for codes in ({"CAL101"}, {"CAL202"}, {"CAL201", "CAL202"})] == [0, 0, 1]
