"""Truths of the worlds against numbers derived by hand, published or computed by another route."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from calipers.datasets import (
    BetaScores,
    GroupWorld,
    HeavyTailedWorld,
    HeteroscedasticWorld,
    InteractionWorld,
    LevelScores,
    MixtureWorld,
    ScoreWorld,
    true_ert,
)
from calipers.exceptions import InputError, InputTypeError


def test_true_ert_of_two_atoms_is_the_sum_worked_by_hand():
    # target 0.8; p = 0.9 with mass 3/4, p = 0.5 with mass 1/4
    truth = true_ert([0.9, 0.5], [3, 1], alpha=0.2)
    assert truth["l1_over"] == pytest.approx(0.075)
    assert truth["l1_under"] == pytest.approx(0.075)
    assert truth["l2"] == pytest.approx(0.75 * 0.01 + 0.25 * 0.09)
    kl_over = 0.75 * (0.9 * np.log(9 / 8) + 0.1 * np.log(1 / 2))
    kl_under = 0.25 * (0.5 * np.log(5 / 8) + 0.5 * np.log(5 / 2))
    assert truth["kl_over"] == pytest.approx(kl_over)
    assert truth["kl_under"] == pytest.approx(kl_under)
    assert truth["kl"] == pytest.approx(kl_over + kl_under)


def test_true_ert_counts_certain_coverage_without_nan():
    assert true_ert([1.0], alpha=0.1)["kl"] == pytest.approx(-np.log(0.9))


def test_constant_intervals_have_the_published_l1_ert():
    # 0.09474: the exact-marginal value quoted for the released driver, scale 0.5 + |2x| + x^2
    assert HeteroscedasticWorld(scale="steep").ert(alpha=0.1)["l1"] == pytest.approx(0.09474, abs=5e-6)


@pytest.mark.parametrize("scale", ["steep", "gentle"])
def test_ert_by_pieces_equals_adaptive_quadrature(scale):
    world = HeteroscedasticWorld(scale=scale)
    radius = world.constant_radius(0.1)

    def level(x):
        return float(world.constant_coverage([x], radius)[0])

    # both scales are even, so half the range suffices; the corner is where p crosses 0.9
    def twin(distance):
        return integrate.quad(lambda x: distance(level(x)), 0, 1, limit=500, epsabs=1e-11)[0]

    truth = world.ert(alpha=0.1)
    assert twin(lambda p: p) == pytest.approx(0.9, abs=1e-9)
    assert truth["l1"] == pytest.approx(twin(lambda p: abs(p - 0.9)), abs=1e-8)
    assert truth["l1_under"] == pytest.approx(twin(lambda p: max(0.9 - p, 0)), abs=1e-8)
    assert truth["l2"] == pytest.approx(twin(lambda p: (p - 0.9) ** 2), abs=1e-9)
    assert truth["kl"] == pytest.approx(
        twin(lambda p: p * np.log(p / 0.9) + (1 - p) * np.log((1 - p) / 0.1)), abs=1e-8
    )


def test_exact_marginal_coverage_makes_over_and_under_equal_in_l1():
    truth = HeteroscedasticWorld().ert(alpha=0.2)
    assert truth["l1_over"] == pytest.approx(truth["l1_under"], abs=1e-11)


def test_a_wider_radius_moves_coverage_from_under_to_over():
    world = HeteroscedasticWorld()
    exact, wide = world.ert(alpha=0.1), world.ert(alpha=0.1, radius=1.1 * world.constant_radius(0.1))
    assert wide["l1_under"] < exact["l1_under"]
    assert wide["l1_over"] > exact["l1_over"]


def test_oracle_intervals_cover_one_minus_alpha_at_every_row(seed):
    world = HeteroscedasticWorld(mean="sine")
    X, _ = world.sample(200, seed)
    np.testing.assert_allclose(world.coverage_at(X, world.oracle_intervals(X, alpha=0.2)), 0.8, atol=1e-12)
    oracle = world.ert(
        alpha=0.2,
        coverage=lambda x: world.coverage_at(
            x.reshape(-1, 1), world.oracle_intervals(x.reshape(-1, 1), alpha=0.2)
        ),
    )
    assert oracle["l1"] == pytest.approx(0, abs=1e-12)


def test_coverage_of_one_sided_intervals_is_the_normal_tail():
    world = HeteroscedasticWorld(1, scale="flat", mean="sine")
    X = np.array([[0.5]])
    assert world.coverage_at(X, [[0.3, np.inf]])[0] == pytest.approx(stats.norm.sf(0.3 - np.sin(1.5)))
    assert world.quantile_at(X, 0.975)[0] == pytest.approx(np.sin(1.5) + 1.959964, abs=1e-6)


def test_a_callable_scale_is_used_as_given():
    world = HeteroscedasticWorld(2, scale=lambda x: np.full_like(x, 3.0))
    assert world.constant_radius(0.1) == pytest.approx(3 * 1.6448536, abs=1e-6)


def test_group_world_truths_are_the_sums_worked_by_hand():
    world = GroupWorld((0.95, 0.6), (0.8, 0.2), names=("young", "old"))
    assert world.marginal_coverage() == pytest.approx(0.88)
    assert world.coverage_gap(alpha=0.1) == pytest.approx((0.05 + 0.3) / 2)
    assert world.coverage_gap(alpha=0.1, weighted=True) == pytest.approx(0.04 + 0.06)
    assert world.ert(alpha=0.1)["l1_under"] == pytest.approx(0.06)


def test_group_world_position_gives_the_group_away(seed):
    world = GroupWorld((0.9, 0.8, 0.5))
    X, covered, coverage = world.sample(300, seed)
    assert X["group"].to_list() == [("A", "B", "C")[int(p)] for p in X["position"]]
    np.testing.assert_array_equal(world.coverage_at(X), coverage)
    assert covered.dtype == bool


def test_group_names_go_on_after_z():
    assert GroupWorld((0.9,) * 28).group_names[24:] == ("Y", "Z", "AA", "AB")


def test_corner_coverage_outside_restores_the_marginal():
    world = InteractionWorld("corner", inside=0.5, marginal=0.9, cut=(0.5, 0.0))
    assert world.region_mass == pytest.approx(0.125)
    assert 0.125 * 0.5 + 0.875 * world.outside == pytest.approx(0.9)
    # given x_1 > 0.5 half of the rows lie in the corner; given x_2 > 0 a quarter does
    assert world.coverage_given(0, above=True) == pytest.approx((0.5 + world.outside) / 2)
    assert world.coverage_given(1, above=True) == pytest.approx((0.5 + 3 * world.outside) / 4)
    assert world.coverage_given(0, above=False) == pytest.approx(world.outside)
    assert world.coverage_given(2, above=True) == pytest.approx(0.9)


def test_corner_region_is_open_at_its_cut():
    world = InteractionWorld("corner", n_features=2)
    assert world.in_region([[0.1, 0.1], [0.0, 0.1], [0.1, -0.1]]).tolist() == [True, False, False]
    xor = InteractionWorld("xor", n_features=2, inside=0.85)
    assert xor.in_region([[0.1, 0.1], [-0.1, 0.1], [0.1, -0.1], [-1, -1]]).tolist() == [
        False,
        True,
        True,
        False,
    ]


def test_posterior_is_bayes_rule_on_normal_densities(seed):
    world = MixtureWorld(4, 3, separation=1.5, spread=0.8, priors=(0.1, 0.2, 0.3, 0.4))
    X, _ = world.sample(20, seed)
    joint = np.column_stack(
        [
            prior * stats.multivariate_normal(centre, 0.64 * np.eye(3)).pdf(X)
            for prior, centre in zip(world.class_priors, world.centres, strict=True)
        ]
    )
    np.testing.assert_allclose(world.posterior(X), joint / joint.sum(axis=1, keepdims=True), rtol=1e-9)


@pytest.mark.parametrize(("k", "d"), [(3, 1), (3, 2), (7, 5), (2, 4)])
def test_neighbouring_centres_are_separation_apart(k, d):
    centres = MixtureWorld(k, d, separation=1.7).centres
    np.testing.assert_allclose(np.linalg.norm(np.diff(centres, axis=0), axis=1), 1.7)


def test_far_points_have_a_finite_posterior():
    assert np.isfinite(MixtureWorld(3, 2).posterior([[1e6, -1e6]])).all()


def test_bayes_accuracy_of_two_equal_classes_is_the_normal_law():
    world = MixtureWorld(2, 3, separation=1.4, spread=0.7)
    assert world.bayes_accuracy() == pytest.approx(stats.norm.cdf(1.0), abs=1e-12)


def test_temperature_calibration_error_equals_adaptive_quadrature():
    world = MixtureWorld(2, 1, separation=2.0, priors=(0.7, 0.3))

    def gap(s):
        # the log-odds of class 1 are N(+-2 + log(3/7), 4); f is over-confident at temperature 0.5
        offset = np.log(3 / 7)
        density = 0.7 * stats.norm.pdf(s, offset - 2, 2) + 0.3 * stats.norm.pdf(s, offset + 2, 2)
        return (1 / (1 + np.exp(-s)) - 1 / (1 + np.exp(-2 * s))) * density

    below, above = integrate.quad(gap, -30, 0, limit=200)[0], integrate.quad(gap, 0, 30, limit=200)[0]
    assert below > 0 > above
    assert world.calibration_error(temperature=0.5) == pytest.approx(max(below, -above), abs=1e-9)
    assert world.mean_absolute_error(temperature=0.5) == pytest.approx(below - above, abs=1e-9)


def test_the_posterior_itself_is_calibrated():
    world = MixtureWorld(2)
    assert world.calibration_error() == pytest.approx(0, abs=1e-14)
    X, _ = world.sample(5, 0)
    np.testing.assert_allclose(world.distorted(X), world.posterior(X))


def test_bias_alone_errs_in_one_direction():
    world = MixtureWorld(2)
    error = world.calibration_error(bias=0.5)
    assert error == pytest.approx(world.mean_absolute_error(bias=0.5), abs=1e-12)
    assert error > 0.05


def test_temperature_below_one_is_more_confident():
    world = MixtureWorld(3)
    X, _ = world.sample(50, 0)
    confident, honest = world.distorted(X, temperature=0.5), world.posterior(X)
    assert (confident.max(axis=1) > honest.max(axis=1)).all()
    shifted = world.distorted(X, bias=(0, 0, 1.0))
    assert (shifted[:, 2] > honest[:, 2]).all()


def test_coverage_of_sets_sums_the_posterior_inside():
    world = MixtureWorld(3)
    X, _ = world.sample(4, 1)
    sets = np.array([[1, 0, 0], [1, 1, 0], [1, 1, 1], [0, 0, 0]], dtype=bool)
    P = world.posterior(X)
    np.testing.assert_allclose(world.coverage_at(X, sets), [P[0, 0], P[1, :2].sum(), 1, 0])


def test_heavy_tailed_laws_match_scipy():
    student, pareto = HeavyTailedWorld("student", 2.5), HeavyTailedWorld("pareto", 1.5)
    assert float(student.cdf(1.3)) == pytest.approx(2 * stats.t.cdf(1.3, 2.5) - 1)
    assert student.quantile(0.9) == pytest.approx(stats.t.ppf(0.95, 2.5))
    assert student.mean() == pytest.approx(stats.t(2.5).expect(abs), rel=1e-6)
    assert float(pareto.cdf(3.0)) == pytest.approx(stats.pareto.cdf(3.0, 1.5))
    assert pareto.quantile(0.99) == pytest.approx(stats.pareto.ppf(0.99, 1.5))
    assert pareto.mean() == pytest.approx(3.0)
    assert HeavyTailedWorld("pareto", 0.9).mean() == np.inf


def test_quantile_of_a_shared_scale_inverts_its_law():
    world = HeavyTailedWorld("student", 3, scales=(0.5, 1.0, 4.0))
    assert not world.independent
    for level in (0.1, 0.5, 0.99):
        assert float(world.cdf(world.quantile(level))) == pytest.approx(level, abs=1e-12)


# c worked by hand: E(f - f^2) = 1/6 on the uniform law; bump 0.1 on a fifth of the mass;
# E f - E f^2 of Beta(2, 5) = 2/7 - 6/56 = 5/28; one level 0.5 with truth 0.6.
@pytest.mark.parametrize(
    ("world", "error"),
    [
        (ScoreWorld("uniform", "square"), 1 / 6),
        (ScoreWorld("uniform", "bump"), 0.02),
        (ScoreWorld("beta", "square"), 5 / 28),
        (ScoreWorld("rare", "square"), 0.5 / 20.5 - 0.75 / (20.5 * 21.5)),
        (ScoreWorld(LevelScores((0.5,)), lambda f: f + 0.1 * (f == 0.5)), 0.1),
        (ScoreWorld("levels", "square"), (0.09 + 0.21 + 0.24 + 0.09) / 4),
        (ScoreWorld("rare", "bump"), 0.1 * np.diff(stats.beta.cdf([0.4, 0.6], 0.5, 20)).item()),
        (ScoreWorld("beta", "identity"), 0.0),
    ],
)
def test_calibration_error_is_the_one_worked_by_hand(world, error):
    assert world.calibration_error() == pytest.approx(error, rel=1e-8, abs=1e-13)


def test_slope_error_is_the_larger_side_and_mean_error_their_sum():
    world = ScoreWorld("uniform", "slope", strength=0.5)
    # eta = sqrt(f) / (sqrt(f) + sqrt(1-f)) is symmetric: both halves err equally, in opposite directions
    half = integrate.quad(lambda f: np.sqrt(f) / (np.sqrt(f) + np.sqrt(1 - f)) - f, 0, 0.5)[0]
    assert world.calibration_error() == pytest.approx(half, abs=1e-10)
    assert world.mean_absolute_error() == pytest.approx(2 * half, abs=1e-10)
    assert world.worst_interval() in [(0.0, 0.5), (0.5, 1.0)]


def test_worst_interval_of_a_bump_is_the_bump():
    assert ScoreWorld("uniform", "bump").worst_interval() == pytest.approx((0.4, 0.6))
    assert ScoreWorld("levels", "bump").worst_interval() == pytest.approx((0.6, 0.6))
    assert ScoreWorld().worst_interval() == (0.0, 0.0)


def test_calibration_error_uses_the_best_run_of_levels():
    # gaps +.1, -.05, +.1, -.3 (each / 4): the best run is the last level alone
    gaps = {0.1: 0.1, 0.3: -0.05, 0.6: 0.1, 0.9: -0.3}
    world = ScoreWorld("levels", lambda f: np.clip(f + np.vectorize(lambda v: gaps.get(v, 0.0))(f), 0, 1))
    assert world.calibration_error() == pytest.approx(0.3 / 4)
    assert world.worst_interval() == (0.9, 0.9)
    assert world.mean_absolute_error() == pytest.approx(0.55 / 4)


def test_brier_and_base_rate_are_those_worked_by_hand():
    assert ScoreWorld().brier() == pytest.approx(1 / 6)  # E f(1-f)
    square = ScoreWorld("uniform", "square")  # E(f^2 - f)^2 + E f^2 (1 - f^2) = 1/30 + 2/15
    assert square.brier() == pytest.approx(1 / 30 + 2 / 15)
    assert square.base_rate() == pytest.approx(1 / 3)
    assert ScoreWorld(BetaScores(0.5, 20)).base_rate() == pytest.approx(0.5 / 20.5)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HeteroscedasticWorld(0), "n_features must be a whole number of at least 1, got 0"),
        (
            lambda: HeteroscedasticWorld(scale="wild"),
            "scale must be one of steep, gentle, flat or a callable",
        ),
        (lambda: HeteroscedasticWorld().ert(alpha=90), "alpha must lie strictly between 0 and 1, got 90"),
        (lambda: HeteroscedasticWorld().mean_at([1.0]), r"X must have two dimensions, got shape \(1,\)"),
        (lambda: GroupWorld((0.9, 1.2)), r"coverages must lie in \[0, 1\]"),
        (lambda: GroupWorld((0.9, 0.8), (1.0,)), "shares and coverages must have the same length"),
        (lambda: GroupWorld((0.9, 0.8), (0.5, 0.6)), "shares must be non-negative and sum to 1"),
        (lambda: InteractionWorld("ring"), 'kind must be "corner" or "xor"'),
        (lambda: InteractionWorld("xor", cut=(0.1, 0.0)), r"cut must be \(0, 0\) for xor"),
        (lambda: InteractionWorld("corner", cut=(1.0, 0.0)), "cut must lie strictly between -1 and 1"),
        (lambda: InteractionWorld("xor", inside=0.1), "asks for 1.700 outside"),
        (lambda: MixtureWorld(1), "n_classes must be a whole number of at least 2"),
        (lambda: MixtureWorld(2, priors=(0.5, 0.6)), "priors must be 2 non-negative numbers that sum to 1"),
        (lambda: MixtureWorld(spread=0), "spread must be positive, got 0"),
        (lambda: MixtureWorld(3).calibration_error(), "this truth is known for two classes, got n_classes 3"),
        (lambda: MixtureWorld().distorted([[0, 0]], temperature=0), "temperature must be positive, got 0"),
        (lambda: MixtureWorld().distorted([[0, 0]], bias=[1]), r"bias must have one entry per class \(3\)"),
        (lambda: HeavyTailedWorld("normal"), 'family must be "student" or "pareto"'),
        (lambda: HeavyTailedWorld(shape=0), "shape must be positive, got 0"),
        (lambda: HeavyTailedWorld(scales=()), "scales must be positive and not empty"),
        (lambda: HeavyTailedWorld().quantile(1.0), "level must lie strictly between 0 and 1"),
        (lambda: ScoreWorld("gamma"), "scores must be one of uniform, beta, rare, levels or a law"),
        (lambda: ScoreWorld(link="cube"), "link must be one of identity, shift, slope, bump, square"),
        (lambda: ScoreWorld(link=lambda f: f + 0.5), r"link must stay in \[0, 1\]"),
        (lambda: LevelScores((0.5, 0.5)), "values must increase strictly"),
        (lambda: BetaScores(0, 1), "a and b must be positive"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(make, message):
    with pytest.raises(InputError, match=message):
        make()


def test_arguments_of_the_wrong_kind_are_refused():
    with pytest.raises(InputTypeError, match="scores must be a name, BetaScores or LevelScores, got float"):
        ScoreWorld(0.5)
    with pytest.raises(InputTypeError, match="scale must be a name or a callable, got int"):
        HeteroscedasticWorld(scale=2)


@pytest.mark.parametrize(
    "world",
    [
        HeteroscedasticWorld(3),
        GroupWorld(),
        InteractionWorld("corner"),
        InteractionWorld("xor"),
        MixtureWorld(),
        HeavyTailedWorld(scales=(1.0, 3.0)),
        ScoreWorld(),
    ],
    ids=lambda world: type(world).__name__,
)
def test_the_same_seed_gives_the_same_sample(world):
    first, second = world.sample(50, 3), world.sample(50, np.random.default_rng(3))
    parts = [(first, second)] if isinstance(first, np.ndarray) else zip(first, second, strict=True)
    for a, b in parts:
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    with pytest.raises(InputError, match="n must be a whole number of at least 1, got 0"):
        world.sample(0)
