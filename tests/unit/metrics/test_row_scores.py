"""Scores of single rows, worked by hand and against scikit-learn's means."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn import metrics

from calipers.arrays import as_numpy
from calipers.metrics import proper_scores, row_scores
from calipers.results import Estimate
from tests.contract.libraries import LIBRARIES, assert_lies_with, move


@pytest.fixture(params=[2, 3, 7])
def rows(request):
    rng = np.random.default_rng(request.param)
    P = rng.dirichlet(np.full(request.param, 0.6), size=400)
    return P, rng.integers(0, request.param, 400)


@pytest.mark.parametrize("order", ["C", "F"])
def test_means_are_those_of_scikit_learn(rows, order):
    P, codes = rows
    P = np.asarray(P, order=order)
    stated = row_scores.stated_probability(P, codes)
    labels = np.arange(P.shape[1])
    brier, loss = row_scores.brier_rows(P, stated), row_scores.log_loss_rows(stated)
    assert brier.mean() == pytest.approx(metrics.brier_score_loss(codes, P, labels=labels), rel=1e-13)
    assert loss.mean() == pytest.approx(metrics.log_loss(codes, P, labels=labels), rel=1e-13)


def test_weighted_means_are_those_of_scikit_learn(rows):
    P, codes = rows
    w = np.random.default_rng(0).gamma(2.0, size=len(P))
    stated, labels = row_scores.stated_probability(P, codes), np.arange(P.shape[1])
    brier = np.average(row_scores.brier_rows(P, stated), weights=w)
    assert brier == pytest.approx(metrics.brier_score_loss(codes, P, sample_weight=w, labels=labels))
    loss = np.average(row_scores.log_loss_rows(stated), weights=w)
    assert loss == pytest.approx(metrics.log_loss(codes, P, sample_weight=w, labels=labels))


def test_the_brier_score_by_hand():
    # Two classes: (0.3 - 1)^2 = 0.49. Three: (0.2 - 1)^2 + 0.5^2 + 0.3^2 = 0.64 + 0.25 + 0.09.
    two, three = np.array([[0.3, 0.7]]), np.array([[0.5, 0.2, 0.3]])
    assert row_scores.brier_rows(two, np.array([0.3])) == pytest.approx([0.49])
    assert row_scores.brier_rows(three, np.array([0.2])) == pytest.approx([0.98])
    # A label without a column was stated with 0: (0.09 + 0.49 + 1) / 2.
    assert row_scores.brier_rows(two, np.array([0.0])) == pytest.approx([0.79])
    assert row_scores.event_brier_rows(np.array([0.7]), np.array([0.25])) == pytest.approx([0.2025])


def test_a_row_that_is_right_and_sure_costs_exactly_nothing():
    P = np.eye(5)
    stated = row_scores.stated_probability(P, np.arange(5))
    for losses in (row_scores.brier_rows(P, stated), row_scores.log_loss_rows(stated)):
        assert (losses == 0).all()
        assert not np.signbit(losses).any()


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_the_floor_does_not_depend_on_the_type_of_float(kind):
    stated = np.array([0.0, 2.0**-20, 0.5], dtype=kind)  # 2^-20 is below scikit-learn's floors of the others
    expected = [52 * math.log(2), 20 * math.log(2), math.log(2)]
    assert row_scores.log_loss_rows(stated) == pytest.approx(expected, rel=1e-14)


def test_rows_at_the_floor_are_counted_by_weight_and_said():
    stated = np.array([0.0, 1e-300, 2.0**-52, 1e-15, 0.4])
    losses = row_scores.log_loss_rows(stated)
    assert row_scores.is_at_floor(losses).tolist() == [True, True, True, False, False]
    plain = proper_scores([1] * 5, stated, classes=[0, 1])["log_loss"]
    assert plain.details["floored_rows"] == 3
    assert "3 rows gave what happened a probability of at most 2.2e-16" in str(plain)
    weights = [2.0, 0, 1, 1, 1]
    weighted = proper_scores([1] * 5, stated, classes=[0, 1], sample_weight=weights)["log_loss"]
    assert weighted.details["floored_rows"] == 3
    assert weighted.value == pytest.approx(losses[[0, 0, 2, 3, 4]].mean())


def test_without_rows_at_the_floor_nothing_is_said():
    found = proper_scores([1, 1], [0.2, 0.7], classes=[0, 1])["log_loss"]
    assert "gave what happened" not in found.reason
    assert found.details["floored_rows"] == 0


def test_a_reason_that_is_there_is_kept():
    found = row_scores.with_floored_rows(Estimate(name="log loss", reason="one row has no spread"), 1)
    assert found.reason.startswith("one row has no spread; 1 row gave")


def test_point_losses_by_hand():
    y, predicted = np.array([3.0, 1.0]), np.array([2.0, 4.0])
    assert row_scores.absolute_error_rows(y, predicted).tolist() == [1.0, 3.0]
    assert row_scores.squared_error_rows(y, predicted).tolist() == [1.0, 9.0]
    assert row_scores.pinball_rows(y, predicted, 0.8) == pytest.approx([0.8, 0.6])
    assert row_scores.zero_one_rows(np.array(["a", "b"]), np.array(["a", "a"])).tolist() == [0.0, 1.0]


def test_losses_of_several_outputs_are_added():
    y, predicted = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[1.0, 5.0], [1.0, -2.0]])
    assert row_scores.absolute_error_rows(y, predicted).tolist() == [3.0, 3.0]
    assert row_scores.squared_error_rows(y, predicted).tolist() == [9.0, 5.0]
    assert row_scores.zero_one_rows(y, predicted).tolist() == [1.0, 1.0]


def test_the_interval_score_is_that_of_its_two_quantiles():
    rng = np.random.default_rng(0)
    y, lower = rng.normal(size=200), rng.normal(size=200) - 1
    upper, alpha = lower + rng.random(200), 0.2
    found = row_scores.interval_score_rows(y, lower, upper, alpha)
    # Gneiting and Raftery (2007), section 6.2: 2/alpha times the sum of both pinball losses.
    parts = [row_scores.pinball_rows(y, q, level) for q, level in ((lower, 0.1), (upper, 0.9))]
    assert found == pytest.approx(2 / alpha * (parts[0] + parts[1]))


def test_the_mean_interval_score_is_smallest_for_the_true_quantiles():
    y = np.random.default_rng(1).normal(size=20_000)
    ends = [np.full(y.size, end) for end in (1.2, 1.6449, 2.2)]
    scores = [row_scores.interval_score_rows(y, -end, end, 0.1).mean() for end in ends]
    assert scores[1] < min(scores[0], scores[2])


@pytest.mark.parametrize("library", LIBRARIES)
def test_scores_are_computed_where_the_arrays_lie(rows, library):
    P, codes = rows
    y, lower = np.random.default_rng(0).normal(size=(2, len(P)))
    stated = row_scores.stated_probability(P, codes)
    calls = {
        row_scores.stated_probability: (P, codes),
        row_scores.brier_rows: (P, stated),
        row_scores.event_brier_rows: (P[:, 1], codes == 1),
        row_scores.log_loss_rows: (stated,),
        row_scores.absolute_error_rows: (y, lower),
        row_scores.squared_error_rows: (y, lower),
        row_scores.zero_one_rows: (codes, P.argmax(axis=1)),
    }
    for score, arguments in calls.items():
        moved = [move(argument, library) for argument in arguments]
        found = score(*moved)
        assert_lies_with(found, moved[0])
        np.testing.assert_allclose(as_numpy(found), score(*arguments), rtol=1e-13)
    moved = [move(values, library) for values in (y, lower, lower + 1)]
    intervals = row_scores.interval_score_rows(*moved, 0.1)
    np.testing.assert_allclose(
        as_numpy(intervals), row_scores.interval_score_rows(y, lower, lower + 1, 0.1), rtol=1e-13
    )
    np.testing.assert_allclose(
        as_numpy(row_scores.pinball_rows(*moved[:2], 0.3)),
        row_scores.pinball_rows(y, lower, 0.3),
        rtol=1e-13,
    )
