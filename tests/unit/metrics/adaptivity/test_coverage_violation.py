import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from calipers.exceptions import InputError
from calipers.inference import CoverageLaw, ViolationLaw
from calipers.metrics import escv, rank_cv, sscv, t_cv
from calipers.metrics.adaptivity.largest_violation import mean_squared_violation
from tests.unit.metrics.adaptivity import brute_force


@settings(deadline=None, max_examples=60)
@given(
    rows=st.lists(st.tuples(st.booleans(), st.integers(0, 9)), min_size=1, max_size=30),
    n_bins=st.integers(1, 40),
)
def test_t_cv_is_the_printed_formula_with_shared_ties(rows, n_bins):
    covered, ease = [c for c, _ in rows], [e / 10 for _, e in rows]
    ours = t_cv(covered, ease, alpha=0.2, n_bins=n_bins, n_draws=19, random_state=0)
    assert float(ours) == pytest.approx(brute_force.t_cv(covered, ease, 0.2, n_bins), abs=1e-12)


def test_t_cv_by_hand():
    # Two bins of three: 3 of 3 and 1 of 3 covered, target 0.75.
    e = t_cv([1, 1, 1, 0, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.5, 0.6], alpha=0.25, n_bins=2)
    assert float(e) == pytest.approx(0.75 - 1 / 3)
    assert e.details["worst_bin"] == 1
    assert e.details["rows"] == [3, 3]
    assert e.std_error == pytest.approx(np.sqrt(2 / 9 / 3))


def test_the_law_is_the_product_over_bins():
    # Two bins of 3 and one of 4 rows at alpha 0.2, by enumeration.
    sizes, t = (3, 3, 4), 0.8
    law = ViolationLaw([CoverageLaw(n, 0.2) for n in sizes], t)
    atoms = {}
    for counts in itertools.product(*(range(n + 1) for n in sizes)):
        mass = np.prod([stats.binom.pmf(k, n, t) for k, n in zip(counts, sizes, strict=True)])
        worst = round(max(abs(k / n - t) for k, n in zip(counts, sizes, strict=True)), 12)
        atoms[worst] = atoms.get(worst, 0.0) + mass
    for x in (*atoms, 0.0, 0.11, 0.9):
        at_least = sum(m for a, m in atoms.items() if a >= x - 1e-9)
        assert law.p_value(x) == pytest.approx(at_least, rel=1e-10, abs=1e-15)
        assert law.p_value(x, "less") == pytest.approx(
            sum(m for a, m in atoms.items() if a <= x + 1e-9), rel=1e-9, abs=1e-14
        )
    for level in (0.3, 0.5, 0.9, 0.95):
        point = min(a for a in atoms if sum(m for b, m in atoms.items() if b > a + 1e-9) <= 1 - level)
        assert law.band(level).high == pytest.approx(point)
        low = max(a for a in atoms if sum(m for b, m in atoms.items() if b < a - 1e-9) <= 1 - level)
        assert law.band(level, "less").low == pytest.approx(low)


@pytest.mark.parametrize("side", ["under", "over"])
def test_one_sided_laws_count_one_direction(side):
    law = ViolationLaw([CoverageLaw(3, 0.2), CoverageLaw(5, 0.2)], 0.8, side=side)
    sign = -1 if side == "under" else 1
    total = {}
    for i, j in itertools.product(range(4), range(6)):
        gap = round(max(0.0, sign * (i / 3 - 0.8), sign * (j / 5 - 0.8)), 12)
        total[gap] = total.get(gap, 0.0) + stats.binom.pmf(i, 3, 0.8) * stats.binom.pmf(j, 5, 0.8)
    for x in total:
        assert law.p_value(x) == pytest.approx(sum(m for a, m in total.items() if a >= x - 1e-9), rel=1e-9)
    assert law.p_value(0.0) == 1.0
    assert law.quantile(0.7) == pytest.approx(
        min(a for a in total if sum(m for b, m in total.items() if b <= a + 1e-9) >= 0.7)
    )


def test_finite_calibration_multiplies_beta_binomial_laws():
    law = ViolationLaw([CoverageLaw(6, 0.25, n_calibration=7, rank=6)] * 3, 0.75)
    pmf = [stats.betabinom.pmf(k, 6, 6, 2) for k in range(7)]
    inside = sum(m for k, m in enumerate(pmf) if abs(k / 6 - 0.75) <= 0.25 + 1e-9)
    assert law.p_value(0.25 + 1e-6) == pytest.approx(1 - inside**3, rel=1e-9)
    e = t_cv([1, 1, 1, 1, 1, 0] * 3, np.arange(18), alpha=0.25, n_bins=3, n_calibration=[7, 7, 7])
    below = sum(m for k, m in enumerate(pmf) if abs(k / 6 - 0.75) < abs(5 / 6 - 0.75) - 1e-9)
    assert e.p_value == pytest.approx(1 - below**3)


def test_tiny_tails_keep_their_digits():
    law = ViolationLaw([CoverageLaw(400, 0.1)] * 50, 0.9)
    expected = 50 * stats.binom.cdf(200, 400, 0.9)
    assert law.p_value(0.4) == pytest.approx(expected, rel=1e-9)
    assert 0 < law.p_value(0.4) < 1e-60


def test_null_band_is_the_known_one():
    # Median 0.0375 and 95 % point 0.050 for n = 20 000, 50 bins, alpha = 0.1.
    rng = np.random.default_rng(0)
    e = t_cv(rng.random(20_000) < 0.9, rng.random(20_000), alpha=0.1)
    assert e.null_high == pytest.approx(0.050, abs=0.002)
    assert e.details["null_median"] == pytest.approx(0.0375, abs=0.001)
    mondrian = t_cv(rng.random(20_000) < 0.9, rng.random(20_000), alpha=0.1, n_calibration=np.full(50, 400))
    assert mondrian.details["null_median"] == pytest.approx(0.0525, abs=0.001)
    # One threshold shifts all bins together: its law is smaller than that of thresholds of their own.
    single = t_cv(rng.random(20_000) < 0.9, rng.random(20_000), alpha=0.1, n_calibration=400)
    assert e.null_high < single.null_high < mondrian.null_high


# Facts measured by simulation elsewhere: N = 20 000, medians of the noise floor.
@pytest.mark.parametrize(
    ("alpha", "n_bins", "median"),
    [(0.1, 30, 0.0264), (0.1, 100, 0.055), (0.05, 30, 0.0191), (0.05, 50, 0.0275), (0.05, 100, 0.04)],
)
def test_noise_floor_at_other_settings(alpha, n_bins, median):
    sizes = np.diff([b * 20_000 // n_bins for b in range(n_bins + 1)])
    law = ViolationLaw([CoverageLaw(int(n), alpha) for n in sizes], 1 - alpha)
    assert law.quantile(0.5) == pytest.approx(median, abs=0.0006)


@pytest.mark.parametrize("ties", [False, True])
def test_nothing_changes_with_the_order_of_rows(ties, seed):
    rng = np.random.default_rng(seed)
    ease = rng.random(503)
    ease = np.round(ease, 1) if ties else ease
    covered = rng.random(503) < 0.9
    order = rng.permutation(503)
    first = t_cv(covered, ease, alpha=0.1, n_bins=20, n_draws=99, random_state=1)
    second = t_cv(covered[order], ease[order], alpha=0.1, n_bins=20, n_draws=99, random_state=1)
    assert first == second
    assert first.details["shared_ties"] == ties


def test_all_rows_tied_make_every_bin_alike():
    covered = np.r_[np.ones(80), np.zeros(20)]
    e = t_cv(covered, np.full(100, 0.5), alpha=0.1, n_bins=10, n_draws=999, random_state=0)
    assert float(e) == pytest.approx(0.1)
    # Then T-CV is the plain two-sided violation of the coverage.
    law = CoverageLaw(100, 0.1)
    assert e.p_value == pytest.approx(float(law.cdf(80) + law.sf(99)), abs=0.006)


def test_interval_maps_the_bins_through_the_maximum():
    e = t_cv([1] * 9 + [0] + [1] * 4 + [0] * 6, np.arange(20), alpha=0.1, n_bins=2)
    level = 0.95 ** (1 / 2)
    tail = (1 - level) / 2
    ends = [(stats.beta.ppf(tail, k, 11 - k), stats.beta.ppf(1 - tail, k + 1, 10 - k)) for k in (9, 4)]
    assert e.high == pytest.approx(max(max(abs(low - 0.9), abs(high - 0.9)) for low, high in ends))
    assert e.low == pytest.approx(max(max(0.9 - high, low - 0.9, 0.0) for low, high in ends))


def test_mean_squared_violation_by_hand():
    # (0.8 - 0.9)^2 - 0.16 / 9 and (0.5 - 0.9)^2 - 0.25 / 4, averaged; one-row bins are left out.
    value, error = mean_squared_violation(np.array([0.8, 0.5, 1.0]), np.array([10, 5, 1]), np.full(3, 0.9))
    assert value == pytest.approx((0.01 - 0.16 / 9 + 0.16 - 0.0625) / 2)
    # 4 d^2 v + 4 d mu3 + 2 v^2 per bin, mu3 = v (1 - 2c) / n: at c = 0.8, n = 10 and at c = 0.5, n = 5.
    v, w = 0.16 / 9, 0.0625
    first = 4 * (0.01 - v) * v + 4 * -0.1 * v * -0.6 / 10 + 2 * v**2
    second = 4 * (0.16 - w) * w + 2 * w**2
    assert error == pytest.approx(np.sqrt(first + second) / 2)
    assert np.isnan(mean_squared_violation(np.array([1.0]), np.array([1]), np.array([0.9]))[0])


@given(
    rows=st.lists(st.tuples(st.booleans(), st.integers(0, 120)), min_size=1, max_size=40),
)
def test_size_and_rank_strata_are_the_printed_ones(rows):
    covered, size = [int(c) for c, _ in rows], [s for _, s in rows]
    shares = brute_force.stratified([covered], size, brute_force.RAPS_RANGES)[0]
    expected = max(abs(c - 0.9) for c in shares)
    assert float(sscv(covered, size, alpha=0.1)) == pytest.approx(expected)
    assert float(rank_cv(covered, size, alpha=0.1)) == pytest.approx(expected)
    each = brute_force.stratified([covered], size, [(s, s) for s in sorted(set(size))])[0]
    assert float(escv(covered, size, alpha=0.1)) == pytest.approx(max(abs(c - 0.9) for c in each))
    one_sided = escv(covered, size, alpha=0.1, one_sided=True)
    assert float(one_sided) == pytest.approx(max(max(0.0, 0.9 - c) for c in each))


def test_sscv_strata_are_those_of_the_raps_paper_not_of_the_other_library():
    # Sizes 5 and 8: two strata here, one ([4, 10]) in a peer's default.
    assert float(sscv([1, 1, 0, 0], [5, 5, 8, 8], alpha=0.1)) == pytest.approx(0.9)
    assert float(sscv([1, 1, 0, 0], [5, 5, 8, 8], alpha=0.1, strata=(1, 3, 10, 100))) == pytest.approx(0.4)
    # Sizes above 1000 belong to the last stratum; a peer answers -1.
    assert float(sscv([1, 1], [2000, 3000], alpha=0.1)) == pytest.approx(0.1)


def test_rank_cv_has_no_null_and_says_why():
    e = rank_cv([1, 1, 0], [1, 1, 2], alpha=0.1)
    assert e.p_value is None
    assert e.null_high is None
    assert "even for a perfect predictor" in e.reason


def test_fractional_weights_have_a_value_and_no_test():
    e = t_cv([1, 0, 1], [0.1, 0.2, 0.3], alpha=0.1, n_bins=2, sample_weight=[0.5, 1.0, 0.5])
    assert float(e) == pytest.approx(0.4)
    assert e.p_value is None
    assert "not whole numbers" in e.reason


def test_rows_of_weight_zero_are_not_there():
    kept = t_cv([1, 0, 1], [0.1, 0.2, 0.3], alpha=0.1, n_bins=3)
    padded = t_cv([1, 0, 1, 0], [0.1, 0.2, 0.3, 0.25], alpha=0.1, n_bins=3, sample_weight=[1, 1, 1, 0])
    assert kept == padded


def test_randomized_p_value_lies_below_the_plain_one():
    rng = np.random.default_rng(3)
    covered, ease = rng.random(400) < 0.9, rng.random(400)
    plain = t_cv(covered, ease, alpha=0.1, n_bins=10)
    randomized = t_cv(covered, ease, alpha=0.1, n_bins=10, randomized=True, random_state=0)
    assert randomized.p_value < plain.p_value


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: t_cv([1, 0], [0.1], alpha=0.1), "covered and ease must have the same length"),
        (lambda: t_cv([1, 0], [0.1, np.nan], alpha=0.1), "ease has 1 NaN"),
        (lambda: t_cv([1, 0], [0.1, 0.2], alpha=10), "alpha must lie strictly between 0 and 1"),
        (lambda: t_cv([1, 0], [0.1, 0.2], alpha=0.1, n_bins=0), "n_bins must be a whole number"),
        (lambda: t_cv([1, 0], [0.1, 0.2], alpha=0.1, n_calibration=[5, 5]), "one per stratum .bins: 50"),
        (lambda: escv([1, 0], [1.5, 2], alpha=0.1), "whole numbers of labels, got 1.5 at row 0"),
        (lambda: t_cv([2, 0], [0.1, 0.2], alpha=0.1), "covered must hold booleans"),
        (lambda: ViolationLaw([CoverageLaw(0, 0.1)], 0.9), "at least one stratum with rows"),
        (lambda: ViolationLaw([CoverageLaw(4, 0.1)], 0.9, side="left"), "side must be"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
