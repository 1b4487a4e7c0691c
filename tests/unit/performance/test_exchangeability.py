"""Calibration and test rows compared before a guarantee is printed."""

import numpy as np
import polars as pl
import pytest
from scipy import stats

from calipers.conformal import conformal_p_values
from calipers.exceptions import InputError
from calipers.performance import exchangeability_test


def test_the_distance_of_scores_is_the_largest_over_conformal_p_values():
    rng = np.random.default_rng(0)
    old, new = rng.normal(size=60), rng.normal(0.4, 1, 40)
    found = exchangeability_test(calibration_scores=old, test_scores=new)["scores"]
    shares = [abs(np.mean(old <= s) - np.mean(new <= s)) for s in np.concatenate([old, new])]
    assert found.value == pytest.approx(max(shares))
    assert found.p_value == pytest.approx(stats.ks_2samp(old, new, method="exact").pvalue)
    assert found.details["mean_p_value"] == pytest.approx(np.mean(conformal_p_values(old, new)))


def test_both_tests_share_the_level():
    rng = np.random.default_rng(1)
    X, Z = rng.normal(size=(300, 2)), rng.normal([0.6, 0.0], 1, size=(300, 2))
    table = exchangeability_test(X, Z, calibration_scores=X[:, 1], test_scores=Z[:, 1], random_state=0)
    assert list(table) == ["features", "scores"]
    features, scores = table["features"], table["scores"]
    assert features.details["shifted"]
    assert not scores.details["shifted"]
    assert "LikelihoodRatio" in features.details["remedy"]
    assert features.details["adjusted_p_value"] == pytest.approx(2 * features.p_value)
    assert scores.details["adjusted_p_value"] == pytest.approx(scores.p_value)


def test_a_change_of_spread_is_seen():
    rng = np.random.default_rng(2)
    found = exchangeability_test(rng.normal(size=(800, 1)), 1.5 * rng.normal(size=(800, 1)), random_state=0)
    assert found["features"].details["shifted"]


def test_categories_count():
    old = pl.DataFrame({"city": ["a", "b"] * 200})
    new = pl.DataFrame({"city": ["a", "a", "a", "b"] * 100})
    assert exchangeability_test(old, new, random_state=0)["features"].details["shifted"]


def test_refusals():
    with pytest.raises(InputError, match="or all four"):
        exchangeability_test(np.zeros((20, 1)))
    with pytest.raises(InputError, match="at least 8"):
        exchangeability_test(calibration_scores=np.arange(5), test_scores=np.arange(50))
