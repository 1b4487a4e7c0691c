"""Scores made from convex distances: hand-computed values, propriety, refusals."""

import numpy as np
import pytest

from calipers.exceptions import InputError, InputTypeError
from calipers.metrics.conditional import convex_distance
from calipers.metrics.conditional.losses import DISTANCES, check_distance, clip_to_side


def gain(name, h, z, t=0.9):
    distance = DISTANCES[name] if isinstance(name, str) else name
    return float(distance.contributions(np.array([h]), np.array([z]), np.array([t]))[0])


def test_contributions_by_hand():
    # L1: sign(0.7 - 0.9) (z - 0.9). L2: (0.9-z)^2 - (0.7-z)^2. KL: log-likelihood ratio.
    assert gain("l1", 0.7, 1.0) == pytest.approx(-0.1)
    assert gain("l1", 0.7, 0.0) == pytest.approx(0.9)
    assert gain("l2", 0.7, 1.0) == pytest.approx(0.01 - 0.09)
    assert gain("l2", 0.7, 0.0) == pytest.approx(0.81 - 0.49)
    assert gain("kl", 0.7, 1.0) == pytest.approx(np.log(0.7 / 0.9))
    assert gain("kl", 0.7, 0.0) == pytest.approx(np.log(0.3 / 0.1))


@pytest.mark.parametrize("name", ["l1", "l2", "kl"])
def test_the_expected_contribution_of_the_truth_is_its_distance_and_nothing_beats_it(name):
    t, p = 0.85, 0.7
    grid = np.linspace(0.01, 0.99, 197)
    expected = np.array([p * gain(name, q, 1.0, t) + (1 - p) * gain(name, q, 0.0, t) for q in grid])
    truth = p * gain(name, p, 1.0, t) + (1 - p) * gain(name, p, 0.0, t)
    distance = DISTANCES[name].function(np.array([t]), np.array([p]))[0]
    assert truth == pytest.approx(distance)
    assert (expected <= truth + 1e-12).all()


@pytest.mark.parametrize("name", ["l1", "l2", "kl"])
def test_a_prediction_equal_to_the_target_gains_exactly_nothing(name):
    assert gain(name, 0.9, 0.0) == 0.0
    assert gain(name, 0.9, 1.0) == 0.0


def test_kl_stays_finite_when_certainty_is_wrong():
    assert np.isfinite(gain("kl", 1.0, 0.0))
    assert gain("kl", 1.0, 0.0) < -10


def test_the_two_sides_share_out_every_row():
    rng = np.random.default_rng(3)
    h, z, t = rng.random(200), (rng.random(200) < 0.8) * 1.0, rng.uniform(0.6, 0.95, 200)
    for distance in DISTANCES.values():
        over, under = (distance.contributions(clip_to_side(h, t, s), z, t) for s in ("over", "under"))
        np.testing.assert_array_equal(over + under, distance.contributions(h, z, t))


def test_a_distance_given_as_a_function_alone_finds_its_slope():
    rng = np.random.default_rng(4)
    h, z, t = rng.uniform(0.1, 0.99, 300), (rng.random(300) < 0.8) * 1.0, np.full(300, 0.8)
    for name, function in {
        "l1": lambda t, q: np.abs(q - t),
        "l2": lambda t, q: (q - t) ** 2,
        "kl": lambda t, q: q * np.log(q / t) + (1 - q) * np.log((1 - q) / (1 - t)),
    }.items():
        ours = check_distance(function, t).contributions(h, z, t)
        np.testing.assert_allclose(ours, DISTANCES[name].contributions(h, z, t), atol=1e-6)


def test_the_numerical_slope_does_not_step_across_a_kink_at_the_target():
    slope = convex_distance(lambda t, q: np.abs(q - t)).slope
    t = np.full(3, 0.9)
    assert slope(t, np.array([0.9 - 1e-8, 0.9, 0.9 + 1e-8])) == pytest.approx([-1.0, 0.0, 1.0], abs=1e-6)


@pytest.mark.parametrize(
    ("distance", "message"),
    [
        (lambda t, q: np.sqrt(np.abs(q - t)), "must be convex"),
        (lambda t, q: (q - t) ** 2 + 0.1, "must be 0"),
        (lambda t, q: q - t, "must be convex|must be 0"),
        (lambda t, q: (q - 0.5) ** 2 - (t - 0.5) ** 2, "must be convex|must be 0"),
        (lambda t, q: 0.3, "one value per row"),
        ((lambda t, q: (q - t) ** 2, lambda t, q: 5.0 * (q - t)), "must be convex"),
        ("l3", '"l1", "l2", "kl"'),
    ],
)
def test_what_is_no_convex_distance_is_refused(distance, message):
    with pytest.raises(InputError, match=message):
        check_distance(distance, np.full(5, 0.9))


def test_a_distance_must_be_callable():
    with pytest.raises(InputTypeError, match="function of"):
        convex_distance(3.0)
