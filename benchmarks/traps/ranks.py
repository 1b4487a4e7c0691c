"""The threshold is an order statistic: ceil((n + 1)(1 - alpha)) in integers, infinite when there is none."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task
from benchmarks.stand_ins import zero_regressor
from benchmarks.traps.written import refused, trap


def exact_rank(n: int, alpha: str) -> int:
    """ceil((n + 1)(1 - alpha)) in rational arithmetic."""
    return math.ceil((n + 1) * (1 - Fraction(alpha)))


def our_radius(scores: np.ndarray, alpha: float) -> float:
    from calipers.conformal import conformal_quantile

    return float(conformal_quantile(scores, alpha))


def crepes_radius(scores: np.ndarray, alpha: float) -> float:
    from crepes import ConformalRegressor

    model = ConformalRegressor()
    model.fit(residuals=scores)
    return float(model.predict_int(np.zeros(1), confidence=1 - alpha)[0, 1])


def mapie_radius(scores: np.ndarray, alpha: float) -> float:
    from mapie.regression import SplitConformalRegressor

    split = SplitConformalRegressor(zero_regressor(), confidence_level=1 - alpha, prefit=True)
    split.conformalize(np.zeros((len(scores), 1)), scores)
    return float(split.predict_interval(np.zeros((1, 1)))[1][0, 1, 0])


def nonconformist_radius(scores: np.ndarray, alpha: float) -> float:
    from nonconformist.nc import AbsErrorErrFunc

    return float(AbsErrorErrFunc().apply_inverse(scores, alpha)[0][0])


def puncc_radius(scores: np.ndarray, alpha: float) -> float:
    from deel.puncc.api.prediction import BasePredictor
    from deel.puncc.regression import SplitCP

    model = SplitCP(BasePredictor(zero_regressor(), is_trained=True), train=False)
    model.fit(X_calib=np.zeros((len(scores), 1)), y_calib=scores)
    return float(np.asarray(model.predict(np.zeros((2, 1)), alpha=alpha)[2])[0])


def _torchcp_threshold(name: str, scores: np.ndarray, alpha: float) -> float:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    predictor, score, _ = torchcp_rooms()
    model = getattr(predictor, name)(score.LAC(score_type="identity"), device=torch.device("cpu"))
    column = torch.from_numpy(1.0 - np.asarray(scores, float))[:, None]  # LAC is 1 - p
    model.calculate_threshold(column, torch.zeros(len(scores), dtype=torch.long), alpha)
    return float(torch.as_tensor(model.q_hat).flatten()[0])


def torchcp_radius(scores: np.ndarray, alpha: float) -> float:
    return _torchcp_threshold("SplitPredictor", scores, alpha)


def torchcp_label_radius(scores: np.ndarray, alpha: float) -> float:
    return _torchcp_threshold("ClassConditionalPredictor", scores, alpha)


RADII = {
    "crepes": crepes_radius,
    "mapie": mapie_radius,
    "nonconformist": nonconformist_radius,
    "puncc": puncc_radius,
    "torchcp": torchcp_radius,
}


def one(radius: Any) -> Any:
    """The threshold of scores 1..n at one level."""

    def run(inputs: Inputs) -> Answers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return {"radius": radius(np.arange(1.0, int(inputs["n"]) + 1), float(inputs["alpha"]))}

    return run


def rank_trap(key: str, n: int, alpha: str) -> Task:
    rank = exact_rank(n, alpha)
    return trap(
        key,
        {"radius": float(rank) if rank <= n else math.inf},
        one(our_radius),
        {name: one(radius) for name, radius in RADII.items()},
        inputs={"n": n, "alpha": float(alpha)},
    )


# Levels 0.1 to 0.9 have a finite threshold at every one of these sizes.
SIZES, LEVELS = (99, 149, 199, 299), tuple(f"0.{level:02d}" for level in range(10, 91))


def sweep(radius: Any) -> Any:
    """How many thresholds of a table of sizes and levels are another rank than the exact one."""

    def run(_: Inputs) -> Answers:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wrong = [
                radius(np.arange(1.0, n + 1), float(alpha)) != exact_rank(n, alpha)
                for n in SIZES
                for alpha in LEVELS
            ]
        return {"wrong thresholds": sum(wrong)}

    return run


def infinite_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import coverage

    return {"coverage": float(coverage(inputs["y"], inputs["intervals"]))}


def infinite_mapie(inputs: Inputs) -> Answers:
    from mapie.metrics.regression import regression_coverage_score

    return {"coverage": float(regression_coverage_score(inputs["y"], inputs["intervals"][:, :, None])[0])}


def unseen_ours(inputs: Inputs) -> Answers:
    from calipers.conformal import ConformalRegressor

    X = np.zeros((len(inputs["scores"]), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConformalRegressor(zero_regressor(), groups=lambda x: x[:, 0])
        model.fit(X, inputs["scores"]).conformalize(X, inputs["scores"])
        return {"infinite": bool(np.isinf(model.predict_interval(np.ones((1, 1)), alpha=0.1)).all())}


def unseen_crepes(inputs: Inputs) -> Answers:
    from crepes import ConformalRegressor

    model = ConformalRegressor()
    model.fit(residuals=inputs["scores"], bins=np.zeros(len(inputs["scores"]), int))
    found = model.predict_int(np.zeros(1), confidence=0.9, bins=np.ones(1, int))
    return {"infinite": bool(np.isinf(found).all())}


def empty_ours(_: Inputs) -> Answers:
    from calipers.conformal import conformal_quantile

    return refused(lambda: conformal_quantile(np.array([]), 0.1), also=np.isinf)


def pac_ours(_: Inputs) -> Answers:
    from calipers.conformal import smallest_pac_size

    return {"rows": [smallest_pac_size(alpha, delta=1e-5) for alpha in (0.2, 0.3, 0.4)]}


TASKS = [
    rank_trap("rank: n = 99, alpha = 0.1", 99, "0.1"),
    rank_trap("rank: n = 9, alpha = 0.1", 9, "0.1"),
    rank_trap("rank: n = 19, alpha = 0.05", 19, "0.05"),
    rank_trap("rank: n = 8, alpha = 0.1", 8, "0.1"),
    rank_trap("rank: n = 149, alpha = 0.18", 149, "0.18"),
    trap(
        "rank: a table of sizes and levels",
        {"wrong thresholds": 0},
        sweep(our_radius),
        {name: sweep(radius) for name, radius in RADII.items()},
    ),
    trap(
        "rank: label-conditional at alpha = 0.4",
        {"radius": float(exact_rank(49, "0.4"))},
        one(our_radius),
        {"torchcp": one(torchcp_label_radius)},
        inputs={"n": 49, "alpha": 0.4},
    ),
    trap(
        "rank: infinite intervals cover",
        {"coverage": 1.0},
        infinite_ours,
        {"mapie": infinite_mapie},
        inputs={"y": np.zeros(4), "intervals": np.tile([-np.inf, np.inf], (4, 1))},
    ),
    trap(
        "rank: a group never calibrated",
        {"infinite": True},
        unseen_ours,
        {"crepes": unseen_crepes},
        inputs={"scores": np.arange(1.0, 50.0)},
    ),
    trap("rank: no calibration rows", {"refused": True}, empty_ours, {}),
    trap("rank: rows a PAC threshold needs", {"rows": [52, 33, 23]}, pac_ours, {}),
]
