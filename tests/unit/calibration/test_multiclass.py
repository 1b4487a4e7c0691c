"""Several classes: per class with normalisation, or one temperature."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import softmax

from calipers.calibration import (
    IsotonicCalibrator,
    LinkCalibrator,
    OneVsRestCalibrator,
    TemperatureCalibrator,
)
from calipers.exceptions import InputError
from calipers.metrics import calibration_error


def outputs(n: int, seed: int, heat: float = 2.5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(size=(n, 4))
    y = np.argmax(logits + rng.gumbel(size=(n, 4)), axis=1)
    return heat * logits, softmax(heat * logits, axis=1), y


def test_one_vs_rest_is_one_calibrator_per_column_divided_by_the_sum(seed: int) -> None:
    _, P, y = outputs(500, seed)
    columns = [IsotonicCalibrator().fit(P[:, k], y == k).predict(P[:, k]) for k in range(4)]
    raw = np.stack(columns, axis=1)
    np.testing.assert_allclose(
        OneVsRestCalibrator().fit(P, y).predict(P), raw / raw.sum(axis=1, keepdims=True)
    )


def test_both_repair_over_confidence() -> None:
    _, P, y = outputs(8000, 0)
    before = float(calibration_error(y[4000:], P[4000:], random_state=0))
    for calibrator in (OneVsRestCalibrator(LinkCalibrator("beta")), TemperatureCalibrator()):
        after = calibrator.fit(P[:4000], y[:4000]).predict(P[4000:])
        np.testing.assert_allclose(after.sum(axis=1), 1)
        assert float(calibration_error(y[4000:], after, random_state=0)) < before / 4


def test_the_temperature_maximises_the_likelihood(seed: int) -> None:
    logits, P, y = outputs(1000, seed)

    def loss(inverse: float) -> float:
        return -float(np.sum(np.log(softmax(inverse * logits, axis=1)[np.arange(1000), y])))

    best = minimize_scalar(loss, bounds=(0.01, 5), method="bounded", options={"xatol": 1e-10}).x
    assert TemperatureCalibrator().fit(P, y).temperature_ == pytest.approx(1 / best, rel=1e-5)
    by_logits = TemperatureCalibrator(inputs="logits").fit(logits, y)
    assert by_logits.temperature_ == pytest.approx(1 / best, rel=1e-5)


def test_the_temperature_keeps_the_top_label() -> None:
    _, P, y = outputs(300, 1)
    after = TemperatureCalibrator().fit(P, y).predict(P)
    assert np.array_equal(after.argmax(axis=1), P.argmax(axis=1))


def test_a_perfect_or_hopeless_model_has_a_bounded_temperature() -> None:
    P = np.array([[0.8, 0.1, 0.1], [0.1, 0.8, 0.1], [0.1, 0.1, 0.8]])
    assert TemperatureCalibrator().fit(P, [0, 1, 2]).temperature_ == pytest.approx(1e-3)
    assert TemperatureCalibrator().fit(P, [1, 2, 0]).temperature_ == pytest.approx(1e3)


def test_a_row_of_zeros_keeps_what_was_stated() -> None:
    # Classes 0 and 1 never occur, and class 2 does not where its column is small: nothing is left for row 0.
    P = np.array([[0.5, 0.5, 0.0], [0.6, 0.4, 0.0], [0.0, 0.1, 0.9], [0.0, 0.0, 1.0]])
    calibrator = OneVsRestCalibrator(classes=[0, 1, 2]).fit(P[2:], [2, 2])
    calibrator.calibrators_[2].blocks_.values[:] = 0.0
    np.testing.assert_allclose(calibrator.predict(P), P)


def test_named_classes_and_weights() -> None:
    _, P, y = outputs(200, 2)
    names = np.array(["a", "b", "c", "d"])
    times = np.random.default_rng(0).integers(0, 3, 200)
    for make in (OneVsRestCalibrator, TemperatureCalibrator):
        by_name = make().fit(P, names[y], sample_weight=times).predict(P)
        index = np.repeat(np.arange(200), times)
        repeated = make(classes=[0, 1, 2, 3]).fit(P[index], y[index]).predict(P)
        np.testing.assert_allclose(by_name, repeated, atol=1e-9)


def test_bad_input_is_named() -> None:
    with pytest.raises(InputError, match="each row of probabilities must sum to 1"):
        TemperatureCalibrator().fit([[0.5, 0.2, 0.1]], [0])
    with pytest.raises(InputError, match='inputs must be "probabilities" or "logits"'):
        TemperatureCalibrator(inputs="odds").fit([[0.5, 0.5]], [0])
    with pytest.raises(InputError, match=r"logits must be \(n, K\)"):
        TemperatureCalibrator(inputs="logits").fit([0.5, 0.5], [0, 1])
    _, P, y = outputs(50, 0)
    with pytest.raises(InputError, match="must have 4 columns as in fit, got 2"):
        OneVsRestCalibrator().fit(P, y).predict([[0.5, 0.5]])


@pytest.mark.parametrize("calibrator", [OneVsRestCalibrator(), TemperatureCalibrator()])
def test_columns_named_after_the_labels_in_another_order_are_refused(calibrator) -> None:
    frame = pl.DataFrame({"yes": [0.7, 0.2, 0.4], "no": [0.3, 0.8, 0.6]})
    with pytest.raises(
        InputError, match=r"columns are named yes, no but the labels of y in order are no, yes"
    ):
        calibrator.fit(frame, ["yes", "no", "no"])


@pytest.mark.parametrize("calibrator", [OneVsRestCalibrator(), TemperatureCalibrator()])
def test_columns_in_another_order_than_in_fit_are_refused(calibrator) -> None:
    frame = pl.DataFrame({"no": [0.3, 0.8, 0.6], "yes": [0.7, 0.2, 0.4]})
    calibrator.fit(frame, ["yes", "no", "no"])
    assert calibrator.predict(frame).shape == (3, 2)
    with pytest.raises(InputError, match=r"must be those of fit \(no, yes\), got yes, no\. Select them"):
        calibrator.predict(frame.select("yes", "no"))
