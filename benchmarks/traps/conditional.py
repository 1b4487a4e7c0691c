"""Coverage given x: what a classifier of coverage is fed with, and a search measured on other rows."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs
from benchmarks.traps.p_values import quiet
from benchmarks.traps.written import refused, trap, within

ALPHA = 0.1


def _ert(inputs: Inputs, **options: Any) -> float:
    from calipers.metrics import ert

    options = {"alpha": ALPHA, "random_state": 0} | options
    return float(ert(inputs["X"], inputs["covered"], **options))


def _boosting() -> Any:
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier


# Integer features: one value of the first column covers 60 %, the others 100 %; the L2 risk is 0.030.


def integers() -> Inputs:
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(4000, 3))
    return {"X": X, "covered": (rng.random(4000) < np.where(X[:, 0] == 0, 0.6, 1.0)).astype(int)}


INTEGERS = {"L2 risk": 0.25 * 0.3**2 + 0.75 * 0.1**2}


def integers_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import ERT
    from covmetrics.losses import brier_score

    model = ERT(_boosting())
    return {"L2 risk": float(model.evaluate(inputs["X"], inputs["covered"], ALPHA, loss=brier_score))}


# The same data as tensors: the KL risk is positive.


def tensors_ours(inputs: Inputs) -> Answers:
    import torch

    from calipers.metrics import ert

    X, z = torch.from_numpy(inputs["X"].astype(float)), torch.from_numpy(inputs["covered"])
    return {"positive": float(ert(X, z, alpha=ALPHA, loss="kl", random_state=0)) > 0}


def tensors_covmetrics(inputs: Inputs) -> Answers:
    import torch
    from covmetrics import ERT
    from covmetrics.losses import logloss
    from sklearn.linear_model import LogisticRegression

    X = torch.from_numpy((inputs["X"] == 0).astype(np.float64))
    z = torch.from_numpy(inputs["covered"])
    return {"positive": float(ERT(LogisticRegression).evaluate(X, z, ALPHA, loss=logloss)) > 0}


# Every row covered: excess risk 0.1. One miss in 600: 0.1 - 1/600 at most.


def normal_rows(misses: int) -> Inputs:
    covered = np.ones(600, int)
    covered[:misses] = 0
    return {"X": np.random.default_rng(2).normal(size=(600, 3)), "covered": covered}


def l1_ours(inputs: Inputs) -> Answers:
    return {"L1 risk": _ert(inputs)}


def l1_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import ERT

    return {"L1 risk": float(ERT(_boosting()).evaluate(inputs["X"], inputs["covered"], ALPHA))}


def one_miss_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import ERT

    return {"L1 risk": float(ERT().evaluate(inputs["X"], inputs["covered"], ALPHA))}


# alpha per row as a pandas series whose index is not 0, 1, 2, ...


def frame() -> Inputs:
    rng = np.random.default_rng(4)
    X = rng.normal(size=(2000, 2))
    alpha = np.where(X[:, 0] > 0, 0.05, 0.3)  # covered as promised everywhere: the risk is 0
    return {"X": X, "alpha": alpha, "covered": (rng.random(2000) < 1 - alpha).astype(int)}


def frame_ours(inputs: Inputs) -> Answers:
    import pandas as pd

    order = pd.Index(np.arange(2000)[::-1])
    alpha = pd.Series(inputs["alpha"], index=order)
    return {
        "L1 risk": _ert(
            {"X": pd.DataFrame(inputs["X"], index=order), "covered": inputs["covered"]}, alpha=alpha
        )
    }


def frame_covmetrics(inputs: Inputs) -> Answers:
    import pandas as pd
    from covmetrics import ERT
    from sklearn.linear_model import LogisticRegression

    order = pd.Index(np.arange(2000)[::-1])
    X, z = pd.DataFrame(inputs["X"], index=order), pd.Series(inputs["covered"], index=order)
    alpha = pd.Series(inputs["alpha"], index=order)
    return {"L1 risk": float(ERT(LogisticRegression).evaluate(X, z, alpha))}


# What is not a level, or not a probability, is refused.


def nan_alpha() -> Inputs:
    inputs = frame()
    alpha = inputs["alpha"].copy()
    alpha[7] = np.nan
    return inputs | {"alpha": alpha}


def nan_alpha_ours(inputs: Inputs) -> Answers:
    return refused(lambda: _ert(inputs, alpha=inputs["alpha"]))


def nan_alpha_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import ERT
    from sklearn.linear_model import LogisticRegression

    return refused(lambda: ERT(LogisticRegression).evaluate(inputs["X"], inputs["covered"], inputs["alpha"]))


def low() -> Inputs:
    """One value of the first column covers 55 %, the others 98 %: a hard label is 1 everywhere."""
    rng = np.random.default_rng(0)
    X = rng.integers(0, 4, size=(4000, 3)).astype(float)
    return {"X": X, "covered": (rng.random(4000) < np.where(X[:, 0] == 0, 0.55, 0.98)).astype(int)}


def hard_labels_ours(inputs: Inputs) -> Answers:
    from sklearn.linear_model import SGDClassifier

    return refused(lambda: _ert(inputs, classifier=SGDClassifier(random_state=0)), also=lambda e: e > 0)


def hard_labels_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import ERT
    from sklearn.linear_model import SGDClassifier

    X = inputs["X"].astype(float)
    return refused(lambda: ERT(SGDClassifier).evaluate(X, inputs["covered"], ALPHA), also=lambda e: e > 0)


# Perfect sets, and the rows the classifier was fitted on: the honest answer is near 0.


def perfect() -> Inputs:
    rng = np.random.default_rng(8)
    return {"X": rng.normal(size=(1000, 5)), "covered": (rng.random(1000) < 0.9).astype(int)}


def reused_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import ERT

    model = ERT(_boosting())
    model.fit(inputs["X"], inputs["covered"])
    return {"L1 risk": float(model.evaluate(inputs["X"], inputs["covered"], ALPHA, n_splits=0))}


# Booleans and text are what people have.


def booleans_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import ert_table

    table = ert_table(inputs["X"], inputs["covered"].astype(bool), alpha=ALPHA, random_state=0)
    return {"answers": bool(np.isfinite(float(table["kl"])))}


def booleans_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import ERT
    from sklearn.linear_model import LogisticRegression

    table = ERT(LogisticRegression).evaluate_multiple_losses(
        inputs["X"], inputs["covered"].astype(bool), ALPHA
    )
    return {"answers": bool(np.isfinite(float(table["ERT_logloss"])))}


def text_frame(inputs: Inputs) -> Any:
    import pandas as pd

    return pd.DataFrame({"x": inputs["X"][:, 0], "kind": np.where(inputs["X"][:, 1] > 0, "a", "b")})


def text_ours(inputs: Inputs) -> Answers:
    found = _ert({"X": text_frame(inputs), "covered": inputs["covered"]})
    return {"answers": math.isfinite(found)}


def text_covmetrics(inputs: Inputs) -> Answers:
    import pandas as pd
    from covmetrics import ERT

    found = float(ERT().evaluate(text_frame(inputs), pd.Series(inputs["covered"]), ALPHA))
    return {"answers": math.isfinite(found)}


def groups_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import coverage_gap

    return {"gap": float(coverage_gap(inputs["covered"], inputs["groups"], alpha=ALPHA))}


def groups_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import CovGap

    return {"gap": float(CovGap().evaluate(inputs["groups"], inputs["covered"], ALPHA))}


GROUPS = {"groups": np.repeat(["a", "b"], 10), "covered": np.repeat([1, 1, 0, 1], 5)}  # coverage 1 and 0.5


TASKS = [
    trap(
        "conditional: integer features",
        INTEGERS,
        lambda i: {"L2 risk": _ert(i, loss="l2")},
        {"covmetrics": integers_covmetrics},
        inputs=integers,
        agree=within(0.01),
    ),
    trap(
        "conditional: tensors",
        {"positive": True},
        tensors_ours,
        {"covmetrics": quiet(tensors_covmetrics)},
        inputs=integers,
    ),
    trap(
        "conditional: every row covered",
        {"L1 risk": 0.1},
        l1_ours,
        {"covmetrics": l1_covmetrics},
        inputs=normal_rows(0),
    ),
    trap(
        "conditional: one miss in 600 rows",
        {"L1 risk": 0.1 - 1 / 600},
        l1_ours,
        {"covmetrics": one_miss_covmetrics},
        inputs=normal_rows(1),
        agree=within(0.005),
    ),
    trap(
        "conditional: alpha by row with an index",
        {"L1 risk": 0.0},
        frame_ours,
        {"covmetrics": frame_covmetrics},
        inputs=frame,
        agree=within(0.03),
    ),
    trap(
        "conditional: NaN among the alphas",
        {"refused": True},
        nan_alpha_ours,
        {"covmetrics": nan_alpha_covmetrics},
        inputs=nan_alpha,
    ),
    trap(
        "conditional: a classifier without probabilities",
        {"refused": True},
        quiet(hard_labels_ours),
        {"covmetrics": quiet(hard_labels_covmetrics)},
        inputs=low,
    ),
    trap(
        "conditional: the rows the classifier has seen",
        {"L1 risk": 0.0},
        l1_ours,
        {"covmetrics": reused_covmetrics},
        inputs=perfect,
        agree=within(0.03),
    ),
    trap(
        "conditional: coverage as booleans",
        {"answers": True},
        booleans_ours,
        {"covmetrics": booleans_covmetrics},
        inputs=perfect,
    ),
    trap(
        "conditional: a column of text",
        {"answers": True},
        text_ours,
        {"covmetrics": quiet(text_covmetrics)},
        inputs=perfect,
    ),
    trap(
        "conditional: groups named by text",
        {"gap": 0.25},
        groups_ours,
        {"covmetrics": groups_covmetrics},
        inputs=GROUPS,
    ),
]
