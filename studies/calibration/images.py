"""CIFAR: published probabilities of image models, top label and class by class."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from calipers.calibration import OneVsRestCalibrator, TemperatureCalibrator
from calipers.datasets import load_cifar10_human, load_cifar10_resnet50
from calipers.metrics import calibration_error, expected_calibration_error
from calipers.results import Estimate
from studies.calibration.settings import SEED, Settings


class ImageReading(NamedTuple):
    """One model (or repaired model) on the CIFAR-10 test images."""

    model: str
    accuracy: float
    top_label: Estimate
    classwise: Estimate
    ece: float


def read_images(data: Path | None, settings: Settings) -> Iterator[ImageReading]:
    """Every model as published; ResNet-50 also after two repairs on its 5000 validation images."""
    outputs = load_cifar10_human(data)
    models = dict(outputs.probabilities) | {"resnet50": softmax(outputs.logits["resnet50"], axis=1)}
    validation = load_cifar10_resnet50(data, part="val")
    stated, labels = softmax(validation.logits["resnet50"], axis=1), validation.labels
    models["resnet50, temperature"] = TemperatureCalibrator().fit(stated, labels).predict(models["resnet50"])
    one_vs_rest = OneVsRestCalibrator().fit(stated, labels)
    models["resnet50, isotonic per class"] = one_vs_rest.predict(models["resnet50"])
    rows = slice(None) if settings.decide else slice(0, 1000)
    y = outputs.labels[rows]
    for name, probabilities in models.items():
        # Published float32 rows sum to 1 within rounding.
        P = np.asarray(probabilities)[rows]
        P = P / P.sum(axis=1, keepdims=True)
        options: dict[str, Any] = {"n_models": len(models), "n_draws": settings.n_draws, "random_state": SEED}
        yield ImageReading(
            model=name,
            accuracy=float(np.mean(P.argmax(axis=1) == y)),
            top_label=calibration_error(y, P, **options),
            classwise=calibration_error(y, P, multiclass="max", **options),
            ece=float(expected_calibration_error(y, P, random_state=SEED)),
        )


HEADER = (
    "model",
    "accuracy",
    "top_label_c_emp",
    "top_label_high",
    "top_label_p",
    "largest_class_c_emp",
    "largest_class_high",
    "largest_class_p",
    "ece",
)


def row_of(reading: ImageReading) -> tuple[object, ...]:
    """One line of the table."""
    top, worst = reading.top_label, reading.classwise
    return (
        reading.model,
        reading.accuracy,
        top.value,
        top.high,
        top.p_value,
        worst.value,
        worst.high,
        worst.p_value,
        reading.ece,
    )
