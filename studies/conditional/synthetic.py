"""Sections 5 and 6 of the poster: the worlds with known truth, and the picture in one dimension."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rich.progress import Progress
from sklearn.cluster import KMeans

from calipers.datasets import HeteroscedasticWorld
from calipers.metrics import coverage_gap, ert, is_covered, worst_slab_coverage
from studies.caching import remembered, study_cache
from studies.conditional.rows import Row
from studies.progress import worked

ALPHA = 0.1
HEADER = ("sets", "n", "seed", "measure", "value", "std_error")


def sample_efficiency(
    sizes: tuple[int, ...], n_seeds: int, folder: Path | None, progress: Progress
) -> list[Row]:
    """ERT, worst slab (honest and as searched) and coverage gap against the number of rows."""
    jobs = {f"{n}-{seed}": (n, seed) for n in sizes for seed in range(n_seeds)}
    cache = study_cache(folder, _sampled)
    parts = worked(progress, _sampled, jobs, description="worlds (a)", cache=cache)
    return [row for rows in parts for row in rows]


def _sampled(n: int, seed: int) -> list[Row]:
    """Every measure on one sample of the world."""
    world = HeteroscedasticWorld()
    X, y = world.sample(n, random_state=1000 * seed + n)
    rows: list[Row] = []
    for sets, ends in (
        ("marginal", world.constant_intervals(X, alpha=ALPHA)),
        ("oracle", world.oracle_intervals(X, alpha=ALPHA)),
    ):
        covered = is_covered(y, ends)
        rows += [
            {"sets": sets, "n": n, "seed": seed, "measure": measure, "value": value, "std_error": error}
            for measure, value, error in _measures(X, covered, seed)
        ]
    return rows


def _measures(X: np.ndarray, covered: np.ndarray, seed: int) -> Iterator[tuple[str, float, float]]:
    risk = ert(X, covered, alpha=ALPHA, null=None, random_state=seed)
    yield "L1-ERT", float(risk), float(risk.std_error or 0.0)
    slab = worst_slab_coverage(X, covered, alpha=ALPHA, n_directions=300, random_state=seed)
    yield "WSC, measured", float(slab), float(slab.std_error or 0.0)
    yield "WSC, as searched", float(slab.details["searched"]), 0.0
    # The paper's groups: k-means with n^(1/4) clusters.
    clusters = max(2, round(len(X) ** 0.25))
    groups = KMeans(clusters, n_init=1, random_state=seed).fit_predict(X)
    gap = coverage_gap(covered, groups, alpha=ALPHA, random_state=seed)
    yield "CovGap", float(gap), float(gap.std_error or 0.0)


CURVE_HEADER = ("sets", "x", "predicted", "true", "ert")


def one_dimension(n: int, seed: int = 0) -> list[Row]:
    """Out-of-fold h(x) and the true conditional coverage of one feature."""
    rows: list[Row] = []
    world = HeteroscedasticWorld(n_features=1)
    X, y = world.sample(n, random_state=seed)
    for sets, ends in (
        ("marginal", world.constant_intervals(X, alpha=ALPHA)),
        ("oracle", world.oracle_intervals(X, alpha=ALPHA)),
    ):
        e = ert(X, is_covered(y, ends), alpha=ALPHA, null=None, random_state=seed)
        truth = world.coverage_at(X, ends)
        rows += [
            {
                "sets": sets, "x": X[i, 0], "predicted": e.details["predictions"][i], "true": truth[i],
                "ert": float(e),
            }
            for i in np.argsort(X[:, 0])
        ]  # fmt: skip
    return rows


VOLUME_HEADER = ("score", "seed", "size", "ert", "std_error", "coverage")


def two_outputs(n: int, n_seeds: int, folder: Path | None, progress: Progress) -> list[Row]:
    """Balls for two outputs whose noise grows with |x_1|: size is volume to the power 1/2."""
    seeds = progress.track(range(n_seeds), description="two outputs (f)")
    return [row for seed in seeds for row in remembered(folder, _two_outputs, n, seed)]


def _two_outputs(n: int, seed: int) -> list[Row]:
    """The three kinds of balls on one sample."""
    rows: list[Row] = []
    world = HeteroscedasticWorld(n_features=3)
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, size=(3 * n, 3))
    scale = world.scale_at(X)
    Y = scale[:, None] * rng.standard_normal((3 * n, 2))
    distance = np.linalg.norm(Y, axis=1)
    rough = 0.5 + 2.0 * np.abs(X[:, 0])  # an estimate of the scale that leaves out its square
    for score, unit in (("one ball", np.ones(3 * n)), ("estimated scale", rough), ("true scale", scale)):
        radius = np.quantile(distance[:n] / unit[:n], 1 - ALPHA, method="higher") * unit[n:]
        covered = distance[n:] <= radius
        e = ert(X[n:], covered, alpha=ALPHA, null=None, random_state=seed)
        rows.append({
            "score": score, "seed": seed, "size": float(np.mean(np.sqrt(np.pi * radius**2))),
            "ert": float(e), "std_error": float(e.std_error or 0.0), "coverage": float(covered.mean()),
        })  # fmt: skip
    return rows
