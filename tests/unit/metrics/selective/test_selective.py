"""Selective risk and the certified share against slow twins written from their definitions."""

import math

import numpy as np
import pytest
from scipy import stats

import calipers
from calipers.exceptions import InputError
from calipers.metrics import selective_risk, selective_threshold
from calipers.metrics.selective.bounded_tests import LossSums, mean_p_value, upper_bounds
from calipers.metrics.selective.certified_share import sequence_starts
from calipers.metrics.selective.kept_rows import check_kept_rows
from calipers.results.serialization import encode


def rows(n=400, levels=None, seed=0, *, binary=True):
    """Losses that fall with the certainty; ``levels`` distinct certainties."""
    rng = np.random.default_rng(seed)
    certainty = rng.random(n) if levels is None else rng.integers(0, levels, n).astype(float)
    mean = 0.4 * (1 - certainty / certainty.max()) + 0.02
    return (rng.random(n) < mean) if binary else rng.beta(1, 1 / mean, n), certainty


def blocks(loss, certainty):
    """Per distinct certainty, falling: it, the rows at least as certain and their losses."""
    found = []
    for value in sorted(set(certainty.tolist()), reverse=True):
        kept = [float(x) for x, c in zip(loss, certainty, strict=True) if c >= value]
        found.append((value, len(kept), kept))
    return found


def p_value(losses, risk, *, binary):
    """Binomial tail; or twice the smallest of the bounds of Hoeffding, Bentkus and twelve bettors."""
    total, n = math.fsum(losses), len(losses)
    tail = stats.binom.cdf(math.ceil(total - 1e-9), n, risk)
    if binary:
        return tail
    mean, blind = total / n, 1.0
    if mean < risk:
        rest = (1 - mean) * math.log((1 - mean) / (1 - risk))
        kl = (mean * math.log(mean / risk) if mean else 0.0) + rest
        blind = min(math.e * tail, math.exp(-n * kl))
    capital = 0.0
    for rate in 0.5 ** np.arange(1, 13):
        cost = -math.log(1 - rate) - rate
        capital += math.prod(math.exp(rate * (risk - x) - cost * (x - risk) ** 2) for x in losses) / 12
    return min(1.0, 2 * min(blind, 1 / capital))


def certified(loss, certainty, risk, delta, *, binary):
    """Every start brings its part; a sequence walks on while its tests reject and hands its part on."""
    steps, n = blocks(loss, certainty), len(loss)
    starts = sequence_starts(n, risk, delta)
    carried, best, walking = 0.0, 0, False
    for at, (_, kept, losses) in enumerate(steps):
        following = steps[at + 1][1] if at + 1 < len(steps) else math.inf
        here = sum(kept <= start < following for start in starts)
        carried = (carried if walking else 0.0) + here * delta / len(starts)
        walking = carried > 0 and p_value(losses, risk, binary=binary) <= carried
        best = kept if walking else best
    return best / n


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize("levels", [None, 3, 12])
@pytest.mark.parametrize("risk", [0.05, 0.12, 0.2])
def test_the_certified_share_is_what_the_sequences_reach(binary, levels, risk):
    shares = []
    for seed in range(6):
        loss, certainty = rows(levels=levels, seed=seed, binary=binary)
        found = selective_threshold(loss, certainty, risk=risk, delta=0.1)
        assert found.value == pytest.approx(certified(loss, certainty, risk, 0.1, binary=binary))
        assert np.sum(certainty >= found.details["threshold"]) == found.details["rows"]
        shares.append(found.value)
    assert max(shares) > 0 or risk < 0.2  # at small risks few rows may certify nothing


def test_the_curve_is_the_mean_loss_of_the_rows_at_least_as_certain():
    loss, certainty = rows(levels=12)
    curve = selective_risk(loss, certainty, confidence=0.9)
    for at, (value, kept, losses) in enumerate(blocks(loss, certainty)):
        assert curve.details["thresholds"][at] == value
        assert curve.x[at] == pytest.approx(kept / 400)
        assert curve.y[at] == pytest.approx(math.fsum(losses) / kept)
        # Twelve points and two sides share the error of 0.1.
        exact = stats.binomtest(int(sum(losses)), kept).proportion_ci(1 - 0.1 / 12)
        assert (curve.low[at], curve.high[at]) == pytest.approx((exact.low, exact.high))


def test_the_area_averages_over_the_orders_of_ties():
    loss, certainty = np.array([1.0, 0.0, 0.5, 0.0]), np.array([3.0, 2.0, 2.0, 1.0])
    # Orders of the tie: 1, 1/2, 1.5/3, 1.5/4 and 1, 1.5/2, 1.5/3, 1.5/4.
    expected = np.mean([1, 0.5, 0.5, 0.375, 1, 0.75, 0.5, 0.375])
    details = selective_risk(loss, certainty).details
    assert details["area"] == pytest.approx(expected)
    # Perfectly sorted: 0, 0, 0.5/3, 1.5/4.
    assert details["area_of_best_order"] == pytest.approx(np.mean([0, 0, 0.5 / 3, 0.375]))
    assert details["mean_loss"] == pytest.approx(0.375)


def test_points_of_a_long_curve_end_with_all_rows():
    loss, certainty = rows(5000)
    curve = selective_risk(loss, certainty)
    assert curve.x[-1] == 1.0
    assert 80 <= curve.x.size <= 100
    assert np.all(np.diff(curve.x) > 0)


def sums_of(*rows):
    return LossSums(
        np.array([r.size for r in rows]),
        np.array([r.sum() for r in rows]),
        np.array([(r**2).sum() for r in rows]),
        is_binary=False,
    )


def test_bounds_are_where_the_test_stops_to_reject():
    rng = np.random.default_rng(0)
    found = rng.beta(1, 9, 40), np.zeros(40), rng.beta(9, 1, 60), np.full(400, 0.3), rng.beta(60, 140, 900)
    sums = sums_of(*found)
    bound = upper_bounds(sums, 0.05)
    assert mean_p_value(sums, bound) == pytest.approx(0.05, rel=1e-6)
    assert np.all(mean_p_value(sums, bound - 1e-3) > 0.05)
    for losses, mean in zip(found, (0.2, 0.1, 0.95, 0.32, 0.31), strict=True):
        assert mean_p_value(sums_of(losses), mean)[0] == pytest.approx(p_value(losses, mean, binary=False))


def test_losses_that_vary_little_are_certified_by_what_they_vary():
    rng = np.random.default_rng(1)
    width = rng.uniform(1, 5, 2000)
    error = np.minimum(np.abs(rng.normal(0, width / 3)), 4)
    share = selective_threshold(error, -width, risk=0.6, loss_range=(0, 4))
    # The truth: widths up to w have a mean error of (1 + w) / 6 sqrt(2 / pi); 0.6 is reached at 63 % of them.
    assert 0.4 < share.value < 0.63
    curve = selective_risk(error, -width, loss_range=(0, 4))
    assert np.max(curve.high[curve.x > 0.4] - curve.y[curve.x > 0.4]) < 0.14


@pytest.mark.parametrize("rate", 0.5 ** np.arange(1, 13))
def test_no_law_of_a_mean_gains_by_a_bet_against_a_smaller_one(rate):
    """Of all laws on [0, 1] with a mean, some law on two points gains most."""
    cost = -np.log(1 - rate) - rate
    x = np.linspace(0, 1, 201)
    for mean in (0.01, 0.1, 0.3, 0.5, 0.8, 0.99):
        factor = np.exp(rate * (mean - x) - cost * (x - mean) ** 2)
        low, high = x[x <= mean][:, None], x[x >= mean][None, :]
        share = np.divide(mean - low, high - low, out=np.zeros((low.size, high.size)), where=high > low)
        gain = (1 - share) * factor[x <= mean][:, None] + share * factor[x >= mean][None, :]
        assert gain.max() <= 1 + 1e-12
        assert np.all(np.diff(factor) < 0)


def test_losses_of_another_range_are_scaled():
    loss, certainty = rows(levels=12)
    plain = selective_threshold(loss, certainty, risk=0.15)
    scaled = selective_threshold(5 + 2 * loss.astype(float), certainty, risk=5.3, loss_range=(5, 7))
    assert scaled.value == plain.value > 0
    assert scaled.details["mean_loss"] == pytest.approx(5 + 2 * plain.details["mean_loss"])
    assert scaled.details["bound"] == pytest.approx(5 + 2 * plain.details["bound"])
    curve = selective_risk(5 + 2 * loss.astype(float), certainty, loss_range=(5, 7))
    assert curve.high == pytest.approx(5 + 2 * selective_risk(loss, certainty).high)


def test_a_certainty_shared_by_most_rows_does_not_hide_the_rest():
    rng = np.random.default_rng(0)
    certainty = np.where(rng.random(2000) < 0.6, 1.0, rng.random(2000) * 0.99)
    loss = rng.random(2000) < np.where(certainty == 1, 0.01, 0.3 * (1 - certainty) ** 2)
    found = selective_threshold(loss, certainty, risk=0.05)
    assert found.value > 0.6


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "uint8"])
def test_no_other_row_reaches_the_threshold_in_the_precision_given(dtype):
    loss, certainty = rows(3000, levels=40)
    given = (certainty / 40).astype(dtype) if dtype.startswith("float") else certainty.astype(dtype)
    found = selective_threshold(loss, given, risk=0.15)
    assert 0 < found.value < 1
    assert np.sum(given >= found.details["threshold"]) == found.details["rows"]


def test_all_rows_kept_means_every_certainty():
    found = selective_threshold(np.zeros(100), np.linspace(0, 1, 100), risk=0.1)
    assert (found.value, found.details["threshold"]) == (1.0, -np.inf)


def test_nothing_to_certify_says_how_many_rows_are_needed():
    found = selective_threshold(np.zeros(20), np.arange(20), risk=0.1)
    assert (found.value, found.details["threshold"], found.details["bound"]) == (0.0, np.inf, None)
    assert "29 rows without any loss are needed, there are 20" in found.reason  # 0.9^29 < 0.05
    assert "lose too much" in selective_threshold(np.ones(200), np.arange(200), risk=0.1).reason


def test_starts_that_could_not_reject_are_left_out():
    # 0.9^28 > 0.05: one start needs 29 rows.
    assert sequence_starts(28, 0.1, 0.05) == []
    assert sequence_starts(29, 0.1, 0.05) == [29]
    assert sequence_starts(2000, 0.05, 0.05) == [2000, 1700, 1400, 1000, 500, 250, 125]


def test_rows_are_taken_in_any_order():
    loss, certainty = rows(levels=12, binary=False)
    order = np.random.default_rng(1).permutation(400)
    for measure in (selective_risk, lambda a, b: selective_threshold(a, b, risk=0.15)):
        first, second = measure(loss, certainty), measure(loss[order], certainty[order])
        assert str(encode(first.to_dict())) == str(encode(second.to_dict()))


@pytest.mark.parametrize(
    ("loss", "certainty", "options", "words"),
    [
        ([0.0, 2.0], [1, 2], {}, "loss must lie in loss_range"),
        ([0.0, 1.0], [1, 2, 3], {}, "same length"),
        ([0.0, np.nan], [1, 2], {}, "NaN"),
        ([0.0, 1.0], [1, np.nan], {}, "NaN"),
        ([0.0, 1.0], [1, 2], {"loss_range": (1, 0)}, "loss_range must be finite and rising"),
        ([0.0, 1.0], [1, 2], {"loss_range": 3}, "loss_range must be two numbers"),
        ([0.0, 1.0], [1, 2], {"risk": 1.0}, "risk must lie strictly inside"),
        ([0.0, 1.0], [1, 2], {"delta": 0}, "delta"),
    ],
)
def test_what_makes_no_sense_is_refused(loss, certainty, options, words):
    with pytest.raises(InputError, match=words):
        selective_threshold(loss, certainty, **{"risk": 0.1} | options)


def test_infinite_certainties_are_the_most_and_the_least_certain():
    kept = check_kept_rows([0, 1, 0], [np.inf, -np.inf, 0.0], (0, 1))
    assert kept.rows.tolist() == [1, 2, 3]
    assert kept.loss.tolist() == [0, 0, 1]


@pytest.mark.parametrize("ends", [(0, 10**400), 3, (0, 1, 2), (0, float("inf")), (1, 0), "ab", None])
def test_a_range_that_is_not_two_rising_numbers_is_refused(ends):
    with pytest.raises(InputError, match="loss_range must be (two numbers|finite and rising), got"):
        selective_risk(np.zeros(9), np.arange(9.0), loss_range=ends)
    with pytest.raises(InputError, match="loss_range must be (two numbers|finite and rising), got"):
        calipers.audit(loss=np.zeros(99), bound=0.1, loss_range=ends)
