"""Theorems 1 to 6 and the identities, on random tables; optimality against every weak order."""

from fractions import Fraction as Fr
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from calipers.conformal.idealised import (
    conformity,
    criterion_value,
    is_optimal,
    is_refinement,
    optimal_measure,
    refines,
)
from calipers.conformal.idealised.law import Law
from calipers.conformal.idealised.optimality import OPTIMAL_KIND, optimal_by_search
from calipers.conformal.idealised.search import n_weak_orders, weak_orders
from calipers.exceptions import InputError, InputTypeError

CRITERIA = tuple(OPTIMAL_KIND)
PARTNERS = {"S": "N", "U": "M", "F": "E", "OF": "OE", "OU": "OM"}


def table(counts):
    """A table of whole numbers as exact probabilities."""
    total = sum(map(sum, counts))
    return [[Fr(c, total) for c in row] for row in counts]


@st.composite
def worlds(draw, labels=(2, 4), objects=(1, 4), smallest=0):
    """A random exact table and a random measure with ties."""
    n, k = draw(st.integers(*objects)), draw(st.integers(*labels))
    rows = st.lists(st.integers(smallest, 6), min_size=k, max_size=k).filter(any)
    counts = draw(
        st.lists(rows, min_size=n, max_size=n).filter(lambda t: all(map(any, zip(*t, strict=True))))
    )
    ranks = st.lists(st.lists(st.integers(0, 5), min_size=k, max_size=k), min_size=n, max_size=n)
    return table(counts), draw(ranks)


def integral(f, cuts):
    """Exact integral over (0, 1) of a function that is linear between the cuts."""
    edges = sorted({Fr(0), Fr(1), *(c for c in cuts if 0 < c < 1)})
    total = Fr(0)
    for a, b in pairwise(edges):
        total += (b - a) * (f(a + (b - a) / 3) + f(a + 2 * (b - a) / 3)) / 2
    return total


def level_cuts(Q, A, label_conditional):
    from calipers.conformal.idealised.law import Lines

    law = Law.of(Q)
    lines = Lines.of(law, A, label_conditional=label_conditional)
    cuts = set()
    for below, equal in zip(lines.below, lines.equal, strict=True):
        pairs = list(zip(below, equal, strict=True))
        cuts |= {b for b, _ in pairs} | {b + e for b, e in pairs}
        cuts |= {(e1 * b2 - e2 * b1) / (e1 - e2) for b1, e1 in pairs for b2, e2 in pairs if e1 != e2}
    return cuts


@settings(max_examples=25, deadline=None)
@given(worlds(objects=(1, 3)), st.booleans())
def test_level_free_criteria_are_integrals_of_their_partners(world, label_conditional):
    Q, A = world
    cuts = level_cuts(Q, A, label_conditional)

    def value(name, alpha=None):
        return criterion_value(Q, A, name, alpha=alpha, label_conditional=label_conditional)

    for free, level in PARTNERS.items():
        assert value(free) == integral(lambda a, level=level: value(level, a), cuts), free
    assert value("credibility") == 1 - integral(lambda a: value("empty", a), cuts)


@settings(max_examples=60, deadline=None)
@given(worlds(), st.booleans(), st.fractions(Fr(1, 20), Fr(19, 20), max_denominator=20))
def test_identities_between_criteria(world, label_conditional, alpha):
    Q, A = world

    def value(name, a=None):
        return criterion_value(Q, A, name, alpha=a, label_conditional=label_conditional)

    assert value("S") - value("OF") == Fr(1, 2)
    assert value("N", alpha) - value("OE", alpha) == 1 - alpha
    if len(Q[0]) == 2:
        assert value("U") == value("F")
        assert value("OU") == value("OF")
        assert value("M", alpha) == value("E", alpha)
        assert value("OM", alpha) == value("OE", alpha)


@settings(max_examples=40, deadline=None)
@given(worlds(), st.fractions(Fr(1, 20), Fr(19, 20), max_denominator=20))
def test_corollary_2_an_m_optimal_measure_is_never_both_multiple_and_empty(world, alpha):
    Q, _ = world
    A = optimal_measure(Q, "M")
    assert criterion_value(Q, A, "M", alpha=alpha) * criterion_value(Q, A, "empty", alpha=alpha) == 0


@settings(max_examples=60, deadline=None)
@given(worlds(), st.fractions(Fr(1, 20), Fr(19, 20), max_denominator=20))
def test_theorems_1_to_4_the_optimal_measures_beat_any_other(world, alpha):
    Q, other = world
    for name in CRITERIA:
        best = optimal_measure(Q, name)
        assert is_optimal(Q, best, name)
        level = None if name in ("S", "U", "F", "OU", "OF") else alpha
        ours, theirs = (criterion_value(Q, A, name, alpha=level) for A in (best, other))
        assert ours <= theirs, name
        if ours == theirs and name in ("U", "F"):
            assert criterion_value(Q, best, "credibility") <= criterion_value(Q, other, "credibility")
        if ours == theirs and name in ("M", "E"):
            assert criterion_value(Q, best, "empty", alpha=alpha) >= criterion_value(
                Q, other, "empty", alpha=alpha
            )


@settings(max_examples=60, deadline=None)
@given(worlds(), st.fractions(Fr(1, 20), Fr(19, 20), max_denominator=20))
def test_theorem_5_cp_is_label_conditionally_optimal_for_the_probabilistic_criteria(world, alpha):
    Q, other = world
    cp = conformity(Q, "CP")
    for name, level in (("S", None), ("OF", None), ("N", alpha), ("OE", alpha)):
        assert is_optimal(Q, cp, name, label_conditional=True)
        ours, theirs = (criterion_value(Q, A, name, alpha=level, label_conditional=True) for A in (cp, other))
        assert ours <= theirs


# Positive tables, tables with impossible labels, with probabilities of exactly 1/2, with equal objects.
SMALL = [
    [[2, 3, 5]],
    [[1, 1, 2]],
    [[1, 1, 1]],
    [[3, 1, 1]],
    [[0, 1, 2]],
    [[0, 0, 1]],
    [[0, 1, 1]],
    [[1, 2, 3, 6]],
    [[1, 2], [3, 1]],
    [[1, 1], [3, 1]],
    [[1, 2], [0, 1]],
    [[2, 4], [1, 2]],
]


@pytest.mark.parametrize("counts", SMALL, ids=str)
@pytest.mark.parametrize("name", CRITERIA)
def test_is_optimal_agrees_with_the_definition_over_all_weak_orders(counts, name):
    Q = table(counts)
    measures, best = optimal_by_search(Law.of(Q), name, label_conditional=False)
    found = [is_optimal(Q, A.tolist(), name) for A in measures]
    np.testing.assert_array_equal(found, best)
    assert best.any()


@pytest.mark.slow
@pytest.mark.parametrize(
    "counts", [[[2, 3, 5], [1, 4, 2]], [[2, 1, 1], [0, 1, 2]], [[1, 2], [2, 1], [3, 3]]], ids=str
)
@pytest.mark.parametrize("name", CRITERIA)
def test_is_optimal_agrees_with_the_definition_on_six_examples(counts, name):
    test_is_optimal_agrees_with_the_definition_over_all_weak_orders(counts, name)


@pytest.mark.parametrize("counts", [[[1, 2, 3], [3, 2, 2]], [[1, 2], [3, 1], [1, 1]]], ids=str)
@pytest.mark.parametrize("name", ["S", "N", "OF", "OE"])
def test_theorem_5_agrees_with_the_definition_over_all_orders_within_labels(counts, name):
    Q = table(counts)
    measures, best = optimal_by_search(Law.of(Q), name, label_conditional=True)
    found = [is_optimal(Q, A.tolist(), name, label_conditional=True) for A in measures]
    np.testing.assert_array_equal(found, best)


@settings(max_examples=25, deadline=None)
@given(
    worlds(labels=(2, 2), objects=(2, 2), smallest=1).filter(
        lambda w: w[0][0][0] * w[0][1][1] != w[0][0][1] * w[0][1][0]
    )
)
def test_theorem_6_two_labels_and_two_objects(world):
    Q = world[0]
    cp = conformity(Q, "CP")
    for name in CRITERIA:
        assert is_optimal(Q, cp, name, label_conditional=True), name
        _, best = optimal_by_search(Law.of(Q), name, label_conditional=True)
        assert best.sum() == 1, name


@settings(max_examples=25, deadline=None)
@given(worlds(labels=(2, 2), objects=(2, 6), smallest=1))
def test_theorem_6_holds_for_the_observed_criteria_with_any_number_of_objects(world):
    Q, other = world
    cp = conformity(Q, "CP")
    for name in ("OU", "OM"):
        assert is_optimal(Q, cp, name, label_conditional=True)
    ours, theirs = (criterion_value(Q, A, "OU", label_conditional=True) for A in (cp, other))
    assert ours <= theirs


def test_theorem_6_fails_for_u_and_m_with_three_objects():
    # All Q(1 | x) differ (1/2, 2/3, 3/5), yet another measure has the smaller unconfidence, and no
    # measure is M-optimal at every level: one tau serves both labels, so errors at the object in the middle overlap.
    Q = table([[1, 1], [1, 2], [2, 3]])
    cp, other = conformity(Q, "CP"), [[1, 1], [0, 2], [2, 0]]
    assert [criterion_value(Q, A, "U", label_conditional=True) for A in (cp, other)] == [
        Fr(21, 80),
        Fr(19, 80),
    ]
    at_half = [criterion_value(Q, A, "M", alpha=Fr(1, 2), label_conditional=True) for A in (cp, other)]
    at_fifth = [criterion_value(Q, A, "M", alpha=Fr(1, 5), label_conditional=True) for A in (cp, other)]
    assert at_half == [Fr(1, 6), 0]
    assert at_fifth == [Fr(79, 150), Fr(14, 25)]
    assert not is_optimal(Q, cp, "U", label_conditional=True)
    with pytest.raises(InputError, match="no measure is label-conditionally M-optimal"):
        optimal_measure(Q, "M", label_conditional=True)


def test_theorem_4_needs_the_label_of_probability_one_half_on_top():
    # In R''(MSP) as printed, yet worse than MSP: 3/4 against 1/2.
    Q, A = table([[2, 3, 5]]), [[1, 1, 0]]
    assert refines(Q, A, "MSP")
    assert [criterion_value(Q, B, "OU") for B in (A, conformity(Q, "MSP"))] == [Fr(3, 4), Fr(1, 2)]
    assert not is_optimal(Q, A, "OU")


@pytest.mark.parametrize("kind", ["CP", "SP", "MCP", "MSP"])
def test_every_measure_refines_itself_and_its_own_set(kind):
    Q = table([[2, 3, 5], [4, 1, 1]])
    A = conformity(Q, kind)
    assert is_refinement(A, A)
    assert refines(Q, A, kind)


def test_refinements_by_hand():
    assert is_refinement([[0, 1], [2, 3]], [[0, 0], [1, 1]])
    assert not is_refinement([[0, 2], [1, 3]], [[0, 0], [1, 1]])
    assert is_refinement([[0, 2], [1, 3]], [[0, 0], [1, 1]], label_conditional=True)
    assert not is_refinement([[0, 1], [2, 3]], [[0, 0], [1, 1]], within_objects=True)
    assert is_refinement([[0, 0], [2, 2]], [[0, 0], [1, 1]], within_objects=True)
    with pytest.raises(InputError, match="same shape"):
        is_refinement([[1, 2]], [[1, 2, 3]])


def test_the_choice_function_may_take_any_of_several_most_probable_labels():
    Q = table([[1, 2, 2]])
    for A in ([[0, 1, 0]], [[0, 0, 1]]):
        assert is_optimal(Q, A, "U")
    assert not is_optimal(Q, [[0, 1, 1]], "U")
    assert not is_optimal(Q, [[1, 0, 0]], "U")


def test_measures_by_hand():
    Q = table([[2, 3, 5], [6, 2, 2]])
    assert conformity(Q, "CP").tolist() == [[Fr(1, 5), Fr(3, 10), Fr(1, 2)], [Fr(3, 5), Fr(1, 5), Fr(1, 5)]]
    assert conformity(Q, "SP").tolist() == [
        [-Fr(1, 2), -Fr(1, 2), Fr(1, 2)],
        [Fr(3, 5), -Fr(3, 5), -Fr(3, 5)],
    ]
    assert conformity(Q, "MCP").tolist() == [
        [-Fr(4, 5), -Fr(7, 10), Fr(1, 2)],
        [Fr(3, 5), -Fr(4, 5), -Fr(4, 5)],
    ]
    assert conformity(Q, "MSP").tolist() == [[0, 0, 0], [Fr(3, 5), -Fr(3, 5), -Fr(3, 5)]]


def test_floats_that_mean_equal_probabilities_are_tied():
    # 0.15 / 0.5 and 0.06 / 0.2 differ in floating point; both mean 3/10.
    A = conformity([[0.15, 0.35], [0.06, 0.14], [0.09, 0.21]], "CP")
    assert len(np.unique(A[:, 0])) == 1


def test_weak_orders_are_all_there_once():
    assert [n_weak_orders(n) for n in range(7)] == [1, 1, 3, 13, 75, 541, 4683]
    for n in range(1, 6):
        orders = list(weak_orders(n))
        assert len(set(orders)) == len(orders) == n_weak_orders(n)


def test_search_and_exact_expectations_agree():
    from calipers.conformal.idealised import search

    Q = table([[1, 2, 3], [3, 2, 2]])
    law = Law.of(Q)
    for lc in (False, True):
        measures = search.all_measures(law, label_conditional=lc)[::97]
        below, equal = search.lines_of(law, measures, label_conditional=lc)
        for name in ("S", "U", "F", "OU", "OF", "credibility"):
            exact = [float(criterion_value(Q, A.tolist(), name, label_conditional=lc)) for A in measures]
            np.testing.assert_allclose(search.level_free(law, below, equal, name), exact, atol=1e-12)
        for name in ("N", "M", "E", "OM", "OE", "empty"):
            exact = [
                float(criterion_value(Q, A.tolist(), name, alpha=Fr(2, 7), label_conditional=lc))
                for A in measures
            ]
            ours = search.at_levels(law, below, equal, name, np.array([2 / 7]))[:, 0]
            np.testing.assert_allclose(ours, exact, atol=1e-12)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: conformity([[0.5, 0.6]], "CP"), InputError, "Q must sum to 1, got 1.1"),
        (lambda: conformity([[Fr(1, 2), Fr(1, 3)]], "CP"), InputError, "Q must sum to 1"),
        (lambda: conformity([[0.5, -0.5], [0.5, 0.5]], "CP"), InputError, "must not be negative"),
        (lambda: conformity([[0.0, 0.0], [0.5, 0.5]], "CP"), InputError, "object 0 has none"),
        (lambda: conformity([[0.5], [0.25, 0.25]], "CP"), InputError, "equally long"),
        (lambda: conformity([["a", "b"]], "CP"), InputTypeError, "must hold numbers"),
        (lambda: conformity([[0.5, 0.5]], "XP"), InputError, "kind must be one of CP"),
        (lambda: criterion_value([[0.5, 0.5]], [[1]], "S"), InputError, "shape of Q"),
        (lambda: criterion_value([[0.5, 0.5]], [[1, None]], "S"), InputTypeError, "A must hold numbers"),
        (lambda: criterion_value([[0.5, 0.5]], [[1, 2]], "N"), InputError, "criterion N needs alpha"),
        (lambda: criterion_value([[0.5, 0.5]], [[1, 2]], "Z"), InputError, "no criterion 'Z'"),
        (
            lambda: criterion_value([[1.0, 0.0]], [[1, 2]], "S", label_conditional=True),
            InputError,
            "label 1 does not",
        ),
        (lambda: is_optimal([[1.0]], [[1]], "S"), InputError, "at least two labels"),
        (lambda: is_optimal([[0.5, 0.5]], [[1, 2]], "credibility"), InputError, "name must be one of"),
        (lambda: refines([[0.5, 0.5]], [[1, 2]], "SP", label_conditional=True), InputError, "CP only"),
        (
            lambda: is_optimal(np.full((9, 3), 1 / 27), np.zeros((9, 3)), "U", label_conditional=True),
            InputError,
            "too many measures to try",
        ),
    ],
)
def test_bad_input_is_refused_by_name(call, error, message):
    with pytest.raises(error, match=message):
        call()
