"""Scores against their definitions, and the two roads to one score against each other, bit for bit."""

from functools import partial

import numpy as np
import pytest

from calipers.conformal import aps, lac, margin, raps, saps, top_k
from calipers.conformal.score_table import score_rule
from calipers.conformal.scores import RankedRule
from calipers.exceptions import InputError, InputTypeError

NAMES = ("lac", "aps", "raps", "saps", "margin", "top_k")
RANKED = ("aps", "raps", "saps", "top_k")
FUNCTIONS = {"lac": lac, "aps": aps, "raps": raps, "saps": saps, "margin": margin, "top_k": top_k}


def tables():
    """Probabilities with and without ties, saturated, tiny, single precision, and rows that sum to almost 1."""
    rng = np.random.default_rng(3)
    coarse = rng.multinomial(12, np.full(7, 1 / 7), size=60) / 12
    saturated = np.eye(6)[rng.integers(0, 6, 30)]
    tiny = np.exp(rng.normal(0, 30, (80, 9)))
    loose = rng.dirichlet(np.ones(5), size=50) * rng.uniform(0.9995, 1.0005, (50, 1))
    return {
        "smooth": rng.dirichlet(np.ones(11), size=100),
        "ties": coarse,
        "saturated": saturated,
        "tiny": tiny / tiny.sum(axis=1, keepdims=True),
        "single": rng.dirichlet(np.ones(8), size=60).astype(np.float32),
        "loose": loose,
        "two": rng.dirichlet(np.ones(2), size=40),
    }


def definition(name, p, y, u):
    """One row, one label, as the contract says it; p sorted by Python, ties in column order."""
    order = sorted(range(len(p)), key=lambda j: (-p[j], j))
    r = order.index(y) + 1
    if name == "lac":
        return 1 - p[y]
    if name == "margin":
        return max(p[j] for j in range(len(p)) if j != y) - p[y]
    if name == "top_k":
        return r - u
    if name == "saps":
        return (1 - u) * max(p) if r == 1 else max(p) + 0.2 * (r - 1 - u)
    mass = 1.0 if r == len(p) else min(1.0, float(sum(p[j] for j in order[:r])))
    return mass - u * p[y] + (0.01 * max(0, r - 1) if name == "raps" else 0.0)


@pytest.mark.parametrize("table", tables())
@pytest.mark.parametrize("name", NAMES)
def test_scores_equal_their_definitions(name, table):
    P = tables()[table]
    u = np.random.default_rng(0).random(len(P)) if name in RANKED else None
    ours = FUNCTIONS[name](P) if u is None else FUNCTIONS[name](P, u)
    wide = P.astype(np.float64)
    expected = [
        [definition(name, row, y, 0.0 if u is None else u[i]) for y in range(P.shape[1])]
        for i, row in enumerate(wide)
    ]
    np.testing.assert_allclose(ours, expected, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("table", tables())
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("randomized", [False, True])
def test_calibration_scores_are_the_entries_of_the_table_bit_for_bit(name, table, randomized):
    P = tables()[table].astype(np.float64)
    rule = score_rule(name)
    if randomized and not rule.randomizable:
        return
    rng = np.random.default_rng(1)
    u = rng.random(len(P)) if randomized else None
    everything = rule.matrix(P, u)
    for _ in range(4):
        y = rng.integers(0, P.shape[1], len(P))
        np.testing.assert_array_equal(rule.at_labels(P, y, u), everything[np.arange(len(P)), y])


@pytest.mark.parametrize("table", tables())
@pytest.mark.parametrize("name", RANKED)
@pytest.mark.parametrize("randomized", [False, True])
def test_sets_by_sorted_values_equal_sets_by_scores(name, table, randomized):
    P = tables()[table].astype(np.float64)
    rng = np.random.default_rng(2)
    u = rng.random(len(P)) if randomized else None
    rule = score_rule(name)
    scores = rule.matrix(P, u)
    # Limits that are scores themselves, so that equality decides; and both infinities.
    limits = np.stack([rng.permutation(scores.ravel())[: len(P)] for _ in range(3)], axis=1)
    limits[0], limits[1] = np.inf, -np.inf
    expected = scores[:, :, None] <= limits[:, None, :]
    np.testing.assert_array_equal(rule.sets(P, limits, u), expected)


@pytest.mark.parametrize("table", tables())
@pytest.mark.parametrize("name", RANKED)
def test_ranked_scores_never_decrease_in_the_rank(name, table):
    P = tables()[table].astype(np.float64)
    u = np.random.default_rng(5).random(len(P))
    order = np.argsort(-P, axis=1, kind="stable")
    for draw in (None, u, np.full(len(P), np.nextafter(1.0, 0.0))):
        ranked = np.take_along_axis(score_rule(name).matrix(P, draw), order, axis=1)
        assert (np.diff(ranked, axis=1) >= 0).all()


@pytest.mark.parametrize("table", tables())
def test_the_last_ranked_label_of_a_deterministic_aps_is_exactly_one(table):
    P = tables()[table]
    last = np.argsort(-P, axis=1, kind="stable")[:, -1]
    scores = aps(P)
    assert (scores[np.arange(len(P)), last] == 1.0).all()
    assert (scores <= 1.0).all()


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
@pytest.mark.parametrize("name", NAMES)
def test_every_array_library_gives_the_same_scores_and_sets(name, library):
    xp = pytest.importorskip(library)
    P = tables()["ties"]
    u = np.random.default_rng(0).random(len(P)) if name in RANKED else None
    moved_u = None if u is None else xp.asarray(u)
    rule, y = score_rule(name), np.random.default_rng(1).integers(0, P.shape[1], len(P))
    expected = rule.matrix(P, u)
    moved = rule.matrix(xp.asarray(P), moved_u)
    np.testing.assert_array_equal(np.asarray(moved), expected)
    at = rule.at_labels(xp.asarray(P), xp.asarray(y), moved_u)
    np.testing.assert_array_equal(np.asarray(at), expected[np.arange(len(P)), y])
    if isinstance(rule, RankedRule):
        limits = np.tile([0.3, 0.8], (len(P), 1))
        sets = rule.sets(xp.asarray(P), xp.asarray(limits), moved_u)
        np.testing.assert_array_equal(np.asarray(sets), expected[:, :, None] <= limits[:, None, :])


def test_options_travel_in_a_partial_and_keep_the_fast_road():
    P = tables()["smooth"]
    rule = score_rule(partial(raps, penalty=0.5, k_reg=2))
    assert isinstance(rule, RankedRule)
    np.testing.assert_array_equal(rule.matrix(P, None), raps(P, penalty=0.5, k_reg=2))


def test_deterministic_saps_scores_the_top_label_alike_on_both_sides():
    # A peer scores it 0 in calibration and p_max in test, and covers 0.29 at nominal 0.90.
    P = np.array([[0.75, 0.25]])
    assert score_rule("saps").at_labels(P, np.array([0]), None)[0] == saps(P)[0, 0] == 0.75


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lac([[0.5, 0.6]]), InputError, "must sum to 1"),
        (lambda: aps([[0.5, 0.5]], u=1.0), InputError, r"u must lie in \[0, 1\)"),
        (lambda: aps([[0.5, 0.5]], u=[0.1, 0.2]), InputError, r"one per row \(1\)"),
        (lambda: raps([[0.5, 0.5]], penalty=-1), InputError, "penalty must be finite and not negative"),
        (lambda: saps([[0.5, 0.5]], weight="x"), InputTypeError, "weight must be a number"),
        (lambda: score_rule("nothing"), InputError, "nonconformity must be one of lac, aps"),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_a_uniform_of_one_is_named_with_its_row():
    with pytest.raises(InputError, match=r"u must lie in \[0, 1\), got 1 at row 1\."):
        aps([[0.5, 0.5], [0.5, 0.5]], [0.0, 1.0])
