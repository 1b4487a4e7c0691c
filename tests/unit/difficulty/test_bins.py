import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from calipers.difficulty import DifficultyBins, uniform_mass_limits
from calipers.difficulty.bins import merge_small
from calipers.exceptions import InputError, SmallSampleWarning


def model(X):
    p = 1 / (1 + np.exp(-4 * np.asarray(X)[:, 0]))
    return np.column_stack([1 - p, p])


@pytest.fixture
def rows():
    return np.random.default_rng(0).normal(size=(400, 2))


def test_edges_are_the_order_statistics_of_the_equation(rows):
    bins = DifficultyBins(n_bins=7, random_state=0).fit(rows, model)
    ordered = np.sort(bins.ease(rows))
    ends = uniform_mass_limits(400, 7)[1:-1]
    np.testing.assert_array_equal(bins.edges_, ordered[ends - 1])
    assert bins.n_bins_ == 7
    # Calibration rows fall into bins as eq. 2 says: closed above.
    np.testing.assert_array_equal(np.bincount(bins.assign(rows)), np.diff(uniform_mass_limits(400, 7)))
    np.testing.assert_array_equal(bins.counts_, np.diff(uniform_mass_limits(400, 7)))


def test_assign_is_a_fixed_function_of_the_row(rows):
    bins = DifficultyBins(n_bins=10, random_state=0).fit(rows, model)
    new = np.random.default_rng(1).normal(size=(90, 2))
    together = bins.assign(new)
    assert [int(bins.assign(new[i : i + 1])[0]) for i in range(90)] == together.tolist()
    np.testing.assert_array_equal(bins.assign(new[::-1]), together[::-1])
    assert together.min() >= 0
    assert together.max() < 10


def test_harder_rows_are_in_lower_bins(rows):
    bins = DifficultyBins(n_bins=5, random_state=0).fit(rows, model)
    assigned = bins.assign(rows)
    confidence = np.abs(model(rows)[:, 1] - 0.5)
    means = [confidence[assigned == b].mean() for b in range(5)]
    assert means == sorted(means)


def test_values_outside_the_range_go_to_the_end_bins(rows):
    bins = DifficultyBins(n_bins=4, random_state=0).fit(rows, model)
    assert bins.bin_of([-1.0, bins.edges_[0], np.nextafter(bins.edges_[0], 1), 2.0]).tolist() == [0, 0, 1, 3]


def test_equal_ease_values_share_a_bin_and_a_note_says_so():
    X = np.r_[np.zeros((50, 1)), np.ones((50, 1)), 2 * np.ones((20, 1))]
    bins = DifficultyBins(n_bins=6, random_state=0).fit(
        X, lambda Z: np.column_stack([np.cos(Z), np.sin(Z)]) ** 2
    )
    assert bins.n_bins_ == 3
    assert sorted(bins.counts_.tolist()) == [20, 50, 50]
    assert bins.notes_[0] == "6 bins asked for, 3 can be told apart: equal ease values"
    constant = DifficultyBins(n_bins=6, random_state=0).fit(X, lambda Z: np.full((len(Z), 2), 0.5))
    assert constant.n_bins_ == 1
    assert set(constant.assign(X).tolist()) == {0}


def test_bins_too_small_for_a_finite_threshold_are_merged_with_a_note(rows):
    with pytest.warns(SmallSampleWarning, match="50 bins merged into 25, because every bin needs 9 rows"):
        bins = DifficultyBins(n_bins=50, random_state=0).fit(rows, model)
    assert bins.n_bins_ == 25
    assert bins.counts_.min() >= 9
    assert bins.counts_.sum() == 400
    assert "finite threshold" in bins.notes_[0]
    np.testing.assert_array_equal(np.bincount(bins.assign(rows)), bins.counts_)
    with pytest.warns(SmallSampleWarning, match="needs 52 rows"):
        pac = DifficultyBins(n_bins=10, min_rows=52, random_state=0).fit(rows, model)
    assert pac.counts_.min() >= 52


@pytest.mark.parametrize(
    ("counts", "needed", "expected"),
    [
        ([10, 10], 9, [10, 10]),
        ([5, 5, 9, 3], 9, [10, 12]),
        ([1, 1, 1], 9, [3]),
        ([9, 1, 1], 9, [11]),
        ([1, 1, 9], 9, [11]),
    ],
)
def test_merging_keeps_every_row_and_enough_in_each(counts, needed, expected):
    ends, merged = merge_small(np.array(counts), needed)
    assert merged.tolist() == expected
    assert ends[-1] == len(counts) - 1


def test_split_sets_rows_aside_and_says_what_holds(rows):
    split = DifficultyBins(n_bins=5, split=0.25, random_state=0).fit(rows, model)
    assert split.guarantee_ == "group-conditional"
    assert split.binning_rows_.size == 100
    assigned = split.assign_calibration(rows)
    np.testing.assert_array_equal(np.flatnonzero(assigned == -1), split.binning_rows_)
    np.testing.assert_array_equal(assigned[assigned >= 0], split.assign(rows)[assigned >= 0])


def test_edge_rows_take_no_part_in_thresholds(rows):
    bins = DifficultyBins(n_bins=5, random_state=0).fit(rows, model)
    assigned = bins.assign_calibration(rows)
    # The edges are the rows at positions 80, 160, 240, 320; all other rows keep their bin.
    np.testing.assert_array_equal(np.sort(bins.ease(rows)[assigned == -1]), bins.edges_)
    np.testing.assert_array_equal(assigned[assigned >= 0], bins.assign(rows)[assigned >= 0])
    assert np.bincount(assigned[assigned >= 0]).tolist() == [79, 79, 79, 79, 80]
    assert bins.guarantee_ == "group-conditional"
    assert bins.notes_ == ()


def test_ties_at_an_edge_take_the_guarantee_and_a_note_says_so():
    X = np.repeat(np.linspace(0, 1, 40), 3)[:, None]
    bins = DifficultyBins(n_bins=4, random_state=0).fit(
        X, lambda Z: np.column_stack([np.cos(Z), np.sin(Z)]) ** 2
    )
    assert bins.guarantee_ == "approximate"
    assert "split=" in bins.notes_[-1]
    assert (bins.assign_calibration(X) >= 0).all()
    split = DifficultyBins(n_bins=4, split=0.5, alpha=0.3, random_state=0).fit(
        X, lambda Z: np.column_stack([np.cos(Z), np.sin(Z)]) ** 2
    )
    assert split.guarantee_ == "group-conditional"


def test_bins_have_enough_rows_left_for_a_finite_threshold(rows):
    # Ten bins of nine rows: eight are left beside the edge row, one less than alpha = 0.1 needs.
    with pytest.warns(SmallSampleWarning, match="10 bins merged into 5, because every bin needs 9 rows"):
        bins = DifficultyBins(n_bins=10, random_state=0).fit(rows[:90], model)
    assigned = bins.assign_calibration(rows[:90])
    assert np.bincount(assigned[assigned >= 0]).tolist() == [17, 17, 17, 17, 18]


def test_estimator_habits(rows):
    bins = DifficultyBins(n_bins=3, scale=0.5, random_state=0)
    assert clone(bins).get_params() == bins.get_params()
    with pytest.raises(NotFittedError, match="not fitted"):
        bins.assign(rows)
    copy = pickle.loads(pickle.dumps(bins.fit(rows, model)))
    np.testing.assert_array_equal(copy.assign(rows), bins.assign(rows))


def test_regression_uses_the_spread_of_calibration_answers(rows):
    def predict(X):
        return 1000 * np.sin(3 * X[:, 0])

    bins = DifficultyBins(n_bins=4, unit="spread", random_state=0).fit(rows, predict)
    assert bins.unit_ == pytest.approx(predict(rows).std())
    assert bins.n_bins_ == 4
    # One row alone has no spread; the stored unit is used.
    assert bins.assign(rows[:1])[0] == bins.assign(rows)[0]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_bins": 0}, "n_bins must be a whole number"),
        ({"n_bins": 2, "split": 1.5}, "split must lie strictly between 0 and 1"),
        ({"n_bins": 2, "split": 0.0001}, "leaves no row for one of the two parts"),
        ({"n_bins": 2, "alpha": 10}, "alpha must lie strictly between 0 and 1"),
        ({"n_bins": 2, "min_rows": 0}, "min_rows must be a whole number"),
    ],
)
def test_bad_options_are_refused(options, message, rows):
    with pytest.raises(InputError, match=message):
        DifficultyBins(random_state=0, **options).fit(rows, model)
