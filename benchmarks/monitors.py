"""Delay and false alarms of monitors of a promise, side by side with MAPIE's RiskMonitoring.

Run with ``python -m benchmarks.monitors [--runs N]``; MAPIE must be installed. All watch the same streams of
misses against a known bound of 0.1: both at the same nominal false-alarm rate, and both with about the same
false alarms in fact (MAPIE's level raised as far as it goes, ours lowered to meet it).

MAPIE computes its bound anew for all rows at every update. Here its boundary, which depends on the sum of
squared surprises only, is read from a table of its own values, and checked against the class on one stream.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from calipers.performance import PromiseMonitor

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
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=200)
    runs = parser.parse_args().runs
    print(f"tabulated bound against MAPIE's own: {check_against_the_class(NOMINAL_LEVEL):.1e}")
    for label, row in compare(runs).items():
        print(f"{label:52s}", *(f"{name} {value:.6g}" for name, value in row.items()), sep="  ")


if __name__ == "__main__":
    main()
