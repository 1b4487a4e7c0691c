"""What changes probabilities, and the decisions they serve.

Calibrators take probabilities and outcomes, no model needed: ``fit(probabilities, y)``, then
``predict(probabilities)``. `CalibratedClassifier` wraps a model and a calibrator into one classifier;
`calibrate_if_needed` tests first and repairs only what is broken.
"""

from calipers.calibration.conditional import ConditionalCalibrator, calibrate_if_needed
from calipers.calibration.constrained import CalibrationConstrainedClassifier
from calipers.calibration.decisions import bayes_decision, cost_curve, loss_ratio, loss_ratio_curve
from calipers.calibration.isotonic import IsotonicCalibrator
from calipers.calibration.isotron import IsotronClassifier
from calipers.calibration.links import LinkCalibrator
from calipers.calibration.multiclass import OneVsRestCalibrator, TemperatureCalibrator
from calipers.calibration.venn_abers import VennAbersCalibrator
from calipers.calibration.wrapper import CalibratedClassifier

__all__ = [
    "CalibratedClassifier",
    "CalibrationConstrainedClassifier",
    "ConditionalCalibrator",
    "IsotonicCalibrator",
    "IsotronClassifier",
    "LinkCalibrator",
    "OneVsRestCalibrator",
    "TemperatureCalibrator",
    "VennAbersCalibrator",
    "bayes_decision",
    "calibrate_if_needed",
    "cost_curve",
    "loss_ratio",
    "loss_ratio_curve",
]


def __dir__() -> list[str]:
    return sorted(__all__)
