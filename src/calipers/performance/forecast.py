"""From observed losses to a statement about the next one: the object behind every numerical forecast."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from calipers.arrays import RandomState, as_numpy
from calipers.conformal.ranks import order_statistic
from calipers.exceptions import InputError
from calipers.inference import clopper_pearson
from calipers.inputs import check_alpha, check_confidence, check_vector
from calipers.inputs.option_checks import check_number
from calipers.performance.guarantee import Guarantee, Side, end_ranks, losses_needed
from calipers.performance.shift import shifted_intervals
from calipers.results import Curve, Estimate
from calipers.results.formatting import format_end

if TYPE_CHECKING:
    from calipers.performance.monitoring import LossMonitor

NEXT_LOSS = "the next loss"
_NO_LIMITS = (-float("inf"), float("inf"))
EXCHANGEABLE = "the condition is that the new loss is exchangeable with those observed"


class LossForecast:
    """Bounds for the next loss from n exchangeable losses, Holland (2020), eq. 14-16.

    Made by `forecast_losses`; `CandidatePerformance` and `AlgorithmPerformance` answer through one.
    Unpacks as ``low, high = forecast``.

    Parameters
    ----------
    losses : array of shape (n,)
        Exchangeable losses. Infinite ones are kept: a failed fit counts as one.
    alpha : float
        Allowed miscoverage.
    tight : bool
        Use the tighter lower rank where ``(n + 1) alpha / 2`` is an integer; see `conformal_interval`.
    target, condition : str
        What is forecast and what must hold, for the sentence of the guarantee.
    rows_per_loss : int
        Rows that one loss costs.
    train_size : int or None
        Training rows of the algorithm whose loss it is.
    n_rows : int or None
        Rows at hand, where these are more than one training sample.
    limits : tuple of two floats
        The least and the most a loss can be, where that is known: no end lies outside.

    Attributes
    ----------
    losses_ : ndarray
        The losses.
    low, high : float
        Ends of the two-sided interval at ``alpha``.
    guarantee_ : str
        What holds, in one sentence.

    Examples
    --------
    >>> from calipers.performance import LossForecast
    >>> low, high = LossForecast(range(1, 40), alpha=0.1)
    >>> low, high
    (1.0, 38.0)
    """

    def __init__(
        self,
        losses: Any,
        alpha: Any = 0.1,
        *,
        tight: bool = False,
        target: str = NEXT_LOSS,
        condition: str = EXCHANGEABLE,
        rows_per_loss: int = 1,
        train_size: int | None = None,
        n_rows: int | None = None,
        limits: tuple[float, float] = _NO_LIMITS,
    ) -> None:
        values = np.array(as_numpy(check_vector(losses, name="losses", finite=False)), dtype=np.float64)
        if values.size == 0:
            raise InputError("losses must have at least one entry, got none.")
        values.flags.writeable = False
        check_alpha(alpha)
        self.losses_, self.alpha, self.tight = values, alpha, tight
        self._target, self._condition = target, condition
        self._rows_per_loss, self._train_size, self._n_rows = rows_per_loss, train_size, n_rows
        self.limits = _check_limits(limits)

    def interval(self, alpha: Any = None) -> tuple[float, float]:
        """Closed two-sided interval for the next loss, eq. 15-16.

        Where n is too small an end is infinite, or the least or most a loss can be.
        """
        return self._ends(alpha, "two-sided")

    def upper_bound(self, alpha: Any = None) -> float:
        """One-sided bound that the next loss stays at or below, eq. 14; infinite when n is too small."""
        return self._ends(alpha, "upper")[1]

    def lower_bound(self, alpha: Any = None) -> float:
        """One-sided bound that the next loss stays at or above: the one to read for a score."""
        return self._ends(alpha, "lower")[0]

    def guarantee(self, alpha: Any = None, *, side: Side = "two-sided") -> Guarantee:
        """The promise of the interval or bound at this level, in numbers; its ``str`` is the sentence."""
        level = self.alpha if alpha is None else alpha
        low_rank, high_rank = end_ranks(self.losses_.size, level, side, tight=self.tight)
        low, high = self._ends(level, side)
        return Guarantee(
            target=self._target,
            condition=self._condition,
            n=self.losses_.size,
            alpha=check_alpha(level),
            low_rank=low_rank,
            high_rank=high_rank,
            low=low,
            high=high,
            needed=losses_needed(level, side, tight=self.tight),
            rows_per_loss=self._rows_per_loss,
            train_size=self._train_size,
            n_rows=self._n_rows,
            side=side,
        )

    def probability(self, at_most: float, *, confidence: float = 0.95) -> Estimate:
        """Probability that the next loss is at most a value; with ``zero_one`` and 0: that it is right.

        Parameters
        ----------
        at_most : float
            The value, included.
        confidence : float
            Level of the interval around the probability.

        Returns
        -------
        Estimate
            Share of the losses, exact (Clopper-Pearson) interval for independent losses. In details:
            ``forecast_low`` and ``forecast_high``, c/(n+1) and (c+1)/(n+1) with c the count: for
            exchangeable losses the next one is at most the value with a probability whose average
            lies between them; c/(n+1) is also the largest confidence 1 - alpha at which the upper bound
            still is at most the value.

        Notes
        -----
        Remark 7 of the paper: the boundary of the interval, not its width, answers for discrete losses.

        Examples
        --------
        >>> from calipers.performance import forecast_losses
        >>> print(forecast_losses([0] * 90 + [1] * 9).probability(at_most=0))
        P(next loss <= 0) 0.91 [0.83, 0.96] at 95 %
        """
        level = check_confidence(confidence)
        count, n = int(np.sum(self.losses_ <= at_most)), self.losses_.size
        low, high = clopper_pearson(count, n, confidence=level)
        return Estimate(
            name=f"P(next loss <= {at_most:g})",
            value=count / n,
            std_error=float(np.sqrt(count / n * (1 - count / n) / n)),
            low=float(low),
            high=float(high),
            confidence=level,
            n=n,
            method="share of independent losses, Clopper-Pearson",
            details={"count": count, "forecast_low": count / (n + 1), "forecast_high": (count + 1) / (n + 1)},
        )

    def distribution(self) -> Curve:
        """Forecast distribution of the next loss: P(loss <= x) lies between c/(n+1) and (c+1)/(n+1)."""
        ordered, n = np.sort(self.losses_), self.losses_.size
        at, count = np.unique(ordered, return_counts=True)
        below = np.cumsum(count)
        return Curve(
            name="forecast distribution of the next loss",
            x=at,
            y=below / n,
            low=below / (n + 1),
            high=(below + 1) / (n + 1),
            x_label="loss",
            y_label="probability of at most this loss",
            step=True,
            method="conformal predictive distribution",
        )

    def shifted_interval(
        self, weights: Any, new_weights: Any, alpha: Any = None, *, side: Side = "two-sided"
    ) -> np.ndarray:
        """Intervals for rows from a shifted distribution, (n_new, 2); see `shifted_intervals`.

        ``weights`` are the likelihood ratios (new over old) at the losses' rows, one per loss.
        """
        level = self.alpha if alpha is None else alpha
        return shifted_intervals(self.losses_, weights, new_weights, level, side=side)

    def monitor(
        self,
        new_losses: Any,
        *,
        false_alarm_rate: float = 0.01,
        alternative: str = "greater",
        random_state: RandomState = None,
    ) -> LossMonitor:
        """Test whether later losses are still exchangeable with these; see `LossMonitor`.

        Returns
        -------
        LossMonitor
            Updated with ``new_losses``; call its ``update`` with those that come later.
        """
        from calipers.performance.monitoring import LossMonitor

        monitor = LossMonitor(
            self.losses_,
            false_alarm_rate=false_alarm_rate,
            alternative=alternative,
            random_state=random_state,
        )
        return monitor.update(new_losses)

    @property
    def low(self) -> float:
        """Lower end at ``alpha``."""
        return self.interval()[0]

    @property
    def high(self) -> float:
        """Upper end at ``alpha``."""
        return self.interval()[1]

    @property
    def guarantee_(self) -> str:
        """What holds, for what, with which n: one sentence."""
        return str(self.guarantee())

    def to_estimate(self, name: str = "next loss") -> Estimate:
        """Median loss with the two-sided interval, as a row of a table; width and upper bound in details."""
        low, high = self.interval()
        return Estimate(
            name=name,
            value=float(np.median(self.losses_)),
            low=low,
            high=high,
            confidence=1.0 - check_alpha(self.alpha),
            n=self.losses_.size,
            method="conformal interval for the next loss; the value is the median",
            details={
                "upper_bound": self.upper_bound(),
                "width": high - low,
                "train_size": self._train_size,
                "guarantee": self.guarantee_,
            },
        )

    def __iter__(self) -> Iterator[float]:
        return iter(self.interval())

    def __str__(self) -> str:
        return self.guarantee_

    def __repr__(self) -> str:
        ends = self.interval()
        low, high = format_end(ends[0], side="low", digits=6), format_end(ends[1], side="high", digits=6)
        size = "" if self._train_size is None else f", train_size={self._train_size}"
        return f"LossForecast(n={self.losses_.size}, alpha={self.alpha}{size}, interval=({low}, {high}))"

    def _ends(self, alpha: Any, side: Side) -> tuple[float, float]:
        ranks = end_ranks(self.losses_.size, self.alpha if alpha is None else alpha, side, tight=self.tight)
        low, high = order_statistic(self.losses_, ranks[0]), order_statistic(self.losses_, ranks[1])
        return max(low, self.limits[0]), min(high, self.limits[1])


def forecast_losses(
    losses: Any, alpha: Any = 0.1, *, tight: bool = False, limits: tuple[float, float] = _NO_LIMITS
) -> LossForecast:
    """Forecast of the next loss from an array of observed ones alone.

    Parameters
    ----------
    losses : array of shape (n,)
        Losses of a fixed model on rows it was not trained on (Algorithm 1), or of an algorithm retrained
        on disjoint samples (Algorithm 2), in any order.
    alpha : float, Fraction or Decimal
        Allowed miscoverage. Good values leave room for both ends: n >= 2/alpha losses.
    tight : bool
        Use the tighter lower rank where ``(n + 1) alpha / 2`` is an integer.
    limits : tuple of two floats
        The least and the most a loss can be, such as (0, 1): no end lies outside. Infinite by default.

    Returns
    -------
    LossForecast
        With ``interval()``, ``upper_bound()``, ``probability(at_most)``, ``monitor(new_losses)`` and
        ``guarantee_``; unpacks as ``low, high``.

    Raises
    ------
    InputError
        When there are no losses, one is NaN, or alpha is not in (0, 1).

    Notes
    -----
    ``low`` is the loss of rank ceil((n+1) alpha/2) - 1, ``high`` that of rank ceil((n+1)(1 - alpha/2)).
    The next exchangeable loss lies in [low, high] with probability at least 1 - alpha, and exactly
    (high rank - low rank)/(n+1) when losses are distinct, at most 1 - alpha + 2/(n+1). One partition
    per end, O(n).

    References
    ----------
    .. [1] Holland (2020), Making learning more transparent using conformalized performance prediction,
       Theorem 5.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance import forecast_losses
    >>> losses = np.random.default_rng(0).exponential(size=199)
    >>> low, high = forecast_losses(losses, alpha=0.1)
    >>> print(f"[{low:.3f}, {high:.3f}]")
    [0.037, 3.185]
    """
    return LossForecast(losses, alpha, tight=tight, limits=limits)


def _check_limits(limits: Any) -> tuple[float, float]:
    """The smallest and the largest loss there can be."""
    if (
        not isinstance(limits, (tuple, list, np.ndarray))
        or len(np.atleast_1d(np.asarray(limits, object))) != 2
    ):
        raise InputError(f"limits must be the smallest and the largest loss, got {repr(limits)[:60]}.")
    low, high = (check_number(end, name="limits") for end in limits)
    if low > high:
        raise InputError(f"limits must be the smallest and the largest loss, got {low:g} and {high:g}.")
    return low, high
