"""Coverage along time, with dates on the axis."""

from __future__ import annotations

from typing import Any

from calipers.arrays import RandomState
from calipers.displays.curves import coverage_over_time
from calipers.displays.display import Display, picture_fields
from calipers.metrics import change_over_time, is_covered


class TimeDisplay(Display):
    """Coverage of consecutive pieces of time, against the promise.

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
    >>> from calipers.displays import TimeDisplay
    >>> rng = np.random.default_rng(0)
    >>> day = np.datetime64("2024-01-01") + np.arange(400)
    >>> y = rng.normal(size=400) * np.where(day > np.datetime64("2024-10-01"), 2, 1)
    >>> intervals = np.tile([-1.7, 1.7], (400, 1))
    >>> shown = TimeDisplay.from_predictions(y, intervals, day, alpha=0.1, random_state=0)
    >>> shown.estimate.details["changed_at"]
    np.datetime64('2024-10-05')
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        prediction: Any,
        time: Any,
        *,
        alpha: float,
        n_pieces: int = 20,
        n_calibration: int | None = None,
        classes: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
        random_state: RandomState = None,
        name: str = "",
        ax: Any = None,
    ) -> TimeDisplay:
        """Measure and draw.

        Parameters
        ----------
        y_true, prediction, classes
            Outcomes, and sets (n, K) or intervals (n, 2), as in `calipers.metrics.is_covered`.
        time : array of shape (n,)
            Numbers, dates, or text such as 2024-05-31.
        alpha : float
            Allowed miscoverage.
        n_pieces : int
            Pieces of nearly equal mass; rows of one time stay together.
        n_calibration : int, optional
            Rows the predictor was conformalised on.
        sample_weight : array of shape (n,), optional
            Weights.
        confidence : float
            Level at which the intervals of all pieces hold together.
        random_state : int, Generator or None
            Source of the draws of the test.
        name : str
            Title of the drawing.
        ax : matplotlib axes, optional
            Where to draw; new ones otherwise.

        Returns
        -------
        TimeDisplay
            ``estimate`` is the change over time (`calipers.metrics.change_over_time`) with its test.
        """
        covered = is_covered(y_true, prediction, classes=classes)
        options: dict[str, Any] = {"alpha": alpha, "n_calibration": n_calibration}
        options["sample_weight"] = sample_weight
        curve = coverage_over_time(covered, time, n_pieces=n_pieces, confidence=confidence, **options)
        estimate = change_over_time(covered, time, random_state=random_state, **options)
        fields = picture_fields(name or "Coverage along time", "points", reference=1.0 - alpha)
        return cls(curve, fields, estimate).plot(ax=ax)
