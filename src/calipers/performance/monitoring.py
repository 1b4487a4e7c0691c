"""Are later losses still like those the forecast was made from? A conformal test martingale.

Each new loss gets a smoothed conformal p-value against everything seen before it (a growing bag). While
the losses are exchangeable these p-values are independent and uniform, so a bet against them cannot be
expected to win: its capital is a martingale that starts at 1, and by Ville's inequality it ever reaches
1/a with probability at most a. Capital that large is an alarm.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from typing import Any

import numpy as np

from calipers.arrays import RandomState, as_numpy, generator
from calipers.exceptions import InputError
from calipers.inputs import check_fraction, check_vector
from calipers.results import Curve, Estimate

# Bets e p^(e-1) on small p-values: 1 bets nothing, small exponents bet on extreme losses.
_EXPONENTS = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
# How often the bettor changes its mind: seldom suits a lasting change, often suits short ones.
_JUMP_RATES = np.array([0.001, 0.01, 0.1])
_ALTERNATIVES = ("greater", "less", "two-sided")
_RESOLUTION = 2.0**-53


class LossMonitor:
    """Watches a stream of losses for drift away from the calibration losses.

    Parameters
    ----------
    calibration_losses : array of shape (n,)
        Losses the forecast was made from.
    false_alarm_rate : float
        Probability that exchangeable losses ever raise the alarm, over any length of stream.
    alternative : {"greater", "less", "two-sided"}
        Losses that grow (default), shrink, or change either way.
    random_state : RandomState
        Draws that break ties.

    Attributes
    ----------
    alarm_ : bool
        Whether the capital has reached ``1 / false_alarm_rate``.
    alarm_at_ : int or None
        0-based position in the stream of the loss that raised it; it stays.
    p_values_ : ndarray
        Smoothed p-value of each new loss; small means larger than usual ("greater").
    log_capital_ : ndarray
        Natural logarithm of the capital after each new loss.

    Notes
    -----
    p_i = (#{bag > loss} + u (#{bag = loss} + 1)) / (N + 1), N the size of the bag before it, u uniform.
    The capital mixes bets e p^(e-1), e in {1, 0.8, ..., 0.2}; after each step a share of every bet's capital
    is spread over all bets (rates 0.001, 0.01, 0.1, equally mixed), so that a change late in the stream is
    met by a bettor that has not lost all. Mixtures of martingales are martingales: the false-alarm rate
    holds by Ville's inequality, whatever the loss. One search and one insertion per loss.

    References
    ----------
    .. [1] Vovk, Nouretdinov and Gammerman (2003), Testing exchangeability on-line.
    .. [2] Vovk (2021), Testing randomness online, Statistical Science 36.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance import LossMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = LossMonitor(rng.exponential(size=500), random_state=0)
    >>> monitor.update(rng.exponential(size=300)).alarm_
    False
    >>> monitor.update(2 * rng.exponential(size=300)).alarm_
    True
    """

    def __init__(
        self,
        calibration_losses: Any,
        *,
        false_alarm_rate: float = 0.01,
        alternative: str = "greater",
        random_state: RandomState = None,
    ) -> None:
        if alternative not in _ALTERNATIVES:
            raise InputError(f"alternative must be one of {', '.join(_ALTERNATIVES)}, got {alternative!r}.")
        meaning = "It is the probability of ever raising a false alarm"
        self.false_alarm_rate = check_fraction(false_alarm_rate, name="false_alarm_rate", meaning=meaning)
        self.alternative = alternative
        self._bag = sorted(_losses(calibration_losses, "calibration_losses").tolist())
        if not self._bag:
            raise InputError("calibration_losses must have at least one entry, got none.")
        self._generator = generator(random_state)
        self._capital = _Capital(alternative)
        self._p_values: list[float] = []
        self._log_capital: list[float] = []
        self.alarm_at_: int | None = None

    def update(self, new_losses: Any) -> LossMonitor:
        """Take in the next losses of the stream, in their order; the monitor itself is returned."""
        losses = _losses(new_losses, "new_losses")
        for loss, u in zip(losses.tolist(), self._generator.random(losses.size).tolist(), strict=True):
            self._step(loss, u)
        return self

    def _step(self, loss: float, u: float) -> None:
        at_most = bisect_right(self._bag, loss)
        ties = at_most - bisect_left(self._bag, loss)
        size = len(self._bag)
        p = (size - at_most + u * (ties + 1)) / (size + 1)
        insort(self._bag, loss)
        self._p_values.append(p)
        self._log_capital.append(self._capital.bet(p))
        if self.alarm_at_ is None and self._log_capital[-1] >= -np.log(self.false_alarm_rate):
            self.alarm_at_ = len(self._p_values) - 1

    @property
    def alarm_(self) -> bool:
        """Whether the alarm has been raised."""
        return self.alarm_at_ is not None

    @property
    def p_values_(self) -> np.ndarray:
        """Smoothed p-values of the stream so far."""
        return np.array(self._p_values)

    @property
    def log_capital_(self) -> np.ndarray:
        """Logarithm of the capital along the stream."""
        return np.array(self._log_capital)

    def result(self) -> Estimate:
        """Largest capital so far with its p-value, 1 / capital (anytime-valid by Ville's inequality)."""
        highest = max(self._log_capital, default=0.0)
        return Estimate(
            name="evidence against exchangeable losses",
            value=float(np.exp(min(highest, 700.0))),
            n=len(self._p_values),
            p_value=float(np.exp(-max(highest, 0.0))),
            alternative="greater",
            null_high=1.0 / self.false_alarm_rate,
            null_level=1.0 - self.false_alarm_rate,
            method="conformal test martingale, growing bag, smoothed p-values, Ville's inequality",
            details={
                "alarm_at": self.alarm_at_,
                "log_capital": highest,
                "null_subject": "exchangeable losses",
            },
        )

    def curve(self) -> Curve:
        """Logarithm (base 10) of the capital against the number of new losses, with the alarm level."""
        y = self.log_capital_ / np.log(10.0)
        level = np.full(y.size, -np.log10(self.false_alarm_rate))
        return Curve(
            name="capital of the bet against exchangeability",
            x=np.arange(1, y.size + 1),
            y=y,
            null_high=level,
            null_level=1.0 - self.false_alarm_rate,
            x_label="new losses",
            y_label="log10 of the capital",
            method="alarm at 1 / false_alarm_rate",
        )

    def __repr__(self) -> str:
        return f"LossMonitor({self})"

    def __str__(self) -> str:
        n = len(self._p_values)
        if self.alarm_at_ is None:
            return f"no alarm in {n} new losses (false-alarm rate {self.false_alarm_rate:g})"
        return (
            f"alarm at new loss {self.alarm_at_ + 1} of {n}: the losses have changed "
            f"(false-alarm rate {self.false_alarm_rate:g})"
        )


class _Capital:
    """Capital of the mixed bettor, kept as a logarithm and the shares of its bets."""

    def __init__(self, alternative: str) -> None:
        betting = _EXPONENTS[_EXPONENTS < 1.0]
        self._small = _EXPONENTS if alternative != "less" else np.array([1.0])
        self._large = betting if alternative != "greater" else betting[:0]
        n_bets = self._small.size + self._large.size
        self._shares = np.full((_JUMP_RATES.size, n_bets), 1.0 / (_JUMP_RATES.size * n_bets))
        self._log = 0.0

    def bet(self, p: float) -> float:
        """The capital's logarithm after the outcome p."""
        spread = self._shares.mean(axis=1, keepdims=True)
        rate = _JUMP_RATES[:, None]
        capital = ((1.0 - rate) * self._shares + rate * spread) * self._payoffs(p)
        total = capital.sum()
        self._shares = capital / total
        self._log += float(np.log(total))
        return self._log

    def _payoffs(self, p: float) -> np.ndarray:
        # A p-value below the resolution of its random draw pays as if it were there: never too much.
        p, q = max(p, _RESOLUTION), max(1.0 - p, _RESOLUTION)
        return np.concatenate(
            [self._small * p ** (self._small - 1.0), self._large * q ** (self._large - 1.0)]
        )


def _losses(values: Any, name: str) -> np.ndarray:
    return np.asarray(as_numpy(check_vector(values, name=name, finite=False)), dtype=np.float64)
