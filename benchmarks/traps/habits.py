"""Habits: metrics that refuse what they cannot read, leave global state alone, and say how noisy they are."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs
from benchmarks.traps.p_values import quiet
from benchmarks.traps.written import refused, trap, within

ALPHA = 0.1


def coverage_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import coverage

    return {"coverage": float(coverage(inputs["y"], inputs["prediction"]))}


def interval_mapie(inputs: Inputs) -> Answers:
    from mapie.metrics.regression import regression_coverage_score

    return {"coverage": float(regression_coverage_score(inputs["y"], inputs["prediction"][:, :, None])[0])}


def interval_puncc(inputs: Inputs) -> Answers:
    from deel.puncc.metrics import regression_mean_coverage

    lower, upper = inputs["prediction"].T
    return {"coverage": float(regression_mean_coverage(inputs["y"], lower, upper))}


def label_mapie(inputs: Inputs) -> Answers:
    from mapie.metrics.classification import classification_coverage_score

    found = classification_coverage_score(inputs["y"], inputs["prediction"][:, :, None])
    return {"coverage": float(found[0])}


def nan_refused(function: Any) -> Any:
    return lambda inputs: refused(lambda: function(inputs), also=lambda found: math.isnan(found["coverage"]))


MISSING = {"y": np.array([0.0, np.nan, np.nan]), "prediction": np.tile([-1.0, 1.0], (3, 1))}
TEXT = {"y": np.array(["cat", "dog", "cat"]), "prediction": np.array([[1, 0], [1, 0], [1, 1]], bool)}
ENDS = {"y": np.array([1.0, 2.0, 3.0]), "prediction": np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.0]])}


# Coverage by label where two of four labels do not occur: absent labels have no coverage.


def absent_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import label_stratified_coverage

    covered = inputs["sets"][np.arange(4), inputs["y"]]
    return {"worst label": float(label_stratified_coverage(covered, inputs["y"]))}


def absent_torchcp(inputs: Inputs) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    found = torchcp_rooms()[2].coverage_rate(
        torch.from_numpy(inputs["sets"].astype(np.int64)), torch.from_numpy(inputs["y"]), "macro", 4
    )
    return {"worst label": float(found)}


ABSENT = {"sets": np.ones((4, 4), bool), "y": np.array([0, 1, 0, 1])}


# Sets larger than every stratum of sizes.


def large_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import sscv

    covered = inputs["sets"][np.arange(20), inputs["y"]]
    return {"violation": float(sscv(covered, inputs["sets"].sum(axis=1), alpha=ALPHA))}


def large_torchcp(inputs: Inputs) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    found = torchcp_rooms()[2].SSCV(
        torch.from_numpy(inputs["sets"].astype(np.int64)), torch.from_numpy(inputs["y"]), ALPHA
    )
    return {"violation": float(found)}


def large() -> Inputs:
    return {"sets": np.ones((20, 1200), bool), "y": np.arange(20)}


# Criterion E, labels beyond the one needed: three of four labels kept cost more than one.


def excess_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import efficiency

    wide, narrow = (
        float(efficiency(inputs["y"], inputs[name], alpha=ALPHA, classes=np.arange(4))["E"])
        for name in ("wide", "narrow")
    )
    return {"E": [wide, narrow]}


def excess_torchcp(inputs: Inputs) -> Answers:
    import torch

    from benchmarks.torchcp_parts import torchcp_rooms

    # Scores 1..9: a test score of 11 - 10 p gets the p-value p.
    calibration = torch.arange(1.0, 10.0)
    found = [
        float(
            torchcp_rooms()[2].pvalue_criterion_E(
                calibration, torch.from_numpy(np.round(11.0 - 10.0 * inputs[name])), ALPHA
            )
        )
        for name in ("wide", "narrow")
    ]
    return {"E": found}


EXCESS = {
    "y": np.zeros(5, int),
    "wide": np.tile([0.9, 0.5, 0.3, 0.1], (5, 1)),
    "narrow": np.tile([0.9, 0.1, 0.1, 0.1], (5, 1)),
}


# The global random state before and after.


def untouched(call: Any) -> Answers:
    """Whether numpy's global state is what it was; it is put back either way."""
    before = np.random.get_state()  # noqa: NPY002 - the state that must not move
    try:
        call()
        after = np.random.get_state()  # noqa: NPY002
    finally:
        np.random.set_state(before)  # noqa: NPY002
    return {"untouched": before[2] == after[2] and bool(np.array_equal(before[1], after[1]))}


def random_rows() -> Inputs:
    rng = np.random.default_rng(0)
    return {"X": rng.normal(size=(300, 3)), "covered": (rng.random(300) < 0.9).astype(int)}


def state_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import worst_slab_coverage

    return untouched(lambda: worst_slab_coverage(inputs["X"], inputs["covered"], alpha=ALPHA, random_state=0))


def state_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import WSC

    return untouched(lambda: WSC().evaluate(inputs["X"], inputs["covered"], delta=0.1, M=20))


def state_crepes(inputs: Inputs) -> Answers:
    from crepes import ConformalPredictiveSystem

    model = ConformalPredictiveSystem()
    model.fit(residuals=inputs["X"][:, 0])
    return untouched(lambda: model.predict(np.zeros(3), y=np.zeros(3), seed=5))


# The seed decides what is drawn, and only None draws anew.


def hsic_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import size_coverage_hsic

    size = np.abs(inputs["X"][:, 0])
    found = [
        float(size_coverage_hsic(inputs["covered"], size * unit, random_state=0)) for unit in (1.0, 1000.0)
    ]
    return {"same in other units": bool(math.isclose(*found, rel_tol=1e-6))}


def hsic_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import HSIC

    size = np.abs(inputs["X"][:, 0])
    found = [float(HSIC().evaluate(size * unit, inputs["covered"].astype(float))) for unit in (1.0, 1000.0)]
    return {"same in other units": bool(math.isclose(*found, rel_tol=1e-6))}


# T-CV, T-SS and Property 1: nobody else has them; the paper's reader can still fall into them.


def floor_ours(_: Inputs) -> Answers:
    from calipers.metrics import t_cv

    rng = np.random.default_rng(0)
    found = t_cv(rng.random(20_000) < 0.9, rng.random(20_000), alpha=ALPHA, n_bins=50)
    return {"95 % point": float(found.null_high)}


def flat_ours(_: Inputs) -> Answers:
    from calipers.metrics import t_ss

    rng = np.random.default_rng(0)
    found = t_ss(np.ones(500), rng.integers(1, 5, 500), rng.random(500), n_bins=10, random_state=0)
    return {"NaN with a reason": bool(math.isnan(float(found)) and found.reason)}


def opposite_ours(_: Inputs) -> Answers:
    from calipers.metrics import difficulty_concordance

    ranks = np.repeat([1.0, 9.0], 500)
    found = difficulty_concordance(ranks, 10 - ranks, group_size=50, n_draws=2000, random_state=0)
    return {"below one half": float(found) < 0.5}


# The squared distance of a predictive distribution, for residuals measured in units of 10.


def crps_crepes(inputs: Inputs) -> Answers:
    from crepes import ConformalPredictiveSystem

    model = ConformalPredictiveSystem()
    sigmas = np.full(len(inputs["residuals"]), 10.0)
    model.fit(residuals=inputs["residuals"] * 10, sigmas=sigmas)
    found = model.evaluate(np.zeros(1), inputs["y"] * 10, sigmas=np.full(1, 10.0), metrics=["CRPS"], seed=0)
    return {"CRPS": float(found["CRPS"])}


def crps_by_hand(residuals: np.ndarray, y: float) -> float:
    """Integral of (F - 1[t >= y])^2 over the steps of F, exact for the step function crepes uses."""
    ordered = np.sort(residuals)
    total = 0.0
    for i, (a, b) in enumerate(pairwise(ordered), start=1):
        share = i / len(ordered)
        below, above = max(0.0, min(b, y) - a), max(0.0, b - max(a, y))
        total += share**2 * below + (1 - share) ** 2 * above
    return total


CRPS = {"residuals": np.linspace(-1.0, 1.0, 21), "y": np.array([0.23])}


# What an import does besides importing, in a fresh interpreter.


def fresh(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    return done.stdout.strip()


def filters_after(module: str) -> Any:
    # What the library builds on may have filters of its own.
    below = (
        "numpy",
        "scipy.stats",
        "sklearn.ensemble",
        "sklearn.linear_model",
        "pandas",
        "torch",
        "narwhals",
    )
    code = (
        "import importlib, importlib.util, warnings\n"
        f"for m in {below!r}:\n"
        "    if importlib.util.find_spec(m.partition('.')[0]): importlib.import_module(m)\n"
        f"before = list(warnings.filters)\nimport {module}\nprint(list(warnings.filters) == before)"
    )
    return lambda _: {"warning filters unchanged": fresh(code) == "True"}


def importable(*modules: str) -> Any:
    code = f"import importlib; [importlib.import_module(m) for m in {modules!r}]; print('all')"
    return lambda _: {"all import": fresh(code) == "all"}


def first_online_crepes(_: Inputs) -> Answers:
    from crepes import ConformalRegressor

    model = ConformalRegressor()
    model.fit(residuals=np.linspace(0.1, 0.8, 10))
    options = {"smoothing": False, "warm_start": False}
    return {"first p": float(model.predict_p_online(np.zeros(3), np.full(3, 0.9), **options)[0])}


def single_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import ert_table

    table = ert_table(inputs["X"], inputs["covered"], alpha=np.float32(ALPHA), random_state=0)
    return {"answers": bool(np.isfinite(float(table["l2_over"])))}


def single_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import ERT
    from sklearn.linear_model import LogisticRegression

    table = ERT(LogisticRegression).evaluate_multiple_losses(
        inputs["X"], inputs["covered"].astype(float), np.float32(ALPHA)
    )
    return {"answers": bool(np.isfinite(float(table["ERT_brier_score_over"])))}


def outcomes_ours(inputs: Inputs) -> Answers:
    from calipers.metrics import equal_opportunity_gap

    return {"gap": float(equal_opportunity_gap(inputs["covered"], inputs["y"], alpha=ALPHA))}


def outcomes_covmetrics(inputs: Inputs) -> Answers:
    from covmetrics import EOC

    return {"gap": float(EOC().evaluate(inputs["y"], inputs["covered"], ALPHA))}


OUTCOMES = {"y": np.repeat(np.arange(12), 50), "covered": (np.arange(600) % 10 != 0).astype(int)}

TASKS = [
    trap(
        "habit: importing leaves warnings alone",
        {"warning filters unchanged": True},
        filters_after("calipers.metrics, calipers.conformal"),
        {
            "crepes": filters_after("crepes"),
            "covmetrics": filters_after("covmetrics"),
            "mapie": filters_after("mapie.classification"),
        },
    ),
    trap(
        "habit: every module imports",
        {"all import": True},
        importable(*(f"calipers.{room}" for room in ("conformal", "metrics", "calibration", "performance"))),
        {
            "nonconformist": importable("nonconformist.icp", "nonconformist.acp", "nonconformist.evaluation"),
            "torchcp": importable("torchcp"),
            "crepes": importable("crepes", "crepes.extras"),
            "mapie": importable("mapie.classification", "mapie.regression", "mapie.metrics"),
        },
    ),
    trap(
        "online: the first row of a cold start",
        {"first p": 1.0},
        None,
        {"crepes": first_online_crepes},
    ),
    trap(
        "predictive distribution: CRPS in other units",
        {"CRPS": 10 * crps_by_hand(CRPS["residuals"], 0.23)},
        None,
        {"crepes": quiet(crps_crepes)},
        inputs=CRPS,
        agree=within(0.02),
    ),
    trap(
        "conditional: alpha in single precision",
        {"answers": True},
        single_ours,
        {"covmetrics": single_covmetrics},
        inputs=random_rows,
    ),
    trap(
        "strata: twelve integer outcomes",
        {"gap": 0.0},
        outcomes_ours,
        {"covmetrics": outcomes_covmetrics},
        inputs=OUTCOMES,
    ),
    trap(
        "metric: coverage of rows with NaN",
        {"refused": True},
        nan_refused(coverage_ours),
        {"mapie": nan_refused(interval_mapie), "puncc": nan_refused(interval_puncc)},
        inputs=MISSING,
    ),
    trap(
        "metric: labels that are text",
        {"coverage": 2 / 3},
        coverage_ours,
        {"mapie": label_mapie},
        inputs=TEXT,
    ),
    trap(
        "metric: ends of an interval belong to it",
        {"coverage": 2 / 3},
        coverage_ours,
        {"mapie": interval_mapie, "puncc": interval_puncc},
        inputs=ENDS,
    ),
    trap(
        "metric: labels that do not occur",
        {"worst label": 1.0},
        absent_ours,
        {"torchcp": absent_torchcp},
        inputs=ABSENT,
    ),
    trap(
        "metric: sets of more than 1000 labels",
        {"violation": 0.1},
        large_ours,
        {"torchcp": large_torchcp},
        inputs=large,
    ),
    trap(
        "metric: criterion E counts what is superfluous",
        {"E": [2.0, 0.0]},
        excess_ours,
        {"torchcp": excess_torchcp},
        inputs=EXCESS,
    ),
    trap(
        "metric: the global random state",
        {"untouched": True},
        state_ours,
        {"covmetrics": state_covmetrics, "crepes": quiet(state_crepes)},
        inputs=random_rows,
    ),
    trap(
        "metric: sizes in other units",
        {"same in other units": True},
        hsic_ours,
        {"covmetrics": hsic_covmetrics},
        inputs=random_rows,
    ),
    trap(
        "adaptivity: the noise floor of T-CV",
        {"95 % point": 0.05},
        floor_ours,
        {},
        agree=within(0.002),
    ),
    trap("adaptivity: T-SS of a model that is always right", {"NaN with a reason": True}, flat_ours, {}),
    trap("adaptivity: sizes that fall with difficulty", {"below one half": True}, opposite_ours, {}),
]
