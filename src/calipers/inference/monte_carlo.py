"""p-values from draws, with the error that comes from drawing."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from calipers.exceptions import InputError
from calipers.inference.alternatives import check_alternative
from calipers.inference.proportions import clopper_pearson
from calipers.inputs import check_confidence

_RELATIVE_TOLERANCE = 1e-10


@dataclass(frozen=True, slots=True)
class MonteCarloP:
    """A simulated p-value.

    Parameters
    ----------
    p_value : float
        (1 + extreme) / (draws + 1), twice that for the smaller side when two-sided. Valid as it is,
        whatever the number of draws: the Monte-Carlo error costs power, not validity.
    n_draws, n_extreme : int
        Draws, and those at least as far towards the alternative (on the side that decided).
    std_error : float
        Monte-Carlo standard error of the p-value.
    low, high : float
        Clopper-Pearson interval for the p-value that infinitely many draws would give.
    confidence : float
        Its level.
    """

    p_value: float
    n_draws: int
    n_extreme: int
    std_error: float
    low: float
    high: float
    confidence: float


def tie_tolerance(observed: float, draws: np.ndarray) -> float:
    """Half-width of a tie: 0 for integers, a rounding-sized share of the largest finite value otherwise.

    Two sums of the same numbers in different order differ in their last digits; counting such a pair as
    different turns a p-value of 0.61 into 0.07.
    """
    if draws.dtype.kind in "iub" and float(observed).is_integer():
        return 0.0
    finite = np.abs(draws[np.isfinite(draws)]).astype(float)
    scale = max(float(finite.max(initial=0.0)), abs(observed) if math.isfinite(observed) else 0.0)
    return _RELATIVE_TOLERANCE * scale


def monte_carlo_p(
    observed: float, draws: Any, *, alternative: str = "greater", confidence: float = 0.95
) -> MonteCarloP:
    """The p-value of a reading against draws of its null law.

    Parameters
    ----------
    observed : float
        The reading; NaN gives a NaN p-value.
    draws : array
        Readings simulated under the null. Integers are compared exactly, floats with `tie_tolerance`. A NaN
        draw counts as at least as far, which can only make the p-value larger.
    alternative : {"greater", "less", "two-sided"}
        Two-sided doubles the smaller side.
    confidence : float
        Level of the interval for the Monte-Carlo error.

    Returns
    -------
    MonteCarloP

    Notes
    -----
    With the reading exchangeable with its draws, P(p <= u) <= u exactly [1]_. Plain #extreme / draws can be
    0 and is not valid.

    References
    ----------
    .. [1] Davison and Hinkley (1997), Bootstrap Methods and their Application, section 4.2.

    Examples
    --------
    >>> from calipers.inference import monte_carlo_p
    >>> p = monte_carlo_p(3, [0, 1, 1, 2, 2, 3, 4, 1, 0])
    >>> p.p_value, p.n_extreme
    (0.3, 2)
    """
    check_alternative(alternative)
    draws = np.asarray(draws).ravel()
    if not draws.size:
        raise InputError("draws must hold at least one draw, got 0.")
    observed = float(observed)
    if math.isnan(observed):
        return MonteCarloP(
            math.nan, draws.size, 0, math.nan, math.nan, math.nan, check_confidence(confidence)
        )
    tolerance = tie_tolerance(observed, draws)
    # Written as "not on the near side", so that NaN counts as far.
    greater = int(np.sum(~(draws < observed - tolerance)))
    less = int(np.sum(~(draws > observed + tolerance)))
    extreme = {"greater": greater, "less": less, "two-sided": min(greater, less)}[alternative]
    return _with_error(extreme, draws.size, 2.0 if alternative == "two-sided" else 1.0, confidence)


def _with_error(extreme: int, n_draws: int, factor: float, confidence: float) -> MonteCarloP:
    p = (1 + extreme) / (n_draws + 1)
    low, high = clopper_pearson(extreme, n_draws, confidence=confidence)
    return MonteCarloP(
        p_value=min(1.0, factor * p),
        n_draws=n_draws,
        n_extreme=extreme,
        std_error=factor * math.sqrt(p * (1 - p) / n_draws),
        low=min(1.0, factor * float(low)),
        high=min(1.0, factor * float(high)),
        confidence=confidence,
    )
