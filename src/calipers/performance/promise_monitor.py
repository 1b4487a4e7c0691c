"""Is the promise still kept? Coverage and stated probabilities, watched with an alarm that stays valid.

However often one looks, a kept promise ever raises the alarm with probability at most the false-alarm rate.
`RiskMonitor` does the same for the mean of a bounded loss; `LossMonitor` tests whether losses have changed,
without a promise about their size.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Self

import numpy as np

from calipers.arrays import as_numpy
from calipers.conformal.ranks import conformal_rank
from calipers.exceptions import InputError
from calipers.inference import CalibrationLaw
from calipers.inputs import check_alpha, check_count, check_covered, check_fraction, check_vector
from calipers.performance.betting_monitor import BettingMonitor, check_side


class PromiseMonitor(BettingMonitor):
    """Watches whether coverage, or stated probabilities, are still what was promised.

    Parameters
    ----------
    alpha : float or None
        Allowed miscoverage: the promise is coverage 1 - alpha. None: every update states its own
        ``promised``.
    false_alarm_rate : float
        Probability that a kept promise ever raises the alarm, over any length of stream.
    side : {"under", "over", "both"}
        Alarm when less is covered than promised (default), when more is, or either. With ``promised`` per
        row, "both" asks whether the probabilities are still calibrated: too low, too high, too extreme and
        not extreme enough.
    n_calibration : int or None
        Rows the predictor was conformalised on. Its coverage is then itself random, and the false-alarm
        rate is over calibration set and stream together.

    Attributes
    ----------
    e_value_ : float
        The evidence now: the capital of a bettor against the promise, which starts at 1.
    alarm_ : bool
        Whether it has reached ``1 / false_alarm_rate`` (twice that with ``n_calibration``).
    alarm_at_ : int or None
        0-based row that raised the alarm; it stays.
    n_rows_ : int
        Rows taken in.

    See Also
    --------
    RiskMonitor : The mean of a bounded loss against a bound.
    LossMonitor : Whether losses have changed; no promise needed.

    Notes
    -----
    Each of 14 bets per side multiplies its stake by the likelihood ratio of a coverage whose log-odds are
    shifted by 0.02 to 3.9; half of the capital is staked at the first row, the rest along the stream, so
    that a late change meets fresh stakes. While every row is covered with at least its promised
    probability given the past, the capital is a non-negative supermartingale and Ville's inequality bounds
    the false alarms, whenever and however often one looks [1]_.

    With ``n_calibration = n`` the coverage of a sound split-conformal predictor is a draw c of
    Beta(k, n+1-k), k its rank. Half of the rate is spent on c lying below its (rate / 2)-quantile, half on
    bets against that quantile (a quarter on each side with "both"). Drops that end above it may
    never alarm: `result` says where the line is.

    A row with promised probability 1 that is not covered is impossible while the promise is kept: it raises
    the alarm alone. Cost: 14 multiplications per row and side; memory does not grow with the stream. The
    result does not depend on how the rows were split into updates.

    References
    ----------
    .. [1] Ramdas, Grunwald, Vovk and Shafer (2023), Game-theoretic statistics and safe anytime-valid
       inference, Statistical Science 38.

    Examples
    --------
    >>> import numpy as np
    >>> from calipers.performance import PromiseMonitor
    >>> rng = np.random.default_rng(0)
    >>> monitor = PromiseMonitor(alpha=0.1)
    >>> monitor.update(rng.random(2000) < 0.9).alarm_
    False
    >>> monitor.update(rng.random(1000) < 0.8)
    PromiseMonitor(alarm at row 2362 of 3000: the promise is not kept (false-alarm rate 0.05))
    >>> monitor.result().details["changed_at"]
    1990
    """

    _quantity = "coverage"

    def __init__(
        self,
        *,
        alpha: float | None = None,
        false_alarm_rate: float = 0.05,
        side: str = "under",
        n_calibration: int | None = None,
    ) -> None:
        self.alpha = None if alpha is None else check_alpha(alpha)
        self.n_calibration = n_calibration
        limits = None
        if n_calibration is not None:
            self.n_calibration = check_count(n_calibration, name="n_calibration")
            limits = _coverage_limits(self.n_calibration, alpha, false_alarm_rate, side)
        self._start(
            false_alarm_rate, side, None if alpha is None else 1.0 - check_alpha(alpha), limits=limits
        )

    def update(self, covered: Any, promised: Any = None) -> Self:
        """Take in the next rows of the stream, in their order; the monitor itself is returned.

        Parameters
        ----------
        covered : array (n,)
            Whether each outcome lay in its set or interval, or whether the stated event happened.
        promised : array (n,), number or None
            Promised probability of each row, in [0, 1]; only without ``alpha``.
        """
        self._betting.update(*self._checked(covered, promised))
        return self

    def _checked(self, covered: Any, promised: Any = None) -> tuple[np.ndarray, np.ndarray | None]:
        z = np.asarray(as_numpy(check_covered(covered)), dtype=np.float64)
        return z, self._promised(promised, z.size)

    def _promised(self, promised: Any, n: int) -> np.ndarray | None:
        if promised is None:
            if self.alpha is None:
                raise InputError("the promise is missing: give alpha to the monitor or promised to update.")
            return None
        if self.n_calibration is not None:
            raise InputError("promised cannot be combined with n_calibration; leave one of them out.")
        if self.alpha is not None:
            raise InputError("promised cannot be combined with alpha; leave one of them out.")
        return _probabilities(np.full(n, promised) if np.ndim(promised) == 0 else promised, n)

    def _limits(self, details: Mapping[str, Any]) -> str:
        if self.n_calibration is None:
            return ""
        ends = [f"below {details['alarm_below']:.4g}"] if "alarm_below" in details else []
        ends += [f"above {details['alarm_above']:.4g}"] if "alarm_above" in details else []
        rows = f"with {self.n_calibration} calibration rows"
        return f"{rows} only coverage {' or '.join(ends)} is certain to alarm"

    def _options(self) -> dict[str, Any]:
        return super()._options() | {"alpha": self.alpha, "n_calibration": self.n_calibration}


def _coverage_limits(n_calibration: int, alpha: Any, rate: Any, side: str) -> tuple[float, float]:
    """Between these the coverage of a sound predictor lies, but for half of the false-alarm rate."""
    if alpha is None:
        raise InputError(
            "n_calibration needs alpha: it is about the coverage of one conformal predictor. "
            "Stated probabilities (promised) have no calibration rows to allow for."
        )
    meaning = "It is the probability of ever raising a false alarm"
    tail = check_fraction(rate, name="false_alarm_rate", meaning=meaning) / 2
    tail = tail / 2 if check_side(side) == "both" else tail
    law = CalibrationLaw(n_calibration, conformal_rank(n_calibration, alpha))
    return float(law.quantile(tail)), float(law.quantile(1.0 - tail))


def _probabilities(promised: Any, n: int) -> np.ndarray:
    values = np.asarray(as_numpy(check_vector(promised, name="promised")), dtype=np.float64)
    if values.size != n:
        raise InputError(f"covered and promised must have the same length, got {n} and {values.size}.")
    outside = (values < 0.0) | (values > 1.0)
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(f"promised must lie between 0 and 1, got {values[row]} at row {row}.")
    return values
