"""Calibration error of 10 million scores: spread, crowded, rounded, sorted; against an argsort and peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task

SIZES = (100_000, 1_000_000, 10_000_000)


def crowded(rng: np.random.Generator, n: int) -> np.ndarray:
    """All but two scores within 1e-7 of one half: every row falls into one bucket."""
    f = 0.5 + 1e-7 * rng.random(n)
    f[:2] = 0.0, 1.0
    return f


SCORES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "spread": lambda rng, n: rng.random(n),
    "near 0": lambda rng, n: 1e-4 * rng.random(n),
    "near 0 and 1": lambda rng, n: rng.beta(0.05, 0.05, n),
    "crowded": crowded,
    "three decimals": lambda rng, n: np.round(rng.random(n), 3),
    "one decimal": lambda rng, n: np.round(rng.random(n), 1),
    "constant": lambda _, n: np.full(n, 0.5),
    "sorted": lambda rng, n: np.sort(rng.random(n)),
}


def prepare(kind: str) -> Callable[[int], Inputs]:
    def make(n: int) -> Inputs:
        rng = np.random.default_rng(0)
        f = SCORES[kind](rng, n)
        return {"f": f, "y": rng.random(n) < f}

    return make


def kernel(inputs: Inputs) -> Answers:
    from calipers.metrics.reliability import BinaryRows, sup_interval

    return {"error": sup_interval(BinaryRows(inputs["f"], inputs["y"])).value}


def measure(inputs: Inputs) -> Answers:
    from calipers.metrics import calibration_error

    return {"error": float(calibration_error(inputs["y"], inputs["f"], random_state=0))}


def argsort(inputs: Inputs) -> Any:
    return np.argsort(inputs["f"])


def exact(inputs: Inputs) -> Answers:
    order = np.argsort(inputs["f"], kind="stable")
    f = inputs["f"][order]
    walk = np.cumsum(inputs["y"][order] - f)[np.append(f[1:] != f[:-1], True)]
    return {"error": (max(0.0, walk.max()) - min(0.0, walk.min())) / f.size}


def netcal(inputs: Inputs) -> Answers:
    """The 15-bin ECE: another number, timed beside ours."""
    from netcal.metrics import ECE

    return {"ece": float(ECE(15).measure(inputs["f"], inputs["y"].astype(int)))}


def mcgrad(inputs: Inputs) -> Answers:
    from mcgrad.metrics import ecce

    return {"error": float(ecce(inputs["y"].astype(float), inputs["f"]))}


def probcal(inputs: Inputs) -> Answers:
    """The largest absolute deviation of the walk, not its range."""
    from probcal.metrics import ecce

    return {"largest_deviation": float(ecce(inputs["y"].astype(float), inputs["f"]).stat_max)}


def probmetrics(inputs: Inputs) -> Answers:
    import torch
    from probmetrics.distributions import CategoricalDirac, CategoricalProbs
    from probmetrics.metrics import KuiperCalibrationMetric

    f = torch.from_numpy(inputs["f"])
    stated = CategoricalProbs(torch.stack([1 - f, f], dim=1))
    happened = CategoricalDirac(torch.from_numpy(inputs["y"].astype(np.int64)), n_classes=2)
    return {"error": float(KuiperCalibrationMetric().compute(happened, stated))}


def mapie(inputs: Inputs) -> Answers:
    """Kuiper's statistic in the unit of c_emp; it leaves out the walk's start."""
    from mapie.metrics.calibration import kuiper_statistic, length_scale

    return {
        "error": float(kuiper_statistic(inputs["y"].astype(float), inputs["f"]) * length_scale(inputs["f"]))
    }


def relplot(inputs: Inputs) -> Answers:
    """The smooth calibration error: another number."""
    from relplot import smECE

    return {"smooth_error": float(smECE(f=inputs["f"], y=inputs["y"].astype(float)))}


def scikit_learn(inputs: Inputs) -> Answers:
    """The reliability curve of 15 bins: scikit-learn has no calibration error."""
    from sklearn.calibration import calibration_curve

    share, stated = calibration_curve(inputs["y"], inputs["f"], n_bins=15)
    return {"largest_gap": float(np.abs(share - stated).max())}


PEERS = {
    "netcal": netcal, "mcgrad": mcgrad, "probcal": probcal, "probmetrics": probmetrics, "mapie": mapie,
    "relplot": relplot, "scikit-learn": scikit_learn,
}  # fmt: skip


def same_error(ours: Answers, theirs: Answers) -> bool:
    """Equal up to the rounding of ten million terms."""
    return abs(float(ours["error"]) - float(theirs["error"])) < 1e-9


TASKS = [
    Task(
        name=f"calibration error of {kind} scores",
        sizes=SIZES,
        prepare=prepare(kind),
        ours=kernel,
        peers=PEERS if kind == "spread" else {},
        limit=argsort,
        exact=exact,
        agree=same_error,
        bar=(
            "at most 0.35 of an argsort, 30 bytes per row, faster than every peer"
            if kind == "spread"
            else "at most 1.2 of an argsort, 30 bytes per row"
        ),
        quick=kind in {"spread", "three decimals"},
    )
    for kind in SCORES
] + [
    Task(
        name="calibration error with bounds and test",
        sizes=SIZES,
        prepare=prepare("spread"),
        ours=measure,
        limit=argsort,
        exact=exact,
        agree=same_error,
        bar="everything calibration_error returns, checks included, in less than an argsort",
        quick=False,
    )
]
