"""Conditional coverage: excess risk and worst slab beside covmetrics."""

from __future__ import annotations

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


def close(first: Answers, second: Answers) -> bool:
    """Two estimates of one number from the same rows, with different classifiers and folds."""
    return abs(first["l1"] - second["l1"]) < 0.05


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
    return np.concatenate([np.sort(X @ block.T, axis=0)[:1] for block in np.array_split(directions, 50)])


def near(first: Answers, second: Answers) -> bool:
    """Minima over different random directions and rows."""
    return abs(first["searched"] - second["searched"]) < 0.1


TASKS = [
    Task(
        name="excess risk",
        sizes=(1_000, 10_000, 100_000),
        prepare=prepare,
        ours=ours,
        peers={"covmetrics": covmetrics},
        bar="at most one fifth of covmetrics' CPU time at every size, tests included",
        agree=close,
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
