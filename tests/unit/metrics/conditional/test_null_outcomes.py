"""Outcomes under the nulls: shuffles, redrawn rows, and the conditional law given the number covered."""

import itertools

import numpy as np
import pytest
from scipy.special import expit, logit

from calipers.metrics.conditional.null_outcomes import flat_mean, flat_sums, redrawn


def flat_outcomes(z, target, rng, n_draws):
    """The outcomes themselves: the sums of one column per row."""
    return flat_sums(z, target, np.eye(len(z)), rng, n_draws)


def test_many_columns_are_summed_as_few_are():
    rng = np.random.default_rng(6)
    z, table = (rng.random(60) < 0.8).astype(float), rng.normal(size=(60, 40))
    few = flat_sums(z, np.full(60, 0.9), table[:, :3], np.random.default_rng(0))
    many = flat_sums(z, np.full(60, 0.9), table, np.random.default_rng(0))
    np.testing.assert_allclose(many[:, :3], few)


def test_a_shuffle_keeps_the_number_covered_and_reaches_every_row():
    z = np.array([1.0, 1.0, 0.0, 1.0, 0.0, 1.0])
    drawn = flat_outcomes(z, np.full(6, 0.9), np.random.default_rng(0), n_draws=6000)
    assert (drawn.sum(axis=1) == 4).all()
    np.testing.assert_allclose(drawn.mean(axis=0), 4 / 6, atol=0.03)


@pytest.mark.parametrize("covered", [1, 2, 3])
def test_rows_with_targets_of_their_own_follow_the_conditional_bernoulli_law(covered):
    target = np.array([0.2, 0.5, 0.8, 0.95])
    z = (np.arange(4) < covered).astype(float)
    drawn = flat_outcomes(z, target, np.random.default_rng(1), n_draws=20_000)
    assert (drawn.sum(axis=1) == covered).all()
    # Every outcome with that number covered, weighted by its probability.
    outcomes = np.array([o for o in itertools.product([0, 1], repeat=4) if sum(o) == covered])
    mass = np.prod(np.where(outcomes == 1, target, 1 - target), axis=1)
    exact = outcomes.T @ mass / mass.sum()
    np.testing.assert_allclose(drawn.mean(axis=0), exact, atol=0.02)
    pair = (outcomes[:, 0] * outcomes[:, 3]) @ mass / mass.sum()
    assert np.mean(drawn[:, 0] * drawn[:, 3]) == pytest.approx(pair, abs=0.02)


def test_a_common_shift_of_the_logits_does_not_change_the_law():
    base, z = np.array([-1.0, 0.0, 1.5, 2.0, 0.3]), np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    means = [
        flat_outcomes(z, expit(base + shift), np.random.default_rng(2), n_draws=20_000).mean(axis=0)
        for shift in (0.0, 1.7)
    ]
    np.testing.assert_allclose(*means, atol=0.02)


def test_certain_rows_are_fixed():
    target = np.array([1.0, 0.0, 0.5, 0.7])
    drawn = flat_outcomes(np.array([1.0, 0.0, 1.0, 0.0]), target, np.random.default_rng(3), n_draws=50)
    assert (drawn[:, 0] == 1).all()
    assert (drawn[:, 1] == 0).all()
    assert (drawn[:, 2:].sum(axis=1) == 1).all()
    assert (redrawn(target, np.random.default_rng(4))[:, :2] == [1.0, 0.0]).all()


def test_the_mean_under_flat_is_one_shift_away_and_adds_up_to_the_number_covered():
    rng = np.random.default_rng(5)
    target = np.r_[rng.uniform(0.5, 0.99, 50), 1.0]
    z = np.r_[rng.random(50) < 0.6, True].astype(float)
    mean = flat_mean(z, target)
    assert mean.sum() == pytest.approx(z.sum())
    assert np.ptp(logit(mean[:50]) - logit(target[:50])) < 1e-9
    assert mean[50] == 1.0
    np.testing.assert_allclose(flat_mean(z[:50], np.full(50, 0.9)), z[:50].mean())
