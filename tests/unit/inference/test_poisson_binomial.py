"""The law of events with probabilities of their own, against binomial laws, brute force and exact convolution."""

from itertools import product

import numpy as np
import pytest
from scipy import stats

from calipers.inference import PoissonBinomialLaw
from calipers.inference import poisson_binomial as module


def brute_force(p):
    masses = np.zeros(len(p) + 1)
    for outcome in product([0, 1], repeat=len(p)):
        masses[sum(outcome)] += np.prod(np.where(outcome, p, 1 - np.asarray(p)))
    return masses


@pytest.mark.parametrize("p", [[0.3], [0.0, 1.0, 0.4], [0.2, 0.2, 0.9, 0.55, 0.01], [1.0, 1.0], [0.0]])
def test_small_laws_are_those_of_brute_force(p):
    law, masses = PoissonBinomialLaw.of(np.array(p)), brute_force(p)
    for k in range(-1, len(p) + 2):
        assert law.cdf(k) == pytest.approx(masses[: max(0, k + 1)].sum(), abs=1e-14)
        assert law.sf(k) == pytest.approx(masses[max(0, k + 1) :].sum(), abs=1e-14)
    assert law.mean == pytest.approx(sum(p))


def test_equal_probabilities_are_binomial_and_counts_are_repetition():
    law = PoissonBinomialLaw.of(np.array([0.3]), np.array([50]))
    for k in range(51):
        assert law.p_value(k, "less") == pytest.approx(stats.binom.cdf(k, 50, 0.3), rel=1e-10)
    low, high = law.interval(0.95)
    assert stats.binom.cdf(low - 1, 50, 0.3) <= 0.025 < stats.binom.cdf(low, 50, 0.3)
    assert stats.binom.sf(high, 50, 0.3) <= 0.025 < stats.binom.sf(high - 1, 50, 0.3)


def test_an_impossible_outcome_rejects_by_itself():
    law = PoissonBinomialLaw.of(np.array([1.0, 1.0, 0.5]))
    assert law.p_value(1, "less") == 0.0  # two were certain


@pytest.mark.parametrize("shape", [(9, 1), (1, 1), (0.5, 20)])
def test_the_saddlepoint_agrees_with_exact_tails(shape, monkeypatch):
    p = np.round(np.random.default_rng(3).beta(*shape, 1500), 3)
    exact = PoissonBinomialLaw.of(p)
    monkeypatch.setattr(module, "EXACT_ROWS", 0)
    approximate = PoissonBinomialLaw.of(p)
    sd = np.sqrt(exact.variance)
    for z in (-8, -4, -2, -1, -0.3, -0.01, 0.01, 0.5, 1, 3, 6):
        k = float(np.floor(exact.mean + z * sd))
        for tail in ("cdf", "sf"):
            truth = getattr(PoissonBinomialLaw(exact.probabilities, exact.counts, exact.certain), tail)
            monkeypatch.setattr(module, "EXACT_ROWS", 2000)
            expected = truth(k)
            monkeypatch.setattr(module, "EXACT_ROWS", 0)
            assert getattr(approximate, tail)(k) == pytest.approx(expected, rel=0.01, abs=1e-12), (z, tail)
