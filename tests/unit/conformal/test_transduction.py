"""Full conformal p-values against their definition, on data with and without ties."""

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from calipers.arrays import spawn
from calipers.conformal import transduction, transductive_p_values
from calipers.conformal.neighbour_measures import Draws
from calipers.conformal.transduction import NewDraws
from calipers.exceptions import InputError
from tests.unit.conformal import brute_force_neighbours as brute

MEASURES = ("ratio", "probability", "predictability")


def a_bag(seed, *, n=24, m=5, n_classes=3, ties=False):
    rng = np.random.default_rng(seed)
    if ties:  # integers on a small grid: equal distances, equal points, zeros
        X, Z = rng.integers(0, 4, (n, 2)).astype(float), rng.integers(0, 4, (m, 2)).astype(float)
    else:
        X, Z = rng.normal(size=(n, 3)), rng.normal(size=(m, 3))
    y = np.concatenate([np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)])
    return cdist(X, X), y, cdist(Z, X)


def exact_roots(distances):
    """Distances on an integer grid as square roots in 28 digits."""
    squares = np.rint(distances**2).astype(int).tolist()
    return np.array([[Decimal(v).sqrt() for v in row] for row in squares], dtype=object)


def fractions(distances):
    return np.array([[Fraction(v) for v in row] for row in distances.tolist()], dtype=object)


def draws_of(seed, n, m):
    training, testing = spawn(seed, 2)
    return Draws.of(n, training), NewDraws.of(m, testing, smoothed=True)


@pytest.mark.parametrize("label_conditional", [False, True])
@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("k", [1, 2, 3, 7])
@pytest.mark.parametrize("measure", MEASURES)
def test_p_values_are_those_of_the_definition(measure, k, ties, label_conditional, seed):
    train, y, test = a_bag(seed, ties=ties)
    mine, theirs = draws_of(seed, len(y), len(test))
    exact = (exact_roots(train), exact_roots(test)) if ties else (train, test)
    expected = brute.p_values(
        exact[0], y, exact[1], k, measure,
        label_conditional=label_conditional, tau=theirs.tau, draws=(mine, theirs.objects),
    )  # fmt: skip
    found = transductive_p_values(
        train, y, test, measure=measure, n_neighbors=k, label_conditional=label_conditional,
        smoothed=True, random_state=seed,
    )  # fmt: skip
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    n_classes=st.integers(1, 4),
    k=st.integers(1, 15),
    measure=st.sampled_from(MEASURES),
    label_conditional=st.booleans(),
)
def test_tiny_bags_with_more_neighbours_asked_than_there_are(
    seed, n, n_classes, k, measure, label_conditional
):
    rng = np.random.default_rng(seed)
    X, Z = rng.integers(0, 3, (n, 1)).astype(float), rng.integers(0, 3, (3, 1)).astype(float)
    y = rng.integers(0, n_classes, n)
    train, test = cdist(X, X), cdist(Z, X)
    mine, theirs = draws_of(seed, n, 3)
    expected = brute.p_values(
        fractions(train),
        y,
        fractions(test),
        k,
        measure,
        label_conditional=label_conditional,
        draws=(mine, theirs.objects),
    )
    found = transductive_p_values(
        train, y, test, measure=measure, n_neighbors=k, label_conditional=label_conditional, random_state=seed
    )
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("metric", ["cityblock", "euclidean"])
def test_ratios_that_are_equal_in_exact_arithmetic_are_tied(metric, seed):
    # Classes with fewer than K members have means over unlike counts, such as 6/4 over 3/2 and 2/2 over 1/1.
    rng = np.random.default_rng(seed)
    for _ in range(250):
        n, k = int(rng.integers(4, 9)), int(rng.integers(1, 4))
        X, y = rng.integers(0, 4, (n + 1, 2)), np.append(rng.integers(0, 2, n - 2), [0, 1])
        distances = cdist(X, X, metric)
        exact = exact_roots(distances) if metric == "euclidean" else fractions(distances)
        expected = brute.p_values(exact[:n, :n], y, exact[n:, :n], k, "ratio")
        found = transductive_p_values(distances[:n, :n], y, distances[n:, :n], n_neighbors=k)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("measure", MEASURES)
def test_many_numbers_of_neighbours_in_one_pass_equal_one_at_a_time(measure, seed):
    train, y, test = a_bag(seed, n=60, m=7, ties=True)
    wanted = [5, 1, 9, 5]
    together = transductive_p_values(train, y, test, measure=measure, n_neighbors=wanted, random_state=3)
    assert together.shape == (7, 3, 4)
    for place, k in enumerate(wanted):
        alone = transductive_p_values(train, y, test, measure=measure, n_neighbors=k, random_state=3)
        np.testing.assert_array_equal(together[:, :, place], alone)


@pytest.mark.parametrize("measure", MEASURES)
def test_batches_do_not_change_the_answer(measure, seed, monkeypatch):
    train, y, test = a_bag(seed, n=40, m=11, ties=True)
    options = {"measure": measure, "n_neighbors": [1, 4], "smoothed": True, "random_state": 5}
    whole = transductive_p_values(train, y, test, **options)
    monkeypatch.setattr(transduction, "_BATCH_CELLS", 500)  # blocks of 3 rows, batches of 4 objects
    np.testing.assert_array_equal(transductive_p_values(train, y, test, **options), whole)


def test_hand_computed_ratio():
    # Line: a at 0, 1, 3; b at 10, 12; new at 2.5, K = 1. Scores (other / own) with the new object as a:
    # 0: 10/1, 1: 9/1, 3: 7/0.5, 10: 7/2, 12: 9/2, new: 7.5/0.5 = 15 -> 6 of 6 at most 15.
    # as b: 0: 2.5/1, 1: 1.5/1, 3: 0.5/2, 10: 7/2, 12: 9/2, new: 0.5/7.5 -> only itself: 1 of 6.
    x = np.array([0.0, 1.0, 3.0, 10.0, 12.0])
    p = transductive_p_values(abs(x[:, None] - x), list("aaabb"), abs(2.5 - x)[None])
    np.testing.assert_array_equal(p, [[1.0, 1 / 6]])


def test_hand_computed_votes():
    # The same line, K = 2, new at 2.5. N with the new object as a: 0: {1, 2.5} 2; 1: {0, 2.5} 2; 3: {2.5, 1} 2;
    # 10: {12, 3} 1; 12: {10, 3} 1; new: {3, 1} 2 -> all 6 at most 2.
    # as b: 0: {1, 2.5} 1; 1: {0, 2.5} 1; 3: {2.5, 1} 1; 10: {12, 3} 1; 12: {10, 3} 1; new: {3, 1} 0 -> 1 of 6.
    x = np.array([0.0, 1.0, 3.0, 10.0, 12.0])
    p = transductive_p_values(
        abs(x[:, None] - x), list("aaabb"), abs(2.5 - x)[None], measure="probability", n_neighbors=2
    )
    np.testing.assert_array_equal(p, [[1.0, 1 / 6]])


def test_tied_neighbours_of_the_own_label_are_taken_first():
    # 0 (a) has a at 1 and b at -1, K = 1: its neighbour counts as a, and likewise for the new object at 0.
    x, y = np.array([0.0, 1.0, -1.0]), np.array(["a", "a", "b"])
    p = transductive_p_values(
        abs(x[:, None] - x), y, np.array([[1.0, 1.0, 1.0]]), measure="probability", n_neighbors=1
    )
    # As a: every a has an a at the smallest distance (N = 1), b has only a's (N = 0): new 1 -> 4 of 4.
    # As b: new has b at distance 1, N = 1; 0: a at 1, N = 1; 1: a at 1, N = 1; b: new b at 1 -> N = 1: 4 of 4.
    np.testing.assert_array_equal(p, [[1.0, 1.0]])


def test_the_random_vote_picks_each_tied_label_equally_often():
    # K = 2, the new object's two neighbours have labels a and b: the winner is a coin.
    x, y = np.array([0.0, 2.0, 50.0, 51.0, 80.0, 81.0]), np.array(list("abaabb"))
    wins = 0
    for s in range(400):
        p = transductive_p_values(
            abs(x[:, None] - x),
            y,
            abs(1.0 - x)[None],
            measure="predictability",
            n_neighbors=2,
            random_state=s,
        )
        wins += p[0, 0] > p[0, 1]
    assert 160 <= wins <= 240  # Binomial(400, 1/2): outside with probability 5e-5


@pytest.mark.parametrize("measure", MEASURES)
def test_float32_distances_give_the_p_values_of_the_same_numbers_in_float64(measure, seed):
    train, y, test = a_bag(seed, n=80, m=9)
    narrow = train.astype(np.float32), test.astype(np.float32)
    found = transductive_p_values(
        narrow[0], y, narrow[1], measure=measure, n_neighbors=[1, 3, 6], random_state=0
    )
    wide = [a.astype(np.float64) for a in narrow]
    expected = transductive_p_values(
        wide[0], y, wide[1], measure=measure, n_neighbors=[1, 3, 6], random_state=0
    )
    np.testing.assert_array_equal(found, expected)


def test_a_label_with_one_member_is_strange_but_possible():
    # b has one member: with label a the new object leaves it alone (score 0); as b the two of them pair up.
    x, y = np.array([0.0, 1.0, 2.0, 9.0]), np.array(list("aaab"))
    p = transductive_p_values(abs(x[:, None] - x), y, abs(np.array([[9.5]]) - x), n_neighbors=3)
    # As b: 9: mean(7, 8, 9) / 0.5 = 16; new: mean(7.5, 8.5, 9.5) / 0.5 = 17; 0: 9.25/1.5, 1: 8.25/1, 2: 7.25/1.5.
    # As a: own sums over 3 others: new mean(7.5, 8.5, 9.5) = 8.5 against 0.5 to b: smallest but 9's own 0.
    np.testing.assert_array_equal(p, [[2 / 5, 1.0]])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"train_distances": np.zeros((3, 2))}, r"train_distances must have shape \(3, 3\)"),
        ({"test_distances": np.zeros((1, 2))}, r"test_distances must have shape \(m, 3\)"),
        ({"test_distances": np.array([[0, -1.0, 0]])}, "Negative values in data passed as test_distances: got -1.0 at row 0, column 1"),
        ({"test_distances": np.array([[0, np.nan, 0]])}, "test_distances has 1 NaN of 3 values"),
        ({"measure": "votes"}, "measure must be one of ratio, probability, predictability, got 'votes'"),
        ({"n_neighbors": 0}, "n_neighbors must be a whole number of at least 1, got 0"),
        ({"n_neighbors": []}, "n_neighbors must hold at least one number"),
        ({"n_neighbors": True}, "n_neighbors must be a whole number of at least 1, got True"),
        ({"y": ["a", None, "b"]}, "y has 1 missing of 3 values"),
    ],
)  # fmt: skip
def test_bad_input_is_refused(change, message):
    good = {"train_distances": np.ones((3, 3)), "y": ["a", "b", "a"], "test_distances": np.ones((2, 3))}
    with pytest.raises(InputError, match=message):
        transductive_p_values(**(good | change))
