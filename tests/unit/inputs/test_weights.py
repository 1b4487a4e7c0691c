"""What weights mean is decided by value, over all rows."""

import numpy as np
import pytest

from calipers.exceptions import InputError
from calipers.inputs import Weights
from calipers.inputs.weights import are_whole, repetitions
from calipers.metrics import coverage_gap


def test_whole_weights_are_repetitions_whatever_their_type():
    for given in ([2, 0, 3], [2.0, 0.0, 3.0], np.array([2, 0, 3], dtype=np.uint8)):
        weights = Weights.check(given, 3)
        assert weights.whole
        assert weights.repetitions.tolist() == [2, 0, 3]
        assert (weights.total, weights.effective) == (5.0, 5.0)
        assert weights.noise.tolist() == [2.0, 0.0, 3.0]


def test_one_weight_that_is_not_whole_decides_for_all():
    weights = Weights.check([2, 1, 0.5], 3)
    assert not weights.whole
    assert weights.repetitions is None
    assert weights.noise.tolist() == [4.0, 1.0, 0.25]
    assert weights.effective == pytest.approx(12.25 / 5.25)
    assert not weights.take(np.array([0, 1])).whole


def test_weights_of_one_size_have_the_effective_size_of_the_rows():
    assert Weights.check([0.3] * 7, 7).effective == pytest.approx(7.0)


def test_no_weights_stay_none_and_checked_ones_stay_as_they_are():
    assert Weights.check(None, 3) is None
    weights = Weights.check([1, 2, 3], 3)
    assert Weights.check(weights, 3) is weights
    assert are_whole(None)
    assert repetitions(np.array([1.5])) is None


@pytest.mark.parametrize(
    ("given", "match"), [([1, -1], "negative"), ([0, 0], "zero everywhere"), ([1], "one entry")]
)
def test_weights_are_checked(given, match):
    with pytest.raises(InputError, match=match):
        Weights.check(given, 2)


@pytest.mark.parametrize("weights", [np.full(3, 2**60), np.full(3, 1e100)])
def test_more_repeated_rows_than_can_be_counted_are_refused(weights: np.ndarray) -> None:
    groups = ["a", "b", "b"]
    with pytest.raises(
        InputError, match=r"sample_weight sums to .* at most 1e\+12 are counted\. Divide it by"
    ):
        coverage_gap([True, False, True], groups, alpha=0.1, sample_weight=weights)
    assert (
        coverage_gap([True, False, True], groups, alpha=0.1, sample_weight=weights / weights.max() / 3).value
        > 0
    )
