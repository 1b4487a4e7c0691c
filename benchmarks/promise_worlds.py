"""Kept and broken promises of every kind, for `benchmarks.promise_audits` and the tests.

A world is a promise and a fault: in some rows the promise is kept less often than stated, by `Fault.effect`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import calipers
from calipers.auditing import Audit

ALPHA = 0.1
LEVELS = (0.1, 0.5, 0.9)
Arguments = dict[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """What is known about the rows besides the promise; rows of one cluster share their groups."""

    X: np.ndarray
    sex: np.ndarray
    site: np.ndarray
    ease: np.ndarray
    time: np.ndarray

    def arguments(self, *, features: bool) -> Arguments:
        """As the audit takes them."""
        found = {"groups": {"sex": self.sex, "site": self.site}, "ease": self.ease, "time": self.time}
        return found | ({"X": self.X} if features else {})


def draw_slices(rng: np.random.Generator, n: int, rows_per_cluster: int = 1) -> Slices:
    """Slices that do not depend on each other."""
    each = -(-n // rows_per_cluster)
    sex, site = (np.repeat(rng.choice(list(labels), each), rows_per_cluster)[:n] for labels in ("fm", "abc"))
    return Slices(rng.normal(size=(n, 4)), sex, site, (rng.permutation(n) + 0.5) / n, np.arange(n))


def binary(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """The positive class of two happens less often than stated."""
    stated = 0.3 + 0.5 * stats.norm.cdf(s.X[:, 0] + 0.5 * s.X[:, 1])
    return {"y_true": (rng.random(len(gap)) < stated - gap).astype(int), "probabilities": stated}


def three_classes(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """The top label of three happens less often than stated, the others share what it lacks."""
    P = softmax(np.column_stack([s.X[:, 0], s.X[:, 1], 0 * s.X[:, 0]]))
    top = np.eye(3)[P.argmax(axis=1)]
    return {"y_true": drawn(rng, P - gap[:, None] * (top - (1 - top) / 2)), "probabilities": P}


def one_class(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """Class 2 of three happens less often than stated, the others share what it lacks."""
    P = 0.7 * softmax(np.column_stack([s.X[:, 0], s.X[:, 1], 0 * s.X[:, 0]])) + 0.1
    return {"y_true": drawn(rng, P - gap[:, None] * np.array([-0.5, -0.5, 1.0])), "probabilities": P}


def softmax(logits: np.ndarray) -> np.ndarray:
    """Probabilities of logits."""
    P = np.exp(logits)
    return np.asarray(P / P.sum(axis=1, keepdims=True))


def drawn(rng: np.random.Generator, P: np.ndarray) -> np.ndarray:
    """A label per row from its true probabilities."""
    true = np.clip(P, 0.0, 1.0)
    return np.asarray(
        (np.cumsum(true / true.sum(axis=1, keepdims=True), axis=1) < rng.random((len(P), 1))).sum(axis=1)
    )


def intervals(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """Intervals of the right shape, too narrow where they miss."""
    spread = 0.5 + np.abs(s.X[:, 0])
    half = stats.norm.ppf(1 - ALPHA / 2) * spread
    return {"y_true": spread * wide_noise(rng, gap, 1 - ALPHA), "intervals": np.column_stack([-half, half])}


def wide_noise(rng: np.random.Generator, gap: np.ndarray, coverage: float) -> np.ndarray:
    """Normal noise that the central interval of this coverage holds less often by the gap."""
    factor = stats.norm.ppf((1 + coverage) / 2) / stats.norm.ppf((1 + coverage - gap) / 2)
    return np.asarray(rng.normal(size=len(gap)) * factor)


def sets(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """Sets of two of four labels, without probabilities."""
    n = len(gap)
    held = rng.random((n, 4)).argsort(axis=1) < 2
    covered = rng.random(n) < 1 - ALPHA - gap
    return {"y_true": (rng.random((n, 4)) + (held == covered[:, None])).argmax(axis=1), "sets": held}


def p_values(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """P-values of three labels; those of true labels are small too often."""
    y, P = rng.integers(0, 3, len(gap)), rng.random((len(gap), 3)) ** 3
    P[np.arange(len(y)), y] = rng.random(len(y)) * ALPHA / (ALPHA + gap)
    return {"y_true": y, "p_values": P}


def quantiles(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """Three quantiles; the outer two are too close to the middle."""
    spread = 0.5 + np.abs(s.X[:, 0])
    y = spread * wide_noise(rng, 2 * gap, LEVELS[2] - LEVELS[0])
    return {"y_true": y, "quantiles": np.outer(spread, stats.norm.ppf(LEVELS)), "quantile_levels": LEVELS}


def pit(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """PIT values of distributions that are too narrow."""
    return {"pit": stats.norm.cdf(wide_noise(rng, 2 * gap, LEVELS[2] - LEVELS[0]))}


def promised(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """Outcomes found elsewhere, each with its own probability."""
    t = rng.uniform(0.5, 0.95, len(gap))
    return {"covered": rng.random(len(gap)) < t - gap, "promised": t}


def clusters(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """Outcomes found elsewhere in clusters of four dependent rows."""
    n = len(gap)
    own = np.arange(n) // 4
    shared = rng.normal(size=own[-1] + 1)[own]
    u = stats.norm.cdf(np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=n))
    return {"covered": u < 1 - ALPHA - gap, "cluster": own}


def loss(rng: np.random.Generator, s: Slices, gap: np.ndarray) -> Arguments:
    """Losses between 0 and 1 with a promised mean."""
    mean = ALPHA + gap
    return {"loss": rng.beta(3 * mean, 3 * (1 - mean)), "bound": ALPHA}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """A kind of promise, and the codes of its faults by slice, as far as it is asked about them."""

    make: Callable[[np.random.Generator, Slices, np.ndarray], Arguments]
    codes: dict[str, tuple[str, ...]]
    rows_per_cluster: int = 1


_COVERAGE = {
    "all rows": ("CAL101",), "group": ("CAL201",), "intersection": ("CAL201",),
    "region": ("CAL202", "CAL203"), "difficulty": ("CAL401",), "time": ("CAL204",),
}  # fmt: skip
_STATED = {
    "group": ("CAL504",), "intersection": ("CAL504",), "region": ("CAL505",), "difficulty": ("CAL508",),
    "time": ("CAL506",),
}  # fmt: skip
KINDS: dict[str, Kind] = {
    "probabilities": Kind(make=binary, codes=_STATED | {"all rows": ("CAL503",)}),
    "three classes": Kind(make=three_classes, codes=_STATED | {"all rows": ("CAL501",)}),
    "one class": Kind(make=one_class, codes={"class": ("CAL503",)}),
    "intervals": Kind(make=intervals, codes=_COVERAGE),
    "sets": Kind(make=sets, codes=_COVERAGE),
    "p-values": Kind(make=p_values, codes=_COVERAGE | {"all rows": ("CAL101", "CAL103")}),
    "quantiles": Kind(make=quantiles, codes=_STATED | {"all rows": ("CAL507",)}),
    "PIT": Kind(make=pit, codes=_STATED | {"all rows": ("CAL507",)}),
    "promised": Kind(make=promised, codes=_COVERAGE | {"all rows": ("CAL501",)}),
    "clusters": Kind(make=clusters, codes=_COVERAGE, rows_per_cluster=4),
    "loss": Kind(
        make=loss,
        codes={
            "all rows": ("CAL602",),
            "group": ("CAL603",),
            "intersection": ("CAL603",),
            "region": ("CAL605",),
            "difficulty": ("CAL606",),
            "time": ("CAL601", "CAL607"),
        },
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """Rows in which a promise is broken, by how much, and how the place is named."""

    rows: Callable[[Slices], np.ndarray]
    effect: float
    place: str
    features: bool = False


FAULTS: dict[str, Fault] = {
    "all rows": Fault(rows=lambda s: s.time >= 0, effect=0.08, place=""),
    "class": Fault(rows=lambda s: s.time >= 0, effect=0.08, place="class 2"),
    "group": Fault(rows=lambda s: s.site == "b", effect=0.2, place="site=b"),
    "intersection": Fault(
        rows=lambda s: (s.sex == "f") & (s.site == "b"), effect=0.25, place="sex=f and site=b"
    ),
    "region": Fault(rows=lambda s: s.X[:, 2] > 0.7, effect=0.2, place="x2 >", features=True),
    "difficulty": Fault(rows=lambda s: s.ease < 0.2, effect=0.2, place="hardest"),
    "time": Fault(rows=lambda s: s.time >= 0.6 * len(s.time), effect=0.15, place="since"),
}


# Rows at which a fault is found and placed in at least 95 % of audits: kind of promise -> fault -> rows.
_ROWS: dict[str, dict[str, int]] = {
    "probabilities": {
        "all rows": 1000, "group": 1500, "intersection": 1000,
        "region": 2500, "difficulty": 1500, "time": 2500,
    },
    "three classes": {
        "all rows": 1500, "group": 1500, "intersection": 1000,
        "region": 2500, "difficulty": 1000, "time": 1500,
    },
    "one class": {"class": 1000},
    "intervals": {
        "all rows": 600, "group": 600, "intersection": 600,
        "region": 1000, "difficulty": 1000, "time": 1000,
    },
    "sets": {
        "all rows": 600, "group": 400, "intersection": 600,
        "region": 2500, "difficulty": 1000, "time": 1000,
    },
    "p-values": {
        "all rows": 400, "group": 400, "intersection": 600,
        "region": 1500, "difficulty": 1000, "time": 1000,
    },
    "quantiles": {
        "all rows": 400, "group": 400, "intersection": 400,
        "region": 1000, "difficulty": 600, "time": 1000,
    },
    "PIT": {
        "all rows": 400, "group": 400, "intersection": 400,
        "region": 1500, "difficulty": 600, "time": 600,
    },
    "promised": {
        "all rows": 1000, "group": 1000, "intersection": 1000,
        "region": 1500, "difficulty": 1000, "time": 1500,
    },
    "clusters": {
        "all rows": 600, "group": 1500, "intersection": 1500,
        "region": 1500, "difficulty": 1000, "time": 1500,
    },
    "loss": {
        "all rows": 400, "group": 400, "intersection": 400, "region": 400, "difficulty": 400, "time": 400,
    },
}  # fmt: skip
ROWS = {(kind, fault): rows for kind, by_fault in _ROWS.items() for fault, rows in by_fault.items()}


def audit_world(kind: str, fault: str | None, n: int, seed: int, *, features: bool | None = None) -> Audit:
    """A data set of this kind, with a fault or without one, audited with groups, time and ease.

    Features are given without a fault, and where the fault is in a region of them.
    """
    rng = np.random.default_rng([17, *kind.encode(), n, seed])
    made, planted = KINDS[kind], None if fault is None else FAULTS[fault]
    s = draw_slices(rng, n, made.rows_per_cluster)
    gap = np.zeros(n) if planted is None else planted.effect * planted.rows(s)
    if features is None:
        features = planted is None or planted.features
    given = s.arguments(features=features) | made.make(rng, s, gap)
    return calipers.audit(**given, alpha=ALPHA, random_state=seed)


def is_found(kind: str, fault: str, found: Audit) -> bool:
    """Whether a right code is at least a warning and names the place."""
    wanted = KINDS[kind].codes[fault]
    return any(
        f.code in wanted and f.severity in {"warning", "issue"} and names_place(fault, f, found.rows)
        for f in found.faults
    )


def names_place(fault: str, finding: calipers.results.Finding, n: int) -> bool:
    """Whether a finding says where the fault is; a change must be dated to a tenth of the time."""
    words = f"{finding.where} {finding.sentence}"
    if fault != "time":
        return FAULTS[fault].place in words
    since = re.search(r"[Ss]ince (\d+)", words) or re.search(r"[Ff]rom (\d+)", words)
    return since is not None and abs(int(since[1]) - 0.6 * n) <= 0.1 * n
