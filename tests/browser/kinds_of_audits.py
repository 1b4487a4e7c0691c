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
