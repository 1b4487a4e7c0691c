"""Coverage by group, with intervals and the band of a valid predictor."""

from __future__ import annotations

from typing import Any

import numpy as np

from calipers.displays.curves import coverage_by_group
from calipers.displays.display import Display, picture_fields
from calipers.metrics import coverage, is_covered


class CoverageDisplay(Display):
    """Coverage of every group, worst first, against the promise.

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
    >>> from calipers.displays import CoverageDisplay
    >>> y, group = np.random.default_rng(0).normal(size=300), np.repeat(["a", "b", "c"], 100)
    >>> shown = CoverageDisplay.from_predictions(y, np.tile([-1.6, 1.6], (300, 1)), group, alpha=0.1)
    >>> sorted(label.get_text() for label in shown.ax_.get_yticklabels())
    ['a', 'b', 'c']
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        prediction: Any,
        groups: Any = None,
        *,
        alpha: float,
        n_calibration: int | None = None,
        classes: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
        name: str = "",
        ax: Any = None,
    ) -> CoverageDisplay:
        """Measure and draw.

        Parameters
        ----------
        y_true, prediction, classes
            Outcomes, and sets (n, K) or intervals (n, 2), as in `calipers.metrics.is_covered`.
        groups : array of shape (n,), optional
            Labels of any kind; all rows are one group without them.
        alpha : float
            Allowed miscoverage.
        n_calibration : int, optional
            Rows the predictor was conformalised on; the band is then that of its law.
        sample_weight : array of shape (n,), optional
            Weights; importance weights have no band.
        confidence : float
            Level at which the intervals of all groups hold together.
        name : str
            Title of the drawing.
        ax : matplotlib axes, optional
            Where to draw; new ones otherwise.

        Returns
        -------
        CoverageDisplay
            ``estimate`` is the coverage of all rows with its test.
        """
        covered = is_covered(y_true, prediction, classes=classes)
        options: dict[str, Any] = {"alpha": alpha, "n_calibration": n_calibration}
        options |= {"sample_weight": sample_weight, "confidence": confidence}
        named = np.full(len(covered), "all rows") if groups is None else groups
        curve = coverage_by_group(covered, named, **options)
        estimate = coverage(y_true, prediction, classes=classes, **options)
        fields = picture_fields(
            name or "Coverage by group", "intervals", reference=1.0 - alpha,
            labels=tuple(curve.details["labels"]),
        )  # fmt: skip
        return cls(curve, fields, estimate).plot(ax=ax)
