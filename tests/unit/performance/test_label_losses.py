"""Losses of every label that may come true."""

from __future__ import annotations

import numpy as np
import pytest

from calipers.exceptions import InputError, InputTypeError
from calipers.performance.label_losses import label_losses, variation

P = np.array([[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]])
Q = np.array([[0.95, 0.05], [0.3, 0.7]])


def test_named_losses_by_hand():
    classes = np.arange(3)
    assert label_losses("zero_one", classes)(P).tolist() == [[0, 1, 1], [1, 1, 0]]
    assert label_losses("log", classes)(P) == pytest.approx(-np.log(P))
    # First row, label 0: 0.3^2 + 0.2^2 + 0.1^2 = 0.14; second row, label 1: 0.1^2 + 0.7^2 + 0.6^2 = 0.86.
    brier = label_losses("brier", classes)(P)
    assert (brier[0, 0], brier[1, 1]) == pytest.approx((0.14, 0.86))


def test_a_label_of_probability_zero_has_a_large_but_finite_log_loss():
    assert label_losses("log", np.arange(2))(np.array([[1.0, 0.0]]))[0, 1] == pytest.approx(36.04, abs=0.01)


def test_costs_are_those_of_the_cheapest_decision():
    # Acting costs 1 in vain, waiting 9: act from 0.1 on.
    assert label_losses((1.0, 9.0), np.array([0, 1]))(Q).tolist() == [[0.0, 9.0], [1.0, 0.0]]


def test_a_function_is_called_with_the_labels_themselves():
    def loss(y, probabilities):
        return np.where(y == "b", 10.0, 1.0) * probabilities[:, 0]

    assert label_losses(loss, np.array(["a", "b"]))(Q).tolist() == [[0.95, 9.5], [0.3, 3.0]]


@pytest.mark.parametrize(
    ("loss", "n_classes", "error", "message"),
    [
        ("hinge", 2, InputError, "loss must be one of zero_one, log, brier, a pair of costs or a function"),
        ((1.0, 2.0), 3, InputError, "a pair of costs needs two classes, got 3"),
        (3.0, 2, InputTypeError, "loss must be a name, a pair of costs or a function, got float"),
    ],
)
def test_other_losses_are_refused(loss, n_classes, error, message):
    with pytest.raises(error, match=message):
        label_losses(loss, np.arange(n_classes))


def test_a_function_that_averages_is_refused():
    with pytest.raises(InputError, match=r"loss must return one number per row \(2\)"):
        label_losses(lambda y, p: np.array([0.5]), np.arange(2))(Q)


def test_variation_counts_jumps_and_slopes_from_zero_to_zero():
    p = np.linspace(0, 1, 101)
    stated = np.column_stack([1 - p, p])
    classes = np.arange(2)
    # zero_one: from 1 to -1; costs: from fn to -fp; brier: 2 - 4 p.
    assert variation(label_losses("zero_one", classes)(stated), p) == pytest.approx(2.0)
    assert variation(label_losses((1.0, 4.0), classes)(stated), p) == pytest.approx(5.0)
    assert variation(label_losses("brier", classes)(stated), p) == pytest.approx(4.0)
