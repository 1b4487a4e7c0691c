"""The guaranteed bound on the population calibration error beside Theorem 2 as printed."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task

DELTA = 0.05


def prepare(n: int) -> Inputs:
    rng = np.random.default_rng(0)
    f = rng.random(n)
    return {"f": f, "y": (rng.random(n) < f).astype(int)}


def width(inputs: Inputs) -> Answers:
    """How far the upper bound lies above the error."""
    from calipers.metrics import calibration_error

    found = calibration_error(inputs["y"], inputs["f"], confidence=1 - DELTA, random_state=0)
    n = len(inputs["y"])
    ours = float(found.high) - float(found)
    return {"massart_over_ours": massart(n) / ours, "rademacher_over_ours": exact_rademacher(n) / ours}


def massart(n: int) -> float:
    """Theorem 2 with Massart's lemma for the n + 1 choose 2 intervals: 2 (sqrt(2 ln N / n) + tail)."""
    sets = n * (n + 1) / 2 + 1
    return 2 * (math.sqrt(2 * math.log(sets) / n) + math.sqrt(2 * math.log(8 / DELTA) / n))


def exact_rademacher(n: int) -> float:
    """Theorem 2 with the complexity of half-lines in one sample, 1.2533 / sqrt(n)."""
    return 2 * (1.2533 / math.sqrt(n) + math.sqrt(2 * math.log(8 / DELTA) / n))


TASKS = [
    Task(
        name="width of the calibration certificate",
        sizes=(1_000, 10_000, 100_000),
        prepare=prepare,
        ours=width,
        bar="at least 10x tighter than Theorem 2 with Massart's lemma, 7x with the exact complexity",
    )
]
