"""The sequential test: exact steps, Fisher's rule, its normal form for many rows."""

import numpy as np
import pytest
from scipy import stats

from calipers.metrics.conditional.cross_fit import Fold
from calipers.metrics.conditional.sequential import _normal_log_p, fisher, sequential_p_values


def test_fishers_rule_is_that_of_scipy_and_never_zero():
    p = np.array([0.04, 0.3, 0.2])
    assert fisher(np.log(p)) == pytest.approx(stats.combine_pvalues(p, method="fisher").pvalue)
    assert fisher(np.array([-1e5])) > 0


def test_a_step_is_the_permutation_test_of_its_pulls():
    # Five rows, one miss, at the row the model expects least of: P(the miss falls there) = 1/5.
    z = np.array([True, True, True, True, False])
    step = Fold(np.arange(5), np.array([0.95, 0.95, 0.92, 0.91, 0.6]))
    p = sequential_p_values((step,), z, np.full(5, 0.9), np.random.default_rng(0))
    assert p["both"] == pytest.approx(0.2, abs=0.04)
    assert p["under"] == pytest.approx(0.2, abs=0.04)
    # No row is expected to be covered less often: nothing to test on the other side of the target.
    above = Fold(np.arange(5), np.full(5, 0.95))
    assert sequential_p_values((above,), z, np.full(5, 0.9), np.random.default_rng(0))["under"] == 1.0


def test_many_rows_use_the_normal_form_of_the_same_law():
    rng = np.random.default_rng(1)
    g, z = rng.normal(size=6000), rng.random(6000) < 0.9
    c, n = z.mean(), 6000
    centred = g - g.mean()
    score = centred @ z / np.sqrt(c * (1 - c) * np.sum(centred**2))
    assert _normal_log_p(g, z.astype(float), np.full(n, 0.9)) == pytest.approx(stats.norm.logsf(score))
    step = Fold(np.arange(6000), np.clip(0.9 + 0.01 * g, 0, 1))
    p = sequential_p_values((step,), z, np.full(n, 0.9), rng)
    assert p["both"] == pytest.approx(stats.norm.sf(score), rel=0.01)
