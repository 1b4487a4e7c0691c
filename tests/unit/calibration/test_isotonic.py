"""Isotonic calibration: pooled ties, exact blocks, both ways to fill the gaps."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from calipers.calibration import IsotonicCalibrator
from calipers.calibration.isotonic import pool_ties
from calipers.exceptions import InputError
from calipers.metrics import calibration_error


def scores(seed: int, n: int, digits: int | None) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    p = rng.random(n)
    y = (rng.random(n) < p**2).astype(int)
    return (p if digits is None else np.round(p, digits)), y


def test_blocks_by_hand() -> None:
    # Levels 0.1: 0/1, 0.3: 1/2 (tied), 0.6: 0/1, 0.8: 1/1, 0.9: 1/1. Level 0.3 (mean 1/2, weight 2) violates
    # 0.6 (mean 0): pooled to 1/3. The last two are equal and form one block.
    p, y = [0.9, 0.3, 0.1, 0.6, 0.3, 0.8], [1, 1, 0, 0, 0, 1]
    blocks = IsotonicCalibrator().fit(p, y).blocks_
    assert blocks.lower.tolist() == [0.1, 0.3, 0.8]
    assert blocks.upper.tolist() == [0.1, 0.6, 0.9]
    np.testing.assert_allclose(blocks.values, [0, 1 / 3, 1], rtol=1e-15)


def test_step_and_interpolation_differ_only_in_the_gaps() -> None:
    p, y = [0.1, 0.3, 0.3, 0.6, 0.8, 0.9], [0, 1, 0, 0, 1, 1]
    step = IsotonicCalibrator(prediction="step").fit(p, y)
    line = IsotonicCalibrator().fit(p, y)
    assert np.array_equal(step.predict(p), line.predict(p))
    # Gap from 0.6 (1/3) to 0.8 (1): 0.65 lies a quarter into it.
    assert step.predict([0.65])[0] == pytest.approx(1 / 3)
    assert line.predict([0.65])[0] == pytest.approx(1 / 3 + 0.25 * 2 / 3)
    assert step.predict([0.0, 1.0]).tolist() == line.predict([0.0, 1.0]).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("digits", [None, 3, 1], ids=["distinct", "three digits", "one digit"])
def test_the_fit_is_bit_for_bit_that_of_scikit_learn(seed: int, digits: int | None) -> None:
    p, y = scores(seed, 3000, digits)
    ours, theirs = IsotonicCalibrator().fit(p, y), IsotonicRegression(out_of_bounds="clip").fit(p, y)
    assert np.array_equal(ours.predict(p), theirs.predict(p))
    grid = np.linspace(0, 1, 1001)
    np.testing.assert_allclose(ours.predict(grid), theirs.predict(grid), rtol=0, atol=1e-15)


@pytest.mark.parametrize("digits", [None, 2])
def test_own_rows_have_no_calibration_error(seed: int, digits: int | None) -> None:
    p, y = scores(seed, 2000, digits)
    after = IsotonicCalibrator().fit_predict(p, y)
    assert float(calibration_error(y, after, random_state=0)) < 1e-15
    assert float(calibration_error(y, p, random_state=0)) > 0.1


def test_equal_scores_get_equal_values_whatever_their_order() -> None:
    # Slip 2 of the paper: Algorithm 1 over rows gives 0.3 two values when the positive row comes second.
    p, y = np.array([0.3, 0.3, 0.7]), np.array([0, 1, 1])
    assert IsotonicCalibrator().fit_predict(p, y).tolist() == [0.5, 0.5, 1.0]
    assert IsotonicCalibrator().fit_predict(p[::-1], y[::-1]).tolist() == [1.0, 0.5, 0.5]


def test_every_row_of_a_block_gets_the_same_float(seed: int) -> None:
    p, y = scores(seed, 5000, None)
    calibrator = IsotonicCalibrator().fit(p, y)
    assert set(calibrator.predict(p).tolist()) == set(calibrator.blocks_.values.tolist())


def test_weights_mean_repetition(seed: int) -> None:
    p, y = scores(seed, 300, 2)
    times = np.random.default_rng(seed).integers(0, 4, 300)
    weighted = IsotonicCalibrator().fit(p, y, sample_weight=times)
    repeated = IsotonicCalibrator().fit(np.repeat(p, times), np.repeat(y, times))
    np.testing.assert_allclose(weighted.predict(p), repeated.predict(p), rtol=1e-12, atol=1e-15)
    assert weighted.n_samples_ == repeated.n_samples_ == times.sum()


def test_packed_and_plain_pooling_agree(seed: int) -> None:
    p, y = scores(seed, 500, 2)
    packed = pool_ties(p, y.astype(bool))
    plain = pool_ties(p, y.astype(bool), np.ones(500))
    soft = pool_ties(p, y.astype(float))
    for one, other, third in zip(packed, plain, soft, strict=True):
        assert np.array_equal(one, other)
        assert np.array_equal(one, third)


def test_minus_zero_is_zero() -> None:
    assert pool_ties(np.array([0.0, -0.0]), np.array([True, False])).scores.tolist() == [0.0]


def test_soft_labels_are_averaged() -> None:
    assert IsotonicCalibrator().fit_predict([0.2, 0.4], [0.9, 0.3]).tolist() == pytest.approx([0.6, 0.6])


def test_one_class_gives_its_constant() -> None:
    assert IsotonicCalibrator().fit([0.2, 0.4], [1, 1]).predict([0.1, 0.9]).tolist() == [1.0, 1.0]


def test_scores_need_only_an_order(seed: int) -> None:
    p, y = scores(seed, 400, None)
    by_logit = IsotonicCalibrator(inputs="scores").fit(np.log(p / (1 - p)), y)
    assert np.array_equal(by_logit.predict(np.log(p / (1 - p))), IsotonicCalibrator().fit(p, y).predict(p))


@pytest.mark.parametrize("library", ["torch", "array_api_strict"])
@pytest.mark.parametrize("prediction", ["step", "interpolate"])
def test_other_array_libraries_stay_where_they_are(library: str, prediction: str) -> None:
    xp = pytest.importorskip(library)
    p, y = scores(1, 300, 2)
    ours = IsotonicCalibrator(prediction=prediction).fit(p, y)
    theirs = IsotonicCalibrator(prediction=prediction).fit(xp.asarray(p), xp.asarray(y))
    for one, other in zip(ours.blocks_, theirs.blocks_, strict=True):
        assert np.array_equal(one, other)
    for points in (p, np.linspace(0, 1, 77)):
        found = theirs.predict(xp.asarray(points))
        assert type(found) is type(xp.asarray(points))
        np.testing.assert_allclose(np.asarray(found), ours.predict(points), rtol=0, atol=1e-16)


def test_two_columns_and_named_labels() -> None:
    matrix = np.array([[0.8, 0.2], [0.4, 0.6]])
    assert IsotonicCalibrator().fit(matrix, ["no", "yes"]).predict(matrix).tolist() == [0.0, 1.0]
    reverse = IsotonicCalibrator(pos_label="no").fit([0.8, 0.4], ["no", "yes"])
    assert reverse.predict([0.8, 0.4]).tolist() == [1.0, 0.0]


def test_it_can_be_cloned_and_configured() -> None:
    copy = clone(IsotonicCalibrator(prediction="step", pos_label=3))
    assert copy.get_params() == {"prediction": "step", "inputs": "probabilities", "pos_label": 3}


@pytest.mark.parametrize(
    ("options", "p", "y", "message"),
    [
        ({}, [0.2, 1.5], [0, 1], r"probabilities must lie in \[0, 1\], 1 of 2 values"),
        ({}, [0.2, np.nan], [0, 1], "probabilities has 1 NaN of 2 values"),
        ({}, [0.2, 0.3], [0, 1, 1], "must have the same length"),
        ({}, [[0.2, 0.3, 0.5]], [0], "3 columns; IsotonicCalibrator calibrates one positive"),
        ({}, [0.2, 0.3, 0.4], [0, 1, 2], "y must hold two labels"),
        ({"prediction": "cubic"}, [0.2, 0.3], [0, 1], "prediction must be"),
        ({"inputs": "logits"}, [0.2, 0.3], [0, 1], "inputs must be"),
        ({"inputs": "scores"}, [0.2, np.inf], [0, 1], "scores has 1 infinite"),
    ],
)
def test_bad_input_is_named(options: dict, p: list, y: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        IsotonicCalibrator(**options).fit(p, y)
