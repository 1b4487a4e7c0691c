"""What changes probabilities, and the decisions they serve.

Calibrators take probabilities and outcomes, no model needed: ``fit(probabilities, y)``, then
``predict(probabilities)``.
"""

from calipers.calibration.decisions import bayes_decision, cost_curve, loss_ratio, loss_ratio_curve
from calipers.calibration.isotonic import IsotonicCalibrator
from calipers.calibration.links import LinkCalibrator

__all__ = [
    "IsotonicCalibrator",
    "LinkCalibrator",
    "bayes_decision",
    "cost_curve",
    "loss_ratio",
    "loss_ratio_curve",
]
