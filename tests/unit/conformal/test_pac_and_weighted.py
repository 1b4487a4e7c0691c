"""The PAC threshold against the binomial tail; weighted conformal prediction against its definition."""

from fractions import Fraction
from itertools import accumulate
from math import comb

import numpy as np
import pytest
from scipy import stats
from sklearn.frozen import FrozenEstimator

from calipers.conformal import (
    ConformalClassifier,
    ConformalRegressor,
    LikelihoodRatio,
    pac_quantile,
    pac_rank,
    smallest_pac_size,
)
from calipers.exceptions import InputError
from tests.unit.conformal.worlds import FirstColumn, KnownProbabilities, labelled


@pytest.mark.parametrize(
    ("alpha", "delta"), [("1/2", "1/2"), ("1/2", "1/8"), ("1/4", "1/4"), ("1/3", "4/9"), ("1/10", "1/20")]
)
def test_the_pac_rank_is_exact_where_a_tail_equals_delta(alpha, delta):
    # P(Bin(n, 1/2) <= (n - 1) / 2) = 1/2 for odd n: floating point decides such ties by chance.
    alpha, delta = Fraction(alpha), Fraction(delta)
    for n in range(1, 121):
        masses = [comb(n, k) * alpha**k * (1 - alpha) ** (n - k) for k in range(n + 1)]
        allowed = sum(tail <= delta for tail in accumulate(masses))
        assert pac_rank(n, float(alpha), delta=float(delta)) == n + 1 - allowed


def test_the_pac_rank_is_right_for_ten_million_rows():
    # The normal law with continuity correction: k + 1/2 = n/2 + z sqrt(n)/2 at P = 0.498, so k = 4999991.07.
    # scipy's bdtr is off by 0.0012 there, five ranks.
    assert abs(pac_rank(10**7 - 1, 0.5, delta=0.498) - (10**7 - 1 - 4_999_991)) <= 1


@pytest.mark.parametrize("alpha", [0.05, 0.1, 0.3])
@pytest.mark.parametrize("delta", [0.05, 1e-5])
def test_the_pac_rank_is_the_smallest_that_keeps_the_promise(alpha, delta):
    for n in (1, 20, 57, 120, 500):
        rank = pac_rank(n, alpha, delta=delta)
        unlucky = stats.beta.cdf(1 - alpha, np.arange(1, n + 1), n + 1 - np.arange(1, n + 1))
        valid = np.flatnonzero(unlucky <= delta)
        assert rank == (valid[0] + 1 if valid.size else n + 1)


def test_the_counts_printed_for_delta_1e_5_are_reproduced():
    # Allowed errors at alpha 0.3: 11 of 100, 107 of 500; rows needed at 0.2, 0.3, 0.4: 52, 33, 23.
    assert [n - pac_rank(n, 0.3, delta=1e-5) for n in (100, 500)] == [11, 107]
    assert [smallest_pac_size(a, delta=1e-5) for a in (0.2, 0.3, 0.4)] == [52, 33, 23]
    assert pac_quantile(np.arange(32.0), 0.3, delta=1e-5) == np.inf


def weighted_p(cal, weights, score, own, tau):
    above = weights[cal > score].sum()
    equal = weights[cal == score].sum() + own
    return (above + tau * equal) / (weights.sum() + own)


@pytest.mark.parametrize("smoothed", [False, True])
@pytest.mark.parametrize("grouped", [False, True])
def test_weighted_p_values_equal_the_definition(smoothed, grouped):
    rng = np.random.default_rng(0)
    P, y = labelled(rng, 60, K=3)
    P, Q = P.round(1) + 1e-3, labelled(rng, 25, K=3)[0].round(1) + 1e-3
    P, Q = P / P.sum(1, keepdims=True), Q / Q.sum(1, keepdims=True)
    w, v = rng.exponential(size=60), rng.exponential(size=25)
    g, h = (np.arange(60) % 2, np.arange(25) % 2) if grouped else (np.zeros(60), np.zeros(25))
    model = ConformalClassifier(
        FrozenEstimator(KnownProbabilities(labels=range(3))), smoothed=smoothed, random_state=0
    )
    model.conformalize(P, y, groups=g, weights=w)
    p = model.predict_p(Q, groups=h, weights=v)
    tau = model_tau(model, Q) if smoothed else np.ones(25)
    cal = (1 - P)[np.arange(60), y]
    expected = [
        [weighted_p(cal[g == h[i]], w[g == h[i]], 1 - Q[i, k], v[i], tau[i]) for k in range(3)]
        for i in range(25)
    ]
    np.testing.assert_allclose(p, expected, rtol=1e-12)
    np.testing.assert_array_equal(model.predict_set(Q, 0.3, groups=h, weights=v), p > 0.3)


def model_tau(model, Q):
    from calipers.conformal.draws import row_draws

    return row_draws(Q, seed=model.draw_seed_, stream=2)


@pytest.mark.parametrize("alpha", [0.1, 0.18, 0.3])
def test_equal_weights_change_nothing(alpha):
    rng = np.random.default_rng(1)
    X, Z = rng.random((99, 1)), rng.random((10, 1))
    y = X[:, 0] + rng.normal(size=99)
    plain = ConformalRegressor(FrozenEstimator(FirstColumn())).conformalize(X, y)
    weighted = ConformalRegressor(FrozenEstimator(FirstColumn())).conformalize(X, y, weights=np.ones(99))
    np.testing.assert_array_equal(
        weighted.predict_interval(Z, alpha, weights=np.ones(10)), plain.predict_interval(Z, alpha)
    )
    P, labels = labelled(rng, 99)
    one = ConformalClassifier(FrozenEstimator(KnownProbabilities(labels=range(4)))).conformalize(P, labels)
    two = ConformalClassifier(FrozenEstimator(KnownProbabilities(labels=range(4))))
    two.conformalize(P, labels, weights=np.ones(99))
    np.testing.assert_array_equal(two.predict_set(P, alpha, weights=np.ones(99)), one.predict_set(P, alpha))


def test_weighted_intervals_hold_exactly_the_outcomes_with_p_above_alpha():
    rng = np.random.default_rng(4)
    X = rng.random((80, 1))
    y = X[:, 0] + rng.normal(size=80)
    w = rng.exponential(size=80)
    model = ConformalRegressor(FrozenEstimator(FirstColumn())).conformalize(X[:40], y[:40], weights=w[:40])
    p = model.predict_p(X[40:], y[40:], weights=w[40:])
    low, high = model.predict_interval(X[40:], 0.2, weights=w[40:]).T
    np.testing.assert_array_equal(p > 0.2, (low <= y[40:]) & (y[40:] <= high))


def test_a_row_that_outweighs_all_others_gets_the_whole_line():
    X, y = np.zeros((30, 1)), np.arange(30.0)
    model = ConformalRegressor(FrozenEstimator(FirstColumn())).conformalize(X, y, weights=np.ones(30))
    assert np.isinf(model.predict_interval(X[:1], 0.1, weights=[100.0])).all()


def test_the_ratio_of_two_normals_is_found_from_arrays_and_frames():
    import polars as pl

    rng = np.random.default_rng(0)
    source, target = rng.normal(size=(4000, 1)), rng.normal(0.5, 1, size=(2000, 1))
    x = np.array([[-1.0], [0.0], [1.0]])
    truth = np.exp(0.5 * x[:, 0] - 0.125)
    np.testing.assert_allclose(LikelihoodRatio().fit(source, target).predict(x), truth, rtol=0.15)
    frames = [pl.DataFrame({"x": a[:, 0]}) for a in (source, target, x)]
    np.testing.assert_allclose(LikelihoodRatio().fit(*frames[:2]).predict(frames[2]), truth, rtol=0.15)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda m, X, y: m.conformalize(X, y, weights=-np.ones(20)),
            "weights must be finite and not negative",
        ),
        (lambda m, X, y: m.conformalize(X, y, weights=np.ones(19)), "weights must have one entry per row"),
        (
            lambda m, X, y: m.conformalize(X, y, weights=np.ones(20)).predict_interval(X),
            "weights must be given to",
        ),
        (lambda m, X, y: LikelihoodRatio().fit(X[:0], X), "at least one row each"),
    ],
)
def test_bad_weights_are_refused_by_name(call, message):
    X, y = np.zeros((20, 1)), np.arange(20.0)
    with pytest.raises(InputError, match=message):
        call(ConformalRegressor(FrozenEstimator(FirstColumn())), X, y)
