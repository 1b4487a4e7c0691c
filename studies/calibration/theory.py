"""What theory says against what happens: Claim 6, the certificates, and links fitted in two ways."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from calipers.calibration import IsotonicCalibrator, LinkCalibrator
from calipers.datasets import ScoreWorld
from calipers.metrics.reliability import (
    asymptotic_upper_bound,
    interval_rademacher,
    interval_rademacher_massart,
    uniform_band,
    uniform_convergence_width,
    upper_bound,
)
from studies.calibration.settings import SEED, Settings

CONFIDENCE = 0.95
_rademacher = functools.cache(interval_rademacher)  # a second or so at the largest sizes
_GRID = 200_000
_CENTRES = (np.arange(_GRID) + 0.5) / _GRID


def wave(f: np.ndarray) -> np.ndarray:
    """A link that falls between 0.4 and 0.7: the convex minorant of (F, G) differs from it."""
    return np.asarray(np.where(f < 0.4, 1.5 * f, np.where(f < 0.7, 0.6 - (f - 0.4), 0.3 + 2 * (f - 0.7))))


WORLDS = {
    "rising link": ScoreWorld("uniform", "square"),
    "link that falls in the middle": ScoreWorld("uniform", wave, corners=(0.4, 0.7)),
}


class Convergence(NamedTuple):
    """sup_t |G_e(t) - cv(F(t))| of Claim 6 over repetitions at one sample size."""

    world: str
    n: int
    median: float
    high: float  # 95 % point of the repetitions
    printed: float  # 2 epsilon of the claim, with Theorem 2 as printed
    proved: float  # the same with the constant its proof supports


def convergence(settings: Settings) -> Iterator[Convergence]:
    """Isotonic regression on n rows of known worlds; F is uniform, so integrals are cumulative means."""
    for name, world in WORLDS.items():
        # The slope of the convex minorant of G is the isotonic regression of the link.
        hull = np.cumsum(IsotonicCalibrator().fit_predict(_CENTRES, world.link_at(_CENTRES))) / _GRID
        for n in settings.convergence_sizes:
            rng = np.random.default_rng([SEED, n])
            gaps = [_gap(world, n, hull, rng) for _ in range(settings.convergence_runs)]
            # P(sup > 2 epsilon) < 5 delta, so delta is a fifth of 1 - confidence.
            confidence = 1 - (1 - CONFIDENCE) / 5
            complexity = _rademacher(n)
            printed, proved = (
                2 * uniform_convergence_width(n, complexity, confidence=confidence, as_printed=as_printed)
                for as_printed in (True, False)
            )
            high = float(np.quantile(gaps, 0.95))
            yield Convergence(name, n, float(np.median(gaps)), high, printed, proved)


def _gap(world: ScoreWorld, n: int, hull: np.ndarray, rng: np.random.Generator) -> float:
    p, y = world.sample(n, random_state=rng)
    fitted = IsotonicCalibrator().fit(p, y).predict(_CENTRES)
    return float(np.abs(np.cumsum(fitted) / _GRID - hull).max())


class Widths(NamedTuple):
    """Upper bounds for the population error of one calibrated model, uniform scores, c_emp read as 0."""

    n: int
    printed_massart: float
    proved_massart: float
    printed_exact: float
    proved_exact: float
    uniform: float
    guaranteed: float
    asymptotic: float


def widths(sizes: tuple[int, ...]) -> list[Widths]:
    """Theorem 2 in four readings against the bounds of calibration_error; Brier score 1/6."""
    rows = []
    for n in sizes:
        theorem = [
            uniform_convergence_width(n, complexity, confidence=CONFIDENCE, as_printed=as_printed)
            for complexity in (interval_rademacher_massart(n), _rademacher(n))
            for as_printed in (True, False)
        ]
        bounds = (
            uniform_band(n, confidence=CONFIDENCE),
            upper_bound(0.0, 1 / 6, n, confidence=CONFIDENCE),
            asymptotic_upper_bound(0.0, 1 / 6, n, confidence=CONFIDENCE),
        )
        rows.append(Widths._make((n, *theorem, *bounds)))
    return rows


class LinkReading(NamedTuple):
    """Mean population calibration error of one calibrator over repetitions."""

    world: str
    n: int
    calibrator: str
    error: float
    std_error: float


LINK_WORLDS = {
    "link in the Platt family": ScoreWorld("uniform", "slope", 0.6),
    "link outside it": ScoreWorld("uniform", lambda f: 0.1 + 0.8 * f**3),
}


def link_comparison(settings: Settings) -> Iterator[LinkReading]:
    """Likelihood against minimum calibration error, and isotonic regression beside them."""
    makers = {
        f"{family}, {name}": LinkCalibrator(family, objective)
        for family in ("platt", "beta", "spline")
        for name, objective in (("likelihood", "likelihood"), ("minimum error", "calibration_error"))
    } | {"isotonic": IsotonicCalibrator()}
    for world_name, world in LINK_WORLDS.items():
        truth = world.link_at(_CENTRES)
        for n, runs in settings.link_runs:
            rng = np.random.default_rng([SEED, n])
            samples = [world.sample(n, random_state=rng) for _ in range(runs)]
            for name, calibrator in makers.items():
                fits = (calibrator.fit(p, y).predict(_CENTRES) for p, y in samples)
                errors = [_population_error(fitted, truth) for fitted in fits]
                spread = float(np.std(errors, ddof=1)) / np.sqrt(runs)
                yield LinkReading(world_name, n, name, float(np.mean(errors)), float(spread))


def _population_error(stated: np.ndarray, truth: np.ndarray) -> float:
    """c of a non-decreasing map of uniform scores: the range of the walk, read where the map rises."""
    walk = np.cumsum(truth - stated) / _GRID
    ends = np.append(stated[1:] > stated[:-1], True)
    return float(max(walk[ends].max(), 0) - min(walk[ends].min(), 0))
