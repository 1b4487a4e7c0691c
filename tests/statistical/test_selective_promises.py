"""The band of selective risk holds at all shares at once, and certified thresholds keep their risk.

Worlds have a known risk of "certainty above c": the loss depends on a uniform certainty, or on its rung.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from scipy import stats

from calipers.metrics import selective_risk, selective_threshold

SURE = 1e-4  # probability that a right program fails one check
GRID = (np.arange(20_000) + 0.5) / 20_000
RISK = 0.1


@pytest.fixture(params=[400, pytest.param(4000, marks=pytest.mark.slow)], ids=["short", "long"])
def runs(request):
    """How many samples."""
    return request.param


@dataclass(frozen=True)
class World:
    """Mean loss at a uniform u, its certainty, and what kind of loss it is."""

    mean: object
    certainty: object = staticmethod(lambda u: u)
    binary: bool = True

    def draw(self, rng, n):
        u = rng.random(n)
        mean = self.mean(u)
        if self.binary:
            return rng.random(n) < mean, self.certainty(u)
        # Two values around the mean: as far from 0 and 1 as a bounded loss may be.
        return np.clip(mean + 0.5 * mean * rng.choice([-1.0, 1.0], n), 0, 1), self.certainty(u)

    def risk(self, thresholds):
        """Expected loss of all rows with at least that certainty."""
        # Certainties rise with u: what is kept is a tail of the grid.
        first = np.searchsorted(self.certainty(GRID), thresholds, side="left")
        tails = np.append(np.cumsum(self.mean(GRID)[::-1])[::-1], 0.0)
        return tails[first] / np.maximum(GRID.size - first, 1)


def rungs(u):
    return np.floor(6 * u)


WORLDS = {
    "falling": World(lambda u: 0.3 * (1 - u)),
    "the surest are wrong": World(lambda u: np.where(u > 0.97, 0.25, 0.22 * (1 - u))),
    "waves": World(lambda u: 0.1 + 0.1 * np.sin(25 * u)),
    # Just above the risk: whatever is certified is wrong.
    "flat": World(lambda u: np.full(u.shape, RISK + 1e-6)),
    "ties": World(lambda u: 0.25 * (1 - rungs(u) / 6), rungs),
    "most share the top": World(lambda u: np.where(u > 0.4, RISK + 1e-6, 0.3), lambda u: np.minimum(u, 0.4)),
    "bounded": World(lambda u: 0.15 * (1 - u) ** 2, binary=False),
    "bounded and flat": World(lambda u: np.full(u.shape, RISK + 1e-6), binary=False),
}


@pytest.mark.parametrize("n", [35, 300])
@pytest.mark.parametrize("name", WORLDS)
def test_a_certificate_is_seldom_wrong(name, n, runs):
    world, rng, delta = WORLDS[name], np.random.default_rng(len(name) + n), 0.1
    wrong, shares = 0, []
    for _ in range(runs):
        found = selective_threshold(*world.draw(rng, n), risk=RISK, delta=delta)
        shares.append(found.value)
        wrong += found.value > 0 and world.risk(found.details["threshold"]) > RISK + 1e-9
    print(f"{name}, {n} rows: wrong {wrong / runs:.4f} of {runs}, mean share {np.mean(shares):.3f}")
    assert wrong <= stats.binom.isf(SURE, runs, delta)


@pytest.mark.parametrize("n", [12, 150, 600])
@pytest.mark.parametrize("name", WORLDS)
def test_the_band_holds_at_all_shares_at_once(name, n, runs):
    world, rng, runs = WORLDS[name], np.random.default_rng(len(name) + n), runs // 2
    missed = 0
    for _ in range(runs):
        loss, certainty = world.draw(rng, n)
        curve = selective_risk(loss, certainty, confidence=0.9)
        # A point is about all rows more certain than the next one.
        lower = np.append(np.sort(np.unique(certainty))[::-1], -np.inf)
        following = lower[np.searchsorted(-lower, -curve.details["thresholds"], side="right")]
        truth = world.risk(np.nextafter(following, np.inf))
        missed += bool(np.any((truth < curve.low - 1e-9) | (truth > curve.high + 1e-9)))
    print(f"{name}, {n} rows: missed in {missed / runs:.4f} of {runs}")
    assert missed <= stats.binom.isf(SURE, runs, 0.1)


def test_a_planted_order_is_used():
    # The truth: rows above 2/3 have a mean loss of 0.05; nearly that share is certified.
    world, rng = WORLDS["falling"], np.random.default_rng(0)
    shares = [selective_threshold(*world.draw(rng, 4000), risk=0.1).value for _ in range(40)]
    print(f"risk 0.1 is exact at a share of 0.667; certified {np.mean(shares):.3f}")
    assert 0.55 < np.mean(shares) < 0.667
