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
    """One entry of every row, counted."""
    sets = inputs["sets"]
    at = np.arange(0, sets.size, sets.shape[1]) + inputs["y"]
    return {"coverage": np.count_nonzero(sets.reshape(-1).take(at)) / len(sets)}


def mapie(inputs: Inputs) -> Answers:
    from mapie.metrics.classification import classification_coverage_score

    return {"coverage": float(classification_coverage_score(inputs["y"], inputs["sets"][:, :, None])[0])}


def puncc(inputs: Inputs) -> Answers:
    """It reads lists of labels: they are made outside the clock's reach at the first call."""
    from deel.puncc.metrics import classification_mean_coverage

    if id(inputs) not in LISTS:
        LISTS.clear()
        LISTS[id(inputs)] = [np.flatnonzero(row).tolist() for row in inputs["sets"]]
    return {"coverage": float(classification_mean_coverage(inputs["y"], LISTS[id(inputs)]))}


LISTS: dict[int, list[list[int]]] = {}


def torchcp(inputs: Inputs) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    sets = torch.from_numpy(inputs["sets"])
    found = torchcp_rooms()[2].coverage_rate(sets, torch.from_numpy(inputs["y"]))
    return {"coverage": float(found)}


TASKS = [
    Task(
        name="coverage",
        sizes=(10_000, 100_000, 1_000_000),
        prepare=prepare,
        ours=ours,
        peers={"mapie": mapie, "puncc": puncc, "torchcp": torchcp},
        limit=limit,
        exact=limit,
        bar="one pass over the rows, with its interval and its test",
    )
]
