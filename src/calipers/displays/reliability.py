"""Stated against observed: the reliability diagram."""

from __future__ import annotations

from typing import Any

from calipers.arrays import RandomState
from calipers.displays.display import Display, picture_fields
from calipers.metrics import calibration_error, reliability_curve


class ReliabilityDisplay(Display):
    """A reliability diagram without bins: isotonic curve, consistency band, histogram of the probabilities.

    Make one with `from_predictions`.

    Parameters
    ----------
    curve : Curve
        What was measured, with its intervals and the band of the null law.
    picture : mapping
        How it is drawn: title, kind, reference and labels.
    estimate : Estimate or None
        The number that sums the curve up, with its test.

    Attributes
    ----------
    ax_, figure_ : matplotlib axes and figure
        Of the last drawing.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.displays import ReliabilityDisplay
    >>> rng = np.random.default_rng(0)
    >>> stated = rng.random(500)
    >>> shown = ReliabilityDisplay.from_predictions(rng.random(500) < stated**2, stated, random_state=0)
    >>> shown.ax_.get_xlabel(), shown.estimate.p_value < 0.01
    ('stated probability', True)
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        probabilities: Any,
        *,
        pos_label: Any = None,
        classes: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
        random_state: RandomState = None,
        name: str = "",
        ax: Any = None,
    ) -> ReliabilityDisplay:
        """Measure and draw.

        Parameters
        ----------
        y_true, probabilities, pos_label, classes, sample_weight, confidence, random_state
            As in `calipers.metrics.reliability_curve`.
        name : str
            Title of the drawing.
        ax : matplotlib axes, optional
            Where to draw; new ones otherwise.

        Returns
        -------
        ReliabilityDisplay
            ``estimate`` is the calibration error with its test.

        Notes
        -----
        The grey band is where the curve of a calibrated model would lie, point by point.
        """
        options = {"pos_label": pos_label, "classes": classes, "sample_weight": sample_weight}
        options |= {"confidence": confidence, "random_state": random_state}
        curve = reliability_curve(y_true, probabilities, **options)
        estimate = calibration_error(y_true, probabilities, **options)
        return cls(curve, picture_fields(name or "Stated against observed", "line"), estimate).plot(ax=ax)
