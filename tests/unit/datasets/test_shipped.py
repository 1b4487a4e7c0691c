"""The two sets of the demo and the fault that can be planted in them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import sklearn.datasets  # noqa: F401 - its first import draws from the random module

from calipers.datasets import load_demo_classification, load_demo_regression, plant_fault
from calipers.exceptions import InputError


def test_digits_carry_readable_features():
    data = load_demo_classification()
    assert len(data) == 1797
    assert len(data.feature_names) == data.X.shape[1] == 67
    np.testing.assert_allclose(data.column("ink"), data.X[:, :64].mean(axis=1))
    image = data.X[5, :64].reshape(8, 8)
    assert data.column("rightness")[5] == pytest.approx(np.average(np.arange(8), weights=image.sum(axis=0)))
    assert data.column("lowness")[5] == pytest.approx(np.average(np.arange(8), weights=image.sum(axis=1)))
    assert np.bincount(data.y).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_diabetes_is_in_its_own_units():
    data = load_demo_regression()
    assert data.X.shape == (442, 10)
    assert (data.column("age").min(), data.column("age").max()) == (19, 79)
    assert data.y.mean() == pytest.approx(152.133, abs=1e-3)


def test_a_data_set_is_frozen_and_speaks():
    data = load_demo_regression()
    with pytest.raises(dataclasses.FrozenInstanceError, match="cannot assign to field"):
        data.name = "other"
    assert repr(data) == "Dataset 'diabetes': 442 rows, 10 features, target 'progression'"
    frame = data.to_frame()
    assert frame.columns == [*data.feature_names, "progression"]
    np.testing.assert_array_equal(frame["bmi"].to_numpy(), data.column("bmi"))
    with pytest.raises(InputError, match="diabetes has no feature 'height'; it has age, sex"):
        data.column("height")
    with pytest.raises(InputError, match="diabetes comes without a training and test part"):
        _ = data.train


def test_rows_takes_slices_indices_and_masks():
    data = load_demo_regression()
    mask = data.column("bmi") > 30
    np.testing.assert_array_equal(data.rows(mask).y, data.rows(np.flatnonzero(mask)).y)
    np.testing.assert_array_equal(data.rows(slice(3, 5)).X, data.X[3:5])


def test_planted_noise_stays_in_its_region():
    data = load_demo_regression()
    faulty = plant_fault(data, "bmi", above=30, strength=2.0, random_state=0)
    hit = data.column("bmi") > 30
    np.testing.assert_array_equal(faulty.y[~hit], data.y[~hit])
    shift = (faulty.y - data.y)[hit] / data.y.std()
    # hit.sum() normal draws of standard deviation 2
    assert abs(shift.std() - 2) < 5 * 2 / np.sqrt(2 * hit.sum())
    assert "bmi > 30" in faulty.description


def test_planted_labels_change_at_the_asked_rate():
    data = load_demo_classification()
    hit = data.column("ink") > 5.2
    faulty = plant_fault(data, "ink", above=5.2, strength=0.4, random_state=1)
    np.testing.assert_array_equal(faulty.y[~hit], data.y[~hit])
    changed = (faulty.y != data.y)[hit]
    assert abs(changed.mean() - 0.4) < 5 * np.sqrt(0.24 / hit.sum())
    assert (plant_fault(data, "ink", above=5.2, strength=1.0, random_state=1).y != data.y)[hit].all()


@pytest.mark.parametrize(
    ("above", "strength", "message"),
    [
        (99.0, 0.5, "above must leave rows with ink > above, got 99.0"),
        (5.0, 1.5, r"strength must lie in \[0, 1\] for class labels, got 1.5"),
    ],
)
def test_impossible_faults_are_refused(above, strength, message):
    with pytest.raises(InputError, match=message):
        plant_fault(load_demo_classification(), "ink", above=above, strength=strength)
