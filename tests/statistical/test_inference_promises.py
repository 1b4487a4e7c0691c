"""Coverage of every interval and size of every test, with binomial tolerance.

A share simulated in R runs may differ from its promise by four binomial standard errors.
"""

import numpy as np
import pytest
from scipy import stats

from calipers.inference import (
    CalibrationLaw,
    CoverageLaw,
    Moments,
    SimulatedLaw,
    bca_bootstrap,
    benjamini_hochberg,
    binomial_p_value,
    bonferroni,
    bounded_mean_interval,
    clopper_pearson,
    holm,
    mean_estimate,
    monte_carlo_p,
    permutation_test,
    poisson_sums,
    sidak,
    symmetry_test,
    wilson,
)


def tolerance(share, runs):
    return 4 * np.sqrt(share * (1 - share) / runs)


@pytest.mark.parametrize("n", [5, 30, 200])
@pytest.mark.parametrize("confidence", [0.8, 0.95])
def test_clopper_pearson_never_undercovers(n, confidence):
    # Exact coverage at each truth, by summing over all counts.
    counts, truths = np.arange(n + 1), np.linspace(0.001, 0.999, 499)
    low, high = clopper_pearson(counts, n, confidence=confidence)
    held = (low[:, None] <= truths) & (truths <= high[:, None])
    coverage = np.sum(stats.binom.pmf(counts[:, None], n, truths) * held, axis=0)
    assert np.min(coverage) >= confidence - 1e-9
    # And is not needlessly wide: near 0 and 1 one end alone can miss, which leaves half the error.
    assert np.min(coverage) < confidence + (1 - confidence) / 2 + 1e-4


def test_wilson_covers_on_average():
    counts, truths = np.arange(51), np.linspace(0.01, 0.99, 197)
    low, high = wilson(counts, 50)
    held = (low[:, None] <= truths) & (truths <= high[:, None])
    coverage = np.sum(stats.binom.pmf(counts[:, None], 50, truths) * held, axis=0)
    assert np.mean(coverage) == pytest.approx(0.95, abs=0.01)


@pytest.mark.parametrize("p", [0.1, 0.5, 0.93])
def test_the_binomial_test_is_exact_in_size_and_sees_an_alternative(p):
    counts = np.arange(101)
    p_values = binomial_p_value(counts, 100, p)
    masses = stats.binom.pmf(counts, 100, p)
    for u in (0.01, 0.05, 0.2):
        assert np.sum(masses[p_values <= u]) <= u
    shifted = stats.binom.pmf(counts, 100, p - 0.09)
    assert np.sum(shifted[p_values <= 0.05]) > 2 * np.sum(masses[p_values <= 0.05])


def test_a_sound_split_conformal_predictor_is_accused_at_the_stated_rate_only():
    # 4000 audits: 99 calibration scores, rank 90, 1000 test rows each.
    rng, runs = np.random.default_rng(0), 4000
    thresholds = np.sort(rng.random((runs, 99)), axis=1)[:, 89]
    covered = rng.binomial(1000, thresholds)
    exact = CoverageLaw(1000, 0.1, 99, 90)
    accused = np.mean(exact.p_value(covered) <= 0.05)
    assert accused <= 0.05 + tolerance(0.05, runs)
    assert accused > 0.04
    # The binomial law, which ignores the calibration draw, accuses in more than half of all audits.
    assert np.mean(CoverageLaw(1000, 0.1).p_value(covered) <= 0.05) > 0.5
    # An alternative: the predictor truly covers 0.8.
    low = rng.binomial(1000, rng.beta(80, 20, runs))
    assert np.mean(exact.p_value(low) <= 0.05) > 0.7
    inside = CalibrationLaw(99, 90).interval(0.9)
    share = np.mean((thresholds > inside.low) & (thresholds < inside.high))
    assert share == pytest.approx(0.9, abs=tolerance(0.9, runs))


def test_the_coverage_law_is_the_law_of_simulated_audits():
    rng, runs = np.random.default_rng(1), 20_000
    thresholds = np.sort(rng.random((runs, 19)), axis=1)[:, 17]
    covered = np.sum(rng.random((runs, 12)) <= thresholds[:, None], axis=1)
    law = CoverageLaw(12, 0.1, 19, 18)
    observed = np.bincount(covered, minlength=13)
    expected = runs * law.pmf(np.arange(13))
    kept = expected >= 5
    statistic = np.sum((observed - expected)[kept] ** 2 / expected[kept])
    assert statistic < stats.chi2.isf(1e-4, np.sum(kept))


def test_the_t_interval_covers_a_normal_mean_and_its_test_has_its_size():
    rng, runs, held, rejected = np.random.default_rng(2), 1500, 0, 0
    for _ in range(runs):
        e = mean_estimate(rng.normal(2, 3, 12), name="m", null=2.0)
        held += e.low <= 2 <= e.high
        rejected += e.p_value <= 0.05
    assert held / runs == pytest.approx(0.95, abs=tolerance(0.95, runs))
    assert rejected == runs - held


def test_bca_covers_a_skewed_mean_better_than_the_normal_interval_is_centred():
    # Exponential rows, n = 40: Efron's second-order correction shifts both ends to the right.
    rng, runs = np.random.default_rng(3), 600
    missed = np.zeros(2)
    for _ in range(runs):
        r = bca_bootstrap(np.mean, rng.exponential(size=40), n_draws=600, vectorized=True, random_state=rng)
        missed += [r.low > 1, r.high < 1]
    # 3000 longer runs gave 0.928: BCa is short of its level by order 1/n.
    assert 1 - missed.sum() / runs == pytest.approx(0.928, abs=tolerance(0.928, runs))
    # The normal interval misses on the right six times as often as on the left (100 000 runs), BCa 1.6 times.
    assert missed[1] < 4 * missed[0]


def test_the_poisson_interval_covers_a_ratio():
    rng, runs, held = np.random.default_rng(4), 500, 0
    for _ in range(runs):
        y = rng.random(150) + 0.5
        r = poisson_sums(2 * y + rng.normal(size=150), y, n_draws=300, random_state=rng).result(
            confidence=0.9
        )
        held += r.low <= 2 <= r.high
    # 300 draws and 150 rows cost about one point of level (0.884 in 3000 runs).
    assert held / runs == pytest.approx(0.89, abs=tolerance(0.9, runs))


def test_the_permutation_test_has_its_size_and_sees_dependence():
    rng, runs = np.random.default_rng(5), 1000
    null = np.empty(runs)
    dependent = np.empty(200)
    for i in range(runs):
        x, y = rng.integers(0, 4, (2, 20))  # many ties
        null[i] = permutation_test(
            lambda p, f: p @ f, x, y, n_draws=39, vectorized=True, random_state=rng
        ).p_value
        if i < 200:
            dependent[i] = permutation_test(
                lambda p, f: p @ f, x + 2 * y, y, n_draws=39, vectorized=True, random_state=rng
            ).p_value
    for u in (0.05, 0.25, 0.5):
        assert np.mean(null <= u) <= u + tolerance(u, runs)
    assert np.mean(null <= 0.25) > 0.15
    assert np.mean(dependent <= 0.05) > 0.9


def test_monte_carlo_p_values_are_uniform_on_their_grid():
    rng, runs = np.random.default_rng(6), 2000
    readings, draws = rng.normal(size=runs), rng.normal(size=(runs, 19))
    for alternative in ("greater", "less", "two-sided"):
        p = np.array(
            [
                monte_carlo_p(x, d, alternative=alternative).p_value
                for x, d in zip(readings, draws, strict=True)
            ]
        )
        for u in (0.1, 0.5):
            assert np.mean(p <= u + 1e-12) == pytest.approx(u, abs=tolerance(u, runs))


def test_the_simulated_band_holds_its_level_at_any_number_of_draws():
    rng, runs = np.random.default_rng(7), 3000
    inside = [rng.normal() <= SimulatedLaw(rng.normal(size=19)).band(0.9).high for _ in range(runs)]
    assert np.mean(inside) == pytest.approx(0.9, abs=tolerance(0.9, runs))


def test_the_monte_carlo_interval_holds_the_limit_p_value():
    rng, runs = np.random.default_rng(8), 1000
    truth = stats.norm.sf(1.5)
    results = [monte_carlo_p(1.5, rng.normal(size=200)) for _ in range(runs)]
    assert np.mean([r.low <= truth <= r.high for r in results]) >= 0.95 - tolerance(0.95, runs)


def test_family_wise_error_and_false_discoveries_stay_below_their_level():
    # 15 true nulls and 5 false ones, 4000 families.
    rng, runs = np.random.default_rng(9), 4000
    p = rng.random((runs, 20))
    p[:, 15:] = stats.norm.sf(rng.normal(3, 1, (runs, 5)))
    rejections = {}
    for adjust in (bonferroni, sidak, holm):
        rejected = adjust(p) <= 0.1
        assert np.mean(rejected[:, :15].any(axis=1)) <= 0.1 + tolerance(0.1, runs)
        rejections[adjust] = rejected[:, 15:].mean()
    rejected = benjamini_hochberg(p) <= 0.1
    false_share = rejected[:, :15].sum(axis=1) / np.maximum(rejected.sum(axis=1), 1)
    # Under independence the rate is exactly level x true nulls / tests = 0.075.
    assert np.mean(false_share) == pytest.approx(0.075, abs=4 * np.std(false_share) / np.sqrt(runs))
    assert rejections[bonferroni] <= rejections[sidak] <= rejected[:, 15:].mean()
    assert rejections[bonferroni] <= rejections[holm] < rejected[:, 15:].mean()


def _laws(rng):
    """Laws on [0, 1] with their means: shares, Beta laws, rare spikes, rare dips."""
    for q in (0.003, 0.03, 0.3, 0.9):
        yield f"share {q}", lambda n, q=q: (rng.random(n) < q) * 1.0, q
        yield f"half share {q}", lambda n, q=q: (rng.random(n) < q) * 0.5, q / 2
        yield (
            f"spike {q}",
            lambda n, q=q: np.where(rng.random(n) < q, 1.0, 0.02 * rng.random(n)),
            q + (1 - q) / 100,
        )
        yield (
            f"dip {q}",
            lambda n, q=q: np.where(rng.random(n) < q, 0.0, 0.9 + 0.1 * rng.random(n)),
            0.95 * (1 - q),
        )
    for a, b in ((0.02, 1), (0.05, 5), (5, 0.05), (0.1, 0.1), (2, 8)):
        yield f"Beta({a}, {b})", lambda n, a=a, b=b: rng.beta(a, b, n), a / (a + b)


@pytest.mark.parametrize("n", [2, 10, 50, 400])
def test_the_interval_of_a_known_range_holds_skewed_means(n):
    rng, runs = np.random.default_rng(n), 1000
    for name, draw, mean in _laws(rng):
        ends = [bounded_mean_interval(Moments.of(draw(n)), low=0, high=1) for _ in range(runs)]
        low, high = np.array(ends).T
        misses = np.array([np.sum(low > mean + 1e-12), np.sum(high < mean - 1e-12)])
        # 2.5 % at either end; 168 comparisons.
        assert (stats.binom.sf(misses - 1, runs, 0.025) > 1e-5).all(), name


def test_the_symmetry_test_keeps_its_size_for_any_sizes():
    rng, runs = np.random.default_rng(0), 2000
    for sizes in (
        np.r_[np.ones(4), np.zeros(500)],
        np.ones(30),
        rng.pareto(0.8, 200),
        np.r_[9.0, np.ones(40)],
    ):
        signs = rng.choice([-1.0, 1.0], size=(runs, len(sizes)))
        p_values = np.array([symmetry_test(Moments.of(row * sizes)).p_value for row in signs])
        for level in (0.01, 0.05):
            assert stats.binom.sf(np.sum(p_values <= level) - 1, runs, level) > 1e-5
    # A shift of 0.8 spreads in 20 rows is found in more than half of all samples.
    found = [symmetry_test(Moments.of(rng.normal(0.8, 1, 20))).p_value <= 0.05 for _ in range(300)]
    assert np.mean(found) > 0.5
