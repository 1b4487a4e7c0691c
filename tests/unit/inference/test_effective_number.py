"""How many rows carry the noise, and how far an interval reaches for that."""

import numpy as np
import pytest
from scipy import stats

from calipers.inference import effective_quantile, effective_rows


def test_rows_of_one_influence_are_counted():
    g = np.r_[np.full(7, -2.0), np.zeros(100)]
    assert effective_rows(np.sum(g**2), np.sum(g**4)) == pytest.approx(7)
    # Normal influences: (n s^2)^2 / (3 n s^4) = n / 3.
    g = np.random.default_rng(0).normal(size=300_000)
    assert effective_rows(np.sum(g**2), np.sum(g**4)) == pytest.approx(100_000, rel=0.03)
    assert effective_rows(0.0, 0.0) == float("inf")


def test_the_quantile_is_that_of_student_with_a_third_of_the_rows_less_one():
    assert effective_quantile(0.9, 33) == pytest.approx(stats.t.ppf(0.95, 10))
    assert effective_quantile(0.95, float("inf")) == pytest.approx(1.959963984540054)
    assert (
        effective_quantile(0.95, 0.0) == effective_quantile(0.95, 4) == pytest.approx(stats.t.ppf(0.975, 1))
    )
