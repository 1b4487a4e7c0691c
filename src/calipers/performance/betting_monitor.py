"""What the monitors of a promise share: the alarm, the course of the stream, the stored state."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from calipers.exceptions import InputError
from calipers.inputs import check_fraction
from calipers.performance.betting import Bets, Betting, Position
from calipers.performance.confidence_sequence import running_mean_radius
from calipers.results import Curve, Estimate

SIDES = ("under", "over", "both")
SCHEMA = 1
# Departures for which result() tells how many rows the alarm takes.
_DEPARTURES = (0.01, 0.02, 0.05, 0.1, 0.2)
# What mixing over bets and times costs at the alarm, in nats: measured on drops from the first row on.
_MIXING_COST = 1.7
_LARGEST_EXPONENT = 700.0


class BettingMonitor:
    """What the monitors share: the capital, the alarm, the course and the stored state.

    Subclasses call ``_start`` and turn their outcomes into numbers in [0, 1] for the bets.
    """

    _subject = "the promise"
    _quantity = "mean"

    def _start(
        self, rate: Any, side: str, centre: float | None, *, limits: tuple[float, float] | None = None
    ) -> None:
        """Begin to bet against a mean of ``centre``, or of its own per row when that is None.

        With ``limits`` the mean itself is uncertain: the bets are against its low and high limit, and half of
        the rate has been spent on those.
        """
        meaning = "It is the probability of ever raising a false alarm"
        self.false_alarm_rate = check_fraction(rate, name="false_alarm_rate", meaning=meaning)
        self.side = check_side(side)
        self._centre = centre
        self._doubt = 0.0 if limits is None else self.false_alarm_rate / 2
        promise = None if centre is None else np.array([[centre]])
        if limits is not None:
            promise = np.where(Bets.of(side).shifts < 0, *limits)[:, None]
        self._betting = Betting(side, -float(np.log(self.false_alarm_rate - self._doubt)), promise)

    @property
    def _now(self) -> Position:
        return self._betting.now

    @property
    def n_rows_(self) -> int:
        """Rows taken in so far: where to go on after the state was restored."""
        return self._now.rows

    @property
    def e_value_(self) -> float:
        """The capital now; under the promise it is expected to be at most 1."""
        return np.inf if self._now.impossible_at is not None else _exp(self._now.log_capital)

    @property
    def _highest(self) -> float:
        """Largest logarithm of the e-value so far."""
        return np.inf if self._now.impossible_at is not None else self._now.highest

    @property
    def alarm_(self) -> bool:
        """Whether the alarm has been raised; it stays."""
        return self.alarm_at_ is not None

    @property
    def alarm_at_(self) -> int | None:
        """0-based row that raised the alarm, or None."""
        return self._now.alarm_at

    def _checked(self, outcomes: Any, promised: Any = None) -> tuple[np.ndarray, np.ndarray | None]:
        """Outcomes as numbers in [0, 1], and the promise of each row where there is none in common."""
        raise NotImplementedError

    def _scale(self, values: np.ndarray) -> np.ndarray:
        """Numbers in [0, 1] in the units of the user."""
        return values

    def _course(self) -> np.ndarray:
        """Kept points and the present one: rows, log capital, sum, squared surprises."""
        now = self._now
        points = [point for point in self._betting.course.points if point[0] < now.rows]
        present = [[now.rows, now.log_capital, now.total, now.surprise]] if now.rows else []
        course = np.array(points + present, dtype=np.float64).reshape(-1, 4).T
        if now.impossible_at is not None:
            course[1, course[0] > now.impossible_at] = np.inf
        return course

    def curve(self, quantity: str = "evidence") -> Curve:
        """The course of the stream: the evidence against the promise, or the running mean with its band.

        Parameters
        ----------
        quantity : {"evidence", "mean"}
            "evidence": log10 of the e-value against the rows, with the alarm level. "mean": the running
            coverage (or mean loss) with a confidence sequence, a band that holds at all rows at once with
            probability 1 - false_alarm_rate.

        Returns
        -------
        Curve
            At most 1025 points: long streams are thinned. With "evidence", details hold the running mean
            and the ends of its band as well.
        """
        if quantity not in ("evidence", "mean"):
            raise InputError(f'quantity must be "evidence" or "mean", got {quantity!r}.')
        rows, log_capital, total, surprise = self._course()
        mean, low, high = self._running_mean(rows, total, surprise)
        if quantity == "mean":
            return Curve(
                name=f"running {self._quantity}",
                x=rows.astype(np.int64),
                y=mean,
                low=low,
                high=high,
                confidence=1.0 - self.false_alarm_rate,
                x_label="rows",
                y_label=self._quantity,
                method="confidence sequence for the running mean (empirical Bernstein), at all rows at once",
            )
        return Curve(
            name=f"evidence against {self._subject}",
            x=rows.astype(np.int64),
            y=log_capital / np.log(10.0),
            null_high=np.full(rows.size, self._betting.log_threshold / np.log(10.0)),
            null_level=1.0 - self.false_alarm_rate,
            x_label="rows",
            y_label="log10 of the e-value",
            method="e-process by betting; alarm where it reaches its level",
            details={"mean": mean, "mean_low": low, "mean_high": high},
        )

    def _running_mean(
        self, rows: np.ndarray, total: np.ndarray, surprise: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        mean = total / rows
        radius = running_mean_radius(surprise, rows, self.false_alarm_rate) if rows.size else rows
        ends = np.clip(mean - radius, 0.0, 1.0), np.clip(mean + radius, 0.0, 1.0)
        return self._scale(mean), self._scale(ends[0]), self._scale(ends[1])

    def result(self) -> Estimate:
        """Largest e-value so far, its p-value, the running mean, the time of change, what can alarm.

        Returns
        -------
        Estimate
            ``value`` is the largest e-value so far, ``p_value`` is valid at any time, ``details`` hold
            ``alarm_at``; ``changed_at``, the 0-based row at which the promise was most likely broken first
            (None before an alarm); ``mean``, ``mean_low``, ``mean_high``, the running mean with its
            confidence sequence; ``promised``; ``alarm_below`` and ``alarm_above``, the means beyond which
            the alarm comes with certainty in the end; ``rows_to_alarm``, roughly how many rows that takes
            for some drops from the first row on.
        """
        now, details = self._now, self._details()
        return Estimate(
            name=f"evidence against {self._subject}",
            value=_exp(self._highest),
            n=now.rows,
            p_value=min(1.0, self._doubt + _exp(-np.clip(self._highest, 0.0, _LARGEST_EXPONENT))),
            alternative="greater",
            null_high=_exp(self._betting.log_threshold),
            null_level=1.0 - self.false_alarm_rate,
            method="e-process by betting, Ville's inequality",
            reason=self._limits(details),
            details=details | {"null_subject": "a kept promise"},
        )

    def _details(self) -> dict[str, Any]:
        now = self._now
        change = self._betting.change() if self.alarm_ else None
        rows = np.array([max(now.rows, 1)], dtype=np.float64)
        ends = self._running_mean(rows, np.array([now.total]), np.array([now.surprise]))
        mean, low, high = (float(value[0]) if now.rows else None for value in ends)
        promised = self._centre
        if promised is None and now.rows:
            promised = now.promised / now.rows
        return {
            "alarm_at": now.alarm_at,
            "changed_at": None if change is None else change[0],
            "e_value": self.e_value_,
            "log_e_value": self._highest,
            "mean": mean,
            "mean_low": low,
            "mean_high": high,
            "promised": None if promised is None else self._told(promised),
        } | self._reach()

    def _told(self, value: float) -> float:
        return float(self._scale(np.array(value)))

    def _reach(self) -> dict[str, Any]:
        """What can alarm, where one promise holds for all rows."""
        promise = self._betting.promise
        if promise is None or self._centre is None:
            return {}
        bets = self._betting.bets.fractions(promise)[:, 0]
        against = np.broadcast_to(promise[:, 0], bets.shape)
        # Logarithm of each bet's factor at x = 0 and at x = 1.
        miss, hit = np.log1p(-bets * against), np.log1p(bets * (1.0 - against))
        # A bet grows in the long run while (1 - mean) miss + mean hit is positive.
        turning = miss / (miss - hit)
        reach: dict[str, Any] = {}
        if self.side != "over":
            reach["alarm_below"] = self._told(float(turning[bets < 0].max()))
        if self.side != "under":
            reach["alarm_above"] = self._told(float(turning[bets > 0].min()))
        return reach | {"rows_to_alarm": self._rows_to_alarm(miss, hit)}

    def _rows_to_alarm(self, miss: np.ndarray, hit: np.ndarray) -> dict[str, int]:
        """Roughly the rows until the alarm, for some means that hold from the first row on."""
        centre = self._centre or 0.0
        means = [centre - d for d in _DEPARTURES if self.side != "over"]
        means += [centre + d for d in _DEPARTURES if self.side != "under"]
        needed, table = self._betting.log_threshold + _MIXING_COST, {}
        for mean in means:
            growth = float(np.max((1.0 - mean) * miss + mean * hit))
            if 0.0 <= mean <= 1.0 and growth > 0.0:
                table[f"{self._told(mean):.6g}"] = int(np.ceil(needed / growth))
        return table

    def _limits(self, details: Mapping[str, Any]) -> str:
        """Which departures may never alarm, in words; empty when all can."""
        return ""

    def _options(self) -> dict[str, Any]:
        """The arguments that make this monitor anew."""
        return {"false_alarm_rate": self.false_alarm_rate, "side": self.side}

    def to_dict(self) -> dict[str, Any]:
        """The whole state as plain values that JSON can hold; bounded, however long the stream.

        Examples
        --------
        >>> import json
        >>> from calipers.performance import PromiseMonitor
        >>> stored = json.dumps(PromiseMonitor(alpha=0.1).update([True, False]).to_dict())
        >>> PromiseMonitor.from_dict(json.loads(stored)).update([True]).n_rows_
        3
        """
        return {
            "kind": type(self).__name__,
            "schema": SCHEMA,
            "options": self._options(),
            "state": self._betting.to_dict(),
        }

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """The monitor that `to_dict` stored; it goes on as if it had never stopped."""
        refuse_other_monitors(stored, cls.__name__)
        monitor = cls(**stored["options"])
        try:
            monitor._betting.restore(stored["state"])
        except (KeyError, TypeError, ValueError, IndexError) as error:
            raise InputError(f"the stored {cls.__name__} is damaged ({error}).") from None
        return monitor

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self})"

    def __str__(self) -> str:
        n, rate = self._now.rows, f"(false-alarm rate {self.false_alarm_rate:g})"
        if self.alarm_at_ is None:
            return f"no alarm in {n} rows {rate}"
        return f"alarm at row {self.alarm_at_} of {n}: {self._subject} is not kept {rate}"


def check_side(side: Any) -> str:
    """The side, if it is one."""
    if side not in SIDES:
        raise InputError(f"side must be one of {', '.join(SIDES)}, got {side!r}.")
    return str(side)


def _exp(exponent: float) -> float:
    """The exponential, infinite only where the exponent is, and 0 only where that is -infinity."""
    if np.isinf(exponent):
        return np.inf if exponent > 0 else 0.0
    return float(np.exp(np.clip(exponent, -_LARGEST_EXPONENT, _LARGEST_EXPONENT)))


def refuse_other_monitors(stored: Any, kind: str) -> None:
    """Refuse what is not the stored state of a monitor of this kind, or is that of another version."""
    if not isinstance(stored, Mapping) or stored.get("kind") != kind:
        raise InputError(f"stored must be what {kind}.to_dict returned.")
    if stored.get("schema") != SCHEMA:
        raise InputError(
            f"the stored monitor has schema {stored.get('schema')!r}, this version reads {SCHEMA}. "
            "Start the monitor again with this version of Calipers."
        )
