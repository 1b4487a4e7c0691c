"""Conditional coverage: excess risk and worst slab beside covmetrics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task

ALPHA = 0.1


def prepare(n: int) -> Inputs:
    """Constant-width sets in a world whose noise grows with |x_1|: the truth of the L1 risk is 0.0947."""
    from calipers.datasets import HeteroscedasticWorld

    world = HeteroscedasticWorld()
    X, y = world.sample(n, random_state=n)
    ends = world.constant_intervals(X, alpha=ALPHA)
    return {"X": X, "covered": (ends[:, 0] <= y) & (y <= ends[:, 1])}


def ours(inputs: Inputs) -> Answers:
    """Value, error bar, and both tests."""
    from calipers.metrics import ert

    e = ert(inputs["X"], inputs["covered"], alpha=ALPHA, random_state=0)
    return {"l1": float(e), "p_value": e.p_value}


def covmetrics(inputs: Inputs) -> Answers:
    """Value only: covmetrics gives no error bar and no test."""
    from covmetrics import ERT

    return {"l1": float(ERT().evaluate(inputs["X"], inputs["covered"].astype(float), ALPHA))}


def true_risks(alpha: float = ALPHA) -> Answers:
    """L1, L2 and KL of constant-width sets by a plain sum over x_1: no code of ours is used."""
    from scipy.optimize import brentq
    from scipy.stats import norm

    x = (np.arange(400_000) + 0.5) / 200_000 - 1
    sd, t = 0.5 + np.abs(2 * x) + x**2, 1 - alpha
    radius = brentq(lambda c: (2 * norm.cdf(c / sd) - 1).mean() - t, 0.1, 20)
    p = 2 * norm.cdf(radius / sd) - 1
    kl = p * np.log(p / t) + (1 - p) * np.log((1 - p) / (1 - t))
    return {"l1": float(np.abs(p - t).mean()), "l2": float(((p - t) ** 2).mean()), "kl": float(kl.mean())}


def recovered(exact: Answers, found: Answers) -> bool:
    """An estimate of the risk from below: at least a third of the truth, and not above it by noise."""
    return bool(exact["l1"] / 3 < found["l1"] < 1.15 * exact["l1"])


# Accuracy over ten seeds: what share of the truth is found, and how far perfect sets read from 0.

SEEDS = 10


def prepare_seeds(n: int) -> Inputs:
    from calipers.datasets import HeteroscedasticWorld

    world = HeteroscedasticWorld()
    samples = [world.sample(n, random_state=1000 * n + seed) for seed in range(SEEDS)]
    ends = [
        (world.constant_intervals(X, alpha=ALPHA), world.oracle_intervals(X, alpha=ALPHA)) for X, _ in samples
    ]
    covered = [
        [(e[:, 0] <= y) & (y <= e[:, 1]) for e in pair] for pair, (_, y) in zip(ends, samples, strict=True)
    ]
    return {"X": np.stack([X for X, _ in samples]), "covered": np.array(covered)}


def over_seeds(inputs: Inputs, risks: Callable[[np.ndarray, np.ndarray], list[float]]) -> Answers:
    """Mean of the three risks on failing sets, and their spread on perfect ones."""
    pairs = list(zip(inputs["X"], inputs["covered"], strict=True))
    failing = np.array([risks(X, both[0]) for X, both in pairs])
    perfect = np.array([risks(X, both[1]) for X, both in pairs])
    means = dict(zip(("l1", "l2", "kl"), failing.mean(axis=0), strict=True))
    return means | {"spread": perfect.std(axis=0, ddof=1)}


def our_accuracy(inputs: Inputs) -> Answers:
    from calipers.metrics import ert_table

    def risks(X: np.ndarray, covered: np.ndarray) -> list[float]:
        table = ert_table(X, covered, alpha=ALPHA, random_state=0)
        return [float(table[loss]) for loss in ("l1", "l2", "kl")]

    return over_seeds(inputs, risks)


def covmetrics_accuracy(inputs: Inputs) -> Answers:
    from covmetrics import ERT

    def risks(X: np.ndarray, covered: np.ndarray) -> list[float]:
        table = ERT().evaluate_multiple_losses(X, covered.astype(float), ALPHA)
        return [float(table[f"ERT_{loss}"]) for loss in ("L1_miscoverage", "brier_score", "logloss")]

    return over_seeds(inputs, risks)


def slab(inputs: Inputs) -> Answers:
    """Search on one half, coverage on the other."""
    from calipers.metrics import worst_slab_coverage

    e = worst_slab_coverage(inputs["X"], inputs["covered"], n_directions=1000, random_state=0)
    return {"searched": e.details["searched"]}


def covmetrics_slab(inputs: Inputs) -> Answers:
    """In-sample minimum over all rows."""
    from covmetrics import WSC

    return {"searched": float(WSC(delta=0.1).evaluate(inputs["X"], inputs["covered"].astype(float), M=1000))}


def sort_projections(inputs: Inputs) -> np.ndarray:
    """What no search can avoid: 1000 projections of half the rows, sorted."""
    X = inputs["X"][::2]
    directions = np.random.default_rng(0).normal(size=(1000, X.shape[1]))
    return np.concatenate([np.sort(block @ X.T, axis=1)[:, :1] for block in np.array_split(directions, 100)])


def near(first: Answers, second: Answers) -> bool:
    """In-sample minima over different random directions and rows."""
    return abs(float(first["searched"]) - float(second["searched"])) < 0.15


TASKS = [
    Task(
        name="excess risk",
        sizes=(1_000, 10_000, 100_000),
        prepare=prepare,
        ours=ours,
        peers={"covmetrics": covmetrics},
        bar="at most one fifth of covmetrics' CPU time at every size, tests included",
        exact=lambda _: {"l1": true_risks()["l1"]},
        agree=recovered,
    ),
    Task(
        name="accuracy of the excess risk",
        sizes=(500, 1_000, 2_000),
        prepare=prepare_seeds,
        ours=our_accuracy,
        peers={"covmetrics": covmetrics_accuracy},
        bar="as much of L1, L2 and KL as covmetrics over ten seeds, no larger spread on perfect sets",
        exact=lambda _: true_risks(),
        agree=recovered,
        quick=False,
    ),
    Task(
        name="worst slab",
        sizes=(1_000, 2_000, 10_000),
        prepare=prepare,
        ours=slab,
        peers={"covmetrics": covmetrics_slab},
        limit=sort_projections,
        bar="at least 100 times faster than covmetrics at 10 000 rows and 1 000 directions, under 200 MB",
        agree=near,
    ),
]
