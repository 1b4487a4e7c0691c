import itertools

import numpy as np
import pytest
from scipy import stats

from calipers.exceptions import DegradedResultWarning, InputError
from calipers.inference import (
    average_shared_rank,
    block_ranks,
    compare_ranks,
    critical_difference,
    friedman_test,
)
from calipers.inference.rank_tests import range_exceeds, signed_rank_test

# Demsar (2006), Table 6: AUC of C4.5 with default options, tuned m, tuned cf, and both, on 14 data sets.
DEMSAR = np.array(
    [
        [0.763, 0.768, 0.771, 0.798],
        [0.599, 0.591, 0.590, 0.569],
        [0.954, 0.971, 0.968, 0.967],
        [0.628, 0.661, 0.654, 0.657],
        [0.882, 0.888, 0.886, 0.898],
        [0.936, 0.931, 0.916, 0.931],
        [0.661, 0.668, 0.609, 0.685],
        [0.583, 0.583, 0.563, 0.625],
        [0.775, 0.838, 0.866, 0.875],
        [1.000, 1.000, 1.000, 1.000],
        [0.940, 0.962, 0.965, 0.962],
        [0.619, 0.666, 0.614, 0.669],
        [0.972, 0.981, 0.9751, 0.975],  # printed alike, ranked 2 and 3
        [0.957, 0.978, 0.946, 0.970],
    ]
)
NAMES = ["C4.5", "C4.5+m", "C4.5+cf", "C4.5+m+cf"]


def test_average_ranks_of_the_textbook_example():
    ranks = block_ranks(DEMSAR, higher_is_better=True).mean(axis=0)
    np.testing.assert_allclose(ranks, [3.143, 2.000, 2.893, 1.964], atol=5e-4)
    # Printed chi-squared 9.28, without the correction for ties.
    plain = 12 * 14 / 20 * (np.sum(ranks**2) - 4 * 25 / 4)
    assert plain == pytest.approx(9.28, abs=0.01)


def test_critical_difference_of_the_textbook_example():
    assert critical_difference(4, 14) == pytest.approx(1.25, abs=0.005)


# Demsar (2006), Table 5: critical values q of the Nemenyi test.
@pytest.mark.parametrize(
    ("k", "alpha", "q"),
    [
        (2, 0.05, 1.960),
        (3, 0.05, 2.343),
        (4, 0.05, 2.569),
        (10, 0.05, 3.164),
        (2, 0.1, 1.645),
        (4, 0.1, 2.291),
    ],
)
def test_critical_values_are_the_printed_ones(k, alpha, q):
    assert critical_difference(k, 20, alpha=alpha) == pytest.approx(q * np.sqrt(k * (k + 1) / 120), abs=5e-4)


def test_range_of_normals_is_the_studentized_range_with_known_variance():
    for k in (2, 3, 6):
        q = np.array([0.0, 1.0, 2.5, 4.0, 6.0])
        np.testing.assert_allclose(range_exceeds(q, k), stats.studentized_range.sf(q, k, 1e7), atol=2e-6)


def test_friedman_agrees_with_scipy(seed):
    rng = np.random.default_rng(seed)
    for values in (rng.normal(size=(12, 5)), rng.integers(0, 4, (12, 5)).astype(float), DEMSAR):
        ours, theirs = friedman_test(values), stats.friedmanchisquare(*values.T)
        assert ours == pytest.approx((theirs.statistic, theirs.pvalue))
    assert friedman_test(np.ones((4, 3))) == (0.0, 1.0)


def test_nemenyi_p_values_cross_alpha_at_the_critical_difference():
    comparison = compare_ranks(DEMSAR, NAMES, post_hoc="nemenyi", higher_is_better=True)
    assert comparison.critical_difference == pytest.approx(1.25, abs=0.005)
    gaps = np.abs(comparison.average_ranks[:, None] - comparison.average_ranks[None])
    np.testing.assert_array_equal(comparison.adjusted <= 0.05, gaps >= comparison.critical_difference)
    # No pair differs at 0.05 in the printed example either.
    assert not comparison.differ.any()
    assert set(comparison.shared_ranks.values()) == {1}
    assert comparison.cliques == (comparison.order,)


def test_holm_adjusts_wilcoxon_tests_of_pairs():
    comparison = compare_ranks(DEMSAR, NAMES, higher_is_better=True)
    raw = {(i, j): signed_rank_test(DEMSAR[:, i] - DEMSAR[:, j]) for i in range(4) for j in range(i + 1, 4)}
    order = sorted(raw, key=raw.get)
    running = 0.0
    for position, pair in enumerate(order):
        running = max(running, (6 - position) * raw[pair])
        assert comparison.adjusted[pair] == pytest.approx(min(1.0, running))


def test_signed_rank_test_is_exact_with_and_without_ties():
    rng = np.random.default_rng(0)
    plain = rng.normal(0.4, 1, 12)
    assert signed_rank_test(plain) == pytest.approx(stats.wilcoxon(plain, method="exact").pvalue)
    tied = np.array([1.0, -1.0, 2.0, 2.0, 3.0, -2.0, 4.0, 0.0])
    changed = tied[tied != 0]
    ranks = stats.rankdata(np.abs(changed))
    sums = [
        sum(r for r, s in zip(ranks, signs, strict=True) if s)
        for signs in itertools.product((0, 1), repeat=7)
    ]
    observed, total = ranks[changed > 0].sum(), ranks.sum()
    far = np.mean([min(s, total - s) <= min(observed, total - observed) for s in sums])
    assert signed_rank_test(tied) == pytest.approx(min(1.0, far))
    many = rng.normal(0.05, 1, 400)
    assert signed_rank_test(many) == pytest.approx(stats.wilcoxon(many, correction=True).pvalue, rel=0.01)
    assert signed_rank_test(np.zeros(5)) == 1.0


def test_methods_that_do_not_differ_share_a_rank_without_gaps(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal([0, 0, 3, 3, 9], 0.5, size=(40, 5))
    comparison = compare_ranks(values, list("abcde"))
    assert comparison.shared_ranks == {"a": 1, "b": 1, "c": 2, "d": 2, "e": 3}
    assert [len(c) for c in comparison.cliques] == [2, 2]
    reversed_ = compare_ranks(values, list("abcde"), higher_is_better=True)
    assert reversed_.shared_ranks["e"] == 1
    assert average_shared_rank([comparison, reversed_])["c"] == 2.0
    assert comparison.to_frame()["shared_rank"].to_list() == [1, 1, 2, 2, 3]
    assert "Friedman p" in str(comparison)


def test_friedman_and_pairs_keep_their_level_when_methods_are_alike(seed):
    rng = np.random.default_rng(seed)
    rejected, any_pair, runs = 0, 0, 400
    for _ in range(runs):
        comparison = compare_ranks(rng.normal(size=(15, 4)), list("abcd"), post_hoc="nemenyi")
        rejected += comparison.p_value <= 0.05
        any_pair += bool(comparison.differ.any())
    limit = stats.binom.ppf(0.999, runs, 0.05) / runs
    assert rejected / runs <= limit
    assert any_pair / runs <= limit


def test_repetitions_carry_a_warning_and_a_note():
    with pytest.warns(DegradedResultWarning, match="repetitions on one data set"):
        comparison = compare_ranks(DEMSAR, NAMES, blocks="repetitions")
    assert "not independent" in comparison.notes[0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_ranks(DEMSAR, ["a", "b"]), "names must name the 4 methods"),
        (lambda: compare_ranks(DEMSAR, ["a", "a", "b", "c"]), "each differently"),
        (lambda: compare_ranks(DEMSAR[:1], NAMES), "at least two of each"),
        (lambda: compare_ranks(DEMSAR, NAMES, post_hoc="tukey"), 'post_hoc must be "holm"'),
        (lambda: compare_ranks(DEMSAR, NAMES, blocks="folds"), "blocks must be"),
        (lambda: compare_ranks(DEMSAR * np.nan, NAMES), "values has .* NaN"),
        (lambda: average_shared_rank([]), "at least one comparison"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
