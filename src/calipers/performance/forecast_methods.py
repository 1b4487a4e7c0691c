"""The questions that every numerical forecast answers, passed on to its `LossForecast`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from calipers.arrays import RandomState
from calipers.performance.forecast import LossForecast
from calipers.performance.guarantee import Guarantee, Side
from calipers.results import Estimate

if TYPE_CHECKING:
    from calipers.performance.monitoring import LossMonitor


class LossAnswers:
    """Answers about the next loss, for estimators that hold a fitted `LossForecast`."""

    forecast_: LossForecast

    def _answers(self) -> LossForecast:
        """The forecast, or NotFittedError."""
        check_is_fitted(self, "forecast_")
        return self.forecast_

    def interval(self, alpha: Any = None) -> tuple[float, float]:
        """Two-sided interval (low, high) for the next loss, eq. 15-16; None: the constructor's alpha."""
        return self._answers().interval(alpha)

    def upper_bound(self, alpha: Any = None) -> float:
        """Bound that the next loss stays at or below, eq. 14; ``inf`` when there are too few losses."""
        return self._answers().upper_bound(alpha)

    def lower_bound(self, alpha: Any = None) -> float:
        """Bound that the next loss stays at or above: the one to read when the loss is a score."""
        return self._answers().lower_bound(alpha)

    def probability(self, at_most: float, *, confidence: float = 0.95) -> Estimate:
        """Probability that the next loss is at most a value; see `LossForecast.probability`."""
        return self._answers().probability(at_most, confidence=confidence)

    def guarantee(self, alpha: Any = None, *, side: Side = "two-sided") -> Guarantee:
        """The promise of the interval or bound at this level, in numbers and as a sentence."""
        return self._answers().guarantee(alpha, side=side)

    def shifted_interval(
        self, weights: Any, new_weights: Any, alpha: Any = None, *, side: Side = "two-sided"
    ) -> np.ndarray:
        """Intervals for new rows from a shifted distribution, (n_new, 2); see `shifted_intervals`.

        ``weights`` holds one likelihood ratio per calibration loss: take them at ``evaluation_rows_``.
        """
        return self._answers().shifted_interval(weights, new_weights, alpha, side=side)

    def monitor(
        self,
        new_losses: Any,
        *,
        false_alarm_rate: float = 0.01,
        alternative: str = "greater",
        random_state: RandomState = None,
    ) -> LossMonitor:
        """Test whether later losses are still like the calibration losses; see `LossMonitor`."""
        return self._answers().monitor(
            new_losses, false_alarm_rate=false_alarm_rate, alternative=alternative, random_state=random_state
        )

    @property
    def losses_(self) -> np.ndarray:
        """Calibration losses."""
        return self._answers().losses_

    @property
    def guarantee_(self) -> str:
        """What holds, in one sentence."""
        return self._answers().guarantee_
