"""Normal intervals of correlations, and how many standard errors a confidence is worth."""

from __future__ import annotations

import math

import pytest
from scipy import stats

from calipers.inference import correlation_interval, normal_quantile


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.95, 0.999, 1 - 1e-9])
def test_the_normal_quantile_holds_the_stated_mass(confidence):
    assert 2 * stats.norm.sf(normal_quantile(confidence)) == pytest.approx(1 - confidence, rel=1e-6)


def test_a_correlation_interval_is_normal_on_fishers_scale():
    low, high = correlation_interval(-0.4, 0.1, 0.9)
    # Delta method: the error of atanh(r) is 0.1 / (1 - 0.16).
    half = 1.6448536 * 0.1 / 0.84
    assert [math.atanh(end) for end in (low, high)] == pytest.approx(
        [math.atanh(-0.4) - half, math.atanh(-0.4) + half]
    )
