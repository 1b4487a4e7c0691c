"""Covered or not: the coverage of every row is known, and does or does not depend on where it lies."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from calipers.conformal import conformal_rank
from calipers.metrics import metric_entry
from tests.grid.metric_trials import Sample, read_metric, values_of
from tests.grid.readings import Reading
from tests.grid.regimes import Regime, in_form, places, population_places, uniforms

# Coverage and size in the four groups of x.
UNEVEN = np.array([0.99, 0.95, 0.90, 0.70])
SIZES = np.array([1.0, 2.0, 5.0, 8.0])
LEVELS = {"near-perfect": 0.998, "hopeless": 0.3}


def group_of(x: np.ndarray) -> np.ndarray:
    """Four groups of equal length."""
    return np.minimum((4 * x).astype(int), 3)


def level(regime: Regime) -> float:
    """Allowed miscoverage; where misses are rare, so rare that few are expected."""
    return 0.1 if regime.events is None else regime.events / regime.n


def coverage_at(x: np.ndarray, regime: Regime) -> np.ndarray:
    """Probability that the row at x is covered."""
    if regime.model == "uneven":
        return UNEVEN[group_of(x)]
    return np.full(len(x), LEVELS.get(regime.model, 1 - level(regime)))


def columns(x: np.ndarray, covered: np.ndarray, name: str) -> dict[str, Any]:
    """The data arguments of a metric, made from where rows lie and whether they were covered."""
    group = group_of(x)
    made: dict[str, Any] = {
        "covered": covered, "ease": x, "size": SIZES[group], "ranks": SIZES[group], "groups": group,
        "feature": group, "time": x, "y_true": group, "prediction": np.tile([-1.0, 1.0], (len(x), 1)),
    }  # fmt: skip
    if name == "coverage":
        made["y_true"] = np.where(covered, 0.0, 9.0)
    return {key: made[key] for key in metric_entry(name).inputs}


def options_of(name: str, regime: Regime) -> dict[str, Any]:
    """Keyword arguments: the level, bins that fit the rows, fewer draws than the default."""
    options: dict[str, Any] = {"alpha": level(regime)} if name != "label_stratified_coverage" else {}
    if name == "t_cv":
        options |= {"n_bins": 4 if regime.n <= 200 else 20, "n_draws": 999}
    return options | ({"n_calibration": regime.n_calibration} if regime.n_calibration else {})


@cache
def truths(name: str, regime: Regime) -> dict[str, float]:
    """The metric of the population: covered and missed rows, weighted by their probabilities."""
    x = population_places(regime)
    p = coverage_at(x, regime)
    both = columns(np.tile(x, 2), np.repeat([True, False], len(x)), name)
    weight = np.concatenate([p, 1 - p]) + 1e-12  # never whole: these are probabilities
    options = {k: v for k, v in options_of(name, regime).items() if k not in ("n_calibration", "n_draws")}
    return values_of(name, both | {"sample_weight": weight}, **options)


def draw_covered(rng: np.random.Generator, x: np.ndarray, regime: Regime) -> np.ndarray:
    """Covered rows; with a calibration set one unlucky or lucky coverage for all of them."""
    p = coverage_at(x, regime)
    if regime.n_calibration:
        rank = conformal_rank(regime.n_calibration, level(regime))
        p = np.full(len(x), rng.beta(rank, regime.n_calibration + 1 - rank))
    return uniforms(rng, regime) < p


def stratified(name: str):
    """Trial of a metric whose strata are the groups of x."""

    def trial(rng: np.random.Generator, regime: Regime) -> list[Reading]:
        x, weight = places(rng, regime)
        data = in_form(columns(x, draw_covered(rng, x, regime), name), weight, regime)
        # With a calibration set the truth is another one in every run; its test is what is looked at.
        truth = {} if regime.n_calibration else truths(name, regime)
        sample = Sample(data, options_of(name, regime), truth, regime.model == "sound")
        return read_metric(name, sample, rng)

    return trial


def over_time(rng: np.random.Generator, regime: Regime) -> list[Reading]:
    """Coverage that is the same at all times, whatever it is; with a calibration set against the target."""
    x, weight = places(rng, regime)
    data = in_form(columns(x, draw_covered(rng, x, regime), "change_over_time"), weight, regime)
    options = options_of("change_over_time", regime)
    options |= {"null": "target"} if regime.n_calibration else {}
    return read_metric("change_over_time", Sample(data, options, {}, regime.model != "uneven"), rng)


def size_dependence(name: str):
    """Trial of the dependence between size and coverage."""

    def trial(rng: np.random.Generator, regime: Regime) -> list[Reading]:
        x, _ = places(rng, regime)
        data = in_form(columns(x, draw_covered(rng, x, regime), name), None, regime)
        sample = Sample(data, {"n_draws": 199}, {"value": correlation(regime)}, regime.model != "uneven")
        return read_metric(name, sample, rng)

    return trial


@cache
def correlation(regime: Regime) -> float:
    """Correlation of size and coverage in the population."""
    x = population_places(regime)
    p, size = coverage_at(x, regime), SIZES[group_of(x)]
    spread = np.sqrt(p.mean() * (1 - p.mean()) * size.var())
    return float(np.mean((p - p.mean()) * size) / spread) if spread > 0 else 0.0


def features(rng: np.random.Generator, x: np.ndarray, regime: Regime) -> np.ndarray:
    """Two features: the place, and noise; of few values where rows are to be repeated."""
    noise = rng.normal(size=len(x))
    return np.column_stack([x, noise > 0 if regime.form == "whole weights" else noise])


def searched(name: str, **options: Any):
    """Trial of a search for the worst slab or region: coverage is the same everywhere, so its truth is known."""

    def trial(rng: np.random.Generator, regime: Regime) -> list[Reading]:
        x, weight = places(rng, regime)
        covered = draw_covered(rng, x, regime)
        data = in_form({"X": features(rng, x, regime), "covered": covered}, weight, regime)
        given = {"alpha": level(regime), "n_calibration": regime.n_calibration} | options
        found = read_metric(name, Sample(data, given, {}, regime.model == "sound"), rng)
        return joint(found, known_coverage(x, regime), tested=regime.model == "sound")

    return trial


def known_coverage(x: np.ndarray, regime: Regime) -> float | None:
    """Coverage of every region; with a calibration set another one in every run, whose test is looked at."""
    return None if regime.n_calibration else float(coverage_at(x[:1], regime)[0])


def joint(found: list[Reading], truth: float | None, *, tested: bool) -> list[Reading]:
    """All regions together: they hold when each does, and reject when one does; none found rejects nothing."""
    if not found:
        return [Reading("value", p_value=1.0, asks_test=tested)]
    tests = [r.p_value for r in found if r.p_value is not None]
    if truth is None:
        return [Reading("value", p_value=min(tests, default=None), asks_test=tested, reason=found[0].reason)]
    given = [(r.low, r.high) for r in found if r.low is not None and r.high is not None]
    reason = found[0].reason
    if len(given) < len(found):
        return [Reading("value", asks_interval=True, asks_test=tested, reason=reason)]
    held = all(low <= truth <= high for low, high in given)
    low, high = (truth, truth) if held else (truth + 1, truth + 1)
    return [Reading("value", None, low, high, truth, True, min(tests, default=None), tested, reason=reason)]


# Excess risk of the target coverage when coverage is the same everywhere: L1 is its distance from the target.
CONSTANT_L1 = {"sound": 0.0, "near-perfect": 0.098, "hopeless": 0.6}


def excess_risk(name: str):
    """Trial of ERT on constant coverage."""

    def trial(rng: np.random.Generator, regime: Regime) -> list[Reading]:
        x, weight = places(rng, regime)
        covered = draw_covered(rng, x, regime)
        options: dict[str, Any] = {"alpha": level(regime), "n_repeats": 1}
        if regime.n_calibration:
            options["n_calibration"] = regime.n_calibration
        data = in_form({"X": features(rng, x, regime), "covered": covered}, weight, regime)
        sound, risk = regime.model == "sound", CONSTANT_L1[regime.model]
        options |= {} if sound else {"null": None}  # nothing to test
        truth = {} if regime.n_calibration else {"value": risk, "l1": risk}
        return read_metric(name, Sample(data, options, truth, sound), rng)

    return trial
