"""How many rows a check needs to find an effect of a given size: the question before the audit.

The exact power of a test of counts is a saw: it rises with the rows while the critical number of events stays
the same, and falls where that number grows by one. What is asked for is the number of rows from which on it
stays high, so the teeth are looked at, one critical number after the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import optimize, special

from calipers.arrays import RandomState, generator
from calipers.auditing.group_power import MOST_ROWS, GroupLossTest, GroupTest
from calipers.conformal.ranks import conformal_rank
from calipers.exceptions import InputError
from calipers.inference import CalibrationLaw, CoverageLaw, Moments, bounded_mean_p_value
from calipers.inputs import check_alpha, check_count, check_fraction
from calipers.inputs.option_checks import check_choice, check_number
from calipers.metrics.reliability.range_law import range_quantile

if TYPE_CHECKING:
    from calipers.auditing.slice_power import SliceTest

CHECKS = ("coverage", "group", "calibration", "quantile", "pit", "loss", "time", "difficulty", "features")
# Checks that look for a slice among others, or at a whole distribution: their power is simulated.
_SIMULATED = ("pit", "time", "difficulty", "features")
CORRECTIONS = ("holm", "sidak")
# Fewest and most critical numbers looked at above the last tooth that is known to fail.
_TEETH_BEYOND = 10, 20_000
# The integral over calibration sets: panels of equal probability, and nodes in each.
_PANELS, _NODES = 200, 6
# Brownian paths behind the power of the calibration test, and steps of each.
_PATHS, _STEPS = 4000, 256


def rows_needed(
    *,
    check: str = "coverage",
    effect: float,
    alpha: float = 0.1,
    share: float = 1.0,
    power: float = 0.8,
    level: float = 0.05,
    n_calibration: int | None = None,
    n_groups: int = 1,
    correction: str = "holm",
    n_tests: int = 1,
    spread: float | None = None,
    n_features: int = 4,
    random_state: RandomState = 0,
) -> int:
    """Rows needed to find an effect with a given probability.

    Parameters
    ----------
    check : {"coverage", "group", "calibration", "quantile", "pit", "loss", "time", "difficulty", "features"}
        "coverage": the exact one-sided test of coverage against the promise. "group": the test of an audit
        (CAL201) that one of ``n_groups`` groups is covered less often than all other rows, corrected for the
        number of groups. "calibration": the test of the calibration error. "quantile": the exact
        two-sided test of the share of outcomes up to a quantile (CAL507). "pit": the test that PIT values
        are uniform (CAL507). "loss": the test that a mean loss exceeds its bound, of all rows (CAL602) or
        of one of ``n_groups`` groups (CAL603). "time": coverage changes, and the last ``share`` of the rows
        has the effect (CAL204). "difficulty": the hardest ``share`` has it (CAL401). "features": a region
        with this ``share`` of the rows has it (CAL202).
    effect : float
        Promised minus true coverage (positive: under-covered; negative: over-covered). With "calibration",
        stated minus true probability; with "quantile" and "pit", stated minus true share; with "loss", the
        mean loss minus its bound, as a share of the range of a loss.
    alpha : float
        Allowed miscoverage. With "calibration", 1 minus a typical stated probability: it gives the noise,
        alpha (1 - alpha) per row. With "quantile", 1 minus its level; with "pit", 1 minus the level at which
        the shares differ by the effect; with "loss", the bound, as a share of the range of a loss.
    share : float
        Share of all rows that have the effect: the size of the group, or of the interval of stated
        probabilities. A group of all rows cannot be compared: with several groups 1 means 1 / n_groups.
    power : float
        Probability to find it.
    level : float
        Level of the test.
    n_calibration : int or None
        Rows the predictor was conformalised on. Its coverage is then c - effect with c ~ Beta(k, n+1-k), and
        the test allows for c.
    n_groups : int
        Groups tested together, intersections included; only with "group" and "loss".
    correction : {"holm", "sidak"}
        How the level is shared among groups: one of them has the effect, so Holm tests it at
        level / n_groups, Sidak at 1 - (1 - level)^(1 / n_groups).
    n_tests : int
        Tests of the audit. By default the plan is for one test alone; an audit corrects for all of its tests
        (Holm), so the only fault must be found at level / n_tests. How many they are stands in the findings
        of an audit of the same columns, ``details["tests_in_audit"]``.
    spread : float or None
        Standard deviation of the loss, as a share of its range; None: the largest that its mean allows.
    n_features : int
        Features among which a region is looked for.
    random_state : int, Generator or None
        Source of the draws of "time", "difficulty" and "features"; the same by default.

    Returns
    -------
    int
        The smallest number of rows from which on the power stays at least ``power``.

    Raises
    ------
    InputError
        When no number of rows gives this power; the power that can be had is told.

    Notes
    -----
    Coverage: under the null the misses are Binomial(n, alpha), or beta-binomial with ``n_calibration``; the
    power is the tail of the same law with coverage lowered by the effect. Exact but for the integral over
    calibration sets (1200 nodes). With a ``share`` below 1, the rows of the group divided by it: half of all
    samples hold fewer rows of the group than expected, and power is lost and gained in equal parts.
    Group: Fisher's test of the group's misses against those of all other rows, which keep the promise; the
    power is a sum over the misses of these. Luck of a calibration set moves all rows together, so with
    ``n_calibration`` every effect is found with enough rows.
    Calibration: the range of Brownian motion with a drift over a share of its time, on 4000 simulated paths
    (always the same); within about 2 % of the rows.
    Quantile: one of two one-sided exact tests at half the level, each as for coverage; a rejection on the
    wrong side finds nothing. Loss: exact for losses of two values, 0 and one above it, with this spread;
    other losses of the same spread may need other numbers of rows.
    Groups of losses: the mean of a group against the bound, or against the mean of all rows where that is
    larger; the other rows lie at the bound. PIT: all outcomes are shifted by the same part of their spread.
    Time, difficulty, features: the audit's test on simulated data whose other rows keep the promise; with
    ``n_calibration`` all rows share their luck, and no effect is out of reach. The noise of the draws has
    a standard deviation of about 4 % of the rows for time, 1 % for difficulty and PIT and 5 % for features.
    A region is the lowest ``share`` of one of ``n_features`` independent features; one that takes two
    features to describe needs more rows.

    Examples
    --------
    >>> from calipers.auditing import rows_needed
    >>> rows_needed(effect=0.05)
    299
    >>> rows_needed(effect=0.05, share=0.2)
    1495
    >>> rows_needed(effect=0.05, n_tests=20)
    593
    >>> rows_needed(effect=0.05, n_calibration=200)
    Traceback (most recent call last):
        ...
    calipers.exceptions.InputError: no number of rows finds effect=0.05 with power 0.8: with 200 calibration
    rows the power never exceeds 0.722. Use more calibration rows, a larger effect or less power.
    """
    check_choice(check, CHECKS, name="check")
    alpha = check_alpha(alpha)
    power = check_fraction(power, name="power", meaning="It is the probability to find the effect")
    level = check_fraction(level, name="level", meaning="It is the level of the test")
    level = _corrected(level / check_count(n_tests, name="n_tests"), check, n_groups, correction)
    share = _check_share(share)
    if spread is not None and check != "loss":
        raise InputError(f'spread belongs to check="loss", got check={check!r}.')
    if check == "loss":
        return _loss_rows(effect, alpha, share, power, level, spread, n_groups, n_calibration)
    change = _check_effect(effect, alpha)
    if check == "calibration":
        if n_calibration is not None:
            raise InputError("n_calibration is about coverage; stated probabilities have none. Leave it out.")
        return _calibration_rows(abs(change), alpha, share, power, level)
    if check == "group":
        return _group_test(change, alpha, level, share, n_groups, n_calibration).rows_for(power)
    if check in _SIMULATED:
        rows = None if n_calibration is None else _finite_calibration(n_calibration, alpha)
        features = check_count(n_features, name="n_features")
        test = _slice_test(check, (level, alpha, change, share, rows), features)
        return test.rows_for(power, generator(random_state))
    if check == "quantile":
        # A quantile below the middle is the mirror image of one above it.
        level, alpha, change = level / 2, min(alpha, 1 - alpha), change if alpha <= 0.5 else -change
    law = _coverage_test(change, alpha, level, n_calibration)
    return int(np.ceil(law.rows_for(power, float(effect)) / share - 1e-9))


def _corrected(level: float, check: str, n_groups: Any, correction: str) -> float:
    n = check_count(n_groups, name="n_groups")
    check_choice(correction, CORRECTIONS, name="correction")
    if n > 1 and check not in ("group", "loss"):
        raise InputError(f'n_groups belongs to check="group" and "loss", got {n} with check={check!r}.')
    return level / n if correction == "holm" else -float(np.expm1(np.log1p(-level) / n))


def _group_test(
    effect: float, alpha: float, level: float, share: float, n_groups: int, n_calibration: Any
) -> GroupTest:
    if effect < 0:
        raise InputError(
            f'check="group" looks for a group that is covered less often than the others, got '
            f"effect={effect:g}. Give a positive effect."
        )
    own = 1.0 / n_groups if share == 1 else share
    if own == 1:
        raise InputError(
            'check="group" compares a group with the other rows: '
            "give the share of the group, below 1, or n_groups."
        )
    rows = None if n_calibration is None else _finite_calibration(n_calibration, alpha)
    return GroupTest(level, alpha, effect, own, rows)


def _slice_test(
    check: str, test: tuple[float, float, float, float, int | None], n_features: int
) -> SliceTest:
    # The checks of an audit need what is imported with this file.
    from calipers.auditing.slice_power import DifficultyTest, FeatureTest, PitTest, TimeTest

    _, _, effect, share, n_calibration = test
    if check == "pit":
        if n_calibration is not None:
            raise InputError("n_calibration is about coverage; PIT values have none. Leave it out.")
        return PitTest(*test)
    if share == 1:
        raise InputError(f'check="{check}" compares rows with the others: give their share, below 1.')
    if check == "time":
        return TimeTest(*test)
    if effect < 0:
        raise InputError(
            f'check="{check}" looks for rows that are covered less often than the others, got '
            f"effect={effect:g}. Give a positive effect."
        )
    if check == "difficulty":
        return DifficultyTest(*test)
    features = FeatureTest(*test)
    features.n_features = n_features
    return features


def _loss_rows(
    effect: Any,
    bound: float,
    share: float,
    power: float,
    level: float,
    spread: Any,
    n_groups: int,
    n_calibration: Any,
) -> int:
    """Rows to find a mean loss above its bound; effect, bound and spread are shares of the range."""
    if n_calibration is not None:
        raise InputError("n_calibration is about coverage; a mean loss has none. Leave it out.")
    mean = bound + check_number(effect, name="effect")
    if not bound < mean <= 1.0 + 1e-12:
        raise InputError(
            f"effect must lie above 0 and be at most 1 - alpha = {1 - bound:g}, got {effect}. It is the "
            "mean loss minus its bound, as a share of the range of a loss."
        )
    widest = float(np.sqrt(max(mean * (1.0 - mean), 0.0)))
    own = widest if spread is None else check_number(spread, name="spread")
    if not 0 <= own <= widest + 1e-12:
        raise InputError(
            f"spread must lie between 0 and {widest:.3g}, the largest with a mean loss of {mean:g} "
            f"of the range, got {spread}."
        )
    if n_groups > 1:
        part = 1.0 / n_groups if share == 1 else share
        return GroupLossTest(level, bound, mean, mean + own**2 / mean, part).rows_for(power)
    law = _LossTest(level, bound, mean, mean + own**2 / mean)
    return int(np.ceil(law.rows_for(power, float(effect)) / share - 1e-9))


def _finite_calibration(n_calibration: Any, alpha: float) -> int:
    """Calibration rows, if they give a finite threshold."""
    n = check_count(n_calibration, name="n_calibration")
    if conformal_rank(n, alpha) <= n:
        return n
    raise InputError(
        f"with n_calibration={n} the threshold at alpha={alpha:g} is infinite and every row is covered: "
        "there is no coverage to test. Use more calibration rows."
    )


def _check_share(share: Any) -> float:
    if not 0 < check_number(share, name="share") <= 1:
        raise InputError(f"share must lie above 0 and be at most 1, got {share}. It is a share of all rows.")
    return float(share)


def _check_effect(effect: Any, alpha: float) -> float:
    """The effect, if the true coverage is possible and differs from the promised one."""
    true = 1.0 - alpha - check_number(effect, name="effect")
    if effect == 0 or not -1e-12 <= true <= 1.0 + 1e-12:
        raise InputError(
            f"effect must differ from 0 and lie between -alpha = {-alpha:g} and 1 - alpha = {1 - alpha:g}, "
            f"got {effect}. It is promised minus true coverage."
        )
    return float(effect)


class _CountTest(ABC):
    """A one-sided test that rejects when events (misses, or covered rows) are too many.

    Subclasses give the probability of at least m events in n rows without and with the effect.
    """

    def __init__(self, level: float, chance: float, effect: float) -> None:
        self.level = level
        # A tooth starts at a whole row, up to `chance` events off; from tooth to tooth the power gains about
        # effect / chance events. So many teeth further none can fail.
        fewest, most = _TEETH_BEYOND
        self.teeth_beyond = min(fewest + int(np.ceil(2 * chance**2 / effect)), most)
        self._ends: dict[int, int] = {0: -1}

    @abstractmethod
    def null_tail(self, n: int, m: int) -> float:
        """Probability of at least m events in n rows without the effect."""

    @abstractmethod
    def power(self, n: int, m: int) -> float:
        """Probability of at least m events in n rows with the effect."""

    def limit(self) -> float:
        """The power with more and more rows."""
        return 1.0

    def last_rows(self, m: int) -> int:
        """Most rows among which m events are still too many: the end of tooth m; -1 for m = 0."""
        if m not in self._ends:
            # Tooth m ends after tooth m - 1; with m - 1 rows there are never m events.
            low = max(self._ends.get(m - 1, -1) + 1, m - 1)
            step = 1 if m - 1 in self._ends else m
            while self.rejects(low + step, m):
                low, step = low + step, 2 * step
            high = low + step
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if self.rejects(middle, m) else (low, middle)
            self._ends[m] = low
        return self._ends[m]

    def rejects(self, n: int, m: int) -> bool:
        """Whether m events in n rows are too many."""
        return self.null_tail(n, m) <= self.level

    def fails(self, m: int, power: float) -> bool:
        """Whether the power at the start of tooth m, its lowest, is too low."""
        return self.power(self.last_rows(m - 1) + 1, m) < power

    def rows_for(self, power: float, effect: float) -> int:
        """The smallest number of rows from which on the power stays."""
        if self.limit() <= power:
            raise InputError(self.refusal(power, effect))
        low, high = 1, 2
        while self.fails(high, power):
            low, high = high, 2 * high
            if high > MOST_ROWS:
                raise InputError(
                    f"effect={effect:g} needs more than {MOST_ROWS:.0e} rows for power {power:g}; "
                    f"{self.refusal(power, effect)}"
                )
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.fails(middle, power) else (low, middle)
        beyond = (m for m in range(high + self.teeth_beyond, low, -1) if self.fails(m, power))
        return self._first_in(next(beyond, low), power)

    def _first_in(self, m: int, power: float) -> int:
        """The first rows of tooth m with enough power, or the row after the tooth."""
        low, high = self.last_rows(m - 1) + 1, self.last_rows(m) + 1
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (low, middle) if self.power(middle, m) >= power else (middle, high)
        return high

    def refusal(self, power: float, effect: float) -> str:
        """Why no number of rows is enough."""
        return f"no number of rows finds effect={effect:g} with power {power:g}."


class _BinomialTest(_CountTest):
    """Events are independent, with probability ``null`` and, with the effect, ``true``."""

    def __init__(self, level: float, null: float, true: float) -> None:
        super().__init__(level, true, true - null)
        self.null, self.true = null, min(true, 1.0)

    def null_tail(self, n: int, m: int) -> float:
        return 0.0 if m > n else float(special.betainc(m, n - m + 1.0, self.null))

    def power(self, n: int, m: int) -> float:
        return 0.0 if m > n else float(special.betainc(m, n - m + 1.0, self.true))


class _LossTest(_CountTest):
    """Events are losses of one size, all others 0; the test is that of a mean of rows of a known range."""

    def __init__(self, level: float, bound: float, mean: float, size: float) -> None:
        self.bound, self.size, self.true = bound, size, min(mean / size, 1.0)
        super().__init__(level, self.true, (mean - bound) / size)

    def null_tail(self, n: int, m: int) -> float:
        share = m / n if n else 0.0
        mean = share * self.size
        if m > n or mean <= self.bound:
            return 1.0 if m <= n else 0.0
        moments = Moments(float(n), mean, n * share * (1 - share) * self.size**2)
        return bounded_mean_p_value(moments, null=self.bound, low=0.0, high=1.0) / 2

    def power(self, n: int, m: int) -> float:
        return 0.0 if m > n else float(special.betainc(m, n - m + 1.0, self.true))


class _CalibratedTest(_CountTest):
    """Events share one unknown probability, which follows from the calibration set."""

    def __init__(self, level: float, effect: float, alpha: float, n_calibration: int) -> None:
        super().__init__(level, (alpha if effect > 0 else 1.0 - alpha) + abs(effect), abs(effect))
        self.alpha, self.n_calibration, self.under = alpha, n_calibration, effect > 0
        self.rank = conformal_rank(n_calibration, alpha)
        self.law = CalibrationLaw(n_calibration, self.rank)
        self.size = abs(effect)
        nodes, weights = np.polynomial.legendre.leggauss(_NODES)
        edges = np.linspace(0.0, 1.0, _PANELS + 1)
        chances = (edges[:-1, None] + (nodes + 1.0) / (2.0 * _PANELS)).ravel()
        coverage = np.asarray(self.law.quantile(chances))
        self.true = np.clip((1.0 - coverage if self.under else coverage) + self.size, 0.0, 1.0)
        self.weights = np.tile(weights / (2.0 * _PANELS), _PANELS)

    def null_tail(self, n: int, m: int) -> float:
        law = CoverageLaw(n, self.alpha, self.n_calibration, self.rank)
        return float(law.cdf(n - m) if self.under else law.sf(m - 1))

    def power(self, n: int, m: int) -> float:
        if m > n:
            return 0.0
        return float(self.weights @ special.betainc(m, n - m + 1.0, self.true))

    def limit(self) -> float:
        """The coverage itself is seen; the test then compares it with its law."""
        if self.under:
            return float(self.law.cdf(self.law.quantile(self.level) + self.size))
        return float(self.law.sf(self.law.quantile(1.0 - self.level) - self.size))

    def refusal(self, power: float, effect: float) -> str:
        return (
            f"no number of rows finds effect={effect:g} with power {power:g}: with {self.n_calibration} "
            f"calibration rows the power never exceeds {np.floor(self.limit() * 1000) / 1000:.3f}. "
            "Use more calibration rows, a larger effect or less power."
        )


def _coverage_test(effect: float, alpha: float, level: float, n_calibration: Any) -> _CountTest:
    if n_calibration is not None:
        return _CalibratedTest(level, effect, alpha, _finite_calibration(n_calibration, alpha))
    null = alpha if effect > 0 else 1.0 - alpha
    return _BinomialTest(level, null, null + abs(effect))


def _calibration_rows(effect: float, alpha: float, share: float, power: float, level: float) -> int:
    """Rows from the drift that a Brownian path needs: error sqrt(n / variance) with error = effect share."""
    drift = _needed_drift(share, power, level)
    return int(np.ceil(alpha * (1.0 - alpha) * (drift / (effect * share)) ** 2))


@lru_cache(maxsize=64)
def _needed_drift(share: float, power: float, level: float) -> float:
    """The rise over a share of the time with which Brownian motion has a range beyond the critical one."""
    critical = range_quantile(1.0 - level)
    excess = _range_of_paths(share)
    return float(
        optimize.brentq(lambda d: np.mean(excess(d) > critical) - power, 0.0, critical + 10.0, xtol=1e-3)
    )


def _range_of_paths(share: float) -> Callable[[float], np.ndarray]:
    """Ranges of simulated paths as a function of their rise in the middle ``share`` of the time."""
    rng, step = np.random.default_rng(0), 1.0 / _STEPS
    noise = rng.normal(scale=np.sqrt(step), size=(_PATHS, _STEPS))
    # Between two points of the grid a path is a bridge; its highest and lowest point have a closed law.
    up, down = (-2.0 * step * np.log(rng.random((_PATHS, _STEPS))) for _ in range(2))
    time = np.linspace(0.0, 1.0, _STEPS + 1)
    profile = np.diff(np.clip((time - (1.0 - share) / 2.0) / share, 0.0, 1.0))

    def ranges(rise: float) -> np.ndarray:
        path = np.cumsum(noise + rise * profile, axis=1)
        before = np.concatenate([np.zeros((_PATHS, 1)), path[:, :-1]], axis=1)
        middle, gap = (before + path) / 2.0, (path - before) ** 2
        high = (middle + np.sqrt(gap + up) / 2.0).max(axis=1)
        low = (middle - np.sqrt(gap + down) / 2.0).min(axis=1)
        return np.asarray(high - low)

    return ranges
