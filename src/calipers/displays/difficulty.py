"""Coverage or size along difficulty."""

from __future__ import annotations

from typing import Any

from calipers.arrays import RandomState
from calipers.displays.curves import coverage_along_ease, size_along_ease
from calipers.displays.display import Display, picture_fields
from calipers.exceptions import InputError
from calipers.inputs.predictions import check_prediction
from calipers.metrics import is_covered, t_cv

QUANTITIES = ("coverage", "size")


class DifficultyDisplay(Display):
    """How coverage, or the size of the predictions, runs along difficulty; hardest rows on the left.

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
    >>> from calipers.displays import DifficultyDisplay
    >>> rng = np.random.default_rng(0)
    >>> ease = rng.random(2000)
    >>> y = rng.normal(size=2000) * (2 - ease)
    >>> shown = DifficultyDisplay.from_predictions(y, np.tile([-2.5, 2.5], (2000, 1)), ease, alpha=0.1)
    >>> len(shown.curve), bool(shown.curve.y[0] < shown.curve.null_low[0])
    (10, True)
    """

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        prediction: Any,
        ease: Any,
        *,
        alpha: float,
        quantity: str = "coverage",
        n_bins: int = 10,
        n_calibration: int | None = None,
        classes: Any = None,
        sample_weight: Any = None,
        confidence: float = 0.95,
        random_state: RandomState = None,
        name: str = "",
        ax: Any = None,
    ) -> DifficultyDisplay:
        """Measure and draw.

        Parameters
        ----------
        y_true, prediction, classes
            Outcomes, and sets (n, K) or intervals (n, 2), as in `calipers.metrics.is_covered`.
        ease : array of shape (n,)
            Lower for harder rows.
        alpha : float
            Allowed miscoverage.
        quantity : {"coverage", "size"}
            What is drawn. The grey band of "size" is what sizes that ignore difficulty would read.
        n_bins : int
            Bins of equal mass.
        n_calibration : int, optional
            Rows the predictor was conformalised on.
        sample_weight : array of shape (n,), optional
            Weights.
        confidence : float
            Level of the intervals.
        random_state : int, Generator or None
            Source of the draws behind T-CV, where it needs some.
        name : str
            Title of the drawing.
        ax : matplotlib axes, optional
            Where to draw; new ones otherwise.

        Returns
        -------
        DifficultyDisplay
            ``estimate`` is T-CV for coverage, None for size.

        Raises
        ------
        InputError
            For another quantity, and as `calipers.metrics.t_cv`.
        """
        if quantity not in QUANTITIES:
            raise InputError(f"quantity must be one of {', '.join(QUANTITIES)}, got {quantity!r}.")
        common: dict[str, Any] = {
            "n_bins": n_bins, "sample_weight": sample_weight, "confidence": confidence
        }  # fmt: skip
        title = name or f"{quantity.capitalize()} along difficulty"
        if quantity == "size":
            curve = size_along_ease(_sizes(prediction), ease, **common)
            return cls(curve, picture_fields(title, "points")).plot(ax=ax)
        covered = is_covered(y_true, prediction, classes=classes)
        common |= {"alpha": alpha, "n_calibration": n_calibration}
        curve = coverage_along_ease(covered, ease, **common)
        estimate = t_cv(covered, ease, random_state=random_state, **common)
        return cls(curve, picture_fields(title, "points", reference=1.0 - alpha), estimate).plot(ax=ax)


def _sizes(prediction: Any) -> Any:
    kind, array = check_prediction(prediction)
    return array.sum(axis=1) if kind == "sets" else array[:, 1] - array[:, 0]
