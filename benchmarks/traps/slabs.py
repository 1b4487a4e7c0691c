"""Where coverage fails: a slab measured on rows that did not choose it, and strata of sizes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs
from benchmarks.traps.conditional import ALPHA
from benchmarks.traps.written import refused, trap, within

# The worst slab: nothing is wrong; one column in other units; no order at all; a real slab.


def slab_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import worst_slab_coverage

    return {"slab": float(worst_slab_coverage(inputs["X"], inputs["covered"], alpha=ALPHA, random_state=0))}


def slab_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import WSC

    return {"slab": float(WSC().evaluate(inputs["X"], inputs["covered"], delta=0.1, M=200))}


def five_worlds() -> Inputs:
    rng = np.random.default_rng(8)
    return {"X": rng.normal(size=(5, 1000, 5)), "covered": (rng.random((5, 1000)) < 0.9).astype(int)}


def mean_slab(slab: Any) -> Any:
    """The mean over five independent data sets."""

    def run(inputs: Inputs) -> Answers:
        worlds = zip(inputs["X"], inputs["covered"], strict=True)
        return {"slab": float(np.mean([slab({"X": X, "covered": z})["slab"] for X, z in worlds]))}

    return run


def scaled() -> Inputs:
    rng = np.random.default_rng(6)
    X = rng.uniform(size=(3000, 4))
    covered = (rng.random(3000) < np.where(X[:, 0] < 0.3, 0.5, 0.95)).astype(int)
    X[:, 3] *= 1000
    return {"X": X, "covered": covered}


def constant() -> Inputs:
    rng = np.random.default_rng(7)
    return {"X": np.zeros((300, 2)), "covered": (rng.random(300) < 0.9).astype(int)}


def failing_region() -> Inputs:
    """Sets of all ten labels but the true one where x_1 < 0.3 for half of the rows."""
    rng = np.random.default_rng(11)
    X, y = rng.uniform(size=(3000, 4)), rng.integers(0, 10, 3000)
    covered = rng.random(3000) < np.where(X[:, 0] < 0.3, 0.5, 0.97)
    sets = np.ones((3000, 10), bool)
    sets[np.arange(3000), y] = covered
    return {"X": X, "y": y, "sets": sets, "covered": covered.astype(int)}


def torchcp_slab(inputs: Inputs, sets: np.ndarray) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    found = torchcp_rooms()[2].WSC(
        torch.from_numpy(inputs["X"]), torch.from_numpy(sets.astype(np.int64)), torch.from_numpy(inputs["y"]),
        delta=0.1, M=200,
    )  # fmt: skip
    return {"slab": float(found)}


def few_classes() -> Inputs:
    inputs = failing_region()
    return inputs | {"y": inputs["y"] % 9}  # label 9 never occurs


def set_slab_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import is_covered

    covered = is_covered(inputs["y"], inputs["sets"], classes=np.arange(10))
    return slab_ours({"X": inputs["X"], "covered": covered})


# Strata of sizes.


def integer_sizes() -> Inputs:
    size = np.repeat(np.arange(1, 13), 50)
    return {"size": size, "covered": (np.arange(600) % 10 != 0).astype(int)}  # 90 % at every size


def sizes_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import escv

    return {"largest gap": float(escv(inputs["covered"], inputs["size"], alpha=ALPHA))}


def sizes_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import SSC

    return {"largest gap": float(SSC().evaluate(inputs["size"], inputs["covered"], ALPHA))}


def unknown_size() -> Inputs:
    inputs = integer_sizes()
    size = inputs["size"].astype(float)
    size[3] = np.nan
    return inputs | {"size": size}


def unknown_size_ours(inputs: Inputs) -> Answers:
    return refused(lambda: sizes_ours(inputs), also=lambda found: math.isnan(found["largest gap"]))


def unknown_size_covmetrics(inputs: Inputs) -> Answers:
    return refused(lambda: sizes_covmetrics(inputs), also=lambda found: math.isnan(found["largest gap"]))


def repeat_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import size_stratified_coverage

    found = {
        float(size_stratified_coverage(inputs["covered"], inputs["size"], alpha=ALPHA)) for _ in range(4)
    }
    return {"different answers": len(found)}


def repeat_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import SSC

    found = {float(SSC().evaluate(inputs["size"], inputs["covered"], ALPHA)) for _ in range(4)}
    return {"different answers": len(found)}


def spread_sizes() -> Inputs:
    rng = np.random.default_rng(1)
    return {"size": rng.gamma(2.0, size=800), "covered": (rng.random(800) < 0.9).astype(int)}


TASKS = [
    trap(
        "slab: coverage is 0.9 everywhere",
        {"slab": 0.9},
        mean_slab(slab_ours),
        {"covmetrics": mean_slab(slab_covmetrics)},
        inputs=five_worlds,
        agree=within(3.5 * math.sqrt(0.9 * 0.1 / (5 * 50))),  # standard errors of five slabs of 50 rows
    ),
    trap(
        "slab: a column in other units",
        {"slab": 0.5},
        slab_ours,
        {"covmetrics": slab_covmetrics},
        inputs=scaled,
        agree=within(0.12),
    ),
    trap(
        "slab: rows that cannot be told apart",
        {"slab": float(np.mean(constant()["covered"]))},
        slab_ours,
        {"covmetrics": slab_covmetrics},
        inputs=constant,
        agree=within(0.03),  # measured on one half of the rows
    ),
    trap(
        "slab: sets that fail in a region",
        {"slab": 0.5},
        set_slab_ours,
        {"torchcp": lambda i: torchcp_slab(i, i["sets"])},
        inputs=failing_region,
        agree=within(0.12),
    ),
    trap(
        "slab: a class that does not occur",
        {"answers": True},
        lambda i: {"answers": math.isfinite(set_slab_ours(i)["slab"])},
        {"torchcp": lambda i: {"answers": math.isfinite(torchcp_slab(i, i["sets"])["slab"])}},
        inputs=few_classes,
    ),
    trap(
        "strata: twelve sizes of sets",
        {"largest gap": 0.0},
        sizes_ours,
        {"covmetrics": sizes_covmetrics},
        inputs=integer_sizes,
    ),
    trap(
        "strata: a size that is NaN",
        {"refused": True},
        unknown_size_ours,
        {"covmetrics": unknown_size_covmetrics},
        inputs=unknown_size,
    ),
    trap(
        "strata: the same call four times",
        {"different answers": 1},
        repeat_ours,
        {"covmetrics": repeat_covmetrics},
        inputs=spread_sizes,
    ),
]
