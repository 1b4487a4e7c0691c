"""Thirty small audits of all kinds, as documents: what every page and every picture must survive."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
import polars as pl

import calipers
from calipers.conformal import conformal_p_values, lac
from calipers.datasets import MixtureWorld

LONG = "a group whose name is so long that no picture has room for all of it"


def regression(seed: int, *, scale: float = 1.0, fault: float = 3.0, **options: Any) -> dict[str, Any]:
    """Intervals of one width, too narrow in a corner of two features, in any unit."""
    rng = np.random.default_rng(seed)
    n = 900
    X = pl.DataFrame({
        "latitude": rng.uniform(32, 42, n), "income_per_household": scale * rng.gamma(3, 1.3, n),
        "city": np.array(["Rome", "Bonn", "Oslo"])[rng.integers(0, 3, n)],
    })  # fmt: skip
    corner = (X["latitude"].to_numpy() > 38) & (X["income_per_household"].to_numpy() > 4 * scale)
    y = scale * rng.normal(size=n) * np.where(corner, fault, 1.0)
    intervals = scale * np.tile([-1.7, 1.7], (n, 1))
    groups = np.array(["north", LONG, "s"])[rng.integers(0, 3, n)]
    found = calipers.audit(y, intervals=intervals, X=X, groups=groups, random_state=seed, **options)
    return found.to_dict()


def timed(seed: int, *, unit: str) -> dict[str, Any]:
    """Intervals that get worse with time, over minutes or years."""
    rng = np.random.default_rng(seed)
    n = 800
    moments = np.datetime64("2021-03-01T00:00:00") + np.arange(n).astype(f"timedelta64[{unit}]")
    y = rng.normal(size=n) * np.where(np.arange(n) > 500, 2.5, 1.0)
    ease = -np.abs(y) + rng.normal(size=n)
    intervals = np.tile([-1.7, 1.7], (n, 1))
    return calipers.audit(y, intervals=intervals, time=moments, ease=ease, random_state=seed).to_dict()


def classification(seed: int, *, temperature: float, p_values: bool, groups: int = 0) -> dict[str, Any]:
    """Probabilities that are too sure or too shy, with or without conformal p-values."""
    world = MixtureWorld()
    learn, rows = world.sample(400, seed + 100), world.sample(900, seed)
    P, known = (world.distorted(part.X, temperature=temperature) for part in (rows, learn))
    given: dict[str, Any] = {"probabilities": P}
    if p_values:
        given |= {"p_values": conformal_p_values(lac(known)[np.arange(400), learn.y], lac(P)), "X": rows.X}
        given["n_calibration"] = 400
    if groups:
        given["groups"] = np.array([f"group <{i}> & co" for i in range(groups)])[np.arange(900) % groups]
    return calipers.audit(rows.y, random_state=seed, **given).to_dict()


def binary(seed: int, *, n: int) -> dict[str, Any]:
    """One column of probabilities."""
    rng = np.random.default_rng(seed)
    p = rng.beta(2, 2, n)
    return calipers.audit((rng.random(n) < p**1.5).astype(int), probabilities=p, random_state=seed).to_dict()


def healthy(seed: int, *, n: int) -> dict[str, Any]:
    """Nothing is wrong, and little can be asked."""
    y = np.random.default_rng(seed).normal(size=n)
    return calipers.audit(y, intervals=np.tile([-1.645, 1.645], (n, 1)), random_state=seed).to_dict()


def several(seed: int) -> dict[str, Any]:
    """Three levels at once."""
    rng = np.random.default_rng(seed)
    y, group = rng.normal(size=900), np.arange(900) % 25
    widths = np.array([1.2, 0.9, 0.5])
    intervals = np.stack([-np.ones((900, 1)) * widths, np.ones((900, 1)) * widths], axis=1)
    return calipers.audit(
        y, intervals=intervals, groups=group, alpha=[0.1, 0.2, 0.5], random_state=seed
    ).to_dict()


def scored(seed: int) -> dict[str, Any]:
    """Probabilities of an event with two attributes and days, too high in one group and from one day on."""
    rng = np.random.default_rng(seed)
    n = 1500
    p = rng.beta(1.5, 3, n)
    sex, age = rng.integers(0, 2, n), rng.integers(0, 5, n)
    off = np.where((age == 4) | (np.arange(n) > 1100), 0.45, 1.0)
    groups = pl.DataFrame({
        "sex": np.array(["female", "male"])[sex],
        "age band": np.array(["18 to 29", "30 to 44", "45 to 59", LONG, "年齢不詳"])[age],
    })  # fmt: skip
    days = np.datetime64("2025-11-03") + np.arange(n) // 8
    y = (rng.random(n) < p * off).astype(int)
    X = pl.DataFrame({"WWWWWWWWWWWWWW MMMMMMMMMMMMMMMM": p + rng.normal(size=n), "b": rng.normal(size=n)})
    return calipers.audit(y, probabilities=p, groups=groups, time=days, X=X, random_state=seed).to_dict()


def by_class(seed: int, *, promised: bool) -> dict[str, Any]:
    """Sets with classes of names in other scripts; with ``promised`` coverage of every class was promised."""
    rng = np.random.default_rng(seed)
    names = np.array(
        ["北京市朝阳区的一个很长的名字", "WWWWWWWWWWWWWWWWWWWWWWWWWWWWWWWW", "ℵ", "زر", "plain", "6"]
    )
    y = rng.integers(0, 6, 1200)
    P = rng.dirichlet(np.ones(6), 1200) + 1.4 * np.eye(6)[y] * (rng.random(1200) < 0.8)[:, None]
    P /= P.sum(axis=1, keepdims=True)
    sets = (P > 0.12) & ~((y == 2) & (rng.random(1200) < 0.4))[:, None]
    return calipers.audit(
        names[y], sets=sets, probabilities=P, classes=names, label_conditional=promised, random_state=seed
    ).to_dict()


def quantiles(seed: int) -> dict[str, Any]:
    """Three quantiles that are too narrow where a feature is large, over groups and hours."""
    rng = np.random.default_rng(seed)
    levels, n = (0.1, 0.5, 0.95), 1000
    x = rng.uniform(-2, 2, n)
    steps = np.quantile(np.random.default_rng(0).normal(size=100_000), levels)
    hours = np.datetime64("2026-02-27T00") + np.arange(n)
    return calipers.audit(
        120_000 + 9000 * rng.normal(size=n) * np.where(x > 1, 2.0, 1.0),
        quantiles=120_000 + 9000 * np.tile(steps, (n, 1)), quantile_levels=levels,
        X=pl.DataFrame({"exposure": x}), groups=np.where(x > 0, "exposed", LONG), time=hours, random_state=seed,
    ).to_dict()  # fmt: skip


def distributions(seed: int) -> dict[str, Any]:
    """PIT values that are not uniform."""
    rng = np.random.default_rng(seed)
    pit = rng.beta(1.4, 0.8, 700)
    return calipers.audit(
        rng.normal(size=700), pit=pit, groups=np.arange(700) % 4, random_state=seed
    ).to_dict()


def outcomes(seed: int) -> dict[str, Any]:
    """What was covered, with a promise per row, sizes, features, groups and clusters."""
    rng = np.random.default_rng(seed)
    n = 1200
    promised, site = rng.uniform(0.7, 0.99, n), rng.integers(0, 14, n)
    covered = rng.random(n) < promised - 0.25 * (site == 3)
    return calipers.audit(
        covered=covered, promised=promised, size=rng.gamma(2, 1e7, n), X=pl.DataFrame({"site number": site}),
        groups=np.array([f"site {i} & <sons>" for i in range(14)])[site], random_state=seed,
    ).to_dict()  # fmt: skip


def losses(seed: int) -> dict[str, Any]:
    """Losses against a bound, worse in one of many groups."""
    rng = np.random.default_rng(seed)
    group = rng.integers(0, 30, 1500)
    loss = np.clip(rng.beta(1, 9, 1500) + 0.2 * (group == 7), 0, 1)
    named = np.array([f"{LONG} {i}" for i in range(30)])[group]
    return calipers.audit(loss=loss, bound=0.1, groups=named, random_state=seed).to_dict()


def stood_in(seed: int) -> dict[str, Any]:
    """Difficulty that probabilities stand in for, with conformal p-values and clusters."""
    world = MixtureWorld()
    learn, rows = world.sample(500, seed + 1), world.sample(900, seed)
    P, known = (world.distorted(part.X, temperature=1.6) for part in (rows, learn))
    p_values = conformal_p_values(lac(known)[np.arange(500), learn.y], lac(P))
    return calipers.audit(
        rows.y, probabilities=P, p_values=p_values, cluster=np.arange(900) // 3, alpha=[0.05, 0.2], random_state=seed
    ).to_dict()  # fmt: skip


def repaired(seed: int) -> dict[str, Any]:
    """The report of a repair."""
    rng = np.random.default_rng(seed)
    y, group = rng.normal(size=1500), np.arange(1500) % 3
    intervals = np.where(group == 1, 1.0, 1.8)[:, None] * [-1.0, 1.0]
    named = np.array(["north", LONG, "s"])[group]
    return calipers.audit(y, intervals=intervals, groups=named, random_state=seed).repair().to_dict()


def followed(seed: int) -> dict[str, Any]:
    """An audit with others before it."""
    times = [f"2026-01-0{day}T08:00:00+00:00" for day in range(1, 9)]
    run = {
        "source": f"{LONG}.csv",
        "rows": 123456,
        "broken": 2,
        "verdict": "Found 1 issue.",
        "report": "a.html",
    }
    change = {
        "broken": [("coverage of the intervals", "groups")], "mended": [("coverage of the intervals", LONG)],
        "appeared": [("a", "score")], "gone": [], "numbers": [{"name": "coverage", "before": 0.9, "after": 0.8}],
    }  # fmt: skip
    history = {
        "folder": "audits", "count": 9, "first": times[0], "earlier": [run | {"at": at} for at in times[:2:-1]],
        "change": change,
    }  # fmt: skip
    return healthy(seed, n=400) | {"history": history}


MAKERS: dict[str, Callable[[], dict[str, Any]]] = {
    **{f"regression {s}": (lambda s=s: regression(s)) for s in range(3)},
    **{f"regression in {u:g}": (lambda u=u: regression(4, scale=u)) for u in (1e-6, 1e-3, 1e4, 2.5e5, 1e9)},
    **{f"regression without fault {s}": (lambda s=s: regression(s, fault=1.0)) for s in (5, 6)},
    **{f"time in {u}": (lambda u=u: timed(7, unit=u)) for u in ("s", "m", "h", "D", "W")},
    **{
        f"sets at temperature {t:g}": (lambda t=t, g=g: classification(8, temperature=t, p_values=True, groups=g))
        for t, g in ((0.4, 3), (1.0, 0), (2.5, 40))
    },
    **{
        f"probabilities at {t:g}": (lambda t=t: classification(9, temperature=t, p_values=False, groups=2))
        for t in (0.3, 0.5, 1.0, 3.0)
    },
    **{f"binary of {n}": (lambda n=n: binary(10, n=n)) for n in (60, 400, 2000)},
    **{f"healthy of {n}": (lambda n=n: healthy(11, n=n)) for n in (30, 200, 3000)},
    **{f"three levels {s}": (lambda s=s: several(s)) for s in (12, 13)},
    "scored with groups and time": lambda: scored(14),
    "sets by class": lambda: by_class(15, promised=False),
    "sets promised by class": lambda: by_class(15, promised=True),
    "quantiles": lambda: quantiles(16),
    "distributions": lambda: distributions(17),
    "outcomes with a promise per row": lambda: outcomes(18),
    "losses against a bound": lambda: losses(19),
    "difficulty stood in for": lambda: stood_in(20),
    "repaired": lambda: repaired(21),
    "followed": lambda: followed(22),
}  # fmt: skip


PROMISES = [
    {"promise": promise, "slice": part, "answer": answer, "value": value, "low": value - 0.02, "high": value + 0.02,
     "p_value": 1e-9 if answer == "broken" else 0.4, "n": 12000, "code": "CAL101", "where": "somewhere"}
    for promise in ("intervals at 90 %", "probability of the top label", "mass of the smallest set at 90 %")
    for part, answer, value in (
        ("all rows", "kept", 0.905), ("stated probability", "cannot tell", 0.86), ("groups and intersections", "broken", 0.7),
        ("features", "broken", 0.61), ("difficulty", "kept", 0.88), ("time", "not asked", 0.9), ("true label", "kept", 0.9),
    )
]  # fmt: skip


@cache
def document(name: str) -> dict[str, Any]:
    """The document of one audit, with a table of promises where the audit has none."""
    made = MAKERS[name]()
    return made if made.get("promises") else made | {"promises": PROMISES}
