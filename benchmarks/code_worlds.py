"""Faults that have a code of their own besides those of `benchmarks.promise_worlds`, and rows that show them.

Nothing but what the code needs is given: no features, groups or times.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import calipers
from calipers.auditing import Audit

ALPHA = 0.1
Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeFault:
    """A fault in words, how its rows are made, and at how many of them nearly all audits find it."""

    says: str
    make: Callable[[np.random.Generator, int], Arguments]
    rows: int


def too_wide(rng: np.random.Generator, n: int) -> Arguments:
    """Intervals that cover 95 % and promise 90 %."""
    half = stats.norm.ppf(0.975)
    return {"y_true": rng.normal(size=n), "intervals": np.tile([-half, half], (n, 1))}


def small_p_values(rng: np.random.Generator, n: int) -> Arguments:
    """P-values of true labels that are u^1.3 instead of uniform."""
    y, P = rng.integers(0, 3, n), rng.random((n, 3))
    P[np.arange(n), y] = rng.random(n) ** 1.3
    return {"y_true": y, "p_values": P}


def poor_class(rng: np.random.Generator, n: int) -> Arguments:
    """One of three true classes is covered with 70 %, with a threshold for every class."""
    y = rng.integers(0, 3, n)
    covered = rng.random(n) < np.where(y == 2, 0.7, 0.9)
    sets = rng.random((n, 3)) < 0.4
    sets[np.arange(n), y] = covered
    return {"y_true": y, "sets": sets, "label_conditional": True}


def infinite(rng: np.random.Generator, n: int) -> Arguments:
    """A tenth of the intervals is infinite."""
    half = np.where(rng.random(n) < 0.1, np.inf, stats.norm.ppf(0.944))
    return {"y_true": rng.normal(size=n), "intervals": np.column_stack([-half, half])}


def needlessly_large(rng: np.random.Generator, n: int) -> Arguments:
    """Widths that mean nothing: one width covers as often with intervals 37 % shorter."""
    half = stats.norm.ppf(0.95) * rng.choice([0.62, 2.2], n)
    return {"y_true": rng.normal(size=n), "intervals": np.column_stack([-half, half])}


def one_width(rng: np.random.Generator, n: int) -> Arguments:
    """Intervals of one width where the spread is 0.5 to 1.5, and known."""
    spread = 0.5 + rng.random(n)
    y = spread * rng.normal(size=n)
    return {"y_true": y, "intervals": np.tile([-1.75, 1.75], (n, 1)), "ease": -spread}


def hedging(rng: np.random.Generator, n: int) -> Arguments:
    """The top label of three is right 8 points more often than stated."""
    top = rng.uniform(0.4, 0.85, n)
    P = np.column_stack([top, 0.5 * (1 - top), 0.5 * (1 - top)])
    right = rng.random(n) < top + 0.08
    return {"y_true": np.where(right, 0, rng.integers(1, 3, n)), "probabilities": P}


def over_confident(rng: np.random.Generator, n: int) -> Arguments:
    """The top label of three is right 8 points less often than stated."""
    top = rng.uniform(0.5, 0.95, n)
    P = np.column_stack([top, 0.5 * (1 - top), 0.5 * (1 - top)])
    right = rng.random(n) < top - 0.08
    return {"y_true": np.where(right, 0, rng.integers(1, 3, n)), "probabilities": P}


def too_high(rng: np.random.Generator, n: int) -> Arguments:
    """Every probability of the second class is 5 points too high."""
    stated = rng.uniform(0.2, 0.8, n)
    return {"y_true": (rng.random(n) < stated - 0.05).astype(int), "probabilities": stated}


CODE_FAULTS: dict[str, CodeFault] = {
    "CAL102": CodeFault(says="95 % covered, 90 % promised", make=too_wide, rows=1000),
    "CAL103": CodeFault(says="p-values u^1.3: 9 points too many are small", make=small_p_values, rows=600),
    "CAL205": CodeFault(says="a class of a third of the rows covered 70 %", make=poor_class, rows=400),
    "CAL301": CodeFault(says="10 % of the intervals infinite", make=infinite, rows=600),
    "CAL302": CodeFault(says="one width saves 37 %", make=needlessly_large, rows=400),
    "CAL402": CodeFault(says="one width, spread from 0.5 to 1.5", make=one_width, rows=400),
    "CAL501": CodeFault(says="the top label right 8 points less often", make=over_confident, rows=1000),
    "CAL502": CodeFault(says="the top label right 8 points more often", make=hedging, rows=1000),
    "CAL509": CodeFault(says="every probability 5 points too high", make=too_high, rows=2500),
}


def audit_code(code: str, n: int, seed: int) -> Audit:
    """A data set with the fault of a code, audited."""
    rng = np.random.default_rng([19, *code.encode(), n, seed])
    return calipers.audit(**CODE_FAULTS[code].make(rng, n), alpha=ALPHA, random_state=seed)


def has_code(code: str, found: Audit) -> bool:
    """Whether the code is a fault, be it one that another explains."""
    return any(finding.code == code for finding in found.faults)
