"""Is the mean loss still within its bound? For losses of known range."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from calipers.arrays import as_numpy
from calipers.exceptions import InputError
from calipers.inputs import check_vector
from calipers.performance.betting_monitor import BettingMonitor


class RiskMonitor(BettingMonitor):
    """Watches whether the mean of a bounded loss is still at most its bound.

    Parameters
    ----------
    bound : float
        Promised mean loss, inside the range.
    loss_range : (float, float)
        Smallest and largest possible loss. A loss outside it is refused.
    false_alarm_rate : float
        Probability that a kept promise ever raises the alarm, over any length of stream.
    side : {"over", "under", "both"}
        Alarm when the mean loss exceeds the bound (default), falls below it, or either.

    Attributes
    ----------
    e_value_ : float
        The evidence now: the capital of a bettor against the promise, which starts at 1.
    alarm_ : bool
        Whether it has reached ``1 / false_alarm_rate``.
    alarm_at_ : int or None
        0-based row that raised the alarm; it stays.
    n_rows_ : int
        Rows taken in.

    See Also
    --------
    PromiseMonitor : Coverage or stated probabilities.
    LossMonitor : Whether losses have changed; no bound and no range needed.

    Notes
    -----
    The bets of `PromiseMonitor`, 1 + b (loss - bound) with the loss scaled to [0, 1]: a supermartingale while
    the mean of every loss given the past is at most the bound, whatever its law. Losses that vary little are
    bet on more boldly than their range alone would allow, because large bets are among the mixed ones.

    References
    ----------
    .. [1] Waudby-Smith and Ramdas (2024), Estimating means of bounded random variables by betting, Journal of
       the Royal Statistical Society B 86.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance import RiskMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = RiskMonitor(bound=0.2)
    >>> monitor.update(rng.beta(2, 8, 1000)).alarm_           # mean 0.2
    False
    >>> monitor.update(rng.beta(3, 7, 1000))                  # mean 0.3
    RiskMonitor(alarm at row 1041 of 2000: the bound is not kept (false-alarm rate 0.05))
    """

    _subject = "the bound"
    _quantity = "mean loss"

    def __init__(
        self,
        *,
        bound: float,
        loss_range: tuple[float, float] = (0.0, 1.0),
        false_alarm_rate: float = 0.05,
        side: str = "over",
    ) -> None:
        low, high = (float(end) for end in loss_range)
        if not (np.isfinite(low) and np.isfinite(high) and low < high):
            raise InputError(
                f"loss_range must be a finite (smallest, largest) pair, got {tuple(loss_range)}. Without a "
                "range no test of a mean is valid; use LossMonitor."
            )
        if not low <= bound <= high:
            raise InputError(f"bound must lie in loss_range [{low:g}, {high:g}], got {bound}.")
        self.bound, self.loss_range = float(bound), (low, high)
        self._start(false_alarm_rate, side, (self.bound - low) / (high - low))

    def update(self, losses: Any) -> Self:
        """Take in the next losses of the stream, in their order; the monitor itself is returned.

        Parameters
        ----------
        losses : array (n,)
            Losses inside ``loss_range``.
        """
        self._betting.update(*self._checked(losses))
        return self

    def _checked(self, losses: Any, promised: Any = None) -> tuple[np.ndarray, None]:
        if promised is not None:
            raise InputError("promised cannot be combined with bound; leave one of them out.")
        values = np.asarray(as_numpy(check_vector(losses, name="losses")), dtype=np.float64)
        low, high = self.loss_range
        outside = (values < low) | (values > high)
        if outside.any():
            row = int(np.argmax(outside))
            raise InputError(
                f"losses must lie in loss_range [{low:g}, {high:g}], got {values[row]} at row {row}."
            )
        return np.clip((values - low) / (high - low), 0.0, 1.0), None

    def _scale(self, values: np.ndarray) -> np.ndarray:
        low, high = self.loss_range
        return low + (high - low) * values

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"bound": self.bound, "loss_range": list(self.loss_range)}
