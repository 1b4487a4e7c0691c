"""Idealised p-values and sets (eq. 11, 12 and 43), choice functions, and the criterion S_phi."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from scipy.integrate import quad

from calipers.conformal.idealised import (
    conformity,
    criterion_value,
    is_optimal,
    optimal_measure,
    p_values,
    prediction_sets,
)
from calipers.conformal.idealised.search import weak_orders
from calipers.exceptions import InputError, InputTypeError

# The example (45) of the paper: two objects, four labels.
PAPER = np.array([[0.1, 0.15, 0.1, 0.15], [0.15, 0.1, 0.15, 0.1]])


def naive_p(Q, A, tau, *, label_conditional=False):
    """Eq. 11 (or 43) written as its two sums over all examples."""
    n, k = len(Q), len(Q[0])
    p = [[Fraction(0)] * k for _ in range(n)]
    for x, y in product(range(n), range(k)):
        for other, label in product(range(n), range(k)):
            if label_conditional and label != y:
                continue
            if A[other][label] < A[x][y]:
                p[x][y] += Q[other][label]
            if A[other][label] == A[x][y]:
                p[x][y] += tau * Q[other][label]
        if label_conditional:
            p[x][y] /= sum(Q[other][y] for other in range(n))
    return p


def tables(n_tables, seed):
    rng = np.random.default_rng(seed)
    for _ in range(n_tables):
        shape = (int(rng.integers(1, 5)), int(rng.integers(2, 5)))
        counts = rng.integers(1, 6, shape)
        yield (
            [[Fraction(int(c), int(counts.sum())) for c in row] for row in counts],
            rng.integers(0, 4, shape),
        )


@pytest.mark.parametrize("label_conditional", [False, True])
def test_p_values_are_the_sums_of_equations_11_and_43(label_conditional):
    for Q, A in tables(40, 0):
        for tau in (Fraction(0), Fraction(1, 3), Fraction(1)):
            expected = naive_p(Q, A, tau, label_conditional=label_conditional)
            found = p_values(Q, A, tau=tau, label_conditional=label_conditional)
            assert found.tolist() == expected


def test_sets_hold_the_labels_with_p_above_alpha():
    for Q, A in tables(40, 1):
        tau, alpha = Fraction(2, 5), Fraction(1, 4)
        expected = [[p > alpha for p in row] for row in naive_p(Q, A, tau)]
        assert prediction_sets(Q, A, alpha=alpha, tau=tau).tolist() == expected


def test_sets_compare_in_fractions_and_not_in_floats():
    # p = 0.1 + 0.2 exactly; in floats that is above 0.3
    Q = [[0.1, 0.2, 0.7]]
    assert prediction_sets(Q, [[1, 2, 3]], alpha=0.3).tolist() == [[False, False, True]]


def test_the_example_of_section_8_gives_the_sets_the_paper_prints():
    # (45) at epsilon = 0.4: Gamma(1) = {2, 4} and Gamma(2) = {1, 3} almost surely, U = 0.7 for CP
    A = conformity(PAPER, "CP")
    for tau in (0.05, 0.5, 1.0):
        sets = prediction_sets(PAPER, A, alpha=0.4, tau=tau, label_conditional=True)
        assert sets.tolist() == [[False, True, False, True], [True, False, True, False]]
    second = [
        np.sort(p_values(PAPER, A, tau=t, label_conditional=True), axis=1)[:, -2].mean() for t in (0, 1)
    ]
    assert np.mean(second) == pytest.approx(0.7, abs=1e-12)


def test_each_label_can_have_a_level_of_its_own():
    Q, A = [[0.2, 0.3, 0.5]], [[1, 2, 3]]  # p at tau = 1: 0.2, 0.5, 1
    assert prediction_sets(Q, A, label_alpha=[0.1, 0.6, 0.1]).tolist() == [[True, False, True]]
    with pytest.raises(InputError, match="label_alpha must have one level per label, 3, got 2"):
        prediction_sets(Q, A, label_alpha=[0.1, 0.6])
    with pytest.raises(InputError, match="either alpha or label_alpha"):
        prediction_sets(Q, A, alpha=0.1, label_alpha=[0.1, 0.6, 0.1])
    with pytest.raises(InputError, match="either alpha or label_alpha"):
        prediction_sets(Q, A)


@pytest.mark.parametrize("tau", [-0.1, 1.5, float("nan")])
def test_tau_lies_between_0_and_1(tau):
    with pytest.raises(InputError, match="tau must lie between 0 and 1"):
        p_values([[0.2, 0.8]], [[1, 2]], tau=tau)


def test_tau_must_be_a_number():
    with pytest.raises(InputTypeError, match="tau must be a number"):
        p_values([[0.2, 0.8]], [[1, 2]], tau="half")


def test_choice_decides_between_equally_probable_labels():
    Q = [[0.2, 0.2, 0.1], [0.3, 0.1, 0.1]]
    assert conformity(Q, "SP")[0].tolist() == [0.4, -0.4, -0.4]
    assert conformity(Q, "SP", choice=[1, 0])[0].tolist() == [-0.4, 0.4, -0.4]
    np.testing.assert_allclose(conformity(Q, "MCP", choice=[1, 0])[0], [-0.6, 0.4, -0.8])
    assert conformity(Q, "CP", choice=[1, 0]).tolist() == conformity(Q, "CP").tolist()
    # every choice of most probable labels gives an optimal measure (Theorems 2 and 3)
    for kind, name in (("SP", "U"), ("MCP", "F")):
        for first in (0, 1):
            assert is_optimal(Q, conformity(Q, kind, choice=[first, 0]), name)


def test_a_choice_must_be_a_most_probable_label_of_every_object():
    Q = [[0.2, 0.2, 0.1], [0.3, 0.1, 0.1]]
    with pytest.raises(InputError, match="object 0 chooses label 2"):
        conformity(Q, "SP", choice=[2, 0])
    with pytest.raises(InputError, match="one label index per object, 2, got 1"):
        conformity(Q, "SP", choice=[0])
    with pytest.raises(InputError, match="between 0 and 2, got 3 for object 1"):
        conformity(Q, "SP", choice=[0, 3])


PHIS = {"square": lambda p: p**2, "sine": np.sin, "cubic": lambda p: p + 4 * p**3}


def naive_s_phi(Q, A, phi, label_conditional=False):
    """E sum phi(p), the mean over tau by an adaptive rule on eq. 11 itself."""
    total = 0.0
    for x, row in enumerate(Q):
        for y in range(len(row)):

            def at(tau, x=x, y=y):
                p = naive_p(Q, A, Fraction(tau).limit_denominator(10**9), label_conditional=label_conditional)
                return phi(float(p[x][y]))

            total += float(sum(row)) * quad(at, 0, 1, epsabs=1e-10)[0]
    return total


@pytest.mark.parametrize("name", PHIS)
def test_s_phi_is_the_expected_sum_of_transformed_p_values(name):
    for i, (Q, A) in enumerate(tables(3, 2)):
        for label_conditional in (False, True):
            found = criterion_value(Q, A, "S_phi", phi=PHIS[name], label_conditional=label_conditional)
            expected = naive_s_phi(Q, A, PHIS[name], label_conditional)
            assert found == pytest.approx(expected, abs=1e-7), (i, label_conditional)


def test_s_phi_of_the_identity_is_s():
    for Q, A in tables(10, 3):
        found = criterion_value(Q, A, "S_phi", phi=lambda p: p)
        assert found == pytest.approx(float(criterion_value(Q, A, "S")), abs=1e-12)


@pytest.mark.parametrize("name", PHIS)
def test_s_phi_is_smallest_exactly_at_the_refinements_of_cp(name):
    # the Remark after Lemma 1, by trying every weak order of four examples
    for Q, _ in tables(25, 4):
        if len(Q) * len(Q[0]) > 4:
            continue
        orders = [np.reshape(order, np.shape(Q)) for order in weak_orders(len(Q) * len(Q[0]))]
        values = np.array([criterion_value(Q, A, "S_phi", phi=PHIS[name]) for A in orders])
        best = values < values.min() + 1e-10
        assert [is_optimal(Q, A, "S_phi") for A in orders] == best.tolist()
        assert is_optimal(Q, optimal_measure(Q, "S_phi"), "S_phi")


def test_s_phi_asks_for_an_increasing_function():
    Q, A = [[0.2, 0.8]], [[1, 2]]
    with pytest.raises(InputTypeError, match="S_phi needs phi"):
        criterion_value(Q, A, "S_phi")
    with pytest.raises(InputError, match="increasing"):
        criterion_value(Q, A, "S_phi", phi=lambda p: -p)
    with pytest.raises(InputError, match="only with the criterion S_phi"):
        criterion_value(Q, A, "S", phi=lambda p: p)
