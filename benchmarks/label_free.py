"""Estimates without labels on public data with real shift, side by side with NannyML's CBPE and DLE.

Run with ``python -m benchmarks.label_free --data FOLDER [--repeats N] [--seed S]``. A model is trained
and a reference labelled where the data come from; its performance on rows from elsewhere is
estimated without their labels: Adult by native country, Covertype by wilderness area, the bike data by
date. NannyML runs in its own
environment (peers.toml) on the same predictions; its band is three sampling errors to each side, ours an
interval at 95 %.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.metrics import roc_auc_score

from benchmarks.environments import ROOT, build, clean_variables
from calipers.datasets import load_adult, load_covtype, load_regression
from calipers.inputs import check_features
from calipers.performance import LabelFreePerformance

REFERENCE, NEW, TRAIN = 3000, 2000, 6000
# Features, outcomes, and which rows come from elsewhere.
Problem = tuple[pl.DataFrame, np.ndarray, np.ndarray]
# Our loss -> the metric of the peer and what is realised; accuracy is one minus the error rate.
REALISED: dict[str, tuple[str, Callable[[np.ndarray, np.ndarray], float]]] = {
    "accuracy": ("accuracy", lambda p, y: float(np.mean((p >= 0.5) == y))),
    "auroc": ("roc_auc", lambda p, y: float(roc_auc_score(y, p))),
    "absolute": ("mae", lambda p, y: float(np.mean(np.abs(y - p)))),
    "squared": ("mse", lambda p, y: float(np.mean((y - p) ** 2))),
}


class Sample(NamedTuple):
    """Predictions, outcomes and features of the reference and of the new rows."""

    p: np.ndarray
    y: np.ndarray
    X: np.ndarray
    q: np.ndarray
    z: np.ndarray
    X_new: np.ndarray


def adult(folder: str) -> Problem:
    """Income; elsewhere: born outside the United States."""
    data = load_adult(folder)
    away = data.X["native_country"].to_numpy() != "United-States"
    return data.X.drop("native_country"), np.asarray(data.y), away


def covertype(folder: str) -> Problem:
    """Spruce or not; elsewhere: the second and third wilderness area."""
    data = load_covtype(folder)
    X = np.asarray(data.X, dtype=np.float64)
    frame = pl.DataFrame({f"x{j}": X[:, j] for j in range(10)})
    return frame, (np.asarray(data.y) == 1).astype(int), X[:, 10] == 0


def bike(folder: str) -> Problem:
    """Bikes hired per hour; elsewhere: the last third of the time."""
    data = load_regression("bike", data_dir=folder)
    frame = pl.DataFrame(check_features(data.X).values, orient="row")
    n = frame.height
    return frame, np.asarray(data.y, dtype=float), np.arange(n) >= 2 * n // 3


CASES: dict[str, tuple[Callable[[str], Problem], tuple[str, ...]]] = {
    "Adult, by country": (adult, ("accuracy", "auroc")),
    "Covertype, by area": (covertype, ("accuracy", "auroc")),
    "bike, by date": (bike, ("absolute", "squared")),
}


def samples(problem: Problem, repeats: int, *, is_class: bool, seed: int = 0) -> Iterator[Sample]:
    """A model trained on some rows from here; the reference are others, the new rows come from elsewhere."""
    X, y, away = problem
    values, rng = check_features(X).values, np.random.default_rng(seed)
    for _ in range(repeats):
        here, there = rng.permutation(np.flatnonzero(~away)), rng.permutation(np.flatnonzero(away))
        train, reference, new = here[:TRAIN], here[-min(REFERENCE, here.size // 3) :], there[:NEW]
        if is_class:
            model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
            p, q = (
                model.fit(values[train], y[train]).predict_proba(values[r])[:, 1] for r in (reference, new)
            )
        else:
            regressor = HistGradientBoostingRegressor(max_iter=60, random_state=0)
            p, q = (regressor.fit(values[train], y[train]).predict(values[r]) for r in (reference, new))
        yield Sample(p, y[reference], values[reference], q, y[new], values[new])


def ours(sample: Sample, loss: str) -> list[float]:
    """Our estimate and the ends of its interval."""
    model = LabelFreePerformance(loss=loss, random_state=0).fit(sample.p, sample.y, sample.X)
    found = model.estimate(sample.q, sample.X_new)
    return [float(found), float(found.low or 0.0), float(found.high or 0.0)]


def peers(found: list[Sample], *, is_class: bool) -> dict[str, Any]:
    """What NannyML estimates for the same samples, per sample and metric; empty when it is not installed."""
    environment = build("nannyml")
    if environment.python is None:
        print(f"NannyML is not installed: {environment.problem}")
        return {}
    with tempfile.TemporaryDirectory() as folder:
        for number, sample in enumerate(found):
            given = {name: value for name, value in sample._asdict().items() if name != "z"}
            np.savez(Path(folder) / f"{number:03d}.npz", is_class=is_class, **given)
        script = ROOT / "benchmarks" / "label_free_peer.py"
        variables = clean_variables() | {"NML_DISABLE_USAGE_LOGGING": "1"}
        subprocess.run([environment.python, script, folder], check=True, env=variables, capture_output=True)
        document: dict[str, Any] = json.loads((Path(folder) / "peer.json").read_text())
    return dict(document["found"])


def told(errors: list[float], holds: list[bool], width: list[float]) -> str:
    """One predictor's figures."""
    return f"error {np.mean(errors):.4g}, holds {np.mean(holds):.2f}, width {np.mean(width):.4g}"


def main() -> None:
    """Print mean absolute errors, and how often intervals hold what is realised."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name, (load, losses) in CASES.items():
        is_class = losses[0] == "accuracy"
        found = list(samples(load(options.data), options.repeats, is_class=is_class, seed=options.seed))
        theirs = peers(found, is_class=is_class)
        for loss in losses:
            metric, realise = REALISED[loss]
            truth = [realise(sample.q, sample.z) for sample in found]
            rows = {"calipers": [ours(sample, loss) for sample in found]}
            if theirs:
                rows["nannyml"] = [theirs[f"{k:03d}"][metric][:3] for k in range(len(found))]
            stale = np.mean([abs(realise(s.p, s.y) - t) for s, t in zip(found, truth, strict=True)])
            print(f"{name}, {loss}: realised {np.mean(truth):.4g}; error of the reference value {stale:.4g}")
            for peer, ends in rows.items():
                errors = [abs(v - t) for (v, _, _), t in zip(ends, truth, strict=True)]
                holds = [low <= t <= high for (_, low, high), t in zip(ends, truth, strict=True)]
                print(
                    f"    {peer:9s}", told(errors, holds, [high - low for _, low, high in ends]), flush=True
                )


if __name__ == "__main__":
    main()
