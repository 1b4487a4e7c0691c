"""More draws where the tail matters, and a bound beyond them."""

import numpy as np
import pytest

from calipers.inference.staged_law import StagedLaw, staged_law


def halves(observed):
    """P(X >= x) <= 2^-x."""
    return min(1.0, 2.0**-observed)


def asked(observed, *, bound=None, cost=1.0, value=0.0):
    """The stages that were asked for when every draw reads ``value``, and the law."""
    stages = []

    def draw(k):
        stages.append(k)
        return np.full(k, value)

    return stages, staged_law(draw, observed, cost=cost, bound=bound)


def test_a_reading_that_many_draws_reach_needs_no_more_of_them():
    stages, law = asked(0.0)
    assert stages == [999]
    assert law.p_value(0.0) == 1.0


def test_a_reading_that_no_draw_reaches_gets_all_stages():
    stages, law = asked(1.0)
    assert stages == [999, 9_000, 90_000]
    assert law.p_value(1.0) == law.resolution == 1e-5


def test_stages_that_cost_too_much_are_left_out():
    assert asked(1.0, cost=1e4)[0] == [999, 9_000]
    assert asked(1.0, cost=1e5)[0] == [999]


def test_no_more_draws_where_the_bound_says_more_than_they_could():
    stages, law = asked(20.0, bound=halves)
    assert stages == [999]
    assert law.p_value(20.0) == 2.0**-20


def test_the_bound_is_silent_where_a_draw_reached_the_reading():
    law = asked(5.0, bound=halves, value=5.0)[1]
    assert law.p_value(5.0) == 1.0


def test_without_draws_the_bound_decides():
    law = StagedLaw(None, halves)
    assert law.p_value(3.0) == 0.125
    assert law.point(0.75) == pytest.approx(2.0)
    assert law.resolution is None
