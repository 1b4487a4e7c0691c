"""Delay and false alarms of monitors of a promise, side by side with MAPIE's RiskMonitoring and martingale.

Run with ``python -m benchmarks.monitors [--runs N] [--only risk|martingales]``; MAPIE must be installed.

RiskMonitoring and `PromiseMonitor` watch the same streams of misses against a known bound of 0.1: both at the
same nominal false-alarm rate, and both with about the same false alarms in fact (MAPIE's level raised as far
as it goes, ours lowered to meet it).

MAPIE computes its bound anew for all rows at every update. Here its boundary, which depends on the sum of
squared surprises only, is read from a table of its own values, and checked against the class on one stream.

MAPIE's martingales do not know a promise: they ask whether scores are exchangeable, from conformal p-values
against all scores before. They get the scores themselves (absolute errors, whose spread grows so that the
coverage of a fixed interval falls); the monitor of the promise sees only hits and misses, that of the losses
the scores and 500 rows of calibration. The jumper martingale is MAPIE's default; the plug-in martingale
estimates a density anew from all rows at every row, too slow for streams of this length.
"""

from __future__ import annotations

import argparse
from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import stats

from calipers.performance import LossMonitor, PromiseMonitor

RATE = 0.05
BOUND = 0.1
CHANGES = (0, 500, 5000)
COVERAGES = (0.85, 0.8, 0.7)
ROWS_AFTER = 12_000
ROWS_KEPT = 10_000
# MAPIE halves test_level for the reference, and again for one of two sides.
NOMINAL_LEVEL = 4 * RATE
HIGHEST_LEVEL = 0.999
# Our rate at which about as many kept streams alarm as at MAPIE's highest level.
RATE_EQUAL_IN_FACT = 0.015


class MapieBoundary:
    """First row at which MAPIE's lower bound of the running risk exceeds the threshold."""

    def __init__(self, test_level: float) -> None:
        from mapie.exchangeability_testing.bounds import GammaExponentialMixtureBound
        from scipy.interpolate import PchipInterpolator

        alpha = test_level / 2
        bound = GammaExponentialMixtureBound(v_opt=1, c=1, alpha_opt=alpha / 2)
        grid = np.concatenate([[0.0], np.geomspace(1e-3, 8000.0, 800)])
        self.table = PchipInterpolator(grid, [bound(v=float(v), alpha=alpha / 2) for v in grid])

    def lower_bounds(self, losses: np.ndarray) -> np.ndarray:
        """The running lower bound."""
        rows = np.arange(1, losses.size + 1)
        mean = np.cumsum(losses) / rows
        surprise = np.cumsum((losses - np.append(0.5, mean[:-1])) ** 2)
        return np.maximum.accumulate(np.maximum(mean - self.table(surprise) / rows, 0.0))

    def alarm_at(self, losses: np.ndarray) -> float:
        """The row of the alarm, or infinity."""
        crossed = self.lower_bounds(losses) > BOUND
        return float(np.argmax(crossed)) if crossed.any() else np.inf


def check_against_the_class(test_level: float) -> float:
    """Largest difference between the tabulated bound and the one MAPIE computes."""
    from mapie.exchangeability_testing import RiskMonitoring

    losses = (np.random.default_rng(0).random(400) < 0.2).astype(float)
    monitor = RiskMonitoring(risk="accuracy", test_level=test_level, threshold=BOUND, warn=False)
    truth, predicted = np.ones(losses.size), 1.0 - losses
    monitor.update(truth, predicted)
    found = np.asarray(monitor.online_risk_lower_bound_sequence_history)
    # "accuracy" is turned into a risk by MAPIE: 1 - accuracy, the loss itself.
    return float(np.abs(found - MapieBoundary(test_level).lower_bounds(losses)).max())


def ours(rate: float) -> Callable[[np.ndarray], float]:
    """A function from losses to the row of our alarm, or infinity."""

    def alarm_at(losses: np.ndarray) -> float:
        at = PromiseMonitor(alpha=BOUND, false_alarm_rate=rate).update(losses == 0.0).alarm_at_
        return np.inf if at is None else float(at)

    return alarm_at


JUMP = 0.01
SCORES_BEFORE = (500, 5000)
SCORE_ROWS_AFTER = 6000
CALIBRATION = 500
HALF_WIDTH = float(stats.norm.isf(BOUND / 2))


def online_p_values(scores: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Conformal p-value of every score against those before it, ties broken at random."""
    past: list[float] = []
    p = np.empty(scores.size)
    for t, (score, u) in enumerate(zip(scores.tolist(), rng.random(scores.size).tolist(), strict=True)):
        below = bisect_right(past, score)
        equal = below - bisect_left(past, score)
        p[t] = (t - below + u * (equal + 1)) / (t + 1)
        insort(past, score)
    return p


def jumper(p_values: np.ndarray) -> np.ndarray:
    """Capital of MAPIE's simple jumper martingale after every p-value."""
    low = middle = high = 1.0 / 3.0
    capital = []
    for p in p_values.tolist():
        share = JUMP / 3.0 * (low + middle + high)
        low = ((1.0 - JUMP) * low + share) * (1.5 - p)
        middle = (1.0 - JUMP) * middle + share
        high = ((1.0 - JUMP) * high + share) * (0.5 + p)
        capital.append(low + middle + high)
    return np.array(capital)


def check_the_jumper() -> float:
    """Largest difference to the martingale that MAPIE's class computes from the same p-values."""
    from mapie.exchangeability_testing import OnlineMartingaleTest

    p_values = np.random.default_rng(0).beta(0.8, 1.0, 500)
    test = OnlineMartingaleTest(jump_size=JUMP)
    theirs = [test.update_simple_jumper_martingale(float(p)) for p in p_values]
    return float(np.abs(np.log(theirs) - np.log(jumper(p_values))).max())


def score_monitors(rng: np.random.Generator) -> dict[str, Callable[[np.ndarray], float]]:
    """Functions from scores to the row of the alarm, or infinity."""

    def first(crossed: np.ndarray) -> float:
        return float(np.argmax(crossed)) if crossed.any() else np.inf

    def losses(scores: np.ndarray) -> float:
        monitor = LossMonitor(scores[:CALIBRATION], false_alarm_rate=RATE, random_state=rng)
        for begin in range(CALIBRATION, scores.size, 50):
            if monitor.update(scores[begin : begin + 50]).alarm_at_ is not None:
                break
        return np.inf if monitor.alarm_at_ is None else float(CALIBRATION + monitor.alarm_at_)

    return {
        "promise": lambda scores: ours(RATE)((scores > HALF_WIDTH).astype(float)),
        "losses": losses,
        "mapie jumper": lambda scores: first(jumper(online_p_values(scores, rng)) > 1.0 / RATE),
    }


def compare_martingales(runs: int) -> dict[str, Any]:
    """The same figures as `compare`, for monitors that see scores."""
    rng = np.random.default_rng(1)
    monitors = score_monitors(rng)
    kept = [np.abs(rng.normal(size=ROWS_KEPT)) for _ in range(2 * runs)]
    table: dict[str, Any] = {
        "false alarms": {name: np.mean([np.isfinite(at(x)) for x in kept]) for name, at in monitors.items()}
    }
    for coverage in COVERAGES:
        spread = HALF_WIDTH / stats.norm.isf((1.0 - coverage) / 2)
        for change in SCORES_BEFORE:
            parts = [
                (rng.normal(size=change), spread * rng.normal(size=SCORE_ROWS_AFTER)) for _ in range(runs)
            ]
            streams = [np.abs(np.concatenate(part)) for part in parts]
            delays = {name: np.array([at(x) - change for x in streams]) for name, at in monitors.items()}
            label = f"coverage 0.9 -> {coverage} after {change} rows, median delay"
            table[label] = {name: np.median(found[found >= 0]) for name, found in delays.items()}
    return table


def stream(rng: np.random.Generator, change: int, coverage: float) -> np.ndarray:
    """Losses of 0 and 1: the promise is kept until the change."""
    kept, broken = rng.random(change) >= 1.0 - BOUND, rng.random(ROWS_AFTER) >= coverage
    return np.concatenate([kept, broken]).astype(float)


def compare(runs: int) -> dict[str, Any]:
    """Median delays per planted drop, and false alarms within ten thousand kept rows."""
    nominal, highest = MapieBoundary(NOMINAL_LEVEL), MapieBoundary(HIGHEST_LEVEL)
    monitors = {
        "calipers": ours(RATE),
        "mapie": nominal.alarm_at,
        "calipers, equal in fact": ours(RATE_EQUAL_IN_FACT),
        "mapie, equal in fact": highest.alarm_at,
    }
    rng = np.random.default_rng(0)
    kept = [(rng.random(ROWS_KEPT) < BOUND).astype(float) for _ in range(4 * runs)]
    table: dict[str, Any] = {
        "false alarms": {name: np.mean([np.isfinite(at(x)) for x in kept]) for name, at in monitors.items()}
    }
    for coverage in COVERAGES:
        for change in CHANGES:
            streams = [stream(rng, change, coverage) for _ in range(runs)]
            delays = {name: [at(x) - change for x in streams] for name, at in monitors.items()}
            label = f"coverage 0.9 -> {coverage} after {change} rows, median delay"
            table[label] = {name: np.median([d for d in found if d >= 0]) for name, found in delays.items()}
    return table


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--only", choices=["risk", "martingales"])
    options = parser.parse_args()
    if options.only != "martingales":
        print(f"tabulated bound against MAPIE's own: {check_against_the_class(NOMINAL_LEVEL):.1e}")
        tell(compare(options.runs))
    if options.only != "risk":
        print(f"jumper martingale against MAPIE's own: {check_the_jumper():.1e}")
        tell(compare_martingales(options.runs))


def tell(table: dict[str, Any]) -> None:
    """Print one table."""
    for label, row in table.items():
        print(f"{label:52s}", *(f"{name} {value:.6g}" for name, value in row.items()), sep="  ", flush=True)


if __name__ == "__main__":
    main()
