"""Traps of the field: small inputs on which a released library has been seen to be wrong.

Each is a `Task` of one size with the exact answer, worked out by hand or by integer arithmetic.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs, Task


def trap(
    name: str, inputs: dict[str, Any], exact: Any, ours: Any, peers: dict[str, Any], agree: Any = None
) -> Task:
    """A task of one size whose inputs and exact answer are written down."""
    return Task(
        name=name,
        sizes=(1,),
        prepare=lambda _: inputs,
        exact=lambda _: exact,
        ours=ours,
        peers=peers,
        agree=agree,
    )


# --- ranks: n = 99 scores 1..99 at alpha = 0.1 need the 90th, n = 9 needs the 9th ---------------


def rank_ours(i: Inputs) -> Answers:
    from calipers.conformal import conformal_quantile

    return {"radius": conformal_quantile(i["scores"], float(i["alpha"]))}


def rank_crepes(i: Inputs) -> Answers:
    from crepes import ConformalRegressor

    model = ConformalRegressor()
    model.fit(residuals=i["scores"])
    return {"radius": float(model.predict_int(np.zeros(1), confidence=1 - float(i["alpha"]))[0, 1])}


def rank_mapie(i: Inputs) -> Answers:
    from mapie.regression import SplitConformalRegressor
    from sklearn.dummy import DummyRegressor

    scores = i["scores"]
    model = DummyRegressor(strategy="constant", constant=0.0).fit(np.zeros((2, 1)), np.zeros(2))
    split = SplitConformalRegressor(model, confidence_level=1 - float(i["alpha"]), prefit=True)
    split.conformalize(np.zeros((len(scores), 1)), scores)
    return {"radius": float(split.predict_interval(np.zeros((1, 1)))[1][0, 1, 0])}


def rank_nonconformist(i: Inputs) -> Answers:
    from nonconformist.nc import AbsErrorErrFunc

    return {
        "radius": float(AbsErrorErrFunc().apply_inverse(np.sort(i["scores"])[::-1], float(i["alpha"]))[0])
    }


def rank_trap(n: int, alpha: float) -> Task:
    scores = np.arange(1.0, n + 1)
    rank = math.ceil((n + 1) * (1 - Fraction(str(alpha))))
    exact = {"radius": float(rank) if rank <= n else np.inf}
    peers = {"crepes": rank_crepes, "mapie": rank_mapie, "nonconformist": rank_nonconformist}
    return trap(
        f"threshold of {n} scores at alpha {alpha}",
        {"scores": scores, "alpha": alpha},
        exact,
        rank_ours,
        peers,
    )


# --- a group without calibration rows: anything but a finite interval ---------------------------


def unseen_ours(i: Inputs) -> Answers:
    import warnings

    from sklearn.dummy import DummyRegressor

    from calipers.conformal import ConformalRegressor

    X = np.zeros((len(i["scores"]), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ConformalRegressor(
            DummyRegressor(strategy="constant", constant=0.0), groups=lambda x: x[:, 0]
        )
        model.fit(X, i["scores"]).conformalize(X, i["scores"])
        return {"infinite": bool(np.isinf(model.predict_interval(np.ones((1, 1)), alpha=0.1)).all())}


def unseen_crepes(i: Inputs) -> Answers:
    from crepes import ConformalRegressor

    model = ConformalRegressor()
    model.fit(residuals=i["scores"], bins=np.zeros(len(i["scores"]), int))
    found = model.predict_int(np.zeros(1), confidence=0.9, bins=np.ones(1, int))
    return {"infinite": bool(np.isinf(found).all())}


# --- c_emp of a perfectly calibrated constant, positives listed first ---------------------------


def constant_ours(i: Inputs) -> Answers:
    from calipers.metrics import calibration_error

    return {"error": float(calibration_error(i["y"], i["f"], random_state=0))}


def constant_mcgrad(i: Inputs) -> Answers:
    import pandas as pd
    from mcgrad.metrics import ecce

    frame = pd.DataFrame({"y": i["y"], "f": i["f"]})
    return {"error": float(ecce(frame["y"].to_numpy(), frame["f"].to_numpy()))}


def constant_probcal(i: Inputs) -> Answers:
    from probcal.metrics import ecce

    return {"error": float(ecce(i["y"], i["f"]))}


CONSTANT = {"y": np.repeat([1.0, 0.0], 500), "f": np.full(1000, 0.5)}


# --- ERT with an integer feature matrix ---------------------------------------------------------


def ert_inputs() -> Inputs:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(2000, 3))
    return {"X": X, "covered": (rng.random(2000) < np.where(X[:, 0] == 0, 0.6, 1.0)).astype(int)}


def ert_ours(i: Inputs) -> Answers:
    from calipers.metrics import ert

    return {"positive": float(ert(i["X"], i["covered"], alpha=0.1, loss="l2", random_state=0)) > 0}


def ert_covmetrics(i: Inputs) -> Answers:
    from covmetrics import ERT
    from covmetrics.losses import brier_score

    return {"positive": ERT().evaluate(i["X"], i["covered"], 0.1, loss=brier_score) > 0}


def ert_all_covered_ours(i: Inputs) -> Answers:
    from calipers.metrics import ert

    return {"error": float(ert(i["X"], np.ones(600), alpha=0.1, random_state=0))}


def ert_all_covered_covmetrics(i: Inputs) -> Answers:
    from covmetrics import ERT
    from sklearn.ensemble import HistGradientBoostingClassifier

    return {"error": float(ERT(HistGradientBoostingClassifier).evaluate(i["X"], np.ones(600, int), 0.1))}


# --- the worst slab where coverage is 0.9 everywhere --------------------------------------------


def slab_inputs() -> Inputs:
    rng = np.random.default_rng(1)
    return {"X": rng.normal(size=(1000, 5)), "covered": (rng.random(1000) < 0.9).astype(int)}


def slab_ours(i: Inputs) -> Answers:
    from calipers.metrics import worst_slab_coverage

    return {"slab": float(worst_slab_coverage(i["X"], i["covered"], alpha=0.1, random_state=0))}


def slab_covmetrics(i: Inputs) -> Answers:
    from covmetrics import WSC

    return {"slab": float(WSC().evaluate(i["X"], i["covered"], delta=0.1, M=200))}


def near_nominal(exact: Answers, found: Answers) -> bool:
    """Within four standard errors of the truth for the hundred rows of the smallest slab."""
    return bool(abs(float(found["slab"]) - float(exact["slab"])) < 4 * math.sqrt(0.9 * 0.1 / 100))


# --- missing values must not become an answer ---------------------------------------------------


def nan_ours(i: Inputs) -> Answers:
    from calipers.metrics import coverage

    try:
        coverage(i["y"], i["intervals"])
    except ValueError:
        return {"refused": True}
    return {"refused": False}


def nan_mapie(i: Inputs) -> Answers:
    from mapie.metrics.regression import regression_coverage_score

    try:
        found = float(regression_coverage_score(i["y"], i["intervals"][:, :, None])[0])
    except ValueError:
        return {"refused": True}
    return {"refused": math.isnan(found)}


MISSING = {"y": np.array([0.0, np.nan, np.nan]), "intervals": np.tile([-1.0, 1.0], (3, 1))}

TASKS = [
    rank_trap(99, 0.1),
    rank_trap(9, 0.1),
    rank_trap(8, 0.1),
    rank_trap(149, 0.18),
    trap(
        "interval of a group never calibrated",
        {"scores": np.arange(1.0, 50.0)},
        {"infinite": True},
        unseen_ours,
        {"crepes": unseen_crepes},
    ),
    trap(
        "calibration error of a calibrated constant",
        CONSTANT,
        {"error": 0.0},
        constant_ours,
        {"mcgrad": constant_mcgrad, "probcal": constant_probcal},
    ),
    trap(
        "ERT with integer features is positive",
        ert_inputs(),
        {"positive": True},
        ert_ours,
        {"covmetrics": ert_covmetrics},
    ),
    trap(
        "ERT when every row is covered",
        {"X": np.random.default_rng(2).normal(size=(600, 3))},
        {"error": 0.1},
        ert_all_covered_ours,
        {"covmetrics": ert_all_covered_covmetrics},
    ),
    trap(
        "worst slab where coverage is 0.9 everywhere",
        slab_inputs(),
        {"slab": 0.9},
        slab_ours,
        {"covmetrics": slab_covmetrics},
        near_nominal,
    ),
    trap("coverage of rows with NaN is refused", MISSING, {"refused": True}, nan_ours, {"mapie": nan_mapie}),
]
