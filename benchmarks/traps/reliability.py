"""Calibration: ties read at the end of their block, isotonic fits, tests that hold their level."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from benchmarks.protocol import Answers, Inputs
from benchmarks.traps.p_values import quiet
from benchmarks.traps.written import refused, trap, within


def exact_error(y: np.ndarray, f: np.ndarray) -> float:
    """c_emp over all pairs of distinct scores, in whole numbers of 1/1000: no sorting, no rounding."""
    levels = np.unique(f)
    gaps = [round(1000 * float((y[f == level] - f[f == level]).sum())) for level in levels]
    sums = np.concatenate([[0], np.cumsum(gaps)])
    return float(max(abs(int(b) - int(a)) for a in sums for b in sums)) / (1000 * len(y))


def our_error(inputs: Inputs) -> Answers:
    from calipers.metrics import calibration_error

    return {"error": float(calibration_error(inputs["y"], inputs["f"], random_state=0))}


def mcgrad_error(inputs: Inputs) -> Answers:
    from mcgrad.metrics import ecce

    return {"error": float(ecce(np.asarray(inputs["y"], float), inputs["f"]))}


def probmetrics_error(inputs: Inputs) -> Answers:
    import torch
    from probmetrics.distributions import CategoricalDirac, CategoricalProbs
    from probmetrics.metrics import KuiperCalibrationMetric

    f = torch.as_tensor(inputs["f"], dtype=torch.float32)
    stated = CategoricalProbs(torch.stack([1 - f, f], dim=1))
    happened = CategoricalDirac(torch.as_tensor(inputs["y"], dtype=torch.long), n_classes=2)
    return {"error": float(KuiperCalibrationMetric().compute(happened, stated))}


def mapie_error(inputs: Inputs) -> Answers:
    from mapie.metrics.calibration import kuiper_statistic, length_scale

    y, f = np.asarray(inputs["y"], float), np.asarray(inputs["f"], float)
    return {"error": float(kuiper_statistic(y, f) * length_scale(f))}


def probcal_walk(inputs: Inputs) -> Answers:
    from probcal.metrics import ecce

    return {"error": float(ecce(np.asarray(inputs["y"], float), inputs["f"]).stat_max)}


PEERS = {"mcgrad": mcgrad_error, "probmetrics": probmetrics_error, "mapie": quiet(mapie_error)}


def error_trap(key: str, inputs: Inputs, peers: dict[str, Any], tolerance: float = 1e-9) -> Any:
    exact = {"error": exact_error(inputs["y"], inputs["f"])}
    return trap(key, exact, our_error, peers, inputs=inputs, agree=within(tolerance))


CONSTANT = {"y": np.repeat([1.0, 0.0], 500), "f": np.full(1000, 0.5)}
CERTAIN = {"y": np.tile([0.0, 1.0], 50), "f": np.tile([0.0, 1.0], 50)}
ONE_CLASS = {"y": np.ones(40), "f": np.full(40, 0.75)}


def rounded() -> Inputs:
    rng = np.random.default_rng(0)
    f = np.round(rng.random(1000), 1)
    y = (rng.random(1000) < f).astype(float)
    order = np.argsort(-y, kind="stable")  # the order of the rows must not matter
    return {"y": y[order], "f": f[order]}


def thousandths() -> Inputs:
    """Distinct scores, the walk always below 0: its start is its highest point."""
    f = np.round(np.linspace(0.201, 0.9, 200), 3)
    return {"y": (np.arange(200) % 5 == 4).astype(float), "f": f}


def own_isotonic() -> Inputs:
    """Three levels of an isotonic fit on its own rows: each level is the mean of its labels."""
    y = np.concatenate([np.repeat([1.0, 0.0], [10, 40]), np.repeat([1.0, 0.0], [25, 25]), np.ones(50)])
    return {"y": y, "f": np.repeat([0.2, 0.5, 1.0], 50)}


# --- the test of calibration ----------------------------------------------------------------------


def level_rows(seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A calibrated model with four levels, rows sorted by label."""
    rng = np.random.default_rng(seed)
    f = rng.choice([0.1, 0.3, 0.6, 0.8], 2000)
    y = (rng.random(2000) < f).astype(float)
    order = np.argsort(-y, kind="stable")
    return y[order], f[order]


def rejection_rate(p_value: Any, runs: int = 200) -> Answers:
    return {"rejected": sum(p_value(*level_rows(seed)) <= 0.05 for seed in range(runs)) / runs}


def levels_ours(_: Inputs) -> Answers:
    from calipers.metrics import calibration_error

    return rejection_rate(lambda y, f: calibration_error(y, f, random_state=0).p_value)


def levels_mcgrad(_: Inputs) -> Answers:
    from mcgrad.metrics import ecce_pvalue

    return rejection_rate(ecce_pvalue)


def levels_mapie(_: Inputs) -> Answers:
    from mapie.metrics.calibration import kuiper_p_value

    return rejection_rate(kuiper_p_value)


def at_level(_: Answers, found: Answers) -> bool:
    """At most 5 % up to four standard errors of 200 runs."""
    return bool(float(found["rejected"]) <= 0.05 + 4 * math.sqrt(0.05 * 0.95 / 200))


def far_ours(_: Inputs) -> Answers:
    from calipers.metrics.reliability.range_law import range_survival

    return {"log10 p": math.log10(float(range_survival(10.0)))}


def far_mcgrad(_: Inputs) -> Answers:
    from mcgrad.metrics import ecce_pvalue_from_sigma

    return {"log10 p": math.log10(float(ecce_pvalue_from_sigma(10.0)))}


# P(range of Brownian motion > 10) = 8 sum (-1)^(k-1) k Phi(-10 k): the first term alone, 8 Phi(-10).
FAR = {"log10 p": math.log10(8 * 0.5 * math.erfc(10 / math.sqrt(2)))}


# --- what is not a probability is refused -----------------------------------------------------------


def not_a_number() -> Inputs:
    f = np.linspace(0.05, 0.95, 20)
    f[3] = np.nan
    return {"y": np.tile([0.0, 1.0], 10), "f": f}


def above_one() -> Inputs:
    return {"y": np.tile([0.0, 1.0], 10), "f": np.linspace(0.1, 1.5, 20)}


def refusal(error: Any) -> Any:
    return lambda inputs: refused(
        lambda: error(inputs), also=lambda found: any(map(math.isnan, found.values()))
    )


def netcal_error(inputs: Inputs) -> Answers:
    from netcal.metrics import ECE

    return {"error": float(ECE(10).measure(inputs["f"], inputs["y"].astype(int)))}


def relplot_error(inputs: Inputs) -> Answers:
    from relplot import smECE

    return {"error": float(smECE(f=inputs["f"], y=inputs["y"]))}


def scikit_learn_curve(inputs: Inputs) -> Answers:
    from sklearn.calibration import calibration_curve

    share, stated = calibration_curve(inputs["y"], inputs["f"], n_bins=10)
    return {"error": float(np.abs(share - stated).max())}


REFUSERS = {
    "mcgrad": mcgrad_error, "netcal": netcal_error, "probcal": probcal_walk, "relplot": relplot_error,
    "mapie": quiet(mapie_error), "probmetrics": probmetrics_error, "scikit-learn": scikit_learn_curve,
}  # fmt: skip


# --- isotonic regression ----------------------------------------------------------------------------


def tied_scores() -> Inputs:
    return {"x": np.array([1.0, 2.0, 2.0, 3.0]), "y": np.array([0.0, 0.0, 1.0, 1.0])}


def function_of_score(fitted: Any) -> Answers:
    fitted = np.asarray(fitted, float)
    return {"fit": [float(v) for v in fitted]}


def tied_ours(inputs: Inputs) -> Answers:
    from calipers.calibration import IsotonicCalibrator

    scores = inputs["x"] / 4
    return function_of_score(IsotonicCalibrator().fit(scores, inputs["y"]).predict(scores))


def tied_scikit_learn(inputs: Inputs) -> Answers:
    from sklearn.isotonic import IsotonicRegression

    return function_of_score(IsotonicRegression().fit_transform(inputs["x"], inputs["y"]))


def tied_scipy(inputs: Inputs) -> Answers:
    from scipy.optimize import isotonic_regression

    return function_of_score(isotonic_regression(inputs["y"][np.argsort(inputs["x"])]).x)


def outside_ours(_: Inputs) -> Answers:
    from calipers.calibration import IsotonicCalibrator

    model = IsotonicCalibrator().fit(np.array([0.4, 0.6]), np.array([0, 1]))
    return {"answers": bool(np.isfinite(model.predict(np.array([0.1, 0.9]))).all())}


def outside_scikit_learn(_: Inputs) -> Answers:
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression().fit([0.4, 0.6], [0.0, 1.0])
    return {"answers": bool(np.isfinite(model.predict([0.1, 0.9])).all())}


# --- a calibrated model is best left alone ----------------------------------------------------------


def calibrated() -> Inputs:
    rng = np.random.default_rng(0)
    f = rng.beta(0.7, 0.7, 1000)
    return {"f": f, "y": (rng.random(1000) < f).astype(int), "new": np.linspace(0.01, 0.99, 99)}


def moved(before: np.ndarray, after: Any) -> Answers:
    return {"largest change": float(np.abs(np.asarray(after) - before).max())}


def alone_ours(inputs: Inputs) -> Answers:
    from calipers.calibration import calibrate_if_needed

    model = calibrate_if_needed(inputs["f"], inputs["y"], random_state=0)
    return moved(inputs["new"], model.predict(inputs["new"]))


def alone_scikit_learn(inputs: Inputs) -> Answers:
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(out_of_bounds="clip").fit(inputs["f"], inputs["y"])
    return moved(inputs["new"], model.predict(inputs["new"]))


TASKS = [
    error_trap("calibration: a calibrated constant", CONSTANT, PEERS | {"probcal": probcal_walk}),
    error_trap("calibration: scores of one decimal", rounded(), PEERS),
    error_trap(
        "calibration: an isotonic fit on its own rows", own_isotonic(), PEERS | {"probcal": probcal_walk}
    ),
    error_trap("calibration: the walk starts at 0", thousandths(), PEERS, 1e-6),
    error_trap(
        "calibration: certain and right", CERTAIN, {"probcal": probcal_walk, "mcgrad": mcgrad_error}, 0.0
    ),
    error_trap("calibration: one class only", ONE_CLASS, {"probcal": probcal_walk, "mcgrad": mcgrad_error}),
    trap(
        "calibration: test of four levels sorted by label",
        {"rejected": 0.05},
        levels_ours,
        {"mcgrad": levels_mcgrad, "mapie": quiet(levels_mapie)},
        agree=at_level,
    ),
    trap("calibration: a p-value far out", FAR, far_ours, {"mcgrad": far_mcgrad}, agree=within(0.01)),
    trap(
        "calibration: a score that is NaN",
        {"refused": True},
        refusal(our_error),
        {name: refusal(error) for name, error in REFUSERS.items()},
        inputs=not_a_number,
    ),
    trap(
        "calibration: a score above 1",
        {"refused": True},
        refusal(our_error),
        {name: refusal(error) for name, error in REFUSERS.items()},
        inputs=above_one,
    ),
    trap(
        "isotonic: tied scores",
        {"fit": [0.0, 0.5, 0.5, 1.0]},
        tied_ours,
        {"scikit-learn": tied_scikit_learn, "scipy": tied_scipy},
        inputs=tied_scores,
    ),
    trap(
        "isotonic: beyond the fitted scores",
        {"answers": True},
        outside_ours,
        {"scikit-learn": outside_scikit_learn},
    ),
    trap(
        "calibration: a calibrated model is left alone",
        {"largest change": 0.0},
        alone_ours,
        {"scikit-learn": alone_scikit_learn},
        inputs=calibrated,
        agree=within(1e-12),
    ),
]
