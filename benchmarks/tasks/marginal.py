"""Marginal coverage: one pass over the rows."""

from __future__ import annotations

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task


def prepare(n: int) -> Inputs:
    rng = np.random.default_rng(0)
    return {"y": rng.integers(0, 10, n), "sets": rng.random((n, 10)) < 0.9}


def ours(inputs: Inputs) -> Answers:
    from calipers.metrics import coverage

    return {"coverage": float(coverage(inputs["y"], inputs["sets"], alpha=0.1))}


def limit(inputs: Inputs) -> Answers:
    return {"coverage": np.take_along_axis(inputs["sets"], inputs["y"][:, None], axis=1).mean()}


def mapie(inputs: Inputs) -> Answers:
    from mapie.metrics.classification import classification_coverage_score

    return {"coverage": float(classification_coverage_score(inputs["y"], inputs["sets"][:, :, None])[0])}


TASKS = [
    Task(
        name="coverage",
        sizes=(10_000, 100_000, 1_000_000),
        prepare=prepare,
        ours=ours,
        peers={"mapie": mapie},
        limit=limit,
        exact=limit,
        bar="one pass over the rows, with its interval and its test",
    )
]
